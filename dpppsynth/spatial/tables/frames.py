"""Tables of GeoDataFrames, of Arrow tables and of GeoParquet files.

Coordinates of points in well-known binary are read without making geometries.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
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
# Rows of a batch, and bytes of a column that are held at once.
ROWS, BUFFER = 2**17, 2**20


def from_geodataframe(gdf: geopandas.GeoDataFrame) -> Table:
    """Take the rows of a GeoDataFrame."""
    import geopandas

    name = gdf.active_geometry_name if isinstance(gdf, geopandas.GeoDataFrame) else None
    if name is None:
        msg = f"gdf: must be a GeoDataFrame with a geometry column; got {type(gdf).__name__}"
        raise InputError(msg)
    return geometry_table(gdf.geometry.to_numpy(), _columns(gdf, but=name), gdf.crs)


def from_arrow(table: pa.Table, geometry: str, crs: CRSLike | None) -> Table:
    """Take rows whose geometries are well-known binary in a column."""
    places, attributes = _point_coordinates(table[geometry]), table.drop_columns([geometry]).to_pandas()
    if places is None:
        places = shapely.from_wkb(table[geometry].to_numpy())
    return geometry_table(places, _columns(attributes), crs)


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


def _point_coordinates(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
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


def read_geoparquet(source: Path, *, rows: bool = True) -> Table:
    """Read a GeoParquet file, or its columns and CRS alone.

    The caller hides errors of Arrow and geopandas, because they may quote the file.
    """
    import geopandas
    import pyarrow.parquet

    with source.open("rb") as stream:
        _require_geometries(stream, source.name)
        if not rows:
            return from_geodataframe(_empty(stream))
        empty = _one_geometry(stream)
        if empty is not None:
            return from_arrow(pyarrow.parquet.read_table(stream), str(empty.active_geometry_name), empty.crs)
        stream.seek(0)
        return from_geodataframe(geopandas.read_parquet(stream))


def read_geoparquet_batches(source: Path) -> Iterator[Table]:
    """Read a file into tables of at most `ROWS` rows, of which there is at least one; errors as in `read_geoparquet`.

    Files with other geometries than one column of well-known binary are read as a whole.
    """
    import pyarrow as pa
    import pyarrow.parquet

    with source.open("rb") as stream:
        _require_geometries(stream, source.name)
        empty = _one_geometry(stream)
        if empty is None:
            yield read_geoparquet(source)
            return
        name, found = str(empty.active_geometry_name), False
        file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=BUFFER)
        for batch in file.iter_batches(ROWS, use_threads=False):
            found = True
            yield from_arrow(pa.Table.from_batches([batch]), name, empty.crs)
        if not found:
            yield from_geodataframe(empty)


def _require_geometries(stream: Any, name: str) -> None:
    """Refuse a Parquet file without geometries, with an InputError; the stream stands at its start again."""
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_schema(stream).metadata or {}
    stream.seek(0)
    if b"geo" not in metadata:
        msg = f"path: {name} is Parquet without geometries; write its coordinates as points of GeoParquet, or it as CSV"
        raise InputError(msg)


def _one_geometry(stream: Any) -> geopandas.GeoDataFrame | None:
    """A frame of no rows of a file with one geometry column, in well-known binary; None for any other."""
    import pyarrow.parquet

    stated = _stated(pyarrow.parquet.read_schema(stream).metadata)
    if stated is None:
        return None
    stream.seek(0)
    empty = _empty(stream)
    stream.seek(0)
    return empty if [*stated["columns"]] == [empty.active_geometry_name] else None


def _empty(stream: Any) -> geopandas.GeoDataFrame:
    """A frame of no rows: names, kinds and CRS stand at the end of the file, apart from them."""
    import geopandas
    import pyarrow.parquet

    empty = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.parquet.read_schema(stream).empty_table(), empty)
    return geopandas.read_parquet(empty)


def _stated(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any] | None:
    """Description of the geometries; None where these are not in well-known binary, or have boxes beside them."""
    try:
        stated = json.loads((metadata or {})[b"geo"])
        plain = all(each["encoding"] == "WKB" and "covering" not in each for each in stated["columns"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return stated if plain else None
