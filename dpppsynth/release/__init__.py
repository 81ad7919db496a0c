"""Release objects of all mechanisms, estimators of their intensities, and their storage."""

from dpppsynth.release.base import Release
from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.folder import append_patterns, load_release
from dpppsynth.release.lgcp_inference import FieldModel, Posterior
from dpppsynth.release.projection import Projection, project_to_simplex
from dpppsynth.release.strata import StratifiedRelease

__all__ = [
    "CoxRelease",
    "CredibleInterval",
    "Drawn",
    "FieldModel",
    "Posterior",
    "Projection",
    "Release",
    "StratifiedRelease",
    "append_patterns",
    "load_release",
    "project_to_simplex",
]
