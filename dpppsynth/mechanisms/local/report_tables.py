"""Tables of reports on disk: names of files, pieces that fit into memory, labels, and writing.

What the readers' libraries say about a bad file is hidden: parsers like to quote the offending cell.
"""

import csv
import glob
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import each
from dpppsynth.core.atomic_files import drafted
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.tables.formats import as_path, there

SUFFIXES = (".csv", ".parquet")
# Bytes of a CSV file parsed at once; and of its header, far more than any takes.
BLOCK_BYTES = 2**24
LONGEST_LINE = 2**24


def table_files(paths: Any) -> list[Path]:
    """The CSV and Parquet files that names, folders and patterns stand for, each once, by name."""
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
    else:
        found = matching(path)
        found = _tables(found) if found != [path] else found
    for file in found:
        require_format(file, SUFFIXES, "paths")
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


def matching(path: Path) -> list[Path]:
    """The file of this name, or else those that match it as a pattern."""
    if there(path, Path.exists) or not glob.has_magic(str(path)):
        return [path]
    return sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207


def require_format(path: Path, suffixes: tuple[str, ...], argument: str) -> None:
    """Refuse names with other endings."""
    if path.suffix.lower() not in suffixes:
        msg = f"{argument}: {path.name[:80]!r} must end in {' or '.join(suffixes)}."
        raise InputError(msg)


def quietly(path: Path, read: Callable[[], Any], argument: str = "paths") -> Any:
    """Read, and raise refusals outside the handler, so that no error chains to one with file contents."""
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        pass
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "CSV (comma-separated, UTF-8, numbers)"
    msg = f"{argument}: {path.name} cannot be read as {kind}; check that it is whole and its format right."
    raise InputError(msg)


def column_names(path: Path, argument: str = "paths") -> tuple[str, ...]:
    """Names of a table's columns; InputError when the file cannot be read."""
    return quietly(
        path, lambda: _parquet_names(path) if path.suffix.lower() == ".parquet" else _header(path)[0], argument
    )


