"""Test statistics of an audit: the likelihood ratio where the law is known, and features that give a point away.

All are functions of what is released, so none can make a mechanism look worse than it is. Each is a callable object,
not a closure: the processes that run the trials must be able to receive it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.auditing.pairs import changed, unchanged
from dpppsynth.auditing.stated import of_number
from dpppsynth.auditing.target import Statistic
from dpppsynth.contract.additive_noise import LatticePlan, MeasurementPlan, StatisticPlan
from dpppsynth.core.arguments import elements
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network.diffusion import diffusion_density
from dpppsynth.mechanisms.bounded.audit import counts_statistics
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.audit import (
    CellRatio,
    LevelRatios,
    LevelTotals,
    LookedAt,
    PyramidRatio,
    branches,
    lengths,
    sure_branches,
)
from dpppsynth.mechanisms.heatmap.audit_residuals import Extremes, SharedNoise
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan, KernelPlan, PatternPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawPlan
from dpppsynth.mechanisms.planar_laplace.audit import move_statistics
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.gaussian_kernel import gaussian_sum, hull, mass
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern

Pair = tuple[PointPattern, PointPattern]

# Radii around the moved point in which points are counted, in units of the privacy radius, or else of a share of the
# domain's extent.
RADII, NO_RADIUS = (0.5, 1.0, 2.0), 1 / 20
# Rectangles along each axis of the coarse grid.
COARSE = 5
# Most released numbers that are looked at one by one: all of them are kept, for all runs.
MOST_NUMBERS = 1000
# Added to densities to keep their logarithms finite.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class LaplaceRatio:
    """Log-likelihood ratio of two patterns, given their statistics (V,) with discrete Laplace noise added."""

    first: Ints
    second: Ints
    scale: float

    def __call__(self, released: Any) -> float:
        """`sum(|o - T'| - |o - T|) / scale`."""
        away = np.abs(released.lattice - self.second) - np.abs(released.lattice - self.first)
        return float(away.sum()) / self.scale


@dataclass(frozen=True, eq=False)
class GaussianRatio:
    """Log-likelihood ratio of two patterns, given their statistics (V,) with discrete Gaussian noise added."""

    first: Ints
    second: Ints
    scale: float

    def __call__(self, released: Any) -> float:
        """`(|o - T'|^2 - |o - T|^2) / (2 scale^2)`."""
        values = [(released.lattice - each) / self.scale for each in (self.first, self.second)]
        return float(values[1] @ values[1] - values[0] @ values[0]) / 2


@dataclass(frozen=True, eq=False)
class KernelRatio:
    """Log-likelihood ratio, up to a constant, of the kernels' children: `sum log f / f'` over all of them.

    `f` and `f'` are the plan's densities at both patterns. Kernels of points that both have are summed once.
    """

    plan: KernelPlan
    pair: Pair

    @cached_property
    def _kernels(self) -> tuple[tuple[Floats, Floats], ...]:
        """Points (k, 2) and weights (k,) of kernels: of both patterns, of the first alone, of the second alone."""
        region, bandwidth = hull(self.plan.domain), self.plan.bandwidth
        return tuple((xy, 1 / mass(xy, region, bandwidth)) for xy in (unchanged(self.pair), *changed(self.pair)))

    def __call__(self, released: Any) -> float:
        """Sum over the children of all patterns."""
        children = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        both, first, second = (gaussian_sum(xy, weight, self.plan.bandwidth, children) for xy, weight in self._kernels)
        return float(np.log(np.maximum(both + first, TINY) / np.maximum(both + second, TINY)).sum())


@dataclass(frozen=True, eq=False)
class DiffusionRatio:
    """Log-likelihood ratio of the children on a network, from log density ratios (T,) that are constant on segments."""

    mesh: Mesh
    log_ratio: Floats

    def __call__(self, released: Any) -> float:
        """Sum over the children of all patterns."""
        positions = np.concatenate([pattern.positions for pattern in patterns_of(released)])
        return float(self.log_ratio[self.mesh.locate(positions)].sum())


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weighted sums of the released numbers, `weight` (V,) or (k, V), in lattice units times `unit`."""

    weight: Floats
    unit: float = 1.0

    def __call__(self, released: Any) -> Any:
        """A number, or (k,) numbers."""
        return self.weight @ (released.lattice * self.unit)


