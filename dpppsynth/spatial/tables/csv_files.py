"""CSV files as columns of texts, which Arrow parses, and columns of texts as numbers.

A quotation mark that is never closed would swallow rows without a word: Arrow takes them leniently, and Python's strict
parser reads on up to the next mark. So a file whose marks stand elsewhere than around whole cells of one line must pass
that parser, and hold no row of two lines that could each be one. Rows are counted apart from Arrow, by lines or by that
parser, and both numbers must agree. Rows of another length than the header's are kept, and told.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables.table import SEPARATORS, UTF8, Columns, Layout, Table, existing, hiding, number

if TYPE_CHECKING:
    import pyarrow as pa

    from dpppsynth.core.crs import CRSLike

FAULTS = (OSError, EOFError, ValueError, zlib.error, csv.Error)
# Bytes that are looked at or parsed at once.
BLOCK = 2**22
# Bytes of a line at most, with its line end; Arrow takes no row longer than a block either.
LONGEST_LINE = BLOCK
# Whole numbers as they are usually written, which tells as many apart as the texts: "007" and "7" are one number.
WHOLE = "0|-?[1-9][0-9]*"
# Codes that look like numbers and would lose their zeros.
CODE = "[+-]?0[0-9]|.*_"
PLAIN = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
BLANKS = " \t"
# The first bytes of texts in UTF-16, and bytes that are looked at for its NULs.
MARKED = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FIRST = 1024
# The first bytes of other files under the name of a CSV.
OTHERS = {
    b"PK\x03\x04": "a spreadsheet or a ZIP archive; save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save the sheet as CSV",
    b"\x1f\x8b": "compressed; let its name end in .csv.gz",
    b"PAR1": "Parquet; let its name end in .parquet, where it has geometries",
    b"SQLite format 3\0": "a database; let its name end in .gpkg, where it is a GeoPackage",
}
EXCEL = re.compile(r"sep=(.)[,;|\t]*", re.IGNORECASE | re.DOTALL)
QUOTES = (
    'a quotation mark (") opens a cell and is not closed at its end, so that rows would be lost in it; close it, or '
    "double marks that stand inside a cell"
)
LINES = (
    'some cell between quotation marks (") spans lines that could be rows by themselves; close the mark that was left '
    "open, or take line ends out of the cells"
)


LOST = (
    "its lines and the rows that are read of it differ in number, so that rows would be lost; save it again as CSV, "
    "one row a line"
)


class Texts(NamedTuple):
    """Cells in columns, in the order of the header, "" where a row has too few; and the rows of other lengths."""

    header: list[str]
    columns: Sequence[pa.ChunkedArray]
    ragged: dict[int, list[str]]


class NumberCells(NamedTuple):
    """Cells as numbers (n,), NaN where they are empty, and where they are something else (n,)."""

    values: NDArray[np.float64]
    text: NDArray[np.bool_]


def read_csv(source: Path, layout: Layout, crs: CRSLike | None, *, rows: bool = True) -> Table:
    """Read a file, or its header alone, into a `Table`."""

    def read() -> Texts:
        return _joined([*text_batches(source, layout)]) if rows else _bare(_header(source, layout))

    return _table(source, _hiding(source, layout, read), layout, crs)


def read_csv_batches(source: Path, layout: Layout, crs: CRSLike | None) -> Iterator[Table]:
    """Read a file into tables of some rows each, of which there is at least one; arguments as in `read_csv`."""
    batches = text_batches(source, layout)
    while (texts := _hiding(source, layout, lambda: next(batches, None))) is not None:
        yield _table(source, texts, layout, crs)


def _hiding(source: Path, layout: Layout, read: Callable[[], Any]) -> Any:
    """Read, and say what is wrong with a file that cannot be read, without its contents."""

    def decoded() -> Any:
        try:
            return read()
        except UnicodeError:
            pass
        raise _encoded(source, layout)

    sign = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[layout.separator]
    return hiding(source, f"CSV (cells separated by {sign}, {layout.encoding})", FAULTS, decoded)


def _encoded(source: Path, layout: Layout) -> InputError:
    """The error for a file in another encoding, with the one that it seems to have."""
    with _bytes_of(source) as stream:
        first = stream.read(FIRST)
    for magic, what in OTHERS.items():
        if first.startswith(magic):
            return InputError(f"path: {source.name} is no CSV file by its first bytes, but {what}")
    even, odd = first[::2].count(0), first[1::2].count(0)
    likely = "utf-16" if first.startswith(MARKED) else "utf-16-le" if odd > even else "utf-16-be" if even else "cp1252"
    if likely == layout.encoding:
        return InputError(f"path: {source.name} is no text in {layout.encoding}; save it as CSV in UTF-8")
    whose = ", that of Excel in Western Europe" if likely == "cp1252" else ""
    return InputError(
        f"path: {source.name} is no text in {layout.encoding}; name its encoding, such as "
        f"{mention('encoding', repr(likely))}{whose}, or save it as CSV in UTF-8"
    )


def _table(source: Path, texts: Texts, layout: Layout, crs: CRSLike | None) -> Table:
    header, x, y = [name.strip() for name in texts.header], layout.x or "x", layout.y or "y"
    if told := EXCEL.fullmatch(layout.separator.join(texts.header)):
        msg = (
            f"path: {source.name} begins with Excel's line {told[0][:5]!r}, which is no header; delete that line, and "
            f"say {mention('separator', repr(told[1]))}"
        )
        raise InputError(msg)
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
        (x, y),
    )


def _hint(header: list[str]) -> str:
    """Hint where the header of a file is one cell that others would cut."""
    found = [sign for sign in SEPARATORS if len(header) == 1 and sign in header[0]]
    return f". If its cells are separated by {found[0]!r}, say {mention('separator', repr(found[0]))}" if found else ""


def text_batches(source: Path, layout: Layout) -> Iterator[Texts]:
    """Read the cells of some rows at a time, of none where there are no rows.

    Raises
    ------
    InputError, OSError, EOFError, ValueError, zlib.error
    """
    header, lines, found = _header(source, layout), _plain_lines(source, layout), 0
    # The header is one of them.
    rows = (_strict_rows(source, layout) if lines is None else lines) - 1
    for texts in _parsed(source, layout, header, quoted=lines is None) if header else ():
        found += len(texts.columns[0])
        yield texts
    if not found:
        yield _bare(header)
    if found != max(rows, 0):
        msg = f"path: {source.name}: {LOST}"
        raise InputError(msg)


def _strict_rows(source: Path, layout: Layout) -> int:
    """Number of rows, the header among them, as Python's strict parser counts them.

    Refuses quotation marks that are left open, and with them rows that would vanish in a cell of another one.
    """
    lines: list[str] = []

    def noted(text: io.TextIOWrapper) -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    fewest = count = 0
    with _text(source, layout) as text:
        for row in _strict(source, noted(text), layout):
            fewest, count = fewest or len(row) - 1, count + bool(row)
            if len(lines) > 1 and sum(line.count(layout.separator) >= max(fewest, 1) for line in lines) > 1:
                msg = f"path: {source.name}: {LINES}"
                raise InputError(msg)
            lines.clear()
    return count


def _strict(source: Path, lines: Iterable[str], layout: Layout) -> Iterator[list[str]]:
    """Rows as Python's strict parser cuts them; InputError where it cannot."""
    rows = csv.reader(lines, delimiter=layout.separator, strict=True)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            row = []
            break
        if row is None:
            return
        yield row
    msg = f"path: {source.name}: {QUOTES}"
    raise InputError(msg)


