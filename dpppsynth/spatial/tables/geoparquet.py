"""GeoParquet files; the coordinates of plain points are read without making geometries."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.spatial.tables.frames import from_arrow, from_geodataframe, from_points, point_coordinates
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas

# Rows of a batch, and bytes of a column that are held at once.
ROWS, BUFFER = 2**17, 2**20


def read_geoparquet(source: Path, *, rows: bool = True) -> Table:
    """Read a file, or its columns and CRS alone.

    Raises
    ------
    Exception
        Of Arrow and geopandas: the caller hides them, because they may quote the file.
    """
    import geopandas

    with source.open("rb") as stream:
        if not rows:
            return from_geodataframe(_empty(stream))
        found = _points(stream)
        if found is not None:
            return found
        stream.seek(0)
        return from_geodataframe(geopandas.read_parquet(stream))


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


def _points(stream: Any) -> Table | None:
    """A file with one geometry column, all plain points; None for any other."""
    import pyarrow.parquet

    empty = _one_geometry(stream)
    if empty is None:
        return None
    name = empty.active_geometry_name
    table = pyarrow.parquet.read_table(stream)
    xy = point_coordinates(table[name])
    if xy is None:
        return None
    return from_points(xy, table.drop_columns([name]).to_pandas(), empty.crs)


def _stated(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any] | None:
    """Description of the geometries; None where these are not in well-known binary, or have boxes beside them."""
    try:
        stated = json.loads((metadata or {})[b"geo"])
        plain = all(each["encoding"] == "WKB" and "covering" not in each for each in stated["columns"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return stated if plain else None
