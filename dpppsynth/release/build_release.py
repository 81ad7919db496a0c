"""The kind of result that a plan and its estimator lead to."""

from typing import Any

from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease, BoundedErrorSeries
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, Reconstruction
from dpppsynth.mechanisms.kernel.release import PoissonRelease
from dpppsynth.mechanisms.local.release import Estimator, GridEstimator, GridRelease, LocalRelease
from dpppsynth.mechanisms.local.trajectory_release import TraceEstimator, TraceRelease
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.mechanisms.planar_laplace.release import PointRelease
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.strata import StratifiedRelease

ESTIMATED: dict[type, type[CoxRelease]] = {
    Reconstruction: HeatmapRelease,
    Estimator: LocalRelease,
    GridEstimator: GridRelease,
    TraceEstimator: TraceRelease,
}


def made(mechanism: str, statistic: Any, estimator: Any, draws: Any = None, *, entry: str | None = None) -> Any:
    """The result of a mechanism; without an estimator patterns are all that was released."""
    if estimator is None:
        paid = PointRelease if isinstance(statistic.plan, MovedPlan) else PoissonRelease
        return paid(mechanism, statistic, entry=entry)
    bounded = isinstance(statistic.plan, BoundedCountsPlan)
    free = BoundedErrorRelease if bounded else ESTIMATED.get(type(estimator), CoxRelease)
    return free(mechanism, statistic, estimator, draws, entry=entry)


def together(releases: dict[str, Any]) -> type[StratifiedRelease]:
    """The class of one release for each level of a mark."""
    every = all(isinstance(release, BoundedErrorRelease) for release in releases.values())
    meshes = [release.statistic.plan.mesh.recipe for release in releases.values()] if every else []
    # Only of the same cells a series can be made.
    return BoundedErrorSeries if every and all(mesh == meshes[0] for mesh in meshes) else StratifiedRelease
