"""Audits of points that are moved one by one."""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.contract.audits.moved_points import MovesAudit, shifts_between
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed, unchanged
from dpppsynth.contract.audits.noise_laws import NoiseOf, released_places
from dpppsynth.contract.audits.target import AuditStatistic, Scores, StatedLaw, Weakened
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

SEED, COUNT = 20261129, 20_000


@dataclass(frozen=True, eq=False)
class PersonRows:
    """Released positions that may be the person's.

    Of a track all of them are, row by row. Otherwise they are as many as the person has points, those that fit the
    places of either pattern better than that of anybody else.

    Attributes
    ----------
    plan : MovedPoints
    first, second : (k, 2) arrays
        Places of the person's points in either pattern.
    others : (m, 2) array
        Everybody else's places.
    """

    plan: MovedPoints
    first: Floats
    second: Floats
    others: Floats

    @classmethod
    def at(cls, plan: MovedPoints, pair: Pair) -> Self:
        """The person's rows for a pair of patterns."""
        if plan.track:
            return cls(plan, pair[0].positions, pair[1].positions, np.empty((0, 2)))
        return cls(plan, *changed(pair), unchanged(pair))

    def rows(self, released: Any) -> Floats:
        """(k, 2) positions."""
        positions = self.plan.positions(released)
        if len(positions) <= len(self.first):
            return positions
        near = np.minimum(*(_nearest(places, positions) for places in self._different))
        fits = near - self._tree.query(positions)[0]
        # In an order of their own: the order of the release must tell nothing here.
        return positions[np.lexsort((*positions.T, fits))[: len(self.first)]]

    def distances(self, released: Any) -> tuple[Floats, Floats]:
        """(k,) distances of these rows from the person's places in either pattern: row by row of a track."""
        rows = self.rows(released)
        if self.plan.track:
            return np.hypot(*(rows - self.first).T), np.hypot(*(rows - self.second).T)
        one, other = (_nearest(places, rows) for places in self._different)
        return one, other

    @cached_property
    def _different(self) -> tuple[Floats, Floats]:
        return np.unique(self.first, axis=0), np.unique(self.second, axis=0)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.others)


def track_ratio(rows: PersonRows, released: Any) -> float:
    """Log-likelihood ratio of both patterns, given the person's rows: `rate (|z - x'| - |z - x|)`, summed.

    Infinite where a row is possible from one of the places alone; zero where nothing is possible.
    """
    plan, (first, second) = rows.plan, rows.distances(released)
    # A rounded position is half a diagonal of the grid from where the noise had led.
    reach = plan.bound + np.sqrt(0.5) * plan.step
    return float(move_ratio(plan.rate * first, plan.rate * second, plan.rate * reach))


def farthest(rows: PersonRows, released: Any) -> Floats:
    """(2,) largest distances of the person's rows from the places of the first pattern, and from those of the second.

    Wherever the noise ends, what is farther off is not from that pattern.
    """
    return np.array([away.max(initial=0.0) for away in rows.distances(released)])


def mean_place(rows: PersonRows, released: Any) -> Floats:
    """(2,) mean of the person's rows, from the first pattern's places, which reveals a coordinate without noise."""
    return np.asarray((rows.rows(released) - rows.first.mean(axis=0)).mean(axis=0))


def end_rows(plan: MovedPoints, released: Any) -> Floats:
    """(4,) coordinates of the first and the last row, which reveal rows in the order of the data."""
    return plan.positions(released)[[0, -1]].ravel()


def shorter_moves(shifts: Floats, bound: float, factor: float) -> Scores:
    """Scores (N,), (N,) of the likelihood ratio where noise is of too large a rate within the same bound.

    The second input's are the first's with the sign changed.

    Parameters
    ----------
    shifts : (k,) array
        Distances between the places of the person's points, times the stated rate; the factor multiplies the rate.
    bound : float
        Times the stated rate.
    factor : float
    """
    rng = np.random.default_rng(SEED)
    share, angle = rng.random((2, COUNT, len(shifts)))
    radius = gammaincinv(2, share * gammainc(2, factor * bound)) / factor
    across = np.hypot(radius * np.cos(np.pi * angle) - shifts, radius * np.sin(np.pi * angle))
    scores = move_ratio(radius, across, bound)
    return scores, -scores


def move_ratio(first: Floats, second: Floats, reach: float) -> Floats:
    """(...) log-likelihood ratios of rows at distances (..., k) from both places, in units of 1 / rate.

    Zero where the rows exclude both patterns.

    Examples
    --------
    >>> move_ratio(np.array([[1.0], [0.5], [3.0]]), np.array([[2.0], [2.5], [1.0]]), 2.2).tolist()
    [1.0, inf, -inf]
    """
    only_first, only_second = (second > reach).any(axis=-1), (first > reach).any(axis=-1)
    certain = np.where(only_first, np.inf, -np.inf)
    return np.where(only_first != only_second, certain, (second - first).sum(axis=-1))


def move_shifts(plan: MovedPoints, pair: Pair) -> Floats | None:
    """(k,) distances between the person's places, times the rate; None where nobody knows which is moved to which."""
    if not plan.track:
        return shifts_between(*changed(pair), plan.rate)
    gone, came = (pattern.positions for pattern in pair)
    return shifts_between(gone, came, plan.rate, row_by_row=True)


def _nearest(places: Floats, positions: Floats) -> Floats:
    """(m,) distances of positions (m, 2) from the nearest of places (k, 2)."""
    apart = positions[:, None] - places
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]).min(axis=1))


@dataclass(frozen=True, eq=False)
class MovedAudit(MovesAudit):
    """Points with planar Laplace noise on each."""

    plan: MovedPoints

    def pair(self, relation: Relation) -> Pair:
        """The hardest move; the moved points come first in the second pattern, whose rows are reversed.

        The order of the rows is not protected, so it must not differ between the patterns; that of a track is.
        """
        one, other = super().pair(relation)
        return (one, other) if self.plan.track else (one, PointPattern.at(other.positions[::-1], other.domain))

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        rows = PersonRows.at(self.plan, pair)
        return (
            AuditStatistic("likelihood ratio", partial(track_ratio, rows)),
            AuditStatistic("farthest", partial(farthest, rows), learned=True, alone=True),
            AuditStatistic("place", partial(mean_place, rows), learned=True, alone=True),
            AuditStatistic("end rows", partial(end_rows, self.plan), learned=True, alone=True),
        )

    def shifts(self, pair: Pair) -> Floats | None:
        return move_shifts(self.plan, pair)

    @property
    def rate(self) -> float:
        return self.plan.rate

    @property
    def bound(self) -> float:
        return self.plan.bound

    def weakened(self, pair: Pair) -> Weakened | None:
        """Simulated law of the likelihood ratio, where it is known which point is moved to which place."""
        shifts = self.shifts(pair)
        return None if shifts is None else partial(shorter_moves, shifts, self.plan.rate * self.plan.bound)

    def noise(self, pair: Pair) -> NoiseOf:
        return released_places

    @property
    def numbers(self) -> int:
        return self.plan.size

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Upper bound on the log-probability of any places of all points on their grid."""
        plan, count = self.plan, self.numbers if first is None else first
        kept = float(gammainc(2, plan.rate * plan.bound))
        return count // 2 * min(0.0, math.log((plan.rate * plan.step) ** 2 / (2 * math.pi * kept)))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """No laws: it is not known which released row is of which point."""
        return ()
