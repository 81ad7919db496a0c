"""Default settings from public inputs: domain, number of points, budget, relation.

`planar_rules` holds those of windows, `network_rules` those of networks, under the same names; `BY_DOMAIN` has
them by the class of the domain.
`pair_levels` are the radii and caps of pair sums. A caller's own choice always wins.
"""

from types import ModuleType

from dpppsynth.contract.rules import network_rules, planar_rules
from dpppsynth.core.units import lengths_in
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain, Window

__all__ = [
    "BY_DOMAIN",
    "lipschitz_sigma",
    "moved_or_tents",
    "moves_tell",
    "network_rules",
    "pair_levels",
    "planar_rules",
]

BY_DOMAIN: dict[type[Domain], ModuleType] = {Window: planar_rules, LinearNetwork: network_rules}

# Standard deviation of the field of a log-Gaussian Cox model where nothing else is said (log scale).
FIELD_SIGMA = 1.6
# The same of a Matern field of sparse precision, which follows finer features.
MATERN_SIGMA = 2.0
# Largest standard deviation that a drawn field takes unless told.
DRAW_SIGMA = 2.0
# Most points for which exact draws of a field of bounded slope serve as well as NUTS.
LIPSCHITZ_EXACT = 400
# Radii in distances between points: on a window the side of the square that a point has to itself, on a network the
# length of street. The last is for budgets that are worth many points.
PLANE, STREETS = (0.4, 1.4, 4.0), (0.15, 1.2, 5.0)
# Neighbours within each radius that a point counts at most.
CAPS = (5, 10, 40)
# Whether several points may lie at one place, the default first.
CLUSTER_PLACES = ("apart", "shared")
# Budget times points from which on there is a third radius.
RICH = 300.0
# Largest radius in extents of the domain; and where n is secret, when every place of the lattice may be occupied, the
# smallest one in sides of its box.
WIDEST, NARROWEST = 0.25, 0.006


def lipschitz_sigma(slope: float, length_scale: float, n: float, sampler: str) -> float:
    """Prior sd `0.15 slope l`, at which few gradients exceed the slope; for exact draws times `min(1, (n/100)^(-1/2))`.

    The more points, the less often a draw from the unrestricted posterior, which follows them, is gentle enough for the
    exact sampler to keep.
    """
    share = min(1.0, (n / 100) ** -0.5) if sampler == "exact" else 1.0
    return min(DRAW_SIGMA, 0.15 * slope * length_scale * share)


def moves_tell(domain: Domain, n: float, scale: float, most: float | None = None) -> bool:
    """Whether moved points tell more of an intensity than noised masses: where `n scale^2 / E^2` is at most `most`.

    Parameters
    ----------
    domain : Window or LinearNetwork
        Its extent is E, of a window the square root of its area.
    n : float
        Number of points.
    scale : float
        Of the noise, as in `moved_mesh`.
    most : float, optional
        `moved_points` of the domain's rules unless given.
    """
    rule = BY_DOMAIN[type(domain)]
    most = rule.moved_points(domain, n) if most is None else most
    return not rule.unmoved(domain) and bool(n * scale**2 <= most * domain.extent**2)


def moved_or_tents(domain: Domain, n: float, scale: float, most: float | None = None) -> tuple[str, str]:
    """Mechanism "moved" or "tents", and why, in words; parameters as for `moves_tell`."""
    length = f"alpha / epsilon ({lengths_in(scale, domain.unit)} on the map, for all points of a person)"
    if moves_tell(domain, n, scale, most):
        return "moved", f"{length} is short beside the mean distance between points"
    reason = BY_DOMAIN[type(domain)].unmoved(domain)
    return "tents", reason or f"{length} is long beside the mean distance between points"


def pair_levels(
    domain: Domain, size: float, epsilon: float, *, secret: bool = False
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Radii and caps of pair sums.

    Parameters
    ----------
    domain : Window or LinearNetwork
    size : float
        Public number of points, or guess of it.
    epsilon : float
        Budget of the pair sums.
    secret : bool
        Whether the number of points is.
    """
    streets = isinstance(domain, LinearNetwork)
    apart = domain.size / size if streets else (domain.size / size) ** 0.5
    count, most = 3 if size * epsilon >= RICH else 2, WIDEST * domain.extent
    x0, y0, x1, y1 = domain.bounds
    least = NARROWEST * ((x1 - x0) * (y1 - y0)) ** 0.5 if secret else 0.0
    levels = enumerate((STREETS if streets else PLANE)[:count], 1)
    return tuple(max(min(share * apart, most * k / count), least * k) for k, share in levels), CAPS[:count]
