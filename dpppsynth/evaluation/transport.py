"""Wasserstein distances between patterns: the mean distance that points move under an optimal transport plan.

Patterns count as probability measures: each of n points carries mass 1/n, so numbers of points may differ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import real_array
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.distances import common_domain
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.minimum_cost_flow import Floats, grid_flow, minimum_cost_flow, unit_pair
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.transport import sliced_wasserstein_points

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
