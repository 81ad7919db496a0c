"""Translation edge correction: the set covariance of a window, and weighted sums over pairs.

The area |W and W + h| is exact: a closed form on rectangles, on other windows a sum over the pairs of border pieces, of
W and of W + h, that lie above or below each other. Where that takes long see `lattice`.

Compiled when first called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpppsynth.core.sorted_search import BUCKETS, add, compiled, table
from dpppsynth.core.types import Floats
from dpppsynth.evaluation.pairs import Cells, partners
from dpppsynth.evaluation.ring import MOST, border
from dpppsynth.spatial.domains import Window


class Outline(NamedTuple):
    """Pieces of a window's border that are not vertical, by growing `left` (E,), where they begin.

    They end at `right`; `height` is their y at the left end and `slope` dy/dx; `side` is 1 where the window lies below
    and -1 where it lies above. `farthest` holds the largest `right` so far.
    """

    left: Floats
    right: Floats
    height: Floats
    slope: Floats
    side: Floats
    farthest: Floats
    area: float


def window_outline(window: Window) -> Outline:
    """Outline of a window, relative to the middle of its bounding box."""
    x0, y0, x1, y1 = window.bounds
    middle = np.array([x0 + x1, y0 + y1, x0 + x1, y0 + y1]) / 2
    edges = border(window) - middle
    edges = edges[edges[:, 0] != edges[:, 2]]
    # The window is on the left: above a piece that goes to the right.
    side = np.where(edges[:, 0] < edges[:, 2], -1.0, 1.0)
    edges = np.where(side[:, None] < 0, edges, edges[:, [2, 3, 0, 1]])
    order = np.argsort(edges[:, 0], kind="stable")
    (left, low, right, high), side = edges[order].T.copy(), side[order]
    slope = (high - low) / (right - left)
    return Outline(left, right, low, slope, side, np.maximum.accumulate(right), window.area)


def terms(shape: Outline) -> int:
    """Number of pairs of pieces that lie above or below each other."""
    before = np.searchsorted(shape.left, shape.right) - np.searchsorted(np.sort(shape.right), shape.left, "right")
    return int(before.sum())


@compiled
def overlap(x: float, y: float, shape: Outline) -> float:
    """Area that a window has in common with itself, moved by (x, y).

    A window is the sum of what lies below its pieces, each with its sign; so what two windows have in common is the
    sum, over pairs of pieces, of what lies below both.
    """
    total = 0.0
    for e in range(len(shape.left)):
        # Range of moved pieces that contains all overlapping ones.
        first = above(shape.left[e] - x, shape.farthest)
        for f in range(first, len(shape.left)):
            start = shape.left[f] + x
            if start >= shape.right[e]:
                break
            left, right = max(shape.left[e], start), min(shape.right[e], shape.right[f] + x)
            if left >= right:
                continue
            p = shape.height[f] + y + shape.slope[f] * (left - start)
            q = p + shape.slope[f] * (right - left)
            u = shape.height[e] + shape.slope[e] * (left - shape.left[e]) - p
            v = u + (shape.slope[e] - shape.slope[f]) * (right - left)
            both = (p + q) / 2
            if u < 0 and v < 0:
                both += (u + v) / 2
            elif u < 0 or v < 0:
                both -= min(u, v) ** 2 / (2 * abs(u - v))
            total += shape.side[e] * shape.side[f] * both * (right - left)
    return total


@compiled
def above(at: float, values: Floats) -> int:
    """Index of the first of some increasing values above a number, by binary search."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def overlaps(shifts: Floats, shape: Outline) -> Floats:
    """(k,) areas that a window has in common with itself, moved by shifts (k, 2)."""
    out = np.empty(len(shifts))
    for i in range(len(shifts)):
        out[i] = overlap(shifts[i, 0], shifts[i, 1], shape)
    return out


@compiled
def rectangle_moments(
    first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, width: float, height: float
) -> Floats:
    """(3, b) moments as by `plain_moments`, with translation correction in a rectangle."""
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    area = width * height
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j = who[c]
            covered = (width - abs(cells.x[j] - cells.x[k])) * (height - abs(cells.y[j] - cells.y[k]))
            w = 2 * area / max(covered, area / MOST)
            add(out, math.sqrt(squared[c]), w * weight[k] * weight[j], breaks, bins, scale)
    return out
