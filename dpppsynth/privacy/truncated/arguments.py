"""Validation of error bounds and their deltas, neither of which may be 0."""

import math
from typing import Any

import numpy as np

from dpppsynth.core.arguments import COMMON, plain_array, positive, real, shown, whole, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.truncated_laplace import in_range
from dpppsynth.spatial.mesh import Floats

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


# Epsilons and lengths whose products, squared, neither overflow nor vanish.
SMALLEST_LENGTH, LARGEST_LENGTH = 1e-60, 1e60


def bounded(name: str, value: Any) -> float:
    """The bound, which may be infinite, unless it is none: then an InputError."""
    infinite = isinstance(value, float) and value == math.inf
    return math.inf if infinite else scaled(name, value)


def scaled(name: str, value: Any) -> float:
    """The number, unless products of such numbers may overflow or vanish: then an InputError."""
    return in_range(name, value, SMALLEST_LENGTH, LARGEST_LENGTH, remedy="choose a larger unit of length")


def nonnegative(name: str, values: Any, *, most: float = LARGEST_LENGTH) -> Floats:
    """An array of numbers from 0 to `most`, of any shape."""
    array = _floats(values)
    if array is None or not ((array >= 0) & (array <= most)).all():
        msg = f"{name}: must be numbers from 0 to {most:g}."
        raise InputError(msg)
    return array


def points_in_plane(name: str, points: Any) -> Floats:
    """An array of shape (n, 2), unless it is none or a coordinate is too large to square: then an InputError."""
    array = _floats(points)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not (np.abs(array) <= LARGEST_LENGTH).all():
        msg = f"{name}: must be coordinates of shape (n, 2), none above {LARGEST_LENGTH:g}."
        raise InputError(msg)
    return array


def _floats(values: Any) -> Floats | None:
    """An array of real numbers as floats; None for anything else."""
    array = plain_array(values)
    return array.astype(float) if array is not None and array.dtype.kind in "iuf" else None
