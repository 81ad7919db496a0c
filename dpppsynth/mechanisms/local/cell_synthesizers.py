"""Local mechanisms on a square grid of cells: area mechanisms, square wave, subset exponential, range hierarchy."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

from dpppsynth.contract.settings import EXPERT, ParsedOptions, setting
from dpppsynth.core.arguments import instance
from dpppsynth.mechanisms.local.grids.rectangles import uniform_grid
from dpppsynth.mechanisms.local.randomizers.area import DiskArea, HybridArea, grid_radius
from dpppsynth.mechanisms.local.randomizers.hierarchy import NEAREST, SHRUNK, RangeHierarchyLaw, hierarchy_side
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave, square_wave_half_width
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential, subset_size
from dpppsynth.mechanisms.local.release import LocalRelease, rectangle_integrals
from dpppsynth.mechanisms.local.reports import Counts
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.models.recipes import window
from dpppsynth.models.regular_meshes import grid_cells
from dpppsynth.privacy.relations import GeoIndistinguishability, Relation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats

TOLERANCE: dict[str, Any] = {
    "help": "Growth of the log-likelihood at which expectation maximisation stops",
    "panel": EXPERT,
}
ITERATIONS: dict[str, Any] = {
    "help": "Most iterations of expectation maximisation",
    "option": "--max-iterations",
    "panel": EXPERT,
}


@dataclass(frozen=True)
class AreaMechanism(CellMechanism):
    """Base of area mechanisms: a radius, and the settings of expectation maximisation."""

    _: KW_ONLY
    radius: int | None = setting(
        None, help="Radius of the likely cells, in cells", otherwise="the one that the reports tell most with"
    )
    tolerance: float | None = setting(None, **TOLERANCE, otherwise="0.001 e^epsilon")
    max_iter: int = setting(10_000, **ITERATIONS)
    smoothing: float = setting(
        0.0, help="Weight of each neighbouring cell in a smoothing step after every iteration", panel=EXPERT
    )

    @property
    def _radius(self) -> int:
        return grid_radius(self.epsilon, self.cells) if self.radius is None else self.radius

    def _published(self) -> dict[str, Any]:
        given: dict[str, Any] = {} if self.tolerance is None else {"tolerance": self.tolerance}
        return given | {"max_iter": self.max_iter, "smoothing": self.smoothing}


@dataclass(frozen=True)
class DiskAreaMechanism(AreaMechanism):
    """Disk area mechanism: cells in a disk around the person's are equally likely, `e^epsilon` times as much as others.

    Parameters
    ----------
    epsilon, cells, estimator
        As of `CellMechanism`; the published estimator is "em", expectation maximisation.
    radius : int, optional
        Of the likely cells, in cells; reports lie up to so many beyond the grid. None takes the one that the reports
        tell most with, `grid_radius`.
    tolerance : float, optional
        Expectation maximisation stops when the log-likelihood grows by less. None takes `0.001 e^epsilon`.
    max_iter : int
        Most iterations.
    smoothing : float
        Weight of each neighbouring cell in a smoothing step after every iteration; 0 for none.
    shrink : bool
        Count cells that the circle cuts for a share of theirs, as published; otherwise for whole if their centre is
        inside, else not.

    References
    ----------
    Numerical estimation of spatial distributions under differential privacy: disk area mechanism, Algorithms 1 and 2.

    Examples
    --------
    >>> mechanism = DiskAreaMechanism(epsilon=3.5)
    >>> mechanism.randomizer.radius, mechanism.matrix().shape
    (3, (437, 225))
    >>> report = mechanism.client((7, 2))
    """

    _: KW_ONLY
    shrink: bool = setting(
        False,
        help="Count cells that the circle cuts for a share of theirs",
        option="--shrink/--no-shrink",
        panel=EXPERT,
    )

    def _randomizer(self) -> DiskArea:
        return DiskArea(epsilon=self.epsilon, cells=self.cells, radius=self._radius, shrink=self.shrink)


@dataclass(frozen=True)
class HybridUniformExponential(AreaMechanism):
    """Hybrid uniform-exponential mechanism: the probability falls off in rings around the person's cell.

    Parameters are those of `DiskAreaMechanism`, but for `shrink`.

    References
    ----------
    As `DiskAreaMechanism`, with the rings of the paper's appendix.
    """

    def _randomizer(self) -> HybridArea:
        return HybridArea(epsilon=self.epsilon, cells=self.cells, radius=self._radius)


@dataclass(frozen=True)
class MultidimensionalSquareWave(CellMechanism):
    """Square wave on one coordinate, chosen at random.

    Reports tell how either coordinate is distributed, and nothing of how they depend on each other: the estimate is the
    product of both distributions. Where they are not independent, more reports do not help.

    Parameters
    ----------
    epsilon, cells, estimator
        As of `CellMechanism`, with a field along either axis; the published estimator is "em", expectation
        maximisation with smoothing.
    half_width : int, optional
        Of the likely cells on an axis. None takes the one that the reports tell most with.
    tolerance : float
        Expectation maximisation with smoothing stops when the log-likelihood changes by less.
    max_iter : int
        Most iterations.

    References
    ----------
    Li et al. (2020), Estimating numerical distributions under local differential privacy, SIGMOD.
    """

    _: KW_ONLY
    half_width: int | None = setting(
        None,
        help="Half width of the likely cells on an axis, in cells",
        otherwise="the one that the reports tell most with",
        panel=EXPERT,
    )
    tolerance: float = setting(1e-3, **TOLERANCE)
    max_iter: int = setting(10_000, **ITERATIONS)

    def _published(self) -> dict[str, Any]:
        return {"tolerance": self.tolerance, "max_iter": self.max_iter}

    def _randomizer(self) -> SquareWave:
        width = square_wave_half_width(self.epsilon, self.cells) if self.half_width is None else self.half_width
        return SquareWave(epsilon=self.epsilon, cells=self.cells, half_width=width)


@dataclass(frozen=True)
class SEMGeoI(CellMechanism):
    """Subset exponential mechanism: geo-indistinguishability, which hides where a person is from those nearby.

    It is not local differential privacy: locations d cells apart are told apart by up to `d * epsilon`.

    Parameters
    ----------
    epsilon : float
        For locations one cell apart.
    cells : int
        Along each side of the grid.
    estimator : {"auto", "field", "least-squares"}
        As of `CellMechanism`.
    subset : int, optional
        Cells in a report. None takes the rule `subset_size`.

    References
    ----------
    Wang, Nie, Wang, Xu, Yang & Huang (2017), Local private ordinal data distribution estimation, INFOCOM.
    """

    _: KW_ONLY
    subset: int | None = setting(
        None, help="Cells in a report", option="--subset-size", otherwise="a rule", panel=EXPERT
    )
    method: ClassVar[str] = "sem-geo-i"
    refused: ClassVar[Mapping[str, str]] = {
        **CellMechanism.refused,
        "relation": "promises geo-indistinguishability of every report",
    }

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        cells = cls.cells if options["cells"] is None else options["cells"]
        return GeoIndistinguishability(cells, user=cls.user_column(options))

    def _randomizer(self) -> SubsetExponential:
        size = subset_size(self.epsilon, self.cells) if self.subset is None else self.subset
        return SubsetExponential(epsilon=self.epsilon, cells=self.cells, subset=size)


class HierarchyRelease(LocalRelease):
    """Result of a hierarchy for range queries: everything in it is public."""

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1: integrals of the intensity."""
        plan, intensity = self.statistic.definition, cast("PiecewiseConstant", self.intensity)
        own, (columns, rows) = window(plan.domain), plan.shape
        i, j = grid_cells(plan.mesh).T
        grid, measure = uniform_grid(own.bounds, columns, rows), plan.mesh.element_measure
        return rectangle_integrals(grid, own, j * columns + i, intensity.values, measure, rectangles)


