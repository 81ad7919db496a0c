"""Work shared among the processor's cores by threads, for functions that let others run meanwhile."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
    """Results of a function for some tasks, in their order: the same on any number of cores."""
    waiting = list(tasks)
    if len(waiting) < 2:
        return [function(task) for task in waiting]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, waiting))
