"""Storage of finished cells: lines of JSON, appended one by one and forced to disk.

Whatever stops the process leaves whole lines, and perhaps a part of one, which the next run cuts off. The lock belongs
to the operating system, which frees it when the process ends, in whatever way.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.atomic_files import locked, whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments.cells import KEYS, Cell, Finished, StudyGrid

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION, CELLS = "study.json", "cells.jsonl"


@contextmanager
def opened(folder: Path, study: StudyGrid) -> Iterator[Callable[[Finished], None]]:
    """Hold the folder of a study for writing; yield a function that keeps a finished cell; InputError if in use."""
    lock = locked(folder / "lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.__enter__()
    except TimeoutError:
        msg = f"folder: another process is writing to {folder}; wait for it, or take another folder."
        raise InputError(msg) from None
    except OSError as error:
        msg = f"folder: cannot write to {folder} ({error.strerror}); take a folder where you may write."
        raise InputError(msg) from None
    try:
        _describe(folder, study)
        with (folder / CELLS).open("ab") as file:
            file.truncate((folder / CELLS).read_bytes().rfind(b"\n") + 1)

            def append(finished: Finished) -> None:
                values = dict(zip(study.measures, finished.values, strict=True))
                beside = {name: getattr(finished, name) for name in ("refused", "message", "seconds")}
                file.write(json.dumps(asdict(finished.cell) | beside | {"values": values}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

            yield append
    finally:
        lock.__exit__(None, None, None)


def _describe(folder: Path, study: StudyGrid) -> None:
    """Compare the folder's description with the study's, or write it."""
    path, description = folder / DESCRIPTION, study_description(study)
    if path.exists():
        require_same_study(folder, description)
    elif (folder / CELLS).exists():
        msg = f"folder: {folder} holds {CELLS} but no {DESCRIPTION}; take a new folder."
        raise InputError(msg)
    else:
        with whole_file(path) as file:
            file.write(json.dumps(description, indent=1).encode())


def finished_cells(folder: Path) -> dict[Cell, dict[str, Any]]:
    """Finished cells, of this grid or not, with what was kept of each."""
    path = folder / CELLS
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    rows = map(json.loads, lines)
    return {Cell(*(row[name] for name in KEYS)): row for row in rows}


def cells_table(folder: Path, cells: Sequence[Cell], measures: Sequence[str]) -> "pd.DataFrame":
    """Finished cells among the given ones, in their order, with messages of refusals and seconds."""
    import pandas as pd

    kept = finished_cells(folder)
    rows = [kept[cell] | kept[cell]["values"] for cell in cells if cell in kept]
    kinds = {"scenario": object, "synthesizer": object, "epsilon": float, "delta": object, "repeat": int}
    kinds |= {"refused": object} | dict.fromkeys(measures, float) | {"message": object, "seconds": float}
    columns = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in kinds.items()}
    return pd.DataFrame(columns)


def study_description(study: StudyGrid) -> dict[str, Any]:
    """Return the description of a study that its folder stores, as JSON can hold it.

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
