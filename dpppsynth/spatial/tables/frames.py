"""Tables of GeoDataFrames, and of points in well-known binary whose coordinates are read without making geometries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    import pyarrow as pa

    from dpppsynth.core.crs import CRSLike

# A point in the plane: byte order, kind, coordinates (OGC 06-103r4, section 8).
POINT = np.dtype([("little", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])


def from_geodataframe(gdf: geopandas.GeoDataFrame) -> Table:
    """Take the rows of a GeoDataFrame."""
    import geopandas

    name = gdf.active_geometry_name if isinstance(gdf, geopandas.GeoDataFrame) else None
    if name is None:
        msg = f"gdf: must be a GeoDataFrame with a geometry column; got {type(gdf).__name__}"
        raise InputError(msg)
    return geometry_table(gdf.geometry.to_numpy(), _columns(gdf, but=name), gdf.crs)


def from_points(xy: NDArray[np.float64], attributes: pd.DataFrame, crs: CRSLike | None) -> Table:
    """Take points (n, 2) and their attributes, as `from_geodataframe` would."""
    return geometry_table(xy, _columns(attributes), crs)


def from_arrow(table: pa.Table, geometry: str, crs: CRSLike | None) -> Table:
    """Take rows whose geometries are well-known binary in a column."""
    xy, attributes = point_coordinates(table[geometry]), table.drop_columns([geometry]).to_pandas()
    if xy is not None:
        return from_points(xy, attributes, crs)
    return geometry_table(shapely.from_wkb(table[geometry].to_numpy()), _columns(attributes), crs)


def geometry_table(
    places: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    crs: CRSLike | None,
    garbled: dict[str, NDArray[np.bool_]] | None = None,
) -> Table:
    """Table of geometries (n,) or coordinates (n, 2), whose last original cell is the geometry as WKT."""
    places = places if places.dtype.kind == "f" else np.asarray(places, dtype=object)

    def original(i: int) -> list[Any]:
        shape = places[i] if places.dtype.kind == "O" else shapely.Point(places[i])
        return [*(values[i] for values in columns.values()), shapely.to_wkt(shape, rounding_precision=-1)]

    return Table(places, columns, crs, [*columns, "geometry"], original, garbled or {})


def point_coordinates(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """(n, 2) coordinates of well-known binary, if all rows are finite points in the plane; None otherwise."""
    import pyarrow as pa

    if column.null_count or not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return None
    xy = np.empty((len(column), 2))
    start = 0
    for chunk in column.chunks:
        points = _points(chunk)
        if points is None:
            return None
        here = slice(start, start + len(points))
        xy[here, 0], xy[here, 1] = points["x"], points["y"]
        start += len(points)
    return xy if np.isfinite(xy).all() else None


def _points(chunk: pa.Array) -> NDArray[Any] | None:
    """The records of a chunk, if each is a point of the usual byte order."""
    import pyarrow as pa

    if not len(chunk):
        return np.empty(0, dtype=POINT)
    kind = np.int32 if pa.types.is_binary(chunk.type) else np.int64
    _, where, data = chunk.buffers()
    edges = np.frombuffer(where, kind)[chunk.offset : chunk.offset + len(chunk) + 1]
    if not (np.diff(edges) == POINT.itemsize).all():
        return None
    points = np.frombuffer(data, POINT, len(chunk), int(edges[0]))
    return points if ((points["little"] == 1) & (points["kind"] == 1)).all() else None


def _columns(frame: pd.DataFrame, but: str | None = None) -> dict[str, NDArray[Any]]:
    return {str(key): frame[key].to_numpy() for key in frame.columns if but is None or key != but}
