"""`LocalRelease` and `GridRelease`: intensities estimated from counts of reports."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import shapely

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.estimator import Estimator
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.errors import InformationWarning, InputError, QualityError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import FIELD, POSTS
from dpppsynth.mechanisms.local.grid_statistic import Fitted, GridStatistic
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, checked_queries
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.walks import WalkModel
from dpppsynth.mechanisms.local.trajectory_statistic import (
    WalksStatistic,
)
from dpppsynth.models.regular_meshes import CellFinder, rectangle_mesh
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant, held
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.simplex import norm_sub

# Share of a cell's area that may be missing by rounding where all of it lies in the window.
ROUNDING = 1e-9


def rectangle_integrals(
    grid: Rectangles, window: Window, numbers: Ints, density: Floats, measure: Floats, rectangles: Any
) -> Floats:
    """(R,) integrals over rectangles (R, 4) of x0, y0, x1, y1."""
    cut = measure < grid.areas[numbers] * (1 - ROUNDING)
    masses = np.zeros(len(grid))
    masses[numbers] = np.where(cut, 0.0, density * measure)
    answers = grid.query(masses, rectangles)
    if cut.any():
        inside = shapely.intersection(shapely.box(*grid.cells[numbers[cut]].T), window.geometry)
        asked = shapely.box(*checked_queries(rectangles).T)
        query, part = shapely.STRtree(inside).query(asked)
        areas = shapely.area(shapely.intersection(asked[query], inside[part]))
        np.add.at(answers, query, density[cut][part] * areas)
    return answers


@dataclass(frozen=True)
class ReportEstimator(Estimator[AreaStatistic]):
    """Estimator of the cells' shares from counts of reports, by the method of their client mechanism.

    Attributes
    ----------
    settings : dict
        As `Randomizer.settings` gives them.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "reports"

    def shares(self, statistic: PrivateStatistic[AreaStatistic]) -> Floats:
        """(inputs,) estimated shares of the values; they sum to one."""
        return statistic.definition.shares(statistic, self.settings)

    def intensity(self, statistic: PrivateStatistic[AreaStatistic]) -> PiecewiseConstant:
        plan = statistic.definition
        masses = plan.n * self.shares(statistic)[plan.element_values]
        return PiecewiseConstant(plan.mesh, masses / plan.mesh.element_measure)

    def table_rows(self) -> Rows:
        if self.settings.get("estimator") == FIELD:
            return [("intensity", "shares of the cells, by a field behind them, estimated from counts of reports")]
        chosen = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return [("intensity", "shares of the cells, estimated from counts of reports" + (chosen and f" ({chosen})"))]

    def to_dict(self) -> JsonObject:
        return {"kind": self.kind, "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: AreaStatistic, offset: Offset | None) -> Self:
        return cls(plan.randomizer.settings(**stated["settings"]))


@dataclass(frozen=True, eq=False, repr=False)
class LocalRelease(CoxRelease[AreaStatistic]):
    """Result of a local mechanism on a regular grid: everything in it is public."""

    estimator: ReportEstimator

    @cached_property
    def distribution(self) -> Floats:
        """(nx, ny) estimated share of the persons in each cell, i along x and j along y, with sum one."""
        plan, intensity = self.statistic.definition, cast("PiecewiseConstant", self.intensity)
        shares = np.zeros(plan.randomizer.inputs)
        shares[plan.element_values] = intensity.values * plan.mesh.element_measure / plan.n
        return shares.reshape(plan.shape)

    def refit(self, estimator: str, **settings: Any) -> "LocalRelease":
        """Estimate from the same counts in another way, at no privacy cost.

        Parameters
        ----------
        estimator : {"field", "em", "least-squares"}
        **settings
            Of the published estimator, such as `tolerance=0.01`.
        """
        law = self.statistic.definition.randomizer
        return replace(self, estimator=ReportEstimator(law.settings(estimator=estimator, **settings)))


@dataclass(frozen=True)
class GridEstimator(Estimator[GridStatistic]):
    """Estimator of persons in the cells of a grid from counts of a frequency oracle's reports.

    Attributes
    ----------
    post : {"field", "norm-sub", "clip"}
        Post-processing of estimates, some of them negative, into an intensity: by a log-Gaussian field behind the
        reports of all levels, on pieces of its own; the nearest ones that sum to the number of persons; or without
        the negative ones. Where no field is found, with a warning, "norm-sub".
    consistent : bool
        Let the first level of two take part in the estimate.
    """

    post: str = POSTS[0]
    consistent: bool = False
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        one_of("post", self.post, POSTS)
        flag("consistent", self.consistent)

    def fitted(self, statistic: PrivateStatistic[GridStatistic]) -> Fitted:
        """Cells and unbiased estimates of the persons in them."""
        return statistic.definition.fitted(statistic.lattice, consistent=self.consistent)

    def intensity(self, statistic: PrivateStatistic[GridStatistic]) -> PiecewiseConstant:
        plan = statistic.definition
        if self.post == FIELD:
            # Devices that send a report need no field.
            from dpppsynth.mechanisms.local.grid_field import field_intensity

            try:
                return field_intensity(plan.window, plan.levels(statistic.lattice), plan.n)
            except QualityError:
                msg = "post: a field was not found behind these reports, so the intensity is that of 'norm-sub'."
                warnings.warn(msg, InformationWarning, stacklevel=2)
        grid, masses = self.fitted(statistic)
        mesh = rectangle_mesh(plan.window, grid)
        whole, values = held(mesh.element_measure), np.zeros(len(mesh.elements))
        inside = masses[mesh.find.cells[whole]]  # type: ignore[union-attr]
        inside = np.maximum(inside, 0) if self.post == "clip" else norm_sub(inside, float(plan.n))
        values[whole] = inside / mesh.element_measure[whole]
        return PiecewiseConstant(mesh, values)

    def table_rows(self) -> Rows:
        if self.post == FIELD:
            return [("intensity", "log-Gaussian field behind the reports of all levels")]
        return [("intensity", f"unbiased estimates of the cells, made non-negative ({self.post})")]

    def to_dict(self) -> JsonObject:
        return {"kind": self.kind, "post": self.post, "consistent": self.consistent}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: GridStatistic, offset: Offset | None) -> Self:
        return cls(stated["post"], stated["consistent"])