def _parsed(source: Path, layout: Layout, header: list[str], *, quoted: bool) -> Iterator[Texts]:
    """Batches of at least one row; `quoted` tells whether cells may hold line ends."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    ragged: list[tuple[int, str]] = []

    def set_aside(row: Any) -> str:
        # The header is row 1, and empty lines do not count.
        ragged.append((row.number - 2, row.text))
        return "skip"

    def cut(rows: list[tuple[int, str]], start: int) -> dict[int, list[str]]:
        return {number - start: next(csv.reader([text], delimiter=layout.separator)) for number, text in rows}

    kinds = {str(i): pa.large_string() for i in range(len(header))}
    read = arrow.ReadOptions(use_threads=False, block_size=BLOCK, column_names=[*kinds])
    parse = arrow.ParseOptions(delimiter=layout.separator, escape_char=False, newlines_in_values=quoted)
    parse.invalid_row_handler = set_aside
    convert = arrow.ConvertOptions(column_types=kinds, check_utf8=False, strings_can_be_null=False)
    skipped, done = 1, 0
    with _opened(source, layout) as stream:
        for batch in arrow.open_csv(stream, read, parse, convert):
            columns = batch.slice(skipped).columns
            skipped = max(0, skipped - len(batch))
            size = len(columns[0])
            # Arrow reads ahead: rows behind those of the batch belong to the next one.
            here = sum(number - done - k <= size for k, (number, _) in enumerate(ragged))
            if size + here:
                yield _with_ragged(header, columns, cut(ragged[:here], done))
                done, ragged[:here] = done + size + here, []
    if ragged:
        yield _with_ragged(header, [pa.array([], pa.large_string())] * len(header), cut(ragged, done))


def _with_ragged(header: list[str], columns: list[pa.Array], rows: dict[int, list[str]]) -> Texts:
    """Columns with rows of other lengths put in at their numbers."""
    import pyarrow as pa

    if not rows:
        return Texts(header, [pa.chunked_array([cells]) for cells in columns], {})
    size, width = len(columns[0]), len(header)
    padded = zip(*([*row, *[""] * width][:width] for row in rows.values()), strict=True)
    more = [pa.array(cells, pa.large_string()) for cells in padded]
    order = np.insert(np.arange(size), np.array([*rows]) - np.arange(len(rows)), size + np.arange(len(rows)))
    joined = [pa.concat_arrays(pair).take(pa.array(order)) for pair in zip(columns, more, strict=True)]
    return Texts(header, [pa.chunked_array([cells]) for cells in joined], rows)


def _joined(parts: list[Texts]) -> Texts:
    """All rows of batches, of which there is at least one."""
    import pyarrow as pa

    starts = np.cumsum([0, *(len(part.columns[0]) if part.columns else 0 for part in parts)])
    ragged = {int(start) + i: row for start, part in zip(starts, parts, strict=False) for i, row in part.ragged.items()}
    columns = zip(*(part.columns for part in parts), strict=True)
    joined = [pa.chunked_array([chunk for each in column for chunk in each.chunks]) for column in columns]
    return Texts(parts[0].header, joined, ragged)


def _bare(header: list[str]) -> Texts:
    import pyarrow as pa

    return Texts(header, [pa.chunked_array([pa.array([], pa.large_string())]) for _ in header], {})


class _Utf8(io.RawIOBase):
    """A stream of texts in another encoding, in UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream, self._decoder, self._rest = stream, codecs.getincrementaldecoder(encoding)(), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; UnicodeError where a byte stands for nothing."""
        while not self._rest:
            block = self._stream.read(len(buffer))
            self._rest = self._decoder.decode(block, final=not block).encode()
            if not block:
                break
        found, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _ShortLines(io.RawIOBase):
    """A stream whose lines memory holds."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name, self._open_line = stream, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; InputError where a line is longer than `LONGEST_LINE`: few bytes can unpack to many."""
        block = self._stream.read(len(buffer))
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._open_line = len(block) - 1 - last + (self._open_line if last < 0 else 0)
        if self._open_line > LONGEST_LINE:
            msg = (
                f"path: a line of {self._name} is longer than {LONGEST_LINE >> 20} MiB; end each row with a line end, "
                "and leave out columns of long texts"
            )
            raise InputError(msg)
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _bytes_of(source: Path) -> IO[bytes]:
    """A file as it is, or as it was before it was compressed."""
    return cast("IO[bytes]", gzip.GzipFile(source)) if source.suffix.lower() == ".gz" else source.open("rb")


