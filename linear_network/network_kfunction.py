"""K-function and pair correlation function of patterns on a linear network (docs/theory/network.md, section 2)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import edge_numbers, from_positions
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import (
    Intensities,
    KFunction,
    PairCorrelation,
    checked_distances,
    frozen,
    longest_distance,
    pair_weights,
    require_pairs,
    require_smoothing,
    rounding,
    smoothed_pairs,
)

CORRECTIONS = ("ang", "none")
# Points handled by one thread at a time; a fixed number, so that sums come out the same on every machine.
SHARE = 64


def k_function(
    pattern: PointPattern,
    r: npt.ArrayLike,
    intensity: Intensities = None,
    correction: str = "ang",
    normalise: bool = True,
) -> KFunction:
    """Estimate the K-function of a pattern on a linear network, by shortest-path distances.

    `K(r) = c sum_i sum_(j != i) 1[d_ij <= r] / (lambda_i lambda_j m(x_i, d_ij))`, where m(u, d) counts the points of
    the network exactly at distance d from u. Distances that exceed r by rounding alone, 1e-13 of the coordinates and of
    the network's diameter, count as inside: rounding adds up over the edges of a path.

    Parameters
    ----------
    pattern : PointPattern
        On a `LinearNetwork`, at least two points.
    correction : {"ang", "none"}
        Geometrical correction by m, which makes patterns on different networks comparable; "none" leaves m out.
    r, intensity, normalise
        As in `evaluation.k_function`, with the length `|L|` of the network, and intensities per unit of length.

    References
    ----------
    Ang, Baddeley and Nair (2012), Geometrically corrected second order analysis of events on a linear network,
    Scandinavian Journal of Statistics 39, 591-617; Rakshit, Nair and Baddeley (2017), Second-order analysis of point
    patterns on a network using any distance metric, Spatial Statistics 22, 129-154.

    Examples
    --------
    >>> cross = LinearNetwork([[0, 0], [1, 0], [-1, 0], [0, 1]], [[0, 1], [0, 2], [0, 3]])
    >>> k_function(cross.pattern([0, 2], [0.5, 0.25]), [0.5, 1.0]).k  # 0.75 apart; m is 2, and 3 seen from the second
    array([0.  , 1.25])
    """
    network, r = _network(pattern), checked_distances(r)
    one_of("correction", correction, CORRECTIONS, " on a network")
    weight, scale = pair_weights(pattern, intensity, normalise)
    breaks = np.minimum(r + rounding(network), longest_distance(network))
    k = np.cumsum(_moments(pattern, network, weight, correction, breaks)[0]) / scale
    return KFunction(r, frozen(k), correction, intensity is not None, normalise)


def pair_correlation(
    pattern: PointPattern,
    r: npt.ArrayLike,
    *,
    bandwidth: float,
    intensity: Intensities = None,
    correction: str = "ang",
    normalise: bool = True,
) -> PairCorrelation:
    """Estimate the pair correlation function g = K' on a linear network: one for a Poisson process.

    Each pair that K counts at its distance d adds an Epanechnikov kernel around d instead. What of that would fall
    below zero is reflected, so that the integral of g still counts every pair once.

    Parameters
    ----------
    pattern, r, intensity, correction, normalise
        As in `k_function`.
    bandwidth : float
        Standard deviation of the kernel, in the network's unit, at most 1000 extents; it reaches sqrt(5) bandwidths
        far.

    References
    ----------
    As in `k_function`.
    """
    network, r = _network(pattern), checked_distances(r)
    one_of("correction", correction, CORRECTIONS, " on a network")
    require_smoothing(bandwidth, network)
    weight, scale = pair_weights(pattern, intensity, normalise)
    moments = partial(_moments, pattern, network, weight, correction)
    g = smoothed_pairs(moments, r, float(bandwidth), longest_distance(network)) / scale
    return PairCorrelation(r, frozen(g), float(bandwidth), correction, intensity is not None, normalise)


def _moments(pattern: PointPattern, network: LinearNetwork, weight: Floats, correction: str, breaks: Floats) -> Floats:
    """(3, b) moments of the distances between points in the bins, see `pair_moments`."""
    from dpppsynth.linear_network.perimeter import pair_moments

    slack = rounding(network)
    public = network.edges, network.lengths, network.ends[2], breaks, slack
    # Compiled code cuts off what whole numbers lack to rounding, and looks up no bounds.
    positions = np.column_stack([edge_numbers(pattern.positions), pattern.positions[:, 1]])

    def share(sources: Ints, to_vertices: Floats) -> Floats:
        return pair_moments(sources, to_vertices, positions, weight, correction == "ang", *public)

    total = np.zeros((3, len(breaks)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for part, to_vertices in from_positions(network, pattern.positions, breaks[-1] + slack):
            cuts = range(0, len(part), SHARE)
            for moments in pool.map(share, *([a[i : i + SHARE] for i in cuts] for a in (part, to_vertices))):
                total += moments
    return total


def _network(pattern: Any) -> LinearNetwork:
    network = getattr(pattern, "domain", None)
    if not isinstance(pattern, PointPattern) or not isinstance(network, LinearNetwork):
        msg = "pattern: must be a PointPattern on a LinearNetwork; `network.snap(xy, tolerance)` makes one."
        raise InputError(msg)
    require_pairs(pattern)
    return network
