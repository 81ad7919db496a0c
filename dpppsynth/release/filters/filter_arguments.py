"""Validation of filter arguments: released series, positions and public parameters."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, positive, shown
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mesh import Floats

# Numbers whose squares, and quotients of squares, stay in the range of floats.
LARGEST, SMALLEST = 1e100, 1e-100
MOST_PARTICLES = 1_000_000
PUBLIC = "it must be public; 'likely' and 'differences' estimate it from the released numbers"


def series(observations: Any) -> Floats:
    """Released series of shape (N,) or (N, T) as floats, or InputError."""
    return _numbers("observations", observations, "one series (N,) or several side by side (N, T)", (1, 2))


def positions(points: Any) -> Floats:
    """Released positions (N, 2) as floats, or InputError."""
    array = _numbers("points", points, "coordinates (N, 2)", (2,))
    if array.shape[1] != 2:
        msg = f"points: must be coordinates (N, 2), got {array.shape[1]} columns."
        raise InputError(msg)
    return array


def size(name: str, value: Any, *, remedy: str = "") -> float:
    """A positive number neither tiny nor huge, or InputError."""
    number = float(positive(name, value, most=LARGEST, rule=f"be positive, {LARGEST:g} at most", remedy=remedy))
    if number < SMALLEST:
        msg = f"{name}: must be {SMALLEST:g} at least, got {number!r}; choose another unit."
        raise InputError(msg)
    return number


def _numbers(name: str, value: Any, what: str, dimensions: tuple[int, ...]) -> Floats:
    array = plain_array(value)
    if array is None or array.dtype.kind not in "iuf" or array.ndim not in dimensions:
        got = f"an array of {array.dtype}, shape {array.shape}" if array is not None and array.ndim else shown(value)
        msg = f"{name}: must be numbers, {what}, got {got}."
        raise InputError(msg)
    if not array.size:
        msg = f"{name}: must have one entry at least, got shape {array.shape}; nothing was released."
        raise InputError(msg)
    array = array.astype(float)
    if not (np.abs(array) <= LARGEST).all():
        msg = f"{name}: must be finite and at most {LARGEST:g} in absolute value."
        raise InputError(msg)
    return array
