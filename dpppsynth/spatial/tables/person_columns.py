"""Columns that look like labels of persons, by their names alone; and labels that stand several times, or nearly alike.

Names of columns are public. Labels are looked at for the custodian alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either, mention
from dpppsynth.spatial.marks import is_number
from dpppsynth.spatial.persons import UNKNOWN
from dpppsynth.spatial.tables.table import Table, speaking

# Words that the name of a column of persons has, or begins with; and those after which it holds something else.
SURELY = (
    *("patient", "person", "user", "nhs", "client", "customer", "member", "pupil", "student", "resident", "subject"),
    *("individual", "participant", "victim", "offender", "suspect", "household", "ssn", "mrn", "imsi"),
)
PERSONS = (*SURELY, "case")
LABELS = ("id", "ids", "identifier", "uid", "uuid")
OTHERWISE = ("type", "status", "age", "sex", "gender", "category", "class", "date", "time", "year", "count", "kind")
# What an id is of that is no person.
THINGS = ("object", "feature", "row", "record", "osm", "geom", "location", "street", "area", "cell", "edge", "way")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
WHOLE = re.compile(r"0*([0-9]+)(?:[.]0*)?")


def person_like(names: Iterable[str]) -> list[str]:
    """Names of columns that look like labels of persons, first those that are of persons rather than of cases or rows.

    Examples
    --------
    >>> person_like(["x", "id", "PatientID", "nhs no", "caseid", "case_type", "fid", "street_id", "street"])
    ['PatientID', 'nhs no', 'id', 'caseid']
    """
    return sorted(filter(_looks_like, names), key=lambda name: not any(w.startswith(SURELY) for w in _words(name)))


def _words(name: str) -> list[str]:
    return [word.lower() for word in WORD.findall(name)]


def _looks_like(name: str) -> bool:
    words = _words(name)
    if not words or words[-1] in OTHERWISE:
        return False
    if any(word.startswith(PERSONS) for word in words):
        return True
    return words[-1] in LABELS and not set(words) & set(THINGS)


def require_settled(names: Iterable[str], file: str) -> None:
    """Refuse a file with a column that looks like labels of persons, of which nothing is said; InputError.

    Parameters
    ----------
    names : iterable of str
        Of its columns, but for those that are used for something else.
    file : str
    """
    every = [*names]
    found = person_like(every)
    if found:
        # Without a header the names may be a row.
        known = speaking(name.replace(" ", "_") for name in every)
        shown = " and ".join(map(repr, found)) if known else "or several"
        what = "columns that look" if known and len(found) > 1 else "a column that looks"
        msg = (
            f"user: {file} has {what} like labels of persons, {shown}. Whoever has k rows is promised k times epsilon; "
            f"say what they are: {_either(found[0] if known else 'NAME')}"
        )
        raise InputError(msg)


def label_remarks(table: Table, user: str | None, names: Iterable[str], *, secret: bool) -> Iterator[str]:
    """Remarks on labels of persons for the custodian: how many stand several times, and whether some are nearly alike.

    How many is left out where numbers of rows are `secret`.

    Parameters
    ----------
    table : Table
    user : str or None
        The column of persons, where one is named.
    names : iterable of str
        Of columns that are looked at where none is.
    """
    for name in person_like(names) if user is None else [user]:
        often = Counter(filter(None, map(_text, table.cells(name))))
        several = sum(number > 1 for number in often.values())
        if user is None and several:
            many, stand = ("1 label", "stands") if several == 1 else (f"{several:,} labels", "stand")
            if secret:
                many, stand = "Some labels", "stand"
            yield f"{many} of the column {name!r} {stand} twice or more: {_either(name)}."
        if len(set(map(_plain, often))) < len(often):
            yield (
                f"Some labels of the column {name!r} are alike but for case, blanks or the form of a number (7, 7.0, "
                "007). They are different persons here, protected less; write each person's in one way."
            )


def _either(name: str) -> str:
    """The two answers to whose the rows are."""
    few = either(", ", " ").join([mention("user", repr(name)), mention("max_points_per_person", "1")])
    own = mention("rows_are_persons", "True")
    return f"if they are persons, {few} (as many points of each count); if every row is a person of its own, {own}"


def _text(cell: Any) -> str:
    text = "" if cell is None or type(cell).__name__ in ("NAType", "NaTType") else str(cell).strip()
    return "" if text.lower() in UNKNOWN else text


def _plain(label: str) -> str:
    """A label without what is easily written in two ways."""
    text = "".join(label.casefold().split())
    whole = WHOLE.fullmatch(text)
    if whole:
        return whole[1]
    return f"{float(text):.17g}" if is_number(text) else text
