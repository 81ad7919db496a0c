"""Release objects of all mechanisms, estimators of their intensities, and their storage."""

from dpppsynth.release.base import Release
from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.folder import load_release
from dpppsynth.release.lgcp_inference import LGCPInference, Posterior
from dpppsynth.release.projection import Projection, project_to_simplex
from dpppsynth.release.strata import StratifiedRelease
from dpppsynth.release.writing import append_patterns

__all__ = [
    "CoxRelease",
    "CredibleInterval",
    "Drawn",
    "LGCPInference",
    "Posterior",
    "Projection",
    "Release",
    "StratifiedRelease",
    "append_patterns",
    "load_release",
    "project_to_simplex",
]
