"""Tables of reports on disk, split into pieces that fit into memory.

What the readers' libraries say about a bad file is hidden: parsers like to quote the offending cell.
"""

import csv
import glob
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import each
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.tables.formats import as_path, there

SUFFIXES = (".csv", ".parquet")
# Bytes of a CSV file read at once; and of the longest line, far more than any report takes.
PIECE_BYTES = 2**24
LONGEST_LINE = 2**24


@dataclass(frozen=True)
class Piece:
    """A part of a file that is read at once: row groups of a Parquet file, or lines that start in a range of bytes.

    Attributes
    ----------
    path : Path
    first, last : int
        Row groups `first` to `last - 1`, or bytes.
    header : tuple of str
        Columns of the file, in its order.
    """

    path: Path
    first: int
    last: int
    header: tuple[str, ...]


def table_files(paths: Any) -> list[Path]:
    """All CSV and Parquet files that are meant, each once, by name.

    Parameters
    ----------
    paths : str or Path, or a sequence of them
        Files, patterns such as ``reports/*.parquet``, or folders, with all tables below them but for names that start
        with a dot or an underscore.

    Raises
    ------
    InputError
        When nothing is there, a format is unknown, or a file is there twice, be it by a link: its reports would count
        twice.
    """
    given = [paths] if isinstance(paths, str | Path) else list(each(paths) or ())
    found = [file for name in given for file in _meant(name)]
    if not found:
        msg = "paths: needs at least one file of reports, .csv or .parquet, or a folder or a pattern of such."
        raise InputError(msg)
    known: set[Any] = set()
    for file in found:
        marks = _marks(file)
        if not known.isdisjoint(marks):
            msg = (
                f"paths: {file.name} is named twice, or is a link to another of these files, and its reports would "
                "count twice; name every file once."
            )
            raise InputError(msg)
        known.update(marks)
    return found


def _marks(file: Path) -> set[Any]:
    """Identity of a file: its resolved path, and its inode, which hard links share."""
    about = file.stat()
    # File systems that do not number their files say 0 of all.
    return {file.resolve(), (about.st_dev, about.st_ino)} if about.st_ino else {file.resolve()}


def _meant(name: Any) -> list[Path]:
    path = as_path(name, "paths")
    if name == "":
        # pathlib takes it for the working folder, with everything below.
        msg = "paths: an empty text names no file; write '.' for all files below the working folder."
        raise InputError(msg)
    if there(path, Path.is_dir):
        found = _tables(file for file in path.rglob("*") if not _hidden(file.relative_to(path)))
    elif not there(path, Path.exists) and glob.has_magic(str(name)):
        found = _tables(map(Path, glob.glob(str(name), recursive=True)))  # noqa: PTH207
    else:
        found = [path]
    for file in found:
        require_format(file, "paths")
        if not there(file, Path.is_file):
            msg = f"paths: there is no file {str(file)!r}."
            raise InputError(msg)
    if not found:
        msg = f"paths: {str(name)!r} holds no files of reports, .csv or .parquet."
        raise InputError(msg)
    return found


def _tables(names: Iterable[Path]) -> list[Path]:
    """Files of a folder that are tables; labels lie among them."""
    return sorted(file for file in names if file.suffix.lower() in SUFFIXES and file.is_file())


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def require_format(path: Path, argument: str) -> None:
    """Refuse names that do not end in .csv or .parquet."""
    if path.suffix.lower() not in SUFFIXES:
        msg = f"{argument}: {path.name[:80]!r} must end in {' or '.join(SUFFIXES)}."
        raise InputError(msg)


def quietly(path: Path, read: Callable[[], Any], argument: str = "paths") -> Any:
    """Read, and refuse a bad file outside of the handler: an error that is only hidden still carries the text."""
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        pass
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "CSV (comma-separated, UTF-8, numbers)"
    msg = f"{argument}: {path.name} cannot be read as {kind}; check that it is whole and its format right."
    raise InputError(msg)


def pieces(path: Path, rows: int) -> list[Piece]:
    """Cut a file: Parquet into groups of rows, together at least `rows` of them, CSV into ranges of bytes.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    return quietly(path, lambda: _groups(path, rows) if path.suffix.lower() == ".parquet" else _ranges(path))


def _groups(path: Path, rows: int) -> list[Piece]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        header = tuple(file.schema_arrow.names)
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    found, first, held = [], 0, 0
    for k, size in enumerate(sizes):
        held += size
        if held >= rows or k == len(sizes) - 1:
            found.append(Piece(path, first, k + 1, header))
            first, held = k + 1, 0
    # A file without rows must still have the right columns.
    return found or [Piece(path, 0, 0, header)]


def _ranges(path: Path) -> list[Piece]:
    names, start = header(path)
    end = path.stat().st_size
    cuts = [*range(start, end, PIECE_BYTES), end]
    return [Piece(path, a, b, names) for a, b in pairwise(cuts)] or [Piece(path, end, end, names)]


def header(path: Path) -> tuple[tuple[str, ...], int]:
    """Names of a CSV file's columns, and where its first row starts."""
    with path.open("rb") as stream:
        line = stream.readline(LONGEST_LINE)
        start = stream.tell()
    names = next(csv.reader([line.decode("utf-8-sig")], strict=True), [])
    return tuple(name.strip() for name in names), start


def batches(piece: Piece, columns: tuple[str, ...], rows: int) -> Iterator[Any]:
    """Record batches of at most `rows` rows with the columns asked for, as they stand in the file."""
    if piece.path.suffix.lower() == ".csv":
        yield from _csv_table(piece, columns).to_batches(max_chunksize=rows)
        return
    import pyarrow.parquet as pq

    with pq.ParquetFile(piece.path, memory_map=False, buffer_size=2**20) as file:
        groups = range(piece.first, piece.last)
        yield from file.iter_batches(rows, row_groups=list(groups), columns=list(columns), use_threads=False)


def _csv_table(piece: Piece, columns: tuple[str, ...]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    text = _lines(piece)
    if not text.strip():
        return pa.table({name: pa.array([], pa.float64()) for name in columns})
    return arrow.read_csv(
        pa.BufferReader(text),
        read_options=arrow.ReadOptions(column_names=piece.header, use_threads=False, block_size=len(text) + 1),
        convert_options=arrow.ConvertOptions(include_columns=list(columns)),
    )


def _lines(piece: Piece) -> bytes:
    """Lines that start within the piece: the byte before tells whether its first line does."""
    with piece.path.open("rb") as stream:
        stream.seek(piece.first - 1)
        skipped = stream.readline(LONGEST_LINE)
        text = stream.read(max(piece.last - stream.tell(), 0))
        if text and not text.endswith(b"\n"):
            text += stream.readline(LONGEST_LINE)
    if len(skipped) == LONGEST_LINE:
        msg = "a line without an end"
        raise OSError(msg)
    return text


def integers(batch: Any, columns: tuple[str, ...]) -> Ints | None:
    """(n, columns) whole numbers of a record batch; None where a cell is empty, or something else."""
    import pyarrow as pa

    if not batch.num_rows:
        return np.empty((0, len(columns)), dtype=np.int64)
    found = [batch.column(name) for name in columns]
    if any(column.null_count or not pa.types.is_integer(column.type) for column in found):
        return None
    try:
        cells = [column.cast(pa.int64()).to_numpy(zero_copy_only=False) for column in found]
    except pa.ArrowInvalid:
        return None
    return np.stack(cells, axis=1)
