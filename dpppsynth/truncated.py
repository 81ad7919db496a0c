"""Truncated noise laws: noise that never exceeds a bound, and its delta (docs/theory/bounded_error.md).

No additive noise with a bound is purely private: some answers are possible for one of two neighbouring data sets alone,
and their probability is the smallest delta. `TruncatedGeometric` is the law of whole numbers that releases draw,
`TruncatedLaplace` its continuous counterpart, and `PlanarLaplace` that of offsets in the plane, which `move` draws.
"""

from dpppsynth.privacy.truncated.calibration import Calibration, calibrate
from dpppsynth.privacy.truncated.costs import (
    delta_composed,
    delta_of_shifts,
    truncated_laplace_delta,
    truncated_laplace_log_delta,
)
from dpppsynth.privacy.truncated.geometric import (
    TruncatedGeometric,
    truncated_geometric_bound,
    truncated_geometric_delta,
)
from dpppsynth.privacy.truncated.inverses import truncated_laplace_bound, truncated_laplace_epsilon
from dpppsynth.privacy.truncated.lattice_noise import move
from dpppsynth.privacy.truncated.optimal import TruncatedStaircase, optimal_delta, smallest_delta
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace, planar_laplace_bound, planar_laplace_delta

__all__ = [
    "Calibration",
    "PlanarLaplace",
    "TruncatedGeometric",
    "TruncatedLaplace",
    "TruncatedStaircase",
    "calibrate",
    "delta_composed",
    "delta_of_shifts",
    "move",
    "optimal_delta",
    "planar_laplace_bound",
    "planar_laplace_delta",
    "smallest_delta",
    "truncated_geometric_bound",
    "truncated_geometric_delta",
    "truncated_laplace_bound",
    "truncated_laplace_delta",
    "truncated_laplace_epsilon",
    "truncated_laplace_log_delta",
]
