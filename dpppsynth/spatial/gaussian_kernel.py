"""The Gaussian kernel on a window: its mass, Poisson cluster patterns around points, and their intensity.

Every point leaves a Poisson number of children, one on average, drawn from the kernel cut to the window's convex hull;
children outside the window are dropped. On a convex window every kernel has mass 1 there (Diggle's edge correction); on
others less, because drawing again until a child is inside would cost privacy (docs/theory/kernel.md).
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from scipy.special import erf, erfinv, owens_t

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats

# Pairs of a point and a location that are held in memory at a time.
PAIRS = 2**20
# Places of a grid for each location, up to which all of them are computed.
SPARSE = 20


def sample_children(xy: Floats, window: Window, bandwidth: float, rng: RngLike = None) -> Floats:
    """(m, 2) places of one Poisson pattern with a kernel at each point (n, 2), on the window's public grid.

    The bandwidth is the kernel's standard deviation along each axis; `rng` is secret where the pattern is to be
    private. Children are in the order of their parents: shuffle them before release. InputError for a bandwidth that is
    not positive, and where a point lies outside the window.
    """
    require_bandwidth(bandwidth)
    if not window.contains(xy).all():
        msg = "xy: every point must lie in the window; some do not. Choose a larger window from public knowledge."
        raise InputError(msg)
    rng = generator(rng)
    parents = np.repeat(xy, rng.poisson(1.0, len(xy)), axis=0)
    children = _cut_to_hull(parents, hull(window), bandwidth, rng)
    # Rounding and dropping are fixed public maps, so they cost no privacy; a new draw for those dropped would.
    children = window.on_grid(children)
    return children[window.contains(children)]


def kernel_density(xy: Floats, window: Window, bandwidth: float, at: Floats) -> Floats:
    """(m,) intensity at places (m, 2), per unit of area, of the patterns that `sample_children` draws.

    Not private: it is a function of the points (n, 2).
    """
    return gaussian_sum(xy, 1 / mass(xy, hull(window), bandwidth), bandwidth, at)


def gaussian_sum(xy: Floats, weight: Floats, bandwidth: float, at: Floats) -> Floats:
    """(m,) sums at locations (m, 2) of weighted (n,) Gaussian kernels around points (n, 2), each of integral one."""
    (x, column), (y, row) = (np.unique(axis, return_inverse=True) for axis in at.T)
    if len(x) * len(y) <= SPARSE * len(at):
        return _on_grid(xy, weight, bandwidth, x, y)[column.ravel(), row.ravel()]
    value, step = np.empty(len(at)), max(1, PAIRS // max(1, len(xy)))
    for start in range(0, len(at), step):
        along = (_gaussian(at[start : start + step, k], xy[:, k], bandwidth) for k in (0, 1))
        value[start : start + step] = np.multiply(*along) @ weight
    return value


def _on_grid(xy: Floats, weight: Floats, bandwidth: float, x: Floats, y: Floats) -> Floats:
    """(len(x), len(y)) sums where columns x cross rows y: a product of matrices, many times as quick."""
    value, step = np.zeros((len(x), len(y))), max(1, PAIRS // max(1, len(x) + len(y)))
    for start in range(0, len(xy), step):
        part = slice(start, start + step)
        across = _gaussian(x, xy[part, 0], bandwidth) * weight[part]
        value += across @ _gaussian(y, xy[part, 1], bandwidth).T
    return value


def _gaussian(at: Floats, of: Floats, bandwidth: float) -> Floats:
    """(m, n) kernels around n coordinates at m others, along one axis."""
    away = (at[:, None] - of) / bandwidth
    return np.asarray(np.exp(-(away**2) / 2) / (math.sqrt(2 * math.pi) * bandwidth))


def mass(xy: Floats, window: Window, bandwidth: float) -> Floats:
    """(n,) integrals over the window of the kernels at points (n, 2), which may lie anywhere.

    By the divergence theorem a sum over the edges of the border, each one a difference of Owen's T functions. The error
    is about 1e-16 per edge, absolute.
    """
    require_bandwidth(bandwidth)
    total = np.zeros(len(xy))
    for start, end in _edges(window):
        along = (end - start) / np.hypot(*(end - start))
        away = (start[0] - xy[:, 0]) * along[1] - (start[1] - xy[:, 1]) * along[0]
        away = np.where(away == 0, np.finfo(float).tiny, away)
        with np.errstate(over="ignore"):
            first, last = (start - xy) @ along / away, (end - xy) @ along / away
        angle = np.arctan(last) - np.arctan(first)
        total += angle / (2 * math.pi) - owens_t(away / bandwidth, last) + owens_t(away / bandwidth, first)
    return total


def hull(window: Window) -> Window:
    """Convex hull of a window: the region that kernels are cut to; only its coordinates matter."""
    return window if window.is_rectangle else Window(window.geometry.convex_hull)


def require_bandwidth(bandwidth: Any) -> None:
    """Refuse a bandwidth that is not positive and finite, with an InputError."""
    remedy = "smallest_bandwidth gives one for a budget"
    positive("bandwidth", bandwidth, rule="be positive and finite", remedy=remedy)


def _cut_to_hull(parents: Floats, region: Window, bandwidth: float, rng: np.random.Generator) -> Floats:
    """One draw for every parent from its kernel cut to a convex region: from a rectangle around it, until inside."""
    corner, length, axes = _frame(region)
    low = -rotate(parents - corner, axes) / bandwidth
    high = low + length / bandwidth
    children, left = np.empty_like(parents), np.arange(len(parents))
    while len(left):
        step = _cut_normal(low[left], high[left], rng)
        children[left] = parents[left] + bandwidth * rotate(step, axes.T)
        left = left[~region.contains(children[left])]
    return children


def _frame(region: Window) -> tuple[Floats, Floats, Floats]:
    """A rectangle around a public region: a corner (2,), lengths of the sides from there (2,), their axes (2, 2)."""
    corners = shapely.get_coordinates(shapely.oriented_envelope(region.geometry))
    sides = corners[[1, 3]] - corners[0]
    length = np.hypot(*sides.T)
    return corners[0], length, sides / length[:, None]


def rotate(vectors: Floats, axes: Floats) -> Floats:
    """(n, 2) coordinates of vectors (n, 2) along two axes (2, 2), each row computed from its vector alone."""
    return np.column_stack([vectors[:, 0] * x + vectors[:, 1] * y for x, y in axes])


def _cut_normal(low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Standard normal variables cut to intervals around 0; erf keeps its digits where these are short."""
    first, last = erf(low / math.sqrt(2)), erf(high / math.sqrt(2))
    z = math.sqrt(2) * erfinv(first + (last - first) * rng.random(low.shape))
    return np.asarray(np.clip(z, low, high), dtype=np.float64)


def _edges(window: Window) -> Iterator[tuple[Floats, Floats]]:
    """Straight pieces of the border, the window on their left."""
    for part in shapely.get_parts(window.geometry):
        for ring in (part.exterior, *part.interiors):
            yield from pairwise(shapely.get_coordinates(ring))
