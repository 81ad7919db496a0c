"""Distances between intensities and between patterns: total variation, and Wasserstein distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import instance, positive, real_array
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.minimum_cost_flow import grid_flow, minimum_cost_flow, unit_pair
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import intensity_values
from dpppsynth.spatial.transport import sliced_wasserstein_points

Density = Callable[[Floats], npt.ArrayLike]

# Cells along the side of a square as large as the window, and segments on a network: what the errors below rest on.
SIDE, SEGMENTS = 150, 16384
# Squares along a domain beyond which coordinates do not tell neighbours apart.
MOST_SQUARES = 2**53


def total_variation(one: Density, other: Density, domain: Domain) -> float:
    """Total variation distance between two intensities, each divided by its integral over the domain.

    `(1/2) integral of |one / integral(one) - other / integral(other)|`: the share of points that would have to move.

    Parameters
    ----------
    one, other : callable
        Non-negative functions of coordinates (n, 2), such as an `Intensity` or a `KernelIntensity`.
    domain : Window or LinearNetwork
        Where to integrate.

    Returns
    -------
    float
        From 0 to 1. Midpoint rule on cells whose side is 1/150 of a window's extent, or at least 16384 segments of a
        network. On a square the error is below 1e-4 for Gaussian bumps whose standard deviation is a fiftieth of its
        side or more, and some 1e-3 for intensities that jump: at most the share of mass in cells with a jump.

    Raises
    ------
    InputError
        An intensity is negative, infinite or zero everywhere, does not give one value per point or lives on another
        domain.

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 1, 1)
    >>> round(total_variation(lambda xy: xy[:, 0], lambda xy: np.ones(len(xy)), window), 4)
    0.25
    """
    xy, weight = quadrature(domain)
    masses = [values(each, xy, name, domain) * weight for each, name in ((one, "one"), (other, "other"))]
    for mass, name in zip(masses, ("one", "other"), strict=True):
        require_mass(float(mass.sum()), name)
    return mass_distance(*masses)


def misplaced_share(original: PointPattern, synthetic: PointPattern, side: float) -> float:
    """Total variation distance between the shares of points in squares laid over the domain's bounding box.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same domain. Where one of them is empty and the other is not the distance is 1.
    side : float
        Side of the squares, in the domain's unit: misplacements within a square do not count. The squares start at the
        lower left corner; those at the upper borders may stick out.

    Returns
    -------
    float
        From 0 to 1. Two patterns from one intensity do not score 0: their counts differ by chance.

    Raises
    ------
    InputError
        The domains differ or the side is not a positive length.

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 100, 100)
    >>> ours, theirs = PointPattern([[10, 10], [60, 60]], window), PointPattern([[20, 20], [60, 10]], window)
    >>> misplaced_share(ours, theirs, 50)
    0.5
    """
    domain = common_domain(original, synthetic, ("original", "synthetic"))
    remedy = f"for instance {domain.extent / 10:.3g}"
    side = float(positive("side", side, rule=f"be a positive length ({domain.unit})", remedy=remedy))
    if side < domain.extent / MOST_SQUARES:
        msg = f"side: squares of {side:g} {domain.unit} are smaller than rounding in this domain; {remedy}."
        raise InputError(msg)
    if not len(original) or not len(synthetic):
        return float(len(original) != len(synthetic))
    return share_distance(squares(original.xy, domain, side), squares(synthetic.xy, domain, side))


def share_distance(one: Ints, other: Ints) -> float:
    """Total variation distance between the shares of equal rows (n, 2) and (m, 2), or numbers."""
    place = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)[1].ravel()
    counts = [np.bincount(part, minlength=place.max() + 1) for part in np.split(place, [len(one)])]
    return mass_distance(*(count.astype(np.float64) for count in counts))


def squares(xy: Floats, domain: Domain, side: float) -> Ints:
    """(n, 2) column and row of the square that holds each point; the upper borders belong to the last ones."""
    x0, y0, x1, y1 = domain.bounds
    last = np.maximum(np.ceil(np.array([x1 - x0, y1 - y0]) / side * (1 - 1e-12)) - 1, 0)
    return np.clip(np.floor((xy - (x0, y0)) / side), 0, last).astype(np.int64)


def quadrature(domain: Domain) -> tuple[Floats, Floats]:
    """Coordinates (m, 2) and weights (m,) of a fine midpoint rule; the weights add up to the domain's size."""
    if not isinstance(domain, Window | LinearNetwork):
        msg = f"domain: must be a Window or a LinearNetwork; got {type(domain).__name__}"
        raise InputError(msg)
    return _midpoints(domain)


