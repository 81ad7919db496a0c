"""Safe reading of GeoPackage files: no other format under that name, and no other driver.

GDAL opens whatever it recognises: an XML text called ``points.gpkg`` may make it read other files, or ask a server. So
a file must be a GeoPackage by its first bytes, its layer a plain table, and no other driver of GDAL is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.gdal_layers import NOTHING, read_point_batches, read_points
from dpppsynth.spatial.tables.names import speaking
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas

MAGIC = b"SQLite format 3\0"
# The application id, bytes 68 to 71: https://www.geopackage.org/spec140/#_file_format, and versions 1.0 and 1.1.
IDS = (b"GPKG", b"GP10", b"GP11")
PLAIN, VIRTUAL = (re.compile(rf"\s*CREATE\s+{kind}TABLE\b", re.IGNORECASE) for kind in ("", r"VIRTUAL\s+"))
SPATIAL_INDEX = re.compile(
    VIRTUAL.pattern + r"""\s*("([^"]|"")*"|'([^']|'')*'|`[^`]*`|\w+)\s*USING\s+rtree\b""", re.IGNORECASE
)
# Columns that SQLite computes while they are read.
GENERATED = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"


def read_geopackage(source: Path, layer: str | None = None, *, rows: bool = True) -> Table:
    """Read the named layer, or the only one with geometries; or its columns and CRS alone.

    Raises
    ------
    InputError
        The file is no GeoPackage, holds none or several layers, or a layer that is computed rather than stored.
    Exception
        Of GDAL, SQLite and their readers: the caller hides them, because they may quote the file.
    """
    name, layer, empty = _opened(source, layer)
    if not rows:
        return from_geodataframe(empty)
    return read_points(name, layer, empty)


def read_geopackage_batches(source: Path, layer: str | None = None) -> Iterator[Table]:
    """Read the layer into tables of some rows each, of which there is at least one; errors as in `read_geopackage`."""
    return read_point_batches(*_opened(source, layer))


def _opened(source: Path, layer: str | None) -> tuple[str, str, geopandas.GeoDataFrame]:
    """Address and layer of a file that is safe to read, and a frame of no rows; errors as in `read_geopackage`."""
    import pyogrio

    _require_geopackage(source)
    tables = _tables(source)
    name = _for_one_driver(source)
    layers = [str(each) for each, kind in pyogrio.list_layers(name) if kind is not None]
    it_has = f"it has {layers}" if speaking(layers) else "their names are not listed, because they look like data"
    if layer is None and len(layers) != 1:
        msg = (
            f"path: {source.name} must hold exactly one layer with geometries; {it_has}. Name one with "
            f"{mention('layer')}, or export it"
        )
        raise InputError(msg)
    if layer is not None and layer not in layers:
        msg = f"layer: {source.name} has no layer {layer!r} with geometries; {it_has}"
        raise InputError(msg)
    chosen = layers[0] if layer is None else layer
    if chosen.lower() not in tables:
        raise _computed(source)
    return name, chosen, pyogrio.read_dataframe(name, layer=chosen, **NOTHING)


def _require_geopackage(source: Path) -> None:
    with source.open("rb") as stream:
        head = stream.read(72)
    if head[: len(MAGIC)] != MAGIC or head[68:72] not in IDS:
        msg = f"path: {source.name} cannot be read as GeoPackage: it is another kind of file. Export it as GeoPackage"
        raise InputError(msg)


def _for_one_driver(source: Path) -> str:
    """Address of the file that no other driver of GDAL opens; two characters have a meaning there."""
    path = source.resolve()
    if set(':"') & set(str(path)[len(path.drive) :]):
        msg = "path: the path of a GeoPackage must not contain a colon or a quotation mark; move the file, or rename it"
        raise InputError(msg)
    return f"GPKG:{path}"


def _tables(source: Path) -> set[str]:
    """Names of the tables whose cells are stored; a view or a virtual table may call functions that open files."""
    # Imported late: other formats do without.
    import sqlite3

    path = source.resolve()
    pending = any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))
    # Without changes that wait beside it, the file is read alone, and none is made in its folder.
    address = f"{path.as_uri()}?mode=ro{'' if pending else '&immutable=1'}"
    with closing(sqlite3.connect(address, uri=True)) as base:
        query = "SELECT lower(name), sql FROM sqlite_master WHERE type IN ('table', 'view')"
        rows = [(str(name), str(sql)) for name, sql in base.execute(query)]
        plain = [name for name, sql in rows if PLAIN.match(sql)]
        stored = {name for name in plain if not base.execute(GENERATED, [name]).fetchone()[0]}
    virtual = any(VIRTUAL.match(sql) and not SPATIAL_INDEX.match(sql) for _, sql in rows)
    if virtual or any(name.startswith("gpkg_") and name not in stored for name, _ in rows):
        raise _computed(source)
    return stored


def _computed(source: Path) -> InputError:
    return InputError(
        f"path: {source.name} holds a view, a virtual table or a computed column, which may read other files; "
        "export the layer to a new GeoPackage"
    )
