"""Pairs of points in the plane within a distance of each other, by a cell list, and sums over them by distance.

Points are sorted into square cells, so that memory grows with the points and not with the pairs. Compiled when first
called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dpppsynth.core.sorted_search import BUCKETS, add, number_below, table
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import compiled

# Cells along the reach, where there are points enough to fill them.
FINENESS = 8
# Points handled by one thread at a time; a fixed number, so that sums come out the same on every machine.
SHARE = 256


class Cells(NamedTuple):
    """Points in the order of square cells, row by row: coordinates (n,) less the lower left corner of the bounding box.

    `first` (rows columns + 1,) is the number of the first point in each cell, `side` that of the cells.
    """

    x: Floats
    y: Floats
    first: Ints
    rows: int
    columns: int
    side: float


def cells(xy: Floats, bounds: tuple[float, float, float, float], reach: float) -> tuple[Cells, Ints]:
    """Sort points (n, 2) into cells for a search within reach; return also their original numbers (n,)."""
    n, corner = len(xy), np.array(bounds[:2])
    width, height = np.array(bounds[2:]) - corner
    # A point or more for each cell on average, however narrow the box.
    side = max(reach / FINENESS, math.sqrt(width * height / n), width / n, height / n)
    columns, rows = int(width / side) + 1, int(height / side) + 1
    x, y = (xy - corner).T
    cell = (y / side).astype(np.int64) * columns + (x / side).astype(np.int64)
    order = np.argsort(cell, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=rows * columns))])
    return Cells(x[order].copy(), y[order].copy(), first, rows, columns, float(side)), order


def summed(share: Callable[[int, int], Floats], n: int) -> Floats:
    """Sum of `share(first, last)` over portions of n points, computed by several threads."""
    cuts = range(0, n, SHARE)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(share, cuts, (min(start + SHARE, n) for start in cuts))
        total = next(parts)
        for part in parts:
            total += part
    return total


@compiled
def partners(k: int, later: bool, reach: float, cells: Cells, who: Ints, squared: Floats) -> int:
    """Find the points within reach of point k, or only those of higher number, so that each pair comes up once.

    Writes their numbers and squared distances, and returns how many they are.
    """
    x, y, side, limit = cells.x[k], cells.y[k], cells.side, reach * reach
    row, count = int(y / side), 0
    lowest = row if later else max(int((y - reach) / side), 0)
    for other in range(lowest, min(int((y + reach) / side), cells.rows - 1) + 1):
        # The nearest place of that row tells how far the columns go. Rounding loses no pair that is wanted: the reach
        # exceeds the distances looked at by more (`second_order.rounding`).
        gap = max(other * side - y, y - (other + 1) * side, 0.0)
        width = math.sqrt(max(limit - gap * gap, 0.0))
        left, right = max(int((x - width) / side), 0), min(int((x + width) / side), cells.columns - 1)
        start, stop = cells.first[other * cells.columns + left], cells.first[other * cells.columns + right + 1]
        if later and other == row:
            start = k + 1
        for j in range(start, stop):
            u, v = cells.x[j] - x, cells.y[j] - y
            s = u * u + v * v
            who[count], squared[count] = j, s
            if s <= limit and j != k:
                count += 1
    return count


@compiled
def plain_moments(first: int, last: int, cells: Cells, weight: Floats, breaks: Floats) -> Floats:
    """(3, b) sums over ordered pairs of points, by distance d: of the weights, and of these times d and d squared.

    Pairs start from the points `first` to `last` and weigh the product of their points' weights (n,). Bin i holds the
    distances above `breaks[i - 1]` up to `breaks[i]`, others are left out; d is less the upper end of its bin.
    """
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            add(out, math.sqrt(squared[c]), 2 * weight[k] * weight[who[c]], breaks, bins, scale)
    return out


@compiled
def inner_sums(first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, inner: Ints) -> Floats:
    """(2, b + 1) sums for minus sampling, to be cumulated over the breaks.

    In the first row the weights of pairs of a point i and a point no farther from it than the break, where the break is
    one of the first `inner[i]`; in the second the weights of the points i.
    """
    out, scale = np.zeros((2, len(breaks) + 1)), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        end = inner[k]
        if end == 0:
            continue
        out[1, 0] += weight[k]
        out[1, end] -= weight[k]
        for c in range(partners(k, False, breaks[end - 1], cells, who, squared)):
            b = number_below(math.sqrt(squared[c]), breaks, bins, scale)
            if b < end:
                w = weight[k] * weight[who[c]]
                out[0, b] += w
                out[0, end] -= w
    return out
