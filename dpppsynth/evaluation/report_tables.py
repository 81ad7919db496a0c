"""Tables of a utility report: averages of the metrics, scores by level, and scores of a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.contract.result import ExactMaps, HeatMapped
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.metrics import METRICS, Metric, metric_table
from dpppsynth.spatial.map_distances import kl, pearson, similarity
from dpppsynth.spatial.marks import words
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    import pandas as pd


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


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if math.isnan(value) else f"{value:.3g}"


# Points of a level from which on it is compared: K is about pairs.
FEWEST = 2
LEVELS_NOTE = "Levels with fewer than two points are not compared by themselves."
POINTS = METRICS[0].name
CHIEF = ("misplaced share", "total variation")
AGAINST = ("synthetic", "uniform", "resampled")


def by_levels(
    original: PointPattern, synthetic: Sequence[PointPattern], by: str
) -> dict[str, tuple[PointPattern, list[PointPattern]]]:
    """Original and synthetic points of each level with at least two original ones; InputError without a mark `by`."""
    texts, others = _mark_texts(original, by, "original"), [_mark_texts(each, by, "synthetic") for each in synthetic]
    found = {}
    for level in dict.fromkeys(texts.tolist()):
        parts = [each.part(mark == level, synthetic=True) for each, mark in zip(synthetic, others, strict=True)]
        if np.count_nonzero(texts == level) >= FEWEST:
            found[level] = original.part(texts == level), parts
    return found


def level_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per level: points, and the main scores of the synthetic patterns and of the yardsticks."""
    import pandas as pd

    rows = []
    for found in tables.values():
        row: dict[str, Any] = {f"{POINTS}, {name}": found.loc[POINTS, name] for name in ("original", "synthetic")}
        row |= {_named(score, name): found.loc[score, name] for score in CHIEF for name in AGAINST}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(list(tables), name="level"))


def _named(score: str, name: str) -> str:
    return score if name == "synthetic" else f"{score}, {name}"


def _mark_texts(pattern: PointPattern, by: str, name: str) -> Any:
    marks = pattern.marks or {}
    if not isinstance(by, str) or by not in marks:
        if not len(pattern):
            return np.empty(0, dtype=np.str_)
        msg = f"{name}: has no mark {by!r}, by whose levels it is compared; read it with marks=[{by!r}]"
        raise InputError(msg)
    return words(marks[by])


# Scores of a heat map compared with itself.
BEST = 0.0, 1.0, 1.0, 0.0
HEAT_NOTE = (
    "heat map: under synthetic the private heat map itself, under uniform that of a uniform distribution; each against "
    "the exact one, in which every person of the original counts once. All are smoothed by 2 % of the window's longer "
    "side."
)
PERSONS_NOTE = (
    "Other rows are about synthetic patterns, which have one point for each person, and about the original's points, "
    "however many a person has: where persons have several, no aim is to come close to these."
)


@dataclass(frozen=True, eq=False, repr=False)
class HeatScores:
    """Values (4,) of the metrics, of a private heat map and of a uniform one; as confidential as the original."""

    metrics: tuple[Metric, ...]
    released: Floats
    uniform: Floats

    def table(self) -> pd.DataFrame:
        columns = {"original": BEST, "synthetic": self.released, "sd": math.nan, "uniform": self.uniform}
        return metric_table(columns | {"resampled": math.nan}, self.metrics)


def score_heat(release: HeatMapped, original: PointPattern) -> HeatScores:
    """Score a release against the pattern it was made from, marked as its statistic asks."""
    maps = release.exact_maps(original)
    metrics = (
        Metric(f"heat map, EMD at {maps.side} x {maps.side}", f"share {maps.unit}"),
        Metric("heat map, SIM", "share", "higher"),
        Metric("heat map, CC", "correlation", "higher"),
        Metric("heat map, KL", "nats"),
    )
    return HeatScores(metrics, _scores(maps, maps.released), _scores(maps, maps.uniform))


def _scores(maps: ExactMaps, estimate: Floats) -> Floats:
    exact = maps.exact
    return np.array([maps.moved(estimate), similarity(exact, estimate), pearson(exact, estimate), kl(exact, estimate)])
