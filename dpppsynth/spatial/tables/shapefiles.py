"""Shapefiles, by their own driver of GDAL alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.gdal_layers import NOTHING, read_point_batches, read_points
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas

# Code and version of the format, bytes 0 to 3 and 28 to 31 (ESRI Shapefile Technical Description, 1998, table 1).
CODE, VERSION = (9994).to_bytes(4, "big"), (1000).to_bytes(4, "little")
# The files that make a layer, but for the one that is named.
BESIDE = (".shx", ".dbf")


def read_shapefile(source: Path, *, rows: bool = True) -> Table:
    """Read a file and those beside it, or columns and CRS alone.

    Raises
    ------
    InputError
        The file is no shapefile, or a file beside it is missing.
    Exception
        Of GDAL: the caller hides it, because it may quote the file.
    """
    name, empty = _opened(source)
    return read_points(name, None, empty) if rows else from_geodataframe(empty)


def read_shapefile_batches(source: Path) -> Iterator[Table]:
    """Read a file some rows at a time, into at least one table; errors as in `read_shapefile`."""
    name, empty = _opened(source)
    return read_point_batches(name, None, empty)


def _opened(source: Path) -> tuple[str, geopandas.GeoDataFrame]:
    import pyogrio

    with source.open("rb") as stream:
        head = stream.read(32)
    if head[:4] != CODE or head[28:] != VERSION:
        msg = f"path: {source.name} cannot be read as Shapefile: it is another kind of file. Export it as Shapefile"
        raise InputError(msg)
    for end in BESIDE:
        if not any(source.with_suffix(each).exists() for each in (end, end.upper())):
            msg = f"path: {source.stem}{end} is missing beside {source.name}; keep the files of a shapefile together"
            raise InputError(msg)
    name = str(source.resolve())
    return name, pyogrio.read_dataframe(name, **NOTHING)
