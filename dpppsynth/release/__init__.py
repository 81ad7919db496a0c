"""Release objects of all mechanisms, estimators of their intensities, and their storage."""

from dpppsynth.release.base import Release
from dpppsynth.release.bounded import BoundedErrorRelease, BoundedErrorSeries
from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.field import FieldModel, Posterior
from dpppsynth.release.folder import append_patterns, load_release
from dpppsynth.release.heatmap import HeatmapRelease, Reconstruction
from dpppsynth.release.local import Estimator, GridEstimator, GridRelease, LocalRelease
from dpppsynth.release.points import PointRelease
from dpppsynth.release.poisson import PoissonRelease
from dpppsynth.release.projection import Projection, project_to_simplex
from dpppsynth.release.strata import StratifiedRelease
from dpppsynth.release.trajectories import TraceEstimator, TraceRelease

__all__ = [
    "BoundedErrorRelease",
    "BoundedErrorSeries",
    "CoxRelease",
    "CredibleInterval",
    "Drawn",
    "Estimator",
    "FieldModel",
    "GridEstimator",
    "GridRelease",
    "HeatmapRelease",
    "LocalRelease",
    "PointRelease",
    "PoissonRelease",
    "Posterior",
    "Projection",
    "Reconstruction",
    "Release",
    "StratifiedRelease",
    "TraceEstimator",
    "TraceRelease",
    "append_patterns",
    "load_release",
    "project_to_simplex",
]
