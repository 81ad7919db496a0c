"""The column of person identifiers in a file, read as text.

In a CSV file numbers are not read as such: "007" and "7" are two persons, and so are numbers too long to be told apart
as floats. In other files a whole number is the text of its digits.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dpppsynth.attributes import column
from dpppsynth.io.tables import Table
from dpppsynth.persons import labels


def persons(table: Table, name: str) -> NDArray[Any]:
    """(rows,) whose row it is, as text without blanks around it; "" where that is missing.

    Raises
    ------
    InputError
        There is no such column, or a label is neither text nor whole number.
    """
    table.column(name, argument="user")
    return column(["" if label is None else str(label).strip() for label in labels(table.cells(name))])
