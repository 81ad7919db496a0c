"""Types and times of synthetic patterns against those of the original; as confidential as the original."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.distances import share_distance, squares
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.metrics import (
    Metric,
    averages,
    kept_part,
    known,
    mean_integrated_squared_error,
    without_copies,
)
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import KFunction, frozen

if TYPE_CHECKING:
    import pandas as pd

MARKS_NOTE = (
    "types and times: histograms have a bin about each hat; K by type is the mean over types with two points or more, "
    "and misplaced shares count a point in its square with another type (or time) as misplaced."
)


@dataclass(frozen=True, eq=False, repr=False)
class MarkScores:
    """Values (m, rows) of the metrics by "synthetic", "uniform" and "resampled", and shares of types and times.

    `types` and `times` have a row for each type, or bin of times: share in the original, mean and standard deviation of
    the synthetic shares; of types also the mean error of K.
    """

    metrics: tuple[Metric, ...]
    values: dict[str, Floats]
    types: pd.DataFrame | None
    times: pd.DataFrame | None

    def table(self) -> pd.DataFrame:
        """One row per metric, with the columns of `UtilityReport.table`."""
        return averages(0.0, self.values, self.metrics)


@dataclass(frozen=True, eq=False, repr=False)
class MarkedPattern:
    """A pattern, its types as numbers (n,), its times (n,) and, for resampled points, the numbers (n,) of originals."""

    pattern: PointPattern
    kinds: Ints
    times: Floats
    source: Ints | None = None


@dataclass(frozen=True, eq=False, repr=False)
class MarkComparison:
    """The original with its marks, and the public settings by which patterns are compared with it."""

    original: MarkedPattern
    marks: Marks
    side: float
    r: Floats
    rng: np.random.Generator

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Rows of the report for these marks."""
        types, times = self.marks.types, self.marks.times
        by = "type" if types is not None else "time"
        rows = [Metric(f"misplaced share by {by}", "share")]
        if types is not None:
            rows += [
                Metric("shares of types", "share"),
                Metric("K by type, mean MISE", self.original.pattern.domain.unit),
            ]
        if times is not None:
            rows += [Metric("histogram of times", "share"), Metric("times, Wasserstein", times.unit or "unit of time")]
        return tuple(rows)

    def score(self, other: MarkedPattern) -> tuple[list[float], list[float]]:
        """Values of the metrics, and the error of K of each type."""
        types, times = self.marks.types, self.marks.times
        if not len(other.pattern):
            return [math.nan] * len(self.metrics), [math.nan] * self.marks.shape[0]
        values, of_types = [share_distance(self._cells(self.original), self._cells(other))], []
        if types is not None:
            of_types = [self._k_error(other, k) for k in range(len(types.values))]
            values += [
                share_distance(self.original.kinds, other.kinds),
                float(known(np.array([of_types]).T, np.mean, 1)[0]),
            ]
        if times is not None:
            mine, theirs = (_bins(times, each.times) for each in (self.original, other))
            values += [share_distance(mine, theirs), time_distance(times, self.original.times, other.times)]
        return values, of_types

    def _cells(self, marked: MarkedPattern) -> Ints:
        """(n, 3) square and type (or bin of times)."""
        times = self.marks.times
        mark = marked.kinds if self.marks.types is not None or times is None else _bins(times, marked.times)
        return np.column_stack([squares(marked.pattern.xy, marked.pattern.domain, self.side), mark])

    def _k_error(self, other: MarkedPattern, kind: int) -> float:
        """Integrated squared error of the K-function of one type; not a number where the original has no pair."""
        ours, theirs = (self._k(each, kind) for each in (self.original, other))
        if ours is None or np.count_nonzero(ours.k) < 2:
            return math.nan
        return mean_integrated_squared_error(ours, theirs or replace(ours, k=frozen(np.zeros_like(ours.k))))

    def _k(self, marked: MarkedPattern, kind: int) -> KFunction | None:
        at = np.flatnonzero(marked.kinds == kind)
        if len(at) < 2:
            return None
        pattern, domain = marked.pattern, marked.pattern.domain
        at = at[kept_part(PointPattern.at(pattern.positions[at], domain), self.rng)]
        found = k_function(PointPattern.at(pattern.positions[at], domain), self.r)
        return found if marked.source is None else without_copies(found, marked.source[at], domain)

    def resampled(self) -> MarkedPattern:
        """Points of the original drawn anew, with their marks."""
        chosen = self.rng.integers(len(self.original.pattern), size=len(self.original.pattern))
        pattern = self.original.pattern
        again = PointPattern.at(pattern.positions[chosen], pattern.domain, synthetic=True)
        return MarkedPattern(again, self.original.kinds[chosen], self.original.times[chosen], chosen)

    def uniform(self, pattern: PointPattern) -> MarkedPattern:
        """Evenly spread points with evenly spread marks."""
        times = self.marks.times
        kinds = self.rng.integers(self.marks.shape[0], size=len(pattern))
        at = np.zeros(len(pattern)) if times is None else self.rng.uniform(times.start, times.end, len(pattern))
        return MarkedPattern(pattern, kinds, at)


