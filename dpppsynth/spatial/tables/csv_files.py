"""CSV files as columns of texts, read by one of two parsers that agree.

A plain file is cut at its separators and line ends by Arrow, ten times as fast as by Python's parser. What Arrow might
read otherwise, or refuses, is left to that parser: cells with quotation marks or line ends in them, rows with too few
cells or too many, line ends of old systems, bytes that are not UTF-8.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables.layouts import SEPARATORS, Layout
from dpppsynth.spatial.tables.table import Columns, Table, existing, hiding, unreadable
from dpppsynth.spatial.tables.text_columns import numbers, typed

if TYPE_CHECKING:
    import pyarrow as pa

    from dpppsynth.core.crs import CRSLike

CSV = "CSV (comma-separated, UTF-8)"
FAULTS = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
BOM = b"\xef\xbb\xbf"
# Rows that Python's parser holds at once, and bytes that are looked at or parsed at once.
ROWS, BLOCK = 2**14, 2**22


class Texts(NamedTuple):
    """Cells in columns, in the order of the header, "" where a row has too few; and the rows of other lengths."""

    header: list[str]
    columns: Sequence[pa.ChunkedArray]
    ragged: dict[int, list[str]]


def read_csv(source: Path, layout: Layout, crs: CRSLike | None, *, rows: bool = True) -> Table:
    """Read a file, or its header alone, into a `Table`."""
    read = read_texts if rows else _head
    texts: Texts = hiding(source, CSV, FAULTS, lambda: read(source, layout.separator))
    return _table(source, texts, layout, crs)


def read_csv_batches(source: Path, layout: Layout, crs: CRSLike | None) -> Iterator[Table]:
    """Read a file into tables of some rows each, of which there is at least one; arguments as in `read_csv`."""
    batches = text_batches(source, layout.separator)
    while (texts := hiding(source, CSV, FAULTS, lambda: next(batches, None))) is not None:
        yield _table(source, texts, layout, crs)


def _table(source: Path, texts: Texts, layout: Layout, crs: CRSLike | None) -> Table:
    header, x, y = [name.strip() for name in texts.header], layout.x or "x", layout.y or "y"
    if len({name for name in header if name}) < sum(map(bool, header)):
        msg = f"path: the column names of {source.name} must differ; {existing(header)}"
        raise InputError(msg)
    for argument, name in (("x", x), ("y", y)):
        if header.count(name) != 1:
            msg = f"{argument}: {source.name} has no column {name!r}; {existing(header)}{_hint(header)}"
            raise InputError(msg)
    if x == y:
        msg = f"y: {y!r} is the column of x already; name that of the other coordinate"
        raise InputError(msg)
    place = {name: texts.columns[i] for i, name in enumerate(header)}
    xs, ys = (numbers(layout.pointed(place[name])) for name in (x, y))
    ragged = np.zeros(len(xs.values), dtype=bool)
    ragged[list(texts.ragged)] = True

    def original(i: int) -> list[Any]:
        return texts.ragged[i] if i in texts.ragged else [cells[i].as_py() for cells in texts.columns]

    return Table(
        np.column_stack([xs.values, ys.values]),
        Columns(place, lambda name: _typed(place[name], layout)),
        crs,
        header,
        original,
        {"wrong number of fields": ragged, "not a number": xs.text | ys.text},
        lambda name: place[name].to_pylist(),
        layout.pointed_cell,
    )


def _typed(texts: pa.ChunkedArray, layout: Layout) -> NDArray[Any]:
    """A column as numbers where every cell is one, with the decimal sign of the file."""
    if layout.decimal == ".":
        return typed(texts)
    found = typed(layout.pointed(texts))
    return found if found.dtype.kind in "if" else column(texts.to_pylist())


def _hint(header: list[str]) -> str:
    """Hint where the header of a file is one cell that others would cut."""
    found = [sign for sign in SEPARATORS if len(header) == 1 and sign in header[0]]
    return f". If its cells are separated by {found[0]!r}, say {mention('separator', repr(found[0]))}" if found else ""


def read_texts(source: Path, separator: str = ",") -> Texts:
    """Read all cells of a file.

    Raises
    ------
    OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error
    """
    return _joined(text_batches(source, separator))


def text_batches(source: Path, separator: str = ",") -> Iterator[Texts]:
    """Read the cells of some rows at a time, of none where there are no rows; errors as in `read_texts`."""
    stopped = yield from _plain_batches(source, separator)
    if stopped is not None:
        yield from _careful_batches(source, separator, stopped)


def _careful_batches(source: Path, separator: str, start: int) -> Iterator[Texts]:
    """Rows from a given one on, by Python's parser."""
    with _opened(source) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        # Empty lines are none.
        lines = filter(None, csv.reader(text, delimiter=separator, strict=True))
        header = next(lines, [])
        rows = list(islice(lines, start, start + ROWS))
        if not (rows or start):
            yield _columns(header, [])
        while rows:
            yield _columns(header, rows)
            rows = list(islice(lines, ROWS))


