"""K-function and pair correlation function of patterns on a linear network (docs/theory/network.md, section 2)."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.errors import InputError
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.paths import from_positions
from dpppsynth.patterns import PointPattern

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Intensities = npt.ArrayLike | Callable[[Floats], npt.ArrayLike] | None

CORRECTIONS = ("ang", "none")
# Distances that differ by less, relative to coordinates and diameter of the network, differ by rounding alone.
ROUNDING = 1e-13
# Points handled by one thread at a time; a fixed number, so that sums come out the same on every machine.
SHARE = 64


@dataclass(frozen=True, eq=False, repr=False)
class KFunction:
    """Estimate k (b,) of the K-function at distances r (b,), as confidential as the points it was made from.

    Where r stays below the distance from every point of the network to the one farthest from it, a Poisson process has
    `K(r) = r` under the correction "ang"; under "none" its K depends on the network.
    """

    r: Floats
    k: Floats
    correction: str
    inhomogeneous: bool
    normalise: bool

    def __repr__(self) -> str:
        kind = "inhomogeneous" if self.inhomogeneous else "homogeneous"
        return f"KFunction({kind}, correction {self.correction!r}, r from {self.r[0]:g} to {self.r[-1]:g})"


@dataclass(frozen=True, eq=False, repr=False)
class PairCorrelation:
    """Estimate g (b,) of the pair correlation function at distances r (b,), as confidential as the points."""

    r: Floats
    g: Floats
    bandwidth: float
    correction: str
    inhomogeneous: bool
    normalise: bool

    def __repr__(self) -> str:
        kind = "inhomogeneous" if self.inhomogeneous else "homogeneous"
        span = f"r from {self.r[0]:g} to {self.r[-1]:g}, bandwidth {self.bandwidth:g}"
        return f"PairCorrelation({kind}, correction {self.correction!r}, {span})"


def k_function(
    pattern: PointPattern,
    r: npt.ArrayLike,
    intensity: Intensities = None,
    correction: str = "ang",
    normalise: bool = True,
) -> KFunction:
    """Estimate the K-function of a pattern on a linear network, by shortest-path distances.

    `K(r) = c sum_i sum_(j != i) 1[d_ij <= r] / (lambda_i lambda_j m(x_i, d_ij))`, where m(u, d) counts the points of
    the network exactly at distance d from u. Distances equal to r but for rounding count as inside.

    Parameters
    ----------
    pattern : PointPattern
        On a `LinearNetwork`, at least two points.
    r : array_like, shape (b,)
        Increasing distances, in the network's unit.
    intensity : array_like of shape (n,) or callable, optional
        Intensity lambda, per unit of length, at the points; or a function of coordinates (n, 2), such as an
        `Intensity`. Constant unless given: lambda = 1 and c = |L| / (n (n - 1)), |L| the length of the network.
    correction : {"ang", "none"}
        Geometrical correction by m, which makes patterns on different networks comparable; "none" leaves m out.
    normalise : bool
        Whether an inhomogeneous K is divided by `sum 1/lambda_i`, so that an intensity wrong by a factor is half made
        up for, or by the length |L| which that sum estimates. Without intensity it has no effect.

    Raises
    ------
    InputError
        When an argument breaks these rules.

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
    network, r = _network(pattern), _distances(r)
    weight, scale = _weights(pattern, network, intensity, normalise)
    breaks = r + _rounding(network)
    k = np.cumsum(_moments(pattern, network, breaks, weight, correction)[0]) / scale
    return KFunction(r, _frozen(k), correction, intensity is not None, normalise)


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
        Standard deviation of the kernel, in the network's unit; it reaches sqrt(5) bandwidths far.

    Raises
    ------
    InputError
        When an argument breaks these rules.

    References
    ----------
    As in `k_function`.
    """
    network, r = _network(pattern), _distances(r)
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or not 0 < bandwidth < np.inf:
        msg = f"bandwidth: must be a positive distance ({network.unit}), got {bandwidth!r}; for instance 20.0."
        raise InputError(msg)
    weight, scale = _weights(pattern, network, intensity, normalise)
    reach = np.sqrt(5) * bandwidth
    breaks = np.concatenate([r - reach, r + reach, reach - r])
    breaks = np.unique(breaks[breaks > 0])
    moments = _moments(pattern, network, breaks, weight, correction)
    g = np.array([_smoothed(moments, breaks, at, reach) + _smoothed(moments, breaks, -at, reach) for at in r]) / scale
    return PairCorrelation(r, _frozen(g), float(bandwidth), correction, intensity is not None, normalise)


def count_at(network: LinearNetwork, positions: npt.ArrayLike, r: npt.ArrayLike) -> Ints:
    """(n, b) numbers m(u, r) of points of the network exactly at distances r (b,) from positions u (n, 2)."""
    from dpppsynth.linear_network.perimeter import perimeter

    at, r = np.asarray(positions, dtype=np.float64).reshape(-1, 2), _distances(r)
    rounding, degree = _rounding(network), _degree(network)
    limit = r[-1] + rounding
    out = np.empty((len(at), len(r)), dtype=np.int64)
    for part, to_vertices in from_positions(network, at, limit):
        for i, to_vertex in zip(part, to_vertices, strict=True):
            edge, along = int(at[i, 0]), float(at[i, 1])
            steps, count = perimeter(
                edge, along, to_vertex, network.edges, network.lengths, degree, float(limit), rounding
            )
            out[i] = count[np.searchsorted(steps, r)]
    return out


def _moments(pattern: PointPattern, network: LinearNetwork, breaks: Floats, weight: Floats, correction: str) -> Floats:
    """(3, b) moments of the distances between points in the bins, see `pair_moments`."""
    from dpppsynth.linear_network.perimeter import pair_moments

    if correction not in CORRECTIONS:
        msg = f"correction: must be 'ang' (geometrically corrected) or 'none', got {correction!r}."
        raise InputError(msg)
    rounding = _rounding(network)
    public = network.edges, network.lengths, _degree(network), breaks, rounding

    def share(sources: Ints, to_vertices: Floats) -> Floats:
        return pair_moments(sources, to_vertices, pattern.positions, weight, correction == "ang", *public)

    total = np.zeros((3, len(breaks)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for part, to_vertices in from_positions(network, pattern.positions, breaks[-1] + rounding):
            cuts = range(0, len(part), SHARE)
            for moments in pool.map(share, *([a[i : i + SHARE] for i in cuts] for a in (part, to_vertices))):
                total += moments
    return total


def _smoothed(moments: Floats, breaks: Floats, at: float, reach: float) -> Any:
    """Sum of Epanechnikov kernels around the distances of the pairs, at one place: bins lie within reach or beyond."""
    first, last = np.searchsorted(breaks, [at - reach, at + reach], side="right")
    bins = slice(first, last)
    x, (zeroth, first_order, second) = breaks[bins] - at, moments[:, bins]
    return 0.75 / reach * (zeroth - (x**2 * zeroth + 2 * x * first_order + second) / reach**2).sum()


def _network(pattern: Any) -> LinearNetwork:
    network = getattr(pattern, "domain", None)
    if not isinstance(pattern, PointPattern) or not isinstance(network, LinearNetwork):
        msg = "pattern: must be a PointPattern on a LinearNetwork; `network.snap(xy, tolerance)` makes one."
        raise InputError(msg)
    if len(pattern) < 2:
        msg = "pattern: pairs of points take at least two points; join patterns, or look at a larger network."
        raise InputError(msg)
    return network


def _distances(r: npt.ArrayLike) -> Floats:
    try:
        values = np.atleast_1d(np.array(r, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    legal = values.ndim == 1 and values.size and np.isfinite(values).all()
    if not legal or not values[0] >= 0 or not (np.diff(values) > 0).all():
        msg = "r: must be finite, non-negative and strictly increasing distances; for instance np.linspace(0, 400, 41)."
        raise InputError(msg)
    return _frozen(values)


def _weights(
    pattern: PointPattern, network: LinearNetwork, intensity: Intensities, normalise: bool
) -> tuple[Floats, float]:
    """Weights (n,) of the points, and what sums over pairs are divided by."""
    n = len(pattern)
    if intensity is None:
        return np.ones(n), n * (n - 1) / network.length
    try:
        values = np.asarray(intensity(pattern.xy) if callable(intensity) else intensity, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape != (n,):
        msg = "intensity: needs one number per point, in the order of the points, or a function of coordinates (n, 2)."
        raise InputError(msg)
    if not (np.isfinite(values) & (values > 0)).all():
        msg = (
            "intensity: must be positive and finite at every point; at some it is not. Take one that vanishes nowhere "
            "on the network."
        )
        raise InputError(msg)
    return 1 / values, float((1 / values).sum()) if normalise else network.length


def _degree(network: LinearNetwork) -> Ints:
    """(V,) numbers of ends of edges at the vertices; a loop has two."""
    return np.bincount(network.edges.ravel(), minlength=len(network.vertices)).astype(np.int64)


def _rounding(network: LinearNetwork) -> float:
    return ROUNDING * (float(np.abs(network.vertices).max()) + network.diameter)


def _frozen(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
