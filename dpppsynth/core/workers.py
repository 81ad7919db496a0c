"""Worker processes that end with the process that started them, threads, code compiled for them, and time limits."""

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@contextmanager
def worker_pool(workers: int) -> Iterator[Executor]:
    """Worker processes that end with this block, at once on an interrupt.

    Parameters
    ----------
    workers : int
        Each runs numerical libraries on one thread.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Forked workers would share generators, locks and threads with this process.
    context = multiprocessing.get_context("spawn")
    end, hold = context.Pipe(duplex=False)
    with end, hold, ProcessPoolExecutor(workers, context, _begin_worker, (end,)) as pool:
        try:
            yield pool
        except Exception:
            raise
        except BaseException:
            # Leaving the pool waits for tasks that may take hours.
            hold.close()
            raise


def _begin_worker(end: "Connection") -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_when_told, args=(end,), daemon=True).start()


def _end_when_told(end: "Connection") -> None:
    """End this worker when the other end of a pipe is closed, or the process that holds it is gone, even killed."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for_any

    parent = parent_process()
    if parent is not None:
        wait_for_any([parent.sentinel, end])
        os._exit(1)


F = TypeVar("F", bound=Callable[..., object])
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


def compiled(function: F) -> F:
    """Compile a function when it is first called, to run beside other threads, and keep the code where possible."""
    from numba import njit

    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # there is no folder to keep compiled code in
        return njit(nogil=True)(function)


def in_time(function: Callable[[], Result], seconds: float) -> Result:
    """Result of a function; TimeoutError beyond some seconds.

    It runs in a thread, which ends at its next step in Python; nobody waits for that.
    """
    outcome: Future[Result] = Future()
    context = copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
    finally:
        if thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    if not outcome.done():
        msg = f"not done within {seconds:g} seconds"
        raise TimeoutError(msg)
    return outcome.result()
