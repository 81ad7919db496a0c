"""K-function and pair correlation function of patterns in windows and on linear networks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth import linear_network
from dpppsynth.core.arguments import instance, one_of, whole
from dpppsynth.core.types import Floats
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain, Window, require_domain
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import (
    Intensities,
    KFunction,
    PairCorrelation,
    checked_distances,
    frozen,
    kernel_reach,
    longest_distance,
    pair_weights,
    require_pairs,
    require_smoothing,
    rounding,
    smoothed_pairs,
)

__all__ = ["KFunction", "PairCorrelation", "default_distances", "k_function", "pair_correlation"]

# More distances than that fill the memory of a small machine.
MOST_STEPS = 10_000_000
CORRECTIONS = ("isotropic", "translation", "border", "none")


def default_distances(domain: Domain, steps: int = 512) -> Floats:
    """(steps + 1,) equidistant distances from zero, from the domain alone.

    They reach a quarter of the shorter side of a window's bounding box, or of a network's `extent`.

    Examples
    --------
    >>> default_distances(Window.rectangle(0, 0, 4, 8), 2)
    array([0. , 0.5, 1. ])
    """
    require_domain(domain)
    steps = whole("steps", steps, 1, most=MOST_STEPS, remedy="for instance 512")
    x0, y0, x1, y1 = domain.bounds
    length = domain.extent if isinstance(domain, LinearNetwork) else min(x1 - x0, y1 - y0)
    return np.linspace(0, length / 4, steps + 1)


def k_function(
    pattern: PointPattern,
    r: npt.ArrayLike | None = None,
    intensity: Intensities = None,
    correction: str | None = None,
    normalise: bool = True,
) -> KFunction:
    """Estimate the K-function of a pattern; not private.

    In a window W, `K(r) = c sum_i sum_(j != i) 1[|x_i - x_j| <= r] e_ij / (lambda_i lambda_j)` with one of the edge
    corrections

    - "isotropic": 1/e_ij is the share of the circle around x_i through x_j that lies in W (Ripley), exact for polygons;
    - "translation": 1/e_ij is the share of W that W, moved by x_j - x_i, covers (Ohser), see `translation_correction`;
    - "border": e_ij = 1, and points nearer than r to the border are only partners (minus sampling);
    - "none": e_ij = 1.

    The first two count a pair at most 100 times: where next to nothing of a circle is inside, one pair would outweigh
    all others. On a network distances run along it, see `linear_network.k_function`. Distances that exceed r by
    rounding alone, 1e-15 of the coordinates and of the window's diameter, count as inside; marks do not matter.

    What is said is exact but for rounding, with one exception: "translation" with many points on complicated windows
    interpolates the areas, with an error of some 0.1 % of a weight, see `translation_correction`.

    Parameters
    ----------
    pattern : PointPattern
        At least two points.
    r : array_like, shape (b,), optional
        Increasing distances, in the domain's unit; `default_distances` unless given.
    intensity : array_like of shape (n,) or callable, optional
        Intensity lambda at the points, or a function of coordinates (n, 2), such as an `Intensity`. Constant unless
        given: lambda = 1 and `c = |W| / (n (n - 1))`, or `|L| / (n (n - 1))`.
    correction : str, optional
        On windows "isotropic" (default) or another from above, on networks "ang" (default) or "none".
    normalise : bool
        Whether an inhomogeneous K is divided by `sum 1/lambda_i`, so that an intensity wrong by a factor is half made
        up for, or by the size of the domain, which that sum estimates. No effect without intensity; nor under "border",
        which divides by the sum over the points that are far enough from the border.

    Returns
    -------
    KFunction
        Under "border" K is NaN where no point is far enough from the border.

    References
    ----------
    Ripley (1977), Modelling spatial patterns, JRSS B 39, 172-212; Ohser (1983), On estimators for the reduced second
    moment measure of point processes, Statistics 14, 63-71; Baddeley, Moller and Waagepetersen (2000), Non- and
    semi-parametric estimation of interaction in inhomogeneous point patterns, Statistica Neerlandica 54, 329-350.

    Examples
    --------
    >>> two = PointPattern([[0.5, 0.5], [0.5, 0.0]], Window.rectangle(0, 0, 1, 1))
    >>> k_function(two, [0.25, 0.5]).k  # 0.5 apart; half of the circle around the second is inside
    array([0. , 1.5])
    """
    r = _distances(pattern, r)
    if isinstance(pattern.domain, LinearNetwork):
        return linear_network.k_function(pattern, r, intensity, "ang" if correction is None else correction, normalise)
    correction = CORRECTIONS[0] if correction is None else correction
    one_of("correction", correction, CORRECTIONS, " in a window")
    weight, scale = pair_weights(pattern, intensity, normalise)
    if correction == "border":
        k = _inner_k(pattern, weight, r)
        k *= 1.0 if intensity is not None else pattern.domain.size / len(pattern)
    else:
        k = np.cumsum(_moments(pattern, weight, correction, _reached(r, pattern.domain))[0]) / scale
    return KFunction(r, frozen(k), correction, intensity is not None, normalise, planar=True)


def pair_correlation(
    pattern: PointPattern,
    r: npt.ArrayLike | None = None,
    *,
    bandwidth: float,
    intensity: Intensities = None,
    correction: str | None = None,
    normalise: bool = True,
) -> PairCorrelation:
    """Estimate the pair correlation function; not private. One for a Poisson process, at every r >= 0.

    Each pair that K counts at its distance d adds an Epanechnikov kernel around d instead, reflected at zero. In a
    window the sum is divided by `2 pi` times the average of t over the kernel around r, reflected likewise: by `2 pi r`
    from `sqrt(5) bandwidth` on. Coincident points, for which dividing by d has no answer, do no harm.

    Parameters
    ----------
    pattern, r, intensity, correction, normalise
        As in `k_function`; the correction "border" does not apply.
    bandwidth : float
        Standard deviation of the kernel, in the domain's unit, at most 1000 extents; it reaches sqrt(5) bandwidths far.

    References
    ----------
    As in `k_function`.
    """
    r = _distances(pattern, r)
    if isinstance(pattern.domain, LinearNetwork):
        streets = "ang" if correction is None else correction
        return linear_network.pair_correlation(
            pattern, r, bandwidth=bandwidth, intensity=intensity, correction=streets, normalise=normalise
        )
    correction = CORRECTIONS[0] if correction is None else correction
    one_of("correction", correction, [name for name in CORRECTIONS if name != "border"], " in a window")
    require_smoothing(bandwidth, pattern.domain)
    weight, scale = pair_weights(pattern, intensity, normalise)
    width = float(bandwidth)
    sums = smoothed_pairs(partial(_moments, pattern, weight, correction), r, width, longest_distance(pattern.domain))
    g = sums / (scale * 2 * np.pi) / _mean_distance(r, kernel_reach(width))
    return PairCorrelation(r, frozen(g), width, correction, intensity is not None, normalise, planar=True)


def _moments(pattern: PointPattern, weight: Floats, correction: str, breaks: Floats) -> Floats:
    """(3, b) moments of the distances between points in the bins, see `plain_moments`."""
    from dpppsynth.evaluation.pairs import cells, plain_moments, summed

    window: Any = pattern.domain
    near, order = cells(pattern.xy, window.bounds, float(breaks[-1]))
    kernel, public = plain_moments, ()
    if correction == "isotropic":
        kernel, public = _isotropic(window, near)
    elif correction == "translation":
        kernel, public = _translation(window, float(breaks[-1]), len(pattern))
    return summed(lambda first, last: kernel(first, last, near, weight[order], breaks, *public), len(pattern))


def _isotropic(window: Window, near: Any) -> tuple[Any, tuple[Any, ...]]:
    """Sums over the pairs with isotropic correction, and what they need to know of the window."""
    from dpppsynth.evaluation.isotropic_correction import border, directed, polygon_moments, rectangle_moments

    x0, y0, x1, y1 = window.bounds
    if not window.is_rectangle:
        return polygon_moments, (directed(border(window) - (x0, y0, x0, y0)),)
    margin = np.maximum(np.column_stack([near.x, near.y, (x1 - x0) - near.x, (y1 - y0) - near.y]), 0.0)
    return rectangle_moments, (margin, margin.min(axis=1))


def _translation(window: Window, reach: float, n: int) -> tuple[Any, tuple[Any, ...]]:
    """Sums over the pairs with translation correction, and what they need to know of the window."""
    from dpppsynth.evaluation.translation_correction import lattice, polygon_moments, rectangle_moments, window_outline

    x0, y0, x1, y1 = window.bounds
    if window.is_rectangle:
        return rectangle_moments, (x1 - x0, y1 - y0)
    pairs = n**2 / 2 * min(1.0, np.pi * reach**2 / window.area)
    return polygon_moments, (
        window_outline(window),
        lattice(window, reach, pairs),
    )


def _inner_k(pattern: PointPattern, weight: Floats, r: Floats) -> Floats:
    """(b,) sums of the weights of partners, average over the points that the border is at least r away from."""
    import shapely

    from dpppsynth.evaluation.pairs import cells, inner_sums, summed

    outline, slack = pattern.domain.geometry.boundary, rounding(pattern.domain)
    shapely.prepare(outline)
    breaks = _reached(r, pattern.domain)
    near, order = cells(pattern.xy, pattern.domain.bounds, float(breaks[-1]))
    away = shapely.distance(outline, shapely.points(pattern.xy[order]))
    inner = np.searchsorted(r, away + slack, side="right")
    sums = summed(lambda first, last: inner_sums(first, last, near, weight[order], breaks, inner), len(pattern))
    pairs, points = np.cumsum(sums[:, :-1], axis=1)
    # Where all weights were taken away again, rounding may stay behind.
    some = np.arange(len(r)) < inner.max()
    return np.where(some, pairs, np.nan) / np.where(some, points, 1)


def _reached(r: Floats, window: Domain) -> Floats:
    """(b,) distances r, and a little more for rounding, as far as there are pairs."""
    return np.minimum(r + rounding(window), longest_distance(window))


def _mean_distance(r: Floats, reach: float) -> Floats:
    """(b,) averages of |t| over the Epanechnikov kernel around r: r, where the kernel does not reach zero."""
    q = np.minimum(r, reach) / reach
    return r + reach * (1 - q) ** 3 * (3 + q) / 8


def _distances(pattern: Any, r: npt.ArrayLike | None) -> Floats:
    require_pairs(instance("pattern", pattern, PointPattern))
    return checked_distances(default_distances(pattern.domain) if r is None else r)
