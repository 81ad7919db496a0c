"""Ripley's isotropic edge correction: the exact share of a circle inside a window, and weighted sums over pairs.

Compiled when first called, so that this module is imported where it is used.
"""

from __future__ import annotations

import math

import numpy as np
import shapely

from dpppsynth.core.sorted_search import BUCKETS, add, table
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import compiled
from dpppsynth.evaluation.pairs import Cells, partners
from dpppsynth.spatial.domains import Window

# A pair counts at most so often. Where hardly anything of a circle lies in the window a single pair would else outweigh
# all others; the bias is small, as such pairs are rare.
MOST = 100.0
FULL = 2 * math.pi
# Angles that differ by less differ by rounding.
NOTHING = 1e-9
# Rotation by one radian, from a point where the circle touches the border to another point of the circle.
COS, SIN = math.cos(1), math.sin(1)


def border(window: Window) -> Floats:
    """(E, 4) straight pieces of the border, from x, y to x, y, with the window on their left."""
    rings = [ring for part in shapely.get_parts(window.geometry) for ring in (part.exterior, *part.interiors)]
    corners = [shapely.get_coordinates(ring) for ring in rings]
    return np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in corners])


@compiled
def rectangle_weight(margin: Floats, d: float) -> float:
    """Inverse share of a circle of radius d in a rectangle whose sides lie at distances (4,) from the centre.

    The margins go around, and are not negative. Each side cuts off an arc; two that meet in a corner inside the circle
    share a part of it.
    """
    out, first, before = 0.0, 0.0, 0.0
    for side in range(4):
        angle = 0.0
        if margin[side] < d:
            angle = math.acos(margin[side] / d)
            out += 2 * angle - max(angle + before - math.pi / 2, 0.0)
        if side == 0:
            first = angle
        before = angle
    out -= max(first + before - math.pi / 2, 0.0)
    return min(FULL / max(FULL - out, FULL / MOST), MOST)


@compiled
def rectangle_moments(
    first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, margin: Floats, near: Floats
) -> Floats:
    """(3, b) moments as by `plain_moments`, with isotropic correction in a rectangle.

    Points are `margin` (n, 4) away from its sides, in their order around, and `near` (n,) from the nearest.
    """
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    for k in range(first, last):
        for c in range(partners(k, True, breaks[-1], cells, who, squared)):
            j, d = who[c], math.sqrt(squared[c])
            w = 1.0 if d <= near[k] else rectangle_weight(margin[k], d)
            w += 1.0 if d <= near[j] else rectangle_weight(margin[j], d)
            add(out, d, w * weight[k] * weight[j], breaks, bins, scale)
    return out


def directed(edges: Floats) -> Floats:
    """(E, 6) pieces of a border (E, 4), and their directions of length one."""
    step = edges[:, 2:] - edges[:, :2]
    return np.hstack([edges, step / np.hypot(*step.T)[:, None]])


@compiled
def polygon_moments(first: int, last: int, cells: Cells, weight: Floats, breaks: Floats, edges: Floats) -> Floats:
    """(3, b) moments as by `plain_moments`, with isotropic correction in a polygon.

    From each point its partners are taken by growing distance, and pieces of the border (E, 6), as by `directed` and
    less the corner of the cells, in the order in which circles around the point begin to meet them. So a pair costs
    only the pieces that its own circle meets.
    """
    out, scale = np.zeros((3, len(breaks))), BUCKETS / breaks[-1]
    bins = table(breaks, scale, BUCKETS)
    who, squared = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
    seen, met = np.empty((4, len(edges))), np.empty(len(edges), dtype=np.int64)
    for k in range(first, last):
        count = partners(k, False, breaks[-1], cells, who, squared)
        if count == 0:
            continue
        x, y = cells.x[k], cells.y[k]
        see(x, y, edges, seen)
        near = np.flatnonzero(seen[0] < squared[:count].max())
        coming, active, begun = near[np.argsort(seen[0][near])], 0, 0
        for place in np.argsort(squared[:count]):
            j, s, arc = who[place], squared[place], FULL
            while begun < len(coming) and seen[0, coming[begun]] < s:
                met[active] = coming[begun]
                active += 1
                begun += 1
            if begun > 0:
                arc, active = polygon_arc(s, x, y, cells.x[j] - x, cells.y[j] - y, met, active, seen, edges)
            w = min(FULL / max(arc, FULL / MOST), MOST)
            add(out, math.sqrt(s), w * weight[k] * weight[j], breaks, bins, scale)
    return out


