"""`inspect_points`: the rules that a file of points breaks, its offending rows for the custodian, and remarks on it.

They quote no row and no coordinate, and are for the custodian alone, as all that is said of sensitive rows.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.arguments import whole
from dpppsynth.core.atomic_files import name_leftovers
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.io.causes import UNKNOWN_LEVEL, Read, stand_ins, told
from dpppsynth.spatial.domains import Domain, require_domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marks import words
from dpppsynth.spatial.person_points import number_kept
from dpppsynth.spatial.tables.formats import as_path, is_csv, read_table, there
from dpppsynth.spatial.tables.person_columns import label_remarks
from dpppsynth.spatial.tables.points import described_columns, person_column
from dpppsynth.spatial.tables.rows import FAR, INFINITE, OUTSIDE, Rows, examine_rows, fitting_crs, require_snap
from dpppsynth.spatial.tables.table import Table, guarded

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


REPORT_NAME = "CONFIDENTIAL_offending_rows.csv"
# Texts of a level that is missing, in a CSV file and in others.
BLANK = ("", "None", "nan", "<NA>")
# Prefix of a report's name while it is being written.
SCRATCH = ".CONFIDENTIAL_"


@dataclass(frozen=True)
class Inspection:
    """Findings of `inspect_points`, without a row or a coordinate.

    Attributes
    ----------
    rules : tuple of str
        The rules that the file breaks somewhere: "wrong number of fields", "not a number", "missing coordinate",
        "not a point", "not finite", "outside window" or on a network "too far from the network" (or nearer to an edge
        that was left out of it), "bad count", "missing user", "missing level", "unknown level"; of types and times
        "missing type", "unknown type", "missing time", "not a time", "a date without an hour" for a clock, "an offset,
        and no time zone is stated", "time outside the range"; and of all rows together "no points",
        "a level without points", "another number of points".
    report : Path or None
        The confidential file with the offending rows; None when there is nothing to write.
    remarks : tuple of str
        Causes of broken rules, such as exchanged axes, with their remedies; persons and rows that are listed several
        times, which no rule forbids, with how many labels of persons do; gaps in the domain smaller than a thousandth
        of it.
    n : int or None
        Public number of points, for which a release is planned, as far as rows tell it: with `user` of those that
        count, at most so many of each person. None where a row breaks a rule. As secret as `rows`.
    rows, offending : int
        Numbers of the rows of the file, all of which were read, and of those that break a rule. Where the number of
        points is secret they are as well, and must not stand in a log.
    """

    rules: tuple[str, ...]
    report: Path | None
    remarks: tuple[str, ...] = ()
    rows: int = field(default=0, repr=False)
    offending: int = field(default=0, repr=False)
    n: int | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether `read_pattern` will accept the rows."""
        return not self.rules


def inspect_points(
    path: str | Path,
    domain: Domain,
    *,
    report_to: str | Path,
    x: str | None = None,
    y: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    layer: str | None = None,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    count: str | None = None,
    user: str | None = None,
    snap: float | None = None,
    described: Marks | None = None,
    by: str | None = None,
    levels: Sequence[str] = (),
    n: int | Mapping[str, int] | None = None,
    rows_are_persons: bool = False,
    skip_outside: bool = False,
    max_points_per_person: int = 1,
    secret: bool = False,
) -> Inspection:
    """Check every row of a file, and write those that break a rule to ``CONFIDENTIAL_offending_rows.csv``.

    The report is as sensitive as the file itself: only its owner can read it. Its columns are ``row`` (data rows
    counted from 1), ``rule``, and the columns of the file; geometries are written as WKT, and texts that a spreadsheet
    would take for formulas with an apostrophe in front.

    Parameters
    ----------
    report_to : str or Path
        Existing folder that receives the report; one of an earlier inspection is replaced.
    path, domain, x, y, separator, decimal, encoding, layer, crs, to_crs, count, user, snap, described, skip_outside
        As for `read_pattern`.
    by, levels : str and sequence of str, optional
        Column of a public mark, and all its values, as a release by levels takes them.
    n : int or dict of str to int, optional
        Public number of points, or of each level's, that a release will be planned for.
    max_points_per_person : int
        Where `user` names the column of persons: how many points of each count in n. For n of persons or trajectories,
        1.
    rows_are_persons : bool
        Whether every row is a person of its own: columns that look like labels of persons are not remarked on then.
    secret : bool
        Whether the number of points is secret: remarks hold no numbers of rows or labels then, nor with `skip_outside`.

    Raises
    ------
    InputError
        The file as a whole cannot be used (missing, unreadable, lacking a column, wrong CRS), or the folder does not
        exist.
    """
    folder = as_path(report_to, "report_to")
    if not there(folder, Path.is_dir):
        msg = f"report_to: must be an existing folder; there is none at {str(folder)!r}"
        raise InputError(msg)
    require_domain(domain)
    require_snap(domain, snap)
    name_leftovers(folder, SCRATCH, "it holds sensitive rows.")
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "encoding": encoding, "layer": layer}
    table = read_table(path, crs=crs, **layout)
    users = None if user is None else person_column(table, user)
    unfit = described_columns(table, described).broken
    reading: dict[str, Any] = {"count": count, "to_crs": to_crs, "snap": snap, "skip_outside": skip_outside}
    rows = examine_rows(table, domain, users=users, unfit=unfit, **reading)
    mark = None if by is None else words(table.column(by, argument="by"))
    broken = dict(rows.broken)
    if mark is not None:
        unknown, blank = _elsewhere(mark, rows, levels), np.isin(np.char.strip(mark), BLANK)
        found = {"missing level": unknown & blank, UNKNOWN_LEVEL: unknown & ~blank}
        broken |= {rule: mask for rule, mask in found.items() if mask.any()}
    whole("max_points_per_person", max_points_per_person, 1)
    known = None if broken else _number(rows, users, max_points_per_person)
    rules = (*broken, *_of_all(rows, None if mark is None else mark[rows.row], levels, n, known))
    report = _write_report(folder / REPORT_NAME, table, broken) if broken else None
    severed = domain.severed(NEAR * domain.diameter)
    read = Read(
        table, domain, None if to_crs is None else fitting_crs(table, domain.crs, to_crs), described, by, levels
    )
    used = {count, by, x or "x", y or "y", *(() if described is None else described.names)}
    others = () if rows_are_persons else [name for name in table.columns if name not in used]
    several = users is not None and max_points_per_person > 1
    said = [
        *remarks(read, broken, users, several=several),
        *stand_ins(read, broken),
        *label_remarks(table, user, others, secret=secret or skip_outside),
        *severed,
    ]
    if skip_outside and _some_outside(table, domain, reading):
        said.append(LEFT.format(mention("skip_outside", "True")))
    if is_csv(as_path(path)) and any(map(_spanning, map(table.cells, table.columns))):
        said.append(SPANNED)
    offending = np.logical_or.reduce([np.zeros(len(table), dtype=bool), *broken.values()])
    return Inspection(rules, report, tuple(said), len(table), int(offending.sum()), known)