@dataclass(frozen=True)
class Each:
    """All released numbers, in lattice units: a leak may be anywhere."""

    def __call__(self, released: Any) -> Ints:
        """(V,) numbers."""
        numbers: Ints = released.lattice
        return numbers


@dataclass(frozen=True, eq=False)
class LogTotal:
    """Logarithm of the mean number of points under a released log-intensity, by the integrals (V,) of the basis."""

    measure: Floats
    unit: float

    def __call__(self, released: Any) -> float:
        """`log sum_j a_j e^(Y_j)`."""
        field = released.lattice * self.unit
        top = field.max()
        return float(top + np.log(self.measure @ np.exp(field - top)))


@dataclass(frozen=True, eq=False)
class Near:
    """Synthetic points within a radius of the places (k, 2) of the first pattern, less those near the second's."""

    first: Floats
    second: Floats
    radius: float

    def __call__(self, released: Any) -> int:
        """Difference of both numbers, over all patterns."""
        xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        return self._around(self.first, xy) - self._around(self.second, xy)

    def _around(self, places: Floats, xy: Floats) -> int:
        apart = xy[:, None] - places
        return int((np.hypot(apart[..., 0], apart[..., 1]) <= self.radius).sum())


@dataclass(frozen=True)
class Total:
    """Number of synthetic points."""

    def __call__(self, released: Any) -> int:
        """Number over all patterns."""
        return sum(map(len, patterns_of(released)))


@dataclass(frozen=True)
class Cells:
    """Numbers of synthetic points in the rectangles of a coarse grid over the bounding box."""

    bounds: tuple[float, float, float, float]

    def __call__(self, released: Any) -> Ints:
        """(k,) numbers over all patterns."""
        xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        return np.bincount(_rectangles(self.bounds, xy), minlength=COARSE**2)


def built_in(plan: Any, pair: Pair) -> tuple[Statistic, ...]:
    """Statistics for what a plan of this package measures, at a pair of patterns.

    Parameters
    ----------
    plan : StatisticPlan, FieldStatisticPlan, BoundedCountsPlan, MovedPlan, DrawPlan, PatternPlan or HeatmapPlan
    pair : tuple of PointPattern

    Raises
    ------
    InputError
        When the plan is of another kind.

    Examples
    --------
    >>> from dpppsynth import AlphaNeighbours, LaplaceSynthesizer, Window
    >>> from dpppsynth.auditing.pairs import hard_pair
    >>> plan = LaplaceSynthesizer(1.0, alpha=25.0).plan(Window.rectangle(0, 0, 500, 500), n=40).statistic
    >>> pair = hard_pair(plan, plan.relation)
    >>> [statistic.name for statistic in built_in(plan, pair)]
    ['likelihood ratio', 'near', 'total', 'cells', 'one number']
    """
    match plan:
        case BoundedCountsPlan():
            return (*counts_statistics(plan, pair), *_of_measurement(plan, pair))
        case MovedPlan():
            return move_statistics(plan, pair)
        case StatisticPlan() | FieldStatisticPlan():
            return (Statistic("likelihood ratio", _noise_ratio(plan, pair)), *_of_measurement(plan, pair))
        case DrawPlan():
            return _of_draw(plan, pair)
        case PatternPlan():
            ratio = Statistic("likelihood ratio", _children_ratio(plan, pair))
            return (ratio, *for_patterns(plan.domain, pair, plan.relation))
        case HeatmapPlan():
            return _of_pyramid(plan, pair)
        case _:
            msg = f"statistics: none are built in for {type(plan).__name__}; pass your own (statistics=)."
            raise InputError(msg)