@compiled
def see(x: float, y: float, edges: Floats, seen: Floats) -> None:
    """Squared distances of border pieces from a point, written into `seen`.

    Writes for each piece the squared distance of its nearest place, those of its start and end, and the distance of its
    line, positive where the line passes on the right.
    """
    for e in range(len(edges)):
        ax, ay, bx, by = edges[e, 0] - x, edges[e, 1] - y, edges[e, 2] - x, edges[e, 3] - y
        ux, uy = edges[e, 4], edges[e, 5]
        start, end, away = ax * ax + ay * ay, bx * bx + by * by, ux * ay - uy * ax
        seen[0, e], seen[1, e], seen[2, e], seen[3, e] = min(start, end), start, end, away
        if ax * ux + ay * uy < 0 < bx * ux + by * uy:
            seen[0, e] = min(away * away, seen[0, e])


@compiled
def polygon_arc(
    s: float, x: float, y: float, px: float, py: float, met: Ints, active: int, seen: Floats, edges: Floats
) -> tuple[float, int]:
    """Arc inside of a circle around (x, y) of squared radius s, from its crossings with the border.

    Angles count from the direction (px, py) of a point on the circle that is inside. Where the border enters the circle
    the window ends, going around, and it begins where the border leaves. Pieces that lie within the circle are dropped
    from those met so far; also returns how many are left.
    """
    arc, i = FULL, 0
    while i < active:
        e = met[i]
        start, end, away = seen[1, e], seen[2, e], seen[3, e]
        if start < s and end < s:
            active -= 1
            met[i] = met[active]
            continue
        i += 1
        # Crossings lie half a chord to either side of the foot of the perpendicular from the centre.
        ux, uy = edges[e, 4], edges[e, 5]
        half = math.sqrt(max(s - away * away, 0.0))
        fx, fy = -away * uy, away * ux
        if start >= s:
            arc += turn(px, py, fx - half * ux, fy - half * uy)
        if end >= s:
            arc -= turn(px, py, fx + half * ux, fy + half * uy)
    # A whole turn more or less comes from a point on the border itself, just before or after a crossing.
    while arc > FULL + NOTHING:
        arc -= FULL
    while arc < -NOTHING:
        arc += FULL
    if arc < NOTHING or arc > FULL - NOTHING:
        # The circle crosses no border, or touches it once: any other point decides between none and all of it.
        rotated = px * COS - py * SIN, px * SIN + py * COS
        arc = FULL if inside(x + rotated[0], y + rotated[1], edges) else 0.0
    return arc, active


@compiled
def inside(x: float, y: float, edges: Floats) -> bool:
    """Whether a point lies in the window with the border `edges` (E, 6), by ray casting."""
    odd = False
    for e in range(len(edges)):
        ax, ay, bx, by = edges[e, 0] - x, edges[e, 1] - y, edges[e, 2] - x, edges[e, 3] - y
        if (ay > 0) != (by > 0) and (ax * by - ay * bx > 0) == (by > ay):
            odd = not odd
    return odd


@compiled
def turn(px: float, py: float, x: float, y: float) -> float:
    """Angle from one direction to another, from 0 to 2 pi."""
    angle = math.atan2(px * y - py * x, px * x + py * y)
    return angle if angle >= 0 else angle + FULL
