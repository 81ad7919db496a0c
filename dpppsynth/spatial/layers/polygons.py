"""`PolygonLayer`: polygons that do not overlap, each with one value."""

from functools import cached_property
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import LARGEST, Domain, as_reals
from dpppsynth.spatial.layers.public_layer import PublicLayer, covered, filling, outside_value
from dpppsynth.spatial.mesh import Floats, Mesh, Pieces


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

    Raises
    ------
    InputError
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
        if not np.all(shapely.is_valid(self.polygons)) or not np.all(shapely.get_dimensions(self.polygons) == 2):
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

        Raises
        ------
        InputError
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
        """Share of the domain without a polygon, where no value is given for that."""
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
        """Largest value."""
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
