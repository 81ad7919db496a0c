"""`Layout`: how the rows of a file are told, beyond its format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import named

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATORS = (",", ";", "\t", "|")
# Stands for a point that is no decimal sign, in no number.
NO_POINT = "\N{MIDDLE DOT}"
NUMERIC = re.compile(r"[\s\d+\-.,eE]*")


@dataclass(frozen=True)
class Layout:
    """Columns and signs of a CSV file, or the layer of a GeoPackage; None or the default where nothing was said.

    Attributes
    ----------
    x, y : str or None
        Coordinate columns of a CSV file: "x" and "y" unless given.
    separator : str
        Sign between cells of a CSV file: a comma, a semicolon, a tab or a bar.
    decimal : {".", ","}
        Decimal sign in a CSV file.
    layer : str or None
        Layer of a GeoPackage that has several.
    """

    x: str | None = None
    y: str | None = None
    separator: str = ","
    decimal: str = "."
    layer: str | None = None

    def __post_init__(self) -> None:
        for name, signs in (("separator", SEPARATORS), ("decimal", (".", ","))):
            if getattr(self, name) not in signs:
                msg = f"{name}: must be one of {', '.join(map(repr, signs))}; got {getattr(self, name)!r}"
                raise InputError(msg)
        if self.decimal == self.separator:
            msg = f"decimal: ',' separates the cells already; name the sign that does with {named('separator')}"
            raise InputError(msg)

    def require_for(self, kind: str, file: str) -> None:
        """Refuse what was said about another kind of file: "csv", "gpkg" or any other; InputError."""
        said = {name: getattr(self, name) for name in ("x", "y", "separator", "decimal")}
        plain = {name: getattr(Layout(), name) for name in said}
        if kind != "csv" and said != plain:
            name = next(name for name in said if said[name] != plain[name])
            msg = f"{name}: tells columns and signs of a CSV file; {file} holds geometries. Leave it out"
            raise InputError(msg)
        if kind != "gpkg" and self.layer is not None:
            msg = f"layer: names one of the layers of a GeoPackage; {file} is none. Leave it out"
            raise InputError(msg)

    def pointed(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Cells of a column of numbers with a decimal point; a point that is none makes a cell no number."""
        if self.decimal == ".":
            return texts
        import pyarrow.compute as pc

        return pc.replace_substring(pc.replace_substring(texts, ".", NO_POINT), self.decimal, ".")

    def pointed_cell(self, cell: Any) -> Any:
        """The same of a cell that may be a number; any other as it is."""
        if self.decimal == "." or not isinstance(cell, str) or not NUMERIC.fullmatch(cell):
            return cell
        return cell.replace(".", NO_POINT).replace(self.decimal, ".")
