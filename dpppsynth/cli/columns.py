"""Validation of column names: each column of a file of points has one use."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.spatial.mark_space import Marks

USES = {
    "x": "name the column of the coordinate",
    "y": "name the column of the other coordinate",
    "count": "name the column of whole numbers of points",
    "user": "name the column that tells whose point a row is",
    "by": "name the column of a public mark",
    "types": "name the column of types",
    "time": "name the column of times",
}


def columns_of(described: "Marks | None") -> dict[str, str]:
    """Columns of types and times by their options."""
    named = {} if described is None else {"types": described.types, "time": described.times}
    return {option: mark.name for option, mark in named.items() if mark is not None}


def require_own_columns(points: Path, x: str | None, y: str | None, **others: str | None) -> None:
    """Refuse one column for two uses; `others` are --count, --user, --by, --types or --time, where they are given.

    Raises
    ------
    InputError
    """
    from dpppsynth.spatial.tables.formats import is_csv

    places = {"x": x or "x", "y": y or "y"} if is_csv(points) else {}
    read: dict[str, str] = {}
    for name, column in (places | others).items():
        if column is None:
            continue
        if column in read:
            msg = f"{name}: column {column!r} is read as --{read[column]}; {USES[name]}"
            raise InputError(msg)
        read[column] = name
