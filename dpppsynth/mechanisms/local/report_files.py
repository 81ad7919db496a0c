"""Files of reports: writing, reading, and out-of-core counting.

A file is a table, CSV or Parquet, with the columns of the mechanism's reports and no others, in any partition over any
number of files. A label says which mechanism drew them: in a Parquet file's metadata, beside a CSV file in a file of
its name and ``.json``. Files without a label, as other programs write them, are taken for what the caller says; every
row is checked either way.

Counts are whole numbers that add up exactly, so nothing that decides who counts what (batches, processes, machines,
partitions of the files) shows in the sum.
"""

from collections.abc import Callable, Iterator
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
from dpppsynth.mechanisms.local.one_report import require_told
from dpppsynth.mechanisms.local.point_files import (
    FEWEST,
    PointFile,
    person_rows,
    point_batches,
    point_file,
    require_user,
    values_in,
    walk_values,
)
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.report_tables import (
    SUFFIXES,
    Label,
    column_names,
    integers,
    label_for,
    label_of,
    new_file,
    record_batches,
    runs_of,
    table_files,
    writing,
)
from dpppsynth.mechanisms.local.reports import Counts, Reports
from dpppsynth.mechanisms.local.saved_counts import SUFFIX, counts_in, is_counts, write_counts
from dpppsynth.mechanisms.local.synthesizer import CellMechanism, LocalMechanism
from dpppsynth.mechanisms.local.trajectory_synthesizer import TraceRound
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.person_points import few_rows_each

# Rows that are in memory at once, in each process.
BATCH = 1_000_000
Progress = Callable[[str], None]


def _counted(count: Callable[[Path], Ints], files: list[Path], workers: int, client: Any) -> Iterator[Ints]:
    """Counts of each file, in this process or in several; or of all, summed on a cluster."""
    if client is not None:
        yield _of_dask(client).submit(sum, client.map(count, files, pure=False), pure=False).result()
    elif workers == 1:
        yield from map(count, files)
    else:
        with worker_pool(workers) as pool:
            yield from pool.map(count, files)


def announcer(progress: Progress | None) -> Progress:
    """The progress callback; one that does nothing for None."""
    return (lambda _: None) if progress is None else function("progress", progress, "words")


def _require_columns(path: Path, randomizer: Randomizer) -> None:
    """Refuse a file whose columns are not those of the reports, or that has others; InputError."""
    if sorted(column_names(path)) != sorted(randomizer.columns):
        msg = (
            f"paths: {path.name} has other columns than reports of this mechanism: these have "
            f"{', '.join(randomizer.columns)} and nothing else."
        )
        raise InputError(msg)


def count_file(randomizer: Randomizer, path: Path, *, rows: int) -> Ints:
    """(size + 1,) counts of the reports in a file, and their number; InputError that names the file and no row."""
    found = np.zeros(randomizer.size + 1, dtype=np.int64)
    for batch, _ in record_batches(path, dict.fromkeys(randomizer.columns, int), rows):
        cells = integers(batch, randomizer.columns)
        counts = None if cells is None else _valid_counts(randomizer, cells)
        if cells is None or counts is None:
            msg = (
                f"paths: {path.name} holds a row that no client of this mechanism sends; leave the file out, or "
                "find out who wrote it."
            )
            raise InputError(msg)
        found += np.append(counts, len(cells))
    return found


def _valid_counts(randomizer: Randomizer, reports: Ints) -> Ints | None:
    """Counts of reports; None where one of them is no report, whose values no message may tell."""
    try:
        return randomizer.count(reports)
    except InputError:
        return None


def _of_dask(client: Any) -> Any:
    if not all(callable(getattr(client, name, None)) for name in ("map", "submit", "scheduler_info")):
        msg = f"client: must be a dask.distributed.Client, got {type(client).__name__}."
        raise InputError(msg)
    return client


