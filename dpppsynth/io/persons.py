"""Whose point a row is: the column that tells the persons, as text.

Numbers are not read as such: "007" and "7" are two persons, and so are numbers too long to be told apart as floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.io.tables import WIDE, Table

# Taken for one person, all rows that only say "unknown" would spend the budget of one.
UNKNOWN = frozenset({"", "na", "n/a", "<na>", "nan", "nat", "null", "none"})


def persons(table: Table, column: str) -> NDArray[Any]:
    """(rows,) whose row it is, as text without blanks around it; "" where that is missing.

    Raises
    ------
    InputError
        There is no such column.
    """
    table.column(column, argument="user")
    return _texts([_text(cell) for cell in table.cells(column)])


def _text(cell: Any) -> str:
    text = "" if cell is None else str(cell).strip()
    return "" if text.lower() in UNKNOWN else text


def _texts(words: Sequence[str]) -> NDArray[Any]:
    """Text that is wide in one row stays a list of objects, as in other columns."""
    if max(map(len, words), default=0) <= WIDE:
        return np.array(words, dtype=np.str_)
    column = np.empty(len(words), dtype=object)
    column[:] = words
    return column
