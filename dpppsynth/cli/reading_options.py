"""Options that say how a file of points is read: columns, types and times, each column with one use."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import common_options as o
from dpppsynth.contract.mark_settings import DESCRIBED, described_marks
from dpppsynth.contract.settings import declared_as, setting
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import add_options

if TYPE_CHECKING:
    from dpppsynth.spatial.mark_space import Marks

# A tab is hard to type.
TAB = ("tab", "\\t")
MARKS = {each.name: replace(each, panel=o.READING) for each in DESCRIBED}
USES = {
    "x": "name the column of the coordinate",
    "y": "name the column of the other coordinate",
    "count": "name the column of whole numbers of points",
    "user": "name the column that tells whose point a row is",
    "by": "name the column of a public mark",
    "types": "name the column of types",
    "time": "name the column of times",
}


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """Columns and signs of a CSV file, and the layer of a GeoPackage."""

    x: str | None = setting(None, help="Column of a CSV file", otherwise="x", panel=o.READING)
    y: str | None = setting(None, help="Column of a CSV file", otherwise="y", panel=o.READING)
    separator: str | None = setting(
        None,
        help="Sign between cells of a CSV file, or tab",
        otherwise="a comma",
        metavar="SIGN",
        panel=o.READING,
    )
    decimal: str | None = setting(
        None, help="Decimal sign in a CSV file", otherwise="a point", metavar="SIGN", panel=o.READING
    )
    layer: str | None = setting(None, help="Layer of a GeoPackage that has several", metavar="NAME", panel=o.READING)

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of the readers of points."""
        separator = "\t" if self.separator in TAB else self.separator
        return {"x": self.x, "y": self.y, "separator": separator, "decimal": self.decimal, "layer": self.layer}


@dataclass(frozen=True, kw_only=True)
class MarkOptions:
    """Columns of types and times, and what they may hold, for commands that no mechanism is named to."""

    types: str | None = declared_as(MARKS["types"])
    type_bins: str | None = declared_as(MARKS["type_bins"])
    time: str | None = declared_as(MARKS["time"])
    period: str | None = declared_as(MARKS["period"])
    time_range: str | None = declared_as(MARKS["time_range"])
    time_zone: str | None = declared_as(MARKS["time_zone"])

    def described(self) -> "Marks | None":
        """Types and times; None where there are neither."""
        add_options({name: each.option for each in DESCRIBED for name in (each.argument, each.name) if name})
        return described_marks(asdict(self) | {"hats": None})


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
