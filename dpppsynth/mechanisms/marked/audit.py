"""Audit of masses of points with marks."""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits.additive_audits import CountsAudit, LaplaceAudit
from dpppsynth.contract.audits.neighbouring_pairs import Pair, require_capped, within
from dpppsynth.contract.audits.statistics import one_by_one, weighted
from dpppsynth.contract.audits.target import AuditStatistic, require_two
from dpppsynth.core.arguments import instance
from dpppsynth.mechanisms.marked.bound import time_on_clock
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.privacy.guarantee import on_map
from dpppsynth.privacy.relations import CappedRelation, MovedPoint, Relation
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Times of changes are by this share of what is allowed, so that none is longer.
SHORT = 1 - 1e-9
Row = tuple[float, float, int, float]


@dataclass(frozen=True, eq=False)
class MarkedAudit(LaplaceAudit):
    """Masses of tents, hats and types, with discrete Laplace noise."""

    plan: MarkedMasses

    def pair(self, relation: Relation) -> Pair:
        """The hardest pair of places, with the largest allowed changes of marks."""
        pair = super().pair(relation)
        if not relation.n_is_public:
            return marked(pair[0], self.plan.marks, ()), marked(pair[1], self.plan.marks, ())
        count = min(instance("relation", relation, CappedRelation).max_points_per_person, len(pair[0]))
        return tuple(  # type: ignore[return-value]
            marked(pattern, self.plan.marks, end, count)
            for pattern, end in zip(pair, ends(self.plan.marks, relation), strict=True)
        )

    def separation(self, first: Floats, second: Floats) -> Floats:
        return self._tents.separation(first, second)

    def presence(self, at: Floats) -> Floats:
        return self._tents.presence(at)

    @property
    def _tents(self) -> CountsAudit:
        """Audit of the tents alone."""
        p = self.plan
        bare = p.relation.without_marks if isinstance(p.relation, MovedPoint) else p.relation
        return CountsAudit(LaplaceMasses("tents", p.mesh, bare, p.n, p.expected_n, p.epsilon))

    def neighbours(self, relation: Relation, pair: object = None) -> Pair:
        """The pair given, if it is neighbouring with its marks, or else the hard pair; InputError."""
        if pair is None:
            return self.pair(relation)
        return own_pair(pair, relation, self.plan.marks)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio; the matched filter for the change; the total; single numbers."""
        first, second = self.exact(pair)
        unit = 2.0**-self.plan.bits
        return (
            AuditStatistic("likelihood ratio", self.likelihood_ratio(pair)),
            AuditStatistic("near", partial(weighted, np.asarray((first - second) * unit, dtype=np.float64), unit)),
            AuditStatistic("total", partial(weighted, np.ones(len(first)), unit)),
            *one_by_one(len(first)),
        )

    def change(self, pair: Pair) -> Ints:
        gone, came = differing(pair, self.plan.marks)
        return self._of_rows(gone) - self._of_rows(came)

    def _of_rows(self, rows: list[Row]) -> Ints:
        table = np.array(rows, dtype=np.float64).reshape(-1, 4)
        return self.plan.exact_at(table[:, :2], table[:, 2].astype(np.int64), table[:, 3])


def own_pair(pair: object, relation: Relation, marks: Marks) -> Pair:
    """A caller's own pair of patterns with marks, refused unless they are neighbouring under the relation."""
    one, other = (instance("pair", each, PointPattern, "give two patterns") for each in require_two(pair))
    capped = instance("relation", relation, CappedRelation)
    gone, came = (np.array(rows, dtype=np.float64).reshape(-1, 4) for rows in differing((one, other), marks))
    reach, (time, types) = on_map(capped, one.domain).reach, _reach(marks, capped)

    def near(before: Floats, after: Floats) -> NDArray[np.bool_]:
        may = within(one.domain, before[:, :2], after[:, :2], reach)
        if marks.times is not None:
            may &= marks.times.distance(before[:, 3], after[:, 3]) <= time
        return may & ((before[:, 2] == after[:, 2]) | bool(types))

    require_capped(capped, gone, came, near)
    return one, other


def ends(marks: Marks, relation: Relation) -> tuple[tuple[int, float], tuple[int, float]]:
    """Type number and time of a moved point before and after, as far apart as the relation allows.

    Its time begins at an instant with a hat, of which the change takes most.
    """
    time, types = _reach(marks, relation)
    if marks.times is None:
        return (0, 0.0), (1 if types else 0, 0.0)
    start = float(marks.times.nodes[0])
    later = start + min(SHORT * time, marks.times.farthest)
    return (0, start), (1 if types else 0, later)


def _reach(marks: Marks, relation: Relation) -> tuple[float, float]:
    """Largest changes of a time on its clock, and of a type."""
    if not isinstance(relation, MovedPoint):
        return 0.0, 0.0
    return time_on_clock(marks.times, relation), relation.marks_reach[1]


def marked(pattern: PointPattern, marks: Marks, end: tuple[int, float] | tuple[()], count: int = 0) -> PointPattern:
    """The pattern with marks: the last `count` points have those of `end`, all others the first type and time."""
    kinds = np.zeros(len(pattern), dtype=np.int64)
    times = np.full(len(pattern), 0.0 if marks.times is None else marks.times.start)
    if end and count:
        kinds[-count:], times[-count:] = end
    return PointPattern.at(pattern.positions, pattern.domain, marks.columns(kinds, times))


def differing(pair: Pair, marks: Marks) -> tuple[list[Row], list[Row]]:
    """Points of the first pattern alone, and of the second alone: position, type number and time."""
    one, other = (Counter(_rows(pattern, marks)) for pattern in pair)
    return [*(one - other).elements()], [*(other - one).elements()]


def _rows(pattern: PointPattern, marks: Marks) -> list[Row]:
    kinds, times = marks.require(pattern.marks)
    return list(zip(*pattern.positions.T.tolist(), kinds.tolist(), times.tolist(), strict=True))
