"""`Table`: rows of a file or frame before they are validated, and how errors of its readers are hidden.

Parsers like to quote the offending cell, so what their libraries say about a bad file is never passed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables.names import speaking
from dpppsynth.spatial.tables.spreadsheets import GUARD, restored

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


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


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Geometries and attributes, row by row, in a coordinate reference system that may be unknown.

    Attributes
    ----------
    places : ndarray of shapely geometries, shape (n,), or of float, shape (n, 2)
        Geometries, None where a row has none; or coordinates of points, NaN where one is missing.
    columns : mapping of str to ndarray, shape (n,)
        Attribute columns.
    crs : str, pyproj.CRS or None
        None when the file does not say.
    garbled : dict of str to ndarray of bool, shape (n,)
        Rules of the format itself, and the rows that break them.
    original : function of a row number
        The cells of the row as they stand in the file, in the order of `header`.
    raw : function of a column's name, optional
        Its cells as they stand in the file, where `columns` holds them in another form.
    pointed : function of a cell, optional
        A cell of `raw` with a decimal point, where the file has another sign.
    """

    places: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]
    crs: CRSLike | None
    header: Sequence[str]
    original: Callable[[int], list[Any]]
    garbled: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    raw: Callable[[str], Sequence[Any]] | None = None
    pointed: Callable[[Any], Any] = lambda cell: cell

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

    def head(self) -> Table:
        """The same columns and CRS without a row."""
        none = {name: values[:0] for name, values in self.columns.items()}
        return Table(self.places[:0], none, self.crs, self.header, lambda _: [])

    def restored(self) -> Table:
        """The table without the apostrophes that `write_pattern` puts in front of what spreadsheets would run."""
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
    """Read, and refuse outside of the handler: an error that is only hidden still carries the text of the file."""
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