def quadrature_cell(domain: Domain) -> float:
    """Side of a cell of the quadrature, or longest of its segments, in the domain's unit."""
    return domain.size / SEGMENTS if isinstance(domain, LinearNetwork) else domain.extent / SIDE


@lru_cache(maxsize=4)
def _midpoints(domain: Window | LinearNetwork) -> tuple[Floats, Floats]:
    if isinstance(domain, LinearNetwork):
        rule = network_mesh(domain, quadrature_cell(domain)).midpoints()
    else:
        rule = regular_squares(domain, spacing=quadrature_cell(domain)).midpoints()
    # Shared by all calls.
    for array in rule:
        array.flags.writeable = False
    return rule


def integral(intensity: Any, domain: Domain, name: str) -> float:
    """Integral over the domain: the intensity's own `total` where it has one, else by quadrature."""
    total = getattr(intensity, "total", None)
    if total is None:
        xy, weight = quadrature(domain)
        total = values(intensity, xy, name, domain) @ weight
    return require_mass(float(total), name)


def values(intensity: Any, xy: Floats, name: str, domain: Domain) -> Floats:
    """(n,) values of an intensity at coordinates (n, 2); InputError unless finite, not negative and on the domain."""
    if not callable(intensity):
        msg = f"{name}: must be a function of coordinates (n, 2), such as an Intensity; got {type(intensity).__name__}."
        raise InputError(msg)
    found = intensity_values(intensity, xy, name, domain)
    if not (np.isfinite(found) & (found >= 0)).all():
        msg = f"{name}: an intensity must be finite and non-negative everywhere; somewhere it is not."
        raise InputError(msg)
    return found


def require_mass(total: float, name: str) -> float:
    """The integral of an intensity, refused unless it is positive and finite."""
    if not 0 < total < np.inf:
        msg = f"{name}: its integral over the domain must be positive and finite; an intensity of 0 has no shape."
        raise InputError(msg)
    return total


def common_domain(one: Any, other: Any, names: tuple[str, str]) -> Domain:
    """Domain that two patterns share; InputError where they are not patterns or do not share one."""
    for pattern, name in zip((one, other), names, strict=True):
        instance(name, pattern, PointPattern)
    if one.domain is not other.domain and one.domain.fingerprint() != other.domain.fingerprint():
        msg = f"{names[1]}: lies in another domain than {names[0]}; patterns are compared in one domain."
        raise InputError(msg)
    domain: Domain = one.domain
    return domain


METHODS = ("auto", "exact", "sliced")
# Pairs of points up to which "auto" is exact in a window: about two seconds and 32 MB.
MOST_PAIRS = 4_000_000


