"""Validation of error bounds and their deltas, neither of which may be 0."""

from typing import Any

from dpppsynth.core.arguments import COMMON, positive, real, shown, whole, whole_number
from dpppsynth.core.errors import InputError

# Bounds, shifts and noise stay within 64-bit integers, also once they are added to counts.
LARGEST = 2**60
# Noise with a scale this many times its bound is as good as uniform, and hardly any draw is kept.
WIDEST = 100
# The price of a bound that no error exceeds, in words.
WHY_DELTA = (
    "an error that never exceeds a bound excludes, for some answers, one of two neighbouring data sets with certainty, "
    "which no finite epsilon covers"
)
TOO_LARGE = "above one half most answers tell two neighbouring data sets apart"


def require_bound_delta(value: Any, *, least: float = 0.0, otherwise: str = "") -> float:
    """The delta that a bound on the error may cost, from `least`, above 0, to one half; or an InputError with a reason.

    What stands beside another delta as a remedy, such as a mechanism without a bound, is `otherwise`.
    """
    rule = f"lie between {least:g} and 0.5" if least else "lie above 0 and be at most 0.5"
    number = real(value)
    reason = TOO_LARGE if number is not None and number > 1 / 2 else f"it cannot be 0: {WHY_DELTA}"
    remedy = f"{reason}. Take 1e-6{otherwise}"
    delta = float(positive("delta", value, rule=rule, remedy=remedy, most=0.5))
    if delta < least:
        msg = f"delta: must {rule}, got {delta!r}; {COMMON}."
        raise InputError(msg)
    return delta


def require_whole(name: str, value: Any, least: int, *, remedy: str = "") -> int:
    """The number as an int, unless it is no whole number from `least` to 2^60: then an InputError."""
    number = whole(name, value, least, remedy=remedy)
    if number > LARGEST:
        msg = f"{name}: must be at most 2^60, got {shown(number)}{'; ' if remedy else ''}{remedy}."
        raise InputError(msg)
    return number


def whole_bound(value: Any, least: int = 1, *, remedy: str = "") -> int:
    """A `max_error` as an int, 30 for 30.0 as well, unless it is no whole number from `least` to 2^60."""
    number = whole_number(value)
    return require_whole("max_error", value if number is None else number, least, remedy=remedy)
