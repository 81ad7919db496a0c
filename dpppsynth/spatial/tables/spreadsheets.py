"""Escaping of CSV cells that spreadsheets would run as formulas.

A text that begins with one of a few signs is run by the program that opens the file. Such a text gets an apostrophe in
front, as does one that begins with an apostrophe, so that every text comes back as it was.
"""

from collections.abc import Iterable
from typing import Any

GUARD = "'"
# Spreadsheets of East Asian locales take full-width signs for the same.
RUN = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", GUARD)


def guarded(cells: Iterable[Any]) -> list[Any]:
    """The cells of a row, texts that would be run with an apostrophe in front; numbers stay as they are.

    Examples
    --------
    >>> guarded(["=1+1", "-3.5", -2, "a"])
    ["'=1+1", '-3.5', -2, 'a']
    """
    return [GUARD + cell if isinstance(cell, str) and _runs(cell) else cell for cell in cells]


def restored(text: Any) -> Any:
    """A text that `guarded` wrote, as it was; anything else as it is."""
    return text[1:] if isinstance(text, str) and text.startswith(GUARD) and text[1:2] in RUN else text


def _runs(text: str) -> bool:
    return text.startswith(RUN) and not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[:1] in "+-"
