"""Progress bar of a study on a terminal: cells done, time left, and the current cell."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpppsynth.evaluation.experiments.cells import Cell


@contextmanager
def bar(total: int, *, shown: bool) -> Iterator[Callable[[Cell], None]]:
    """Yield a function to call with each finished cell; it does nothing where standard error is no terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as shown_bar:
        task = shown_bar.add_task("starting", total=total)
        yield lambda cell: shown_bar.update(task, advance=1, description=f"{cell.scenario}, {cell.synthesizer}")
