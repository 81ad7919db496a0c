"""Person identifiers: labels whose equality depends on the two rows compared alone.

Whether two rows belong to the same person depends on the labels of these two rows alone, and on nothing that is done to
a column as a whole. Otherwise one more person could split or merge others, and the sum of persons would change by more
than one. Labels that cannot keep this rule are refused, above all floating-point numbers: as soon as one value has
decimals or is missing, many programs turn a column of whole numbers into them, and large ones become the same.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.arguments import elements
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.marks import is_whole, word

# Labels of unknown persons: as one person, all their rows would spend the budget of one.
UNKNOWN = frozenset({"", "na", "n/a", "<na>", "nan", "nat", "null", "none", "unknown"})

COLUMN = "user: needs a column with one label for each row, in order."
KIND = (
    "user: labels must be texts or whole numbers, none of them missing; write them so. Decimal numbers, which whole "
    "numbers with gaps become in many programs, do not tell large ones apart."
)
MISSING = (
    'user: some labels are missing (None, NaN, empty, or a word such as "NA"), so nobody knows whose rows these are; '
    "leave the rows out."
)


def persons(column: Any) -> NDArray[np.int64]:
    """(k,) numbers of persons, equal where labels are equal: whole numbers and texts, as `labels` takes them.

    InputError where a label is missing or of another kind, or the column has no order; the message never tells which.

    Examples
    --------
    >>> persons(["ann", "7", 7, "ann"])
    array([0, 1, 2, 0])
    """
    found = _found(column)
    if isinstance(found, np.ndarray) and found.dtype.kind in "iu":
        return np.unique(found, return_inverse=True)[1].astype(np.int64)
    numbers: dict[int | str | None, int] = {}
    told = [numbers.setdefault(label, len(numbers)) for label in labels(found)]
    if None in numbers:
        raise InputError(MISSING)
    return np.array(told, dtype=np.int64)


def labels(column: Any) -> list[int | str | None]:
    """Each row's label, equal for two rows of the same person: a whole number or a text, None where it is missing.

    The number 7, the text "7" and the text "007" are three persons. NULs at the end of a text do not count, since
    arrays of text cannot keep them, nor do spaces around it, which are seldom meant; "7.0" is "7", as programs write it
    in a column with gaps. InputError where a label is of
    another kind, or the column has no order.

    Examples
    --------
    >>> labels([7, "7", "NA", None, "ann "])
    [7, '7', None, None, 'ann']
    """
    found = _found(column)
    return [_label(value) for value in (found.tolist() if isinstance(found, np.ndarray) else found)]


def _found(column: Any) -> NDArray[Any] | list[Any]:
    """The column as an array of a kind that keeps labels as they are, or as the list of its elements."""
    if not hasattr(column, "ndim"):
        found = None if isinstance(column, AbstractSet) else elements(column)
        if found is None:
            raise InputError(COLUMN)
        return found
    if np.ma.is_masked(column):
        raise InputError(MISSING)
    array: NDArray[Any] = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if array.ndim != 1:
        raise InputError(COLUMN)
    # What an empty column would hold does not matter: numpy makes an empty list one of decimal numbers.
    if array.size and array.dtype.kind not in "iuUTO":
        raise InputError(KIND)
    return array


def _label(value: Any) -> int | str | None:
    if isinstance(value, str):
        text = word(value.rstrip("\0"))
        return None if text.lower() in UNKNOWN else text
    if is_whole(value):
        return int(value)
    if _is_missing(value):
        return None
    raise InputError(KIND)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    # Those of pandas, by name: it need not be loaded.
    return value is None or type(value).__name__ in ("NAType", "NaTType")