def _opened(source: Path, layout: Layout) -> IO[bytes]:
    """A file in UTF-8."""
    stream: Any = _bytes_of(source)
    if layout.encoding != UTF8:
        stream = io.BufferedReader(_Utf8(stream, layout.encoding))
    return cast("IO[bytes]", io.BufferedReader(_ShortLines(stream, source.name)))


def _text(source: Path, layout: Layout, errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(_opened(source, layout), encoding="utf-8-sig", newline="", errors=errors)


def _header(source: Path, layout: Layout) -> list[str]:
    # A file is decoded piece by piece, so that bad bytes of later lines would be met with the first one.
    with _text(source, layout, "surrogateescape") as text:
        header: list[str] = next(filter(None, _strict(source, text, layout)), [])
    if any("\0" in name or name.encode(errors="ignore").decode() != name for name in header):
        raise _encoded(source, layout)
    return header


def _plain_lines(source: Path, layout: Layout) -> int | None:
    """Number of lines that are not empty, where quotation marks stand around whole cells alone, each of one line.

    None where they do not; refuses what is no UTF-8.
    """
    decoder, rest, plain, before, count = codecs.getincrementaldecoder("utf-8-sig")(), b"", True, b"\n", 0
    with _opened(source, layout) as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            decoder.decode(block)
            signs = before + (block if rest or count else block.removeprefix(codecs.BOM_UTF8))
            count, before = count + _lines_begun(signs), signs[-1:]
            lines, end, rest = (rest + block).rpartition(b"\n") if plain else (b"", b"", b"")
            plain = plain and len(rest) <= BLOCK and _plain_quotes(lines + end, layout.separator)
    decoder.decode(b"", final=True)
    return count if plain and _plain_quotes(rest, layout.separator) else None


def _lines_begun(signs: bytes) -> int:
    """Number of lines that are not empty and begin behind the first byte."""
    sign = np.frombuffer(signs, dtype=np.uint8)
    ends = (sign == ord("\n")) | (sign == ord("\r"))
    return int(np.count_nonzero(ends[:-1] & ~ends[1:]))


def _plain_quotes(lines: bytes, separator: str) -> bool:
    if b'"' not in lines:
        return True
    signs = np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8)
    around = np.frombuffer(separator.encode() + b"\r\n", dtype=np.uint8)
    quotes, ends = np.flatnonzero(signs == ord('"')), np.flatnonzero((signs == ord("\n")) | (signs == ord("\r")))
    first, last = quotes[::2], quotes[1::2]
    if len(first) != len(last) or not np.isin(signs[np.concatenate([first - 1, last + 1])], around).all():
        return False
    return bool((np.searchsorted(ends, first) == np.searchsorted(ends, last)).all())


