"""`HeatmapRelease`: a private distribution over a grid, and the heat maps and patterns made from it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.estimator import Estimator
from dpppsynth.core.arguments import one_of, positive
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.units import short_unit
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.heatmap.bound import FITS
from dpppsynth.mechanisms.heatmap.fitting import fitted, require_fit
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.grid_smoothing import gaussian_heatmap
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.map_distances import emd
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern

# Standard deviation of a heat map's filter unless given, as a share of the window's longer side.
BLUR = 0.02


def usual_bandwidth(domain: Domain) -> float:
    """Standard deviation of the filter that a heat map has unless another is asked for, in the domain's unit."""
    x0, y0, x1, y1 = domain.bounds
    return BLUR * max(x1 - x0, y1 - y0)


@dataclass(frozen=True)
class Reconstruction(Estimator[HeatmapStatistic]):
    """Estimator of grid masses from noised counts of a pyramid's cells.

    Attributes
    ----------
    fit : {"field", "least-squares", "l1"}
        As in `fitted`.
    """

    fit: str = FITS[0]
    kind: ClassVar[str] = "reconstruction"

    def __post_init__(self) -> None:
        one_of("fit", self.fit, FITS)

    def require(self, plan: HeatmapStatistic) -> None:
        """Refuse a fit that the measured levels do not allow, or whose field is too large."""
        require_fit(self.fit, plan.budgets)

    def masses(self, statistic: PrivateStatistic[HeatmapStatistic]) -> Floats:
        """(nx, ny) masses of the grid cells, whose sum estimates the number of persons."""
        plan = statistic.definition
        nx, ny = plan.shape
        tree = plan.tree(statistic.lattice)
        return fitted(tree, plan.budgets, self.fit, inside=plan.inside, lengths=plan.lengths)[:nx, :ny]

    def intensity(self, statistic: PrivateStatistic[HeatmapStatistic]) -> PiecewiseConstant:
        """Persons per unit area, constant on every cell."""
        plan = statistic.definition
        return PiecewiseConstant(plan.mesh, self.masses(statistic)[tuple(plan.places.T)] / plan.mesh.element_measure)

    def table_rows(self) -> Rows:
        return [("intensity", f"of persons, {self.in_words}")]

    @property
    def in_words(self) -> str:
        """Text on the fit of masses to noised counts."""
        if self.fit == "l1":
            return "fitted to the noised counts of the kept cells in l1, as published"
        if self.fit == "field":
            return "by a log-Gaussian field behind all noised counts, its range by evidence"
        return "fitted to all noised counts by least squares, drawn to an even spread where noise prevails"

    def to_dict(self) -> JsonObject:
        return {"kind": self.kind, "fit": self.fit}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: HeatmapStatistic, offset: Offset | None) -> Self:
        return cls(stated["fit"])


@dataclass(frozen=True, eq=False, repr=False)
class HeatMaps:
    """Heat maps (nx, ny) of mass 1 under the same filter; the exact one is as sensitive as the points.

    Attributes
    ----------
    exact : ndarray
        Of the persons' exact average distribution.
    released : ndarray
        Of the release.
    uniform : ndarray
        Of a uniform distribution over the window, which needs no data.
    """

    exact: Floats
    released: Floats
    uniform: Floats
    # Squares along each side of the window between which earth mover's distances are taken.
    side: ClassVar[int] = 32
    # Unit of such distances, since windows need not be squares.
    unit: ClassVar[str] = "of the window's sides"

    def moved(self, estimate: Floats) -> float:
        """Earth mover's distance of an estimate from the exact map, as a share of the window's sides."""
        return emd(self.exact, estimate, side=self.side)


@dataclass(frozen=True, eq=False, repr=False)
class HeatmapRelease(CoxRelease[HeatmapStatistic]):
    """Result of a heat map synthesizer: everything in it is public.

    Its intensity is of persons: every person counts once, however many points they have, and a synthetic pattern has
    one point for each.
    """

    estimator: Reconstruction

    @cached_property
    def masses(self) -> Floats:
        """(nx, ny) estimated number of persons in each cell, i along x and j along y."""
        return self.estimator.masses(self.statistic)

    @property
    def user(self) -> str | None:
        """Mark that identifies persons; None where every point is a person."""
        return self.statistic.definition.user

    @property
    def noise_persons(self) -> float:
        """Upper estimate of the persons that noise adds on average: its positive half in the first level's cells.

        Known before anything is measured. Where persons are, noise takes away as much as it adds.
        """
        statistic = self.statistic
        alive = statistic.definition.tree(statistic.lattice).levels[0].alive
        return float(alive.sum() * statistic.definition.noise_scale / 2)

    def refit(self, fit: str) -> "HeatmapRelease":
        """Fit the same noised counts in another way, such as "least-squares", at no privacy cost."""
        estimator = Reconstruction(fit)
        estimator.require(self.statistic.definition)
        return replace(self, estimator=estimator)

    @property
    def empty(self) -> bool:
        """Whether the noise left no mass: the distribution is then uniform, and patterns are empty."""
        return not self.masses.any()

    @cached_property
    def distribution(self) -> Floats:
        """(nx, ny) estimate of the persons' average distribution, with mass 1."""
        masses = self.inside if self.empty else self.masses
        return masses / masses.sum()

    def heatmap(self, bandwidth: float | None = None) -> Floats:
        """(nx, ny) heat map with mass 1: the distribution under a Gaussian filter that keeps to the window.

        Parameters
        ----------
        bandwidth : float, optional
            Standard deviation of the filter, in the window's unit. None takes 2 % of the window's longer side.
        """
        return self.filtered(self.distribution, bandwidth)

    def blur(self, bandwidth: float | None = None) -> str:
        """Width of the filter of `heatmap`, with its unit."""
        width = usual_bandwidth(self.domain) if bandwidth is None else bandwidth
        return f"{width:.3g} {short_unit(self.domain.unit)}"

    def made(self) -> Rows:
        """Table rows: filter, fit, persons, measured levels and noise."""
        _, *measured = self.statistic.definition.table_rows()
        return [
            ("smoothed by", f"{self.blur()}, the standard deviation of a Gaussian filter"),
            ("intensity", self.estimator.in_words),
            *measured,
        ]

    def exact_maps(self, original: PointPattern) -> HeatMaps:
        """Heat maps of this release and of the pattern that it was made from, marked as its statistic asks.

        As sensitive as the points.
        """
        plan = self.statistic.definition
        nx, ny = plan.shape
        masses = plan.users(original).total()[:nx, :ny]
        exact, uniform = (self.filtered(each / each.sum()) for each in (masses, self.inside))
        return HeatMaps(exact, self.heatmap(), uniform)

    def filtered(self, masses: Floats, bandwidth: float | None = None) -> Floats:
        """(nx, ny) masses inside the window under the filter that `heatmap` applies."""
        x0, y0, x1, y1 = self.domain.bounds
        sd = usual_bandwidth(self.domain) if bandwidth is None else positive("bandwidth", bandwidth)
        return gaussian_heatmap(masses, (sd / (x1 - x0), sd / (y1 - y0)), inside=self.inside > 0)

    @property
    def inside(self) -> Floats:
        """(nx, ny) share of every cell that lies inside the window."""
        nx, ny = self.statistic.definition.shape
        return self.statistic.definition.inside[:nx, :ny]
