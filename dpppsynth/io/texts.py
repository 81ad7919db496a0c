"""Texts of GeoJSON and CSV files of points, some thousand rows at a time.

Values become texts column by column; what stands between them is the same in every row.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from dpppsynth.core.crs import crs_member
from dpppsynth.io.rows import WrittenPoints
from dpppsynth.spatial.tables.spreadsheets import guarded

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
        columns = [_csv_cells(column[here]) for column in (*points.xy.T, *marks.values())]
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


def _csv_cells(column: NDArray[Any]) -> list[Any]:
    return guarded(column.tolist()) if _texts(column) else column.tolist()


def _texts(column: NDArray[Any]) -> bool:
    """Whether there may be texts among the values."""
    return column.dtype.kind not in "biuf"


def _returns(cell: Any) -> bool:
    return isinstance(cell, str) and "\r" in cell


def _csv_text(rows: Iterable[Sequence[Any]], *, quoted: bool = False) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue()