def _number(rows: Rows, users: NDArray[Any] | None, most: int) -> int:
    """Number of points that count, at most `most` of each person where these are told."""
    return len(rows.xy) if users is None else number_kept(users[rows.row], most)


def _some_outside(table: Table, domain: Domain, reading: Mapping[str, Any]) -> bool:
    """Whether some rows are left out because they have no place in the domain."""
    rows = examine_rows(table, domain, **{**reading, "skip_outside": False})
    return not {OUTSIDE, FAR, INFINITE}.isdisjoint(rows.broken)


def _spanning(cells: Iterable[Any]) -> bool:
    """Whether some cell holds a line end."""
    return any(isinstance(cell, str) and ENDS.search(cell) for cell in cells)


def _elsewhere(mark: NDArray[Any], rows: Rows, levels: Sequence[str]) -> NDArray[np.bool_]:
    """(rows,) rows that stand for points of a level that was not announced."""
    used = np.zeros(len(mark), dtype=bool)
    used[rows.row] = True
    return used & ~np.isin(mark, levels)


def _of_all(
    rows: Rows,
    mark: NDArray[Any] | None,
    levels: Sequence[str],
    n: int | Mapping[str, int] | None,
    known: int | None,
) -> Iterator[str]:
    """Rules that no single row breaks, given the number of points that count where it is `known`."""
    if not len(rows.xy):
        yield "no points"
        return
    if mark is not None and set(levels) - set(mark.tolist()):
        yield "a level without points"
    if isinstance(n, Mapping) and mark is not None:
        if any(int((mark == level).sum()) != number for level, number in n.items()):
            yield "another number of points"
    elif n is not None and (len(rows.xy) if known is None else known) != n:
        yield "another number of points"


def _write_report(path: Path, table: Table, broken: Mapping[str, NDArray[np.bool_]]) -> Path:
    offending = np.flatnonzero(np.logical_or.reduce(list(broken.values())))
    # mkstemp creates the file readable by its owner alone, before anything is written to it.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=SCRATCH, suffix=".csv")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(guarded(["row", "rule", *table.header]))
            for i in offending:
                rules = "; ".join(rule for rule, mask in broken.items() if mask[i])
                writer.writerow(guarded([int(i) + 1, rules, *table.original(int(i))]))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


# Share of the diameter: no privacy radius is as small, so gaps in a domain that are smaller matter to any.
NEAR = 1e-3
PERSONS = (
    "Some persons have several rows. Where each should be listed once, repair the file; otherwise say how many points "
    "of a person may count ({most})."
)
ENDS = re.compile(r"[\n\r]")
SPANNED = (
    "Some cells hold line ends, so that the file has more lines than rows. Where such a cell is not meant, close its "
    "quotation mark, or the rows in it are lost."
)
LEFT = (
    "Some rows have no place in the domain and would be left out, as {} says; without it the causes are told, such as "
    "another CRS."
)
TWICE = (
    "Some rows are alike in every column. A point that is listed twice counts twice; where they are of one person, say "
    "how many points of a person there may be ({most})."
)


def remarks(
    read: Read, broken: Mapping[str, NDArray[np.bool_]], users: NDArray[Any] | None, *, several: bool
) -> Iterator[str]:
    """Remarks on a table, given its `broken` rows (rows,) by rule and, where known, the persons `users` (rows,).

    `several` says that several points of a person count, as was said.
    """
    yield from told(read, broken)
    known: list[str] = [] if users is None else users[users != ""].tolist()
    if len(set(known)) < len(known) and not several:
        yield PERSONS.format(most=mention("max_points_per_person"))
    if _twice(read.table):
        yield TWICE.format(most=mention("max_points_per_person"))


def _twice(table: Table) -> bool:
    """Whether two rows are alike in place and in all columns; rows without a place are not looked at."""
    places = table.xy
    if places is None or len(places) < 2:
        return False
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    _, group, often = np.unique(places[known], axis=0, return_inverse=True, return_counts=True)
    # Few rows share a place: only their columns are compared.
    near = known[often[group.ravel()] > 1]
    rows = [tuple(map(str, table.original(int(row)))) for row in near]
    return len(set(rows)) < len(rows)
