from dpppsynth.core.errors import InformationWarning
from dpppsynth.mechanisms.bounded.bound import (
    bounded_counts,
    bounded_delta,
    smallest_bounded_epsilon,
    smallest_max_error,
)
from dpppsynth.mechanisms.heatmap.bound import (
    LevelBudgets,
    heatmap,
    level_budgets,
    level_scales,
    start_level,
)
from dpppsynth.mechanisms.kernel.bound.heat import diffusion, smallest_diffusion_bandwidth
from dpppsynth.mechanisms.kernel.bound.kernels import (
    kim_lim_36,
    smallest_bandwidth,
    smallest_bandwidth_36,
    superposition,
)
from dpppsynth.mechanisms.lgcp.bound.fields import field_sensitivity, field_statistic, largest_field_sigma
from dpppsynth.mechanisms.lgcp.bound.kim_lim import (
    carries_no_information,
    kim_lim_38,
    kim_lim_39,
    kim_lim_ratio,
)
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import (
    increment_sd,
    largest_intercept_sd,
    largest_sigma,
    lipschitz,
    point_sd,
    posterior_mu,
    theorem_a,
)
from dpppsynth.mechanisms.local.bound import local_report, local_rounds
from dpppsynth.mechanisms.planar_laplace.bound import moved_delta, moved_points, smallest_move_bound
from dpppsynth.privacy.accounting import FIXED_BEFOREHAND, Composed, adaptive, compose, gaussian_filter, largest
from dpppsynth.privacy.bounds import (
    counts,
    counts_sensitivity,
    laplace_scale,
    require_small_delta,
    tents,
    tents_sensitivity,
)
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.noise import laplace_noise, truncated_laplace_noise
from dpppsynth.privacy.profiles import (
    ApproximateDP,
    GaussianDP,
    PoissonGaussianDP,
    Profile,
    PureDP,
    SmallestOf,
    delta_gaussian,
    gaussian_mu,
)
from dpppsynth.privacy.relations import (
    AddRemove,
    AddRemovePerson,
    AlphaNeighbours,
    CappedRelation,
    GeoIndistinguishability,
    Local,
    Relation,
    ReplaceOne,
    relation_from_dict,
)
from dpppsynth.privacy.stored_profiles import profile_from_dict
from dpppsynth.privacy.truncated.costs import truncated_laplace_delta
from dpppsynth.privacy.truncated.inverses import truncated_laplace_bound
from dpppsynth.privacy.truncated.truncated_planar import planar_laplace_bound, planar_laplace_delta
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.release.verify import Check, Verification, verify

__all__ = [
    "FIXED_BEFOREHAND",
    "AddRemove",
    "AddRemovePerson",
    "AlphaNeighbours",
    "ApproximateDP",
    "CappedRelation",
    "Check",
    "Composed",
    "DiscreteLosses",
    "GaussianDP",
    "GeoIndistinguishability",
    "Guarantee",
    "InformationWarning",
    "LevelBudgets",
    "Local",
    "PoissonGaussianDP",
    "Profile",
    "PureDP",
    "Relation",
    "ReplaceOne",
    "SmallestOf",
    "TruncatedLaplaceDP",
    "Verification",
    "adaptive",
    "bounded_counts",
    "bounded_delta",
    "carries_no_information",
    "compose",
    "counts",
    "counts_sensitivity",
    "delta_gaussian",
    "diffusion",
    "field_sensitivity",
    "field_statistic",
    "gaussian_filter",
    "gaussian_mu",
    "guarantee_from_dict",
    "heatmap",
    "increment_sd",
    "kim_lim_36",
    "kim_lim_38",
    "kim_lim_39",
    "kim_lim_ratio",
    "laplace_noise",
    "laplace_scale",
    "largest",
    "largest_field_sigma",
    "largest_intercept_sd",
    "largest_sigma",
    "level_budgets",
    "level_scales",
    "lipschitz",
    "local_report",
    "local_rounds",
    "moved_delta",
    "moved_points",
    "parallel",
    "planar_laplace_bound",
    "planar_laplace_delta",
    "point_sd",
    "posterior_mu",
    "profile_from_dict",
    "relation_from_dict",
    "require_small_delta",
    "smallest_bandwidth",
    "smallest_bandwidth_36",
    "smallest_bounded_epsilon",
    "smallest_diffusion_bandwidth",
    "smallest_max_error",
    "smallest_move_bound",
    "start_level",
    "superposition",
    "tents",
    "tents_sensitivity",
    "theorem_a",
    "truncated_laplace_bound",
    "truncated_laplace_delta",
    "truncated_laplace_noise",
    "verify",
]
