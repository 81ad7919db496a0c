"""Networks from layers of lines, GeoJSON and networkx graphs.

Nodes carry `x` and `y`, edges may carry a `geometry` (a LineString, in either direction) and a `length`, the graph a
`crs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.arguments import flag
from dpppsynth.core.crs import (
    crs_from_member,
    crs_label,
    projected_crs,
    remedy,
    reproject,
    same_crs,
    unit_name,
)
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.core.wording import mention, named
from dpppsynth.linear_network.build import line_parts, skeleton_of_lines
from dpppsynth.linear_network.skeleton import (
    ROUNDING,
    Labels,
    Skeleton,
    ends_of,
    noting_overlaps,
    plural,
    with_ends,
)
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


CLAIM = (
    ". GeoJSON without a 'crs' member claims to be in degrees; if its coordinates are in metres, write that member, or "
    "save the lines as .gpkg or .parquet with their CRS"
)


def table_of_lines(lines: Any) -> Table:
    """Rows of a GeoDataFrame or a GeoSeries; InputError for anything else."""
    import geopandas

    frame = lines.to_frame("geometry") if isinstance(lines, geopandas.GeoSeries) else lines
    if not isinstance(frame, geopandas.GeoDataFrame) or frame.active_geometry_name is None:
        msg = f"lines: must be a GeoDataFrame with a geometry column or a GeoSeries; got {type(lines).__name__}"
        raise InputError(msg)
    return from_geodataframe(frame)


def skeleton_of_table(
    table: Table,
    crs: CRSLike | None,
    node: bool,
    join: float | None,
    *,
    to_crs: CRSLike | None,
    largest_component: bool,
) -> tuple[Skeleton, str | None]:
    """Edges of the lines of a table, and their CRS; parameters as for `LinearNetwork.from_geodataframe`."""
    flag("node", node)
    flag("largest_component", largest_component)
    geometry, target = _in_crs(table, crs, to_crs)
    parts = None
    if not node and join is None and {"from", "to"} <= set(table.columns) and len(table):
        numbers = np.array([table.columns["from"], table.columns["to"]], dtype=object).T
        parts = by_numbers(line_parts(geometry), numbers)
    if parts is None:
        parts = skeleton_of_lines(geometry, node=node, join=join, unit="unit" if target is None else unit_name(target))
    return noting_overlaps(parts.largest() if largest_component else parts), target


def _in_crs(table: Table, crs: CRSLike | None, to_crs: CRSLike | None) -> tuple[Any, str | None]:
    """Geometries in a projected CRS, and its name."""
    source = table.crs
    if crs is not None and source is not None and not same_crs(crs, source):
        msg = (
            f"crs: the lines are in {crs_label(source)}, not {crs_label(crs)}; leave {named('crs')} out, "
            f"{mention('to_crs')} re-projects"
        )
        raise InputError(msg + (CLAIM if same_crs(source, "OGC:CRS84") else ""))
    source = crs if source is None else source
    if to_crs is None:
        return table.geometry, None if source is None else projected_crs(source)
    target = projected_crs(to_crs)
    if source is None:
        msg = f"to_crs: the lines do not say which CRS they are in; name it with {mention('crs')}"
        raise InputError(msg)
    if same_crs(source, target):
        return table.geometry, target
    flat = line_parts(table.geometry)
    return shapely.transform(flat, lambda xy: reproject(xy, source, target)), target


def read_geojson(data: Mapping[str, Any]) -> tuple[Skeleton, str | None]:
    """Inverse of `LinearNetwork.to_geojson`: the edges, and the CRS."""
    try:
        numbers = [[f["properties"]["from"], f["properties"]["to"]] for f in data["features"]]
        lines = np.array([shapely.LineString(f["geometry"]["coordinates"]) for f in data["features"]], dtype=object)
    except (LookupError, TypeError, ValueError, shapely.errors.ShapelyError):
        numbers, lines = [], np.empty(0, dtype=object)
    found = by_numbers(lines, numbers)
    if found is None:
        msg = (
            "geojson: needs LineStrings with the numbers of their vertices (from, to), counted from 0, each in one "
            "place; dpppsynth.io.read_network takes others."
        )
        raise InputError(msg)
    if "crs" not in data:
        msg = f"geojson: has no 'crs' member, and standard GeoJSON is in degrees. With read_network, {remedy()}"
        raise InputError(msg)
    return found, crs_from_member(data["crs"])


def by_numbers(lines: Any, numbers: Any) -> Skeleton | None:
    """Edges whose ends carry vertex numbers (E, 2); None unless these count from 0 and each has one place."""
    try:
        values = np.array(numbers, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None
    used = np.unique(values)
    counted = values.shape == (len(lines), 2) and np.array_equal(used, np.arange(len(used)))
    if not counted or not len(lines) or shapely.is_empty(lines).any():
        return None
    edges, ends = values.astype(np.int64), ends_of(shapely.force_2d(lines)) + 0.0
    vertices: Floats = np.empty((len(used), 2))
    vertices[edges] = ends
    return Skeleton(vertices, edges, lines=lines) if np.array_equal(vertices[edges], ends) else None


# Shares of an edge's length by which its geometry may miss its nodes, and its stated length may be wrong.
MISS, WRONG = 1e-4, 0.1


def skeleton_of_graph(graph: Any) -> Skeleton:
    """Vertices, edges and their courses, with the names of nodes and the keys of edges.

    InputError as for `LinearNetwork.from_networkx`.
    """
    import networkx

    _require_undirected(graph)
    nodes = list(graph.nodes)
    vertices = np.array([[_coordinate(graph, name, axis) for axis in ("x", "y")] for name in nodes]) + 0.0
    number = {name: i for i, name in enumerate(nodes)}
    rows = list((graph if graph.is_multigraph() else networkx.MultiGraph(graph)).edges(keys=True, data=True))
    edges = np.array([[number[u], number[v]] for u, v, _, _ in rows], dtype=np.int64)
    names = [(u, v, key) for u, v, key, _ in rows]
    given = [
        _course(data.get("geometry"), vertices[pair], name) for (*name, data), pair in zip(rows, edges, strict=True)
    ]
    lines, changes = _between_nodes(np.array(given, dtype=object), vertices[edges], names)
    for name, line, (*_, data) in zip(names, lines, rows, strict=True):
        _check_length(name, float(line.length), data.get("length"))
    labels = Labels(tuple(nodes), tuple(key for *_, key in names))
    return Skeleton(vertices, edges, lines=lines, changes=changes, labels=labels)


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
