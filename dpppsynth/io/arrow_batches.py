"""Points as batches of Arrow tables with geometries in well-known binary, for GeoParquet and GeoPackage files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.io.rows import WrittenPoints

if TYPE_CHECKING:
    import pyarrow

# Rows that are held twice at once.
ROWS = 2**18
GEOMETRY = "geometry"
# A point in well-known binary: little-endian, kind 1, two floats.
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("xy", "<f8", (2,))])


def arrow_batches(points: WrittenPoints) -> Iterator[pyarrow.RecordBatch]:
    """Batches of rows, one empty one of no points."""
    import pyarrow

    schema = arrow_schema(points)
    for start in range(0, max(len(points.xy), 1), ROWS):
        here = slice(start, start + ROWS)
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

    shapes = np.empty(len(xy), _POINT)
    shapes["order"], shapes["kind"], shapes["xy"] = 1, 1, xy
    ends = np.arange(len(xy) + 1, dtype=np.int32) * _POINT.itemsize
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(shapes)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(xy), buffers)
