"""Points of a table with their marks and persons; a table is refused as a whole where a row breaks a rule.

Persons are told by text. In a CSV file numbers are not read as such: "007" and "7" are two persons, and so are numbers
too long to be told apart as floats. In other files a whole number is the text of its digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import LEFT_OUT, mention
from dpppsynth.spatial.domains import Domain, require_domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.persons import labels
from dpppsynth.spatial.tables.formats import read_table, read_tables
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.mark_columns import MarkColumns, read_marks, unfit_marks
from dpppsynth.spatial.tables.rows import FAR, OUTSIDE, Rows, examine_rows, require_snap
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas

    from dpppsynth.core.crs import CRSLike


NO_LAYOUT: Mapping[str, Any] = MappingProxyType({})


class Points(NamedTuple):
    """Points in the CRS of a domain, (m, 2), at least one, and their marks.

    With a tolerance they are still where the table has them, no farther from the domain than that.
    """

    xy: NDArray[np.float64]
    marks: dict[str, NDArray[Any]]


def read_points(path: str | Path, domain: Domain, **options: Any) -> Points:
    """Read a file as a whole; parameters as for `read_point_batches`."""
    return next(read_point_batches(path, domain, whole=True, **options))


def read_point_batches(
    path: str | Path,
    domain: Domain,
    *,
    crs: CRSLike | None = None,
    snap: float | None = None,
    layout: Mapping[str, Any] = NO_LAYOUT,
    whole: bool = False,
    **rules: Any,
) -> Iterator[Points]:
    """Read a file some rows at a time; `layout` are fields of a `Layout`, others as for `dpppsynth.io.read_pattern`.

    Rows that break a rule are refused at the end of the file, when all rules that are broken are known; from the first
    of them on nothing is given any more.
    """
    require_domain(domain)
    require_snap(domain, snap)
    tables = iter([read_table(path, crs=crs, **layout)]) if whole else read_tables(path, crs=crs, **layout)
    return _points(tables, domain, Path(path).name, snap=snap, **rules)


def points_of_frame(gdf: geopandas.GeoDataFrame, domain: Domain, *, snap: float | None = None, **rules: Any) -> Points:
    """Take the points of a GeoDataFrame; parameters as for `PointPattern.from_geodataframe`."""
    require_domain(domain)
    require_snap(domain, snap)
    return next(_points(iter([from_geodataframe(gdf)]), domain, "gdf", snap=snap, **rules))


def _points(tables: Iterator[Table], domain: Domain, name: str, **rules: Any) -> Iterator[Points]:
    broken, order, found = set[str](), tuple[str, ...](), False
    for table in tables:
        points, rows = examined(table, domain, **rules)
        order, found = rows.rules, found or len(rows.xy) > 0
        broken |= set(rows.broken)
        if len(rows.xy) and not broken:
            yield points
    refuse_broken([rule for rule in order if rule in broken], name)
    if not found:
        msg = f"{name}: must hold at least one point; it holds none"
        raise InputError(msg)


def examined(
    table: Table,
    domain: Domain,
    *,
    marks: Iterable[str] = (),
    described: Marks | None = None,
    user: str | None = None,
    **rules: Any,
) -> tuple[Points, Rows]:
    """Points of a table, and its rows with the rules that they break."""
    users = None if user is None else person_column(table, user)
    told = described_columns(table, described)
    rows = examine_rows(table, domain, users=users, unfit=told.broken, **rules)
    kept = chosen_marks(table, rows, marks) | {mark: values[rows.row] for mark, values in told.columns.items()}
    if user is not None and users is not None:
        kept[user] = users[rows.row]
    return Points(rows.xy, kept), rows


def described_columns(table: Table, described: Marks | None) -> MarkColumns:
    """Types and times of the rows, where they are described."""
    if described is None:
        return MarkColumns({}, {})
    instance("described", described, Marks, "such as Marks(times=Times.day('hour'))")
    return read_marks(table, described)


def person_column(table: Table, name: str) -> NDArray[Any]:
    """(rows,) person of each row, as text without blanks around it; "" where that is missing.

    InputError where there is no such column, or a label is neither text nor whole number.
    """
    table.column(name, argument="user")
    return column(["" if label is None else str(label).strip() for label in labels(table.cells(name))])


def chosen_marks(table: Table, rows: Rows, marks: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Columns to keep as marks, one value for each point."""
    try:
        names: list[Any] = [] if isinstance(marks, str) else [*marks]
    except TypeError:
        names = [None]
    if isinstance(marks, str) or not all(isinstance(name, str) for name in names):
        example = [marks] if isinstance(marks, str) else ["age"]
        msg = f"marks: must be a list of column names; write {example}"
        raise InputError(msg)
    return {name: np.asarray(table.column(name, argument="marks"))[rows.row] for name in names}


def refuse_broken(rules: Iterable[str], name: str) -> None:
    """Refuse a table of which some row breaks one of these rules, with an InputError."""
    broken = [*rules]
    if broken:
        msg = (
            f"{name}: some rows break the rules ({', '.join(broken)}). `dpppsynth inspect` "
            "(dpppsynth.io.inspect_points) writes them to a CONFIDENTIAL file; repair them, or choose a larger "
            f"{'network' if FAR in broken else 'window'} from public knowledge ({LEFT_OUT})"
        )
        if unfit_marks(broken):
            msg += (
                ", or complete the list of types, widen the range of times or state a time zone from public knowledge"
            )
        if FAR in broken or OUTSIDE in broken:
            how = "the network with a larger" if FAR in broken else "its border with a"
            msg += f", or move nearby ones onto {how} public tolerance, {mention('snap')}"
        raise InputError(msg)
