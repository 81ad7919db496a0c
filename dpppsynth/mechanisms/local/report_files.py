"""Files of reports: writing, reading, and out-of-core counting.

A file is a table, CSV or Parquet, with the columns of the mechanism's reports and no others, in any partition over any
number of files. A label says which mechanism drew them: in a Parquet file's metadata, beside a CSV file in a file of
its name and ``.json``. Files without a label, as other programs write them, are taken for what the caller says; every
row is checked either way.

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

from dpppsynth.core.arguments import each, flag, function, instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Step
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.workers import worker_pool
from dpppsynth.mechanisms.local.displacements import LineTrace
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.one_report import one_row_each, require_told
from dpppsynth.mechanisms.local.point_files import (
    FEWEST,
    PointFile,
    person_rows,
    point_batches,
    point_file,
    require_user,
    values_in,
)
from dpppsynth.mechanisms.local.randomizers.randomizer import LARGEST, Randomizer
from dpppsynth.mechanisms.local.report_tables import (
    Label,
    Piece,
    batches,
    integers,
    label_for,
    label_of,
    new_file,
    pieces,
    quietly,
    runs_of,
    table_files,
    writing,
)
from dpppsynth.mechanisms.local.reports import Counts, Reports
from dpppsynth.mechanisms.local.saved_counts import counts_in, is_counts, new_counts_file, write_counts
from dpppsynth.mechanisms.local.synthesizer import CellMechanism, LocalMechanism
from dpppsynth.mechanisms.local.trajectories.protocol import TraceReports
from dpppsynth.mechanisms.local.trajectory_files import FiledRound, in_rows, walk_values
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.tables.formats import as_path

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
        counts = None if cells is None else _valid_counts(randomizer, cells)
        if cells is None or counts is None:
            msg = (
                f"paths: {piece.path.name} holds a row that no client of this mechanism sends; leave the file out, or "
                "find out who wrote it."
            )
            raise InputError(msg)
        yield cells, counts


def _valid_counts(randomizer: Randomizer, reports: Ints) -> Ints | None:
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
    counts = None if part is None else _valid_counts(randomizer, part)
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


def write_reports(
    reports: Reports | TraceReports, path: str | Path, *, mechanism: LocalMechanism | None = None
) -> Path:
    """Write reports to a new CSV or Parquet file, in their order, with a label that says where they come from.

    Parameters
    ----------
    reports : Reports or TraceReports
        As `mechanism.clients` gives them; of `LDPTrace` those of one round, `first.clients` or `second(...).clients`.
    path : str or Path
        New file ending in .csv or .parquet, in an existing folder. The label of ``reports.csv`` is
        ``reports.csv.json``; that of a Parquet file is in its metadata.
    mechanism : LocalMechanism, optional
        That drew them, of `LDPTrace` the round as `filed` gives it: then the label tells its public numbers, too, and
        its `user`. That each person sent one of these reports is the caller's word. Mechanisms whose `user` tells
        persons, all of trajectories among them, count no file whose label does not say so.

    Raises
    ------
    InputError
        When the file exists: a person reports once, so reports are not drawn over others.
    """
    given: Reports = instance("reports", in_rows(reports), Reports, "mechanism.clients(...) gives some")
    if mechanism is None:
        label = Label(given.mechanism, given.seeded)
    else:
        label = label_for(_of(mechanism), seeded=given.seeded, user=mechanism.user)
        _require_same(label.mechanism, given.mechanism)
    target = new_file(path)
    with writing(target, tuple(given.columns), label) as write:
        write(given.rows)
    return target


def read_reports(path: str | Path, mechanism: LocalMechanism) -> Reports:
    """Read one file of reports into memory; `aggregate_files` counts those that do not fit.

    Parameters
    ----------
    path : str or Path
    mechanism : LocalMechanism
        That drew them.

    Raises
    ------
    InputError
        When the file is missing or unreadable, its label names another mechanism, or its columns or a row are not those
        of such reports. No row is quoted.
    """
    randomizer = _of(mechanism).randomizer
    (file,) = _one(path)
    label = label_of(file, mechanism)
    found = [np.empty((0, len(randomizer.columns)), dtype=np.int64)]
    for piece in checked_pieces(file, randomizer, BATCH):
        found += read_piece(randomizer, piece, BATCH)
    return Reports(
        mechanism.fingerprint, tuple(randomizer.columns), np.concatenate(found), label is not None and label.seeded
    )


def aggregate_files(
    mechanism: LocalMechanism,
    paths: Any,
    *,
    batch: int = BATCH,
    workers: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    window: Window | None = None,
    labelled: bool = False,
) -> Counts:
    """Count reports in files of any number and partition, in constant memory.

    The result is the same whatever the order, partition, batches, processes and machines: counts add up exactly.

    Parameters
    ----------
    mechanism : LocalMechanism
        Mechanism whose clients sent the reports.
    paths : str or Path, or a sequence of them
        CSV and Parquet files, folders with all files below them, or patterns such as ``reports/*.parquet``; also files
        of counts, .json, as `write_counts` and `merge_counts` make them. Every file once.
    batch : int
        Rows in memory at once, in each process.
    workers : int, optional
        Number of processes; None counts in this one.
    client : distributed.Client, optional
        Of a Dask cluster whose workers see the files under the same names: one task for each group of rows of a Parquet
        file and each 16 MiB of a CSV file, and a tree of sums.
    progress : callable, optional
        Told in words how many reports are counted, which is public.
    window : Window, optional
        Files whose label tells of another one are refused.
    labelled : bool
        Refuse files without a label: nothing says then what drew their reports, nor whether the bits were secret.

    Returns
    -------
    Counts
        `seeded` when the label of any file says so.

    Raises
    ------
    InputError
        For files that are missing, unreadable, there twice (by links, or as copies whose labels tell so), or labelled
        for another mechanism, with other columns, or with a row that no client sends. Files are named, rows never.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dpppsynth.local import DiskAreaMechanism
    >>> mechanism = DiskAreaMechanism(epsilon=1.0, cells=3)
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_reports(mechanism.clients([0, 4, 4, 8], rng=1), f"{folder}/a.parquet")
    ...     _ = write_reports(mechanism.clients([7], rng=2), f"{folder}/b.csv")
    ...     aggregate_files(mechanism, folder).n
    5
    """
    _of(mechanism)
    if client is not None and workers is not None:
        msg = "workers: the cluster of client= has its own; give one of the two."
        raise InputError(msg)
    if window is not None:
        instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one")
    known: dict[str, Any] = {"window": window, "labelled": flag("labelled", labelled)}
    names = [paths] if isinstance(paths, str | Path) else list(each(paths) or ())
    saved, tables = [name for name in names if is_counts(name)], [name for name in names if not is_counts(name)]
    counted = counts_in(saved, mechanism, window=window) if saved else None
    if counted is not None and not tables:
        return counted
    done = tally_files(mechanism, tables, batch=batch, workers=workers, client=client, progress=progress, **known)
    return _counts(mechanism, done) if counted is None else counted + _counts(mechanism, done)


def count_files(
    mechanism: LocalMechanism,
    paths: Any,
    out: str | Path,
    *,
    window: Window,
    workers: int | None = None,
    progress: Progress | None = None,
    labelled: bool = False,
) -> Counts:
    """Count the reports of one machine, and save their counts in a small file that merges with those of others.

    Parameters
    ----------
    mechanism, paths, workers, progress, labelled
        As of `aggregate_files`; files of counts are for `merge_counts`.
    out : str or Path
        New file ending in .json.
    window : Window
        Whose cells the reports are about.

    Raises
    ------
    InputError
        As `aggregate_files`, and when `out` exists, before anything is counted.
    """
    target, names = new_counts_file(out), [paths] if isinstance(paths, str | Path) else list(each(paths) or ())
    if any(map(is_counts, names)):
        msg = "paths: some are files of counts already; add them up with merge_counts or `dpppsynth local merge`."
        raise InputError(msg)
    instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one")
    known: dict[str, Any] = {"window": window, "labelled": labelled}
    counts = aggregate_files(mechanism, names, workers=workers, progress=progress, **known)
    write_counts(counts, target, window=window)
    return counts


def aggregate_dask(mechanism: LocalMechanism, reports: Any, client: Any = None, *, seeded: bool = False) -> Counts:
    """Count the reports of a distributed table, with the extra ``dpppsynth[dask]``.

    Parameters
    ----------
    mechanism : LocalMechanism
    reports : dask.dataframe.DataFrame, dask.array.Array, or list of Delayed
        With the columns of the reports; delayed parts are pandas.DataFrame or arrays (n, columns).
    client : distributed.Client, optional
        None takes Dask's scheduler in force.
    seeded : bool
        Whether the random bits of any report were not secret: a table does not tell.

    Returns
    -------
    Counts
        The same for every partition.

    Raises
    ------
    InputError
        When a partition has other columns, or a row that no client sends.
    """
    done = tally_dask(_of(mechanism).randomizer, reports, client=client)
    return _counts(mechanism, done + Tally(np.zeros_like(done.counts), 0, flag("seeded", seeded)))


def perturb_file(
    mechanism: LocalMechanism,
    points: str | Path,
    out: str | Path,
    *,
    window: Window,
    x: str | None = None,
    y: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    layer: str | None = None,
    user: str | None = None,
    batch: int = BATCH,
    rng: RngLike = None,
    progress: Progress | None = None,
    permit: Callable[[int], None] | None = None,
) -> int:
    """Draw one report for every person of a file of points, out of core: what their devices would have sent.

    With `user` a person's report is about one of their points, drawn at random, and hides all of them. Without it every
    row is a person of its own, and whoever has k rows is promised k times epsilon. Of `LineTrace`, and of a round of
    `LDPTrace` (`filed`), reports are about all points of a person in the order of their rows, of which only the cells
    are held in memory, and come in a random order of all persons.

    Reports of places leave each batch in a random order, and batches follow each other as in the file. Local privacy
    holds whatever the order; but points lie in files in an order that means something, such as time or person, and rows
    that correspond would tie a report to whoever is known to stand there. Where even a batch's place tells something,
    shuffle the file of points first.

    Every call draws anew, and two reports of a person spend twice the budget: keep one file, and delete what you do
    not send.

    Parameters
    ----------
    mechanism : LocalMechanism
    points : str or Path
        Sensitive points, in the window's coordinate reference system: a file that `dpppsynth.io.read_pattern` takes, or
        Parquet with numeric columns `x` and `y`. CSV files that are not compressed, and Parquet, are read fastest.
    out : str or Path
        New file of reports, .csv or .parquet.
    window : Window
        Public region that holds them.
    x, y, separator, decimal, layer : str, optional
        How its rows are laid out, as of `read_pattern`; columns of a Parquet file, too, of which its geometries are
        taken unless they are given.
    user : str, optional
        Column that tells persons, of texts or whole numbers; unless given, the mechanism's. A file with a column named
        "user" is refused without it.
    batch : int
        Rows that are shuffled together, at least 1000, and of each group of rows of a Parquet file, unless reports are
        so long that fewer fill 32 MiB; the last batch has up to 999 more, so that only a shorter file has one of fewer
        than 1000. Memory grows with it.
    rng : None, int or Generator
        None: secret random bits. Anything else marks the file as seeded: reproducible, not private.
    progress : callable, optional
        Told in words how many reports are written, and the share of the file where it is known.
    permit : callable, optional
        Called with their number before the file takes its name; by raising, it leaves nothing behind.

    Returns
    -------
    int
        Number of reports.

    Raises
    ------
    InputError
        When the file cannot be read, a coordinate or a person's label is missing, a point is outside the window,
        whether it is drawn or not, there are no points, a column may tell persons and nobody says so, or `out` exists;
        nothing is written then.
    """
    randomizer = _of(mechanism).randomizer
    rows = whole("batch", batch, FEWEST, most=2**31 - 1, remedy="among fewer, a random order hides little")
    source, say = generator(rng), announcer(progress)
    instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one")
    target, done = new_file(out, "out"), 0
    user = mechanism.user if user is None else user
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "layer": layer}
    place = require_place_columns(points, user=user, window=window, **layout)
    known: dict[str, Any] = {"user": user, "rows": rows, "progress": say}
    if isinstance(mechanism, FiledRound | LineTrace):
        parts = walk_values(place, mechanism, window, source, **known)
    else:
        parts = _place_values(place, values_in(_at_once(mechanism), window), source, **known)
    label = label_for(mechanism, seeded=rng is not None, window=window, user=user)
    with writing(target, tuple(randomizer.columns), label) as write:
        # Persons change places before their devices draw: of long reports, not all of a batch need be in memory.
        step = randomizer.at_once(rows + FEWEST)
        for inside, share in parts:
            for start in range(0, len(inside), step):
                write(randomizer.draw(inside[start : start + step], source))
            done += len(inside)
            say(Step(f"{done:,} reports drawn".replace(",", " "), share))
        if not done:
            msg = f"points: {place.name} holds no points; check the file or the filter that made it."
            raise InputError(msg)
        if permit is not None:
            permit(done)
    return done


def _place_values(
    points: PointFile,
    values: Callable[[Floats], Ints],
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Iterator[tuple[Ints, float | None]]:
    """Values of the clients at the points of a file, each batch in a random order; of one point of each person.

    With each batch the share of the file that is read, where it is known.
    """
    kept = None
    if user is not None:
        codes, _ = person_rows(points, user, rows=rows, progress=progress)
        kept = one_row_each(codes, source)
    for xy in point_batches(points, rows, kept=kept, check=values):
        inside = values(xy)
        yield inside[source.permutation(len(inside))], points.share


def require_place_columns(
    points: str | Path, *, user: str | None, window: Window | None = None, **layout: str | None
) -> PointFile:
    """The file of points; refused, by the names of its columns and its CRS, as `perturb_file` would; InputError."""
    found = point_file(points, window, layout)
    require_user(found, user)
    require_told(found.columns, user, found.name)
    return found


def _of(mechanism: Any) -> LocalMechanism:
    some = "DiskAreaMechanism(epsilon=1.0) is one, and so is a round of LDPTrace, trace.filed()"
    found: LocalMechanism = instance("mechanism", mechanism, LocalMechanism, some)
    return found


def _at_once(mechanism: Any) -> CellMechanism | Round:
    """A mechanism all of whose clients report at once, or one round of another."""
    if not isinstance(mechanism, CellMechanism | Round):
        msg = f"mechanism: needs one whose clients report at once, or one round of another; got {mechanism!r}."
        raise InputError(msg)
    return mechanism


def _require_same(mine: str, theirs: str) -> None:
    if mine != theirs:
        msg = "mechanism: it did not draw these reports; give the one that did, or leave it out."
        raise InputError(msg)


def _one(path: Any) -> list[Path]:
    found = table_files([as_path(path)])
    if len(found) != 1:
        msg = "path: needs one file of reports; aggregate_files takes folders and patterns."
        raise InputError(msg)
    return found


def _counts(mechanism: LocalMechanism, tally: Tally) -> Counts:
    return mechanism.counts_kind(mechanism, tally.counts, tally.n, tally.seeded, tally.runs)
