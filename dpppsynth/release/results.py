"""The kind of release that an estimator's intensity comes in."""

from typing import Any

from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.heatmap import HeatmapRelease, Reconstruction
from dpppsynth.release.local import Estimator, GridEstimator, GridRelease, LocalRelease
from dpppsynth.release.trajectories import TraceEstimator, TraceRelease

KINDS: dict[type, type[CoxRelease]] = {
    Reconstruction: HeatmapRelease,
    Estimator: LocalRelease,
    GridEstimator: GridRelease,
    TraceEstimator: TraceRelease,
}


def result(estimator: Any) -> type[CoxRelease]:
    """The class of the result."""
    return KINDS.get(type(estimator), CoxRelease)
