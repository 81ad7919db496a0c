"""Means and standard errors of a study's table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments.cells import KEYS

if TYPE_CHECKING:
    import pandas as pd

ROWS = KEYS[:-1]


def summary(table: "pd.DataFrame", by: Sequence[str] = ROWS) -> "pd.DataFrame":
    """Mean and standard error of every measure, for each group of cells.

    Cells that share an original (scenario and repeat) are averaged first: the originals are what is independent, and
    standard errors count them. Refused cells and missing values are left out of means.

    Parameters
    ----------
    table : pandas.DataFrame
        From `Study.run`, `Study.table` or `Study.seconds`.
    by : sequence of str
        Columns that tell groups apart, from the first five but `repeat`.

    Returns
    -------
    pandas.DataFrame
        A row for each group, in the order of the table: `by`, `cells`, `refused` (how many hold a refusal) and for
        each measure `m` columns `m` (mean) and `m_se` (standard error, nan for one original).

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "laplace", 1.0, 0.0, k, None, value) for k, value in enumerate([1.0, 3.0])]
    >>> table = pd.DataFrame(rows, columns=[*KEYS, "refused", "points"])
    >>> summary(table, by=["scenario"]).iloc[0].to_dict()
    {'scenario': 'a', 'cells': 2, 'refused': 0, 'points': 2.0, 'points_se': 1.0}
    """
    by = [by] if isinstance(by, str) else list(by)
    if not by or not set(by) <= set(ROWS):
        msg = f"by: needs some of {ROWS}, got {by}."
        raise InputError(msg)
    missing = [name for name in (*KEYS, "refused") if name not in getattr(table, "columns", ())]
    if missing:
        msg = f"table: must be what `Study.run` gave; there is no column {', '.join(missing)}."
        raise InputError(msg)
    measures = [name for name in table.columns if name not in (*KEYS, "refused")]
    originals = [*by, *(name for name in ("scenario", "repeat") if name not in by)]
    each = table.groupby(originals, sort=False)[measures].mean().reset_index()
    groups = table.groupby(by, sort=False)
    result = groups.size().rename("cells").to_frame()
    result["refused"] = groups["refused"].count()
    mean, error = each.groupby(by, sort=False)[measures].mean(), each.groupby(by, sort=False)[measures].sem()
    for name in measures:
        result[name], result[f"{name}_se"] = mean[name], error[name]
    return result.reset_index()