def _head(source: Path, separator: str) -> Texts:
    # A file is decoded piece by piece, so that bad bytes of later lines would be met with the first one.
    with (
        _opened(source) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="", errors="surrogateescape") as text,
    ):
        header: list[str] = next(filter(None, csv.reader(text, delimiter=separator, strict=True)), [])
    if any(name.encode(errors="ignore").decode() != name for name in header):
        raise unreadable(source, CSV)
    return _columns(header, [])


def _opened(source: Path) -> IO[bytes]:
    """A file as it is, or as it was before it was compressed."""
    return cast("IO[bytes]", gzip.GzipFile(source)) if source.suffix.lower() == ".gz" else source.open("rb")


def _columns(header: list[str], rows: list[list[str]]) -> Texts:
    """Columns of lines."""
    import pyarrow as pa

    width, ragged = len(header), {}
    for i, row in enumerate(rows):
        if len(row) != width:
            ragged[i] = row
            rows[i] = [*row, *[""] * (width - len(row))][:width]
    columns = zip(*rows, strict=True) if rows else [()] * width
    return Texts(header, [pa.chunked_array([pa.array(cells, pa.large_string())]) for cells in columns], ragged)


def _joined(batches: Iterator[Texts]) -> Texts:
    """All rows of batches, of which there is at least one."""
    import pyarrow as pa

    parts = [*batches]
    starts = np.cumsum([0, *(len(part.columns[0]) if part.columns else 0 for part in parts)])
    ragged = {int(start) + i: row for start, part in zip(starts, parts, strict=False) for i, row in part.ragged.items()}
    columns = zip(*(part.columns for part in parts), strict=True)
    joined = [pa.chunked_array([chunk for each in column for chunk in each.chunks]) for column in columns]
    return Texts(parts[0].header, joined, ragged)


def _plain_batches(source: Path, separator: str) -> Generator[Texts, None, int | None]:
    """Rows that both parsers read alike; returns the first that may not be such, and None where all of them are."""
    import pyarrow as pa
    from pyarrow import csv as quick

    done = 0
    with _opened(source) as stream:
        header = _plain_header(stream, separator)
        start = stream.tell()
        if header is None or not _plain_lines(stream, separator):
            return done
        stream.seek(start)
        names = [*map(str, range(len(header)))]
        try:
            batches = quick.open_csv(
                stream,
                quick.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
                quick.ParseOptions(delimiter=separator, escape_char=False, newlines_in_values=False),
                quick.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False),
            )
            for batch in batches:
                if any(_longest(cells) > csv.field_size_limit() for cells in batch.columns):
                    return done
                if len(batch):
                    yield Texts(header, [pa.chunked_array([cells]) for cells in batch.columns], {})
                    done += len(batch)
        except pa.ArrowInvalid:
            return done
    return None if done else 0


def _plain_header(stream: IO[bytes], separator: str) -> list[str] | None:
    """The cells of the first line that is not empty, up to which the file is read."""
    if stream.read(len(BOM)) != BOM:
        stream.seek(0)
    lines = (line.rstrip(b"\r\n") for line in iter(lambda: stream.readline(BLOCK), b""))
    try:
        text = next(filter(None, lines), b"").decode()
        header = next(csv.reader([text], delimiter=separator, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    # A line of blanks in one column is no empty line, and coordinates need two columns.
    return header if len(header) > 1 and "\r" not in text and len(text) < BLOCK // 4 else None


def _plain_lines(stream: IO[bytes], separator: str) -> bool:
    """Whether the rest, of which there must be some, has no sign that the parsers may take for different things."""
    first, rest = True, b""
    for block in iter(lambda: stream.read(BLOCK), b""):
        lines, end, rest = (rest + block).rpartition(b"\n")
        if (first and block.startswith(BOM)) or len(rest) > BLOCK or not _plain(lines + end, separator):
            return False
        first = False
    return not first and _plain(rest, separator)


def _plain(lines: bytes, separator: str) -> bool:
    """The same of whole lines."""
    # A carriage return ends a line by itself in old files.
    if b"\0" in lines or lines.count(b"\r") != lines.count(b"\r\n"):
        return False
    return b'"' not in lines or _plainly_quoted(
        np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8), separator.encode()
    )


def _plainly_quoted(signs: NDArray[np.uint8], separator: bytes) -> bool:
    """Whether quotation marks stand around whole cells alone; the signs begin and end with a new line."""
    quotes, ends = np.flatnonzero(signs == ord('"')), np.flatnonzero(signs == ord("\n"))
    if len(quotes) % 2:
        return False
    first, last = quotes[::2], quotes[1::2]
    before, after = (np.frombuffer(separator + ends, dtype=np.uint8) for ends in (b"\n", b"\r\n"))
    around = np.isin(signs[first - 1], before).all() and np.isin(signs[last + 1], after).all()
    return bool(around and (np.searchsorted(ends, first) == np.searchsorted(ends, last)).all())


def _longest(cells: pa.Array) -> int:
    """Bytes of the longest cell, which has no more characters."""
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(cells)).as_py() or 0)
