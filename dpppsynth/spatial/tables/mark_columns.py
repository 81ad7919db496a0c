"""Columns of a table as types and times: texts, numbers, dates and instants, with or without an offset.

A bad value breaks a rule of its row, as a bad coordinate does; no message holds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.types import Floats
from dpppsynth.spatial.mark_space import HOURS_OF_DAY, Marks, Times, Types
from dpppsynth.spatial.marks import CLOCK_DATES, days_between, word, zone_of
from dpppsynth.spatial.tables.date_forms import (
    MISTAKEN,
    SERIAL,
    clock_hours,
    in_iso,
    looks_dated,
    maybe_serial,
    mistaken,
    month_middle,
    of_serial,
)
from dpppsynth.spatial.tables.table import Table, number

# A cell of a number, with a decimal point.
Pointed = Callable[[Any], Any]
INSTANT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?P<clock>[T ]\d\d:\d\d(:\d\d([.]\d+)?)?(?P<offset> ?Z| ?[+-]\d\d(:?\d\d)?)?)?"
)
MISSING_TYPE, UNKNOWN_TYPE = "missing type", "unknown type"
MISSING_TIME, NO_TIME = "missing time", "not a time"
NO_HOUR = "a date without an hour"
NO_ZONE = "an offset, and no time zone is stated"
FAR = f"a date outside {CLOCK_DATES[0][:4]} to {int(CLOCK_DATES[1][:4]) - 1}, where no clock is followed"
OUT_OF_RANGE = "time outside the range"
# Days since the end of 1899, by which spreadsheets keep dates; those of 1954 to 2119.
SERIALS, FEWEST_DAYS, MOST_DAYS = "1899-12-30", 20_000, 80_000
AMBIGUOUS = "a number that may be the serial date of a spreadsheet"
SECONDS_OF_HOUR, SECONDS_OF_DAY = 3600.0, 86_400.0


RULES = (MISSING_TYPE, UNKNOWN_TYPE, MISSING_TIME, NO_TIME, NO_HOUR, NO_ZONE, FAR, OUT_OF_RANGE, AMBIGUOUS, *MISTAKEN)


class MarkColumns(NamedTuple):
    """Types as texts and times as numbers (rows,) by column, and for every rule the rows (rows,) that break it."""

    columns: dict[str, NDArray[Any]]
    broken: dict[str, NDArray[np.bool_]]


def read_marks(table: Table, described: Marks) -> MarkColumns:
    """Types and times of the rows of a table; InputError where a column is missing."""
    columns: dict[str, NDArray[Any]] = {}
    broken: dict[str, NDArray[np.bool_]] = {}
    for mark, read in ((described.types, _types), (described.times, _times)):
        if mark is not None:
            table.column(mark.name, argument="time" if isinstance(mark, Times) else "types")
            reader: Callable[[Any, Sequence[Any], Pointed], tuple[NDArray[Any], dict[str, NDArray[np.bool_]]]] = read
            columns[mark.name], rules = reader(mark, list(table.cells(mark.name)), table.pointed)
            broken |= rules
    return MarkColumns(columns, broken)


def unfit_marks(broken: Iterable[str]) -> bool:
    """Whether some of these broken rules concern types or times."""
    return not set(broken).isdisjoint(RULES)


def require_columns(table: Table, described: Marks) -> None:
    """Refuse a table without the columns of types and times, with an InputError."""
    for argument, mark in (("types", described.types), ("time", described.times)):
        if mark is not None:
            table.column(mark.name, argument=argument)


def _types(types: Types, cells: Sequence[Any], pointed: Pointed) -> tuple[NDArray[Any], dict[str, NDArray[np.bool_]]]:
    texts = [_text(cell) for cell in cells]
    found = types.places(texts)
    if types.edges:
        values = [number(pointed(cell)) for cell in cells]
        numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        found = np.where(found < 0, types.places(numbers), found)
    missing = np.array([text == "" for text in texts], dtype=bool)
    labels = np.array(types.values)[np.maximum(found, 0)]
    return labels, {MISSING_TYPE: missing, UNKNOWN_TYPE: (found < 0) & ~missing}


def _text(cell: Any) -> str:
    """The one text of a cell, "" where it is missing."""
    return "" if _missing(cell) else word(cell)


def _missing(cell: Any) -> bool:
    value = cell if isinstance(cell, str) else number(cell) if not isinstance(cell, date | np.datetime64) else cell
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    # A pandas NaT calls itself a datetime.
    return type(cell).__name__ in ("NaTType", "NAType") or (isinstance(value, float) and math.isnan(value))


def _times(times: Times, cells: Sequence[Any], pointed: Pointed) -> tuple[NDArray[Any], dict[str, NDArray[np.bool_]]]:
    """Numbers of rows, and the rules that they break: no more than one for a row."""
    rule = np.full(len(cells), "", dtype=object)
    found, dates, texts = np.full(len(cells), np.nan), [], []
    for i, cell in enumerate(cells):
        value: float | str = _time(times, cell if looks_dated(cell) else pointed(cell))
        if isinstance(value, float):
            found[i] = value
        elif INSTANT.fullmatch(value):
            dates.append(i)
            texts.append(value)
        else:
            rule[i] = value
    if dates:
        found[dates], rule[dates] = _instants(times, texts)
    outside = (rule == "") & ~((found >= times.start) & (found <= times.end))
    rule[outside] = OUT_OF_RANGE
    if times.origin and times.form != "excel":
        rule[outside & maybe_serial(found, times.origin, times.end)] = SERIAL
        numbers = np.isin(np.arange(len(cells)), dates, invert=True) & (rule == "")
        rule[numbers & _may_be_serial(times, found)] = AMBIGUOUS
    known = np.isin(rule, ("", AMBIGUOUS))
    return np.where(known, found, times.start), {name: rule == name for name in RULES[2:]}


def serial_dates(numbers: Floats) -> NDArray[np.bool_]:
    """(n,) which numbers are days since the end of 1899, should a spreadsheet have written them."""
    return np.asarray((numbers >= FEWEST_DAYS) & (numbers <= MOST_DAYS), dtype=bool)


def _may_be_serial(times: Times, numbers: Floats) -> NDArray[np.bool_]:
    """(n,) which numbers of days since the origin would be other dates of the range as a spreadsheet's."""
    shift = days_between(times.origin, SERIALS)
    other = numbers + shift
    return serial_dates(numbers) & (other >= times.start) & (other <= times.end) & (shift != 0)


