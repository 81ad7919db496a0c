"""Points as a file holds them: texts of GeoJSON and CSV, and batches of Arrow tables for GeoParquet and GeoPackage.

Values become texts column by column; what stands between them is the same in every row.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.crs import crs_member, is_in_degrees, known_crs, reproject, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import nearest_multiples
from dpppsynth.spatial.tables.frames import POINT
from dpppsynth.spatial.tables.table import guarded

if TYPE_CHECKING:
    import pyarrow

    from dpppsynth.core.crs import CRSLike
    from dpppsynth.spatial.patterns import PointPattern


# Columns of a network's points: number of the edge, and distance along it from its start.
PLACES = ("edge", "along")
# Names that a GeoPackage keeps for itself or its readers do, in any case (https://www.geopackage.org/spec140/, QGIS).
KEPT = {"fid", "ogc_fid", "geom", "geometry", "rowid", "_rowid_", "oid"}
# What is put behind a name to make it another.
RENAMED = re.compile(r"_[1-9][0-9]*", re.ASCII)
# Spacing of re-projected coordinates in degrees: a tenth of a millimetre on the ground.
DEGREES = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class WrittenPoints:
    """Points as a file holds them: coordinates (n, 2), of degrees longitude before latitude, and columns (n,) by name.

    Columns are marks and, where wanted, places on a network.
    """

    xy: NDArray[np.float64]
    columns: dict[str, NDArray[Any]]
    crs: str | None


def fitting_names(names: Iterable[str], suffix: str) -> dict[str, str]:
    """Names of columns in a file of a format; a GeoPackage has none of its own names, and none equal but for case.

    Examples
    --------
    >>> fitting_names(["type", "TYPE", "fid"], ".gpkg")
    {'TYPE': 'TYPE', 'fid': 'fid_2', 'type': 'type_2'}
    """
    if suffix != ".gpkg":
        return {name: name for name in names}
    # In their order, so that a reader finds them without knowing the order of the file.
    found: dict[str, str] = {}
    listed = sorted(names)
    taken = KEPT | {name.lower() for name in listed}
    own: set[str] = set()
    for name in listed:
        word, number = name, 2
        while word.lower() in (KEPT | own if word == name else taken | own):
            word, number = f"{name}_{number}", number + 1
        found[name] = word
        own.add(word.lower())
    return found


def own_names(columns: Iterable[str], wanted: Iterable[str], suffix: str) -> dict[str, str]:
    """Columns of a file by the names that `fitting_names` was given, for the `wanted` ones among them.

    Some other marks of the file may have been renamed too. InputError where a column may be one wanted mark or another.

    Examples
    --------
    >>> own_names(["TYPE", "type_2", "fid_2"], ["type"], ".gpkg")
    {'type': 'type_2'}
    """
    there, asked = set(columns), set(wanted)
    missing, free = sorted(asked - there), sorted(there - asked)
    choices = [[word for word in free if RENAMED.fullmatch(word.removeprefix(name))] for name in missing]
    consistent: list[dict[str, str]] = []
    for words in product(*choices):
        kept = there - set(words)
        names = fitting_names(kept | set(missing), suffix)
        if [names[name] for name in missing] == list(words) and set(names.values()) == there:
            consistent.append(dict(zip(missing, words, strict=True)))
    if len(consistent) > 1:
        name = next(each for each in missing if len({found[each] for found in consistent}) > 1)
        listed = ", ".join(sorted({found[name] for found in consistent}))
        msg = f"marks: {name!r} was written under another name, as one of {listed}; ask for it by that name"
        raise InputError(msg)
    return consistent[0] if consistent else {}


def written_points(pattern: PointPattern, *, to_crs: CRSLike | None = None, places: bool = False) -> WrittenPoints:
    """Rows of a pattern, re-projected where another system is given, degrees among them.

    Coordinates are rounded then, to a billionth of a degree or to the public grid of the pattern's domain. With
    `places` points on a network have the columns `PLACES`. InputError where the pattern has no CRS to re-project from,
    no accurate way leads to the other, or a mark is named like a column of places.
    """
    from dpppsynth.linear_network import LinearNetwork

    columns = dict(pattern.marks or {})
    if places and isinstance(pattern.domain, LinearNetwork):
        clash = set(PLACES) & set(columns)
        if clash:
            msg = f"marks: the names {sorted(clash)} are taken by places on the network; rename these marks"
            raise InputError(msg)
        along = nearest_multiples(pattern.positions[:, 1], pattern.domain.resolution)
        columns |= {PLACES[0]: pattern.positions[:, 0].astype(np.int64), PLACES[1]: along}
    source = pattern.domain.crs
    if to_crs is None:
        return WrittenPoints(pattern.xy, columns, source)
    target = known_crs(to_crs)
    if source is None:
        msg = "to_crs: the pattern's domain has no CRS to re-project from; name it when the release is made"
        raise InputError(msg)
    if same_crs(source, target):
        return WrittenPoints(pattern.xy, columns, source)
    step = DEGREES if is_in_degrees(target) else pattern.domain.resolution
    moved = reproject(pattern.xy, source, target)
    if not np.isfinite(moved).all():
        msg = "to_crs: some places of the domain have no coordinates in this system; choose another"
        raise InputError(msg)
    return WrittenPoints(nearest_multiples(moved, step), columns, target)


# Rows that are texts at once.
ROWS = 2**14
# Coordinate systems of standard GeoJSON: longitude and latitude of WGS 84.
STANDARD = ("EPSG:4326", "OGC:CRS84")


def geojson_parts(points: WrittenPoints) -> Iterator[str]:
    """Parts of a FeatureCollection with one feature on a line."""
    marks = points.columns
    # Files in these degrees are standard GeoJSON, which has no such member.
    named = "" if points.crs in STANDARD else f'"crs": {json.dumps(crs_member(points.crs))},\n'
    yield f'{{"type": "FeatureCollection",\n{named}"features": [\n'
    names = ", ".join(json.dumps(str(name)).replace("%", "%%") + ": %s" for name in marks)
    feature = (
        f'{{"type": "Feature", "properties": {{{names}}}, "geometry": {{"type": "Point", "coordinates": [%r, %r]}}}}'
    )
    for start in range(0, len(points.xy), ROWS):
        here = slice(start, start + ROWS)
        values = (_json_texts(column[here]) for column in marks.values())
        lines = map(feature.__mod__, zip(*values, *points.xy[here].T.tolist(), strict=True))
        yield (",\n" if start else "") + ",\n".join(lines)
    yield "\n]}\n"


def csv_parts(points: WrittenPoints) -> Iterator[str]:
    """Parts of a CSV file with a header."""
    marks = points.columns
    head = guarded(["x", "y", *marks])
    yield _csv_text([head], quoted=any(map(_returns, head)))
    for start in range(0, len(points.xy), ROWS):
        here = slice(start, start + ROWS)
        values = [column[here] for column in (*points.xy.T, *marks.values())]
        columns = [guarded(each.tolist()) if _texts(each) else each.tolist() for each in values]
        rows = zip(*columns, strict=True)
        if not any(
            any(map(_returns, cells)) for cells, mark in zip(columns[2:], marks.values(), strict=True) if _texts(mark)
        ):
            yield _csv_text(rows)
        else:
            # A carriage return would end the line for readers, and is not quoted where lines end otherwise.
            yield from (_csv_text([row], quoted=any(map(_returns, row))) for row in rows)


def _json_texts(column: NDArray[Any]) -> Sequence[str]:
    """The values of a column in JSON."""
    values = column.tolist()
    if column.dtype.kind in "iu":
        return [*map(str, values)]
    if column.dtype.kind == "U":
        texts = {text: json.dumps(text) for text in set(values)}
        return [texts[value] for value in values]
    return [json.dumps(_json_value(value), allow_nan=False) for value in values]


def _json_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _texts(column: NDArray[Any]) -> bool:
    """Whether there may be texts among the values."""
    return column.dtype.kind not in "biuf"


def _returns(cell: Any) -> bool:
    return isinstance(cell, str) and "\r" in cell


def _csv_text(rows: Iterable[Sequence[Any]], *, quoted: bool = False) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue()


# Rows that are held twice at once.
BATCH = 2**18
GEOMETRY = "geometry"


def arrow_batches(points: WrittenPoints) -> Iterator[pyarrow.RecordBatch]:
    """Batches of rows, one empty one of no points."""
    import pyarrow

    schema = arrow_schema(points)
    for start in range(0, max(len(points.xy), 1), BATCH):
        here = slice(start, start + BATCH)
        columns = [_column(values[here], schema.field(name).type) for name, values in points.columns.items()]
        yield pyarrow.record_batch([*columns, _points(points.xy[here])], schema=schema)


def arrow_schema(points: WrittenPoints) -> pyarrow.Schema:
    """Names and types of the columns, that of geometries last."""
    import pyarrow

    fields = [pyarrow.field(name, _type(values)) for name, values in points.columns.items()]
    return pyarrow.schema([*fields, pyarrow.field(GEOMETRY, pyarrow.binary())])


def geoparquet_metadata(points: WrittenPoints) -> dict[str, str]:
    """The ``geo`` entry of a GeoParquet file of version 1.0."""
    import pyproj

    crs = None if points.crs is None else pyproj.CRS.from_user_input(points.crs).to_json_dict()
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"], "crs": crs}
    if len(points.xy):
        column["bbox"] = [*points.xy.min(axis=0).tolist(), *points.xy.max(axis=0).tolist()]
    return {"geo": json.dumps({"version": "1.0.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}})}


def _type(values: Any) -> pyarrow.DataType:
    import pyarrow

    if values.dtype.kind in "biufM":
        return pyarrow.from_numpy_dtype(values.dtype)
    # Lists of values of several kinds are texts.
    try:
        found = pyarrow.array(values.tolist(), from_pandas=True).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.string()
    return pyarrow.string() if pyarrow.types.is_null(found) else found


def _column(values: Any, kind: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    if values.dtype.kind in "biufM":
        return pyarrow.array(values, kind)
    listed = values.tolist()
    if pyarrow.types.is_string(kind):
        listed = [None if value is None else str(value) for value in listed]
    return pyarrow.array(listed, kind, from_pandas=True)


def _points(xy: Any) -> pyarrow.Array:
    """Points (n, 2) in well-known binary."""
    import pyarrow

    shapes = np.empty(len(xy), POINT)
    shapes["little"], shapes["kind"], shapes["x"], shapes["y"] = 1, 1, xy[:, 0], xy[:, 1]
    ends = np.arange(len(xy) + 1, dtype=np.int32) * POINT.itemsize
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(shapes)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(xy), buffers)
