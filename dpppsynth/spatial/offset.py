"""Public offsets: a base intensity, such as population density, that multiplies the fitted one."""

import hashlib
import json
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.domains import Domain, Window, as_reals, canonical_json
from dpppsynth.spatial.mesh import Mesh, Pieces
from dpppsynth.spatial.public_layers import PolygonLayer, layer_source, named, outside_value
from dpppsynth.spatial.raster_layers import Bounds, RasterLayer, raster_bounds, read_geotiff

# Meanings of the values of a layer.
MEANINGS = ("density", "counts")
# Cells of a grid up to which it is kept as polygons, in GeoJSON that every map program opens.
FEW_CELLS = 1000


def nowhere() -> InputError:
    """Refusal of an offset whose integral is zero, or too large."""
    return InputError(
        "offset: its integral over the window must be positive and finite, and it is zero everywhere there, or far "
        "too large; check its coordinates, CRS and values."
    )


def require_offset(offset: object) -> None:
    """Refuse anything but an offset or None, with an InputError."""
    if offset is not None and not isinstance(offset, Offset):
        got = type(offset).__name__
        msg = f"offset: needs an Offset, for instance Offset.from_grid(values, bounds), got {got}."
        raise InputError(msg)


class Offset:
    """Piecewise constant public intensity: polygons with a density each, or a raster.

    The offset must be public: it enters the release unprotected. `Offset(polygons, densities)` is zero where no polygon
    lies, and no synthetic point is ever drawn there; made from a layer or a file, gaps are refused.

    Parameters
    ----------
    polygons : (P,) array of shapely polygons
        Non-overlapping, in the window's coordinates.
    values : (P,) array
        Densities, non-negative; only their proportions matter.
    source : str
        Where it was published, for certificates; as in the other ways to make an offset.
    """

    layer: PolygonLayer | RasterLayer
    meaning: str
    source: str
    _cut: weakref.WeakKeyDictionary[Mesh, Pieces]
    _bounds: weakref.WeakKeyDictionary[Mesh, Floats | float]

    def __init__(self, polygons: Any, values: npt.ArrayLike, *, source: str = "") -> None:
        self.__setstate__(_settled(PolygonLayer(polygons, values, outside=0.0, label="offset"), "density", source))

    @classmethod
    def of(cls, layer: PolygonLayer | RasterLayer, as_: str = "density", *, source: str = "") -> "Offset":
        """Offset from the values of a layer, which are densities, or counts of its polygons or cells."""
        made = cls.__new__(cls)
        made.__setstate__(_settled(layer, one_of("as_", as_, MEANINGS), source))
        return made

    def from_source(self, source: str) -> "Offset":
        """The same offset, published by a source."""
        return Offset.of(self.layer, source=source)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was found on meshes, which is found again."""
        return {"layer": self.layer, "meaning": self.meaning, "source": self.source}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cut, self._bounds = weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary()

    @classmethod
    def from_geodataframe(
        cls, layer: Any, column: str, as_: str = "density", *, fill: float | None = None, source: str = ""
    ) -> "Offset":
        """Offset from a GeoDataFrame of polygons and the name of a numeric column.

        Parameters
        ----------
        layer : GeoDataFrame
        column : str
        as_ : {"density", "counts"}
            Whether a value is a number per unit of area, or one of the whole polygon, such as its inhabitants.
        fill : 0, optional
            Takes places without a polygon, and polygons without a value, as empty; else both are refused.
        """
        return cls.of(PolygonLayer.from_geodataframe(layer, column, fill=fill, label="offset"), as_, source=source)

    @classmethod
    def from_grid(
        cls,
        values: npt.ArrayLike,
        bounds: Bounds,
        as_: str = "density",
        *,
        crs: str | None = None,
        fill: float | None = None,
        source: str = "",
    ) -> "Offset":
        """Offset from a raster (rows, columns), first row at the top, covering `bounds` = (x0, y0, x1, y1).

        Parameters
        ----------
        values : array_like, shape (rows, columns)
            NaN where a cell has none.
        bounds : (float, float, float, float)
        as_ : {"density", "counts"}
            Whether a value is a number per unit of area, or one of the whole cell, such as its inhabitants.
        crs : str, optional
            Of the bounds; the domain's unless given.
        fill : 0, optional
            Takes places beyond the raster, and cells without a value, as empty; else both are refused.
        """
        raster = as_reals(values, "values: must be real numbers.")
        outside = outside_value(fill)
        raster = np.where(np.isnan(raster), outside, raster)
        made = RasterLayer(raster, bounds, outside=outside, crs=crs, label="offset")
        few = raster.size <= FEW_CELLS and not np.isnan(raster).any()
        return cls.of(_boxes(made) if few else made, as_, source=source)

    @classmethod
    def from_geotiff(
        cls,
        path: str | Path,
        as_: str = "density",
        *,
        band: int | None = None,
        fill: float | None = None,
        crs: str | None = None,
        source: str = "",
    ) -> "Offset":
        """Offset from a band of a GeoTIFF file, which needs `pip install rasterio`.

        Parameters
        ----------
        path : str or Path
        as_ : {"density", "counts"}
            As in `from_grid`.
        band : int, optional
            From 1 on; needed where the file has several.
        fill : 0, optional
            Takes places beyond the raster, and cells of its `nodata`, as empty; else both are refused.
        crs : str, optional
            Coordinate system of a file that does not name its own.
        """
        return cls.of(read_geotiff(path, band=band, fill=fill, crs=crs), as_, source=source)

    def on(self, domain: Domain) -> "Offset":
        """The offset on a domain, where it must have a value everywhere.

        A raster is cropped to the domain. Counts are spread evenly over each polygon or cell, on networks along the
        streets in it; where nobody can stand on a street, they are lost.

        Raises
        ------
        InputError
            When it is in other coordinates, or lacks values in the domain.
        """
        layer = self.layer
        layer.require_whole("offset", domain)
        streets = not isinstance(domain, Window) and self.meaning == "counts"
        if isinstance(layer, RasterLayer):
            layer = layer.cropped(domain.bounds)
            if streets or np.isnan(layer.values).any():
                layer = layer.with_values(np.nan_to_num(layer.values), 0.0)
        if streets:
            length = layer.street_lengths(domain)
            per = np.divide(layer.values * layer.sizes, length, out=np.zeros(length.shape), where=length > 0)
            layer = layer.with_values(per, 0.0)
        if layer is self.layer:
            return self
        if not layer.values.max() > 0:
            raise nowhere()
        return Offset.of(layer, source=self.source)

    @property
    def values(self) -> Floats:
        """(P,) or (rows, columns) densities."""
        return self.layer.values

    @property
    def polygons(self) -> Any:
        """(P,) polygons; a raster of many cells has none."""
        if isinstance(self.layer, PolygonLayer):
            return self.layer.polygons
        msg = "offset: a raster of many cells has no polygons; `layer` holds the raster."
        raise InputError(msg)

    def __repr__(self) -> str:
        if isinstance(self.layer, RasterLayer):
            rows, columns = self.values.shape
            return f"Offset({rows} x {columns} cells, fingerprint {self.fingerprint[:12]})"
        return f"Offset({len(self.values)} polygons, fingerprint {self.fingerprint[:12]})"

    def __call__(self, xy: Floats) -> Floats:
        """(n,) density at the points (n, 2); on a shared border the lower polygon number counts."""
        return np.nan_to_num(self.layer(xy))

    def restrict(self, mesh: Mesh) -> Pieces:
        """The mesh's pieces, cut by the polygons or the raster, with the offset in their weights."""
        if mesh not in self._cut:
            self._cut[mesh] = self.layer.restrict(mesh)
        return self._cut[mesh]

    @property
    def total(self) -> float | None:
        """Sum of its numbers in the domain that it was last cut for, such as all inhabitants; None before."""
        cut = list(self._cut.values())
        return float(cut[-1].weight.sum()) if cut else None

    def bounds(self, mesh: Mesh) -> Floats | float:
        """Upper bounds on a mesh's elements (T,), or one for all."""
        if mesh not in self._bounds:
            self._bounds[mesh] = self.layer.bounds(mesh)
        return self._bounds[mesh]

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
        """SHA-256 of the canonical GeoJSON, or of a raster's bounds and numbers, as quoted on certificates."""
        if not isinstance(self.layer, RasterLayer):
            return hashlib.sha256(canonical_json(self.to_geojson()).encode()).hexdigest()
        shape = np.array(self.values.shape, dtype="<i8").tobytes()
        bounds = np.array(self.layer.bounds_of_cells, dtype="<f8").tobytes()
        told = hashlib.sha256(b"raster" + shape + bounds)
        # Without a copy, as rasters may be large.
        told.update(np.ascontiguousarray(self.values, dtype="<f8").data)
        return told.hexdigest()


