"""`TraceRelease`: random walks learned from reports about trajectories, and the intensity of their visits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.estimator import Beside, Estimator
from dpppsynth.contract.measurement import Measurement, Rows
from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.local.trajectories import GridTrajectories, TraceModel
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.estimators import among
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True)
class TraceEstimator(Estimator):
    """Estimator of random walks and their expected visits from counts of reports about trajectories."""

    kind: ClassVar[str] = "trajectories"

    def model(self, statistic: PrivateStatistic) -> TraceModel:
        """The walks."""
        model: TraceModel = statistic.plan.model(statistic.lattice)
        return model

    def intensity(self, statistic: PrivateStatistic) -> PiecewiseConstant:
        """Visits per unit area, constant on every cell: those of as many walks as there were trajectories."""
        return self.model(statistic).intensity(statistic.plan.window)

    def table_rows(self) -> Rows:
        """Source of the intensity."""
        return [("intensity", "expected visits of random walks that were fitted to the reports")]

    @classmethod
    def beside(cls, stated: Mapping[str, Any], plan: Measurement) -> Beside:
        """Nothing: the estimator has no settings."""
        among(stated, [{"kind": cls.kind}], "the estimator has no settings")
        return Beside()

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any], plan: Measurement, offset: Offset | None) -> Self:
        """The estimator."""
        return cls()


class TraceRelease(CoxRelease):
    """Result of LDPTrace: everything in it is public.

    `trajectories` draws walks, whose cells follow one another; `sample` draws points alone, from the intensity of their
    visits. A stay in one cell is no move, so it counts as one visit, and visits to cells outside the window are left
    out of the intensity.
    """

    @cached_property
    def model(self) -> TraceModel:
        """The random walks."""
        model: TraceModel = self.estimator.model(self.statistic)
        return model

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
        self, m: int = 1, rng: RngLike = None, *, source: str = "draws", fixed_n: bool = False
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
