"""Domains: the public regions (windows) that hold point patterns, and the interface that networks share.

A domain is chosen before the data are seen and may be shown to anybody, so its coordinates appear freely in messages.
Distances and areas are those of the map, in the unit of its coordinate reference system (CRS); degrees are refused. A
privacy radius is a true length, and `scale_factor` says how much longer it is on the map.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from shapely.geometry import MultiPolygon, Polygon

from dpppsynth.core.arguments import positive
from dpppsynth.core.crs import crs_from_member, crs_label, crs_member, projected_crs, remedy, same_crs, unit_name
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.local_crs import middle
from dpppsynth.core.map_scale import scale_factor
from dpppsynth.core.rounding import nearest_multiples, power_of_ten, upward
from dpppsynth.core.units import lengths_in
from dpppsynth.core.wording import LEFT_OUT, mention
from dpppsynth.spatial.polygons import near_parts, polygonal, without_gaps

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

# Largest coordinate: beyond it floats cannot resolve a thousandth.
LARGEST = 1e12
# Shares of the coordinates by which places on a border are looked for inside it.
INWARDS = (0.0, 1e-15, 1e-12, 1e-9)


class Domain(ABC):
    """Base of regions: `Window` in the plane, `LinearNetwork` on streets.

    Points have coordinates in the plane, and a position in the domain: on a window the same pair of numbers, on a
    network the number of an edge and the distance along it.
    """

    # Fields of one kind, properties of another; a property here would be the default of a field there.
    if TYPE_CHECKING:

        @property
        def crs(self) -> str | None:
            """Coordinate reference system, such as ``"EPSG:27700"``."""

        @property
        def geometry(self) -> Any:
            """The whole domain as one shapely geometry."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """Rule that points must keep, and the remedy for others, in the words of a message."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Area of a window, length of a network: an intensity is a number of points per unit of it."""

    @property
    @abstractmethod
    def extent(self) -> float:
        """A length that rules scale with: on windows the square root of the area."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points, in a straight line on windows and along the edges on networks."""

    @property
    def longest_path(self) -> float:
        """Length that no shortest path between two points exceeds; infinite where none is known."""
        return self.diameter

    @property
    def is_rectangle(self) -> bool:
        """Whether the domain is a rectangle with sides along the axes."""
        return False

    @abstractmethod
    def contains(self, xy: ArrayLike) -> NDArray[np.bool_]:
        """Tell for each row of an (n, 2) array whether the point belongs to the domain."""

    def within(self, xy: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
        """Tell which points (n, 2) belong to the domain; on a network also those that may be moved onto it."""
        return self.contains(xy)

    def positions(self, xy: ArrayLike) -> NDArray[np.float64]:
        """(n, 2) positions of coordinates (n, 2)."""
        return np.asarray(xy, dtype=np.float64).reshape(-1, 2)

    def nearest(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) positions of the places of the domain nearest to coordinates (n, 2)."""
        return self.positions(xy)

    def coordinates(self, positions: ArrayLike) -> NDArray[np.float64]:
        """(n, 2) coordinates of positions (n, 2)."""
        return np.asarray(positions, dtype=np.float64).reshape(-1, 2)

    def released_coordinates(self, positions: ArrayLike) -> NDArray[np.float64]:
        """(n, 2) coordinates of released positions (n, 2), with few decimals; in the domain to rounding."""
        return self.coordinates(positions)

    @abstractmethod
    def on_grid(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) positions rounded to the public grid; some may leave the domain."""

    def holds(self, positions: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which positions (n, 2) belong to the domain."""
        return self.contains(positions)

    @abstractmethod
    def to_geojson(self) -> dict[str, Any]:
        """Describe the domain as GeoJSON."""

    @abstractmethod
    def severed(self, reach: float) -> tuple[str, ...]:
        """Warnings about places within `reach` on the map but farther apart along paths."""

    @cached_property
    def unit(self) -> str:
        """Name of the unit of length."""
        return "unit" if self.crs is None else unit_name(self.crs)

    @cached_property
    def scale_factor(self) -> float:
        """Largest length on the map of one unit of true length, at least 1."""
        return scale_factor(self.geometry, self.crs)

    def as_stated(self, crs: str | None, scale: float) -> Self:
        """Copy on the map, and with the scale factor, that a release states."""
        same = copy.copy(self)
        object.__setattr__(same, "crs", None if crs is None else projected_crs(crs))
        same.__dict__["scale_factor"] = scale
        return same

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Bounding box (x0, y0, x1, y1)."""
        x0, y0, x1, y1 = (float(v) for v in self.geometry.bounds)
        return x0, y0, x1, y1

    @cached_property
    def resolution(self) -> float:
        """Spacing of the public grid of released positions: the largest power of ten <= diameter * 1e-7."""
        return power_of_ten(self.diameter / 1e7)

    @cached_property
    def _fingerprint(self) -> str:
        return hashlib.sha256(canonical_json(self.to_geojson()).encode()).hexdigest()

    def fingerprint(self) -> str:
        """Return a digest that equal domains share."""
        return self._fingerprint


def require_domain(domain: object) -> None:
    """Refuse anything but a window or a network, with an InputError."""
    if not isinstance(domain, Domain):
        got = type(domain).__name__
        msg = f"domain: must be a Window or a LinearNetwork; got {got}; Window.rectangle makes one."
        raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class Window(Domain):
    """A planar region with positive area: the public window in which a pattern is observed.

    Build it with `Window.rectangle`, `Window.polygon` or `Window.from_geojson`.

    Parameters
    ----------
    geometry : shapely.Polygon or shapely.MultiPolygon
        A valid region, holes allowed. Stored in two dimensions, in one canonical order of parts, rings and vertices.
    crs : str, int, pyproj.CRS or None
        A projected CRS, kept as ``"EPSG:27700"`` where an authority code exists and as WKT otherwise; None when the
        coordinates are plain numbers.
    changes : tuple of str
        Changes made to the source, in words.

    Raises
    ------
    InputError
        The geometry is not a valid region of positive area with finite bounds, the CRS is unknown or geographic, or
        its map stretches lengths in the region by more than a twentieth.

    Examples
    --------
    >>> soho = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
    >>> soho
    Window(rectangle [529100, 529770] x [180680, 181350], EPSG:27700, metre)
    >>> soho.contains([[529200.0, 181000.0], [0.0, 0.0]])
    array([ True, False])
    """

    geometry: Polygon | MultiPolygon
    crs: str | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        region = _canonical(self.geometry)
        object.__setattr__(self, "geometry", region)
        object.__setattr__(self, "crs", None if self.crs is None else projected_crs(self.crs))
        self.scale_factor  # noqa: B018 - a map that stretches lengths too much is refused here

    @classmethod
    def rectangle(cls, x0: float, y0: float, x1: float, y1: float, crs: CRSLike | None = None) -> Self:
        """Build the rectangle [x0, x1] x [y0, y1].

        Raises
        ------
        InputError
            A bound is not finite, x1 <= x0 or y1 <= y0.
        """
        bounds = _finite_bounds(x0, y0, x1, y1)
        for axis, low, high in (("x", bounds[0], bounds[2]), ("y", bounds[1], bounds[3])):
            if high <= low:
                got = f"{axis}0={low:.15g}, {axis}1={high:.15g}"
                msg = f"{axis}1: must be larger than {axis}0; got {got}. The order is x0, y0, x1, y1"
                raise InputError(msg)
        return cls(shapely.box(*bounds), None if crs is None else projected_crs(crs, at=(crs, *middle(bounds))))

    @classmethod
    def polygon(cls, geometry: Any, crs: CRSLike | None = None, *, join: float | None = None) -> Self:
        """Build a window from polygons, holes allowed; several are united.

        Parameters
        ----------
        geometry : shapely geometry, GeoDataFrame, GeoJSON-like mapping, or object with ``__geo_interface__``
            The region.
        crs : str, int, pyproj.CRS or None
            Its projected coordinate reference system; unless given that of a GeoDataFrame.
        join : float, optional
            Fill gaps between parts, slits and holes that are no wider, in the unit of the coordinates; `changes` says
            what that changed.

        Raises
        ------
        InputError
            The geometry is no valid region, the tolerance is not a distance, or a GeoDataFrame is in another coordinate
            system than `crs`.
        """
        own = getattr(geometry, "crs", None)
        if crs is not None and own is not None and not same_crs(projected_crs(crs), projected_crs(own)):
            msg = "crs: the geometry is in another coordinate system; leave crs out, or convert it with to_crs"
            raise InputError(msg)
        stated = own if crs is None else crs
        mapping: Any = geometry if isinstance(geometry, Mapping) else getattr(geometry, "__geo_interface__", {})
        collected = mapping.get("type") in ("Feature", "FeatureCollection")
        parts = [_as_shapely(each) for each in (_geometries(mapping) if collected else [geometry])]
        region = parts[0] if len(parts) == 1 else unite(parts)
        at = None if stated is None or region.is_empty else (stated, *middle(region.bounds))
        window = cls(region, None if stated is None else projected_crs(stated, at=at))
        return window if join is None else window._joined(join)

    def _joined(self, width: float) -> Self:
        positive("join", width, rule=f"be a positive distance ({self.unit})", most=LARGEST, remedy="for instance 0.01")
        whole = type(self)(without_gaps(self.geometry, float(width)), self.crs)
        added = max(whole.area - self.area, 0.0)
        before, after = (shapely.get_num_geometries(each.geometry) for each in (self, whole))
        # Of a large window the area of a bridge is less than its rounding.
        if added == 0 and before == after:
            return self
        said = f"filled gaps up to {width:g} wide: {before} parts became {after}, an area of {added:.3g} was added"
        return type(self)(whole.geometry, self.crs, (*self.changes, said))

    def severed(self, reach: float) -> tuple[str, ...]:
        gaps = near_parts(self.geometry, reach)
        if not len(gaps):
            return ()
        smallest = float(gaps.min())
        pairs = "2 of its parts are" if len(gaps) == 1 else f"{len(gaps)} pairs of its parts are"
        said = (
            f"domain: {pairs} nearer to each other than {lengths_in(reach, self.unit)}, and the smallest gap is "
            f"{upward(smallest, 3)} wide; moves across are not protected, because paths run inside the window. Where a "
            f"gap is an error of drawing, close it, for instance with {mention('join', upward(smallest, 1))}."
        )
        return (said,)

    @classmethod
    def from_geojson(cls, document: Mapping[str, Any]) -> Self:
        """Rebuild a window from the dictionary that `to_geojson` wrote.

        Any FeatureCollection, Feature or geometry of polygons with a ``crs`` member will do; several polygons are
        united. A missing member means degrees (RFC 7946), which is refused; ``null`` means that there is no CRS.

        Raises
        ------
        InputError
            The document has no ``crs`` member, or does not describe polygons.
        """
        if not isinstance(document, Mapping) or "type" not in document:
            msg = "document: must be a GeoJSON dictionary with a 'type'; Window.to_geojson() makes one"
            raise InputError(msg)
        if "crs" not in document:
            msg = f"document: has no 'crs' member, and standard GeoJSON is in degrees. With read_window, {remedy()}"
            raise InputError(msg)
        return cls.polygon(document, crs_from_member(document["crs"]))

    @cached_property
    def area(self) -> float:
        """Area in squared units."""
        return float(self.geometry.area)

    @cached_property
    def diameter(self) -> float:
        """Largest Euclidean distance between two points of the window."""
        corners = shapely.get_coordinates(self.geometry.convex_hull)
        return max(float(np.hypot(*(corners[i:] - corner).T).max()) for i, corner in enumerate(corners))

    @cached_property
    def is_rectangle(self) -> bool:
        return bool(self.geometry.equals(shapely.box(*self.bounds)))

    @cached_property
    def is_convex(self) -> bool:
        """Whether straight segments between points of the window stay inside it."""
        if isinstance(self.geometry, MultiPolygon) or self.geometry.interiors:
            return False
        hull = self.geometry.convex_hull
        # Area alone would miss a slit a few rounding errors wide, which lengthens every path around it.
        dent = shapely.distance(hull.exterior, shapely.points(shapely.get_coordinates(self.geometry))).max()
        return bool(hull.area - self.area <= 1e-12 * hull.area and dent <= 1e-9 * self.diameter)

    @property
    def rule(self) -> str:
        return f"must lie in the window; choose a larger one from public knowledge ({LEFT_OUT})"

    @property
    def size(self) -> float:
        return self.area

    @property
    def extent(self) -> float:
        return math.sqrt(self.area)

    @property
    def longest_path(self) -> float:
        """The diameter of a convex window; infinite on others, where paths may be long or missing."""
        return self.diameter if self.is_convex else math.inf

    def on_grid(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        return nearest_multiples(positions, self.resolution)

    def contains(self, xy: ArrayLike) -> NDArray[np.bool_]:
        points = as_reals(xy, "xy: must be numbers of shape (n, 2)")
        if points.ndim != 2 or points.shape[1] != 2:
            msg = f"xy: must have shape (n, 2); got {points.ndim} dimension(s)"
            raise InputError(msg)
        x, y = points.T
        x0, y0, x1, y1 = self.bounds
        inside: NDArray[np.bool_] = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        if not self.is_rectangle:
            shapely.prepare(self.geometry)
            inside[inside] = shapely.intersects_xy(self.geometry, x[inside], y[inside])
        return inside

    def outside(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) distances from coordinates (n, 2) to the window, 0 inside."""
        shapely.prepare(self.geometry)
        return np.asarray(shapely.distance(self.geometry, shapely.points(xy)), dtype=np.float64)

    def within(self, xy: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
        return np.asarray(self.contains(xy) | (self.outside(xy) <= tolerance), dtype=bool)

    def nearest(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        moved = np.array(xy, dtype=np.float64)
        away = np.flatnonzero(~self.contains(moved))
        size = float(np.abs(self.bounds).max())
        # A place on a slanting border is beside it by rounding: then a little inwards.
        for share in INWARDS:
            region = self.geometry if share == 0 else self.geometry.buffer(-share * size)
            if not len(away) or region.is_empty:
                break
            lines = shapely.shortest_line(region, shapely.points(xy[away]))
            moved[away] = shapely.get_coordinates(shapely.get_point(lines, 0))
            away = away[~self.contains(moved[away])]
        return moved

    def to_geojson(self) -> dict[str, Any]:
        geometry = shapely.geometry.mapping(self.geometry)
        feature = {"type": "Feature", "properties": {}, "geometry": json.loads(json.dumps(geometry))}
        return {"type": "FeatureCollection", "crs": crs_member(self.crs), "features": [feature]}

    def _repr_html_(self) -> str:
        x0, y0, x1, y1 = self.bounds
        shape = "rectangle" if self.is_rectangle else self.geometry.geom_type.lower()
        place = f"[{x0:.10g}, {x1:.10g}] x [{y0:.10g}, {y1:.10g}]"
        rows = [("shape", shape), ("bounds", place), ("coordinate system", self.crs or "none"), ("unit", self.unit)]
        return html_card("Window", [*rows, ("area", f"{self.size:.6g}")])

    def __repr__(self) -> str:
        x0, y0, x1, y1 = self.bounds
        kind = "rectangle" if self.is_rectangle else f"{self.geometry.geom_type.lower()} in"
        name = "no CRS" if self.crs is None else crs_label(self.crs)
        return f"Window({kind} [{x0:.10g}, {x1:.10g}] x [{y0:.10g}, {y1:.10g}], {name}, {self.unit})"


def as_reals(values: Any, rule: str) -> NDArray[np.float64]:
    """Copy numbers into an array, NaN where numpy.ma hides one.

    An InputError has `rule` as its message, which never shows the values: numpy's own would.
    """
    try:
        plain = np.ma.array(values)
        # Casting would drop imaginary parts with no more than a warning.
        numbers = None if np.iscomplexobj(plain) else plain.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None:
        raise InputError(rule)
    return np.asarray(np.ma.filled(numbers, np.nan), dtype=np.float64)


def canonical_json(value: Any) -> str:
    """Write JSON in the one form that is hashed: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def unite(parts: list[Any]) -> Any:
    """Join polygons into one region."""
    parts = [polygonal(part) for part in parts]
    require_polygons(parts)
    for part in parts:
        _refuse_invalid(part)
    return shapely.union_all(parts)


def require_polygons(parts: list[Any]) -> None:
    """Refuse an empty list, and anything but polygons with finite coordinates."""
    bad = [part for part in parts if polygonal(part).geom_type not in ("Polygon", "MultiPolygon")]
    if bad or not parts:
        found = bad[0].geom_type if bad else "nothing"
        border = bad and all(part.geom_type in ("LineString", "MultiLineString", "LinearRing") for part in parts)
        remedy = (
            "Make polygons of these lines (in QGIS: Polygonize)" if border else "Leave out every other kind of geometry"
        )
        msg = f"geometry: a window is made of polygons; found {found}. {remedy}"
        raise InputError(msg)
    for part in parts:
        _finite_bounds(*shapely.get_coordinates(part).ravel())


def _finite_bounds(*bounds: float) -> tuple[float, ...]:
    try:
        values = tuple(float(v) for v in bounds)
    except (TypeError, ValueError, OverflowError):
        values = (math.nan,)
    if not all(abs(value) <= LARGEST for value in values):
        msg = f"x0, y0, x1, y1: the bounds of a window must be finite numbers, of size {LARGEST:g} at most"
        raise InputError(msg)
    return values


def _geometries(document: Mapping[str, Any]) -> list[Any]:
    try:
        if document["type"] == "FeatureCollection":
            return [feature["geometry"] for feature in document["features"]]
        return [document["geometry"] if document["type"] == "Feature" else document]
    except (LookupError, TypeError):
        msg = "document: must be a GeoJSON FeatureCollection, Feature or geometry; Window.to_geojson() makes one"
        raise InputError(msg) from None


def _as_shapely(geometry: Any) -> Any:
    if isinstance(geometry, shapely.Geometry):
        return geometry
    try:
        return shapely.geometry.shape(geometry)
    except Exception:  # noqa: BLE001 - shapely raises many kinds for malformed mappings
        msg = "geometry: must be a shapely Polygon or MultiPolygon, or a GeoJSON-like dictionary of one"
        raise InputError(msg) from None


def _refuse_invalid(region: Any) -> None:
    if not region.is_valid:
        msg = f"geometry: must be valid; {shapely.is_valid_reason(region)}. Repair it with shapely.make_valid"
        raise InputError(msg)


def _canonical(geometry: Any) -> Polygon | MultiPolygon:
    """Check a region and order its parts, rings (counter-clockwise outside) and vertices in the one canonical way."""
    geometry = polygonal(geometry)
    kind = getattr(geometry, "geom_type", type(geometry).__name__)
    if kind not in ("Polygon", "MultiPolygon"):
        msg = f"geometry: a window must be a Polygon or MultiPolygon; got {kind}"
        raise InputError(msg)
    if geometry.is_empty:
        msg = "geometry: a window must not be empty"
        raise InputError(msg)
    _finite_bounds(*shapely.get_coordinates(geometry).ravel())
    if not geometry.area > 0.0:
        msg = "geometry: a window must have positive area"
        raise InputError(msg)
    _refuse_invalid(geometry)
    # Adding zero turns -0.0 into 0.0, which would print differently.
    flat = shapely.transform(_without_empty_rings(shapely.force_2d(geometry)), lambda xy: xy + 0.0)
    region = shapely.orient_polygons(shapely.normalize(flat))
    if isinstance(region, MultiPolygon) and len(region.geoms) == 1:
        return region.geoms[0]
    return region


def _without_empty_rings(region: Any) -> Any:
    """Leave out parts and holes without coordinates, which GEOS calls valid and then crashes on."""
    parts = [
        Polygon(part.exterior, [hole for hole in part.interiors if not hole.is_empty])
        for part in shapely.get_parts(region)
        if not part.is_empty
    ]
    return MultiPolygon(parts) if len(parts) > 1 else parts[0]