def _settled(layer: PolygonLayer | RasterLayer, meaning: str, source: str) -> dict[str, Any]:
    """State of an offset: the layer with densities for values, and what these were."""
    # NaN where no value is known.
    least, most = (each.reduce(layer.values, axis=None) for each in (np.fmin, np.fmax))
    if not least >= 0 or not most > 0:
        what = named("offset", layer.label)
        msg = f"{what} values must be finite, non-negative and not all zero; fill gaps in the layer first."
        raise InputError(msg)
    if layer.outside > 0 or layer.outside < 0:
        msg = f"fill: what an offset lacks can be filled with 0 alone, got {layer.outside:g}; fill the layer first."
        raise InputError(msg)
    if meaning == "counts":
        layer = layer.with_values(layer.values / layer.sizes, layer.outside)
    return {"layer": layer, "meaning": meaning, "source": layer_source(source)}


def _boxes(raster: RasterLayer) -> PolygonLayer:
    """The cells of a small raster as polygons, row by row."""
    x0, y0, x1, y1 = raster_bounds(raster.bounds_of_cells)
    rows, columns = raster.values.shape
    x = np.linspace(x0, x1, columns + 1)
    y = np.linspace(y1, y0, rows + 1)
    cells = shapely.box(x[None, :-1], y[1:, None], x[None, 1:], y[:-1, None])
    return PolygonLayer(
        cells.ravel(), raster.values.ravel(), outside=raster.outside, crs=raster.crs, label=raster.label
    )
