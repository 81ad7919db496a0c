"""Conversion between networks and networkx graphs, by the conventions of OSMnx.

Nodes carry `x` and `y`, edges may carry a `geometry` (a LineString, in either direction) and a `length`, the graph a
`crs`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.crs import projected_crs, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network.collapse import parallel_keys
from dpppsynth.linear_network.skeleton import ROUNDING, Floats, Labels, Skeleton, Streets, ends_of, plural, with_ends

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

# Shares of an edge's length by which its geometry may miss its nodes, and its stated length may be wrong.
MISS, WRONG = 1e-4, 0.1


def skeleton_of_graph(graph: Any) -> Skeleton:
    """Vertices, edges and their courses, with the names of nodes and the keys of edges.

    Raises
    ------
    InputError
        The graph is directed or empty, a node has no coordinates, a geometry does not join its nodes, or a length
        contradicts it.
    """
    _require_undirected(graph)
    nodes = list(graph.nodes)
    vertices = np.array([[_coordinate(graph, name, axis) for axis in ("x", "y")] for name in nodes]) + 0.0
    number = {name: i for i, name in enumerate(nodes)}
    rows = list(graph.edges(keys=True, data=True)) if graph.is_multigraph() else _keyed(graph)
    edges = np.array([[number[u], number[v]] for u, v, _, _ in rows], dtype=np.int64)
    names = [(u, v, key) for u, v, key, _ in rows]
    given = [
        _course(data.get("geometry"), vertices[pair], name) for (*name, data), pair in zip(rows, edges, strict=True)
    ]
    lines, changes = _between_nodes(np.array(given, dtype=object), vertices[edges], names)
    for name, line, (*_, data) in zip(names, lines, rows, strict=True):
        _check_length(name, float(line.length), data.get("length"))
    return Skeleton(vertices, edges, lines, changes, labels=Labels(tuple(nodes), tuple(key for *_, key in names)))


def graph_crs(graph: Any, crs: CRSLike | None) -> str | None:
    """The projected CRS of a graph, which the caller names where the graph does not."""
    own = getattr(graph, "graph", {}).get("crs")
    if own is None:
        return None if crs is None else projected_crs(crs)
    try:
        found = projected_crs(own)
    except InputError as error:
        msg = f"graph: {error}; a graph is re-projected by osmnx.projection.project_graph(G, to_crs=...)."
        raise InputError(msg) from None
    if crs is not None and not same_crs(found, projected_crs(crs)):
        msg = f"crs: the graph says {found}, not {crs!r}; leave crs out."
        raise InputError(msg)
    return found


def network_graph(network: Streets) -> Any:
    """networkx.MultiGraph of a network, with the names of nodes and the keys of edges it was built from."""
    import networkx

    labels = network.labels or Labels(tuple(range(len(network.vertices))), parallel_keys(network.edges))
    graph = networkx.MultiGraph(crs=network.crs)
    for name, (x, y) in zip(labels.nodes, network.vertices.tolist(), strict=True):
        graph.add_node(name, x=x, y=y)
    rows = zip(network.edges, labels.keys, network.lines, network.lengths.tolist(), strict=True)
    for (u, v), key, line, length in rows:
        graph.add_edge(labels.nodes[u], labels.nodes[v], key=key, geometry=line, length=length)
    return graph


def _require_undirected(graph: Any) -> None:
    import networkx

    if not isinstance(graph, networkx.Graph):
        msg = f"graph: must be a networkx Graph or MultiGraph; got {type(graph).__name__}."
        raise InputError(msg)
    if graph.is_directed():
        msg = (
            "graph: a directed graph holds every two-way street twice, once for each direction, which would double its "
            "length. Use osmnx.convert.to_undirected(G); G.to_undirected() will do for graphs from elsewhere, provided "
            "that it keeps each two-way street once."
        )
        raise InputError(msg)
    if not graph.number_of_edges():
        msg = "graph: has no edges; a network needs at least one."
        raise InputError(msg)


def _keyed(graph: Any) -> list[tuple[Any, Any, int, dict[str, Any]]]:
    return [(u, v, 0, data) for u, v, data in graph.edges(data=True)]


def _coordinate(graph: Any, name: Any, axis: str) -> float:
    value = _number(graph.nodes[name].get(axis))
    if value is None:
        msg = f"graph: every node needs finite numbers x and y; node {name!r} has no such {axis}."
        raise InputError(msg)
    return value


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _course(geometry: Any, ends: Floats, name: Any) -> Any:
    if geometry is None:
        if np.array_equal(ends[0], ends[1]):
            msg = f"graph: edge {tuple(name)!r} starts and ends in one place, so it needs a geometry."
            raise InputError(msg)
        return shapely.LineString(ends)
    if getattr(geometry, "geom_type", None) != "LineString" or geometry.is_empty:
        msg = f"graph: the geometry of edge {tuple(name)!r} must be a LineString."
        raise InputError(msg)
    return shapely.force_2d(geometry)


def _between_nodes(lines: Any, ends: Floats, names: list[Any]) -> tuple[Any, tuple[str, ...]]:
    """Turn lines to run from the first node to the second, and close gaps of rounding at their ends."""
    drawn = ends_of(lines)
    ahead, back = (np.hypot(*np.moveaxis(way - ends, 2, 0)).max(axis=1) for way in (drawn, drawn[:, ::-1]))
    lines = np.where(back < ahead, shapely.reverse(lines), lines)
    miss = np.minimum(ahead, back)
    far = np.flatnonzero(~(miss <= MISS * shapely.length(lines)))
    if len(far):
        msg = (
            f"graph: the geometry of edge {names[far[0]]!r} does not run between its nodes ({len(far)} of {len(lines)} "
            "edges); nodes and geometries must be in one CRS."
        )
        raise InputError(msg)
    changes: tuple[str, ...] = ()
    if (miss > ROUNDING * np.abs(ends).max()).any():
        count = int((miss > 0).sum())
        changes = (f"moved the ends of {plural(count, 'line')} to their nodes, by up to {miss.max():.3g}",)
    return with_ends(lines, ends), changes


def _check_length(name: Any, drawn: float, stated: Any) -> None:
    if stated is None:
        return
    value = _number(stated)
    if value is None or abs(value - drawn) > WRONG * drawn:
        msg = (
            f"graph: edge {name!r} says length {stated!r}, but its course is {drawn:.6g} long. Either its geometry is "
            "missing, or the length is in another unit than the CRS: complete the first, or delete the second."
        )
        raise InputError(msg)
