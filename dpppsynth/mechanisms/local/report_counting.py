"""Parallel and distributed counting of reports in files.

Counts are whole numbers that add up exactly, so nothing that decides who counts what (pieces, processes, machines,
partitions of the files) shows in the sum.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import function, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Step
from dpppsynth.core.workers import worker_pool
from dpppsynth.mechanisms.local.labels import label_of, runs_of
from dpppsynth.mechanisms.local.randomizers.randomizer import LARGEST, Randomizer
from dpppsynth.mechanisms.local.report_tables import Piece, batches, integers, pieces, quietly, table_files
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Ints

# Rows that are in memory at once, in each process.
BATCH = 1_000_000
# Pieces handed to a process before the first of them is done.
AHEAD = 4
# Sums that one task of a cluster adds up.
FAN = 16

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts (size,) of `n` reports of one law; `seeded` where somebody's random bits were not secret.

    `runs` are the random numbers of the drawings that went in, as far as they are known.
    """

    counts: Ints
    n: int
    seeded: bool = False
    runs: tuple[str, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        runs = (*self.runs, *other.runs)
        return Tally(self.counts + other.counts, self.n + other.n, self.seeded or other.seeded, runs)


def total(randomizer: Randomizer, tallies: Iterable[Tally]) -> Tally:
    """Sum of tallies; without any, that of no reports."""
    return sum(tallies, Tally(np.zeros(randomizer.size, dtype=np.int64), 0))


def tally_files(
    mechanism: LocalMechanism,
    paths: Any,
    *,
    batch: int = BATCH,
    workers: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    window: Window | None = None,
    labelled: bool = False,
) -> Tally:
    """Counts of all reports in files; see `aggregate_files`."""
    rows = whole("batch", batch, 1, most=2**31 - 1)
    number = 1 if workers is None else whole("workers", workers, 1, most=4096)
    said = announcer(progress)
    found = table_files(paths)
    randomizer = mechanism.randomizer
    rows = randomizer.at_once(rows)
    labels = [label_of(path, mechanism, window=window, labelled=labelled) for path in found]
    none = _none(randomizer, any(label is not None and label.seeded for label in labels), runs_of(found, labels))
    sizes, weights = [path.stat().st_size for path in found], deque[float]()

    def pieces_of_all() -> Iterator[Piece]:
        for path, size in zip(found, sizes, strict=True):
            own = checked_pieces(path, randomizer, rows)
            weights.extend([size / len(own)] * len(own))
            yield from own

    work, read = pieces_of_all(), 0.0
    count = partial(tally_piece, randomizer, rows=rows)
    if client is not None:
        return total(randomizer, [_on_cluster(client, count, work), none])
    with nullcontext() if number == 1 else worker_pool(number) as pool:
        done = none
        for part in _in_order(pool, count, work, AHEAD * number):
            done, read = done + part, read + weights.popleft()
            said(Step(f"{done.n:,} reports counted".replace(",", " "), min(1.0, read / max(1, sum(sizes)))))
    return done


def announcer(progress: Progress | None) -> Progress:
    """The progress callback; one that does nothing for None."""
    return (lambda _: None) if progress is None else function("progress", progress, "words")


def _none(randomizer: Randomizer, seeded: bool, runs: tuple[str, ...]) -> Tally:
    return Tally(np.zeros(randomizer.size, dtype=np.int64), 0, seeded, runs)


def checked_pieces(path: Path, randomizer: Randomizer, rows: int) -> list[Piece]:
    """Pieces of a file, whose columns must be those of the reports and no others."""
    found = pieces(path, rows)
    if sorted(found[0].header) != sorted(randomizer.columns):
        msg = (
            f"paths: {path.name} has other columns than reports of this mechanism: these have "
            f"{', '.join(randomizer.columns)} and nothing else."
        )
        raise InputError(msg)
    return found


def tally_piece(randomizer: Randomizer, piece: Piece, *, rows: int) -> Tally:
    """Counts of one piece of a file, at most `rows` rows of it in memory.

    Raises
    ------
    InputError
        Naming the file and nothing in it.
    """
    found = _checked(randomizer, piece, rows)
    return quietly(piece.path, lambda: total(randomizer, (Tally(counts, len(cells)) for cells, counts in found)))


def read_piece(randomizer: Randomizer, piece: Piece, rows: int) -> list[Ints]:
    """Reports (m, columns) in one piece of a file, checked as `tally_piece` does."""
    return quietly(piece.path, lambda: [cells for cells, _ in _checked(randomizer, piece, rows)])


def _checked(randomizer: Randomizer, piece: Piece, rows: int) -> Iterator[tuple[Ints, Ints]]:
    """Reports of a piece, batch by batch, and their counts."""
    for batch in batches(piece, randomizer.columns, randomizer.at_once(rows)):
        cells = integers(batch, randomizer.columns)
        counts = None if cells is None else _counts(randomizer, cells)
        if cells is None or counts is None:
            msg = (
                f"paths: {piece.path.name} holds a row that no client of this mechanism sends; leave the file out, or "
                "find out who wrote it."
            )
            raise InputError(msg)
        yield cells, counts


def _counts(randomizer: Randomizer, reports: Ints) -> Ints | None:
    """Counts of reports; None where one of them is no report, whose values no message may tell."""
    try:
        return randomizer.count(reports)
    except InputError:
        return None


def _in_order(
    pool: Executor | None, count: Callable[[Piece], Tally], work: Iterable[Piece], ahead: int
) -> Iterator[Tally]:
    """Results in the order of the work, of which no more than `ahead` is handed out at a time."""
    if pool is None:
        yield from map(count, work)
        return
    waiting: deque[Future[Tally]] = deque()
    for piece in work:
        waiting.append(pool.submit(count, piece))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _on_cluster(client: Any, count: Callable[[Piece], Tally], work: Iterable[Piece]) -> Tally:
    """One task for each piece, and a tree of sums, all on the workers."""
    sums = _of_dask(client).map(count, list(work), pure=False)
    while len(sums) > 1:
        sums = client.map(sum_of_tallies, [sums[k : k + FAN] for k in range(0, len(sums), FAN)], pure=False)
    done: Tally = sums[0].result()
    return done


def _of_dask(client: Any) -> Any:
    if not all(callable(getattr(client, name, None)) for name in ("map", "compute", "scheduler_info")):
        msg = f"client: must be a dask.distributed.Client, got {type(client).__name__}."
        raise InputError(msg)
    return client


def sum_of_tallies(parts: list[Tally]) -> Tally:
    """Sum of at least one tally."""
    return sum(parts[1:], parts[0])


def tally_dask(randomizer: Randomizer, reports: Any, *, client: Any = None) -> Tally:
    """Counts of a distributed table; see `aggregate_dask`."""
    import dask as installed

    dask: Any = installed
    parts = [dask.delayed(tally_table, pure=False)(randomizer, part) for part in _parts(reports)]
    sums = parts
    while len(sums) > 1:
        sums = [dask.delayed(sum_of_tallies, pure=False)(sums[k : k + FAN]) for k in range(0, len(sums), FAN)]
    if client is None:
        (done,) = dask.compute(sums[0])
    else:
        done = _of_dask(client).compute(sums[0]).result()
    tally: Tally = done
    return tally


def _parts(reports: Any) -> list[Any]:
    """Partitions of a table, each a promise of a pandas.DataFrame or an array of reports."""
    from dask.delayed import Delayed

    parts = [reports] if isinstance(reports, Delayed) else list(reports) if isinstance(reports, list | tuple) else []
    if not parts and callable(getattr(reports, "to_delayed", None)):
        # Arrays have a grid of blocks.
        return list(np.ravel(np.asarray(reports.to_delayed(), dtype=object)))
    if not parts or not all(isinstance(part, Delayed) for part in parts):
        msg = (
            "reports: needs a dask DataFrame or array, or a list of delayed ones, got "
            f"{type(reports).__name__}; files are for aggregate_files."
        )
        raise InputError(msg)
    return parts


def tally_table(randomizer: Randomizer, part: Any) -> Tally:
    """Counts of one partition: a pandas.DataFrame with the columns of the reports, or an array of them."""
    names = getattr(part, "columns", None)
    if names is not None:
        if sorted(map(str, names)) != sorted(randomizer.columns):
            columns = ", ".join(randomizer.columns)
            msg = f"reports: a partition has other columns than reports of this mechanism, {columns}."
            raise InputError(msg)
        part = _stacked([part[name] for name in randomizer.columns])
    counts = None if part is None else _counts(randomizer, part)
    if counts is None:
        msg = "reports: a partition holds a row that no client of this mechanism sends."
        raise InputError(msg)
    return Tally(counts, len(part))


def _stacked(columns: list[Any]) -> Ints | None:
    """(n, columns) whole numbers; None where a column holds others, or some beyond 64 bits.

    Of each column by itself: int64 and uint64 together would become floats, which round.
    """
    cells = [np.asarray(column) for column in columns]
    # Partitions without rows lose their types in pandas.
    if any(each.size and (each.dtype.kind not in "iu" or each.max() > LARGEST) for each in cells):
        return None
    return np.stack([each.astype(np.int64) for each in cells], axis=1)
