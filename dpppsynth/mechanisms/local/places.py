"""Batched reading of sensitive coordinates from large files, and the clients' values."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.report_tables import header, quietly, require_format
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.formats import as_path, there

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


def point_batches(path: str | Path, x: str, y: str, rows: int) -> Iterator[Floats]:
    """Coordinates (rows, 2), batch by batch, from the columns `x` and `y` of a CSV or Parquet file.

    The last batch takes up to `FEWEST` - 1 rows more, so none has fewer than that unless the file has.

    Raises
    ------
    InputError
        When the file or a column is missing, or a cell is empty or no number.
    """
    source, names = require_point_columns(path, x, y)
    parquet = source.suffix.lower() == ".parquet"
    opened = (lambda: _parquet(source, x, y, rows)) if parquet else (lambda: _csv(source, names, x, y))
    found: Iterator[Any] = quietly(source, opened, "points")
    read = iter(lambda: quietly(source, lambda: next(found, None), "points"), None)
    yield from _regrouped((_coordinates(batch, x, y, source) for batch in read), rows)


def require_point_columns(path: str | Path, x: str, y: str) -> tuple[Path, tuple[str, ...]]:
    """The file and the names of its columns, in which those of the coordinates are; no row is looked at.

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


def _parquet(source: Path, x: str, y: str, rows: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, memory_map=False, buffer_size=2**20) as file:
        yield from file.iter_batches(rows, columns=[x, y], use_threads=False)


def _csv(source: Path, names: tuple[str, ...], x: str, y: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    # Types said beforehand: those of the first rows need not be those of the last.
    kinds = csv.ConvertOptions(include_columns=[x, y], column_types={x: pa.float64(), y: pa.float64()})
    reading = csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False, block_size=BLOCK_BYTES)
    with csv.open_csv(source, read_options=reading, convert_options=kinds) as reader:
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