def write_reports(reports: Reports, path: str | Path, *, mechanism: LocalMechanism | None = None) -> Path:
    """Write reports to a new CSV or Parquet file, in their order, with a label that says where they come from.

    Parameters
    ----------
    reports : Reports
        As `mechanism.clients` gives them; of `LDPTrace` those of one round, `first.clients` or `second(...).clients`.
    path : str or Path
        New file ending in .csv or .parquet, in an existing folder. The label of ``reports.csv`` is
        ``reports.csv.json``; that of a Parquet file is in its metadata.
    mechanism : LocalMechanism, optional
        That drew them, of `LDPTrace` the round: then the label tells its public numbers, too, and
        its `user`. That each person sent one of these reports is the caller's word. Mechanisms whose `user` tells
        persons, all of trajectories among them, count no file whose label does not say so.

    Raises
    ------
    InputError
        When the file exists: a person reports once, so reports are not drawn over others.
    """
    given: Reports = instance("reports", reports, Reports, "mechanism.clients(...) gives some")
    if mechanism is None:
        label = Label(given.mechanism, given.seeded)
    else:
        label = label_for(_of(mechanism), seeded=given.seeded, user=mechanism.user)
        if label.mechanism != given.mechanism:
            msg = "mechanism: it did not draw these reports; give the one that did, or leave it out."
            raise InputError(msg)
    target = new_file(path, SUFFIXES, "path")
    with writing(target, tuple(given.columns), label) as write:
        write(given.rows)
    return target


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
        Number of processes, each of which counts whole files; None counts in this one.
    client : distributed.Client, optional
        Of a Dask cluster whose workers see the files under the same names: one task for each file, and their sum.
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
    randomizer, rows = mechanism.randomizer, whole("batch", batch, 1, most=2**31 - 1)
    number = 1 if workers is None else whole("workers", workers, 1, most=4096)
    said, found = announcer(progress), table_files(tables)
    labels = [label_of(path, mechanism, **known) for path in found]
    runs, seeded = runs_of(found, labels), any(label is not None and label.seeded for label in labels)
    for path in found:
        _require_columns(path, randomizer)
    count = partial(count_file, randomizer, rows=randomizer.at_once(rows))
    total, sizes = np.zeros(randomizer.size + 1, dtype=np.int64), [path.stat().st_size for path in found]
    for k, part in enumerate(_counted(count, found, number, client), 1):
        total += part
        said(Step(f"{total[-1]:,} reports counted".replace(",", " "), sum(sizes[:k]) / max(1, sum(sizes))))
    done = _counts(mechanism, total, seeded, runs)
    return done if counted is None else counted + done


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
    target = new_file(out, (SUFFIX,), "out")
    names = [paths] if isinstance(paths, str | Path) else list(each(paths) or ())
    if any(map(is_counts, names)):
        msg = "paths: some are files of counts already; add them up with merge_counts or `dpppsynth local merge`."
        raise InputError(msg)
    instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one")
    known: dict[str, Any] = {"window": window, "labelled": labelled}
    counts = aggregate_files(mechanism, names, workers=workers, progress=progress, **known)
    write_counts(counts, target, window=window)
    return counts


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
    encoding: str | None = None,
    layer: str | None = None,
    user: str | None = None,
    batch: int = BATCH,
    rng: RngLike = None,
    progress: Progress | None = None,
    permit: Callable[[int], None] | None = None,
) -> int:
    """Draw one report for every person of a file of points, out of core, as their devices would.

    With `user` a person's report is about one of their points, drawn at random, and hides all of them. Without it every
    row is a person of its own, and whoever has k rows is promised k times epsilon. Of `LineTrace`, and of a round of
    `LDPTrace`, reports are about all points of a person in the order of their rows, of which only the cells
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
    x, y, separator, decimal, encoding, layer : str, optional
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
    target, done = new_file(out, SUFFIXES, "out"), 0
    user = mechanism.user if user is None else user
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "encoding": encoding, "layer": layer}
    place = require_place_columns(points, user=user, window=window, **layout)
    known: dict[str, Any] = {"user": user, "rows": rows, "progress": say}
    if isinstance(mechanism, TraceRound | LineTrace):
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
        codes = person_rows(points, user, rows=rows, progress=progress)
        kept = few_rows_each(codes, 1, source)
    for xy in point_batches(points, rows, kept=kept, check=values):
        inside = values(xy)
        yield inside[source.permutation(len(inside))], points.share


def require_files(points: str | Path, reports: str | Path, window: Window, **columns: Any) -> None:
    """Refuse, before any budget is spent, files that `perturb_file` would refuse by their names and columns.

    Parameters
    ----------
    points, reports : str or Path
        File of points, and new file of reports.
    window : Window
    **columns
        `user`, and how rows are laid out, as of `perturb_file`.

    Raises
    ------
    InputError
        For a file of reports that exists, and a file of points with other columns or another CRS.
    """
    new_file(reports, SUFFIXES, "out")
    require_place_columns(points, window=window, **columns)


def require_place_columns(
    points: str | Path, *, user: str | None, window: Window | None = None, **layout: str | None
) -> PointFile:
    """The file of points, refused by its column names and CRS where `perturb_file` would refuse it; InputError."""
    found = point_file(points, window, layout)
    require_user(found, user)
    require_told(found.columns, user, found.name)
    return found


def _of(mechanism: Any) -> LocalMechanism:
    some = "DiskAreaMechanism(epsilon=1.0) is one, and so is a round of LDPTrace, trace.first"
    found: LocalMechanism = instance("mechanism", mechanism, LocalMechanism, some)
    return found


def _at_once(mechanism: Any) -> CellMechanism | Round:
    """A mechanism all of whose clients report at once, or one round of another."""
    if not isinstance(mechanism, CellMechanism | Round):
        msg = f"mechanism: needs one whose clients report at once, or one round of another; got {mechanism!r}."
        raise InputError(msg)
    return mechanism


def _counts(mechanism: LocalMechanism, counts: Ints, seeded: bool, runs: tuple[str, ...]) -> Counts:
    """Counts (size + 1,), the last one the number of reports, as those of the mechanism."""
    return mechanism.counts_kind(mechanism, counts[:-1], int(counts[-1]), seeded, runs)
