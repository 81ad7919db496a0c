"""Detection of overlapping edges: duplicate lines of maps, and two-way streets stored once for each direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import shapely

from dpppsynth.linear_network.skeleton import ROUNDING, Ints, Skeleton, plural


def noting_overlaps(parts: Skeleton) -> Skeleton:
    """Say in `changes`, once, how many edges run along an earlier one, which stay as they are."""
    count = len(overlapping(parts.lines))
    said = (
        f"kept {plural(count, 'edge')} along the same course as another, in whole or in part: such streets count "
        "twice, and coordinates there belong to the first. Unless they are really double, read lines with node=True "
        "and graphs through osmnx.convert.to_undirected, and collapse no more than needed"
    )
    return parts if not count or said in parts.changes else replace(parts, changes=(*parts.changes, said))


def overlapping(lines: Any) -> Ints:
    """Numbers of the LineStrings that share a stretch with an earlier one, to rounding; crossings are none."""
    line, first, last = _segments(lines)
    segments = shapely.linestrings(np.stack([first, last], axis=1))
    near = ROUNDING * (float(np.abs([first, last]).max()) + float(np.ptp(shapely.total_bounds(lines))))
    one, other = shapely.STRtree(segments).query(segments, predicate="dwithin", distance=near)
    # The longer segment of a pair gives the direction, because its direction is known better.
    length = np.hypot(*(last - first).T)
    longer = (length[one] > length[other]) | ((length[one] == length[other]) & (one < other))
    pairs = longer & (line[one] != line[other])
    one, other = one[pairs], other[pairs]
    along = (last - first)[one] / length[one, None]
    at, off = (np.stack([_product(end[other] - first[one], along, cross) for end in (first, last)]) for cross in (0, 1))
    # Distances from the longer segment's line at both ends of the stretch common to the two.
    ends = np.clip(at, 0, length[one])
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (off[1] - off[0]) / (at[1] - at[0])
        away = np.abs(off[0] + (ends - at[0]) * slope).max(axis=0)
    shared = (np.abs(ends[1] - ends[0]) > near) & (away <= near)
    return np.unique(np.maximum(line[one[shared]], line[other[shared]]))


def _segments(lines: Any) -> tuple[Ints, Any, Any]:
    """Line (S,) and ends (S, 2), (S, 2) of the straight pieces of LineStrings that have a length."""
    xy, line = shapely.get_coordinates(lines, return_index=True)
    inside = (line[1:] == line[:-1]) & (xy[1:] != xy[:-1]).any(axis=1)
    return line[1:][inside], xy[:-1][inside], xy[1:][inside]


def _product(a: Any, b: Any, cross: int) -> Any:
    """Scalar products of vectors (n, 2), or their cross products."""
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] if cross else (a * b).sum(axis=1)