@dataclass(frozen=True)
class RangeHierarchy(CellMechanism):
    """Range queries in one round: every person reports on one level of a quadtree, which their device draws.

    Levels have 4 x 4, 8 x 8, ..., `cells` x `cells` cells, and on each the best frequency oracle has the whole budget.
    Differences between neighbouring cells are averaged over the levels by their precision, and shrunk.

    Parameters
    ----------
    epsilon : float
    cells : int
        Along a side of the finest level: a power of two from 2 to 256. `RangeHierarchy.sized(epsilon, n=...)` has a
        rule.
    estimator : {"shrunk", "norm-sub"}
        Differences shrunk by empirical Bayes, or the shares nearest to unbiased ones.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = RangeHierarchy(epsilon=2.0, cells=8)
    >>> counts = mechanism.aggregate(mechanism.clients([[0, 0], [7, 7], [3, 4]], rng=1))
    >>> window = Window.rectangle(0, 0, 100, 100)
    >>> mechanism.query(counts, window, [[0, 0, 100, 100]]).round(6).tolist()
    [3.0]
    """

    _: KW_ONLY
    cells: int = setting(64, help="Number of cells along each side of the finest level, a power of two")
    estimator: str = setting(SHRUNK, help="Estimator of the shares", choices=(SHRUNK, NEAREST))
    uses_number: ClassVar[bool] = True

    @classmethod
    def sized(cls, epsilon: float, *, n: int, **settings: Any) -> "RangeHierarchy":
        """The hierarchy whose finest level suits the budget and a public number of persons."""
        return cls(epsilon, cells=hierarchy_side(epsilon, n), **settings)

    def _randomizer(self) -> RangeHierarchyLaw:
        return RangeHierarchyLaw(epsilon=self.epsilon, cells=self.cells)

    def settings(self) -> dict[str, Any]:
        return self.randomizer.settings(estimator=self.estimator)

    def query(self, counts: Counts, window: Window, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1, over the window's bounding box."""
        bounds = instance("window", window, Window, "Window.rectangle(0, 0, 1000, 1000) is one").bounds
        shares = self.estimate(counts)
        return uniform_grid(bounds, self.cells, self.cells).query(self.own(counts).n * shares.T.ravel(), rectangles)