class GridRelease(CoxRelease[GridStatistic]):
    """Result of a local mechanism on grids for range queries: everything in it is public."""

    estimator: GridEstimator

    @property
    def mesh(self) -> Mesh:
        return self.intensity.mesh

    @cached_property
    def fitted(self) -> Fitted:
        """Cells (`grid`) and unbiased estimates (`masses`) of the persons in them, which may be negative."""
        return self.estimator.fitted(self.statistic)

    def query(self, rectangles: Any, *, unbiased: bool = True) -> Floats:
        """(R,) estimated numbers of persons in rectangles.

        Parameters
        ----------
        rectangles : (R, 4) array
            Of x0, y0, x1, y1.
        unbiased : bool
            Answer by the cells' estimates, which are unbiased for unions of cells; or, where False, by the intensity,
            which is nearer to the truth on average where a field is behind it.
        """
        if flag("unbiased", unbiased):
            return self.fitted.grid.query(self.fitted.masses, rectangles)
        intensity = cast(PiecewiseConstant, self.intensity)
        find = cast(CellFinder, intensity.mesh.find)  # type: ignore[attr-defined]
        grid, measure = cast(Rectangles, find.grid), intensity.mesh.element_measure
        window = self.statistic.definition.window
        return rectangle_integrals(grid, window, find.cells, intensity.values, measure, rectangles)


@dataclass(frozen=True)
class TraceEstimator(Estimator[WalksStatistic]):
    """Estimator of random walks and their expected visits from counts of reports about trajectories."""

    kind: ClassVar[str] = "trajectories"

    def model(self, statistic: PrivateStatistic[WalksStatistic]) -> WalkModel:
        """The walks."""
        return statistic.definition.model(statistic.lattice)

    def intensity(self, statistic: PrivateStatistic[WalksStatistic]) -> PiecewiseConstant:
        return self.model(statistic).intensity(statistic.definition.window)

    def table_rows(self) -> Rows:
        return [("intensity", "expected visits of random walks that were fitted to the reports")]

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: WalksStatistic, offset: Offset | None) -> Self:
        return cls()


@dataclass(frozen=True)
class LineEstimator(TraceEstimator):
    """Estimator of straight lines and their expected visits from counts of one report for each trajectory."""

    kind: ClassVar[str] = "displacements"

    def table_rows(self) -> Rows:
        return [("intensity", "expected visits of straight lines that were fitted to the reports")]


class TraceRelease(CoxRelease[WalksStatistic]):
    """Result of reports about trajectories: everything in it is public.

    `trajectories` draws walks, whose cells follow one another; `sample` draws points alone, from the intensity of their
    visits. A stay in one cell is no move, so it counts as one visit, and visits to cells outside the window are left
    out of the intensity.
    """

    estimator: TraceEstimator

    @cached_property
    def model(self) -> WalkModel:
        """The random walks, or straight lines."""
        return self.estimator.model(self.statistic)

    def trajectories(self, n: int | None = None, rng: RngLike = None) -> GridTrajectories:
        """Synthetic trajectories; free, because the release is already private.

        Parameters
        ----------
        n : int, optional
            As many as there were trajectories unless given.
        rng : None, int or Generator
            May be seeded freely.
        """
        return self.model.synthesize(n, rng)

    def sample(
        self, m: int = 1, rng: RngLike = None, *, source: str = "released", fixed_n: bool = False
    ) -> list[PointPattern]:
        """Draw synthetic patterns of visited points; parameters as in `CoxRelease.sample`.

        Raises
        ------
        InputError
            For `fixed_n`: the number of trajectories is public, and that of their points is not known.
        """
        if flag("fixed_n", fixed_n):
            msg = "fixed_n: the number of points of all trajectories is secret; leave it out."
            raise InputError(msg)
        return super().sample(m, rng, source=source)
