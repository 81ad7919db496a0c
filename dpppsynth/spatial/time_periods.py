"""Periods of a public range of times, and the texts of instants: years or months, days of a week, hours of a day."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpppsynth.spatial.mark_space import HOURS_OF_DAY, HOURS_OF_WEEK, Times
from dpppsynth.spatial.marks import is_number

# Periods of the calendar that are told one by one: at least, and at most.
FEWEST, MOST = 2, 12
# Parts of a range that has no calendar.
PARTS = 8
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Days of the week, Monday first, and months, by the names that files give them.
CALENDARS = tuple(
    tuple(names.split())
    for names in (
        "mon tue wed thu fri sat sun",
        "monday tuesday wednesday thursday friday saturday sunday",
        "mo di mi do fr sa so",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunes martes miércoles jueves viernes sábado domingo",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "january february march april may june july august september october november december",
    )
)
# Days beyond which the hour of an instant tells nothing.
LONG = 60


def periods(times: Times) -> dict[str, tuple[float, float]]:
    """Beginnings and ends of parts of the range, by their names, in order: together they are the range.

    Years or months of dates that span two to twelve of them, days of a week, three hours each of a day, and eight equal
    parts of other ranges.

    Examples
    --------
    >>> list(periods(Times.day("hour")))[:2], list(periods(Times.week("hour")))[:2]
    (['00:00-03:00', '03:00-06:00'], ['Mon', 'Tue'])
    >>> periods(Times("year", 2010, 2018, 5))["2010 to 2011"]
    (2010.0, 2011.0)
    """
    if found := calendar(times):
        return found
    week = times.periodic and times.length == HOURS_OF_WEEK
    ends = times.start + times.length * np.arange((7 if week else PARTS) + 1) / (7 if week else PARTS)
    bounds = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    if week:
        return dict(zip(DAYS, bounds, strict=True))
    between = "-" if times.periodic and times.length == HOURS_OF_DAY else " to "
    names = [f"{instant_text(times, a)}{between}{instant_text(times, b)}" for a, b in bounds]
    # Parts of a range of few days may read the same: then they are numbered.
    same = len(set(names)) < len(names)
    return {f"{k}: {name}" if same else name: each for k, (name, each) in enumerate(zip(names, bounds, strict=True), 1)}


def in_order(names: Sequence[str]) -> list[str]:
    """Values of a mark in the order of a map's legend: days of the week, months and numbers in theirs, others as given.

    Examples
    --------
    >>> in_order(["Friday", "Monday", "Sunday"]), in_order(["10", "9"]), in_order(["theft", "arson"])
    (['Monday', 'Friday', 'Sunday'], ['9', '10'], ['theft', 'arson'])
    """
    folded = [name.strip().rstrip(".").casefold() for name in names]
    for days in CALENDARS:
        if set(days).issuperset(folded):
            return [name for _, name in sorted(zip(map(days.index, folded), names, strict=True))]
    numbers = all(is_number(name) for name in names)
    return sorted(names, key=float) if numbers else list(names)


def calendar(times: Times) -> dict[str, tuple[float, float]]:
    """Beginnings and ends of years, or else of months, of a range of dates, by their names; none of other ranges.

    Examples
    --------
    >>> calendar(Times.between("when", "2019-07-01", "2021-01-01"))
    {'2019': (0.0, 184.0), '2020': (184.0, 550.0)}
    >>> list(calendar(Times.between("when", "2024-01-01", "2024-04-01"))), calendar(Times.day("when"))
    (['2024-01', '2024-02', '2024-03'], {})
    """
    if not times.origin:
        return {}
    first, day = np.datetime64(times.origin, "s"), np.timedelta64(1, "D")
    last = first + np.timedelta64(round((times.end - times.start) * 86_400) - 1, "s")
    for step in ("Y", "M"):
        names = np.arange(first.astype(f"M8[{step}]"), last.astype(f"M8[{step}]") + 1)
        if FEWEST <= len(names) <= MOST:
            ends = [((each + 1).astype("M8[s]") - first) / day for each in names]
            starts = [0.0, *ends[:-1]]
            return {str(n): (float(a), min(float(b), times.end)) for n, a, b in zip(names, starts, ends, strict=True)}
    return {}


def instant_text(times: Times, time: float) -> str:
    """An instant: "17:30", "Mon 17:30", a date, or a number with its unit.

    Examples
    --------
    >>> day, week, years = Times.day("when"), Times.week("when"), Times("when", 2010, 2020, 4)
    >>> instant_text(day, 17.5), instant_text(week, 36), instant_text(years, 2012.5)
    ('17:30', 'Tue 12:00', '2012.5')
    """
    time = float(time)
    if times.origin:
        day, _, clock = str(times.dates([time])[0]).partition("T")
        return day if times.length > LONG or not clock else f"{day} {clock}"
    if not times.periodic or times.length not in (HOURS_OF_DAY, HOURS_OF_WEEK):
        return f"{time:.6g}{f' {times.unit}' if times.unit else ''}"
    minutes = round(time * 60) % round(times.length * 60)
    clock = f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
    return clock if times.length == HOURS_OF_DAY else f"{DAYS[minutes // 1440]} {clock}"
