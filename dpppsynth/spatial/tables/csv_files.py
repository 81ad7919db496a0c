"""CSV files as columns of texts, read by one of two parsers that agree.

A plain file is cut at its commas and line ends by Arrow, ten times as fast as by Python's parser. What Arrow might read
otherwise, or refuses, is left to that parser: cells with quotation marks or line ends in them, rows with too few cells
or too many, line ends of old systems, bytes that are not UTF-8.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.tables.table import Columns, Table, existing, hiding, unreadable
from dpppsynth.spatial.tables.text_columns import numbers, typed

if TYPE_CHECKING:
    import pyarrow as pa

    from dpppsynth.core.crs import CRSLike

CSV = "CSV (comma-separated, UTF-8)"
BOM = b"\xef\xbb\xbf"
# Rows that Python's parser holds at once, and bytes that are looked at or parsed at once.
ROWS, BLOCK = 2**14, 2**22
# Signs before a cell and behind it.
BEFORE, AFTER = (np.frombuffer(signs, dtype=np.uint8) for signs in (b",\n", b",\r\n"))


class Texts(NamedTuple):
    """Cells in columns, in the order of the header, "" where a row has too few; and the rows of other lengths."""

    header: list[str]
    columns: Sequence[pa.ChunkedArray]
    ragged: dict[int, list[str]]


def read_csv(source: Path, x: str, y: str, crs: CRSLike | None, *, rows: bool = True) -> Table:
    """Read a file, or its header alone, into a `Table`; `x` and `y` name the columns of coordinates."""
    faults = (OSError, UnicodeDecodeError, csv.Error)
    read = read_texts if rows else _head
    texts: Texts = hiding(source, CSV, faults, lambda: read(source))
    header = [name.strip() for name in texts.header]
    if len({name for name in header if name}) < sum(map(bool, header)):
        msg = f"path: the column names of {source.name} must differ; {existing(header)}"
        raise InputError(msg)
    for argument, name in (("x", x), ("y", y)):
        if header.count(name) != 1:
            msg = f"{argument}: {source.name} has no column {name!r}; {existing(header)}"
            raise InputError(msg)
    if x == y:
        msg = f"y: {y!r} is the column of x already; name that of the other coordinate"
        raise InputError(msg)
    place = {name: texts.columns[i] for i, name in enumerate(header)}
    xs, ys = numbers(place[x]), numbers(place[y])
    ragged = np.zeros(len(xs.values), dtype=bool)
    ragged[list(texts.ragged)] = True

    def original(i: int) -> list[Any]:
        return texts.ragged[i] if i in texts.ragged else [cells[i].as_py() for cells in texts.columns]

    return Table(
        np.column_stack([xs.values, ys.values]),
        Columns(place, lambda name: typed(place[name])),
        crs,
        header,
        original,
        {"wrong number of fields": ragged, "not a number": xs.text | ys.text},
        lambda name: place[name].to_pylist(),
    )


def read_texts(source: Path) -> Texts:
    """Read all cells of a file.

    Raises
    ------
    OSError, UnicodeDecodeError, csv.Error
    """
    found = _plain_texts(source)
    return careful_texts(source) if found is None else found


def careful_texts(source: Path) -> Texts:
    """Read all cells with Python's parser; errors as in `read_texts`."""
    with source.open(encoding="utf-8-sig", newline="") as stream:
        # Empty lines are none.
        lines = filter(None, csv.reader(stream, strict=True))
        header = next(lines, [])
        return _stacked(header, lines)


def _head(source: Path) -> Texts:
    # A file is decoded piece by piece, so that bad bytes of later lines would be met with the first one.
    with source.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as stream:
        header: list[str] = next(filter(None, csv.reader(stream, strict=True)), [])
    if any(name.encode(errors="ignore").decode() != name for name in header):
        raise unreadable(source, CSV)
    return _stacked(header, iter(()))


def _stacked(header: list[str], lines: Iterator[list[str]]) -> Texts:
    """Columns of lines, a number of rows at a time."""
    import pyarrow as pa

    width, start = len(header), 0
    chunks: list[list[pa.Array]] = [[] for _ in header]
    ragged: dict[int, list[str]] = {}
    while rows := list(islice(lines, ROWS)):
        for i, row in enumerate(rows):
            if len(row) != width:
                ragged[start + i] = row
                rows[i] = [*row, *[""] * (width - len(row))][:width]
        for own, cells in zip(chunks, zip(*rows, strict=True), strict=True):
            own.append(pa.array(cells, pa.large_string()))
        start += len(rows)
    return Texts(header, [pa.chunked_array(own, pa.large_string()) for own in chunks], ragged)


def _plain_texts(source: Path) -> Texts | None:
    """All cells of a file that both parsers read alike; None where that is not certain."""
    import pyarrow as pa
    from pyarrow import csv as quick

    with source.open("rb") as stream:
        header = _plain_header(stream)
        start = stream.tell()
        if header is None or not _plain_lines(stream):
            return None
        stream.seek(start)
        names = [*map(str, range(len(header)))]
        try:
            table = quick.read_csv(
                stream,
                quick.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
                quick.ParseOptions(escape_char=False, newlines_in_values=False),
                quick.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False),
            )
        except pa.ArrowInvalid:
            return None
    if any(_longest(cells) > csv.field_size_limit() for cells in table.columns):
        return None
    return Texts(header, table.columns, {})


def _plain_header(stream: IO[bytes]) -> list[str] | None:
    """The cells of the first line that is not empty, up to which the file is read."""
    if stream.read(len(BOM)) != BOM:
        stream.seek(0)
    lines = (line.rstrip(b"\r\n") for line in iter(lambda: stream.readline(BLOCK), b""))
    try:
        text = next(filter(None, lines), b"").decode()
        header = next(csv.reader([text], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    # A line of blanks in one column is no empty line, and coordinates need two columns.
    return header if len(header) > 1 and "\r" not in text and len(text) < BLOCK // 4 else None


def _plain_lines(stream: IO[bytes]) -> bool:
    """Whether the rest, of which there must be some, has no sign that the parsers may take for different things."""
    first, rest = True, b""
    for block in iter(lambda: stream.read(BLOCK), b""):
        lines, end, rest = (rest + block).rpartition(b"\n")
        if (first and block.startswith(BOM)) or len(rest) > BLOCK or not _plain(lines + end):
            return False
        first = False
    return not first and _plain(rest)


def _plain(lines: bytes) -> bool:
    """The same of whole lines."""
    # A carriage return ends a line by itself in old files.
    if b"\0" in lines or lines.count(b"\r") != lines.count(b"\r\n"):
        return False
    return b'"' not in lines or _plainly_quoted(np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8))


def _plainly_quoted(signs: NDArray[np.uint8]) -> bool:
    """Whether quotation marks stand around whole cells alone; the signs begin and end with a new line."""
    quotes, ends = np.flatnonzero(signs == ord('"')), np.flatnonzero(signs == ord("\n"))
    if len(quotes) % 2:
        return False
    first, last = quotes[::2], quotes[1::2]
    around = np.isin(signs[first - 1], BEFORE).all() and np.isin(signs[last + 1], AFTER).all()
    return bool(around and (np.searchsorted(ends, first) == np.searchsorted(ends, last)).all())


def _longest(cells: pa.ChunkedArray) -> int:
    """Bytes of the longest cell, which has no more characters."""
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(cells)).as_py() or 0)
