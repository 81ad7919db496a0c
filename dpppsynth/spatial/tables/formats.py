"""Raw tables of a file, before rows are validated.

The readers here hide what their libraries say about a bad file, because parsers like to quote the offending cell.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.arguments import LARGEST
from dpppsynth.core.crs import crs_from_member, crs_label, same_crs
from dpppsynth.core.errors import InformationWarning, InputError, outside
from dpppsynth.core.wording import mention, named
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables.csv_files import read_csv, read_csv_batches
from dpppsynth.spatial.tables.frames import geometry_table, read_geoparquet, read_geoparquet_batches
from dpppsynth.spatial.tables.gdal_layers import Layer, geopackage_layer, read_layer_batches, shapefile_layer
from dpppsynth.spatial.tables.gdal_layers import read_layer as read_layer_rows
from dpppsynth.spatial.tables.table import AnyColumn, Layout, Table, hiding

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

SUFFIXES = (".csv", ".csv.gz", ".geojson", ".json", ".gpkg", ".parquet", ".shp")
# A layer of a GeoPackage, behind the name of the file.
LAYERED = re.compile(r"(.*?\.gpkg):(.+)", re.IGNORECASE | re.DOTALL)
CONVERT = "convert it: ogr2ogr new.gpkg FILE"
# What to do with files of other formats.
REMEDIES = {
    **dict.fromkeys(
        (".tsv", ".tab", ".txt", ".dat"), "let the name of a table of texts end in .csv, and say {separator}"
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "save the sheet as CSV"),
}
KINDS = {".parquet": "GeoParquet", ".shp": "Shapefile", ".gpkg": "GeoPackage"}


def read_table(path: str | Path, *, crs: CRSLike | None = None, **layout: Any) -> Table:
    """Read a file into a `Table`; `layout` are the fields of a `Layout`.

    A layer of a GeoPackage may stand behind the name of the file, as in ``city.gpkg:streets``.
    """
    source, form = _laid_out(path, layout)
    if is_csv(source):
        return read_csv(source, form, crs)
    return _with_crs(json_table(source) if _is_json(source) else _read_geo(source, form), crs)


def read_tables(path: str | Path, *, crs: CRSLike | None = None, **layout: Any) -> Iterator[Table]:
    """Read a file some rows at a time, as tables with the columns of `read_table`; there is at least one.

    GeoJSON files, and layers of anything but points in well-known binary, are read as a whole.
    """
    source, form = _laid_out(path, layout)
    if is_csv(source):
        yield from read_csv_batches(source, form, crs)
    elif _is_json(source):
        yield _with_crs(json_table(source), crs)
    else:
        tables = _quietly(source, lambda: _geo_batches(source, form))
        while (table := _quietly(source, lambda: next(tables, None))) is not None:
            yield _with_crs(table, crs)


def read_head(path: str | Path, *, crs: CRSLike | None = None, **layout: Any) -> Table:
    """Read the names of columns and the CRS of a file, as a `Table` without rows; parameters as in `read_table`.

    A GeoJSON file has no header: names of properties and the CRS may stand anywhere in it. Their values and geometries
    are passed over: no number, text or geometry is made of them that anything is decided by, and only what is no JSON
    refuses a file. One without features has every column that is asked for.
    """
    source, form = _laid_out(path, layout)
    if is_csv(source):
        return read_csv(source, form, crs, rows=False)
    return _with_crs(_json_head(source) if _is_json(source) else _read_geo(source, form, rows=False), crs)


def _laid_out(path: str | Path, layout: dict[str, Any]) -> tuple[Path, Layout]:
    """A file that exists, and its layout, which must be one of its format."""
    source, layer = layered(path)
    given = {name: value for name, value in layout.items() if value is not None}
    if layer is not None and given.setdefault("layer", layer) != layer:
        msg = f"layer: {source.name} is followed by the name of another layer already; name one of them"
        raise InputError(msg)
    form, source = Layout(**given), checked_path(source)
    form.require_for("csv" if is_csv(source) else source.suffix.lower()[1:], source.name)
    return source, form


def _is_json(source: Path) -> bool:
    return source.suffix.lower() in (".geojson", ".json")


def read_layer(path: str | Path, content: str, *, crs: CRSLike | None = None) -> Table:
    """Read the geometries of a public layer, such as a window; `content` says in a message what it is made of.

    InputError where the file is a CSV, missing or unreadable, or holds a geometry that is not valid GeoJSON.
    """
    if is_csv(as_path(path)):
        msg = f"path: {content}, which CSV does not hold; give a .geojson, .gpkg or .parquet file"
        raise InputError(msg)
    table = read_table(path, crs=crs, public=True)
    if any(mask.any() for mask in table.garbled.values()):
        msg = f"path: {Path(path).name} holds a geometry that is not valid GeoJSON; export the file again"
        raise InputError(msg)
    return table


def tell_placeless(geometry: NDArray[Any], name: str) -> None:
    """Warn that some rows of a public file have no geometry, and are left out."""
    bare = int((shapely.is_missing(geometry) | shapely.is_empty(geometry)).sum())
    if bare:
        have, are = ("has", "is") if bare == 1 else ("have", "are")
        msg = f"{name}: {bare:,} of {len(geometry):,} rows {have} no geometry, and {are} left out"
        warnings.warn(msg, InformationWarning, stacklevel=outside())


def as_path(path: str | Path, argument: str = "path") -> Path:
    """The path of a file name; InputError for an invalid one."""
    try:
        return Path(path)
    except TypeError:
        msg = f"{argument}: must be a text or a pathlib.Path; got {type(path).__name__}"
        raise InputError(msg) from None


def layered(path: str | Path) -> tuple[Path, str | None]:
    """The path of a file, and the layer whose name stands behind that of a GeoPackage, as in ``city.gpkg:streets``."""
    source = as_path(path)
    parts = None if there(source, Path.is_file) else LAYERED.fullmatch(str(source))
    return (source, None) if parts is None else (Path(parts[1]), parts[2])


def is_csv(path: Path) -> bool:
    """Whether a name is that of a CSV file, compressed or not."""
    return layered(path)[1] is None and path.name.lower().endswith((".csv", ".csv.gz"))


def checked_path(path: str | Path) -> Path:
    """The path of a file, refused if it does not exist or its format is unknown."""
    source = as_path(path)
    if source.suffix.lower() not in SUFFIXES and not is_csv(source):
        remedy = REMEDIES.get(source.suffix.lower(), CONVERT).format(separator=mention("separator", repr("\t")))
        got = repr(source.suffix[:20] or "no suffix")
        msg = f"path: the format must be one of {', '.join(SUFFIXES)}; got {got}. Otherwise {remedy}"
        raise InputError(msg)
    if not there(source, Path.is_file):
        msg = f"path: there is no file {str(source)!r}"
        raise InputError(msg)
    return source


def there(path: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether such a file or folder exists; False for names that no file system takes."""
    try:
        return kind(path)
    except (OSError, ValueError):
        return False


