"""`SingleEntryCache`: one-entry cache of a computation."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleEntryCache(Generic[T]):
    """The last result with its key; another key replaces it.

    Threads that ask at once may compute twice, and never see the result of another question. Copies to other processes
    begin without one.

    Examples
    --------
    >>> last = SingleEntryCache()
    >>> last.get((2, 3), lambda: 2 * 3), last.get((2, 3), lambda: "made again"), last.get((2, 4), lambda: 2 * 4)
    (6, 6, 8)
    """

    def __init__(self) -> None:
        self._held: tuple[Any, T] | None = None

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """The result that was made from an equal key, or a new one."""
        held = self._held
        if held is None or held[0] != key:
            # One assignment of both: no thread sees a key beside the result of another.
            held = self._held = key, make()
        return held[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return SingleEntryCache, ()
