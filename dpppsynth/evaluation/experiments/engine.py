"""Execution of missing cells: in this process, in a process pool, or through an executor."""

import os
import time
from concurrent.futures import Executor
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from dpppsynth.evaluation.experiments.bar import bar
from dpppsynth.evaluation.experiments.cells import Cell, Failed, Finished
from dpppsynth.evaluation.experiments.design import Design
from dpppsynth.evaluation.experiments.simulation import run_cell
from dpppsynth.evaluation.experiments.store import Store
from dpppsynth.evaluation.experiments.worker_pool import in_processes, through_executor

# Cells that take less than this many seconds are written together: a file costs some milliseconds, they may cost fewer.
BATCH_SECONDS = 1.0


class Keeper:
    """Writes finished cells, quick ones together; leaving it writes the rest."""

    def __init__(self, store: Store, count: int, *, progress: bool) -> None:
        self.store = store
        self.waiting: list[Finished] = []
        self.last = time.monotonic()
        self.stack = ExitStack()
        self.tick = self.stack.enter_context(bar(count, shown=progress))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._write()
        finally:
            self.stack.close()

    def keep(self, result: Finished | Failed) -> None:
        """Take a result; a failed one is raised."""
        if isinstance(result, Failed):
            raise result.exception()
        self.tick(result.cell)
        self.waiting.append(result)
        if max(result.seconds, time.monotonic() - self.last) >= BATCH_SECONDS:
            self._write()

    def _write(self) -> None:
        if self.waiting:
            self.store.append(self.waiting)
        self.waiting, self.last = [], time.monotonic()


def finish(
    design: Design,
    cells: list[Cell],
    store: Store,
    executor: Executor | None,
    workers: int | None,
    *,
    progress: bool,
) -> None:
    """Run the given cells and keep their results; see `Study.run`."""
    if not cells:
        return
    with Keeper(store, len(cells), progress=progress) as keeper:
        if executor is not None:
            through_executor(design, cells, executor, workers, keeper.keep)
        elif workers == 1:
            for cell in cells:
                keeper.keep(run_cell(design, cell))
        else:
            in_processes(design, cells, min(workers or _cores(), len(cells)), keeper.keep)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
