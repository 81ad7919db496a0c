"""Bounds on errors: their rules, and one of epsilon, delta and the bound from the other two, by binary search.

Neither a bound nor its delta may be 0. Delta falls where epsilon or the bound grows, so the smallest that suffices is
found by exponential and binary search.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpppsynth.core.arguments import COMMON, positive, real, shown, whole, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import named

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
    """The number as an int; InputError unless it is a whole number from `least` to 2^60."""
    number = whole(name, value, least, remedy=remedy)
    if number > LARGEST:
        msg = f"{name}: must be at most 2^60, got {shown(number)}{'; ' if remedy else ''}{remedy}."
        raise InputError(msg)
    return number


def whole_bound(value: Any, least: int = 1, *, remedy: str = "") -> int:
    """A `max_error` as an int, 30 for 30.0 as well; InputError unless it is a whole number from `least` to 2^60."""
    number = whole_number(value)
    return require_whole("max_error", value if number is None else number, least, remedy=remedy)


# Relative width at which the search for an epsilon stops.
CLOSE = 1e-12


class ErrorBudget(NamedTuple):
    """Epsilon, delta and bound on the error that go together."""

    epsilon: Any
    delta: Any
    max_error: Any


def with_third(
    epsilon: Any,
    delta: Any,
    max_error: Any,
    *,
    cost: Callable[[Any, Any], Any],
    least_error: Callable[[Any, Any], Any],
    smallest_epsilon: Callable[[Any, Any], Any],
) -> ErrorBudget:
    """Epsilon, delta and max_error, of which one is None and follows from the two others.

    Examples
    --------
    >>> with_third(2.0, None, 3.0, cost=lambda e, a: 0.01, least_error=max, smallest_epsilon=max)
    ErrorBudget(epsilon=2.0, delta=0.01, max_error=3.0)
    """
    three = {"epsilon": epsilon, "delta": delta, "max_error": max_error}
    given = [name for name, value in three.items() if value is not None]
    endless = isinstance(max_error, float) and max_error == math.inf
    match given:
        case ["epsilon", "delta"]:
            return ErrorBudget(epsilon, delta, least_error(epsilon, delta))
        case ["epsilon", "max_error"]:
            return ErrorBudget(epsilon, cost(epsilon, max_error), max_error)
        case ["delta", "max_error"] if not endless:
            return ErrorBudget(smallest_epsilon(delta, max_error), delta, max_error)
    aside = "; max_error = inf goes with epsilon" if endless else ""
    found = ", ".join(given) or "none of them"
    msg = f"epsilon, delta, max_error: give two of them, and the third follows; got {found}{aside}."
    raise InputError(msg)


def least_whole_error(cost: Callable[[int], float], epsilon: float, delta: float, *, first: int = 1) -> int:
    """Smallest whole bound on the error whose cost at this epsilon is at most delta; InputError beyond 2^60."""
    found = smallest_whole(lambda bound: cost(bound) <= delta, first=first, most=LARGEST)
    if found is None:
        msg = f"epsilon: {epsilon!r} at delta = {delta!r} asks for errors beyond 64-bit integers; take more."
        raise InputError(msg)
    return found


def least_whole_epsilon(
    cost: Callable[[float], float], delta: float, max_error: float, *, sensitivity: int, first: float
) -> float:
    """Smallest epsilon whose cost at this bound on whole answers is at most delta; `first` is tried first.

    InputError where no epsilon suffices, or uniform noise within the bound does.
    """
    # Half of the widest noise that is allowed: wider one is refused as uniform.
    low = sensitivity / (WIDEST / 2 * max_error)
    if cost(low) <= delta:
        msg = (
            f"max_error: noise that is as good as uniform within {max_error} keeps to delta = {delta:g}, and epsilon "
            f"promises nothing; take a smaller {named('max_error')} or a smaller delta."
        )
        raise InputError(msg)
    if not cost(float(LARGEST)) <= delta:
        msg = (
            f"max_error: no epsilon keeps errors of at most {max_error} to delta = {delta:g}: it is too near the "
            f"sensitivity; take a larger {named('max_error')}."
        )
        raise InputError(msg)
    return smallest_number(lambda epsilon: cost(epsilon) <= delta, low, first, close=CLOSE)


def smallest_whole(suffices: Callable[[int], bool], *, first: int = 1, most: int) -> int | None:
    """Smallest whole number from 1 to `most` that suffices, as all larger ones do; None where `most` does not.

    Examples
    --------
    >>> smallest_whole(lambda k: k * k >= 1000, most=100), smallest_whole(lambda k: k > 7, most=7)
    (32, None)
    """
    low, high = 0, first
    while not suffices(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def smallest_number(suffices: Callable[[float], bool], low: float, high: float, *, close: float) -> float:
    """Smallest number that suffices, from above: it does suffice, and a number less by `close` of it does not.

    The lower end, above 0, does not suffice; the higher one is tried first, then doubled.

    Examples
    --------
    >>> round(smallest_number(lambda x: x * x >= 2, 0.1, 0.2, close=1e-12), 9)
    1.414213562
    """
    while not suffices(high):
        low, high = high, 2 * high
    while high > low * (1 + close):
        middle = math.sqrt(low) * math.sqrt(high)
        # Neighbouring floats may be further apart than `close`.
        if not low < middle < high:
            break
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
