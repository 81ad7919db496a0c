"""Neighbouring relations, guarantees, bounds, noise and certificates; independent of all synthesizers.

Relations are objects (`AlphaNeighbours`, `ReplaceOne`, `AddRemove`, `AddRemovePerson`, `Local`,
`GeoIndistinguishability`). Bound functions (`counts`, `tents`, `theorem_a`, `lipschitz`, `field_statistic`,
`superposition`, `diffusion`, `kim_lim_36`, `kim_lim_38`, `kim_lim_39`, `heatmap`, `local_report`, `local_rounds`,
`bounded_counts`, `moved_points`, `parallel`) turn public numbers into a `Guarantee`, whose profile gives delta for
every epsilon. `verify` derives the bound of a certificate again. `compose` adds up the profiles of several releases.
"""

from importlib import import_module

from dpppsynth.core.errors import InformationWarning
from dpppsynth.privacy.accounting import FIXED_BEFOREHAND, Composed, adaptive, compose, gaussian_filter, largest
from dpppsynth.privacy.bounds import (
    counts,
    counts_sensitivity,
    require_small_delta,
    tents,
    tents_sensitivity,
)
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.noise import laplace_noise, laplace_scale, truncated_laplace_noise
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

# Bounds stand in the folders of their mechanisms, and load when first asked for.
ELSEWHERE = {
    "dpppsynth.mechanisms.bounded.bound": (
        "bounded_counts",
        "bounded_delta",
        "smallest_bounded_epsilon",
        "smallest_max_error",
    ),
    "dpppsynth.mechanisms.heatmap.bound": (
        "LevelBudgets",
        "heatmap",
        "level_budgets",
        "level_scales",
        "start_level",
    ),
    "dpppsynth.mechanisms.kernel.bound.heat": (
        "diffusion",
        "smallest_diffusion_bandwidth",
    ),
    "dpppsynth.mechanisms.kernel.bound.kernels": (
        "kim_lim_36",
        "smallest_bandwidth",
        "smallest_bandwidth_36",
        "superposition",
    ),
    "dpppsynth.mechanisms.lgcp.bound.fields": (
        "field_sensitivity",
        "field_statistic",
        "largest_field_sigma",
    ),
    "dpppsynth.mechanisms.lgcp.bound.kim_lim": (
        "carries_no_information",
        "kim_lim_38",
        "kim_lim_39",
        "kim_lim_ratio",
    ),
    "dpppsynth.mechanisms.lgcp.bound.posterior_draw": (
        "increment_sd",
        "largest_intercept_sd",
        "largest_sigma",
        "lipschitz",
        "point_sd",
        "posterior_mu",
        "theorem_a",
    ),
    "dpppsynth.mechanisms.local.bound": (
        "local_report",
        "local_rounds",
    ),
    "dpppsynth.mechanisms.planar_laplace.bound": (
        "moved_delta",
        "moved_points",
        "smallest_move_bound",
    ),
    "dpppsynth.release.verify": (
        "Check",
        "Verification",
        "verify",
    ),
}
_PLACES = {name: module for module, names in ELSEWHERE.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
