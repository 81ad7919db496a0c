"""Worker processes that end with the process that started them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any


@contextmanager
def worker_pool(workers: int) -> Iterator[Executor]:
    """Processes that end with this block: after what they are doing, or at once where it is interrupted.

    Parameters
    ----------
    workers : int
        Each runs numerical libraries on one thread.
    """
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


def _begin_worker(end: Connection) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_when_told, args=(end,), daemon=True).start()


def _end_when_told(end: Connection) -> None:
    """End this worker when the other end of a pipe is closed, or the process that holds it is gone, even killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_any([parent.sentinel, end])
        os._exit(1)
