"""Translation edge correction: which share of a window the window itself covers when moved, and sums that weigh by it.

The area |W and W + h| is exact: a closed form on rectangles, on other windows a sum over the pairs of border pieces, of
W and of W + h, that lie above or below each other. On complicated windows with many points it is read off a lattice
instead. At nodes in polar coordinates (r, angle) of the shift h the lattice holds the loss `q = (|W| - |W and W + h|) /
r`, whose limit at r = 0 is half the length of the border's shadow. For short shifts the area is a quadratic function of
r, and q linear; along the angle r q is interpolated linearly in h, and directions of long pieces of the border, where
it bends, are nodes. For r up to a quarter of the shorter side a single weight was off by 2e-6 at most on discs and
L-shapes, by 3e-3 on ragged discs with 1000 corners, and by 5e-3 on a comb with teeth narrower than r; on average over
shifts by 1e-4 at most.

Compiled when first called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpppsynth.buckets import BUCKETS, Floats, Ints, below, compiled, table
from dpppsynth.domains import Window
from dpppsynth.evaluation.pairs import Cells, add, partners
from dpppsynth.evaluation.ring import MOST, border

# Pairs of points times pairs of border pieces beyond which the lattice is quicker; nodes of the lattice times the same
# are about as many. A second or two.
MOST_TERMS = 1e8
# Steps of the coarsest lattice along r and along the angle, how much finer one is at most, and directions of the border
# among the nodes.
RADII, ANGLES, FINEST, DIRECTIONS = 24, 96, 8, 64
# Angles that differ by less are one.
TOGETHER = 1e-6


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


class Lattice(NamedTuple):
    """Losses (A, R) at angles (A,), increasing from 0 to pi, and distances that are multiples of `step`.

    `node` (A, 2) are the directions of the angles.
    """

    loss: Floats
    angle: Floats
    node: Floats
    area: float
    step: float


def outline(window: Window) -> Outline:
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


def lattice(window: Window, reach: float) -> Lattice:
    """Losses of a window for shifts up to reach."""
    shape, edges = outline(window), border(window)
    step = edges[:, 2:] - edges[:, :2]
    finer = min(max(math.sqrt(MOST_TERMS / (terms(shape) * RADII * ANGLES)), 1.0), FINEST)
    radii, angle = int(RADII * finer), _angles(step, int(ANGLES * finer))
    node, r = np.column_stack([np.cos(angle), np.sin(angle)]), np.linspace(0, reach, radii + 1)
    shadow = np.abs(node[:, :1] * step[:, 1] - node[:, 1:] * step[:, 0]).sum(axis=1) / 2
    # Moved to and fro a window covers as much of itself: the last angle is the first one.
    covered = overlaps((node[:-1, None] * r[1:, None]).reshape(-1, 2), shape).reshape(-1, radii)
    loss = np.column_stack([shadow[:-1], (window.area - covered) / r[1:]])
    return Lattice(np.vstack([loss, loss[:1]]), angle, node, window.area, float(reach / radii))


def _angles(step: Floats, count: int) -> Floats:
    """Angles (A,) of a lattice: so many equal steps, and directions of a border with pieces along step (E, 2)."""
    bend = (np.arctan2(step[:, 1], step[:, 0]) % math.pi)[np.argsort(-np.hypot(*step.T), kind="stable")]
    _, longest = np.unique(np.round(bend, 6), return_index=True)
    bend = bend[np.sort(longest)][:DIRECTIONS]
    even = np.linspace(0, math.pi, count + 1)
    # Nodes that fall together but for rounding would divide by it.
    apart = np.abs(even[:, None] - bend).min(axis=1) > TOGETHER
    apart[[0, -1]] = True
    inner = (bend > TOGETHER) & (bend < math.pi - TOGETHER)
    return np.unique(np.concatenate([even[apart], bend[inner]]))


@compiled
def overlap(x: float, y: float, shape: Outline) -> float:
    """Area that a window has in common with itself, moved by (x, y).

    A window is the sum of what lies below its pieces, each with its sign; so what two windows have in common is the
    sum, over pairs of pieces, of what lies below both.
    """
    total = 0.0
    for e in range(len(shape.left)):
        # The moved pieces among which all that overlap are.
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
    """Number of the first of some increasing values that lies above."""
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


@compiled
def exact_moments(first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, shape: Outline) -> Floats:
    """(3, b) moments as by `plain_moments`, with translation correction in any window."""
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j = who[c]
            covered = overlap(cells.x[j] - cells.x[k], cells.y[j] - cells.y[k], shape)
            w = 2 * shape.area / max(covered, shape.area / MOST)
            add(out, math.sqrt(squared[c]), w * weight[k] * weight[j], breaks, bins, scale)
    return out


@compiled
def lattice_moments(first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, loss: Lattice) -> Floats:
    """(3, b) moments as by `plain_moments`, with translation correction read off a lattice."""
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins, sectors = table(breaks, scale, BUCKETS), table(loss.angle, BUCKETS / math.pi, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j, d = who[c], math.sqrt(squared[c])
            covered = loss.area - lost(cells.x[j] - cells.x[k], cells.y[j] - cells.y[k], d, loss, sectors)
            w = 2 * loss.area / max(covered, loss.area / MOST)
            add(out, d, w * weight[k] * weight[j], breaks, bins, scale)
    return out


@compiled
def lost(x: float, y: float, d: float, loss: Lattice, sectors: Ints) -> float:
    """Area that a window does not cover of itself, moved by (x, y), d far; sectors is a table of the angles."""
    if y < 0:
        x, y = -x, -y
    last = min(max(below(math.atan2(y, x), loss.angle, sectors, BUCKETS / math.pi), 1), len(loss.angle) - 1)
    ux, uy, vx, vy = loss.node[last - 1, 0], loss.node[last - 1, 1], loss.node[last, 0], loss.node[last, 1]
    cell = min(int(d / loss.step), loss.loss.shape[1] - 2)
    share = d / loss.step - cell
    before = loss.loss[last - 1, cell] * (1 - share) + loss.loss[last - 1, cell + 1] * share
    after = loss.loss[last, cell] * (1 - share) + loss.loss[last, cell + 1] * share
    return (before * (x * vy - y * vx) + after * (ux * y - uy * x)) / (ux * vy - uy * vx)
