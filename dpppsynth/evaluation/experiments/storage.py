"""Storage of finished cells: one Parquet file for each small batch, written once and never changed.

A file is written under a temporary name, forced to disk and renamed, so whatever stops the process leaves whole files
only. The lock belongs to the operating system, which frees it when the process ends, in whatever way.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, astuple
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpppsynth.core.atomic_files import TEMPORARY, locked, whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments.cells import KEYS, Cell, Finished, StudyGrid

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

DESCRIPTION = "study.json"


class Store:
    """The folder of a study while it is being written, by one process at a time.

    Parameters
    ----------
    folder : Path
    study : StudyGrid

    Raises
    ------
    InputError
        On entry, when the folder cannot be made, holds another study, or another process is writing to it.
    """

    def __init__(self, folder: Path, study: StudyGrid) -> None:
        self.folder = folder
        self.description = study_description(study)
        self.measures = list(study.measures)
        self.lock = ExitStack()
        self.next = 0

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock.enter_context(locked(self.folder / "lock"))
        except TimeoutError:
            msg = f"folder: another process is writing to {self.folder}; wait for it, or take another folder."
            raise InputError(msg) from None
        except OSError as error:
            msg = f"folder: cannot write to {self.folder} ({error.strerror}); take a folder where you may write."
            raise InputError(msg) from None
        try:
            self._open()
        except BaseException:
            self.lock.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.lock.close()

    def _open(self) -> None:
        self.next = 1 + max((int(path.stem) for path in _batches(self.folder)), default=-1)
        path = self.folder / DESCRIPTION
        if self.next and not path.exists():
            msg = f"folder: {self.folder} holds numbered Parquet files but no {DESCRIPTION}; take a new folder."
            raise InputError(msg)
        if path.exists():
            require_same_study(self.folder, self.description)
        else:
            with whole_file(path) as file:
                file.write(json.dumps(self.description, indent=1).encode())
        for orphan in self.folder.glob(f"[0-9]*.parquet{TEMPORARY}"):
            orphan.unlink()

    def done(self) -> set[Cell]:
        """Cells that are finished, of this grid or not."""
        import pyarrow.parquet as pq

        rows = [row for path in _batches(self.folder) for row in pq.ParquetFile(path).read(KEYS).to_pylist()]
        return {Cell(**row | {"delta": _delta(row["delta"])}) for row in rows}

    def append(self, finished: Sequence[Finished]) -> None:
        """Keep finished cells, for good once this returns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist([self._row(each) for each in finished], schema=_schema(self.measures))
        with whole_file(self.folder / f"{self.next:08d}.parquet") as file:
            pq.write_table(table, file)
        self.next += 1

    def _row(self, finished: Finished) -> dict[str, Any]:
        values = dict(zip(self.measures, finished.values, strict=True))
        cell = asdict(finished.cell) | {"delta": str(finished.cell.delta)}
        beside = {"refused": finished.refused, "message": finished.message, "seconds": finished.seconds}
        return cell | beside | values


def finished_cells(folder: Path, cells: Sequence[Cell], measures: Sequence[str]) -> "pd.DataFrame":
    """Finished cells among the given ones, in their order, with messages of refusals and seconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(measures)
    tables = [pq.ParquetFile(path).read().select(schema.names) for path in _batches(folder)]
    kept = pa.concat_tables([schema.empty_table(), *tables]).to_pandas()
    kept["delta"] = [_delta(text) for text in kept["delta"]]
    for name in ("refused", "message"):
        kept[name] = kept[name].astype(object).where(kept[name].notna(), None)
    place = {key: row for row, key in enumerate(zip(*(kept[name] for name in KEYS), strict=True))}
    found = [place[key] for key in map(astuple, cells) if key in place]
    return kept.iloc[found].reset_index(drop=True)


def study_description(study: StudyGrid) -> dict[str, Any]:
    """Return what a folder remembers of its study, as JSON can hold it.

    Scenarios, synthesizers, budgets and repeats stay out: they are in every cell's name, and more may be added.
    """
    return {
        "dpppsynth": version("dpppsynth"),
        "version": study.version,
        "seed": study.seed,
        "patterns": study.patterns,
        "measures": sorted(study.measures),
    }


def require_same_study(folder: Path, description: Mapping[str, Any], *, read_only: bool = False) -> None:
    """Refuse a folder of another study or version; the package's own version may differ where cells are only read."""
    try:
        kept: dict[str, Any] = json.loads((folder / DESCRIPTION).read_text())
    except (FileNotFoundError, NotADirectoryError):
        msg = f"folder: {folder} holds no study; run it first."
        raise InputError(msg) from None
    old, new = kept.get("version"), description["version"]
    if old != new:
        msg = (
            f"version: {folder} keeps version {old!r} of this study, and a folder keeps one, got {new!r}; take a new "
            f"folder, or version={old!r} if no function has changed."
        )
        raise InputError(msg)
    compared = [name for name in description if not (read_only and name == "dpppsynth")]
    changed = [name for name in compared if kept.get(name) != description[name]]
    if changed:
        found = "; ".join(f"{name} was {kept.get(name)}, is {description[name]}" for name in changed)
        msg = f"folder: {folder} holds another study: {found}. Take a new folder."
        raise InputError(msg)


def _schema(measures: Sequence[str]) -> "pa.Schema":
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    kinds = {"scenario": text, "synthesizer": text, "epsilon": number, "delta": text, "repeat": pa.int64()}
    return pa.schema(kinds | {"refused": text} | dict.fromkeys(measures, number) | {"message": text, "seconds": number})


def _batches(folder: Path) -> list[Path]:
    """Files of finished cells, in the order they were written."""
    return sorted(folder.glob("[0-9]*.parquet"))


def _delta(text: str) -> float | str:
    return text if text == "1/n" else float(text)