def with_marks(pattern: PointPattern, marks: Marks, argument: str) -> MarkedPattern:
    """A pattern with its types and times; InputError where a mark is missing or a value not among the public ones."""
    found = {name: (pattern.marks or {}).get(name) for name in marks.names}
    if not len(pattern):
        return MarkedPattern(pattern, np.empty(0, dtype=np.int64), np.empty(0))
    if any(values is None for values in found.values()):
        names = " and ".join(map(repr, marks.names))
        msg = f"{argument}: needs the marks {names}; read_pattern(..., described=release.marks) keeps them."
        raise InputError(msg)
    kinds, times = marks.require({name: np.asarray(values) for name, values in found.items()})
    return MarkedPattern(pattern, kinds, times)


def score_marks(
    comparison: MarkComparison, patterns: Sequence[MarkedPattern], uniform: Sequence[PointPattern]
) -> MarkScores:
    """Score synthetic patterns and the two yardsticks."""
    scored = [comparison.score(each) for each in patterns]
    values = {
        "synthetic": np.array([each for each, _ in scored]),
        "uniform": np.array([comparison.score(comparison.uniform(each))[0] for each in uniform]),
        "resampled": np.array([comparison.score(comparison.resampled())[0] for _ in uniform]),
    }
    marks, original, types, times = comparison.marks, comparison.original, None, None
    if marks.types is not None:
        names = list(marks.types.values)
        types = _shares([(each.kinds, len(names)) for each in (original, *patterns)], names, marks.types.name)
        types["K, MISE"] = known(np.array([errors for _, errors in scored]), np.mean, 1)
    if marks.times is not None:
        found, nodes = marks.times, marks.times.nodes.tolist()
        bins = [(_bins(found, each.times), found.hats) for each in (original, *patterns)]
        times = _shares(bins, nodes, found.name)
    return MarkScores(comparison.metrics, values, types, times)


def time_distance(times: Times, first: Floats, second: Floats) -> float:
    """Wasserstein distance of two samples of times, around the clock where there is one."""
    at = np.sort(np.concatenate([[times.start], first, second, [times.end]]))
    length = np.diff(at)
    ahead = _share_until(first, at[:-1]) - _share_until(second, at[:-1])
    if times.periodic:
        # Mass may go around either way: the level that makes the flow least is a weighted median.
        order = np.argsort(ahead)
        middle = np.searchsorted(np.cumsum(length[order]), length.sum() / 2)
        ahead = ahead - ahead[order][min(int(middle), len(order) - 1)]
    return float(length @ np.abs(ahead))


def _share_until(sample: Floats, at: Floats) -> Floats:
    return np.asarray(np.searchsorted(np.sort(sample), at, side="right") / len(sample), dtype=np.float64)


def _bins(times: Times, at: Floats) -> Ints:
    """(n,) number of the nearest hat."""
    hat, value = times.values(at)
    return np.asarray(hat[np.arange(len(at)), np.argmax(value, axis=1)])


def _shares(found: Sequence[tuple[Ints, int]], names: Sequence[Any], name: str) -> pd.DataFrame:
    """Shares in the original, the first of these, and in the synthetic patterns, the others."""
    import pandas as pd

    shares = np.array([np.bincount(each, minlength=count) / max(1, len(each)) for each, count in found])
    spread = shares[1:].std(axis=0, ddof=1) if len(shares) > 2 else math.nan
    columns = {"original": shares[0], "synthetic": shares[1:].mean(axis=0), "sd": spread}
    return pd.DataFrame(columns, index=pd.Index(names, name=name))
