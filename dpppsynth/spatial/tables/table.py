"""`Table`: rows of a file or frame before they are validated; `Layout`: signs and columns that readers are told of.

Parsers like to quote the offending cell, so what their libraries say about a bad file is never passed on.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import named
from dpppsynth.spatial.marks import column, is_number

if TYPE_CHECKING:
    import pyarrow as pa

    from dpppsynth.core.crs import CRSLike


SEPARATORS, UTF8 = (",", ";", "\t", "|"), "utf-8"
# Stands for a point that is no decimal sign, in no number.
NO_POINT = "\N{MIDDLE DOT}"
NUMERIC = re.compile(r"[\s\d+\-.,eE]*")
# One word that a person, an address, a coordinate, a date or a number hardly ever is.
IDENTIFIER = re.compile(r"(?!.*\d{3})(?!.*\d[.-]\d)(?!(nan|inf|infinity)$)[^\W\d][\w.-]{0,23}", re.IGNORECASE)
# Sign in front of CSV cells that spreadsheets would run as formulas, and of texts that begin with it themselves.
GUARD = "'"
# Spreadsheets of East Asian locales take full-width signs for the same.
RUN = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", GUARD)


@dataclass(frozen=True)
class Layout:
    """Columns and signs of a CSV file, or the layer of a GeoPackage; None or the default where not given.

    Coordinate columns of a CSV file are "x" and "y" unless given; a comma, a semicolon, a tab or a bar separates its
    cells, and decimals begin with a point or a comma. `encoding` is the name of a text encoding of Python. A `public`
    file may have names of layers in messages that look like free text.
    """

    x: str | None = None
    y: str | None = None
    separator: str = ","
    decimal: str = "."
    encoding: str = UTF8
    layer: str | None = None
    public: bool = False

    def __post_init__(self) -> None:
        for name, signs in (("separator", SEPARATORS), ("decimal", (".", ","))):
            if getattr(self, name) not in signs:
                msg = f"{name}: must be one of {', '.join(map(repr, signs))}; got {getattr(self, name)!r}"
                raise InputError(msg)
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.decimal == self.separator:
            msg = f"decimal: ',' separates the cells already; name the sign that does with {named('separator')}"
            raise InputError(msg)

    def require_for(self, kind: str, file: str) -> None:
        """Refuse layout options of another kind of file: "csv", "gpkg" or any other; InputError."""
        said = {name: getattr(self, name) for name in ("x", "y", "separator", "decimal", "encoding")}
        plain = {name: getattr(Layout(), name) for name in said}
        if kind != "csv" and said != plain:
            name = next(name for name in said if said[name] != plain[name])
            msg = f"{name}: tells columns and signs of a CSV file; {file} holds geometries. Leave it out"
            raise InputError(msg)
        if kind != "gpkg" and self.layer is not None:
            msg = f"layer: names one of the layers of a GeoPackage; {file} is none. Leave it out"
            raise InputError(msg)

    def pointed(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Cells of a column of numbers with decimal points; any other point makes a cell no number."""
        if self.decimal == ".":
            return texts
        import pyarrow.compute as pc

        return pc.replace_substring(pc.replace_substring(texts, ".", NO_POINT), self.decimal, ".")

    def pointed_cell(self, cell: Any) -> Any:
        """One cell as by `pointed`, if it may be a number; any other cell unchanged."""
        if self.decimal == "." or not isinstance(cell, str) or not NUMERIC.fullmatch(cell):
            return cell
        return cell.replace(".", NO_POINT).replace(self.decimal, ".")


