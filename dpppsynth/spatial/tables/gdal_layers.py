"""GeoPackage layers and shapefiles, read by GDAL; points with numbers and texts by way of Arrow, others as frames.

GDAL opens whatever it recognises: an XML text called ``points.gpkg`` may make it read other files, or ask a server. So
a file must be of its format by its first bytes, a layer of a GeoPackage a plain table, and no other driver of GDAL is
asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.tables.frames import from_arrow, from_geodataframe
from dpppsynth.spatial.tables.table import Table, speaking

if TYPE_CHECKING:
    import geopandas

# Rows of a batch.
ROWS = 2**17
# Kinds of columns that come the same way by either road: in numpy, in GDAL, and its finer kind.
PLAIN_KINDS = {
    ("int32", "OFTInteger", "OFSTNone"),
    ("int64", "OFTInteger64", "OFSTNone"),
    ("float64", "OFTReal", "OFSTNone"),
    ("object", "OFTString", "OFSTNone"),
}
MAGIC = b"SQLite format 3\0"
# The application id, bytes 68 to 71: https://www.geopackage.org/spec140/#_file_format, and versions 1.0 and 1.1.
IDS = (b"GPKG", b"GP10", b"GP11")
PLAIN, VIRTUAL = (re.compile(rf"\s*CREATE\s+{kind}TABLE\b", re.IGNORECASE) for kind in ("", r"VIRTUAL\s+"))
SPATIAL_INDEX = re.compile(
    VIRTUAL.pattern + r"""\s*("([^"]|"")*"|'([^']|'')*'|`[^`]*`|\w+)\s*USING\s+rtree\b""", re.IGNORECASE
)
# Columns that SQLite computes while they are read.
GENERATED = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"
# Code and version of a shapefile, bytes 0 to 3 and 28 to 31 (ESRI Shapefile Technical Description, 1998, table 1).
CODE, VERSION = (9994).to_bytes(4, "big"), (1000).to_bytes(4, "little")
# The files that make a shapefile, but for the one that is named.
BESIDE = (".shx", ".dbf")


class Layer(NamedTuple):
    """Safe address of a layer; None for the only one of a file."""

    address: str
    name: str | None

    def empty(self) -> geopandas.GeoDataFrame:
        """Frame of no rows, with the columns and the CRS."""
        import pyogrio

        return pyogrio.read_dataframe(self.address, layer=self.name, where="1 = 0")

    def is_plain(self) -> bool:
        """Whether the layer has points with numbers and texts alone."""
        import pyogrio

        stated = pyogrio.read_info(self.address, layer=self.name)
        kinds = zip(stated["dtypes"], stated.get("ogr_types", ()), stated.get("ogr_subtypes", ()), strict=False)
        plain = [*map(tuple, kinds)]
        known = len(plain) == len(stated["dtypes"]) and PLAIN_KINDS.issuperset(plain)
        return stated["geometry_type"] == "Point" and known


def read_layer(layer: Layer, *, rows: bool = True) -> Table:
    """Read all rows, or columns and CRS alone.

    The caller hides errors of GDAL, SQLite and their readers, because they may quote the file.
    """
    import pyogrio

    if not rows:
        return from_geodataframe(layer.empty())
    if not layer.is_plain():
        return from_geodataframe(pyogrio.read_dataframe(layer.address, layer=layer.name))
    about, table = pyogrio.raw.read_arrow(layer.address, layer=layer.name)
    return from_arrow(table, str(about["geometry_name"] or "wkb_geometry"), layer.empty().crs)


def read_layer_batches(layer: Layer) -> Iterator[Table]:
    """Read at most `ROWS` rows at a time into at least one table, and layers that are not plain as a whole."""
    import pyarrow as pa
    import pyogrio

    if not layer.is_plain():
        yield read_layer(layer)
        return
    empty, found = layer.empty(), False
    options = {"layer": layer.name, "batch_size": ROWS, "use_pyarrow": True}
    with pyogrio.raw.open_arrow(layer.address, **options) as (about, reader):
        for batch in reader:
            found = True
            yield from_arrow(pa.Table.from_batches([batch]), str(about["geometry_name"] or "wkb_geometry"), empty.crs)
    if not found:
        yield from_geodataframe(empty)


def geopackage_layer(source: Path, layer: str | None = None, *, public: bool = False) -> Layer:
    """Address of the named layer of a GeoPackage, or of the only one with geometries; other errors as in `read_layer`.

    Names that may be free text are listed of a `public` file alone. InputError where the file is no GeoPackage, holds
    none or several layers, or a layer that is computed rather than stored.
    """
    import pyogrio

    _require_geopackage(source)
    tables, address = _tables(source), _for_one_driver(source)
    layers = {str(each): str(kind) for each, kind in pyogrio.list_layers(address) if kind is not None}
    it_has = _listed(layers, public=public)
    if layer is None and len(layers) > 1:
        msg = (
            f"path: {source.name} holds several layers, and one is read; {it_has}. Put the name of one behind that of "
            f"the file, as in {f'{source.name}:NAME'!r}"
        )
        raise InputError(msg)
    if layer is None and not layers:
        msg = f"path: {source.name} holds no layer with geometries; export one to a GeoPackage"
        raise InputError(msg)
    if layer is not None and layer not in layers:
        msg = f"layer: {source.name} has no layer {layer!r} with geometries; {it_has}"
        raise InputError(msg)
    chosen = next(iter(layers)) if layer is None else layer
    if chosen.lower() not in tables:
        raise _computed(source)
    return Layer(address, chosen)


def _listed(layers: Mapping[str, str], *, public: bool) -> str:
    """Names of layers with their kinds of geometry, of a sensitive file identifiers alone."""
    shown = [f"{name!r} ({kind})" for name, kind in layers.items() if public or speaking([name])]
    if len(shown) < len(layers):
        shown.append("some that are not listed, because they look like data (see them with: ogrinfo -q FILE)")
    return f"it has {', '.join(shown) or 'none'}"


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


def shapefile_layer(source: Path) -> Layer:
    """Address of a shapefile; InputError where it is none, or a file beside it is missing."""
    with source.open("rb") as stream:
        head = stream.read(32)
    if head[:4] != CODE or head[28:] != VERSION:
        msg = f"path: {source.name} cannot be read as Shapefile: it is another kind of file. Export it as Shapefile"
        raise InputError(msg)
    for end in BESIDE:
        if not any(source.with_suffix(each).exists() for each in (end, end.upper())):
            msg = f"path: {source.stem}{end} is missing beside {source.name}; keep the files of a shapefile together"
            raise InputError(msg)
    return Layer(str(source.resolve()), None)
