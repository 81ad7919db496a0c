"""Batched reading of sensitive coordinates from large files, and the clients' values."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.one_report import PersonCodes
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.report_tables import header, quietly, require_format
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.formats import as_path, there

Check = Callable[[Floats], object]
# Bytes of a CSV file parsed at once.
BLOCK_BYTES = 2**24
# Rows of a batch; among fewer, a random order hides little.
FEWEST = 1000


def values_in(mechanism: CellMechanism | Round, window: Window) -> Callable[[Floats], Ints]:
    """Function that gives the values (n,) of clients at coordinates (n, 2) in the window.

    It raises InputError for coordinates that are not finite or outside, without telling which.
    """
    if not isinstance(mechanism, CellMechanism):
        return lambda xy: mechanism.values(PointPattern(xy, window))
    plan = LocalPlan(mechanism.mesh(window), mechanism.randomizer, 1)

    def values(xy: Floats) -> Ints:
        pattern = PointPattern(xy, window)
        return replace(plan, n=len(pattern)).values(pattern)

    return values


def point_batches(
    path: str | Path, x: str, y: str, rows: int, *, kept: Ints | None = None, check: Check | None = None
) -> Iterator[Floats]:
    """Coordinates (rows, 2), batch by batch, from the columns `x` and `y` of a CSV or Parquet file.

    The last batch takes up to `FEWEST` - 1 rows more, so none has fewer than that unless the file has. Of all rows only
    those in `kept` (k,), ascending, are given, where it is. The others are read alike, and `check` is called with all:
    whether a file is refused does not hang on which rows were drawn.

    Raises
    ------
    InputError
        When the file or a column is missing, or a cell is empty or no number.
    """
    source, names = require_point_columns(path, x, y)
    read = (_coordinates(batch, x, y, source) for batch in _batches(source, names, {x: float, y: float}, rows))
    yield from _regrouped(read if kept is None else _chosen(read, kept, source, check), rows)


def person_rows(path: str | Path, user: str, *, x: str, y: str, rows: int) -> tuple[Ints, int]:
    """(n,) numbers that tell apart the persons of all rows of a file, and how many persons there are.

    Parameters
    ----------
    path : str or Path
    user : str
        Column of labels: texts, or whole numbers of a Parquet file. In a CSV file "7" and "007" are two persons.
    x, y : str
        Columns of the coordinates.
    rows : int
        That are read at once.

    Raises
    ------
    InputError
        When the file or a column is missing, or a label is missing or of another kind; none is quoted.
    """
    source, names = require_point_columns(path, x, y, user=user)
    codes, batches = PersonCodes(), _batches(source, names, {user: str}, rows)
    # More persons than 32 bits tell have labels that fit into no memory.
    found = [codes.add(batch.column(user).to_pylist()).astype(np.int32) for batch in batches]
    return np.concatenate([np.empty(0, dtype=np.int32), *found]), codes.persons


def _batches(source: Path, names: tuple[str, ...], kinds: dict[str, type], rows: int) -> Iterator[Any]:
    """Batches of some columns of a file, of the kinds that CSV cells are read as."""
    parquet = source.suffix.lower() == ".parquet"
    opened = (lambda: _parquet(source, [*kinds], rows)) if parquet else (lambda: _csv(source, names, kinds))
    found: Iterator[Any] = quietly(source, opened, "points")
    yield from iter(lambda: quietly(source, lambda: next(found, None), "points"), None)


def _chosen(parts: Iterable[Floats], kept: Ints, source: Path, check: Check | None) -> Iterator[Floats]:
    """The kept ones of all rows, which are checked; InputError where there are fewer rows than there were."""
    start = 0
    for part in parts:
        if check is not None:
            check(part)
        first, last = np.searchsorted(kept, [start, start + len(part)])
        yield part[kept[first:last] - start]
        start += len(part)
    if len(kept) and kept[-1] >= start:
        msg = f"points: {source.name} became shorter while it was read; let nothing write to it meanwhile."
        raise InputError(msg)


def require_point_columns(path: str | Path, x: str, y: str, *, user: str | None = None) -> tuple[Path, tuple[str, ...]]:
    """The file and the names of its columns, in which those asked for are; no row is looked at.

    Raises
    ------
    InputError
        When the file or a column is missing.
    """
    source = as_path(path, "points")
    require_format(source, "points")
    if not there(source, Path.is_file):
        msg = f"points: there is no file {str(source)!r}."
        raise InputError(msg)
    parquet = source.suffix.lower() == ".parquet"
    names = quietly(source, lambda: _parquet_names(source) if parquet else header(source)[0], "points")
    _require_columns(source, names, x, y)
    if user is not None and (not isinstance(user, str) or names.count(user) != 1 or user in (x, y)):
        msg = f"user: {source.name} has no column {shown(user)} of its own; name the one that tells persons."
        raise InputError(msg)
    return source, names


def _regrouped(parts: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """The same rows in batches of `rows`, but for the last, whatever parts a reader gives."""
    held: list[Floats] = []
    for part in parts:
        held.append(part)
        number = sum(map(len, held))
        if number >= rows + FEWEST:
            together, ready = np.concatenate(held), (number - FEWEST) // rows * rows
            yield from np.split(together[:ready], range(rows, ready, rows))
            held = [together[ready:]]
    if any(map(len, held)):
        yield np.concatenate(held)


def _require_columns(source: Path, names: tuple[str, ...], x: str, y: str) -> None:
    for argument, name in (("x", x), ("y", y)):
        if not isinstance(name, str) or names.count(name) != 1:
            msg = f"{argument}: {source.name} has no column {shown(name)}, or several; name that of the coordinate."
            raise InputError(msg)
    if x == y:
        msg = f"y: {shown(y)} is the column of x already; name that of the other coordinate."
        raise InputError(msg)


def _parquet_names(source: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    return tuple(pq.read_schema(source).names)


def _parquet(source: Path, columns: list[str], rows: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, memory_map=False, buffer_size=2**20) as file:
        yield from file.iter_batches(rows, columns=columns, use_threads=False)


def _csv(source: Path, names: tuple[str, ...], kinds: dict[str, type]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    # Types said beforehand: those of the first rows need not be those of the last.
    types = {name: pa.float64() if kind is float else pa.string() for name, kind in kinds.items()}
    chosen = csv.ConvertOptions(include_columns=[*kinds], column_types=types)
    reading = csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False, block_size=BLOCK_BYTES)
    with csv.open_csv(source, read_options=reading, convert_options=chosen) as reader:
        yield from reader


def _coordinates(batch: Any, x: str, y: str, source: Path) -> Floats:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating)
    columns = [batch.column(name) for name in (x, y)]
    if any(column.null_count or not any(kind(column.type) for kind in kinds) for column in columns):
        msg = f"points: some rows of {source.name} break the rules (missing coordinate, not a number); mend the file."
        raise InputError(msg)
    cells = [column.to_numpy(zero_copy_only=False).astype(np.float64) for column in columns]
    return np.stack(cells, axis=1)
