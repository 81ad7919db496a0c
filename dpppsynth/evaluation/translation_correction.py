"""Translation edge correction: the set covariance of a window, and weighted sums over pairs.

The area |W and W + h| is exact: a closed form on rectangles, on other windows a sum over the pairs of border pieces, of
W and of W + h, that lie above or below each other. Where that takes long it is interpolated on a polar lattice.

At nodes in polar coordinates (r, angle) of the shift h the lattice holds the loss `q = (|W| - |W and W + h|) / r`,
whose limit at r = 0 is half the length of the border's shadow. For short shifts the area is a quadratic function of r,
and q linear; along the angle r q is interpolated linearly in h, and directions of long pieces of the border, where it
bends, are nodes. The nodes of each fineness depend on the window alone.

Every second node along either axis is predicted from its neighbours. Where the prediction of a weight is off by more
than TOLERANCE, or next to such a place, areas are exact; elsewhere all nodes together predict twice as well or better.
Where too much, but less than half, is left to exact areas the lattice is refined. Then it is compared with exact areas
at some fixed shifts; where one of them is off by more than TOLERANCE all areas are exact, which may take minutes. What
remains: between nodes and fixed shifts nothing is known for certain.

Compiled when first called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.core.sorted_search import BUCKETS, add, number_below, table
from dpppsynth.core.types import Floats, Ints
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
    """Area of the overlap of a window with its copy moved by (x, y).

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
    """(k,) areas of the overlaps of a window with its copies moved by shifts (k, 2)."""
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


# Pairs of points times pairs of border pieces beyond which a lattice is tried, or a finer one; nodes of the coarsest
# lattice times the same are about as many for short reaches. A second or two.
MOST_TERMS = 1e8
# Error of a weight that is accepted, relative; fixed shifts that are looked at.
TOLERANCE, AUDIT = 1e-3, 512
# Steps of the coarsest lattice along r, up to the diameter, and along the angle; nodes that short reaches take then,
# how much finer one is at most, and directions of the border among the nodes.
RADII, ANGLES, USUAL, FINEST, DIRECTIONS = 64, 48, 4096, 8, 64
# Angles that differ by less are one.
TOGETHER = 1e-6
Flags = npt.NDArray[np.bool_]


class Lattice(NamedTuple):
    """Relative losses of overlap (A + 1, R + 1) at angles (A + 1,) from 0 to pi and distances, multiples of `step`.

    `node` (A + 1, 2) are the directions of the angles; in cells that are `rough` (A, R) areas are to be exact.
    """

    loss: Floats
    angle: Floats
    node: Floats
    step: float
    rough: Flags


def lattice(window: Window, reach: float, pairs: float) -> Lattice:
    """Interpolation lattice for shifts up to reach; one cell, exact areas, where that is quicker or more accurate."""
    shape, pieces = window_outline(window), terms(window_outline(window))
    finer, left, known = min(max(math.sqrt(MOST_TERMS / (pieces * USUAL)), 1.0), FINEST), pairs, exact_areas()
    while left * pieces > MOST_TERMS and finer <= FINEST:
        angle, r = _nodes(window, reach, finer)
        # A window whose weights are rough nearly everywhere stays so on a finer lattice.
        if left <= 2 * len(angle) * len(r) or pairs / 2 < left < pairs:
            break
        known = _tabulated(window, shape, angle, r)
        left = pairs * float(np.average(known.rough, weights=np.outer(np.diff(angle), r[1:])))
        finer *= 2
    by = fixed_shifts(reach)
    wrong = _relative(areas(by, shape, known), overlaps(by, shape), window.area)
    return exact_areas() if wrong.max() > TOLERANCE else known


def _nodes(window: Window, reach: float, finer: float) -> tuple[Floats, Any]:
    """Angles (A + 1,) and distances (R + 1,) of a lattice; every second one is one of those that predict."""
    edges = border(window)
    coarse, step = (
        _angles(edges[:, 2:] - edges[:, :2], int(ANGLES * finer)),
        longest_distance(window) / int(RADII * finer) / 2,
    )
    angle = np.sort(np.concatenate([coarse, (coarse[1:] + coarse[:-1]) / 2]))
    return angle, step * np.arange(2 * math.ceil(reach / step / 2) + 1)


def _tabulated(window: Window, shape: Outline, angle: Floats, r: Any) -> Lattice:
    edges, node = border(window), np.column_stack([np.cos(angle), np.sin(angle)])
    drawn = edges[:, 2:] - edges[:, :2]
    shadow = np.abs(node[:, :1] * drawn[:, 1] - node[:, 1:] * drawn[:, 0]).sum(axis=1) / 2
    # The set covariance is symmetric in the shift: the last angle stands for the first one.
    covered = overlaps((node[:-1, None] * r[1:, None]).reshape(-1, 2), shape).reshape(-1, len(r) - 1)
    loss = np.column_stack([shadow[:-1], (window.area - covered) / r[1:]])
    loss = np.vstack([loss, loss[:1]])
    return Lattice(loss, angle, node, float(r[1]), _rough(loss, angle, r, window.area))


