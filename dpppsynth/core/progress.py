"""Progress of long work: messages with the share done, and a progress line on the screen."""

import builtins
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal, Self, TypeVar

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError

Progress = Callable[[str], None]
# A function, False for silence, or None for a line on the screen in interactive use.
ProgressLike = Progress | Literal[False] | None
T = TypeVar("T")


class Step(str):
    """Text of a step, and the share of the work done where known.

    Shares follow from public parameters, from sizes of files, or from what was released already.

    Examples
    --------
    >>> step = Step("drawing", 0.25)
    >>> print(step, step.share)
    drawing 0.25
    """

    share: float | None

    def __new__(cls, words: str, share: float | None = None) -> Self:
        """Words with a share."""
        made = super().__new__(cls, words)
        made.share = share
        return made


def each_of(say: Progress, words: str, items: Sequence[T]) -> Iterator[T]:
    """The items, one by one, reporting the share done before each."""
    for k, item in enumerate(items):
        say(Step(words, k / len(items)))
        yield item


def inner_progress(say: Progress, words: str, done: int, count: int) -> Progress:
    """Progress of one of several parts, mapped to the share of the whole.

    Examples
    --------
    >>> inner = inner_progress(lambda step: print(step, step.share), "year 1854", 1, 2)
    year 1854 0.5
    >>> inner(Step("drawing", 0.5))
    year 1854: drawing 0.75
    """
    say(Step(words, done / count))
    return lambda step: say(Step(f"{words}: {step}", _share_of_all(step, done, count)))


def part_progress(say: Progress, words: str, done: int, count: int) -> Progress:
    """Progress of one of several parts, mapped to the share of the whole, without the part's own texts.

    Examples
    --------
    >>> part = part_progress(lambda step: print(step, step.share), "writing patterns", 1, 2)
    >>> part(Step("writing points", 0.5))
    writing patterns 0.75
    """
    return lambda step: say(Step(words, _share_of_all(step, done, count)))


def _share_of_all(step: str, done: int, count: int) -> float:
    return (done + (getattr(step, "share", None) or 0.0)) / count


def require_progress(progress: Any) -> None:
    """Refuse a progress callback that is not a function of one text, before it could fail a paid release."""
    if progress is not None and progress is not False and not callable(progress):
        msg = (
            "progress: must be a function of one text, such as print, False for silence, or None for a line on the "
            f"screen in interactive use; got {shown(progress)}."
        )
        raise InputError(msg)


@contextmanager
def announced(progress: ProgressLike) -> Iterator[Progress]:
    """Yield the function that reports steps: the given one, or a screen line in interactive use.

    Parameters
    ----------
    progress : callable, False or None
        False is silence; None is a line on the screen where somebody types commands, and silence elsewhere.
    """
    require_progress(progress)
    if callable(progress):
        yield progress
    elif progress is None and interactive():
        from dpppsynth.core.progress import line

        with line(after=1.0) as say:
            yield say
    else:
        yield silent


def silent(_: str) -> None:
    """Ignore a step."""


def interactive() -> bool:
    """Whether commands are typed, in a notebook or at a prompt."""
    return hasattr(builtins, "__IPYTHON__") or (hasattr(sys, "ps1") and sys.stderr.isatty())


# Shares that are told sooner after the first, or are nearer to it, say too little of the pace.
SHORTEST, LEAST = 1.0, 0.02


class Clock:
    """Estimate of the time left of a step, from its pace.

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
        """Text of a step, with share and time left where known."""
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
    """Seconds in words.

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
    """Yield a function that shows each step in a line on the screen, which appears after a while and vanishes."""
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
        # A lost terminal must not lose a release.
        with suppress(OSError):
            bar.stop()


def _draws_in_notebooks() -> bool | None:
    """False where a notebook lacks what a moving line needs there, of which rich would warn at each release."""
    return None if find_spec("ipywidgets") else False


@contextmanager
def lines(write: Callable[[str], Any], every: float = 10.0) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints steps to files and pipes: a line per new step, or every few seconds of a long one.

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
