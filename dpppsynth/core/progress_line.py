"""A moving line on the screen: what is going on, the share that is done, and the time left."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

# Shares that are told sooner after the first, or are nearer to it, say too little of the pace.
SHORTEST, LEAST = 1.0, 0.02


class Clock:
    """Time left of a step, by the pace of its shares.

    Examples
    --------
    >>> clock = Clock(iter([0.0, 10.0]).__next__)
    >>> clock.words("drawing", 0.0), clock.words("drawing", 0.25)
    ('drawing', 'drawing (25 %, some 30 s left)')
    """

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or time.monotonic
        self._first: tuple[float, float] | None = None
        self._last = 0.0

    def words(self, step: str, share: float | None) -> str:
        """Words on a step, with its share and the time left where they are known."""
        if share is None:
            self._first = None
            return step
        now = self._now()
        if self._first is None or share < self._last:
            self._first = now, share
        self._last = share
        start, begun = self._first
        taken, gained = now - start, share - begun
        if taken < SHORTEST or gained < LEAST:
            return f"{step} ({100 * share:.0f} %)" if share else step
        return f"{step} ({100 * share:.0f} %, some {duration(taken * (1 - share) / gained)} left)"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> duration(7.3), duration(130), duration(9000)
    ('7 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def line(after: float = 0.0) -> Iterator[Callable[[str], None]]:
    """Yield a function to be told of each step; the line appears after some seconds, and goes in the end."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    bar = Progress(*columns, console=Console(stderr=True, force_jupyter=_draws_in_notebooks()), transient=True)
    task, clock, start = bar.add_task("starting", total=None), Clock(), time.monotonic()

    def say(step: str) -> None:
        words = clock.words(re.sub(r"\s+", " ", step), getattr(step, "share", None))
        bar.update(task, description=words)
        if time.monotonic() - start >= after:
            bar.start()

    try:
        if not after:
            bar.start()
        yield say
    finally:
        # A screen that went away must not cost a release.
        with suppress(OSError):
            bar.stop()


def _draws_in_notebooks() -> bool | None:
    """False where a notebook lacks what a moving line needs there, of which rich would warn at each release."""
    return None if find_spec("ipywidgets") else False


@contextmanager
def lines(write: Callable[[str], Any], every: float = 10.0) -> Iterator[Callable[[str], None]]:
    """Yield the same for files and pipes: a line for each new step, and one every few seconds of a long one.

    "25 of 400 runs" and "50 of 400 runs" are one step, and so are "1 000 reports counted" and "2 000 reports counted".
    """
    clock, known, last = Clock(), "", time.monotonic()

    def say(step: str) -> None:
        nonlocal known, last
        words, now = clock.words(step, getattr(step, "share", None)), time.monotonic()
        what = re.sub(r"^\d[\d ]* (of )?", "", step)
        if what != known or now - last >= every:
            write(words if what == known else step)
            known, last = what, now

    yield say