def json_table(source: Path, content: Callable[[], bytes] | None = None) -> Table:
    """Read a GeoJSON file, or bytes that messages call by its name, into a `Table`."""
    features, crs = _json_features(source, source.read_bytes if content is None else content)
    places, text = _shapes([feature.get("geometry") for feature in features])
    properties = _properties(features)
    stated = {name: column([row.get(name) for row in properties]) for name in _names(properties)}
    columns = stated if features else AnyColumn()
    table = geometry_table(places, columns, crs, {"not a number": text})
    return replace(table, raw=lambda name: [row.get(name) for row in properties])


def _json_head(source: Path) -> Table:
    """The table of a GeoJSON file without its rows: names of properties, by where they stand in it, and the CRS."""
    # Numbers stay the texts that they are written as.
    numbers = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
    features, crs = _json_features(source, source.read_bytes, **numbers)
    columns = {name: column([]) for name in _names(_properties(features))} if features else AnyColumn()
    return geometry_table(np.empty((0, 2)), columns, crs)


def _properties(features: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [row if isinstance(row := feature.get("properties"), dict) else {} for feature in features]


def _names(properties: Iterable[Mapping[Any, Any]]) -> dict[str, None]:
    return dict.fromkeys(str(name) for row in properties for name in row)


def _json_features(
    source: Path, read: Callable[[], bytes], **hooks: Any
) -> tuple[list[dict[str, Any]], CRSLike | None]:
    """Features of a GeoJSON file, and its CRS."""
    faults = (OSError, ValueError, RecursionError)
    document = hiding(source, "GeoJSON", faults, lambda: _parsed(source, read().decode("utf-8-sig"), **hooks))
    if isinstance(document, dict) and str(document.get("geometryType", "")).startswith("esriGeometry"):
        msg = f"path: {source.name} is Esri JSON, not GeoJSON; ask the service for f=geojson, or {CONVERT}"
        raise InputError(msg)
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or not all(isinstance(feature, dict) for feature in features):
        msg = f"path: {source.name} must hold a GeoJSON FeatureCollection"
        raise InputError(msg)
    # RFC 7946: a file that names no CRS is in degrees.
    return features, crs_from_member(document["crs"]) if "crs" in document else "OGC:CRS84"


def _parsed(source: Path, text: str, **hooks: Any) -> Any:
    """A JSON document; InputError for a sequence of them."""
    try:
        return json.loads(text, **hooks)
    except ValueError:
        # A record separator may stand before each (RFC 8142).
        first, *others = (line.strip(" \t\r\x1e") for line in text.strip().split("\n", 2))
        if not others or not (_is_feature(first) and _is_feature(others[0])):
            raise
    msg = f"path: {source.name} has one feature a line (GeoJSONSeq), not a FeatureCollection; {CONVERT}"
    raise InputError(msg)


def _is_feature(line: str) -> bool:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("type") == "Feature"


def _shapes(mappings: list[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Build geometries, or coordinates if all are plain points; and tell which mappings could not be understood."""
    text = np.zeros(len(mappings), dtype=bool)
    plain = np.fromiter(map(_is_plain_point, mappings), dtype=bool, count=len(mappings))
    xy = np.array([mappings[i]["coordinates"] for i in np.flatnonzero(plain)], dtype=np.float64).reshape(-1, 2)
    if len(xy) and plain.all():
        return xy, text
    shapes = np.full(len(mappings), None, dtype=object)
    shapes[plain] = shapely.points(xy)
    for i in np.flatnonzero(~plain):
        if mappings[i] is not None:
            try:
                shapes[i] = shapely.geometry.shape(mappings[i])
            except Exception:  # noqa: BLE001 - shapely raises many kinds for malformed mappings
                text[i] = True
    return shapes, text


def _is_plain_point(mapping: Any) -> bool:
    """Whether this is a point of two finite numbers."""
    if type(mapping) is not dict or mapping.get("type") != "Point":
        return False
    pair = mapping.get("coordinates")
    # Comparisons also leave out whole numbers that no double can hold.
    return (
        type(pair) is list
        and len(pair) == 2
        and all(type(each) in (float, int) and -LARGEST <= each <= LARGEST for each in pair)
    )


def _read_geo(source: Path, layout: Layout, *, rows: bool = True) -> Table:
    def read() -> Table:
        layer = _layer(source, layout)
        return read_geoparquet(source, rows=rows) if layer is None else read_layer_rows(layer, rows=rows)

    table: Table = _quietly(source, read)
    return table


def _geo_batches(source: Path, layout: Layout) -> Iterator[Table]:
    layer = _layer(source, layout)
    return read_geoparquet_batches(source) if layer is None else read_layer_batches(layer)


def _layer(source: Path, layout: Layout) -> Layer | None:
    """Layer that GDAL reads; None of GeoParquet."""
    match source.suffix.lower():
        case ".parquet":
            return None
        case ".shp":
            return shapefile_layer(source)
    return geopackage_layer(source, layout.layer, public=layout.public)


def _quietly(source: Path, read: Callable[[], Any]) -> Any:
    # Many libraries, many kinds of errors, and GDAL's warnings quote the file as its errors do.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hiding(source, KINDS[source.suffix.lower()], (Exception,), read)


def _with_crs(table: Table, crs: CRSLike | None) -> Table:
    """Let the caller name the CRS of a file that does not, and check the name otherwise."""
    if crs is None or (table.crs is not None and same_crs(crs, table.crs)):
        return table
    if table.crs is not None:
        msg = (
            f"crs: the file says {crs_label(table.crs)}, not {crs_label(crs)}; leave {named('crs')} out, "
            f"{mention('to_crs')} re-projects"
        )
        raise InputError(msg)
    return replace(table, crs=crs)