def exact_areas() -> Lattice:
    """Lattice of one cell, in which areas are to be exact."""
    angle = np.array([0.0, math.pi])
    node = np.column_stack([np.cos(angle), np.sin(angle)])
    return Lattice(np.zeros((2, 2)), angle, node, math.inf, np.ones((1, 1), dtype=np.bool_))


def fixed_shifts(reach: float) -> Floats:
    """(AUDIT, 2) shifts spread evenly over the half disc of radius reach, by the golden section."""
    k = np.arange(AUDIT) + 0.5
    r, angle = reach * np.sqrt(k / AUDIT), math.pi * (k * (math.sqrt(5) - 1) / 2 % 1)
    return np.column_stack([r * np.cos(angle), r * np.sin(angle)])


def _relative(covered: Floats, expected: Floats, area: float) -> Floats:
    """Errors of weights, relative to them: a weight is at most MOST."""
    return np.asarray(np.abs(covered - expected) / np.maximum(np.minimum(covered, expected), area / MOST))


def _rough(loss: Floats, angle: Floats, r: Any, area: float) -> Flags:
    """(A, R) cells of a lattice in and next to which every second node is not predicted by its neighbours."""
    even = loss.copy()
    even[:, 1::2] = (loss[:, :-1:2] + loss[:, 2::2]) / 2
    # Halfway between directions u and v, their mean is as short as the cosine of half the angle between them.
    even[1::2] = (even[:-1:2] + even[2::2]) / 2 / np.cos((angle[2::2] - angle[:-1:2]) / 2)[:, None]
    off = _relative(area - r * even, area - r * loss, area) > TOLERANCE
    rough = off[:-1, :-1] | off[1:, :-1] | off[:-1, 1:] | off[1:, 1:]
    # Angles go around, distances do not.
    rough |= np.roll(rough, 1, axis=0) | np.roll(rough, -1, axis=0)
    wide = np.pad(rough, ((0, 0), (1, 1)))
    return np.asarray(wide[:, :-2] | rough | wide[:, 2:])


def _angles(step: Floats, count: int) -> Floats:
    """Angles (A + 1,) of a lattice: so many equal steps, and directions of a border with pieces along step (E, 2)."""
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
def polygon_moments(
    first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, shape: Outline, known: Lattice
) -> Floats:
    """(3, b) moments as by `plain_moments`, with translation correction in any window."""
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins, sectors = table(breaks, scale, BUCKETS), table(known.angle, BUCKETS / math.pi, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j, d = who[c], math.sqrt(squared[c])
            covered = area(cells.x[j] - cells.x[k], cells.y[j] - cells.y[k], d, shape, known, sectors)
            w = 2 * shape.area / max(covered, shape.area / MOST)
            add(out, d, w * weight[k] * weight[j], breaks, bins, scale)
    return out


@compiled
def areas(shifts: Floats, shape: Outline, known: Lattice) -> Floats:
    """(k,) areas of overlap as by `overlaps`, interpolated from a lattice where that is accurate."""
    out, sectors = np.empty(len(shifts)), table(known.angle, BUCKETS / math.pi, BUCKETS)
    for i in range(len(shifts)):
        x, y = shifts[i]
        out[i] = area(x, y, math.hypot(x, y), shape, known, sectors)
    return out


@compiled
def area(x: float, y: float, d: float, shape: Outline, known: Lattice, sectors: Ints) -> float:
    """Area of overlap with the copy moved by (x, y), d away; `sectors` is a search table of the lattice's angles."""
    if y < 0:
        x, y = -x, -y
    last = min(
        max(number_below(math.atan2(abs(y), x), known.angle, sectors, BUCKETS / math.pi), 1), len(known.angle) - 1
    )
    cell = min(int(d / known.step), known.rough.shape[1] - 1)
    if known.rough[last - 1, cell]:
        return overlap(x, y, shape)
    ux, uy, vx, vy = known.node[last - 1, 0], known.node[last - 1, 1], known.node[last, 0], known.node[last, 1]
    share = d / known.step - cell
    before = known.loss[last - 1, cell] * (1 - share) + known.loss[last - 1, cell + 1] * share
    after = known.loss[last, cell] * (1 - share) + known.loss[last, cell + 1] * share
    return shape.area - (before * (x * vy - y * vx) + after * (ux * y - uy * x)) / (ux * vy - uy * vx)
