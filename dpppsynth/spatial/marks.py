"""Columns of point attributes (marks) as plain arrays, and instants of time among them.

numpy, left to itself, turns whole numbers into floating-point ones when one of them is large or one value has decimals,
and anything into text when one value is text: two values become one because of a third.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError

# Text beyond this width stays a list of objects: an array of text takes the width of the longest for every row.
WIDE = 1000
# Whole numbers as programs write them whose column has gaps.
POINT_ZERO = re.compile(r"(0|-?[1-9]\d*)\.0+", re.ASCII)


def column(values: Sequence[Any]) -> NDArray[Any]:
    """(n,) array of the plainest dtype that holds the values unchanged, or of objects.

    Texts, truth values, whole numbers and real numbers have kinds of their own. Objects are all mixtures, texts that
    are long or end in a NUL, and whole numbers beyond 64 bits.

    Examples
    --------
    >>> column([1, 2]), column([1, 0.5]), column([1, "a"])
    (array([1, 2]), array([1. , 0.5]), array([1, 'a'], dtype=object))
    >>> column([2**63, -1])
    array([9223372036854775808, -1], dtype=object)
    """
    if values and all(isinstance(value, str) for value in values):
        # An array of text drops NULs at the end.
        if max(map(len, values)) <= WIDE and not any(value.endswith("\0") for value in values):
            return np.array(values, dtype=np.str_)
    elif values and all(isinstance(value, bool | np.bool_) for value in values):
        return np.array(values, dtype=np.bool_)
    elif values and all(map(is_whole, values)):
        return _whole([int(value) for value in values])
    elif values and all(is_whole(value) or isinstance(value, float | np.floating) for value in values):
        return _real(values)
    return _objects(values)


def word(value: Any) -> str:
    """The one text of a value, by which levels and types are compared: "2021" of 2021, 2021.0, "2021.0" and " 2021".

    Other texts keep what they hold: "007" is not "7".

    Examples
    --------
    >>> [word(value) for value in (2021, 2021.0, "2021.0 ", "007", 0.5, "1.50")]
    ['2021', '2021', '2021', '007', '0.5', '1.50']
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    whole = POINT_ZERO.fullmatch(text)
    return whole[1] if whole else text


def words(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """(n,) the values as texts; see `word`."""
    return np.array([word(value) for value in values], dtype=np.str_)


def listed(argument: str, text: str) -> list[str]:
    """Values of a list with commas between them; those with commas of their own stand between quotation marks.

    Examples
    --------
    >>> listed("levels", 'theft, "assault, other"')
    ['theft', 'assault, other']
    """
    try:
        rows = [*csv.reader([text], skipinitialspace=True, strict=True)]
    except csv.Error:
        rows = []
    if len(rows) != 1:
        msg = (
            f"{argument}: needs values with commas between them, on one line, and quotation marks around those that "
            f"hold commas, such as 'theft,\"assault, other\"'; got {shown(text)}"
        )
        raise InputError(msg)
    return [value.strip() for value in rows[0] or [""]]


def as_list(values: Iterable[str]) -> str:
    """Inverse of `listed`.

    Examples
    --------
    >>> as_list(["theft", "assault, other"])
    'theft,"assault, other"'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def is_whole(value: Any) -> bool:
    """Whether this is a whole number: 2, but neither 2.0 nor True nor a duration."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole(values: list[int]) -> NDArray[Any]:
    least, most = min(values), max(values)
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return np.array(values, dtype=kind)
    return _objects(values)


def _real(values: Sequence[Any]) -> NDArray[Any]:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return _objects(values)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))


DAY, HOUR = timedelta(days=1), timedelta(hours=1)
# Between these a clock of a time zone is followed.
CLOCK_DATES = ("1970-01-01", "2100-01-01")


def days_between(start: object, end: object) -> float:
    """Days from one local instant to another; InputError for texts that are not instants."""
    return (_instant("end", end) - _instant("start", start)) / DAY


# Steps of dates from the coarsest to the finest, with their codes in numpy and lengths in days.
STEPS = {
    "month": ("M", 31.0),
    "day": ("D", 1.0),
    "hour": ("h", 1 / 24),
    "minute": ("m", 1 / 1440),
    "second": ("s", 0.0),
}


def later_days(origin: str, days: npt.NDArray[np.float64], step: str = "second") -> npt.NDArray[np.str_]:
    """(n,) ISO dates and times a number of days after an origin, no finer than a step that they have begun.

    Examples
    --------
    >>> [str(later_days("2019-01-01", np.array([40.7]), step)[0]) for step in ("month", "day", "hour")]
    ['2019-02', '2019-02-10', '2019-02-10T16:00']
    """
    begun = _later(origin, days).astype(f"datetime64[{STEPS[step][0]}]")
    return np.datetime_as_string(begun, unit="m" if step == "hour" else None)


def stepped_days(origin: str, days: npt.NDArray[np.float64], step: str) -> npt.NDArray[np.float64]:
    """(n,) days after an origin as they are read from dates of a step: their beginning, of a month its middle."""
    begun = _later(origin, days).astype(f"datetime64[{STEPS[step][0]}]")
    found = (begun.astype("datetime64[s]") - _later(origin, np.zeros(1))) / np.timedelta64(1, "D")
    if step != "month":
        return np.asarray(found)
    after = ((begun + 1).astype("datetime64[s]") - _later(origin, np.zeros(1))) / np.timedelta64(1, "D")
    return np.asarray((found + after) / 2)


def _later(origin: str, days: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
    first = np.datetime64(_instant("origin", origin), "s")
    return np.asarray(first + np.rint(np.asarray(days) * 86_400).astype("timedelta64[s]"))


def zone_of(name: str) -> ZoneInfo | timezone:
    """The time zone of this name; InputError for an unknown one."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        msg = f"zone: must be the name of a time zone, such as 'Europe/London', got {shown(name)}."
        raise InputError(msg) from None


@cache
def clock_change(zone: str, first: str, last: str) -> float:
    """Hours by which the offset of a time zone differs at most between two dates, such as 1 for summer time.

    Examples
    --------
    >>> clock_change("Europe/London", "2019-01-01", "2024-01-01"), clock_change("UTC", "2019-01-01", "2024-01-01")
    (1.0, 0.0)
    """
    there = zone_of(zone)
    # No offset is kept for less than a day; local dates are less than two days from those of UTC.
    day, end = (_instant("date", date).replace(tzinfo=UTC) for date in (first, last))
    days = [day + k * DAY for k in range(-2, math.ceil((end - day) / DAY) + 3)]
    offsets = {each.astimezone(there).utcoffset() or timedelta() for each in days}
    return (max(offsets) - min(offsets)) / HOUR


def _instant(argument: str, given: Any) -> datetime:
    try:
        found = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is not None:
        msg = f"{argument}: must be a date or a local time without an offset, such as '2019-01-01', got {shown(given)}."
        raise InputError(msg)
    return found
