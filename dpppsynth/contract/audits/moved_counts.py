"""Audit of counts of moved points."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from dpppsynth.contract.audits.moved_points import MovesAudit, shifts_between
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.noise_laws import NoiseOf
from dpppsynth.contract.audits.statistics import ReleasedLattice, one_by_one, weighted
from dpppsynth.contract.audits.target import AuditStatistic, Noise, Released, Scores, StatedLaw, Weakened
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.models.planar_kernel import quadrant
from dpppsynth.spatial.mesh import Floats

# Other points whose law is worked out, at most, by chances of single nodes.
OTHERS, MOST_CHANCES = 200, 2_000_000
# Least chance of a node, so that logarithms are finite; lengths of the noise, in scales, beyond all that is drawn.
LEAST, BEYOND = 1e-30, 60.0
# Simulated runs on either input, and moves of all of them together, at most.
SEED, RUNS, MOST_MOVES = 20261201, 4000, 4_000_000


class Differing(NamedTuple):
    """Points, as coordinates and levels (k, 3), of the first pattern alone, of the second alone, and of both."""

    gone: Floats
    came: Floats
    others: Floats

    @classmethod
    def of(cls, plan: MovedCounts, pair: Pair) -> Self:
        """Those of a pair of patterns."""
        one, other = (np.column_stack([plan.domain.coordinates(p.positions), plan.levels_of(p)]) for p in pair)
        count = min(len(one), len(other))
        differ = (one[:count] != other[:count]).any(axis=1)
        same = int(differ.argmax()) if differ.any() else count
        first, second = (Counter(map(tuple, rows[same:].tolist())) for rows in (one, other))
        gone, came, both = (
            np.array([*points.elements()]).reshape(-1, 3) for points in (first - second, second - first, first & second)
        )
        return cls(gone, came, np.concatenate([one[:same], both]))


def node_chances(plan: MovedCounts, place: Floats, level: int = 0) -> Floats:
    """(size,) probability that a point at a place (2,) is counted at each node, by the stated law of its noise."""
    low = np.array(plan.box[:2])
    edges = []
    for axis, (count, step) in enumerate(zip(plan.sides, plan.spacing, strict=True)):
        inner = low[axis] - place[axis] + (np.arange(1, count) - plan.extension - 0.5) * step
        far = BEYOND / plan.rate + np.abs(inner).max()
        edges.append(np.concatenate([[-far], inner, [far]]))
    within = quadrant(plan.rate, *edges)
    chances = np.zeros((plan.levels, plan.size // plan.levels))
    chances[level] = np.maximum(np.diff(np.diff(within, axis=0), axis=1), 0.0).ravel()
    return np.asarray(chances.ravel())


@dataclass(frozen=True, eq=False)
class PlacesRatio:
    """Log-likelihood ratio of a person's places given the counts, exact where the others share a place.

    The person's points come from one place. Where one point is among others of the law q, counts N have the likelihood
    `sum_c N_c p_c / q_c`, up to a constant; of several points its power is taken.

    Attributes
    ----------
    first, second : (size,) arrays
        Chances of a point of the person at each node over those of others; of nobody else, their logarithms.
    points : int
        Points of the person.
    alone : bool
        Whether there is nobody else.
    """

    first: Floats
    second: Floats
    points: int
    alone: bool

    @classmethod
    def at(cls, plan: MovedCounts, pair: Pair) -> Self:
        """The ratio for a pair of patterns."""
        gone, came, same = Differing.of(plan, pair)
        others = np.unique(same, axis=0)
        own = [_mean_chances(plan, points) + LEAST for points in (gone, came)]
        if not len(others):
            return cls(np.log(own[0]), np.log(own[1]), len(gone), alone=True)
        spread = np.linspace(0, len(others) - 1, min(len(others), OTHERS, max(1, MOST_CHANCES // plan.size)))
        law = _mean_chances(plan, others[spread.astype(np.int64)]) + LEAST
        return cls(own[0] / law, own[1] / law, len(gone), alone=False)

    def of(self, first: Floats, second: Floats) -> Floats:
        """(...) ratios from sums of `first` and of `second` over all moved points."""
        if self.alone:
            return np.asarray(first - second)
        return np.asarray(self.points * (np.log(first) - np.log(second)))

    def __call__(self, released: ReleasedLattice) -> float:
        return float(self.of(released.lattice @ self.first, released.lattice @ self.second))


def _mean_chances(plan: MovedCounts, points: Floats) -> Floats:
    different, times = np.unique(points, axis=0, return_counts=True)
    mean = np.zeros(plan.size)
    for point, share in zip(different, times / len(points), strict=True):
        mean += share * node_chances(plan, point[:2], int(point[2]))
    return mean


def nodes_near(plan: MovedCounts, places: Floats, reach: float) -> Floats:
    """(k, size) indicators of the nodes within a distance of places (k, 2), and of the nearest one of each."""
    away = plan.nodes[None] - places[:, None]
    length = np.hypot(away[..., 0], away[..., 1])
    return np.asarray((length <= np.maximum(reach, length.min(axis=1, keepdims=True))).astype(np.float64))


def simulated(plan: MovedCounts, pair: Pair, ratio: PlacesRatio, factor: float) -> Scores:
    """Scores (N,), (N,) of the ratio where all noise is too small by a factor."""
    rng, rate = np.random.default_rng(SEED), factor * plan.rate
    sides = []
    for pattern in pair:
        first, second = np.zeros(RUNS), np.zeros(RUNS)
        nodes = plan.size // plan.levels
        for place, level in zip(plan.domain.coordinates(pattern.positions), plan.levels_of(pattern), strict=True):
            length, turn = rng.gamma(2, 1 / rate, RUNS), 2 * np.pi * rng.random(RUNS)
            node = plan.node_of(place + length[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]))
            node += level * nodes
            first += ratio.first[node]
            second += ratio.second[node]
        sides.append(ratio.of(first, second))
    return sides[0], sides[1]


def released_counts(_side: int, released: Released) -> Noise | None:
    """The released counts, which stand for the noise, since the made-up points are known."""
    return getattr(released, "lattice", None)


@dataclass(frozen=True, eq=False)
class MovedCountsAudit(MovesAudit):
    """Counts of points with planar Laplace noise on each."""

    plan: MovedCounts

    @property
    def rate(self) -> float:
        return self.plan.rate

    def shifts(self, pair: Pair) -> Floats | None:
        gone, came, _ = Differing.of(self.plan, pair)
        return shifts_between(gone[:, :2], came[:, :2], self.rate)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio; counts at the nodes of the person's places and around them; the mean of all points."""
        plan = self.plan
        gone, came, _ = Differing.of(plan, pair)
        places = np.concatenate([np.unique(each[:, :2], axis=0) for each in (gone, came)])
        here, around = (nodes_near(plan, places, reach) for reach in (0.0, 1 / plan.rate))
        return (
            AuditStatistic("likelihood ratio", PlacesRatio.at(plan, pair)),
            AuditStatistic("places", partial(weighted, here, 1.0), learned=True, alone=True),
            AuditStatistic("around", partial(weighted, around, 1.0), learned=True),
            AuditStatistic("mean", partial(weighted, plan.nodes.T / plan.n, 1.0), learned=True),
            *one_by_one(plan.size),
        )

    def weakened(self, pair: Pair) -> Weakened | None:
        """Simulated law of the likelihood ratio, where the points are few enough."""
        if len(pair[0]) * RUNS > MOST_MOVES or self.shifts(pair) is None:
            return None
        return partial(simulated, self.plan, pair, PlacesRatio.at(self.plan, pair))

    def noise(self, pair: Pair) -> NoiseOf:
        return released_counts

    @property
    def numbers(self) -> int:
        return self.plan.size

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Upper bound on the log-probability of any counts; 0, which says nothing, for a part of them.

        Of m points, the others given, any counts have the probability `m! p^m` at most, with p that of the likeliest
        node of any point. Noise is likeliest in a cell, or in a strip beyond the border, about whose middle it is; a
        corner of the box is in the middle of its own cell, and nearest to the border.
        """
        if first is not None:
            return 0.0
        plan = self.plan
        likeliest = node_chances(plan, np.array(plan.box[:2])).max()
        m = np.arange(1, min(plan.n, RUNS) + 1)
        return min(0.0, float((gammaln(m + 1) + m * np.log(likeliest)).min()))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """No laws: it is not known which points a count is of."""
        return ()