def _time(times: Times, cell: Any) -> float | str:
    """A number in the unit; the text of an instant; or the rule that a cell breaks."""
    if _missing(cell):
        return MISSING_TIME
    if isinstance(cell, np.datetime64):
        cell = str(cell.astype("datetime64[us]"))
    if isinstance(cell, date):
        cell = cell.isoformat()
    if not isinstance(cell, str):
        value = None if isinstance(cell, bool | np.bool_) else number(cell)
        return NO_TIME if value is None else _time_of_number(times, value)
    return _time_of_text(times, cell.strip())


def _time_of_number(times: Times, value: float) -> float | str:
    """A number in the unit, which is a date of spreadsheets where these are stated."""
    if times.form != "excel":
        return value
    return of_serial(value) or NO_TIME


def _time_of_text(times: Times, text: str) -> float | str:
    text = in_iso(text, times.form)
    if times.form == "month" and (middle := month_middle(text, times.origin)) is not None:
        return middle
    if told := INSTANT.fullmatch(text):
        clock = times.periodic and times.unit == "hours"
        if not clock and not times.origin:
            return NO_TIME
        if clock and not told["clock"]:
            return NO_HOUR
        return NO_ZONE if told["offset"] and not times.zone else text
    if times.periodic and times.unit == "hours" and times.length == HOURS_OF_DAY:
        hours = clock_hours(text)
        if hours is not None:
            return hours
    value = number(text)
    if value is None:
        return mistaken(text) or NO_TIME
    return MISSING_TIME if math.isnan(value) else _time_of_number(times, value)


def _instants(times: Times, texts: list[str]) -> tuple[Floats, NDArray[Any]]:
    """Numbers in the unit of instants, and the rules that they break."""
    import pandas as pd

    local = pd.Series(pd.NaT, index=range(len(texts)), dtype="datetime64[us]")
    told = [INSTANT.fullmatch(text) for text in texts]
    abroad = np.array([bool(each and each["offset"]) for each in told], dtype=bool)
    given = pd.Series([text.replace(" ", "T", 1).replace(" ", "") for text in texts], dtype=object)
    options: dict[str, Any] = {"format": "ISO8601", "errors": "coerce"}
    local[~abroad] = pd.to_datetime(given[~abroad], **options).astype("datetime64[us]")
    if abroad.any():
        there = pd.to_datetime(given[abroad], utc=True, **options)
        local[abroad] = there.dt.tz_convert(zone_of(times.zone)).dt.tz_localize(None).astype("datetime64[us]")
    rules = np.where(local.isna(), NO_TIME, "").astype(object)
    if times.zone and times.periodic:
        rules[~local.isna() & ~local.between(*CLOCK_DATES, inclusive="left")] = FAR
    return _in_unit(times, local), rules


def _in_unit(times: Times, local: Any) -> Floats:
    """Days since the origin, or hours of the day or week, of local instants."""
    import pandas as pd

    if times.origin:
        return np.asarray((local - pd.Timestamp(times.origin)).dt.total_seconds() / SECONDS_OF_DAY, dtype=np.float64)
    hour = (local - local.dt.normalize()).dt.total_seconds() / SECONDS_OF_HOUR
    days = 0 if times.length == HOURS_OF_DAY else local.dt.day_of_week
    return np.asarray(hour + HOURS_OF_DAY * days, dtype=np.float64)
