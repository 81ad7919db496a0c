"""Public layers: values at every place, such as population or the distance to a pump."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import shapely

from dpppsynth.core.arguments import real, shown, writable
from dpppsynth.core.crs import NAMELESS, crs_label, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.core.wording import either
from dpppsynth.spatial.domains import LARGEST, Domain, Window, as_reals
from dpppsynth.spatial.mesh import Mesh, Pieces

# Share of a domain that a layer may lack: slivers between neighbours that were digitised apart.
SLIVERS = 1e-6


# Characters of the words on where a layer was published.
LONGEST_SOURCE = 300


def is_source(source: object) -> bool:
    """Whether a text is a valid source of a layer."""
    return isinstance(source, str) and writable(source) and 0 < len(source) <= LONGEST_SOURCE


def layer_source(source: object) -> str:
    """Source of a layer as a text, "" without one; InputError for invalid ones."""
    if source == "" or is_source(source):
        return str(source)
    msg = f"source: needs at most {LONGEST_SOURCE} printable characters, such as 'Census 2021', got {shown(source)}."
    raise InputError(msg)


class PublicLayer:
    """Base of layers: real numbers over the plane, of which some places may have none.

    Attributes
    ----------
    label : str
        Name in messages, such as that of a file.
    crs : str or None
        None where coordinates are taken to be the domain's.
    unnamed : str
        How to name the coordinate system of a source that could and does not, as a form such as "crs={}"; empty of
        others. It is never guessed.
    """

    label: str
    crs: str | None
    unnamed: str = ""
    # Remedy for gaps, of layers that are not filled.
    remedy: ClassVar[str] = ""

    def __call__(self, xy: Floats) -> Floats:
        """(n,) values at coordinates (n, 2); NaN where there is none."""
        raise NotImplementedError

    def missing(self, domain: Domain) -> float:
        """Share of the domain's area, or length, that has no value; exact, since all of it is public."""
        raise NotImplementedError

    def require_crs(self, argument: str, domain: Domain) -> None:
        """Refuse a layer in other coordinates than the domain's, or in some that its source does not name."""
        if self.crs is None and self.unnamed and domain.crs is not None:
            raise InputError(nameless(argument, self.label, self.unnamed, domain.crs))
        if self.crs is None or same_crs(self.crs, domain.crs):
            return
        here = "has none" if domain.crs is None else f"is in {crs_label(domain.crs)}"
        msg = (
            f"{named(argument, self.label)} is in the coordinate system {crs_label(self.crs)}, and the domain {here}; "
            "re-project the layer to the domain's first."
        )
        raise InputError(msg)

    def require_whole(self, argument: str, domain: Domain) -> None:
        """Refuse a layer that is not in the domain's coordinates, or that lacks values somewhere in the domain."""
        self.require_crs(argument, domain)
        share = self.missing(domain)
        if share > SLIVERS:
            raise InputError(self.gap(argument, share, domain))

    def gap(self, argument: str, share: float, domain: Domain) -> str:
        """Message about a layer without values in a share of the domain."""
        place = "window" if isinstance(domain, Window) else "network"
        percent = f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
        remedy = self.remedy or filling(argument)
        return f"{named(argument, self.label)} {percent} % of the {place} has no value; {remedy}."


def outside_value(fill: object) -> float:
    """Value where a layer has none: the user's, or NaN, so that gaps are refused; InputError unless it is a number."""
    if fill is None:
        return float("nan")
    number = real(fill)
    if number is None or not abs(number) <= LARGEST:
        msg = f"fill: needs a number such as 0 for places without a value, or None, got {shown(fill)}."
        raise InputError(msg)
    return float(number)


def nameless(argument: str, label: str, form: str, crs: str) -> str:
    """Message about a layer that does not say which coordinate system it is in, where the domain has one."""
    known = crs_label(crs)
    example = "EPSG:27700" if known == NAMELESS else known
    return (
        f"{named(argument, label)} does not say which coordinate system it is in, and the domain is in {known}; name "
        f"it, such as {form.format(example)}."
    )