def _typed(texts: pa.ChunkedArray, layout: Layout) -> NDArray[Any]:
    """A column as numbers where every cell is one, with the decimal sign of the file."""
    if layout.decimal == ".":
        return typed(texts)
    found = typed(layout.pointed(texts))
    return found if found.dtype.kind in "if" else column(texts.to_pylist())


def numbers(texts: pa.ChunkedArray) -> NumberCells:
    """Read every cell as `number` does: whole chunks at once where that is certain to give the same doubles."""
    values, text = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    start = 0
    for chunk in texts.chunks:
        here = slice(start, start + len(chunk))
        found = _finite(chunk)
        if found is not None:
            values[here] = found
        else:
            values[here], text[here] = _cell_by_cell(chunk)
        start += len(chunk)
    return NumberCells(values, text)


def typed(texts: pa.ChunkedArray) -> NDArray[Any]:
    """Read a column of text as whole numbers, or as real ones, where every cell allows it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(texts):
        return column([])
    if _finite(texts.chunk(0)) is not None and not _some(texts, f"^(?:{CODE})"):
        whole = not _some(texts, f"^(?:{WHOLE})$", invert=True)
        try:
            found = texts.cast(pa.int64() if whole else pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            found = np.array([np.nan])
        if np.isfinite(found).all():
            return found
    # All that is asked of a column is asked of each cell, and few texts may stand in many.
    different = texts.unique()
    if len(different) < len(texts) / 2:
        return _typed_cells(different.to_pylist())[pc.index_in(texts, value_set=different).to_numpy()]
    return _typed_cells(texts.to_pylist())


def _typed_cells(cells: list[str]) -> NDArray[Any]:
    text = column(cells)
    if text.dtype.kind != "U" or any(map(re.compile(CODE).match, cells)):
        return text
    if all(map(re.compile(WHOLE).fullmatch, cells)):
        return column([int(cell) for cell in cells])
    try:
        # As `float` does, 1e999 becomes infinite without a word.
        with np.errstate(over="ignore"):
            return text.astype(np.float64)
    except ValueError:
        return text


def _finite(chunk: pa.Array) -> NDArray[np.float64] | None:
    """The cells as numbers, if they are finite ones: "nan(1)" would pass for a number that is none."""
    import pyarrow as pa

    try:
        found = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return found if np.isfinite(found).all() else None


def _cell_by_cell(chunk: pa.Array) -> NumberCells:
    import pyarrow.compute as pc

    trimmed = pc.ascii_trim(chunk, characters=BLANKS)
    plain = pc.match_substring_regex(trimmed, PLAIN).to_numpy(zero_copy_only=False)
    found = _finite(trimmed.filter(plain))
    if found is None:
        plain = np.zeros(len(chunk), dtype=bool)
    values, text = np.full(len(chunk), np.nan), np.zeros(len(chunk), dtype=bool)
    values[plain] = found if found is not None else []
    for i in np.flatnonzero(~plain):
        value = number(chunk[int(i)].as_py())
        values[i], text[i] = np.nan if value is None else value, value is None
    return NumberCells(values, text)


def _some(texts: pa.ChunkedArray, pattern: str, *, invert: bool = False) -> bool:
    """Whether some cell matches a pattern, or does not."""
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, pattern)
    return bool(pc.any(pc.invert(found) if invert else found).as_py())
