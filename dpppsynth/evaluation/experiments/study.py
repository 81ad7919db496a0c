"""`Study`: a simulation study that is run in processes or on a cluster, stored cell by cell, resumed and read.

Finished cells are lines of JSON, appended one by one and forced to disk. Whatever stops the process leaves whole lines,
and perhaps a part of one, which the next run cuts off. The lock belongs to the operating system, which frees it when
the process ends, in whatever way.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.arguments import one_of, whole
from dpppsynth.core.atomic_files import locked, whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Step, announced, line
from dpppsynth.evaluation.experiments.cells import (
    KEYS,
    Cell,
    CellError,
    Finished,
    Outcome,
    StudyGrid,
    original_of,
    outcome_of,
    run_cell,
)

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION, CELLS = "study.json", "cells.jsonl"
# Columns that are kept beside the table.
BESIDE = ["message", "seconds"]
ROWS = KEYS[:-1]
# Broken pools of workers in a row, without a finished cell, at which a study gives up.
DEATHS = 3
ENGINES = "processes", "dask"


class Study(StudyGrid):
    """A simulation study: every synthesizer, at every budget, on `repeats` originals of every scenario.

    Parameters
    ----------
    scenarios : mapping of str to Scenario
    synthesizers : mapping of str to callable
        Each takes (scenario, epsilon, delta, n) and returns a synthesizer, or any object whose `release(pattern, rng)`
        has `sample(m, rng)` or `patterns`.
    epsilon : sequence of float
    delta : sequence of float or "1/n"
        "1/n" is one over the number of points of the original.
    repeats : int
        Originals of each scenario; the same ones for all synthesizers and budgets, so that comparisons are paired.
    measures : mapping of str to callable
        Each takes an `Outcome` and returns a number.
    patterns : int
        Synthetic patterns of each release; 0 where measures look at the release alone.
    seed : int
    version : str
        What the functions are a version of. A folder keeps the cells of one version: count it up whenever a scenario, a
        synthesizer or a measure changes under the name that it has.

    Notes
    -----
    Refusals of a synthesizer are results (column `refused`; what they say: `refusals`), other exceptions stop the
    study.

    A folder serves the study that it was made by. Another one is told apart by its version, seed, number of patterns
    and names of measures, and where cells are added by the version of this package. Functions are known by their names
    alone: only you know when one has changed.

    Examples
    --------
    >>> import tempfile
    >>> from dpppsynth import LaplaceSynthesizer, PointPattern, Window
    >>> from dpppsynth.evaluation.experiments import Scenario
    >>> square = Window.rectangle(0, 0, 1, 1)
    >>> def uniform(rng):
    ...     return PointPattern(rng.random((50, 2)), square)
    >>> def laplace(scenario, epsilon, delta, n):
    ...     return LaplaceSynthesizer(epsilon, alpha=scenario.alpha, spacing=0.25)
    >>> def points(outcome):
    ...     return len(outcome.synthetic[0])
    >>> study = Study(
    ...     {"uniform": Scenario(square, uniform, alpha=0.1)},
    ...     {"laplace": laplace},
    ...     epsilon=[1, 10],
    ...     delta=[0],
    ...     repeats=3,
    ...     measures={"points": points},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = study.run(folder, workers=1)
    >>> list(table.columns)
    ['scenario', 'synthesizer', 'epsilon', 'delta', 'repeat', 'refused', 'points']
    >>> len(table)
    6
    """

    def run(
        self, folder: str | Path, workers: int | None = None, *, engine: str = "processes", progress: bool = True
    ) -> "pd.DataFrame":
        """Finish every cell that the folder does not hold yet, and return the table.

        Cells are kept as they finish. A run that was stopped, killed even, is
        taken up again by running it again. More repeats, budgets, scenarios and synthesizers may be added between runs.
        An interrupt (Ctrl-C) ends processes of our own at once, and loses no more than the cells that they were at.

        Parameters
        ----------
        folder : str or Path
            New, or of an earlier run of this study.
        workers : int, optional
            Number of processes; 1 runs in this one, None takes all cores. A cluster has its own.
        engine : {"processes", "dask"}
            Joblib's processes, or the cluster of the current ``dask.distributed.Client``.
        progress : bool
            Show a moving line, on a terminal only.

        Returns
        -------
        pandas.DataFrame
            A row for each cell, in the order of `cells`: its names, `refused` (class of a refusal, or None) and the
            measures. It does not depend on engines, workers or interruptions.

        Raises
        ------
        InputError
            When the folder holds another study or another version of it, cannot be written or another process writes to
            it, or a function cannot be sent to workers.
        CellError
            When a cell fails for another reason than a refusal, or its worker dies time and again; what is finished is
            kept.
        """
        workers = None if workers is None else whole("workers", workers, 1)
        one_of("engine", engine, ENGINES)
        place = _place(folder)
        with opened(place, self) as append:
            done = finished_cells(place)
            # Repeat by repeat, so that an unfinished study has every row.
            missing = sorted((cell for cell in self.cells() if cell not in done), key=lambda cell: cell.repeat)
            with line() if progress and missing and sys.stderr.isatty() else announced(False) as say:
                for number, result in enumerate(self._results(missing, workers, engine), 1):
                    if isinstance(result, CellError):
                        raise result
                    append(result)
                    say(Step(f"{number} of {len(missing)} cells, {result.cell}", number / len(missing)))
        return self.table(place)

    def _results(self, cells: Sequence[Cell], workers: int | None, engine: str) -> Iterator[Finished | CellError]:
        if engine == "dask":
            return _on_cluster(_sent(self), cells)
        if workers == 1:
            return (run_cell(self, cell) for cell in cells)
        return _in_processes(_sent(self), cells, workers)

    def outcome(self, cell: Cell) -> Outcome:
        """Rerun a cell and return the input of its measures, to draw it for instance; refusals are raised."""
        return outcome_of(self, cell, original_of(self, cell))

    def table(self, folder: str | Path) -> "pd.DataFrame":
        """Return the finished cells of this study's grid, like `run`, without running any."""
        return self._kept(folder).drop(columns=BESIDE)

    def seconds(self, folder: str | Path) -> "pd.DataFrame":
        """Return the table with the time of each cell, which is not reproducible."""
        return self._kept(folder).drop(columns="message")

    def refusals(self, folder: str | Path) -> "pd.DataFrame":
        """Return a row for each finished cell with a refusal: its names, `refused` and the error's `message`.

        A refusal of every cell is a mistyped argument more often than a result.
        """
        kept = self._kept(folder)[[*KEYS, "refused", "message"]]
        return kept[kept["refused"].notna()].reset_index(drop=True)

    def _kept(self, folder: str | Path) -> "pd.DataFrame":
        place = _place(folder)
        require_same_study(place, study_description(self), read_only=True)
        return cells_table(place, self.cells(), list(self.measures))


def _place(folder: Any) -> Path:
    try:
        return Path(folder)
    except TypeError:
        msg = f"folder: needs a path, got {folder!r}."
        raise InputError(msg) from None


def _in_processes(sent: bytes, cells: Sequence[Cell], workers: int | None) -> Iterator[Finished | CellError]:
    """Results of Joblib's processes, none begun after a failed one; what a dying process takes along is run again."""
    import joblib

    left, deaths = dict.fromkeys(cells), 0
    settings = {"inner_max_num_threads": 1, "initializer": _end_with_parent, "initargs": (os.getpid(),)}
    failed: list[CellError] = []
    while left and not failed:
        # After a death one cell runs alone, so that the cell that kills its worker has a name.
        chosen = tuple(left)[: 1 if deaths else None]
        tasks = (joblib.delayed(_run_sent)(sent, cell) for cell in takewhile(lambda _: not failed, chosen))
        try:
            with joblib.parallel_config("loky", n_jobs=-1 if workers is None else workers, **settings):
                for result in joblib.Parallel(return_as="generator_unordered")(tasks):
                    if isinstance(result, CellError):
                        failed.append(result)
                    else:
                        yield result
                        del left[result.cell]
            deaths = 0
        except BrokenExecutor:
            deaths += 1
            if deaths > DEATHS:
                msg = f"cell ({chosen[0]}): its worker died {DEATHS} times when it ran alone, out of memory?"
                raise CellError(msg) from None
    yield from failed[:1]


def _on_cluster(sent: bytes, cells: Sequence[Cell]) -> Iterator[Finished | CellError]:
    """Results of the workers of the current Dask client, which replaces those that die."""
    import distributed

    library: Any = distributed
    client = library.get_client()
    futures = client.map(partial(_run_sent, sent), cells, pure=False, retries=DEATHS)
    try:
        for future in library.as_completed(futures):
            yield future.result()
    except library.scheduler.KilledWorker as error:
        msg = f"a cell was lost on the cluster: {error}"
        raise CellError(msg) from error
    finally:
        client.cancel(futures)


def _sent(study: StudyGrid) -> bytes:
    """A study as bytes, functions of scripts and notebooks by value."""
    import cloudpickle

    try:
        return cloudpickle.dumps(study)
    except Exception as error:
        msg = f"a function of the study cannot be sent to another process ({error}); run with workers=1."
        raise InputError(msg) from error


@lru_cache(maxsize=2)
def _received(sent: bytes) -> StudyGrid:
    import cloudpickle

    study: StudyGrid = cloudpickle.loads(sent)
    return study


def _run_sent(sent: bytes, cell: Cell) -> Finished | CellError:
    return run_cell(_received(sent), cell)


def _end_with_parent(parent: int) -> None:
    """Let a worker end when the process that started it is gone, even killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def summary(table: "pd.DataFrame", by: Sequence[str] = ROWS) -> "pd.DataFrame":
    """Mean and standard error of every measure, for each group of cells.

    Cells that share an original (scenario and repeat) are averaged first: the originals are what is independent, and
    standard errors count them. Refused cells and missing values are left out of means.

    Parameters
    ----------
    table : pandas.DataFrame
        From `Study.run`, `Study.table` or `Study.seconds`.
    by : sequence of str
        Columns that tell groups apart, from the first five but `repeat`.

    Returns
    -------
    pandas.DataFrame
        A row for each group, in the order of the table: `by`, `cells`, `refused` (how many hold a refusal) and for
        each measure `m` columns `m` (mean) and `m_se` (standard error, nan for one original).

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "laplace", 1.0, 0.0, k, None, value) for k, value in enumerate([1.0, 3.0])]
    >>> table = pd.DataFrame(rows, columns=[*KEYS, "refused", "points"])
    >>> summary(table, by=["scenario"]).iloc[0].to_dict()
    {'scenario': 'a', 'cells': 2, 'refused': 0, 'points': 2.0, 'points_se': 1.0}
    """
    by = [by] if isinstance(by, str) else list(by)
    if not by or not set(by) <= set(ROWS):
        msg = f"by: needs some of {ROWS}, got {by}."
        raise InputError(msg)
    missing = [name for name in (*KEYS, "refused") if name not in getattr(table, "columns", ())]
    if missing:
        msg = f"table: must be what `Study.run` gave; there is no column {', '.join(missing)}."
        raise InputError(msg)
    measures = [name for name in table.columns if name not in (*KEYS, "refused")]
    originals = [*by, *(name for name in ("scenario", "repeat") if name not in by)]
    each = table.groupby(originals, sort=False)[measures].mean().reset_index()
    groups = table.groupby(by, sort=False)
    result = groups.size().rename("cells").to_frame()
    result["refused"] = groups["refused"].count()
    mean, error = each.groupby(by, sort=False)[measures].mean(), each.groupby(by, sort=False)[measures].sem()
    for name in measures:
        result[name], result[f"{name}_se"] = mean[name], error[name]
    return result.reset_index()


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
        path, description = folder / DESCRIPTION, study_description(study)
        if path.exists():
            require_same_study(folder, description)
        elif (folder / CELLS).exists():
            msg = f"folder: {folder} holds {CELLS} but no {DESCRIPTION}; take a new folder."
            raise InputError(msg)
        else:
            with whole_file(path) as file:
                file.write(json.dumps(description, indent=1).encode())
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


def finished_cells(folder: Path) -> dict[Cell, dict[str, Any]]:
    """Finished cells, of this grid or not, with the kept results of each."""
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
