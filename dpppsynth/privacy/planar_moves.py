"""Guarantee of points moved by planar Laplace noise, bounded or not (docs/theory/bounded_error.md, Theorem M)."""

import math

import numpy as np

from dpppsynth.core.arguments import instance, positive, real, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.bounds import assumptions
from dpppsynth.privacy.catalogue import Code
from dpppsynth.privacy.guarantee import Guarantee, on_ground, on_map
from dpppsynth.privacy.profiles import ApproximateDP, PureDP
from dpppsynth.privacy.relations import AlphaNeighbours
from dpppsynth.privacy.truncated.error_bounds import require_bound_delta
from dpppsynth.privacy.truncated.shifted_losses import at_least_one
from dpppsynth.privacy.truncated.truncated_planar import planar_laplace_bound, planar_laplace_delta
from dpppsynth.spatial.domains import Domain

NOISE = "planar-laplace-noise"
REDRAWN = "bounded-moves-redrawn"
RELATION = "the bound grows with the distance, so it needs AlphaNeighbours(alpha)"
# Below it no bound is looked for.
SMALLEST_DELTA = 1e-250
# More than a product of three floats is rounded by, relative.
ROUNDING = 2.0**-51
# Share of the largest coordinate, and of the longest edge, by which coordinates found along edges are off, at most.
ALONG_EDGES = 2.0**-40
# Distances at which epsilon is stated: so many in equal ratios, from an eighth of alpha on, and multiples of alpha.
# Between two of them the longer one's epsilon is read.
CURVE, MULTIPLES = 40, np.array([0.25, 0.5, 1.0, 2.0, 3.0, 4.0])


def moved_points(
    relation: AlphaNeighbours,
    *,
    rate: float,
    bound: float,
    farthest: float,
    domain: Domain | None = None,
    assumed: tuple[Code, ...] = (),
) -> Guarantee:
    """Guarantee of points moved by planar Laplace noise, with rows in any order.

    Parameters
    ----------
    relation : AlphaNeighbours
    rate : float
        Epsilon of one point per unit of length on the map.
    bound : float
        Largest distance of a move, on the map; infinite where there is none, and delta is 0.
    farthest : float
        Distance on the map up to which `by_distance` tells what can be told apart, where there is no bound.
    domain : Window or LinearNetwork, optional
        Where the points lie; without it lengths are true ones. Along streets no path is shorter than a straight line.
    assumed : tuple of codes
        What is assumed beside, such as of marks that stay with their points.
    """
    instance("relation", relation, AlphaNeighbours, RELATION)
    rate, farthest = positive("rate", rate), positive("farthest", farthest)
    k, alpha = relation.max_points_per_person, moved_reach(relation, domain)
    level = k * rate * alpha * (1 + ROUNDING)
    slack = moved_delta(relation, rate=rate, bound=bound, domain=domain)
    bound = float(bound)
    if slack >= 1:
        msg = (
            f"max_error: moves of at most {bound:g} tell points {alpha:g} apart with certainty; take a larger one, "
            "well above alpha."
        )
        raise PrivacyCheckError(msg)
    profile = ApproximateDP(level, slack) if slack > 0 else PureDP(level)
    own = ((NOISE, REDRAWN) if bound < math.inf else (NOISE,)) + assumed
    reach = min(farthest, alpha) if slack > 0 else farthest
    ratios, multiples = np.geomspace(min(alpha / 8, reach / 2), reach, CURVE), alpha * MULTIPLES
    lengths = np.union1d(ratios, multiples[multiples <= reach])
    curve = on_ground(((d, rate * (d + _off(domain)) * (1 + ROUNDING)) for d in lengths), domain)
    return Guarantee(relation, profile, "moved-points", assumptions(relation, own, domain=domain), curve)


def moved_delta(relation: AlphaNeighbours, *, rate: float, bound: float, domain: Domain | None = None) -> float:
    """Probability, rounded up, that one of k moved points lands out of reach of its neighbour alpha away.

    It is `1 - (1 - delta2)^k`; parameters as in `moved_points`.
    """
    instance("relation", relation, AlphaNeighbours, RELATION)
    if real(bound) is None and not (isinstance(bound, float) and bound == math.inf):
        msg = f"bound: must be a positive number, or infinite, got {shown(bound)}."
        raise InputError(msg)
    if float(bound) == math.inf:
        return 0.0
    one = float(planar_laplace_delta(rate, bound, moved_reach(relation, domain)))
    return min(1.0, at_least_one([one], relation.max_points_per_person) * (1 + 1e-12))


def smallest_move_bound(relation: AlphaNeighbours, *, rate: float, delta: float, domain: Domain | None = None) -> float:
    """Smallest bound on the distance of moves on the map that keeps to delta, rounded up; see `moved_points`."""
    instance("relation", relation, AlphaNeighbours, RELATION)
    delta = require_bound_delta(delta, least=SMALLEST_DELTA)
    one = -math.expm1(math.log1p(-delta) / relation.max_points_per_person) * (1 - 1e-9)
    return float(planar_laplace_bound(positive("rate", rate), one, moved_reach(relation, domain)))


def rate(relation: AlphaNeighbours, epsilon: float, domain: Domain | None = None) -> float:
    """Epsilon of one point per unit of length on the map, rounded down."""
    return epsilon / (relation.max_points_per_person * moved_reach(relation, domain)) * (1 - 2 * ROUNDING)


def moved_reach(relation: AlphaNeighbours, domain: Domain | None) -> float:
    """Largest distance on the map, in a straight line, of coordinates of a point that moves by alpha."""
    return on_map(relation, domain).reach + _off(domain)


def _off(domain: Domain | None) -> float:
    """Most by which coordinates found from positions along edges change a distance, in floating point."""
    if not isinstance(domain, LinearNetwork):
        return 0.0
    return ALONG_EDGES * (float(np.abs(domain.bounds).max()) + float(domain.lengths.max()))