def _encoding(name: str) -> str:
    """Python's name of a text encoding; InputError for an unknown one."""
    try:
        "x".encode(name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        msg = f"encoding: must be that of a text, such as {UTF8}, cp1252 or utf-16; got {shown(name)}"
    raise InputError(msg)


class Columns(Mapping[str, NDArray[Any]]):
    """Columns by name, each made when it is first asked for."""

    def __init__(self, names: Iterable[str], make: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._make = dict.fromkeys(names), make
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class AnyColumn(Mapping[str, NDArray[Any]]):
    """Columns of a file without rows, where only rows name them: any name is an empty column, and none is listed.

    Whether a file has rows may be secret, and a refusal of a column would tell it.
    """

    def __getitem__(self, name: str) -> NDArray[Any]:
        return column([])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Geometries and attributes, row by row, in a coordinate reference system; None where the file does not say which.

    Places are geometries (n,), None where a row has none, or coordinates (n, 2) of points, NaN where one is missing.
    `garbled` tells the rows (n,) that break rules of the format itself. `original` gives the cells of a row as they
    stand in the file, in the order of the header; `raw` those of a column, where `columns` holds them in another form,
    and `pointed` such a cell with a decimal point. `axes` are the columns of coordinates, where these are columns.
    """

    places: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]
    crs: CRSLike | None
    header: Sequence[str]
    original: Callable[[int], list[Any]]
    garbled: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    raw: Callable[[str], Sequence[Any]] | None = None
    pointed: Callable[[Any], Any] = lambda cell: cell
    axes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    @property
    def xy(self) -> NDArray[np.float64] | None:
        """(n, 2) coordinates, where the rows are known to be points."""
        return self.places if self.places.dtype.kind == "f" else None

    @property
    def geometry(self) -> NDArray[Any]:
        """(n,) geometries, None where a row has none."""
        return self.places if self.xy is None else shapely.points(self.xy)

    def restored(self) -> Table:
        """The table without the apostrophes by which `write_pattern` disarms spreadsheet formulas."""
        names = {restored(name): name for name in self.columns}
        columns = Columns(names, lambda name: _restored(self.columns[names[name]]))
        return replace(self, columns=columns, header=[*map(restored, self.header)])

    def column(self, name: str, *, argument: str) -> NDArray[Any]:
        """Return one attribute column, or say which ones exist."""
        if not isinstance(name, str) or name not in self.columns:
            msg = f"{argument}: there is no column {name!r}; {existing(self.columns)}"
            raise InputError(msg)
        return self.columns[name]

    def cells(self, name: str) -> Sequence[Any] | NDArray[Any]:
        """Return the cells of a column that exists, as they stand in the file."""
        return self.columns[name] if self.raw is None else self.raw(name)


def _restored(values: NDArray[Any]) -> NDArray[Any]:
    """A column as it was; numbers stay as they are."""
    if values.dtype.kind not in "UO":
        return values
    cells = values.tolist()
    guarded = any(isinstance(cell, str) and cell.startswith(GUARD) for cell in cells)
    return column([*map(restored, cells)]) if guarded else values


def number(cell: Any) -> float | None:
    """Read one cell as a number: NaN when it is empty, None when it is something else."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return math.nan
    if isinstance(cell, str) and "_" in cell:
        return None
    try:
        return float(cell)
    except OverflowError:
        return None
    except (TypeError, ValueError):
        return math.nan if type(cell).__name__ in ("NAType", "NaTType") else None


def hiding(source: Path, what: str, errors: tuple[type[Exception], ...], reader: Callable[[], Any]) -> Any:
    """Read, and raise refusals outside the handler, so that no error chains to one with file contents."""
    try:
        return reader()
    except InputError:
        raise
    except errors:
        pass
    raise unreadable(source, what)


def unreadable(source: Path, what: str) -> InputError:
    """The error for a file of another format than its name says."""
    return InputError(
        f"path: {source.name} cannot be read as {what}; check that the file is whole and its format right"
    )


def existing(names: Iterable[str]) -> str:
    """List column names, unless they look like the first row of a file without a header."""
    words = [str(name) for name in names]
    if not speaking(words):
        return (
            "the columns are not listed, because they look like data; if there is no header line, add one such as x,y"
        )
    return f"the columns are {', '.join(map(repr, words)) or 'none'}"


def speaking(names: Iterable[str]) -> bool:
    """Whether all names are identifiers, safe to show; others may be a first row of data or free text."""
    return all(IDENTIFIER.fullmatch(name) for name in names)


def guarded(cells: Iterable[Any]) -> list[Any]:
    """The cells of a row, with an apostrophe before spreadsheet formulas; numbers unchanged.

    Examples
    --------
    >>> guarded(["=1+1", "-3.5", -2, "a"])
    ["'=1+1", '-3.5', -2, 'a']
    """
    return [GUARD + cell if isinstance(cell, str) and _runs(cell) else cell for cell in cells]


def restored(text: Any) -> Any:
    """Inverse of `guarded` for a text; anything else unchanged."""
    return text[1:] if isinstance(text, str) and text.startswith(GUARD) and text[1:2] in RUN else text


def _runs(text: str) -> bool:
    return text.startswith(RUN) and not (text[0] in "+-" and is_number(text))
