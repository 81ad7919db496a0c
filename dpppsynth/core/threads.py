"""Work shared among the processor's cores by threads, for functions that let others run meanwhile."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task], *, most: int | None = None) -> list[Result]:
    """Results of a function for some tasks, in their order: the same on any number of cores.

    Parameters
    ----------
    function : callable
    tasks : iterable
    most : int, optional
        Threads at most, where each takes much memory; None is as many as there are cores.
    """
    waiting = list(tasks)
    if len(waiting) < 2:
        return [function(task) for task in waiting]
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(min(cores, most or cores)) as pool:
        return list(pool.map(function, waiting))
