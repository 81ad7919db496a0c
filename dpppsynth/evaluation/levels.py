"""Patterns by the levels of a public mark, such as types or years, and the chief scores of each level as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.metrics import METRICS
from dpppsynth.spatial.marks import words
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    import pandas as pd

# Points of a level from which on it is compared: K is about pairs.
FEWEST = 2
NOTE = "Levels with fewer than two points are not compared by themselves."
POINTS = METRICS[0].name
CHIEF = ("misplaced share", "total variation")
AGAINST = ("synthetic", "uniform", "resampled")


class Level(NamedTuple):
    """Points of one level: of the original, and of each synthetic pattern, which may have none."""

    original: PointPattern
    synthetic: list[PointPattern]


def by_levels(original: PointPattern, synthetic: Sequence[PointPattern], by: str) -> dict[str, Level]:
    """Points of each level of the original with at least two points, by the texts of their mark `by`.

    Raises
    ------
    InputError
        A pattern has no such mark.
    """
    told, others = _told(original, by, "original"), [_told(each, by, "synthetic") for each in synthetic]
    found = {}
    for level in dict.fromkeys(told.tolist()):
        parts = [each.part(mark == level, synthetic=True) for each, mark in zip(synthetic, others, strict=True)]
        if np.count_nonzero(told == level) >= FEWEST:
            found[level] = Level(original.part(told == level), parts)
    return found


def level_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row a level: points, and the chief scores of the synthetic patterns and of the yardsticks, from its table."""
    import pandas as pd

    rows = []
    for found in tables.values():
        row: dict[str, Any] = {f"{POINTS}, {name}": found.loc[POINTS, name] for name in ("original", "synthetic")}
        row |= {_named(score, name): found.loc[score, name] for score in CHIEF for name in AGAINST}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(list(tables), name="level"))


def _named(score: str, name: str) -> str:
    return score if name == "synthetic" else f"{score}, {name}"


def _told(pattern: PointPattern, by: str, name: str) -> Any:
    marks = pattern.marks or {}
    if not isinstance(by, str) or by not in marks:
        if not len(pattern):
            return np.empty(0, dtype=np.str_)
        msg = f"{name}: has no mark {by!r}, by whose levels it is compared; read it with marks=[{by!r}]"
        raise InputError(msg)
    return words(marks[by])
