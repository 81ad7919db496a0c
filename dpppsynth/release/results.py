"""The kind of result that a plan and its estimator lead to."""

from typing import Any

from dpppsynth.bounded_plan import BoundedCountsPlan
from dpppsynth.moved_plan import MovedPlan
from dpppsynth.release.bounded import BoundedErrorRelease, BoundedErrorSeries
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.heatmap import HeatmapRelease, Reconstruction
from dpppsynth.release.local import Estimator, GridEstimator, GridRelease, LocalRelease
from dpppsynth.release.points import PointRelease
from dpppsynth.release.poisson import PoissonRelease
from dpppsynth.release.strata import StratifiedRelease
from dpppsynth.release.trajectories import TraceEstimator, TraceRelease

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
