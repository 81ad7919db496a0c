"""Linear networks: straight or curved edges between vertices, such as streets, and points on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import shapely

from dpppsynth.crs import crs_from_member, crs_label, crs_member, projected_crs, unit_name
from dpppsynth.domains import canonical_json, public_grid
from dpppsynth.errors import InputError
from dpppsynth.linear_network.paths import diameter, distances
from dpppsynth.linear_network.resistance import resistances
from dpppsynth.patterns import PointPattern

if TYPE_CHECKING:
    from dpppsynth.crs import CRSLike

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Coordinates this close to an edge, relative to their size, lie on it.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class LinearNetwork:
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
        What was changed on the way from the source, in words.
    dropped : sequence of shapely.LineString, optional
        Edges of the source that were left out. Points that lie nearer to one of these are not snapped.

    Raises
    ------
    InputError
        The arrays are not a network, an edge has no length, or the network falls into several components.

    Examples
    --------
    >>> cross = LinearNetwork([[0, 0], [1, 0], [-1, 0], [0, 1]], [[0, 1], [0, 2], [0, 3]])
    >>> cross
    LinearNetwork(4 vertices, 3 edges, length 3, no CRS, unit)
    >>> cross.distance(cross.pattern([0, 2], [0.5, 0.25]))
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """

    vertices: Floats
    edges: Ints
    crs: str | None = None
    _: KW_ONLY
    lines: Any = None
    changes: tuple[str, ...] = ()
    dropped: Any = ()

    def __post_init__(self) -> None:
        vertices, edges = _vertices(self.vertices), _edges(self.edges)
        if edges.min() < 0 or edges.max() >= len(vertices):
            msg = f"edges: vertex numbers must run from 0 to {len(vertices) - 1}; some do not."
            raise InputError(msg)
        lines = _lines(self.lines, vertices, edges)
        for array in (vertices, edges):
            array.flags.writeable = False
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "crs", None if self.crs is None else projected_crs(self.crs))
        object.__setattr__(self, "dropped", np.array(list(self.dropped), dtype=object))
        self._require_lengths()
        self._require_connected()

    def __repr__(self) -> str:
        name = "no CRS" if self.crs is None else crs_label(self.crs)
        size = f"{len(self.vertices)} vertices, {len(self.edges)} edges, length {self.length:.10g}"
        return f"LinearNetwork({size}, {name}, {self.unit})"

    @cached_property
    def lengths(self) -> Floats:
        """(E,) lengths of the edges."""
        return np.asarray(shapely.length(self.lines), dtype=np.float64)

    @cached_property
    def length(self) -> float:
        """Total length."""
        return float(self.lengths.sum())

    @property
    def size(self) -> float:
        """The length: what an intensity is an intensity per unit of."""
        return self.length

    @cached_property
    def extent(self) -> float:
        """Square root of the area of the convex hull, at least a tenth of the diameter: a length that rules scale with."""
        return max(float(np.sqrt(self.geometry.convex_hull.area)), self.diameter / 10)

    @cached_property
    def geometry(self) -> Any:
        """All edges as one shapely MultiLineString."""
        return shapely.multilinestrings(self.lines)

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Bounding box (x0, y0, x1, y1)."""
        x0, y0, x1, y1 = (float(v) for v in self.geometry.bounds)
        return x0, y0, x1, y1

    @cached_property
    def unit(self) -> str:
        """Unit of length: "metre", "foot", ..., or "unit" when there is no CRS."""
        return "unit" if self.crs is None else unit_name(self.crs)

    @cached_property
    def diameter(self) -> float:
        """Length that no shortest path between two points exceeds: attained on trees."""
        return diameter(self)

    @property
    def longest_path(self) -> float:
        """The diameter: any two points are joined by a path of at most that length."""
        return self.diameter

    @cached_property
    def resolution(self) -> float:
        """Spacing of the public grid of distances along edges: the largest power of ten <= diameter * 1e-7."""
        return public_grid(self.diameter)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """(V, V) symmetric lengths of the shortest edge between each two joined vertices; loops left out."""
        ends = np.sort(self.edges, axis=1)
        order = np.argsort(self.lengths, kind="stable")
        order = order[ends[order, 0] != ends[order, 1]]
        pair, first = np.unique(ends[order], axis=0, return_index=True)
        shortest = self.lengths[order[first]]
        size = len(self.vertices)
        upper = sp.coo_array((shortest, (pair[:, 0], pair[:, 1])), shape=(size, size))
        return sp.csr_array(upper + upper.T)

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.lines)

    def positions(self, xy: npt.ArrayLike) -> Floats:
        """(n, 2) nearest positions to coordinates (n, 2): edge number, and distance along it.

        At equal distances the lower edge number counts.
        """
        points = shapely.points(np.asarray(xy, dtype=float).reshape(-1, 2))
        query, found = self._tree.query_nearest(points, all_matches=True)
        edge = np.full(len(points), len(self.edges))
        np.minimum.at(edge, query, found)
        return np.column_stack([edge, shapely.line_locate_point(self.lines[edge], points)])

    def coordinates(self, positions: npt.ArrayLike) -> Floats:
        """(n, 2) coordinates of positions (n, 2)."""
        at = np.asarray(positions, dtype=float).reshape(-1, 2)
        points = shapely.line_interpolate_point(self.lines[at[:, 0].astype(np.int64)], at[:, 1])
        return np.asarray(shapely.get_coordinates(points), dtype=np.float64).reshape(-1, 2)

    def on_grid(self, positions: Floats) -> Floats:
        """(n, 2) positions with distances rounded to the public grid, ends of edges excepted."""
        edge = positions[:, 0]
        along = np.round(positions[:, 1] / self.resolution) * self.resolution
        return np.column_stack([edge, np.clip(along, 0, self.lengths[edge.astype(np.int64)])])

    def holds(self, positions: Floats) -> npt.NDArray[np.bool_]:
        """(n,) whether positions lie in the domain: all do."""
        return np.ones(len(positions), dtype=bool)

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

    @cached_property
    def _rounding(self) -> float:
        return ROUNDING * (float(np.abs(self.vertices).max()) + self.diameter)

    def pattern(self, edge: npt.ArrayLike, t: npt.ArrayLike, marks: Mapping[str, Any] | None = None) -> PointPattern:
        """Pattern of points given by edges (n,) and fractions t (n,) of their lengths, from 0 to 1."""
        number, share = np.atleast_1d(np.asarray(edge, dtype=float)), np.atleast_1d(np.asarray(t, dtype=float))
        if number.shape != share.shape or number.ndim != 1:
            msg = "edge, t: need one edge number and one fraction per point."
            raise InputError(msg)
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
        return PointPattern.at(self.positions(points), self, marks)

    def within(self, xy: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
        """(n,) whether points (n, 2) may be snapped."""
        if not isinstance(tolerance, int | float) or isinstance(tolerance, bool) or not 0 < tolerance < np.inf:
            msg = f"tolerance: must be a positive distance ({self.unit}), got {tolerance!r}; for instance 15.0."
            raise InputError(msg)
        away = self.away(xy)
        near = away <= max(tolerance, self._rounding)
        if len(self.dropped) and near.any():
            other = shapely.STRtree(self.dropped)
            _, beside = other.query_nearest(shapely.points(xy[near]), return_distance=True, all_matches=False)
            near[near] = away[near] <= beside + self._rounding
        return near

    def distance(self, points_a: Any, points_b: Any = None) -> Floats:
        """(n, m) lengths of the shortest paths between points.

        Parameters
        ----------
        points_a : PointPattern or array_like, shape (n, 2)
            On this network.
        points_b : PointPattern or array_like, shape (m, 2), optional
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
        return PointPattern(points, self).positions

    def to_geojson(self) -> dict[str, Any]:
        """Describe the network as a GeoJSON FeatureCollection of its edges, with the numbers of their vertices."""
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
        try:
            edges = _edges([[f["properties"]["from"], f["properties"]["to"]] for f in data["features"]])
            lines = [shapely.LineString(f["geometry"]["coordinates"]) for f in data["features"]]
        except (KeyError, TypeError, ValueError, shapely.errors.ShapelyError):
            msg = "geojson: needs LineStrings with the numbers of their vertices (from, to); from_geodataframe takes others."
            raise InputError(msg) from None
        vertices = np.full((int(edges.max()) + 1, 2), np.nan)
        for ends, at in ((edges[:, 0], 0), (edges[:, 1], -1)):
            vertices[ends] = [line.coords[at] for line in lines]
        return cls(vertices, edges, crs_from_member(data.get("crs")), lines=lines)

    @cached_property
    def _fingerprint(self) -> str:
        return hashlib.sha256(canonical_json(self.to_geojson()).encode()).hexdigest()

    def fingerprint(self) -> str:
        """Return the SHA-256 hex digest of the canonical GeoJSON; equal networks have equal digests."""
        return self._fingerprint

    def _require_lengths(self) -> None:
        flat = np.flatnonzero(~(self.lengths > 0))
        if len(flat):
            msg = (
                f"edges: every edge needs a positive length; {len(flat)} of {len(self.edges)} have none, the first is "
                f"number {flat[0]}. Leave them out; a loop needs its course (lines=)."
            )
            raise InputError(msg)

    def _require_connected(self) -> None:
        count, label = sp.csgraph.connected_components(self.adjacency, directed=False)
        if count > 1:
            sizes = np.sort(np.bincount(label))[::-1]
            shown = ", ".join(map(str, sizes[:8])) + (", ..." if count > 8 else "")
            msg = (
                f"edges: the network falls into {count} components, of {shown} vertices; a path must join any two "
                "points. Join dangling ends (join=), or keep LinearNetwork.largest_component(vertices, edges); readers "
                "take largest_component=True."
            )
            raise InputError(msg)


