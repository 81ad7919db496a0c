"""Validation of column names: each column of a file of points has one use."""

from pathlib import Path

from dpppsynth.core.errors import InputError

USES = {
    "x": "name the column of the coordinate",
    "y": "name the column of the other coordinate",
    "count": "name the column of whole numbers of points",
    "user": "name the column that tells whose point a row is",
    "by": "name the column of a public mark",
}


def require_own_columns(points: Path, x: str | None, y: str | None, **others: str | None) -> None:
    """Refuse one column for two uses; `others` are --count, --user or --by, where they are given.

    Raises
    ------
    InputError
    """
    places = {"x": x or "x", "y": y or "y"} if points.suffix.lower() == ".csv" else {}
    read: dict[str, str] = {}
    for name, column in (places | others).items():
        if column is None:
            continue
        if column in read:
            msg = f"{name}: column {column!r} is read as --{read[column]}; {USES[name]}"
            raise InputError(msg)
        read[column] = name
