"""Atomic writing of report files with their labels; existing files are never replaced."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dpppsynth.core.atomic_files import drafted
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.labels import KEY, Label, beside
from dpppsynth.mechanisms.local.report_tables import require_format
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.tables.formats import as_path, there


class Sink(Protocol):
    """Takes reports (m, columns), any number of times."""

    def __call__(self, rows: Ints) -> None:
        """Write some more."""


def new_file(path: str | Path, argument: str = "path") -> Path:
    """Name of a file of reports that may be written: of a known format, in a folder that exists, and new.

    Raises
    ------
    InputError
    """
    target = as_path(path, argument)
    require_format(target, argument)
    if not there(target.parent, Path.is_dir):
        msg = f"{argument}: there is no folder {str(target.parent)!r}."
        raise InputError(msg)
    taken = next((each for each in (target, beside(target)) if there(each, Path.exists)), None)
    if taken is not None:
        msg = f"{argument}: {taken.name} exists; reports are never drawn over others. Choose another name."
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
