"""`LGCPSettings`: the settings of log-Gaussian Cox mechanisms that their plans read."""

from typing import Any

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.synthesizer import PointSynthesizer
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

# Whether several points may lie at one place, the default first.
CLUSTER_PLACES = ("apart", "shared")


class LGCPSettings(PointSynthesizer[CoxRelease[LatticeStatistic]]):
    """Base of `LGCPSynthesizer`, which declares these settings as its fields, with defaults, and validates them."""

    mechanism: str
    delta: float
    sigma: float | None
    length_scale: float | None
    covariance: Any
    sampler: str
    mesh: Mesh | None
    prior: str
    inference: str
    engine: str
    offset: Offset | None
    covariates: Any
    clusters: float | None
    cluster_radii: Any
    cluster_caps: Any
    cluster_places: str
