"""Translation edge correction: the set covariance of a window, and weighted sums over pairs.

The area |W and W + h| is exact: a closed form on rectangles, on other windows a sum over the pairs of border pieces, of
W and of W + h, that lie above or below each other. Where that takes long it is interpolated on a polar lattice.

At nodes in polar coordinates (r, angle) of the shift h the lattice holds the loss `q = (|W| - |W and W + h|) / r`,
whose limit at r = 0 is half the length of the border's shadow. For short shifts the area is a quadratic function of r,
and q linear; along the angle r q is interpolated linearly in h. The nodes of each fineness depend on the window alone.

The lattice is compared with exact areas at fixed shifts; where the weight of one of them is off by more than half of
TOLERANCE all areas are exact, which may take minutes. Between nodes and fixed shifts nothing is known for certain.

Compiled when first called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.sorted_search import BUCKETS, add, table
from dpppsynth.core.types import Floats
from dpppsynth.core.workers import compiled
from dpppsynth.evaluation.isotropic_correction import MOST, border
from dpppsynth.evaluation.pairs import Cells, partners
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.second_order import longest_distance


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
        first = np.searchsorted(shape.farthest, shape.left[e] - x, side="right")
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


# Pairs of points times pairs of border pieces beyond which a lattice is tried: a second or two.
MOST_TERMS = 1e8
# Error of a weight that is accepted, relative; fixed shifts that are looked at.
TOLERANCE, AUDIT = 1e-3, 1024
# Steps of the coarsest lattice along r, up to the diameter, and along the angle; nodes that short reaches take then,
# and how much finer one is at most.
RADII, ANGLES, USUAL, FINEST = 256, 176, 11264, 8


class Lattice(NamedTuple):
    """Relative losses of overlap (A + 1, R + 1) at equal angles from 0 to pi and distances, multiples of `step`.

    Areas are exact where the step is infinite.
    """

    loss: Floats
    step: float


EXACT = Lattice(np.zeros((2, 2)), math.inf)


def lattice(window: Window, reach: float, pairs: float) -> Lattice:
    """Interpolation lattice for shifts up to reach; exact areas where these are quicker or it is not good enough."""
    shape = window_outline(window)
    pieces = terms(shape)
    finer = min(max(math.sqrt(MOST_TERMS / (pieces * USUAL)), 1.0), FINEST)
    step = longest_distance(window) / int(RADII * finer)
    angles, radii = 2 * int(ANGLES * finer / 2), math.ceil(reach / step)
    if pairs * pieces <= MOST_TERMS or pairs <= angles * radii:
        return EXACT
    known = _tabulated(window, shape, np.linspace(0, math.pi, angles + 1), step * np.arange(radii + 1))
    by = fixed_shifts(reach)
    found, expected = areas(by, shape, known), overlaps(by, shape)
    # A weight is at most MOST.
    wrong = np.abs(found - expected) / np.maximum(np.minimum(found, expected), window.area / MOST)
    return EXACT if wrong.max() > TOLERANCE / 2 else known


def _tabulated(window: Window, shape: Outline, angle: Floats, r: Any) -> Lattice:
    edges, node = border(window), np.column_stack([np.cos(angle), np.sin(angle)])
    drawn = edges[:, 2:] - edges[:, :2]
    shadow = np.abs(node[:, :1] * drawn[:, 1] - node[:, 1:] * drawn[:, 0]).sum(axis=1) / 2
    # The set covariance is symmetric in the shift: the last angle stands for the first one.
    covered = overlaps((node[:-1, None] * r[1:, None]).reshape(-1, 2), shape).reshape(-1, len(r) - 1)
    loss = np.column_stack([shadow[:-1], (window.area - covered) / r[1:]])
    return Lattice(np.vstack([loss, loss[:1]]), float(r[1]))


def fixed_shifts(reach: float) -> Floats:
    """(AUDIT, 2) shifts spread evenly over the half disc of radius reach, by the golden section."""
    k = np.arange(AUDIT) + 0.5
    r, angle = reach * np.sqrt(k / AUDIT), math.pi * (k * (math.sqrt(5) - 1) / 2 % 1)
    return np.column_stack([r * np.cos(angle), r * np.sin(angle)])


@compiled
def polygon_moments(
    first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, shape: Outline, known: Lattice
) -> Floats:
    """(3, b) moments as by `plain_moments`, with translation correction in any window."""
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j, d = who[c], math.sqrt(squared[c])
            covered = area(cells.x[j] - cells.x[k], cells.y[j] - cells.y[k], shape, known)
            w = 2 * shape.area / max(covered, shape.area / MOST)
            add(out, d, w * weight[k] * weight[j], breaks, bins, scale)
    return out


@compiled
def areas(shifts: Floats, shape: Outline, known: Lattice) -> Floats:
    """(k,) areas that a window has in common with itself, moved by shifts (k, 2), by a lattice."""
    out = np.empty(len(shifts))
    for i in range(len(shifts)):
        out[i] = area(shifts[i, 0], shifts[i, 1], shape, known)
    return out


@compiled
def area(x: float, y: float, shape: Outline, known: Lattice) -> float:
    """Area that a window has in common with itself, moved by (x, y)."""
    if known.step == math.inf:
        return overlap(x, y, shape)
    if y < 0:
        x, y = -x, -y
    d, wide = math.hypot(x, y), math.pi / (len(known.loss) - 1)
    place, along = math.atan2(abs(y), x) / wide, d / known.step
    i, j = min(int(place), len(known.loss) - 2), min(int(along), known.loss.shape[1] - 2)
    before = known.loss[i, j] + (along - j) * (known.loss[i, j + 1] - known.loss[i, j])
    after = known.loss[i + 1, j] + (along - j) * (known.loss[i + 1, j + 1] - known.loss[i + 1, j])
    toward = before * math.sin((i + 1 - place) * wide) + after * math.sin((place - i) * wide)
    return shape.area - d * toward / math.sin(wide)
