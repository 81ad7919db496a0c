"""One report per person: one of each person's points, drawn at random, and refusals where persons would report often.

A person's report is about one of their points, whichever is drawn with bits that nobody knows. Its law is a mixture of
the laws of single points, so no report is likelier by more than e^epsilon for any other points of that person, however
many (docs/theory/local.md).
"""

from collections.abc import Iterable
from typing import Any

from dpppsynth.contract.settings import PRIVACY
from dpppsynth.core.arguments import instance, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.wording import mention
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.person_points import few_rows_each
from dpppsynth.spatial.persons import persons

# Name of the column that tells persons where nothing else is said.
USER = "user"
# Declaration of the setting.
REPORTER: dict[str, Any] = {
    "help": "Column that tells persons: each sends one report, about one of their points drawn at random",
    "otherwise": "every row is a person",
    "metavar": "COLUMN",
    "panel": PRIVACY,
}


def one_point_each(pattern: PointPattern, user: str = USER, *, rng: RngLike = None) -> PointPattern:
    """Pattern of one point of each person, drawn at random from theirs, without marks.

    Parameters
    ----------
    pattern : PointPattern
        With a mark that tells whose point each is.
    user : str
        Name of that mark.
    rng : None, int or Generator
        None: secret random bits. With anything else what is drawn can be reproduced, and so can whose point was left
        out: for studies.

    Raises
    ------
    InputError
        There is no such mark, or labels are missing or no texts and whole numbers; none is quoted.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> visits = PointPattern([[1, 1], [2, 2], [3, 3]], Window.rectangle(0, 0, 9, 9), {"user": ["ann", "ann", "bo"]})
    >>> len(one_point_each(visits))
    2
    """
    marks = instance("pattern", pattern, PointPattern).marks or {}
    if not isinstance(user, str) or user not in marks:
        msg = f"user: the pattern has no mark {shown(user)}; name the one that tells whose point each is."
        raise InputError(msg)
    rows = few_rows_each(persons(marks[user]), 1, rng)
    return PointPattern(pattern.positions[rows], pattern.domain)


def require_told(columns: Iterable[str], user: str | None, name: str) -> None:
    """Refuse a file with a column that may identify persons while no option says so, by its column names."""
    if user is not None:
        return
    for column in columns:
        if column.strip().casefold() == USER:
            msg = (
                f"user: {name} has a column {column!r}, which may tell whose row is whose; give "
                f"{mention('user', repr(column))}, and each person sends one report about one of their points drawn at "
                "random. If no two rows are of one person, or it does not tell persons, rename the column."
            )
            raise InputError(msg)


def require_no_marks(pattern: PointPattern) -> None:
    """Refuse a pattern with marks, which would pass for one point of each person; InputError."""
    if pattern.marks:
        msg = (
            "pattern: marks are not used by this mechanism; where one tells persons, name it with user=, and each "
            "sends one report about one of their points, drawn at random. Otherwise pass pattern.unmarked(): then "
            "every point counts as a person of its own, and whoever has k points is promised k times epsilon."
        )
        raise InputError(msg)