def wasserstein(one: PointPattern, other: PointPattern, method: str = "auto") -> float:
    """Wasserstein-1 distance between two patterns: the mean distance a point must move, in the domain's unit.

    In a window distances are straight lines, also where the window is not convex and a line leaves it. On a network
    they are shortest paths along the streets.

    Parameters
    ----------
    one, other : PointPattern
        In the same domain, at least one point each.
    method : {"auto", "exact", "sliced"}
        "exact": optimal transport; on a network a minimum-cost flow, at any number of points. "sliced", in windows
        only: `sliced_wasserstein_points`, the mean over all directions of the distance between the points' projections
        on a line. It is 2 / pi times the exact distance where one pattern is the other one shifted, and often well
        below that: compare sliced distances with sliced ones only. "auto": exact up to 4 million pairs of points (2000
        points each) in a window, and sliced beyond.

    Raises
    ------
    InputError
        The domains differ, a pattern is empty or the method is unknown.

    References
    ----------
    Flamary et al. (2021), POT: Python Optimal Transport, JMLR 22(78).

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 10, 10)
    >>> wasserstein(PointPattern([[1, 1]], window), PointPattern([[1, 1], [4, 5]], window))
    2.5
    """
    domain = common_domain(one, other, ("one", "other"))
    if not isinstance(method, str) or method not in METHODS:
        msg = f"method: must be 'auto', 'exact' or 'sliced', got {method!r}."
        raise InputError(msg)
    if not len(one) or not len(other):
        msg = "one, other: nothing can be moved to or from an empty pattern; leave empty patterns out."
        raise InputError(msg)
    if isinstance(domain, LinearNetwork):
        if method == "sliced":
            msg = "method: 'sliced' takes a window; on a network the exact distance is quick: take 'auto'."
            raise InputError(msg)
        return _along_streets(domain, one.positions, other.positions)
    few = len(one) * len(other) <= MOST_PAIRS
    distance = _exact if method == "exact" or (method == "auto" and few) else sliced_wasserstein_points
    return distance(one.xy, other.xy)


def grid_wasserstein(p: npt.ArrayLike, q: npt.ArrayLike, spacing: tuple[float, float] = (1.0, 1.0)) -> float:
    """Exact Wasserstein-1 distance between two arrays of masses on a grid, for the l1 ground distance.

    A minimum-cost flow between neighbouring cells takes the place of the transport between all pairs of cells.

    Parameters
    ----------
    p, q : array_like, shape (a, b)
        Non-negative masses; each is divided by its sum.
    spacing : (float, float)
        Distances between neighbours along the first and the second axis. The result has the same unit.

    Raises
    ------
    InputError
        Shapes differ, a mass is negative or not finite, an array has no mass, or a spacing is not positive.

    Notes
    -----
    About 0.01 s for 32 x 32 cells, 0.1 s for 64 x 64, half a second for 128 x 128 and 2 to 12 s for 256 x 256.

    Examples
    --------
    >>> grid_wasserstein([[1, 0], [0, 0]], [[0, 0], [0, 1]], spacing=(3.0, 4.0))
    7.0
    """
    one, other = unit_pair(p, q)
    steps = real_array(spacing)
    if steps is None or steps.shape != (2,) or not (np.isfinite(steps) & (steps > 0)).all():
        msg = f"spacing: must be two positive distances, got {spacing!r}; for instance (1.0, 1.0)."
        raise InputError(msg)
    return grid_flow(one - other, (float(steps[0]), float(steps[1])))


def _along_streets(network: LinearNetwork, a: Floats, b: Floats) -> float:
    """Flow on the network with its edges cut at the positions a (n, 2) and b (m, 2), each a node of its own."""
    vertices, count = len(network.vertices), len(network.edges)
    at = np.concatenate([a, b])
    edge = np.rint(at[:, 0]).astype(np.int64)
    node = np.concatenate([network.edges[:, 0], vertices + np.arange(len(at)), network.edges[:, 1]])
    of = np.concatenate([np.arange(count), edge, np.arange(count)])
    along = np.concatenate([np.zeros(count), np.clip(at[:, 1], 0, network.lengths[edge]), network.lengths])
    # A stable sort keeps each edge's first vertex ahead of points that lie on it, and its second behind them.
    order = np.lexsort([along, of])
    inner = np.flatnonzero(np.diff(of[order]) == 0)
    tail, head = order[inner], order[inner + 1]
    supply = np.concatenate([np.zeros(vertices), np.full(len(a), 1 / len(a)), np.full(len(b), -1 / len(b))])
    return minimum_cost_flow(node[tail], node[head], along[head] - along[tail], supply)


def _exact(a: Floats, b: Floats) -> float:
    import ot
    from scipy.spatial.distance import cdist

    # Differences first: the expanded squares of coordinates in millions of metres would cancel. Between all pairs the
    # dense solver takes half the time of the sparse one.
    cost = cdist(a, b)
    return float(ot.emd2(np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b)), cost, numItermax=10**8))
