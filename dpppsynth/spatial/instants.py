"""Local clock time: ISO dates and times as days, and hours of a day or week."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError

DAY = timedelta(days=1)


def days_between(start: object, end: object) -> float:
    """Days from one local instant to another.

    Raises
    ------
    InputError
    """
    return (_instant("end", end) - _instant("start", start)) / DAY


def later_days(origin: str, days: npt.NDArray[np.float64]) -> npt.NDArray[np.str_]:
    """(n,) ISO dates and times so many days later, to the second."""
    first = np.datetime64(_instant("origin", origin), "s")
    return np.datetime_as_string(first + np.rint(days * 86_400).astype("timedelta64[s]"))


def require_zone(name: str) -> None:
    """Refuse a name of no time zone; none at all is none.

    Raises
    ------
    InputError
    """
    if name:
        zone_of(name)


def zone_of(name: str) -> ZoneInfo | timezone:
    """The time zone of this name.

    Raises
    ------
    InputError
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        msg = f"zone: must be the name of a time zone, such as 'Europe/London', got {shown(name)}."
        raise InputError(msg) from None


def _instant(argument: str, given: Any) -> datetime:
    try:
        found = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is not None:
        msg = f"{argument}: must be a date or a local time without an offset, such as '2019-01-01', got {shown(given)}."
        raise InputError(msg)
    return found
