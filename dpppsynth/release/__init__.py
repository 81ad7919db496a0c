"""Results: what a synthesizer hands back, how its intensity was estimated, and its folder on disk."""

from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.release.field import FieldModel, Posterior
from dpppsynth.release.folder import append_patterns, load_release
from dpppsynth.release.projection import Projection, project_to_simplex

__all__ = [
    "CoxRelease",
    "CredibleInterval",
    "FieldModel",
    "Posterior",
    "Projection",
    "append_patterns",
    "load_release",
    "project_to_simplex",
]
