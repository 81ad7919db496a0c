"""Test statistics of released patterns and released numbers of any mechanism.

All are functions of what is released, so none can make a mechanism look worse than it is. `partial` gives them their
other arguments, since a closure could not be sent to the processes that run the trials.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed
from dpppsynth.contract.audits.target import AuditStatistic, Released
from dpppsynth.core.arguments import elements
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Radii around the moved point in which points are counted, in units of the privacy radius, or else of a share of the
# domain's extent.
RADII, NO_RADIUS = (0.5, 1.0, 2.0), 1 / 20
# Rectangles along each axis of the coarse grid.
COARSE = 5
# Most released numbers that are looked at one by one: all of them are kept, for all runs.
MOST_NUMBERS = 1000
# Added to densities to keep their logarithms finite.
TINY = 1e-300


class ReleasedLattice(Protocol):
    """Release of numbers on a lattice."""

    @property
    def lattice(self) -> Ints:
        """(V,) numbers, in lattice units."""


def laplace_ratio(first: Ints, second: Ints, scale: float | Floats, released: ReleasedLattice) -> float:
    """Log-likelihood ratio of two patterns, given their statistics (V,) with discrete Laplace noise added.

    `sum((|o - T'| - |o - T|) / scale)`; the noise is of one scale, or of scales (V,).
    """
    away = np.abs(released.lattice - second) - np.abs(released.lattice - first)
    # Of one scale the sum is of whole numbers, so that equal ratios are equal bit by bit.
    return float(away.sum()) / scale if isinstance(scale, float) else float((away / scale).sum())


def gaussian_ratio(first: Ints, second: Ints, scale: float, released: ReleasedLattice) -> float:
    """Log-likelihood ratio under discrete Gaussian noise: `(|o - T'|^2 - |o - T|^2) / (2 scale^2)`."""
    here, there = ((released.lattice - each) / scale for each in (first, second))
    return float(there @ there - here @ here) / 2


def weighted(weight: Floats, unit: float, released: ReleasedLattice) -> ArrayLike:
    """Weighted sums of the released numbers, `weight` (V,) or (k, V), in lattice units times `unit`."""
    return weight @ (released.lattice * unit)


def near(places: tuple[Floats, Floats], radius: float, released: object) -> int:
    """Synthetic points within a radius of the places (k, 2) of the first pattern, less those near the second's."""
    xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
    apart = (xy[:, None] - each for each in places)
    first, second = (int((np.hypot(away[..., 0], away[..., 1]) <= radius).sum()) for away in apart)
    return first - second


def total(released: object) -> int:
    """Number of synthetic points."""
    return sum(map(len, patterns_of(released)))


def coarse_cells(bounds: tuple[float, float, float, float], released: object) -> Ints:
    """(k,) numbers of synthetic points in the rectangles of a coarse grid over the bounding box."""
    xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
    return np.bincount(_rectangles(bounds, xy), minlength=COARSE**2)


def for_patterns(domain: Domain, pair: Pair, relation: Relation | None = None) -> tuple[AuditStatistic, ...]:
    """Statistics for any target that releases synthetic patterns: a `PointPattern`, several, or what has `patterns`.

    Counts near the moved point, at several radii; all points; and a direction learned in the counts of coarse cells.

    Parameters
    ----------
    domain : Window or LinearNetwork
    pair : tuple of PointPattern
        The two neighbouring inputs.
    relation : Relation, optional
        Its privacy radius sets the scale of the radii.
    """
    reach = np.inf if relation is None else relation.reach
    scale = reach if np.isfinite(reach) else NO_RADIUS * domain.extent
    first, second = (domain.coordinates(places) for places in changed(pair))
    around = (AuditStatistic(f"near {r * scale:.4g}", partial(near, (first, second), r * scale)) for r in RADII)
    cells = AuditStatistic("cells", partial(coarse_cells, domain.bounds), learned=True)
    return (*around, AuditStatistic("total", total), cells)


def named(statistics: Iterable[AuditStatistic | Callable[[Released], ArrayLike]]) -> tuple[AuditStatistic, ...]:
    """A caller's statistics, plain functions under their own names.

    Raises
    ------
    InputError
        When it is no sequence of statistics and functions.
    """
    given = elements(statistics)
    odd = [statistics] if given is None else [each for each in given if not isinstance(each, AuditStatistic | Callable)]
    if given is None or odd:
        msg = f"statistics: needs functions or AuditStatistics, got {type(odd[0]).__name__}; put one in brackets."
        raise InputError(msg)
    return tuple(
        each
        if isinstance(each, AuditStatistic)
        else AuditStatistic(getattr(each, "__name__", type(each).__name__), each)
        for each in given
    )


def patterns_of(released: object) -> tuple[PointPattern, ...]:
    """The synthetic patterns in a release.

    Raises
    ------
    InputError
        When it holds none.
    """
    held = (released,) if isinstance(released, PointPattern) else getattr(released, "patterns", released)
    if isinstance(held, tuple | list) and held and all(isinstance(each, PointPattern) for each in held):
        return tuple(held)
    msg = f"statistics: need synthetic patterns, and the mechanism released a {type(released).__name__}; pass your own."
    raise InputError(msg)


def coarse_sums(plan: LatticeStatistic, count: int, unit: float, *, others: int = 0) -> AuditStatistic:
    """Learned direction in sums of released numbers, one per vertex or element, over coarse rectangles.

    After them come numbers of `others`, which are not added.
    """
    weight = np.pad(_coarse(plan, count), ((0, 0), (0, others)))
    return AuditStatistic("cells", partial(weighted, weight, unit), learned=True)


def one_by_one(count: int) -> tuple[AuditStatistic, ...]:
    """Most distinguishing single released number, where they are few enough."""
    if not 1 < count <= MOST_NUMBERS:
        return ()
    return (AuditStatistic("one number", attrgetter("lattice"), learned=True, alone=True),)


def _coarse(plan: LatticeStatistic, count: int) -> Floats:
    """(k, count) sums of the released numbers over the rectangles of a coarse grid; empty ones left out."""
    mesh = plan.mesh
    at = mesh.vertices if count == len(mesh.vertices) else mesh.vertices[mesh.elements].mean(axis=1)
    occupied, cell = np.unique(_rectangles(plan.domain.bounds, at), return_inverse=True)
    return np.asarray(np.arange(len(occupied))[:, None] == cell.ravel(), dtype=np.float64)


def _rectangles(bounds: tuple[float, float, float, float], xy: Floats) -> Ints:
    """(n,) number of the coarse rectangle that holds each point, the nearest one for points outside."""
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    column, row = np.clip(np.floor((xy - low) / np.maximum(high - low, TINY) * COARSE), 0, COARSE - 1).astype(int).T
    return np.asarray(column * COARSE + row, dtype=np.int64)
