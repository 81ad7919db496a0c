"""Instants in words, for pictures and tables."""

from dpppsynth.spatial.mark_space import HOURS_OF_DAY, HOURS_OF_WEEK, Times

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Days beyond which the hour of an instant tells nothing.
LONG = 60


def told(times: Times, time: float) -> str:
    """An instant: "17:30", "Mon 17:30", a date, or a number with its unit.

    Examples
    --------
    >>> told(Times.day("when"), 17.5), told(Times.week("when"), 36), told(Times("when", 2010, 2020, 4), 2012.5)
    ('17:30', 'Tue 12:00', '2012.5')
    """
    time = float(time)
    if times.origin:
        day, clock = str(times.dates([time])[0]).split("T")
        return day if times.length > LONG or clock == "00:00:00" else f"{day} {clock[:5]}"
    if not times.periodic or times.length not in (HOURS_OF_DAY, HOURS_OF_WEEK):
        return f"{time:.6g}{f' {times.unit}' if times.unit else ''}"
    minutes = round(time * 60) % round(times.length * 60)
    clock = f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
    return clock if times.length == HOURS_OF_DAY else f"{DAYS[minutes // 1440]} {clock}"