def filling(argument: str) -> str:
    """Remedy for a layer with gaps: on the command line only an offset's are filled by an option."""
    return either("fill it, or state fill=0", "fill it" + ", or give --offset-fill 0" * argument.startswith("offset"))


def named(argument: str, label: str) -> str:
    """Beginning of a message about a layer that was given as an argument."""
    return f"{argument}:" if label == argument else f"{argument}: {label}:"


def covered(part: shapely.Geometry, domain: Domain) -> float:
    """Share of a domain's area or length inside a region."""
    size = shapely.area if isinstance(domain, Window) else shapely.length
    return float(np.clip(size(shapely.intersection(domain.geometry, part)) / size(domain.geometry), 0, 1))


class FunctionLayer(PublicLayer):
    """A public function from coordinates (n, 2) to values (n,), such as the distance to a public place.

    Parameters
    ----------
    function : callable
        It is only ever called with public places, never with points of a pattern.
    label : str
        Name in messages.
    """

    remedy: ClassVar[str] = "let the function give a number everywhere"

    def __init__(self, function: Callable[[Floats], Any], *, label: str = "function") -> None:
        if not callable(function):
            msg = f"{label}: needs a function of coordinates (n, 2), got {type(function).__name__}."
            raise InputError(msg)
        self.function, self.label, self.crs = function, label, None

    def __call__(self, xy: Floats) -> Floats:
        values = as_reals(self._answer(xy), f"{self.label}: values must be real numbers.")
        if values.shape != (len(xy),):
            msg = f"{self.label}: must give one number for each of {len(xy)} places, got shape {values.shape}."
            raise InputError(msg)
        return values

    def _answer(self, xy: Floats) -> Any:
        """The function's own answer; whatever it raises is told with the function's name."""
        try:
            return self.function(np.array(xy))
        except Exception as cause:
            msg = (
                f"{self.label}: the function failed with {type(cause).__name__}; it must take coordinates (n, 2), here "
                f"n = {len(xy)}, and give values (n,)."
            )
            raise InputError(msg) from cause

    def missing(self, domain: Domain) -> float:
        """Zero, as missing values of a function show only where it is evaluated."""
        return 0.0


