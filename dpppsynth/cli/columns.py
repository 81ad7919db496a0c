"""Checks of a file's columns by their names alone, which are public: before a row of it is read."""

from typing import Any

from dpppsynth.cli.method import Method, OptionalMethod
from dpppsynth.contract.settings import CAP


def require_told(
    method: Method | OptionalMethod,
    columns: tuple[str, ...],
    read: dict[str, Any],
    file: str,
    *,
    rows_are_persons: bool,
) -> None:
    """Refuse a file with columns of which it has to be said what they are.

    Parameters
    ----------
    method : Method or OptionalMethod
    columns : tuple of str
        Of the file.
    read : dict
        Arguments of the reader that name columns.
    file : str
    rows_are_persons : bool
        Whether that is said of every row, whatever its columns are called.
    """
    from dpppsynth.spatial.tables.person_columns import require_settled

    others = [name for name in columns if name not in _named(read)]
    if isinstance(method, OptionalMethod):
        user, denied, cap = (method.values.get(name) for name in ("user", "no_user", CAP.name))
        told = user or denied
    else:
        method.settings.require_columns(method.options, set(others), file)
        told = method.settings.user_column(method.options) or method.options["no_user"]
        cap = method.options[CAP.name]
    if not rows_are_persons and not told and (cap or 1) == 1:
        require_settled(others, file)


def _named(read: dict[str, Any]) -> set[str]:
    """Columns that options name."""
    described = read["described"]
    named = {read.get(name) for name in ("x", "y", "count")} | {"x", "y", *read["marks"]}
    named |= set(() if described is None else described.names)
    return {name for name in named if name is not None}
