"""Default settings from public inputs: domain, number of points, budget, relation.

`planar_rules` holds those of windows, `network_rules` those of networks, under the same names; `of` chooses.
`cluster_rules` are those of pair sums. A caller's own choice always wins.
"""

from types import ModuleType

from dpppsynth.contract.rules import cluster_rules, network_rules, planar_rules
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain

__all__ = ["cluster_rules", "lipschitz_sigma", "network_rules", "of", "planar_rules"]

# Standard deviation of the field of a log-Gaussian Cox model where nothing else is said (log scale).
FIELD_SIGMA = 1.6
# The same of a Matern field of sparse precision, which follows finer features.
MATERN_SIGMA = 2.0
# Largest standard deviation that a drawn field takes unless told.
DRAW_SIGMA = 2.0
# Most points for which exact draws of a field of bounded slope serve as well as NUTS.
LIPSCHITZ_EXACT = 400


def of(domain: Domain) -> ModuleType:
    """The rules of this kind of domain."""
    return network_rules if isinstance(domain, LinearNetwork) else planar_rules


def lipschitz_sigma(slope: float, length_scale: float, n: float, sampler: str) -> float:
    """`0.15 slope l`, so that gradients mostly stay below the slope; for exact draws times `min(1, (n/100)^(-1/2))`.

    The more points, the less often a draw from the unrestricted posterior, which follows them, is gentle enough for the
    exact sampler to keep.
    """
    share = min(1.0, (n / 100) ** -0.5) if sampler == "exact" else 1.0
    return min(DRAW_SIGMA, 0.15 * slope * length_scale * share)
