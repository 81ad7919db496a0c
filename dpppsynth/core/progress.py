"""Progress of long work: words on each step, with the share of the work that is done."""

import builtins
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self, TypeVar

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError

Progress = Callable[[str], None]
# A function, False for silence, or None for a line on the screen in interactive use.
ProgressLike = Progress | Literal[False] | None
T = TypeVar("T")


class Step(str):
    """Words on what is going on, and the share of the work that is done, where that is known.

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
    """The items, one by one; before each the share of those done is told."""
    for k, item in enumerate(items):
        say(Step(words, k / len(items)))
        yield item


def inner_progress(say: Progress, words: str, done: int, count: int) -> Progress:
    """A progress of one of several parts, of which some are done: what it is told is told with the share of all.

    Examples
    --------
    >>> inner = inner_progress(lambda step: print(step, step.share), "year 1854", 1, 2)
    year 1854 0.5
    >>> inner(Step("drawing", 0.5))
    year 1854: drawing 0.75
    """

    def inner(step: str) -> None:
        say(Step(f"{words}: {step}", (done + (getattr(step, "share", None) or 0.0)) / count))

    say(Step(words, done / count))
    return inner


def part_progress(say: Progress, words: str, done: int, count: int) -> Progress:
    """A progress of one of several parts, of which some are done: of what it is told the share alone is passed on.

    Examples
    --------
    >>> part = part_progress(lambda step: print(step, step.share), "writing patterns", 1, 2)
    >>> part(Step("writing points", 0.5))
    writing patterns 0.75
    """
    return lambda step: say(Step(words, (done + (getattr(step, "share", None) or 0.0)) / count))


def require_progress(progress: Any) -> None:
    """Refuse anything but a function of one text: found out in the middle of a release, it would cost the budget."""
    if progress is not None and progress is not False and not callable(progress):
        msg = (
            "progress: must be a function of one text, such as print, False for silence, or None for a line on the "
            f"screen in interactive use; got {shown(progress)}."
        )
        raise InputError(msg)


@contextmanager
def announced(progress: ProgressLike) -> Iterator[Progress]:
    """Yield a function to be told of each step: the given one, or a line on the screen in interactive use.

    Parameters
    ----------
    progress : callable, False or None
        False is silence; None is a line on the screen where somebody types commands, and silence elsewhere.

    Raises
    ------
    InputError
    """
    require_progress(progress)
    if callable(progress):
        yield progress
    elif progress is None and interactive():
        from dpppsynth.core.progress_line import line

        with line(after=1.0) as say:
            yield say
    else:
        yield silent


def silent(_: str) -> None:
    """Tell nobody."""


def interactive() -> bool:
    """Whether somebody types commands, in a notebook or at a prompt."""
    return hasattr(builtins, "__IPYTHON__") or (hasattr(sys, "ps1") and sys.stderr.isatty())
