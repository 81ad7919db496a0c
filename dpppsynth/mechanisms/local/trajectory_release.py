"""`TraceRelease`: random walks learned from reports about trajectories, and the intensity of their visits."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.estimator import Beside, Estimator
from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.trajectories import GridTrajectories
from dpppsynth.mechanisms.local.trajectory_statistic import WalkModel, WalksStatistic
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.estimators import among
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True)
class TraceEstimator(Estimator[WalksStatistic]):
    """Estimator of random walks and their expected visits from counts of reports about trajectories."""

    kind: ClassVar[str] = "trajectories"

    def model(self, statistic: PrivateStatistic[WalksStatistic]) -> WalkModel:
        """The walks."""
        return statistic.plan.model(statistic.lattice)

    def intensity(self, statistic: PrivateStatistic[WalksStatistic]) -> PiecewiseConstant:
        """Visits per unit area, constant on every cell: those of as many walks as there were trajectories."""
        return self.model(statistic).intensity(statistic.plan.window)

    def table_rows(self) -> Rows:
        """Source of the intensity."""
        return [("intensity", "expected visits of random walks that were fitted to the reports")]

    @classmethod
    def beside(cls, stated: JsonRead, plan: WalksStatistic) -> Beside:
        """Nothing: the estimator has no settings."""
        among(stated, [{"kind": cls.kind}], "the estimator has no settings")
        return Beside()

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: WalksStatistic, offset: Offset | None) -> Self:
        """The estimator."""
        return cls()


@dataclass(frozen=True)
class LineEstimator(TraceEstimator):
    """Estimator of straight lines and their expected visits from counts of one report for each trajectory."""

    kind: ClassVar[str] = "displacements"

    def table_rows(self) -> Rows:
        """Source of the intensity."""
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
        self, m: int = 1, rng: RngLike = None, *, source: str = "median", fixed_n: bool = False
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
