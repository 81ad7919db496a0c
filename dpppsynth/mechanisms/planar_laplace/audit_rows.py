"""Test statistics for points moved one by one: the released points most likely to be the target's, and their places.

Rows are in random order, everybody else is far away, and of the released positions those are looked at that fit the
person best. Some positions are possible from one of two places alone; an infinite likelihood ratio tells them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed, unchanged
from dpppsynth.contract.audits.target import Scores
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.spatial.mesh import Floats

SEED, COUNT = 20261129, 20_000


@dataclass(frozen=True, eq=False)
class PersonRows:
    """The released positions that are a person's, as far as anybody can tell.

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


@dataclass(frozen=True, eq=False)
class MoveRatio(PersonRows):
    """Log-likelihood ratio of both patterns, given the person's rows: `rate (|z - x'| - |z - x|)`, summed.

    Infinite where a row is possible from one of the places alone.
    """

    def __call__(self, released: Any) -> float:
        """A number; zero where nothing is possible."""
        first, second = self.distances(released)
        # A rounded position is half a diagonal of the grid from where the noise had led.
        reach = self.plan.bound + np.sqrt(0.5) * self.plan.step
        return float(move_ratio(self.plan.rate * first, self.plan.rate * second, self.plan.rate * reach))


@dataclass(frozen=True, eq=False)
class Farthest(PersonRows):
    """The longest way of the person's rows from the places of the first pattern, and from those of the second."""

    def __call__(self, released: Any) -> Floats:
        """(2,) distances. Wherever the noise ends, what is farther off is not from that pattern."""
        return np.array([away.max(initial=0.0) for away in self.distances(released)])


@dataclass(frozen=True, eq=False)
class Place(PersonRows):
    """Mean of the person's rows: a coordinate without noise shows here."""

    def __call__(self, released: Any) -> Floats:
        """(2,) coordinates, from the places of the first pattern."""
        return np.asarray((self.rows(released) - self.first.mean(axis=0)).mean(axis=0))


@dataclass(frozen=True)
class EndRows:
    """The first and the last row as they are: their order must not be that of the data."""

    plan: MovedPoints

    def __call__(self, released: Any) -> Floats:
        """(4,) coordinates."""
        return self.plan.positions(released)[[0, -1]].ravel()


@dataclass(frozen=True, eq=False)
class ShorterMoves:
    """Points moved by noise at too large a rate within the same bound.

    Attributes
    ----------
    shifts : (k,) array
        Distances between the places of the person's points, times the stated rate; a factor multiplies the rate.
    bound : float
        Times the stated rate.
    """

    shifts: Floats
    bound: float

    def __call__(self, factor: float) -> Scores:
        """Scores (N,), (N,) of the likelihood ratio; the second input's are the first's with the sign changed."""
        rng = np.random.default_rng(SEED)
        share, angle = rng.random((2, COUNT, len(self.shifts)))
        radius = gammaincinv(2, share * gammainc(2, factor * self.bound)) / factor
        across = np.hypot(radius * np.cos(np.pi * angle) - self.shifts, radius * np.sin(np.pi * angle))
        scores = move_ratio(radius, across, self.bound)
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
    """(k,) distances between the person's places, times the rate; None where it is not known which is moved to which.

    Parameters
    ----------
    plan : MovedPoints
    pair : tuple of PointPattern
    """
    if plan.track:
        gone, came = (pattern.positions for pattern in pair)
    else:
        gone, came = changed(pair)
        if len(np.unique(came, axis=0)) > 1 and len(np.unique(gone, axis=0)) > 1:
            return None
    shifts = plan.rate * np.hypot(*(gone - came).T)
    return np.asarray(shifts[shifts > 0], dtype=np.float64)


def _nearest(places: Floats, positions: Floats) -> Floats:
    """(m,) distances of positions (m, 2) from the nearest of places (k, 2)."""
    apart = positions[:, None] - places
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]).min(axis=1))
