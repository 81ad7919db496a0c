"""The table of a utility report: one row for each metric, and its form as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.evaluation.metrics import METRICS
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    import pandas as pd


def averages(values: Mapping[str, Floats], n: int, unit: str) -> pd.DataFrame:
    """Average over patterns; see `UtilityReport.table`.

    Parameters
    ----------
    values : mapping of str to ndarray, shape (m, 8)
        Values of `METRICS`, one row a pattern, by "synthetic", "uniform" and "resampled".
    n : int
        Points of the original.
    unit : str
        Unit of length of the domain.
    """
    import pandas as pd

    columns: dict[str, Any] = {"original": [float(n)] + [0.0] * (len(METRICS) - 1)}
    for name, each in values.items():
        columns[name] = _known(each, np.mean, 1)
        if name == "synthetic":
            columns["sd"] = _known(each, lambda column: np.std(column, ddof=1), 2)
    columns["unit"] = [unit if each.unit == "length" else each.unit for each in METRICS]
    columns["better"] = [each.better for each in METRICS]
    return pd.DataFrame(columns, index=pd.Index([each.name for each in METRICS], name="metric"))


def aligned(table: pd.DataFrame) -> list[str]:
    """The table as lines of text; a dash where there is no number."""
    rows = [["", *table.columns]]
    rows += [[str(name), *map(_cell, row)] for name, row in zip(table.index, table.to_numpy(), strict=True)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    for k, column in enumerate(columns):
        width = max(map(len, column))
        # Numbers end below each other; names, units and words begin so.
        words = k == 0 or table.columns[k - 1] in ("unit", "better")
        columns[k] = [cell.ljust(width) if words else cell.rjust(width) for cell in column]
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def _known(values: Floats, statistic: Callable[[Floats], Any], least: int) -> Floats:
    """(8,) statistic of each column's numbers; not a number where there are fewer than `least` of them."""
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([float(statistic(known)) if len(known) >= least else math.nan for known in columns])


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if math.isnan(value) else f"{value:.3g}"
