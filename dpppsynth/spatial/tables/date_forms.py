"""Forms of dates and hours other than ISO: days first, months first, months alone, numbers of spreadsheets, am and pm.

What a text may be in another form than is stated is the name of the rule that it breaks.
"""

import re
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.types import Floats

DATE = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4})(?:(?:T|,? )(?P<clock>.+))?"
)
MONTH = re.compile(r"(?P<year>\d{4})[-/](?P<month>0[1-9]|1[0-2])")
HALF = re.compile(
    r"(?P<hours>1[0-2]|0?[1-9])(?::(?P<rest>[0-5]\d(?::[0-5]\d)?))? ?(?P<half>[ap])[.]?m[.]?", re.IGNORECASE
)
CLOCK = re.compile(r"(?P<hours>\d?\d):(?P<minutes>[0-5]\d)(:(?P<seconds>[0-5]\d))?")
UNIVERSAL = re.compile(r"(?<=\d) ?(UTC|GMT)$")
# Day 0 of spreadsheets, whose 60 is a day that never was: numbers from March 1900 on are dates.
FIRST_OF_SERIALS, LAST_OF_SERIALS = date(1899, 12, 30), 2_958_465.0
LEAST_SERIAL, MONTHS = 61.0, 12

DAY_FIRST = "a date as day/month/year (date format dmy)"
MONTH_FIRST = "a date as month/day/year (date format mdy)"
EITHER = "a date as day/month/year or month/day/year (date format dmy or mdy)"
MONTH_ALONE = "a month without a day (date format month)"
SERIAL = "a number that may be a date of a spreadsheet (date format excel)"
MISTAKEN = (DAY_FIRST, MONTH_FIRST, EITHER, MONTH_ALONE, SERIAL)


def looks_dated(cell: Any) -> bool:
    """Whether a cell is the text of a date with days or months first, whose signs are no decimal ones."""
    return isinstance(cell, str) and DATE.fullmatch(cell.strip()) is not None


def in_iso(text: str, form: str) -> str:
    """A text with its date in ISO form, if it is one of the form, and its hour of 24.

    Examples
    --------
    >>> in_iso("31/12/2024 5:30 pm", "dmy"), in_iso("12/31/2024", "mdy"), in_iso("2024-12-31 17:30 UTC", "iso")
    ('2024-12-31T17:30', '2024-12-31', '2024-12-31 17:30Z')
    >>> in_iso("31.12.2024 7:05", "dmy"), in_iso("12/31/2024", "dmy"), in_iso("5 PM", "iso")
    ('2024-12-31T07:05', '12/31/2024', '17:00')
    """
    text = HALF.sub(_of_24, UNIVERSAL.sub("Z", text))
    told = DATE.fullmatch(text)
    if told is None or form not in ("dmy", "mdy"):
        return text
    day, month = (int(told[name]) for name in (("first", "second") if form == "dmy" else ("second", "first")))
    if month > MONTHS:
        return text
    clock = told["clock"] or ""
    clock = f"T{'0' * (clock[1:2] == ':')}{clock}" if clock else ""
    return f"{told['year']}-{month:02d}-{day:02d}{clock}"


def _of_24(told: re.Match[str]) -> str:
    hours = int(told["hours"]) % MONTHS + MONTHS * (told["half"].lower() == "p")
    return f"{hours:02d}:{told['rest'] or '00'}"


def mistaken(text: str) -> str | None:
    """The rule that a text breaks which may be a date in another form; None of what is none."""
    if MONTH.fullmatch(text):
        return MONTH_ALONE
    told = DATE.fullmatch(text)
    if told is None:
        return None
    first, second = int(told["first"]), int(told["second"])
    if first > MONTHS:
        return DAY_FIRST if second <= MONTHS else None
    return MONTH_FIRST if second > MONTHS else EITHER


def clock_hours(text: str) -> float | None:
    """Hours of a text such as 17:30; None of any other."""
    told = CLOCK.fullmatch(text)
    if told is None:
        return None
    hours, minutes, seconds = (int(told[name] or 0) for name in ("hours", "minutes", "seconds"))
    return hours + minutes / 60 + seconds / 3600


def month_middle(text: str, origin: str) -> float | None:
    """Days from the origin to the middle of a month such as 2024-01; None of any other text."""
    told = MONTH.fullmatch(text)
    if told is None:
        return None
    begun = np.datetime64(f"{told['year']}-{told['month']}", "M")
    ends = (np.array([begun, begun + 1]).astype("datetime64[s]") - np.datetime64(origin, "s")) / np.timedelta64(1, "D")
    return float(ends.mean())


def of_serial(value: float) -> str | None:
    """ISO text of a number of days of spreadsheets, to the second; None where that is no date."""
    if not LEAST_SERIAL <= value <= LAST_OF_SERIALS:
        return None
    return str(np.datetime64(FIRST_OF_SERIALS, "s") + np.timedelta64(round(value * 86_400), "s"))


def maybe_serial(values: Floats, origin: str, end: float) -> NDArray[np.bool_]:
    """(n,) whether days since an origin would be dates in the range if they were counted as spreadsheets do."""
    before = (np.datetime64(origin, "s") - np.datetime64(FIRST_OF_SERIALS, "s")) / np.timedelta64(1, "D")
    return np.asarray((values - before >= 0) & (values - before <= end))
