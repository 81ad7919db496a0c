"""Public offsets: a base intensity, such as population density, that multiplies the fitted one."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import LARGEST, as_reals, canonical_json
from dpppsynth.spatial.mesh import Floats, Mesh, Pieces


def weighted_pieces(mesh: Mesh, offset: "Offset | None") -> Pieces:
    """Pieces over which an intensity on the mesh integrates: the mesh's own, or cut and weighted by the offset."""
    return mesh.pieces if offset is None else offset.restrict(mesh)


def require_somewhere(measure: Floats) -> None:
    """InputError unless integrals (V,) of basis functions times an offset have a positive finite sum."""
    if not 0 < measure.sum() < np.inf:
        msg = (
            "offset: its integral over the window must be positive and finite, and it is zero everywhere there, or far "
            "too large; check its coordinates, CRS and values."
        )
        raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class Offset:
    """Piecewise constant public intensity: a polygon layer, or a raster as its cells.

    Where no polygon lies the offset is zero, and no synthetic point is ever drawn there. The offset must be public: it
    enters the release unprotected.

    Attributes
    ----------
    polygons : (P,) array of shapely polygons
        Non-overlapping, in the window's coordinates.
    values : (P,) array
        Non-negative; only their proportions matter.
    """

    polygons: Any
    values: Floats

    def __post_init__(self) -> None:
        polygons = np.array(self.polygons, dtype=object).reshape(-1)
        values = as_reals(self.values, "offset: values must be real numbers.").reshape(-1)
        if not all(isinstance(polygon, shapely.Geometry) for polygon in polygons):
            msg = "offset: needs valid polygons of shapely, one for each value."
            raise InputError(msg)
        if not (np.abs(shapely.get_coordinates(polygons)) <= LARGEST).all():
            msg = f"offset: coordinates must be finite, of size {LARGEST:g} at most."
            raise InputError(msg)
        if len(polygons) != len(values) or not len(values):
            msg = "offset: needs one value per polygon, and at least one polygon."
            raise InputError(msg)
        if not np.all(np.isfinite(values)) or values.min() < 0 or values.max() == 0:
            msg = "offset: values must be finite, non-negative and not all zero; fill gaps in the layer first."
            raise InputError(msg)
        if not np.all(shapely.is_valid(polygons)) or not np.all(shapely.get_dimensions(polygons) == 2):
            msg = "offset: needs valid polygons; shapely.make_valid mends them."
            raise InputError(msg)
        total = shapely.area(polygons).sum()
        if total > shapely.union_all(polygons).area * (1 + 1e-9):
            msg = "offset: polygons must not overlap; dissolve or clip the layer first."
            raise InputError(msg)
        values.flags.writeable = False
        object.__setattr__(self, "polygons", polygons)
        object.__setattr__(self, "values", values)

    @classmethod
    def from_geodataframe(cls, layer: Any, column: str) -> "Offset":
        """Offset from a GeoDataFrame of polygons and the name of a numeric column (a density, not a count)."""
        if column not in layer.columns:
            msg = f"offset: column {column!r} not found; the layer has {sorted(map(str, layer.columns))}."
            raise InputError(msg)
        return cls(np.asarray(layer.geometry.array), layer[column].to_numpy(dtype=float))

    @classmethod
    def from_grid(cls, values: npt.ArrayLike, bounds: tuple[float, float, float, float]) -> "Offset":
        """Offset from a raster (rows, columns), first row at the top, covering `bounds` = (x0, y0, x1, y1)."""
        raster = as_reals(values, "values: must be real numbers.")
        if raster.ndim != 2:
            msg = f"values: the raster needs two dimensions (rows, columns), got {raster.ndim}."
            raise InputError(msg)
        corners = as_reals(bounds, "bounds: must be four real numbers.")
        if corners.shape != (4,) or not (np.abs(corners) <= LARGEST).all() or not (corners[:2] < corners[2:]).all():
            msg = f"bounds: expected (x0, y0, x1, y1) with x0 < x1 and y0 < y1, got {bounds!r}."
            raise InputError(msg)
        x0, y0, x1, y1 = corners
        rows, columns = raster.shape
        x = np.linspace(x0, x1, columns + 1)
        y = np.linspace(y1, y0, rows + 1)
        cells = shapely.box(x[None, :-1], y[1:, None], x[None, 1:], y[:-1, None])
        return cls(cells.ravel(), raster.ravel())

    def __repr__(self) -> str:
        return f"Offset({len(self.values)} polygons, fingerprint {self.fingerprint[:12]})"

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.polygons)

    def __call__(self, xy: Floats) -> Floats:
        """(n,) offset at the points (n, 2); on a shared border the lower polygon number counts."""
        query, found = self._tree.query(shapely.points(xy), predicate="intersects")
        chosen = np.full(len(xy), len(self.values))
        np.minimum.at(chosen, query, found)
        return np.append(self.values, 0.0)[chosen]

    def restrict(self, mesh: Mesh) -> Pieces:
        """The mesh's pieces, cut by the offset's polygons, with the offset in their weights."""
        pieces, polygon = mesh.cut(self.polygons, self._tree)
        return Pieces(pieces.corners, pieces.element, pieces.weight * self.values[polygon])

    def to_geojson(self) -> dict[str, Any]:
        """GeoJSON FeatureCollection with the property `offset`."""
        features = [
            {"type": "Feature", "properties": {"offset": float(v)}, "geometry": json.loads(shapely.to_geojson(p))}
            for p, v in zip(self.polygons, self.values, strict=True)
        ]
        return {"type": "FeatureCollection", "features": features}

    @classmethod
    def from_geojson(cls, data: Mapping[str, Any]) -> "Offset":
        """Inverse of `to_geojson`."""
        try:
            geometry = [shapely.from_geojson(json.dumps(f["geometry"])) for f in data["features"]]
            values = [float(f["properties"]["offset"]) for f in data["features"]]
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError, shapely.errors.ShapelyError):
            msg = "offset: must be a GeoJSON FeatureCollection of polygons with numbers `offset`, as to_geojson writes."
            raise InputError(msg) from None
        return cls(np.array(geometry, dtype=object), np.array(values))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical GeoJSON: what a certificate quotes."""
        return hashlib.sha256(canonical_json(self.to_geojson()).encode()).hexdigest()
