"""Places where networks are severed: crossings without a vertex, dead ends that stop short, parts left out."""

from __future__ import annotations

import numpy as np
import shapely

from dpppsynth.core.rounding import upward
from dpppsynth.core.types import Floats
from dpppsynth.core.units import lengths_in
from dpppsynth.core.wording import mention
from dpppsynth.linear_network.shortest_paths import from_positions
from dpppsynth.linear_network.skeleton import Skeleton, components, ends_of, numbered, plural


def severed(network: Skeleton, unit: str, reach: float, near: float) -> tuple[str, ...]:
    """Warnings about streets within `reach` on the map but farther apart along paths; `near` is rounding."""
    said, words = [], lengths_in(reach, unit)
    if count := uncut_places(network, near):
        said.append(
            f"domain: streets cross or touch in {plural(count, 'place')} without a common vertex; moves from one to "
            "the other are not protected there, because paths run along streets. Cut them "
            f"({mention('node', 'True')}), unless they are bridges."
        )
    gaps = short_ends(network, reach, near)
    if len(gaps):
        smallest, stop = float(gaps.min()), "dead end stops" if len(gaps) == 1 else "dead ends stop"
        said.append(
            f"domain: {len(gaps)} {stop} short of another street by less than {words}, the nearest by "
            f"{upward(smallest, 3)}; moves across are not protected, because paths run along streets. Where an end "
            f"should meet the street, join them, for instance with {mention('join', upward(smallest, 1))}."
        )
    gaps = left_out(network, reach)
    if len(gaps):
        said.append(
            f"domain: {plural(len(gaps), 'part')} left out of the network, nearer to it than {words}, the nearest at "
            f"{upward(float(gaps.min()), 3)}; whoever lives there is in no release. Cut and join lines before the "
            f"largest part is kept ({mention('node', 'True')}, {mention('join')})."
        )
    return tuple(said)


def uncut_places(network: Skeleton, near: float) -> int:
    """Number of places, to rounding, where edges cross or touch and share no vertex."""
    tree = shapely.STRtree(network.lines)
    vertex, line = tree.query(shapely.points(network.vertices), predicate="dwithin", distance=near)
    # Vertices on edges that do not end there.
    touching = network.vertices[vertex[(network.edges[line] != vertex[:, None]).all(axis=1)]]
    places = [_crossings(network, tree, near), touching]
    found = np.unique(np.round(np.concatenate(places) / (10 * near)), axis=0)
    return len(found) + int((~shapely.is_simple(network.lines)).sum())


def _crossings(network: Skeleton, tree: shapely.STRtree, near: float) -> Floats:
    """(k, 2) places that two edges have in common, away from their common vertices."""
    one, other = tree.query(network.lines, predicate="intersects")
    one, other = one[one < other], other[one < other]
    met = shapely.intersection(network.lines[one], network.lines[other])
    xy, pair = shapely.get_coordinates(met, return_index=True)
    a, b = network.edges[one[pair]], network.edges[other[pair]]
    vertex = np.zeros(len(xy), dtype=bool)
    for side in (0, 1):
        shared = (a[:, side, None] == b).any(axis=1)
        vertex |= shared & (np.hypot(*(xy - network.vertices[a[:, side]]).T) <= near)
    return xy[~vertex]


def short_ends(network: Skeleton, reach: float, near: float) -> Floats:
    """(k,) gaps between dead ends and the nearest street within reach that no path as short leads to."""
    degree = np.bincount(network.edges.ravel())
    edge, side = np.nonzero(degree[network.edges] == 1)
    places = np.column_stack([edge, side * network.lengths[edge]])
    points = shapely.points(network.vertices[network.edges[edge, side]])
    tree = shapely.STRtree(network.lines)
    gaps = np.full(len(points), np.inf)
    for rows, known in from_positions(network, places, reach):
        end, line = tree.query(points[rows], predicate="dwithin", distance=reach)
        other = line != edge[rows[end]]
        end, line = end[other], line[other]
        at = shapely.line_locate_point(network.lines[line], points[rows[end]])
        u, v = network.edges[line].T
        path = np.minimum(known[end, u] + at, known[end, v] + network.lengths[line] - at)
        away = shapely.distance(network.lines[line], points[rows[end]])
        severed = (path > reach) & (away > near) & (away < reach)
        np.minimum.at(gaps, rows[end[severed]], away[severed])
    return gaps[np.isfinite(gaps)]


def left_out(network: Skeleton, reach: float) -> Floats:
    """(k,) distances of the parts that were left out and are within reach of the network."""
    if not len(network.dropped):
        return np.zeros(0)
    places, edges = numbered(ends_of(network.dropped))
    part = components(len(places), edges)[edges[:, 0]]
    tree = shapely.STRtree(network.lines)
    (line, _), away = tree.query_nearest(network.dropped, max_distance=reach, return_distance=True, all_matches=False)
    gaps = np.full(part.max() + 1, np.inf)
    np.minimum.at(gaps, part[line], away)
    return gaps[gaps < reach]
