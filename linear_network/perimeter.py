"""Number of network points at a given distance from a point, and the geometrically corrected sums over pairs.

Compiled when first called, so that this module is imported where it is used (docs/theory/network.md, section 2).
"""

from __future__ import annotations

import numpy as np

from dpppsynth.core.sorted_search import BUCKETS, add, number_below, table
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import compiled


@compiled
def _meetings(
    edge: int, along: float, to_vertex: Floats, ends: Ints, lengths: Floats, limit: float, rounding: float
) -> tuple[Floats, Floats, Ints, int]:
    """Steps of `m(u, .)` at u and inside edges, as yet unordered, with room for those at vertices.

    Returns their distances and heights, the number (V,) of edges along which shortest paths arrive at each vertex, and
    the number of steps.
    """
    size = len(to_vertex)
    at, by = np.empty(2 * (size + len(lengths)) + 3), np.empty(2 * (size + len(lengths)) + 3)
    arrivals = np.zeros(size, dtype=np.int64)
    # At distance zero there is the point alone, then two ways lead away from it.
    at[0], by[0], k = rounding, 1.0, 1
    for e in range(len(lengths) + 1):
        # The point cuts its own edge in two.
        if e == edge:
            a, b, length = -1, ends[e, 0], along
        elif e == len(lengths):
            a, b, length = -1, ends[edge, 1], lengths[edge] - along
        else:
            a, b, length = ends[e, 0], ends[e, 1], lengths[e]
        near, far = 0.0 if a < 0 else to_vertex[a], to_vertex[b]
        if near > far:
            near, far, b = far, near, a
        meet = (near + far + length) / 2
        if meet - far <= rounding:
            arrivals[b] += 1
        elif meet <= limit:
            at[k], by[k], at[k + 1], by[k + 1] = meet - rounding, -1.0, meet + rounding, -1.0
            k += 2
    return at, by, arrivals, k


@compiled
def perimeter(
    edge: int, along: float, to_vertex: Floats, ends: Ints, lengths: Floats, degree: Ints, limit: float, rounding: float
) -> tuple[Floats, Ints]:
    """Steps (k,) of `m(u, .)`, the number of points exactly at a distance from the point u, and its values (k + 1,).

    `m(u, r) = count[number of steps below r]`. `to_vertex` (V,) are distances from u to the vertices, infinite beyond
    the limit up to which steps are wanted, `ends` (E, 2) and `lengths` (E,) the edges, `degree` (V,) numbers of ends of
    edges at the vertices. Distances that differ by no more than the rounding are equal.
    """
    at, by, arrivals, k = _meetings(edge, along, to_vertex, ends, lengths, limit, rounding)
    for v in range(len(to_vertex)):
        if to_vertex[v] <= limit:
            if arrivals[v] != 1:
                at[k], by[k] = to_vertex[v] - rounding, 1.0 - arrivals[v]
                k += 1
            if degree[v] - arrivals[v] != 1:
                at[k], by[k] = to_vertex[v] + rounding, degree[v] - arrivals[v] - 1.0
                k += 1
    order = np.argsort(at[:k])
    count = np.ones(k + 1, dtype=np.int64)
    for i in range(k):
        count[i + 1] = count[i] + np.int64(by[order[i]])
    return at[order], count


@compiled
def pair_moments(
    sources: Ints,
    to_vertices: Floats,
    positions: Floats,
    weight: Floats,
    corrected: bool,
    ends: Ints,
    lengths: Floats,
    degree: Ints,
    breaks: Floats,
    rounding: float,
) -> Floats:
    """(3, b) sums over ordered pairs of points, by their distance d: of weights, and of these times d and d squared.

    In place of d stands d less the upper end of its bin: bin i holds the distances above `breaks[i - 1]` up to
    `breaks[i]`, others are left out. Pairs start from the points `sources` (k,), whose distances to the vertices are
    `to_vertices` (k, V). A pair weighs the product of its points' weights, divided by `m(u, d)` where corrected, u
    being the start.
    """
    out = np.zeros((3, len(breaks)))
    limit = breaks[-1]
    scale = BUCKETS / limit
    bins = table(breaks, scale, BUCKETS)
    for i in range(len(sources)):
        source, to_vertex = int(sources[i]), to_vertices[i]
        edge, along = int(positions[source, 0]), positions[source, 1]
        if corrected:
            steps, count = perimeter(edge, along, to_vertex, ends, lengths, degree, limit + rounding, rounding)
            first = table(steps, scale, BUCKETS)
        for j in range(len(positions)):
            f, t = int(positions[j, 0]), positions[j, 1]
            d = min(to_vertex[ends[f, 0]] + t, to_vertex[ends[f, 1]] + lengths[f] - t)
            if f == edge:
                d = min(d, abs(along - t))
            if d > limit or j == source:
                continue
            w = weight[source] * weight[j]
            if corrected:
                w /= max(1, count[number_below(d, steps, first, scale)])
            add(out, d, w, breaks, bins, scale)
    return out
