"""GeoParquet files; the coordinates of plain points are read without making geometries."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.spatial.tables.frames import from_geodataframe, from_points, point_coordinates
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas


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

    stated = _stated(pyarrow.parquet.read_schema(stream).metadata)
    if stated is None:
        return None
    stream.seek(0)
    empty = _empty(stream)
    name = empty.active_geometry_name
    if [*stated["columns"]] != [name]:
        return None
    stream.seek(0)
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