class PolygonLayer(PublicLayer):
    """Polygons with a value each, in one coordinate system.

    Parameters
    ----------
    polygons : (P,) array of shapely polygons
        Valid and without overlap.
    values : (P,) array
        Finite.
    outside : float
        Value where no polygon lies; NaN where there is none.
    crs : str, optional
    label : str
        Name in messages.
    """

    def __init__(
        self,
        polygons: Any,
        values: Any,
        *,
        outside: float = float("nan"),
        crs: str | None = None,
        label: str = "polygons",
    ) -> None:
        self.label, self.crs, self.outside = label, crs, outside
        self.polygons = np.array(polygons, dtype=object).reshape(-1)
        self.values = as_reals(values, f"{label}: values must be real numbers.").reshape(-1)
        self._require_shapes()
        if len(self.polygons) != len(self.values) or not len(self.values):
            msg = f"{label}: needs one value per polygon, and at least one polygon."
            raise InputError(msg)
        if not np.isfinite(self.values).all():
            msg = f"{label}: values must be finite; fill gaps in the layer first."
            raise InputError(msg)
        self._require_apart()
        self.values.flags.writeable = False

    def _require_shapes(self) -> None:
        if not all(isinstance(polygon, shapely.Geometry) for polygon in self.polygons):
            msg = f"{self.label}: needs valid polygons of shapely, one for each value."
            raise InputError(msg)
        if not (np.abs(shapely.get_coordinates(self.polygons)) <= LARGEST).all():
            msg = f"{self.label}: coordinates must be finite, of size {LARGEST:g} at most."
            raise InputError(msg)

    def _require_apart(self) -> None:
        others = sorted({each.geom_type for each in self.polygons if shapely.get_dimensions(each) != 2})
        if others:
            msg = (
                f"{self.label}: needs polygons, got {', '.join(others)}, with no value beside them. Take a "
                "raster or polygons, such as lines or points with a margin (shapely.buffer); a covariate may be a "
                "function of places as well, such as the distance to them."
            )
            raise InputError(msg)
        if not np.all(shapely.is_valid(self.polygons)):
            msg = f"{self.label}: needs valid polygons; shapely.make_valid mends them."
            raise InputError(msg)
        if shapely.area(self.polygons).sum() > self.union.area * (1 + 1e-9):
            msg = f"{self.label}: polygons must not overlap; dissolve or clip the layer first."
            raise InputError(msg)

    @classmethod
    def from_geodataframe(
        cls, layer: Any, column: str, *, fill: float | None = None, label: str = "layer"
    ) -> "PolygonLayer":
        """Polygons of a GeoDataFrame with a numeric column.

        Parameters
        ----------
        layer : GeoDataFrame
        column : str
        fill : float, optional
            Value of polygons that have none, and of places without a polygon; without it both are refused.
        label : str
            Name in messages.
        """
        if not hasattr(layer, "columns") or not hasattr(layer, "geometry"):
            msg = f"{label}: needs a GeoDataFrame of polygons, got {type(layer).__name__}."
            raise InputError(msg)
        if column not in layer.columns:
            msg = f"{label}: column {column!r} not found; the layer has {sorted(map(str, layer.columns))}."
            raise InputError(msg)
        try:
            values = layer[column].to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError):
            msg = f"{label}: column {column!r} must hold numbers only."
            raise InputError(msg) from None
        crs = None if layer.crs is None else layer.crs.to_string()
        whose = f"{label}: column {column!r}"
        outside = outside_value(fill)
        values = filled(values, outside, whose, "polygons")
        made = cls(np.asarray(layer.geometry.array), values, outside=outside, crs=crs, label=label)
        made.unnamed = 'layer.set_crs("{}")'
        return made

    def __repr__(self) -> str:
        return f"PolygonLayer({len(self.values)} polygons)"

    @cached_property
    def tree(self) -> shapely.STRtree:
        """Index of the polygons."""
        return shapely.STRtree(self.polygons)

    @cached_property
    def union(self) -> Any:
        """All polygons as one region."""
        return shapely.union_all(self.polygons)

    def __call__(self, xy: Floats) -> Floats:
        """(n,) values at coordinates (n, 2); on a shared border the lower polygon number counts."""
        query, found = self.tree.query(shapely.points(xy), predicate="intersects")
        chosen = np.full(len(xy), len(self.values))
        np.minimum.at(chosen, query, found)
        return np.append(self.values, self.outside)[chosen]

    def missing(self, domain: Domain) -> float:
        return 0.0 if np.isfinite(self.outside) else 1 - covered(self.union, domain)

    @cached_property
    def sizes(self) -> Floats:
        """(P,) areas of the polygons."""
        return np.asarray(shapely.area(self.polygons))

    def street_lengths(self, domain: Domain) -> Floats:
        """(P,) lengths of a network's streets in the polygons; a street on a border is in both."""
        return np.asarray(shapely.length(shapely.intersection(self.polygons, domain.geometry)))

    def restrict(self, mesh: Mesh) -> Pieces:
        """The mesh's pieces, cut by the polygons, with the values in their weights."""
        pieces, polygon = mesh.cut(self.polygons, self.tree)
        return Pieces(pieces.corners, pieces.element, pieces.weight * self.values[polygon])

    def bounds(self, mesh: Mesh) -> float:
        """Largest value, a bound on every element of a mesh."""
        return float(self.values.max())

    def with_values(self, values: Floats, outside: float) -> "PolygonLayer":
        """The same polygons with other values."""
        same = object.__new__(PolygonLayer)
        same.__dict__ = self.__dict__ | {"values": values, "outside": outside}
        values.flags.writeable = False
        return same


def filled(values: Floats, fill: float, whose: str, of: str) -> Floats:
    """Values with `fill` in the place of NaN, or an InputError that says how many have none."""
    unknown = np.isnan(values)
    if np.isnan(fill) and unknown.any():
        msg = (
            f"{whose} has no value in {int(unknown.sum())} of {len(values)} {of}; {filling(whose.removeprefix('--'))}."
        )
        raise InputError(msg)
    return np.where(unknown, fill, values)
