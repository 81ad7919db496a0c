"""Causes of rows that break a rule, with their remedies; for the custodian alone.

A cause is tried on the rows that break the rule. What is said quotes no row, coordinate or number of rows.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.crs import NAMELESS, crs_label, is_in_degrees, reproject
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import power_of_ten
from dpppsynth.core.types import Floats
from dpppsynth.core.wording import either, mention
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.marks import days_between, word
from dpppsynth.spatial.tables.date_forms import DAY_FIRST, EITHER, MISTAKEN, MONTH_ALONE, MONTH_FIRST, SERIAL
from dpppsynth.spatial.tables.mark_columns import (
    AMBIGUOUS,
    MISSING_TYPE,
    NO_HOUR,
    NO_TIME,
    NO_ZONE,
    OUT_OF_RANGE,
    SERIALS,
    UNKNOWN_TYPE,
    serial_dates,
)
from dpppsynth.spatial.tables.mark_columns import (
    FAR as CLOCK_FAR,
)
from dpppsynth.spatial.tables.rows import NO_PLACE, PLACES, table_places
from dpppsynth.spatial.tables.table import Table, number

# Rules of times whose causes can be told.
OF_TIMES = (NO_TIME, OUT_OF_RANGE, NO_HOUR, AMBIGUOUS, CLOCK_FAR, *MISTAKEN)
Mask = NDArray[np.bool_]
# Rows of which cells are looked at, for each rule.
FEW = 1000
ALONE = "Mend these rows alone, in the file: an option would change every row."
# Whoever is left out by where they are would be told of by a public n.
OTHERS_LEFT_OUT = (
    "A release of the points in the domain alone, whose number is secret then, leaves others out: skip_outside=True, "
    "under AddRemove()."
)
SHELL_LEFT_OUT = (
    "A release of the points in the domain alone, whose number is secret then, leaves others out: --skip-outside "
    "--relation add-remove."
)
WITHOUT_PLACE = (
    "Leave them out of the file beforehand. A public n is the number of the others: that they have a place is not "
    "hidden, and the promise is about them alone."
)
UNKNOWN_LEVEL = "unknown level"
NOT_A_NUMBER, NOT_A_POINT, OTHER_FIELDS = "not a number", "not a point", "wrong number of fields"
DEGREES = "EPSG:4326"
# Rows at one place, and their share of all, from which it may stand for unknown places.
MANY, SHARE = 10, 0.1
# Units of a map by which a way from one CRS to another and back is sure.
SURE = 1e-3


@dataclass(frozen=True, eq=False)
class Read:
    """A table, how it was read, and what its marks are told to be."""

    table: Table
    domain: Domain
    # The system that coordinates were re-projected from; None where they were taken as they stand.
    source: Any = None
    described: Marks | None = None
    by: str | None = None
    levels: Sequence[str] = ()
    places: tuple[Floats, NDArray[np.intp]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", table_places(self.table))

    def there(self, xy: Floats) -> Floats:
        """Coordinates (n, 2) of the file in the system of the domain."""
        return xy if self.source is None else reproject(xy, self.source, self.domain.crs or "")

    def near(self, xy: Floats) -> Mask:
        """(n,) which coordinates of the domain lie in its box."""
        low, high = np.reshape(self.domain.bounds, (2, 2))
        return np.asarray(((xy >= low) & (xy <= high)).all(axis=1), dtype=bool)

    def cells(self, name: str, rows: Mask) -> list[Any]:
        """Cells of a column in some of the rows, with decimal points."""
        column = self.table.cells(name)
        return [self.table.pointed(column[int(i)]) for i in np.flatnonzero(rows)[:FEW]]


def told(read: Read, broken: Mapping[str, Mask]) -> Iterator[str]:
    """Causes by which rows (rows,) break each rule, where they can be told."""
    for rule, rows in broken.items():
        reasons = [*_reasons(rule, read, rows), *([] if rows.all() else _left_empty(rule))]
        if rows.all():
            last = [] if reasons else [_last(rule)]
            yield " ".join([f"Every row breaks the rule {rule!r}: the mistake is hardly in the rows.", *reasons, *last])
        elif reasons:
            yield " ".join([f"Of the rows that break the rule {rule!r}:", *reasons])


def _reasons(rule: str, read: Read, rows: Mask) -> Iterator[str]:
    if rule in PLACES:
        yield from _elsewhere(read, rows)
    elif rule == NOT_A_NUMBER:
        yield from _no_numbers(read, rows)
        yield from _last_rows(rows & ~_repeated_headers(read, rows))
    elif rule == NOT_A_POINT:
        yield from _shapes(read, rows)
    elif rule == OTHER_FIELDS:
        yield from _last_rows(rows)
    elif rule == NO_ZONE:
        yield f"Say in which time zone they are wanted ({mention('zone', repr('Europe/London'))})."
    elif rule in OF_TIMES and read.described and read.described.times:
        yield from _times(read.described.times, rule, read.cells(read.described.times.name, rows))
    elif rule == UNKNOWN_TYPE and read.described and read.described.types:
        types = read.described.types
        yield from _alike(read.cells(types.name, rows), types.values, mention("types"))
    elif rule == UNKNOWN_LEVEL and read.by is not None:
        yield from _alike(read.cells(read.by, rows), read.levels, mention("levels"))


def _left_empty(rule: str) -> Iterator[str]:
    """A remedy for rows of which something is not known."""
    if rule == NO_PLACE:
        yield WITHOUT_PLACE
    elif rule == MISSING_TYPE:
        yield f"Write a type such as 'unknown' in them, and list it ({mention('types')})."


def _shapes(read: Read, rows: Mask) -> Iterator[str]:
    kinds = sorted({str(each.geom_type) for each in read.table.geometry[rows]})
    listed = ", ".join(kinds)
    remedy = "points alone are read; write one point a row"
    if kinds == ["MultiPoint"]:
        remedy = "with a column of counts every row has one place; write one point a row"
    elif {"Polygon", "MultiPolygon"}.issuperset(kinds):
        remedy = "points alone are read; take a point of each, such as its centroid, by a public rule"
    yield f"Their geometries are of kind {listed}: {remedy}."


def _last_rows(rows: Mask) -> Iterator[str]:
    """A remedy for rows that stand behind all others."""
    whole = np.flatnonzero(~rows)
    if rows.any() and len(whole) and not rows[: whole[-1]].any():
        yield "They are the last rows: take a sum or a remark below the table out of the file."


def _last(rule: str) -> str:
    """A question where no cause was found."""
    if rule in PLACES:
        return "Is it the CRS, and the place, of the domain?"
    return "Is it the right column, and in the form that the rule asks for?"


def _how_many(fitting: Mask) -> str:
    """The number of rows in words that do not tell it; "" of none."""
    return "all" if fitting.all() else "most" if fitting.mean() > 0.5 else "some" if fitting.any() else ""


def _exchange(read: Read) -> str:
    if read.table.axes:
        return f"exchange the columns ({mention('x')}, {mention('y')})"
    return "exchange the axes of the geometries, as QGIS does by 'Swap X and Y coordinates'"


def _any(read: Read, xy: Floats, changed: Floats) -> Mask:  # noqa: ARG001
    return np.asarray((changed != xy).any(axis=1), dtype=bool)


def _rescaled(read: Read, xy: Floats, changed: Floats) -> Mask:
    """(n,) which coordinates (n, 2) are of another size than those of the domain: near 0, other units lie in it too."""
    if read.source is not None:
        return _any(read, xy, changed)
    size, before = np.abs(read.domain.bounds).max(), np.abs(xy).max(axis=1)
    return np.asarray((before >= FACTOR * size) | (before * FACTOR <= size), dtype=bool)


def _mirrored(read: Read, xy: Floats, changed: Floats) -> Mask:
    """(n,) which coordinates (n, 2) lie farther from their mirror images than a domain beside an axis is wide."""
    if read.source is not None:
        return _any(read, xy, changed)
    return np.asarray(np.abs(changed - xy).max(axis=1) > read.domain.diameter, dtype=bool)


UNIT = "write them in the unit of the CRS"
# What numbers of another unit are larger or smaller by at least.
FACTOR = 10.0
# Changes of coordinates (n, 2), after which they may lie in the domain; where that tells something; and remedies.
CHANGES: tuple[
    tuple[Callable[[Floats], Floats], Callable[[Read, Floats, Floats], Mask], str, Callable[[Read], str]], ...
] = (
    (lambda xy: xy[:, ::-1], _any, "With x and y exchanged", _exchange),
    (lambda xy: xy * 1000, _rescaled, "In metres instead of kilometres", lambda _: UNIT),
    (lambda xy: xy / 1000, _rescaled, "In kilometres instead of metres", lambda _: UNIT),
    (lambda xy: xy * (-1, 1), _mirrored, "With another sign of x", lambda _: "west of Greenwich degrees are negative"),
    (
        lambda xy: xy * (1, -1),
        _mirrored,
        "With another sign of y",
        lambda _: "south of the equator degrees are negative",
    ),
    (
        lambda xy: xy - np.column_stack([np.floor(xy[:, 0] / 1e6) * 1e6, np.zeros(len(xy))]),
        _any,
        "Without the number of the zone in front of x",
        lambda _: "take the first digits of x away, or name the CRS that has them",
    ),
)


def _elsewhere(read: Read, rows: Mask) -> Iterator[str]:
    """Other readings of coordinates that are not in the domain."""
    xy, row = read.places
    xy = xy[rows[row] & np.isfinite(xy).all(axis=1)]
    left = np.ones(len(xy), dtype=bool)

    def claimed(fitting: Mask) -> str:
        """Number of rows that fit and did not fit an earlier cause; they are left to no later one."""
        fitting, how_many = fitting & left, _how_many(fitting & left) if len(xy) else ""
        left[fitting] = False
        return how_many

    if how_many := claimed(placeholders(xy)):
        yield (
            f"{how_many.capitalize()} have 0 or a number such as -1 or 9999 in the place of coordinates: find their "
            "places, or leave them out."
        )
    if isinstance(read.domain, Window):
        beside = border_roundings(read, read.domain, xy)
        if how_many := claimed(np.isfinite(beside)):
            width = f"{power_of_ten(_sufficient(read, read.domain, xy, beside) * 10):g}"
            yield (
                f"{how_many.capitalize()} lie outside by less than a rounding of their own digits: move them onto the "
                f"border ({mention('snap', width)}), or take a window that is wider by as much. Either is a public "
                "choice: take this one if it is known without the points how such coordinates are rounded."
            )
    told = False
    for fitting, words in _of_crs(read, xy):
        if how_many := claimed(fitting):
            told = True
            yield f"{how_many.capitalize()} {words}."
    for change, clear, words, remedy in CHANGES:
        changed = change(xy)
        # A point beside the domain, in its box, is no better off where a change leaves it.
        if how_many := claimed(read.near(read.there(changed)) & clear(read, xy, changed)):
            told = True
            yield f"{words} {how_many} would lie there: {remedy(read)}."
    if not rows.all():
        yield from _of_some(told=told, unexplained=bool(left.any()))


def _of_some(*, told: bool, unexplained: bool) -> Iterator[str]:
    """Remedies where other rows are in the domain, for those that have a cause and for those that have none."""
    if told:
        yield ALONE
    if unexplained:
        yield either(OTHERS_LEFT_OUT, SHELL_LEFT_OUT)


def _of_crs(read: Read, xy: Floats) -> Iterator[tuple[Mask, str]]:
    """Coordinates (n, 2) in another CRS than is said, and words on it."""
    if read.source is None:
        # No argument contradicts a file that names its CRS.
        stated = read.table.crs is not None and not read.table.axes
        theirs = f"name their CRS ({mention('crs', repr(DEGREES))})" if not stated else _assigned(DEGREES)
        words = (
            f"look like degrees: {theirs} and have them re-projected to that of the domain "
            f"({_said('to_crs', read.domain.crs)})"
        )
        yield _degrees(read, xy), words
        return
    # A CSV file names no CRS, so that the caller did; other files do.
    assign = _assigned(_label(read.domain.crs))
    words = f"name it as theirs ({_said('crs', read.domain.crs)})" if read.table.axes else assign
    yield read.near(xy), f"are in the CRS of the domain already: {words}"
    if is_in_degrees(read.source):
        yield (
            np.asarray((np.abs(xy) > 360).any(axis=1), dtype=bool),
            f"are no degrees: name the CRS they are in ({mention('crs')})",
        )


def _assigned(code: str) -> str:
    return f"assign {code or 'it'} to the file (ogr2ogr -a_srs {code or 'EPSG:...'} new.gpkg FILE)"


def _label(crs: Any) -> str:
    label = NAMELESS if crs is None else crs_label(crs)
    return "" if label == NAMELESS else label


def _said(argument: str, crs: Any) -> str:
    return mention(argument, repr(_label(crs)) if _label(crs) else "")


def stand_ins(read: Read, broken: Mapping[str, Mask]) -> Iterator[str]:
    """Remarks on places in the domain that may stand for unknown ones: by their numbers, or by how many rows have one.

    Rows that break a rule for places are told of there.
    """
    xy, row = read.places
    known = np.isfinite(xy).all(axis=1)
    for rule in PLACES:
        known &= ~broken[rule][row] if rule in broken else known
    xy = xy[known]
    # Those that are left out as they lie elsewhere break no rule either.
    xy = xy[read.near(read.there(xy))]
    # One point may happen to be there.
    if (placeholders(xy) & (xy[:, 0] == xy[:, 1]) & ~np.isin(xy[:, 0], (1,))).sum() > 1:
        yield (
            "Several rows lie at (0, 0), or at a number such as -1 or 9999 in both coordinates, in the domain: "
            "if it stands for a place that is not known, leave them out, or they make a cluster there."
        )
    elif len(xy) and np.unique(xy, axis=0, return_counts=True)[1].max() >= max(MANY, len(xy) * SHARE):
        yield (
            "At least a tenth of the rows lie at one place: if it stands for places that are not known, as the middle "
            "of a town does for addresses, leave them out, or they make a cluster there."
        )


def placeholders(xy: Floats) -> Mask:
    """(n,) which coordinates (n, 2) are signs for missing ones: 0 in one of them, or twice a number such as 9999."""
    alike = xy[:, 0] == xy[:, 1]
    nines = np.array([re.fullmatch(r"9{2,}(\.[09]*)?", repr(abs(float(x)))) is not None for x in xy[:, 0]], dtype=bool)
    return np.asarray((xy == 0).any(axis=1) | (alike & (np.isin(xy[:, 0], (-1, 1)) | nines)), dtype=bool)


def border_roundings(read: Read, window: Window, xy: Floats) -> Floats:
    """(n,) what the last digit of coordinates (n, 2) counts in the domain, NaN where they are farther outside."""
    size = float(np.abs(window.bounds).max())
    decimals = [max(_decimals(x), _decimals(y)) for x, y in xy.tolist()]
    unit = 10.0 ** -np.array(decimals, dtype=np.float64)
    here = read.there(xy)
    with np.errstate(invalid="ignore"):
        steps = [
            np.hypot(*(read.there(xy + unit[:, None] * axis) - here).T) for axis in (np.array([1, 0]), np.array([0, 1]))
        ]
        least = 1e-12 * size if read.source is None else SURE
        widths = np.maximum(np.max(steps, axis=0), least) if len(xy) else np.empty(0)
        found = np.full(len(xy), np.nan)
        # Distances of numbers far beyond any domain would overflow.
        known = (np.abs(here) <= 1e3 * size).all(axis=1) & np.isfinite(widths)
        found[known] = window.outside(here[known])
    return np.where(found <= 1.5 * widths, widths, np.nan)


def _sufficient(read: Read, window: Window, xy: Floats, widths: Floats) -> float:
    """The finest of the roundings (n,) of coordinates (n, 2), NaN where one is farther outside, that covers all."""
    found = np.isfinite(widths)
    farthest = float(window.outside(read.there(xy[found])).max())
    return float(min(width for width in widths[found] if farthest <= 1.5 * width))


def _decimals(value: float) -> int:
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    return max(0, len(mantissa.partition(".")[2].rstrip("0")) - int(exponent or 0))


def _degrees(read: Read, xy: Floats) -> Mask:
    """Coordinates that would lie in the domain as degrees, in either order; all small ones where it has no CRS."""
    small = np.asarray((np.abs(xy) <= (180, 180)).all(axis=1), dtype=bool)
    if np.abs(read.domain.bounds).max() <= 360 or not small.any():
        return np.zeros(len(xy), dtype=bool)
    if read.domain.crs is None:
        return small
    try:
        ways = [read.near(reproject(way, DEGREES, read.domain.crs)) for way in (xy, xy[:, ::-1])]
    except InputError:
        return small
    return np.asarray(small & ((ways[0] | ways[1]) | small.all()), dtype=bool)


FORMS_OF_NUMBERS = (
    (re.compile(r"[-+]?\d+,\d+"), "decimal"),
    (re.compile(r"[-+]?\d{1,3}([ ,.'\u2019\u00a0\u202f]\d{3})+([.,]\d+)?"), "signs between thousands: take them out"),
    (re.compile(r".*\d\s*[\u00b0\u00ba].*"), "degrees, minutes and seconds: write them as decimal degrees"),
    (
        re.compile(r"(?i)#?n/?a|null|none|missing|unknown|-+|\?+|\.+|#[a-z/0]+[!?]?"),
        "words or signs for missing ones: leave the cells empty, and find the places or leave the rows out",
    ),
    (re.compile(r"['`\u2018\u2019].*"), "apostrophes in front: take them out"),
    (re.compile(r"[-+]?[\d.]+\s*\D{1,6}"), "units behind them: take these out"),
)


def _repeated_headers(read: Read, rows: Mask) -> Mask:
    """(rows,) which of the rows have the names of the columns of coordinates for these."""
    found, at = np.zeros(len(rows), dtype=bool), np.flatnonzero(rows)[:FEW]
    if axes := read.table.axes:
        cells = zip(*(read.cells(name, rows) for name in axes), strict=True)
        found[at] = [all(cell == name for cell, name in zip(row, axes, strict=True)) for row in cells]
    return found


def _no_numbers(read: Read, rows: Mask) -> Iterator[str]:
    """Contents of cells of coordinates that are no numbers."""
    axes = read.table.axes
    if not axes:
        return
    texts = [
        (name, cell.strip())
        for name in axes
        for cell in read.cells(name, rows)
        if isinstance(cell, str) and number(cell) is None
    ]
    if any(cell == name for name, cell in texts):
        yield "Some repeat the header, as joined files do: leave these lines out."
    found: dict[str, None] = {}
    for name, cell in texts:
        if cell != name:
            found.setdefault(next((words for form, words in FORMS_OF_NUMBERS if form.fullmatch(cell)), ""), None)
    for words in filter(None, found):
        if words == "decimal":
            yield f"Coordinates have decimal commas: say so ({mention('decimal', repr(','))})."
        else:
            yield f"Coordinates have {words}."


# Day from which workbooks count that were begun on an old Mac.
SERIALS_OF_1904 = "1904-01-01"
MONTH = "[A-Za-z\u00e4\u00fb\u00e9]{3,10}[.]?"
ISO = "write dates as 2024-05-01, and times as 2024-05-01T17:30"
FORMS_OF_TIMES = (
    (re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}\b.*"), "day, month and year in another order"),
    (re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2}\b.*"), "dates whose years have two digits"),
    (re.compile(r"\d{4}[/.]\d{1,2}[/.]\d{1,2}\b.*"), "dates with other signs between their parts"),
    (re.compile(r"\d{4}-\d{1,2}"), "months without a day"),
    (re.compile(r"\d{4}-\d{1,2}-\d{1,2}\b.*"), "dates in nearly the right form"),
    (re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(\.0)?"), "dates without signs between their parts"),
    (re.compile(r"(?i)\d{1,2}(:\d\d){0,2}\s*[ap]\.?m\.?"), "hours of a clock of twelve"),
    (re.compile(rf"(\w+[.]?,? )?{MONTH} ?\d.*|\d.{{0,3}}{MONTH}.*\d.*"), "names of months"),
    (re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}"), "seconds or milliseconds since 1970"),
)


# Forms that the dates of a file may be said to have, where rows break a rule.
FORMS = {
    DAY_FIRST: ("dmy",),
    MONTH_FIRST: ("mdy",),
    EITHER: ("dmy", "mdy"),
    MONTH_ALONE: ("month",),
    SERIAL: ("excel",),
}


def _times(times: Times, rule: str, cells: Iterable[Any]) -> Iterator[str]:
    """Form of cells that are no times, or none of the range."""
    found: dict[str, None] = {}
    for cell in cells:
        text = word(cell)
        if (times.origin or times.periodic) and (days := _serial_from(times, text)):
            found[days] = None
        elif rule != NO_HOUR or not times.periodic:
            found.setdefault(next((words for form, words in FORMS_OF_TIMES if form.fullmatch(text)), ""), None)
    forms = ["excel"] if SERIALS in found else [*FORMS.get(rule, ())]
    # Months stand for their middles in a range of whole ones alone.
    fit = forms and (rule != MONTH_ALONE or times.origin)
    way = f"say so ({' or '.join(mention('form', repr(form)) for form in forms)}), or " if fit else ""
    for words in filter(None, found):
        if words == SERIALS:
            yield (
                f"Some are numbers such as Excel has for dates (days since the end of 1899): {way}give these cells the "
                "format yyyy-mm-dd in Excel, and export again. In a workbook that counts from 1904, as old ones of "
                "Macs, they are 1462 days later: only the format is right then."
            )
        elif words == SERIALS_OF_1904:
            yield (
                "Some are numbers such as Excel has for dates in workbooks that count from 1904, as old ones of Macs: "
                "give these cells the format yyyy-mm-dd in Excel, and export again, or add 1462 to them."
            )
        else:
            yield f"Some are {words}: {way}{ISO}."
    if not [*filter(None, found)] and rule in (NO_TIME, NO_HOUR):
        clock = "; the hour of a day may be 17:30 alone" if times.periodic else ""
        yield f"A time is a number, or a text of the form of ISO 8601: {ISO}{clock}."


def _serial_from(times: Times, text: str) -> str | None:
    """Day from which Excel could have counted to this number for a date: of the range, where that has dates."""
    value = number(text)
    if value is None or not serial_dates(np.array([value])).any():
        return None
    days = (SERIALS, SERIALS_OF_1904)
    if not times.origin:
        return SERIALS
    return next((day for day in days if times.start <= value + days_between(times.origin, day) <= times.end), None)


def plain(text: str) -> str:
    """A text without accents, case, blanks and signs."""
    letters = unicodedata.normalize("NFKD", text.casefold().replace("\u00df", "ss"))
    return "".join(sign for sign in letters if sign.isalnum())


def _alike(cells: Iterable[Any], values: Sequence[str], option: str) -> Iterator[str]:
    """Reason that texts are not in the list, although something like them is."""
    cells = [*cells]
    known, texts = {plain(value) for value in values}, {word(cell) for cell in cells}
    if any(isinstance(cell, (bool, np.bool_)) for cell in cells):
        yield f"Some are truth values, which are the texts True and False here: name them so ({option})."
        return
    whole = {value.strip() for value in values}
    if any("," in text and {*(part.strip() for part in text.split(","))} <= whole for text in texts):
        yield f"Some hold commas, and stand in the list as several: put quotation marks around them ({option})."
    if any(plain(text) in known for text in texts):
        yield "Some are in the list but for case, blanks, accents or signs: write them alike."
    elif any(_other_encoding(text) in whole for text in texts):
        yield f"Some letters were written in another encoding: name it ({mention('encoding')})."
    elif any(difflib.get_close_matches(plain(text), known, 1, 0.85) for text in texts):
        yield "Some are in the list but for a letter or two: write them alike."


def _other_encoding(text: str) -> str:
    try:
        return text.encode("cp1252").decode()
    except ValueError:
        return ""
