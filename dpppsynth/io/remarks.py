"""Remarks of an inspection on a file as a whole: mistakes that all rows share, and rows or persons listed twice.

They quote no row, coordinate or number of rows, and are for the custodian alone, as all that is said of sensitive rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.types import Floats
from dpppsynth.core.wording import mention
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.tables.rows import FAR
from dpppsynth.spatial.tables.table import Table

ELSEWHERE = ("outside window", FAR)
# Rows that are looked at for a decimal comma.
FEW = 100
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
PERSONS = (
    "Some persons have several rows. Where each should be listed once, repair the file; otherwise say how many points "
    "of a person may count ({most})."
)
TWICE = "Some rows are alike in every column. A point that is listed twice counts twice."


def remarks(
    table: Table, domain: Domain, broken: Mapping[str, NDArray[np.bool_]], users: NDArray[Any] | None
) -> Iterator[str]:
    """Remarks on a table, whose `broken` rows (rows,) are known by rule; `users` (rows,) are persons, where told."""
    for rule, rows in broken.items():
        if rows.all():
            reason = _reason(rule, table, domain)
            yield f"Every row breaks the rule {rule!r}: the mistake is hardly in the rows. {reason}"
    if users is not None and len(np.unique(users[users != ""])) < np.count_nonzero(users != ""):
        yield PERSONS.format(most=mention("max_points_per_person"))
    if _twice(table):
        yield TWICE


def _reason(rule: str, table: Table, domain: Domain) -> str:
    """A mistake that would make all rows break the rule, and its remedy."""
    if rule in ELSEWHERE and table.xy is not None:
        return _where(table.xy, domain)
    if rule == "not a number" and _commas(table):
        return f"Coordinates have decimal commas: say so ({mention('decimal', repr(','))})."
    return "Is it the right column, and in the form that the rule asks for?"


def _where(xy: Floats, domain: Domain) -> str:
    """Another reading of coordinates (n, 2) none of which lies in the domain."""
    known = xy[np.isfinite(xy).all(axis=1)]
    low, high = np.reshape(domain.bounds, (2, 2))

    def inside(places: Floats) -> bool:
        return bool(((places >= low) & (places <= high)).all(axis=1).mean() > 0.5)

    if inside(known[:, ::-1]):
        return f"With x and y exchanged most would lie there: exchange the columns ({mention('x')}, {mention('y')})."
    if (np.abs(known) <= (180, 180)).all() and np.abs([low, high]).max() > 360:
        return (
            f"Coordinates look like degrees: name their CRS ({mention('crs', repr('EPSG:4326'))}) and have them "
            f"re-projected to that of the domain ({mention('to_crs')})."
        )
    if inside(1000 * known) or inside(known / 1000):
        return "In metres instead of kilometres, or the other way round, most would lie there."
    return "Is it the CRS, and the place, of the domain?"


def _commas(table: Table) -> bool:
    """Whether numbers with a decimal comma are among the cells of the first rows."""
    cells: Iterable[Any] = (cell for row in range(min(FEW, len(table))) for cell in table.original(row))
    return any(isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell) for cell in cells)


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