def _parquet_names(path: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    return tuple(pq.read_schema(path).names)


def _header(path: Path) -> tuple[tuple[str, ...], int]:
    """Names of a CSV file's columns, and where its first row starts."""
    with path.open("rb") as stream:
        line = stream.readline(LONGEST_LINE)
        start = stream.tell()
    names = next(csv.reader([line.decode("utf-8-sig")], strict=True), [])
    return tuple(name.strip() for name in names), start


def record_batches(
    path: Path, kinds: Mapping[str, type], rows: int, argument: str = "paths"
) -> Iterator[tuple[Any, float]]:
    """Record batches of at most `rows` rows of some columns, each with the share of the file that is read by then."""
    read = _parquet_batches if path.suffix.lower() == ".parquet" else _csv_batches
    found = read(path, kinds, rows)
    yield from iter(lambda: quietly(path, lambda: next(found, None), argument), None)


def _parquet_batches(path: Path, kinds: Mapping[str, type], rows: int) -> Iterator[tuple[Any, float]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=False, buffer_size=2**20) as file:
        done, every = 0, max(1, file.metadata.num_rows)
        for batch in file.iter_batches(rows, columns=[*kinds], use_threads=False):
            done += batch.num_rows
            yield batch, done / every


def _csv_batches(path: Path, kinds: Mapping[str, type], rows: int) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    names, start = _header(path)
    with path.open("rb") as opened:
        opened.seek(start)
        if not opened.read(BLOCK_BYTES).strip():
            return
    # Types said beforehand: those of the first rows need not be those of the last.
    types = {name: {int: pa.int64(), float: pa.float64(), str: pa.string()}[kind] for name, kind in kinds.items()}
    chosen = arrow.ConvertOptions(include_columns=[*kinds], column_types=types)
    reading = arrow.ReadOptions(column_names=names, skip_rows=1, use_threads=False, block_size=BLOCK_BYTES)
    size, share = max(1, path.stat().st_size), 0.0
    with (
        # Without a buffer of its own: blocks are read ahead by another thread while the place is asked for.
        path.open("rb", buffering=0) as stream,
        arrow.open_csv(stream, read_options=reading, convert_options=chosen) as reader,
    ):
        for block in reader:
            share = max(share, min(1.0, stream.tell() / size))
            yield from ((block.slice(first, rows), share) for first in range(0, block.num_rows, rows))


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


# Key of a Parquet file's metadata; CSV files have their label beside them.
KEY = b"dpppsynth.reports"
LARGEST = 2**20


@dataclass(frozen=True)
class Label:
    """Origin of the reports in a file."""

    mechanism: str
    seeded: bool
    parameters: Mapping[str, Any] | None = None
    window: str | None = None
    user: str | None = None
    run: str | None = None

    def text(self) -> str:
        """JSON form."""
        data = {"mechanism": self.mechanism, "seeded": self.seeded, "parameters": self.parameters}
        known = {"window": self.window, "user": self.user, "run": self.run}
        return json.dumps(data | {name: text for name, text in known.items() if text is not None})


def label_for(
    mechanism: LocalMechanism, *, seeded: bool, window: Window | None = None, user: str | None = None
) -> Label:
    """Label of reports by a mechanism's clients, of places in a window, one for each person that `user` tells."""
    place = None if window is None else window.fingerprint()
    return Label(mechanism.fingerprint, seeded, mechanism.randomizer.parameters(), place, user)


def beside(path: Path) -> Path:
    """File that holds the label of a CSV file."""
    return path.with_name(path.name + ".json")


def read_label(path: Path) -> Label | None:
    """Label of a file of reports; None where it has none."""
    text = quietly(path, lambda: _text(path))
    return None if text is None else _label(path, text)


def label_of(
    path: Path, mechanism: LocalMechanism, *, window: Window | None = None, labelled: bool = False
) -> Label | None:
    """Label of a file of reports, refused unless it is of this mechanism and, where it states one, this window.

    Where the mechanism's `user` tells persons, the label must say so as well.
    """
    label = read_label(path)
    if label is None and labelled:
        msg = (
            f"paths: {path.name} has no label, which says what drew its reports and whether from secret random bits "
            f"(of a CSV file it is {beside(path).name}); bring it, or say that it is missing: --unlabelled."
        )
        raise InputError(msg)
    if label is not None and window is not None and label.window not in (None, window.fingerprint()):
        msg = (
            f"paths: {path.name} holds reports about another window; aggregate them with the one they were drawn with."
        )
        raise InputError(msg)
    if label is not None and label.mechanism != mechanism.fingerprint:
        msg = (
            f"paths: {path.name} holds reports of another mechanism{_differing(label, mechanism.randomizer)}; "
            "aggregate them with the one that drew them, with the same settings."
        )
        raise InputError(msg)
    if label is not None and mechanism.user not in (None, label.user):
        msg = f"paths: {path.name} does not say that each person sent one report, by the column {mechanism.user!r}; "
        if label.user is None:
            msg += (
                f"draw the reports with {mention('user', repr(mechanism.user))}, write those of devices with "
                "write_reports(..., mechanism=), or, where they are about places, count them without that column."
            )
        else:
            msg += f"it says so by another one: {mention('user', repr(label.user))}."
        raise InputError(msg)
    return label


def runs_of(paths: Sequence[Path], labels: Sequence[Label | None]) -> tuple[str, ...]:
    """Random numbers of the runs that drew the reports in files, as far as labels state them, each once."""
    known: dict[str, Path] = {}
    for path, label in zip(paths, labels, strict=True):
        run = None if label is None else label.run
        if run is None:
            continue
        if run in known:
            msg = (
                f"paths: {known[run].name} and {path.name} hold reports of the same drawing, which would count twice; "
                "name one of them, and where they are parts of a file, that file."
            )
            raise InputError(msg)
        known[run] = path
    return tuple(sorted(known))


def _differing(label: Label, randomizer: Randomizer) -> str:
    """The public numbers in which a file's mechanism differs, as far as it tells them."""
    if label.parameters is None:
        return ""
    mine = randomizer.parameters()
    names = [name for name in mine if mine[name] != label.parameters.get(name)]
    return f" ({', '.join(names)})" if names else ""


def _text(path: Path) -> str | None:
    if path.suffix.lower() == ".csv":
        if not beside(path).is_file():
            return None
        with beside(path).open("rb") as stream:
            return stream.read(LARGEST).decode()
    import pyarrow.parquet as pq

    found = (pq.read_metadata(path).metadata or {}).get(KEY)
    return None if found is None else found.decode()


def _label(path: Path, text: str) -> Label:
    try:
        data = json.loads(text)
        label = Label(data["mechanism"], data["seeded"], *map(data.get, ("parameters", "window", "user", "run")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        label = Label("", seeded=False)
    numbers = label.parameters is None or isinstance(label.parameters, dict)
    numbers = numbers and all(text is None or isinstance(text, str) for text in (label.window, label.user, label.run))
    if not (isinstance(label.mechanism, str) and label.mechanism and isinstance(label.seeded, bool) and numbers):
        msg = (
            f"paths: the label of {path.name}, which names the mechanism of its reports, is not whole; write it again."
        )
        raise InputError(msg)
    return label


# Takes reports (m, columns), any number of times.
Sink = Callable[[Ints], object]


def new_file(path: Any, suffixes: tuple[str, ...], argument: str) -> Path:
    """Name for a new file of reports or counts, with a known ending, in an existing folder."""
    target = as_path(path, argument)
    require_format(target, suffixes, argument)
    if not there(target.parent, Path.is_dir):
        msg = f"{argument}: there is no folder {str(target.parent)!r}."
        raise InputError(msg)
    taken = next((each for each in (target, beside(target)) if there(each, Path.exists)), None)
    if taken is not None:
        msg = f"{argument}: {taken.name} exists; it is never written over. Choose another name."
        raise InputError(msg)
    return target


@contextmanager
def writing(target: Path, columns: tuple[str, ...], label: Label) -> Iterator[Sink]:
    """Write a file of reports that takes its name when it is whole; its label gets a random number."""
    label = replace(label, run=secrets.token_hex(16))
    with drafted(target, "it holds reports: publish none of them beside those of the next run.") as draft:
        with (_parquet if target.suffix.lower() == ".parquet" else _csv)(draft, columns, label) as write:
            yield write
        # The label first: reports never lie there without it.
        for each in (beside(draft), draft):
            if each.exists():
                shutil.move(each, target.with_name(each.name))


@contextmanager
def _parquet(path: Path, columns: tuple[str, ...], label: Label) -> Iterator[Sink]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.int64()) for name in columns], metadata={KEY: label.text()})
    with pq.ParquetWriter(path, schema) as writer:
        yield lambda rows: writer.write_table(pa.table([*rows.T], schema=schema), row_group_size=max(len(rows), 1))


@contextmanager
def _csv(path: Path, columns: tuple[str, ...], label: Label) -> Iterator[Sink]:
    import pyarrow as pa
    from pyarrow import csv

    beside(path).write_text(label.text() + "\n", encoding="utf-8")
    plain = csv.WriteOptions(include_header=False)
    with path.open("wb") as stream:
        stream.write((",".join(columns) + "\n").encode())
        yield lambda rows: csv.write_csv(pa.table([*rows.T], names=columns), stream, plain)
