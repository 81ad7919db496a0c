"""Client mechanisms (local randomizers) of local differential privacy, and estimators of shares from their reports.

* Area mechanisms: `DiskArea`, `HybridArea`; their radius: `optimal_radius`, `grid_radius`. On the plane, without a grid
  and without a certificate: `ContinuousDiskArea`, `ContinuousHybrid`, `SpatialAreaMechanism`.
* Others on a grid: `SquareWave`, and `SubsetExponential`, which is geo-indistinguishable.
* Frequency oracles: `RandomizedResponse`, `LocalHashing`, `OptimizedUnary`, `SymmetricUnary`, `HadamardResponse`;
  `best_oracle` chooses.
* Estimation: `expectation_maximisation`, `norm_sub`, `norm_mul`, `clip`.

Each mechanism is a frozen object of public numbers with a law of integer weights, out of 2^62 but for
`SubsetExponential`, whose subsets are too many. `dpppsynth.local` puts windows, reports and releases around them.
"""

from dpppsynth.mechanisms.local.randomizers.area import DiskArea, HybridArea
from dpppsynth.mechanisms.local.randomizers.continuous import ContinuousDiskArea, ContinuousHybrid, SpatialAreaMechanism
from dpppsynth.mechanisms.local.randomizers.em import Fit, expectation_maximisation
from dpppsynth.mechanisms.local.randomizers.footprint import closed_form_sizes
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.hadamard import HadamardResponse
from dpppsynth.mechanisms.local.randomizers.matching import Match, local_privacy, matched_epsilon
from dpppsynth.mechanisms.local.randomizers.oracles import (
    LocalHashing,
    RandomizedResponse,
    best_oracle,
    hash_range_rule,
)
from dpppsynth.mechanisms.local.randomizers.radius import (
    discrete_radius,
    grid_radius,
    information_bound,
    optimal_radius,
)
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.randomizer_names import KINDS, ORACLES, oracle, randomizer_from_dict
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave, square_wave_half_width
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential, subset_size
from dpppsynth.mechanisms.local.randomizers.unary import OptimizedUnary, SymmetricUnary
from dpppsynth.spatial.simplex import clip, norm_mul, norm_sub

__all__ = [
    "KINDS",
    "ORACLES",
    "ContinuousDiskArea",
    "ContinuousHybrid",
    "DiskArea",
    "Fit",
    "FrequencyOracle",
    "HadamardResponse",
    "HybridArea",
    "LocalHashing",
    "Match",
    "OptimizedUnary",
    "RandomizedResponse",
    "Randomizer",
    "SpatialAreaMechanism",
    "SquareWave",
    "SubsetExponential",
    "SymmetricUnary",
    "best_oracle",
    "clip",
    "closed_form_sizes",
    "discrete_radius",
    "expectation_maximisation",
    "grid_radius",
    "hash_range_rule",
    "information_bound",
    "local_privacy",
    "matched_epsilon",
    "norm_mul",
    "norm_sub",
    "optimal_radius",
    "oracle",
    "randomizer_from_dict",
    "square_wave_half_width",
    "subset_size",
]
