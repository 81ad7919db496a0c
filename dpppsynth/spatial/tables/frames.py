"""Tables of GeoDataFrames, of Arrow tables and of GeoParquet files."""

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
    places = shapely.from_wkb(table[geometry].to_numpy())
    return geometry_table(places, _columns(table.drop_columns([geometry]).to_pandas()), crs)


def geometry_table(
    places: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    crs: CRSLike | None,
    garbled: dict[str, NDArray[np.bool_]] | None = None,
) -> Table:
    """Table of geometries (n,) or coordinates (n, 2), whose last original cell is the geometry as WKT.

    Finite points in the plane are kept as coordinates, if all rows have one.
    """
    if places.dtype.kind != "f":
        places = np.asarray(places, dtype=object)
        points = (shapely.get_type_id(places) == shapely.GeometryType.POINT) & (
            shapely.get_num_coordinates(places) == 1
        )
        if points.all() and (shapely.get_coordinate_dimension(places) == 2).all():
            xy = shapely.get_coordinates(places)
            places = xy if np.isfinite(xy).all() else places

    def original(i: int) -> list[Any]:
        shape = places[i] if places.dtype.kind == "O" else shapely.Point(places[i])
        return [*(values[i] for values in columns.values()), shapely.to_wkt(shape, rounding_precision=-1)]

    return Table(places, columns, crs, [*columns, "geometry"], original, garbled or {})


def _columns(frame: pd.DataFrame, but: str | None = None) -> dict[str, NDArray[Any]]:
    return {str(key): frame[key].to_numpy() for key in frame.columns if but is None or key != but}


def read_geoparquet(source: Path, *, rows: bool = True) -> Table:
    """Read a GeoParquet file, or its columns and CRS alone.

    Raises
    ------
    Exception
        Of Arrow and geopandas: the caller hides them, because they may quote the file.
    """
    import geopandas

    with source.open("rb") as stream:
        return from_geodataframe(geopandas.read_parquet(stream) if rows else _empty(stream))


def read_geoparquet_batches(source: Path) -> Iterator[Table]:
    """Read a file into tables of at most `ROWS` rows, of which there is at least one; errors as in `read_geoparquet`.

    Files with other geometries than one column of well-known binary are read as a whole.
    """
    import pyarrow as pa
    import pyarrow.parquet

    with source.open("rb") as stream:
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