def for_patterns(domain: Domain, pair: Pair, relation: Relation | None = None) -> tuple[Statistic, ...]:
    """Statistics for anything that releases synthetic patterns: a `PointPattern`, several, or what holds `patterns`.

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
    near = (Statistic(f"near {r * scale:.4g}", Near(first, second, r * scale)) for r in RADII)
    return (*near, Statistic("total", Total()), Statistic("cells", Cells(domain.bounds), learned=True))


def named(statistics: Iterable[Statistic | Callable[[Any], Any]]) -> tuple[Statistic, ...]:
    """A caller's statistics, plain functions under their own names.

    Raises
    ------
    InputError
        When it is no sequence of statistics and functions.
    """
    given = elements(statistics)
    odd = [statistics] if given is None else [each for each in given if not isinstance(each, Statistic | Callable)]
    if given is None or odd:
        msg = f"statistics: needs a list of functions or Statistic, got {type(odd[0]).__name__}; put one in brackets."
        raise InputError(msg)
    return tuple(
        each if isinstance(each, Statistic) else Statistic(getattr(each, "__name__", type(each).__name__), each)
        for each in given
    )


def patterns_of(released: Any) -> tuple[PointPattern, ...]:
    """The synthetic patterns in what was released.

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


def _noise_ratio(plan: MeasurementPlan, pair: Pair) -> LaplaceRatio | GaussianRatio:
    kind = LaplaceRatio if isinstance(plan, StatisticPlan) else GaussianRatio
    first, second = (plan.exact(pattern.positions) for pattern in pair)
    return kind(first, second, plan.scale)


def _of_measurement(plan: MeasurementPlan, pair: Pair) -> tuple[Statistic, ...]:
    first, second = (plan.exact(pattern.positions) for pattern in pair)
    unit = 2.0**-plan.bits
    return (
        # Difference of the exact statistics: the matched filter for the move.
        Statistic("near", Weighted((first - second) * unit, unit)),
        Statistic("total", Weighted(np.ones(len(first)), unit)),
        Statistic("cells", Weighted(_coarse(plan, len(first)), unit), learned=True),
        *_one_by_one(len(first)),
    )


def _of_draw(plan: DrawPlan, pair: Pair) -> tuple[Statistic, ...]:
    """Likelihood ratio statistic of a posterior draw: a move multiplies the posterior by `e^-(Y(x) - Y(x'))`."""
    unit = 2.0**-plan.bits
    gone, came = (plan.mesh.basis(places).sum(axis=0) if len(places) else 0.0 for places in changed(pair))
    return (
        Statistic("likelihood ratio", Weighted(np.asarray(gone - came, dtype=np.float64), unit)),
        Statistic("total", LogTotal(plan.mesh.measure, unit)),
        Statistic("cells", Weighted(_coarse(plan, len(plan.mesh.vertices)), unit), learned=True),
        *_one_by_one(len(plan.mesh.vertices)),
    )


def _of_pyramid(plan: HeatmapPlan, pair: Pair) -> tuple[Statistic, ...]:
    changing = plan, branches(plan, pair)
    return (
        Statistic("likelihood ratio", PyramidRatio(*changing)),
        Statistic("levels", LevelRatios(*changing), learned=True),
        Statistic("looked at", LookedAt(*changing), learned=True, alone=True),
        *_of_levels(plan, pair),
        Statistic("shared noise", SharedNoise.at(plan, pair), learned=True, alone=True),
        Statistic("extremes", Extremes.at(plan, pair), learned=True, alone=True),
        Statistic("total", LevelTotals(plan), learned=True, alone=True),
        *_one_by_one(sum(lengths(plan))),
    )


def _of_levels(plan: HeatmapPlan, pair: Pair) -> tuple[Statistic, ...]:
    """One number of each level, which may tell no more than the level's own noise lets it."""
    found = []
    for number, branch in enumerate(sure_branches(plan, pair)):
        if len(branch.cells):
            name, ratio = f"level {plan.budgets.first + number}", CellRatio(plan, number, branch)
            found.append(Statistic(name, ratio, claimed=of_number(plan, branch.scale)))
    return tuple(found)


def _one_by_one(count: int) -> tuple[Statistic, ...]:
    if not 1 < count <= MOST_NUMBERS:
        return ()
    return (Statistic("one number", Each(), learned=True, alone=True),)


def _children_ratio(plan: Any, pair: Pair) -> KernelRatio | DiffusionRatio:
    if isinstance(plan, DiffusionPlan):
        middle = plan.mesh.pieces.corners.mean(axis=1)
        first, second = (diffusion_density(plan.mesh, plan.matrix, p.positions, middle) for p in pair)
        return DiffusionRatio(plan.mesh, np.log(np.maximum(first, TINY) / np.maximum(second, TINY)))
    return KernelRatio(plan, pair)


def _coarse(plan: LatticePlan, count: int) -> Floats:
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
