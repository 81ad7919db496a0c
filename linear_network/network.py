"""Linear networks: straight or curved edges between vertices, such as streets, and points on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.crs import crs_label, crs_member, projected_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.rounding import nearest_multiples, power_of_ten
from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.build import collapsed, line_parts, require_distance
from dpppsynth.linear_network.gaps import severed
from dpppsynth.linear_network.network_formats import (
    Mending,
    read_geojson,
    skeleton_of_graph,
    skeleton_of_table,
    table_of_lines,
)
from dpppsynth.linear_network.resistance import resistances
from dpppsynth.linear_network.shortest_paths import diameter, distances, edge_numbers
from dpppsynth.linear_network.skeleton import (
    ROUNDING,
    Labels,
    Skeleton,
    listed_lines,
    noting_overlaps,
    require_connected,
    skeleton,
)
from dpppsynth.spatial.domains import Domain, as_reals
from dpppsynth.spatial.patterns import PointPattern, pattern_of_frame

if TYPE_CHECKING:
    import geopandas

    from dpppsynth.core.crs import CRSLike


@dataclass(frozen=True, eq=False, repr=False)
class LinearNetwork(Skeleton, Domain):
    """A connected network of edges with positive length: the public streets on which a pattern lives.

    A position on it is a pair (edge number, distance from the edge's first vertex).

    Parameters
    ----------
    vertices : array_like, shape (V, 2)
        Coordinates.
    edges : array_like of int, shape (E, 2)
        Numbers of the two vertices of each edge. Parallel edges and loops are legal.
    crs : str, int, pyproj.CRS or None
        A projected CRS.
    lines : sequence of shapely.LineString, optional
        Course of each edge, from its first vertex to its second; straight unless given.
    changes : tuple of str
        Changes made to the source, in words.
    dropped : sequence of shapely.LineString, optional
        Edges of the source that were left out. Points that lie nearer to one of these are not snapped.
        They are no part of the network: neither GeoJSON nor the fingerprint holds them.
    labels : Labels, optional
        Names of the nodes and keys of the edges of the graph that the network comes from, for `to_networkx`.

    Raises
    ------
    InputError
        The arrays are not a network, an edge has no length, the network falls into several components, or the map of
        the CRS stretches lengths along it by more than a twentieth.

    Examples
    --------
    >>> cross = LinearNetwork([[0, 0], [1, 0], [-1, 0], [0, 1]], [[0, 1], [0, 2], [0, 3]])
    >>> cross
    LinearNetwork(4 vertices, 3 edges, length 3, no CRS, unit)
    >>> cross.distance(cross.pattern([0, 2], [0.5, 0.25]))
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """

    crs: str | None = None

    def __post_init__(self) -> None:
        dropped = listed_lines(self.dropped, "dropped")
        checked = skeleton(self.vertices, self.edges, self.lines)
        require_connected(len(checked.vertices), checked.edges)
        for name in ("vertices", "edges", "lines"):
            object.__setattr__(self, name, getattr(checked, name))
        object.__setattr__(self, "crs", None if self.crs is None else projected_crs(self.crs))
        object.__setattr__(self, "changes", tuple(str(change) for change in self.changes))
        object.__setattr__(self, "dropped", line_parts(dropped) if len(dropped) else dropped)
        if self.labels is not None and (len(self.labels.nodes), len(self.labels.keys)) != (
            len(self.vertices),
            len(self.edges),
        ):
            msg = "labels: need one name per vertex and one key per edge."
            raise InputError(msg)
        self.scale_factor  # noqa: B018 - a map that stretches lengths too much is refused here

    def _repr_html_(self) -> str:
        rows = [("vertices", len(self.vertices)), ("edges", len(self.edges)), ("length", f"{self.length:.10g}")]
        return html_card("LinearNetwork", [*rows, ("coordinate system", self.crs or "none"), ("unit", self.unit)])

    def __repr__(self) -> str:
        name = "no CRS" if self.crs is None else crs_label(self.crs)
        size = f"{len(self.vertices)} vertices, {len(self.edges)} edges, length {self.length:.10g}"
        return f"LinearNetwork({size}, {name}, {self.unit})"

    @property
    def rule(self) -> str:
        return "must lie on the network; network.snap(xy, tolerance) moves those nearby onto it"

    @property
    def size(self) -> float:
        return self.length

    @cached_property
    def extent(self) -> float:
        """Square root of the area of the convex hull, or a third of the diameter: a length that rules scale with."""
        return max(float(np.sqrt(self.geometry.convex_hull.area)), self.diameter / 3)

    @cached_property
    def geometry(self) -> Any:
        """The whole network as one shapely geometry."""
        return shapely.multilinestrings(self.lines)

    @cached_property
    def diameter(self) -> float:
        """Length that no shortest path between two points exceeds: attained on trees."""
        return diameter(self)

    @cached_property
    def ends(self) -> tuple[Ints, Ints, Ints]:
        """(2 E,) ends of edges sorted by vertex; for each vertex (V,) the place of its first end, and their number.

        Edge k begins at end 2 k and ends at end 2 k + 1.
        """
        vertex = self.edges.ravel()
        degree = np.bincount(vertex, minlength=len(self.vertices))
        return np.argsort(vertex, kind="stable"), np.cumsum(degree) - degree, degree

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.lines)

    @cached_property
    def _dropped_tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.dropped)

    def positions(self, xy: npt.ArrayLike) -> Floats:
        """(n, 2) nearest positions to coordinates (n, 2): edge number, and distance along it.

        At equal distances the lower edge number counts.
        """
        points = shapely.points(PointPattern.checked(np.atleast_2d(xy)))
        query, found = self._tree.query_nearest(points, all_matches=True)
        edge = np.full(len(points), len(self.edges))
        np.minimum.at(edge, query, found)
        return np.column_stack([edge, shapely.line_locate_point(self.lines[edge], points)])

    def coordinates(self, positions: npt.ArrayLike) -> Floats:
        at = np.asarray(positions, dtype=float).reshape(-1, 2)
        if not self.holds(at).all():
            msg = (
                f"positions: need edge numbers from 0 to {len(self.edges) - 1} and distances from 0 to the length of "
                "the edge; some are others."
            )
            raise InputError(msg)
        # Shapely counts distances below zero, which are those of rounding, from the other end.
        along = np.maximum(at[:, 1], 0)
        return shapely.get_coordinates(shapely.line_interpolate_point(self.lines[edge_numbers(at)], along))

    def released_coordinates(self, positions: npt.ArrayLike) -> Floats:
        """(n, 2) coordinates of positions (n, 2), rounded to a decimal grid so fine that they stay on the network.

        Its spacing is the largest power of ten that exceeds neither `resolution` nor what `contains` allows for
        rounding, a billionth of the coordinates. Positions are rounded along edges, and their coordinates are not.
        """
        return nearest_multiples(self.coordinates(positions), power_of_ten(min(self.resolution, self._rounding)))

    def on_grid(self, positions: Floats) -> Floats:
        """(n, 2) positions with distances rounded to the public grid, ends of edges excepted."""
        edge = edge_numbers(positions)
        along = nearest_multiples(positions[:, 1], self.resolution)
        return np.column_stack([edge, np.clip(along, 0, self.lengths[edge])])

    def holds(self, positions: Floats) -> npt.NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            known = (positions[:, 0] > -0.5) & (positions[:, 0] < len(self.edges) - 0.5)
        length = self.lengths[np.where(known, edge_numbers(np.where(known[:, None], positions, 0)), 0)]
        return known & (positions[:, 1] >= -self._rounding) & (positions[:, 1] <= length + self._rounding)

    def contains(self, xy: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which coordinates (n, 2) lie on the network, to rounding; `snap` moves others onto it."""
        return self.away(xy) <= self._rounding

    def away(self, xy: npt.ArrayLike) -> Floats:
        """(n,) distances from coordinates (n, 2) to the network; infinite where a coordinate is not finite."""
        points = np.asarray(xy, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2:
            msg = f"xy: must have shape (n, 2); got {points.ndim} dimension(s)"
            raise InputError(msg)
        out = np.full(len(points), np.inf)
        finite = np.isfinite(points).all(axis=1)
        _, distance = self._tree.query_nearest(shapely.points(points[finite]), return_distance=True, all_matches=False)
        out[finite] = distance
        return out

    def severed(self, reach: float) -> tuple[str, ...]:
        return severed(self, self.unit, reach, self._rounding)

    @cached_property
    def _rounding(self) -> float:
        x0, y0, x1, y1 = self.bounds
        return ROUNDING * (max(abs(v) for v in self.bounds) + max(x1 - x0, y1 - y0))

    def pattern(self, edge: npt.ArrayLike, t: npt.ArrayLike, marks: Mapping[str, Any] | None = None) -> PointPattern:
        """Pattern of points given by edges (n,) and fractions t (n,) of their lengths, from 0 to 1."""
        rule = "edge, t: need one edge number and one fraction per point."
        number, share = (np.atleast_1d(as_reals(values, rule)) for values in (edge, t))
        if number.shape != share.shape or number.ndim != 1:
            raise InputError(rule)
        whole = np.isfinite(number) & (number == np.floor(number)) & (number >= 0) & (number < len(self.edges))
        if not whole.all():
            msg = f"edge: numbers must be whole and run from 0 to {len(self.edges) - 1}; some do not."
            raise InputError(msg)
        if not np.all((share >= 0) & (share <= 1)):
            msg = "t: fractions of an edge's length must lie between 0 and 1; some do not."
            raise InputError(msg)
        along = share * self.lengths[number.astype(np.int64)]
        return PointPattern.at(np.column_stack([number, along]), self, marks)

    def snap(self, xy: npt.ArrayLike, tolerance: float, marks: Mapping[str, Any] | None = None) -> PointPattern:
        """Pattern of the nearest positions to coordinates (n, 2).

        Parameters
        ----------
        xy : array_like, shape (n, 2)
        tolerance : float
            Largest distance a point may be moved, in the network's unit; chosen without looking at the points.
        marks : mapping, optional

        Raises
        ------
        InputError
            Some point is farther away, or nearer to an edge that was left out of the network.
        """
        points = PointPattern.checked(xy)
        if not self.within(points, tolerance).all():
            msg = (
                "xy: some points are farther than the tolerance from the network, or nearer to an edge that was left "
                "out of it; `dpppsynth inspect` writes these rows to a CONFIDENTIAL file. Widen the tolerance, or "
                "complete the network, from public knowledge."
            )
            raise InputError(msg)
        return PointPattern.at(self.positions(points), self, marks).snapped(tolerance)

    def within(self, xy: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
        require_distance("tolerance", tolerance, self.unit)
        away = self.away(xy)
        near = away <= max(tolerance, self._rounding)
        if len(self.dropped) and near.any():
            _, beside = self._dropped_tree.query_nearest(
                shapely.points(xy[near]), return_distance=True, all_matches=False
            )
            near[near] = away[near] <= beside + self._rounding
        return near

    def distance(self, points_a: Any, points_b: Any = None) -> Floats:
        """(n, m) lengths of the shortest paths between points.

        Parameters
        ----------
        points_a : PointPattern, GeoDataFrame, GeoSeries or array_like, shape (n, 2)
            On this network and, where they name one, in its coordinate system: coordinates, or where these are not all
            on it `positions` of a pattern, each the number of an edge and a distance along it.
        points_b : as points_a, optional
            The same points unless given.
        """
        a = self._places(points_a)
        return distances(self, a, a if points_b is None else self._places(points_b))

    def resistance(self, points_a: Any, points_b: Any = None) -> Floats:
        """(n, m) resistance metric between points, each edge a resistor of its length; parameters as in `distance`.

        At most the shortest-path distance, and equal to it on trees.
        """
        a = self._places(points_a)
        return resistances(self, a, a if points_b is None else self._places(points_b))

    def _places(self, points: Any) -> Floats:
        if isinstance(points, PointPattern):
            if points.domain is not self and points.domain.fingerprint() != self.fingerprint():
                msg = "points: they lie in another domain; snap them to this network first."
                raise InputError(msg)
            return points.positions
        if (pattern := pattern_of_frame(points, self, "points")) is not None:
            return pattern.positions
        reason: InputError
        try:
            return PointPattern(points, self).positions
        except InputError as error:
            reason = error
        positions = as_reals(points, str(reason))
        if positions.ndim != 2 or positions.shape[1] != 2 or not self._are_positions(positions):
            raise reason
        return positions

    def _are_positions(self, values: Floats) -> bool:
        """Whether each row (n, 2) is a whole number of an edge and a distance along it."""
        return bool(len(values) and (values[:, 0] % 1 == 0).all() and self.holds(values).all())

    def to_geojson(self) -> dict[str, Any]:
        """Describe the network as a GeoJSON FeatureCollection of its edges, with the numbers of their vertices.

        `changes`, `labels` and `dropped` are not part of it: a network read back snaps points nearer to an edge that
        was left out, which this one refuses.
        """
        features = [
            {
                "type": "Feature",
                "properties": {"from": int(a), "to": int(b)},
                "geometry": {"type": "LineString", "coordinates": shapely.get_coordinates(line).tolist()},
            }
            for (a, b), line in zip(self.edges, self.lines, strict=True)
        ]
        return {"type": "FeatureCollection", "crs": crs_member(self.crs), "features": features}

    @classmethod
    def from_geojson(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_geojson`."""
        return cls.from_skeleton(*read_geojson(data))

    def to_geodataframe(self) -> geopandas.GeoDataFrame:
        """Return the edges as a GeoDataFrame: the numbers of their vertices (from, to), length, geometry."""
        import geopandas

        columns = {"from": self.edges[:, 0], "to": self.edges[:, 1], "length": self.lengths}
        return geopandas.GeoDataFrame(columns, geometry=self.lines, crs=self.crs)

    @staticmethod
    def from_geodataframe(
        lines: geopandas.GeoDataFrame | geopandas.GeoSeries,
        crs: CRSLike | None = None,
        node: bool = False,
        join: float | None = None,
        *,
        to_crs: CRSLike | None = None,
        largest_component: bool = False,
        collapse_short: float | None = None,
        undirected: bool = False,
    ) -> LinearNetwork:
        """Build a network from lines, which meet where their ends have exactly equal coordinates.

        Parameters
        ----------
        lines : geopandas.GeoDataFrame or geopandas.GeoSeries
            LineStrings and MultiLineStrings, which count as their parts; heights are left out.
        crs : str, int or pyproj.CRS, optional
            The CRS of lines that do not name one.
        node : bool
            Cut lines wherever they cross or touch, to rounding; a bridge becomes a crossing.
        join : float, optional
            Join ends that meet no other line to the nearest vertex within this distance, and where there is none to
            the nearest line, which is cut there. Nothing else moves.
        to_crs : str, int or pyproj.CRS, optional
            Re-project the coordinates of the lines to this CRS first.
        largest_component : bool
            Leave out what is not connected with the component of most vertices.
        collapse_short : float, optional
            Then remove shorter edges, as `collapse_short` does; rows without a geometry and lines without a length are
            left out as well.
        undirected : bool
            Keep each street once where lines run along it in both directions, as in directed graphs; bridges stay
            bridges.

        Raises
        ------
        InputError
            A geometry is not a line, has no length or comes twice, the CRS is in degrees or contradicts `crs`, or the
            network falls into several components. `changes` of the network says what was cut, joined or left out, and
            whether lines run along one another, which counts streets twice.
        """
        wanted: dict[str, Any] = {"node": node, "join": join, "undirected": undirected}
        mending = Mending(**wanted, largest_component=largest_component, collapse_short=collapse_short)
        return LinearNetwork.from_skeleton(*skeleton_of_table(table_of_lines(lines), crs, to_crs, mending))

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        crs: CRSLike | None = None,
        *,
        to_crs: CRSLike | None = None,
        largest_component: bool = False,
        collapse_short: float | None = None,
        undirected: bool = False,
    ) -> Self:
        """Build a network from a networkx graph with the attributes of OSMnx.

        Parameters
        ----------
        graph : networkx.Graph or networkx.MultiGraph
            Nodes with x and y; edges with a geometry, or its text in WKT, where they are not straight; the CRS in
            ``graph.graph["crs"]``. Numbers may be texts, as ``networkx.read_graphml`` has them.
        crs : str, int or pyproj.CRS, optional
            The CRS of a graph that does not name one.
        to_crs, largest_component, collapse_short : optional
            As for `from_geodataframe`.
        undirected : bool
            Take a directed graph, and keep each street once where it has edges in both directions.

        Raises
        ------
        InputError
            The graph is directed and `undirected` not asked for, or in degrees; a node has no coordinates, a geometry
            does not join its nodes, or a stated length is more than a tenth wrong.
        """
        mending = Mending(largest_component=largest_component, collapse_short=collapse_short, undirected=undirected)
        return cls.from_skeleton(*skeleton_of_graph(graph, crs, to_crs, mending))

    def to_networkx(self) -> Any:
        """Return a networkx.MultiGraph with x, y, geometry, length and crs, its names those of `labels`."""
        import networkx

        # Without a key of its own an edge gets the first number that is free between its nodes.
        labels = self.labels or Labels(tuple(range(len(self.vertices))), (None,) * len(self.edges))
        graph = networkx.MultiGraph(crs=self.crs)
        for name, (x, y) in zip(labels.nodes, self.vertices.tolist(), strict=True):
            graph.add_node(name, x=x, y=y)
        rows = zip(self.edges, labels.keys, self.lines, self.lengths.tolist(), strict=True)
        for (u, v), key, line, length in rows:
            graph.add_edge(labels.nodes[u], labels.nodes[v], key=key, geometry=line, length=length)
        return graph

    @classmethod
    def largest_component(cls, vertices: Any, edges: Any, crs: CRSLike | None = None, *, lines: Any = None) -> Self:
        """Build the component with most vertices, at a tie the one with the lowest vertex; the rest is `dropped`."""
        return cls.from_skeleton(skeleton(vertices, edges, lines).largest(), crs)

    @classmethod
    def from_skeleton(cls, parts: Skeleton, crs: CRSLike | None = None) -> Self:
        """Build a network from vertices and edges as a reader returns them."""
        name = None if crs is None else projected_crs(crs)
        more = {"lines": parts.lines, "changes": parts.changes, "dropped": parts.dropped, "labels": parts.labels}
        return cls(parts.vertices, parts.edges, name, **more)

    def collapse_short(self, tolerance: float) -> Self:
        """Remove edges shorter than a public tolerance, in the network's unit, moving nothing farther than that.

        Where a short edge and one other edge meet and nothing else does, the two become one, whose course is theirs:
        a road drawn as many short edges stays a road. Other short edges are contracted, shortest first, to their
        vertex with the lowest number, but only in groups narrower than the tolerance; wider ones keep short edges.
        Edges as long as the tolerance never vanish, nor become shorter than it. Loops shorter than it vanish.

        `changes` of the result says what was merged, contracted and left, and when streets came to lie on one another.
        Doing it again would move vertices again.

        Raises
        ------
        InputError
            The tolerance is not a positive distance, or every edge would go.
        """
        require_distance("tolerance", tolerance, self.unit)
        kept = {name: getattr(self, name) for name in ("lines", "changes", "dropped", "labels")}
        parts = Skeleton(self.vertices, self.edges, **kept)
        return self.from_skeleton(noting_overlaps(collapsed(parts, float(tolerance), self.unit)), self.crs)
