"""Distribution of cells to a bounded number of workers; workers that die are replaced.

Workers receive the study as bytes and keep it between cells. They send back numbers; only the process that called
`Study.run` writes, so workers need not see its folder.
"""

import pickle
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from functools import lru_cache

from dpppsynth.core.errors import InputError
from dpppsynth.core.workers import worker_pool
from dpppsynth.evaluation.experiments.cells import Cell, CellError, Failed, Finished
from dpppsynth.evaluation.experiments.design import Design
from dpppsynth.evaluation.experiments.simulation import run_cell

Keep = Callable[[Finished | Failed], None]

# Times that a cell may take its process with it, running alone, or be lost by a cluster, before a study gives up.
DEATHS = 3
# Cells handed to an executor at once where it is not said how many it runs at a time.
IN_FLIGHT = 64


def require_importable(design: Design, executor: Executor | None) -> None:
    """Refuse functions that another process cannot find.

    Processes that Python starts read the script that runs again, so its functions are known there; an interactive
    session's are not, nor are a script's on a cluster.
    """
    reads_script = executor is None or isinstance(executor, ProcessPoolExecutor | ThreadPoolExecutor)
    elsewhere = not (reads_script and hasattr(sys.modules["__main__"], "__file__"))
    for kind in ("scenarios", "synthesizers", "measures"):
        for name, part in getattr(design, kind).items():
            try:
                sent = pickle.dumps(part)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                msg = (
                    f"{kind}: {name!r} cannot be sent to another process ({error}); define its functions at the top "
                    "level of a module, not as a lambda or inside another function, or run with workers=1."
                )
                raise InputError(msg) from None
            if elsewhere and b"__main__" in sent:
                msg = (
                    f"{kind}: {name!r} is defined in the script or session that runs, which the workers do not know; "
                    "move it to a module of its own, or run with workers=1."
                )
                raise InputError(msg)


def through_executor(
    design: Design, cells: Sequence[Cell], executor: Executor, workers: int | None, keep: Keep
) -> None:
    """Run cells on an executor of the caller's, who also replaces its workers."""
    limit = 2 * workers if workers else IN_FLIGHT
    lost = _hand_out(executor, pickle.dumps(design), deque(cells), limit, keep)
    if lost:
        msg = f"executor: it broke while running cell ({lost[0]}); what is finished is kept. Run again with a new one."
        raise CellError(msg)


def in_processes(design: Design, cells: Sequence[Cell], workers: int, keep: Keep) -> None:
    """Run cells in processes of our own."""
    sent, queue = pickle.dumps(design), deque(cells)
    while queue:
        with worker_pool(min(workers, len(queue))) as pool:
            suspects = _hand_out(pool, sent, queue, 2 * workers, keep)
        _alone(sent, suspects, keep)


def _alone(sent: bytes, suspects: Sequence[Cell], keep: Keep) -> None:
    """Run cells one at a time, because a pool that breaks does not say which of its cells did it."""
    deaths: Counter[Cell] = Counter()
    queue = deque(suspects)
    while queue:
        with worker_pool(1) as pool:
            for cell in _hand_out(pool, sent, queue, 1, keep):
                deaths[cell] += 1
                if deaths[cell] == DEATHS:
                    msg = (
                        f"cell ({cell}): its worker process died {DEATHS} times, out of memory perhaps. A script that "
                        'runs a study in processes also needs `if __name__ == "__main__":` around it.'
                    )
                    raise CellError(msg)
                queue.append(cell)


@lru_cache(maxsize=2)
def _received(sent: bytes) -> Design:
    design: Design = pickle.loads(sent)  # noqa: S301 - made by the process that started this one
    return design


def run_sent_cell(sent: bytes, cell: Cell) -> Finished | Failed:
    """Run a cell in a worker."""
    return run_cell(_received(sent), cell)


def _hand_out(executor: Executor, sent: bytes, queue: deque[Cell], limit: int, keep: Keep) -> list[Cell]:
    """Run cells of the queue until it is empty, or the executor breaks: then return those that were under way."""
    under_way: dict[Future[Finished | Failed], Cell] = {}
    losses: Counter[Cell] = Counter()
    try:
        while queue or under_way:
            while queue and len(under_way) < limit:
                future = executor.submit(run_sent_cell, sent, queue[0])
                under_way[future] = queue.popleft()
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                cell = under_way[future]
                losses[cell] += 1
                result = _result(future, cell, losses[cell])
                del under_way[future]
                if result is None:
                    queue.append(cell)
                else:
                    keep(result)
    except (BrokenExecutor, CellError) as error:
        lost = _gather(under_way, keep)
        if isinstance(error, CellError):
            raise
        return lost
    except BaseException:
        for future in under_way:
            future.cancel()
        raise
    return []


def _result(future: "Future[Finished | Failed]", cell: Cell, time: int) -> Finished | Failed | None:
    """Result of a worker; None where a cluster lost it, as it may when a worker dies, for the first few times."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        if time < DEATHS:
            return None
        msg = f"cell ({cell}) was lost: {type(error).__name__}: {error}"
        raise CellError(msg) from error


def _gather(under_way: dict["Future[Finished | Failed]", Cell], keep: Keep) -> list[Cell]:
    """Take back what has not begun, wait for the rest and keep what is finished; return cells without a result."""
    running = [future for future in under_way if not future.cancel()]
    wait(running)
    lost = []
    for future, cell in under_way.items():
        if future.cancelled() or future.exception() is not None:
            lost.append(cell)
        elif isinstance(result := future.result(), Finished):
            keep(result)
    return lost