def _vertices(values: Any) -> Floats:
    try:
        vertices = np.array(values, dtype=float)
    except (TypeError, ValueError):
        vertices = np.empty(0)
    if vertices.ndim != 2 or vertices.shape[1] != 2 or not np.isfinite(vertices).all():
        msg = "vertices: need finite coordinates of shape (V, 2)."
        raise InputError(msg)
    # Adding zero turns -0.0 into 0.0, which would print differently.
    return vertices + 0.0


def _edges(values: Any) -> Ints:
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or not len(numbers) or not np.all(numbers == np.floor(numbers)):
        msg = "edges: need whole vertex numbers of shape (E, 2), at least one edge."
        raise InputError(msg)
    return numbers.astype(np.int64)


def _lines(given: Any, vertices: Floats, edges: Ints) -> Any:
    """(E,) LineStrings in two dimensions, read-only, that run from each edge's first vertex to its second."""
    ends = vertices[edges]
    if given is None:
        lines = np.array(shapely.linestrings(ends), dtype=object)
    else:
        lines = np.array(list(given), dtype=object)
        if len(lines) != len(edges) or not np.all(shapely.get_type_id(lines) == shapely.GeometryType.LINESTRING):
            msg = "lines: need one LineString per edge."
            raise InputError(msg)
        lines = shapely.transform(shapely.force_2d(lines), lambda xy: xy + 0.0)
        if not all(np.isfinite(shapely.get_coordinates(lines)).ravel()):
            msg = "lines: their coordinates must be finite."
            raise InputError(msg)
        first, last = shapely.get_point(lines, 0), shapely.get_point(lines, -1)
        course = np.stack([shapely.get_coordinates(first), shapely.get_coordinates(last)], axis=1)
        if not np.array_equal(course, ends):
            msg = "lines: each must start at its edge's first vertex and end at its second."
            raise InputError(msg)
    lines.flags.writeable = False
    return lines
