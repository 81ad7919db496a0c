"""Exponential and binary search for the smallest number that satisfies a monotone condition."""

import math
from collections.abc import Callable


def smallest_whole(suffices: Callable[[int], bool], *, first: int = 1, most: int) -> int | None:
    """Smallest whole number from 1 to `most` that suffices; None where `most` does not.

    Parameters
    ----------
    suffices : function of int to bool
        Once true for a number, true for all larger ones.
    first : int, optional
        The number that is tried first, at most `most`.
    most : int

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

    Parameters
    ----------
    suffices : function of float to bool
        Once true for a number, true for all larger ones, and true for some.
    low, high : float
        Above 0; the lower one does not suffice, and the higher one is tried first, then doubled.
    close : float
        Relative width at which the search stops.

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
