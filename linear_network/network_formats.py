"""Networks from layers of lines, GeoJSON and networkx graphs.

Nodes carry `x` and `y`, edges may carry a `geometry` (a LineString, in either direction) and a `length`, the graph a
`crs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.arguments import flag
from dpppsynth.core.crs import (
    crs_from_member,
    crs_label,
    metres_per_unit,
    projected_crs,
    remedy,
    reproject,
    same_crs,
    unit_name,
)
from dpppsynth.core.errors import CRSError, InputError
from dpppsynth.core.local_crs import middle, require_made_for
from dpppsynth.core.types import Floats
from dpppsynth.core.wording import either, mention, named
from dpppsynth.linear_network.build import (
    collapsed,
    drawn_once,
    line_parts,
    require_distance,
    skeleton_of_lines,
    with_length,
    without_rows,
)
from dpppsynth.linear_network.skeleton import (
    ROUNDING,
    Labels,
    Skeleton,
    ends_of,
    flattened,
    noting_overlaps,
    plural,
    with_ends,
)
from dpppsynth.spatial.tables.formats import there
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.table import Table, hiding

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


@dataclass(frozen=True, kw_only=True)
class Mending:
    """Repairs of lines on the way into a network; fields as the parameters of `LinearNetwork.from_geodataframe`."""

    node: bool = False
    join: float | None = None
    largest_component: bool = False
    collapse_short: float | None = None
    undirected: bool = False

    def __post_init__(self) -> None:
        for name in ("node", "largest_component", "undirected"):
            flag(name, getattr(self, name))
        if self.collapse_short is not None:
            require_distance("collapse_short", self.collapse_short, "in the network's unit")

    @property
    def cuts(self) -> bool:
        """Whether lines may be cut or joined, so that their own vertices do not stay."""
        return self.node or self.join is not None

    def finished(self, parts: Skeleton, unit: str) -> Skeleton:
        """The part that is wanted, without short edges where they are to go."""
        parts = parts.largest() if self.largest_component else parts
        if self.collapse_short is not None:
            parts = collapsed(parts, float(self.collapse_short), unit, argument="collapse_short")
        return noting_overlaps(parts)


def skeleton_of_table(
    table: Table, crs: CRSLike | None, to_crs: CRSLike | None, mending: Mending
) -> tuple[Skeleton, str | None]:
    """Edges of the lines of a table, and their CRS; parameters as for `LinearNetwork.from_geodataframe`."""
    geometry, rows = table.geometry, np.arange(len(table))
    said: tuple[str, ...] = ()
    if mending.collapse_short is not None and len(table):
        kept, said = without_rows(geometry)
        geometry, rows = geometry[kept], rows[kept]
    lines = line_parts(geometry, flat=mending.collapse_short is not None)
    move, target = _way(table.crs, crs, to_crs, middle(shapely.total_bounds(lines)))
    lines = lines if move is None else flattened(shapely.transform(lines, move))
    if move is not None:
        require_made_for(target or "", shapely.total_bounds(lines))
    numbers = None
    if {"from", "to"} <= set(table.columns) and len(lines) == len(rows):
        numbers = np.array([table.columns["from"], table.columns["to"]], dtype=object).T[rows]
    if mending.undirected:
        once, more = drawn_once(lines)
        lines, said = lines[once], said + more
        numbers = None if numbers is None else numbers[once]
    parts = None if mending.cuts or numbers is None else by_numbers(lines, numbers)
    parts = _of_lines(lines, mending, target) if parts is None else parts
    parts = replace(parts, changes=(*said, *parts.changes))
    return mending.finished(parts, _unit(target)), target


def _of_lines(lines: Any, mending: Mending, crs: str | None) -> Skeleton:
    """Edges along lines that meet where their ends are; those without a length join nothing."""
    lines, said = with_length(lines)
    parts = skeleton_of_lines(lines, node=mending.node, join=mending.join, unit=_unit(crs))
    return replace(parts, changes=(*said, *parts.changes))


def _unit(crs: str | None) -> str:
    return "unit" if crs is None else unit_name(crs)


def _way(
    source: CRSLike | None, crs: CRSLike | None, to_crs: CRSLike | None, at: tuple[float, float]
) -> tuple[Callable[[Floats], Floats] | None, str | None]:
    """The re-projection of coordinates (n, 2), None where they stay, and the projected CRS that they are in then.

    Messages have the zone of a public place `at`, in coordinates of the source.
    """
    if crs is not None and source is not None and not same_crs(crs, source):
        msg = (
            f"crs: the lines are in {crs_label(source)}, not {crs_label(crs)}; leave {named('crs')} out, "
            f"{mention('to_crs')} re-projects"
        )
        raise InputError(msg + (CLAIM if same_crs(source, "OGC:CRS84") else ""))
    source = crs if source is None else source
    if to_crs is None:
        return None, None if source is None else projected_crs(source, at=(source, *at))
    target = projected_crs(to_crs, at=None if source is None else (source, *at))
    if source is None:
        msg = f"to_crs: the lines do not say which CRS they are in; name it with {mention('crs')}"
        raise InputError(msg)
    if same_crs(source, target):
        return None, target
    return (lambda xy: reproject(xy, source, target)), target


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


def skeleton_of_graph(
    graph: Any, crs: CRSLike | None, to_crs: CRSLike | None, mending: Mending
) -> tuple[Skeleton, str | None]:
    """Vertices, edges and their courses, with the names of nodes and the keys of edges; and their CRS.

    Where lines are cut or joined, names and keys are lost. InputError as for `LinearNetwork.from_networkx`.
    """
    import networkx

    _require_graph(graph, undirected=mending.undirected)
    nodes = list(graph.nodes)
    vertices = np.array([[_coordinate(graph, name, axis) for axis in ("x", "y")] for name in nodes]) + 0.0
    move, target = _graph_way(graph, crs, to_crs, middle([*vertices.min(axis=0), *vertices.max(axis=0)]))
    if move is not None:
        vertices = move(vertices) + 0.0
        require_made_for(target or "", [*vertices.min(axis=0), *vertices.max(axis=0)])
    number = {name: i for i, name in enumerate(nodes)}
    kind = networkx.MultiDiGraph if graph.is_directed() else networkx.MultiGraph
    rows = list((graph if graph.is_multigraph() else kind(graph)).edges(keys=True, data=True))
    edges = np.array([[number[u], number[v]] for u, v, _, _ in rows], dtype=np.int64)
    names = [(u, v, key) for u, v, key, _ in rows]
    flat = mending.collapse_short is not None
    given = np.empty(len(rows), dtype=object)
    given[:] = [
        _course(data.get("geometry"), vertices[pair], name, move=move, flat=flat)
        for (*name, data), pair in zip(rows, edges, strict=True)
    ]
    lines, changes = _between_nodes(flattened(given), vertices[edges], names)
    for name, line, (*_, data) in zip(names, lines, rows, strict=True):
        _check_length(name, float(line.length), data.get("length"), target)
    # Keys of the two directions of a street may be equal.
    keys = [None if graph.is_directed() else key for *_, key in names]
    if mending.undirected:
        once, said = drawn_once(lines)
        edges, lines, keys, changes = edges[once], lines[once], [keys[e] for e in once], changes + said
    labels = Labels(tuple(nodes), tuple(keys))
    parts = Skeleton(vertices, edges, lines=lines, changes=changes, labels=labels)
    if mending.cuts:
        cut = _of_lines(lines, mending, target)
        parts = replace(cut, changes=(*changes, *cut.changes))
    return mending.finished(parts, _unit(target)), target


def read_graphml(path: Path) -> Any:
    """Read the graph of a GraphML file, such as OSMnx writes, with its attributes as they stand; InputError."""
    import networkx

    if not there(path, Path.is_file):
        msg = f"path: there is no file {str(path)!r}"
        raise InputError(msg)
    # Networkx raises many kinds of errors for files that are none.
    return hiding(path, "GraphML", (Exception,), lambda: networkx.read_graphml(path))


def graphml_crs(path: Path) -> str | None:
    """The CRS that a GraphML file names, None where it names none, without making a graph of it; InputError."""
    from xml.etree import ElementTree

    def read() -> str | None:
        depth, key = 0, None
        with path.open("rb") as stream:
            for event, each in ElementTree.iterparse(stream, events=("start", "end")):  # noqa: S314
                depth += 1 if event == "start" else -1
                if event == "start":
                    continue
                kind, stated = each.tag.rpartition("}")[2], each.attrib
                if kind == "key" and (stated.get("for"), stated.get("attr.name")) == ("graph", "crs"):
                    key = stated.get("id")
                # Of the graph itself, behind its nodes and edges or before.
                if kind == "data" and depth == 2 and key is not None and stated.get("key") == key:
                    return each.text
                if depth == 2:
                    each.clear()
        return None

    if not there(path, Path.is_file):
        msg = f"path: there is no file {str(path)!r}"
        raise InputError(msg)
    found: str | None = hiding(path, "GraphML", (Exception,), read)
    return found


def _graph_way(
    graph: Any, crs: CRSLike | None, to_crs: CRSLike | None, at: tuple[float, float]
) -> tuple[Callable[[Floats], Floats] | None, str | None]:
    """The re-projection of a graph, which names its CRS or has it named by the caller."""
    own = getattr(graph, "graph", {}).get("crs")
    try:
        return _way(own, crs, to_crs, at)
    except CRSError as error:
        if crs is not None or to_crs is not None:
            raise
        # The caller named no system: it is the graph's.
        msg = f"graph:{str(error).removeprefix('crs:')}"
        raise type(error)(msg) from None


def _require_graph(graph: Any, *, undirected: bool) -> None:
    import networkx

    if not isinstance(graph, networkx.Graph):
        msg = f"graph: must be a networkx Graph or MultiGraph; got {type(graph).__name__}."
        raise InputError(msg)
    if graph.is_directed() and not undirected:
        msg = (
            "graph: a directed graph holds every two-way street twice, once for each direction, which would double its "
            f"length. Keep each street once with {mention('undirected', 'True')}"
        )
        raise InputError(msg + either(", or give osmnx.convert.to_undirected(G).", "."))
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


def _course(geometry: Any, ends: Floats, name: Any, *, move: Callable[[Floats], Floats] | None, flat: bool) -> Any:
    """Line of an edge: its geometry, which GraphML has as text, or straight between its nodes."""
    if geometry is None:
        if np.array_equal(ends[0], ends[1]) and not flat:
            msg = (
                f"graph: edge {tuple(name)!r} starts and ends in one place, so it needs a geometry; "
                f"{mention('collapse_short', '0.5')} leaves it out."
            )
            raise InputError(msg)
        return shapely.LineString(ends)
    if isinstance(geometry, str):
        geometry = shapely.from_wkt(geometry, on_invalid="ignore")
    if getattr(geometry, "geom_type", None) != "LineString" or geometry.is_empty:
        msg = f"graph: the geometry of edge {tuple(name)!r} must be a LineString, or its text in WKT."
        raise InputError(msg)
    line = shapely.force_2d(geometry)
    return line if move is None else shapely.transform(line, move)


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


def _check_length(name: Any, drawn: float, stated: Any, crs: str | None) -> None:
    """Refuse an edge whose stated length is neither in the unit of the CRS nor in metres, as OSMnx has it."""
    if stated is None:
        return
    value = _number(stated)
    sizes = {drawn} if crs is None else {drawn, drawn * metres_per_unit(crs)}
    if value is None or all(abs(value - size) > WRONG * size for size in sizes):
        msg = (
            f"graph: edge {name!r} says length {stated!r}, but its course is {drawn:.6g} long. Either its geometry is "
            "missing, or the length is in another unit than the CRS: complete the first, or delete the second."
        )
        raise InputError(msg)
