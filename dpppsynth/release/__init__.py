"""Release objects of all mechanisms, estimators of their intensities, and their storage."""

from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.folder import load_release
from dpppsynth.release.folder_writing import append_patterns
from dpppsynth.release.lgcp_inference import LGCPInference
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.posterior import Posterior
from dpppsynth.release.projection import Projection, project_to_simplex
from dpppsynth.release.release import Release
from dpppsynth.release.stratified_release import StratifiedRelease
from dpppsynth.release.street_inference import StreetInference

__all__ = [
    "CoxRelease",
    "CredibleInterval",
    "Drawn",
    "LGCPInference",
    "MaternInference",
    "Posterior",
    "Projection",
    "Release",
    "StratifiedRelease",
    "StreetInference",
    "append_patterns",
    "load_release",
    "project_to_simplex",
]
