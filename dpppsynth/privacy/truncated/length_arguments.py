"""Validation of lengths, of budgets per unit of length, and of offsets in the plane."""

import math
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.truncated_laplace import in_range
from dpppsynth.spatial.mesh import Floats

# Epsilons and lengths whose products, squared, neither overflow nor vanish.
SMALLEST, LARGEST = 1e-60, 1e60


def bounded(name: str, value: Any) -> float:
    """The bound, which may be infinite, unless it is none: then an InputError."""
    infinite = isinstance(value, float) and value == math.inf
    return math.inf if infinite else scaled(name, value)


def scaled(name: str, value: Any) -> float:
    """The number, unless products of such numbers may overflow or vanish: then an InputError."""
    return in_range(name, value, SMALLEST, LARGEST, remedy="choose a larger unit of length")


def nonnegative(name: str, values: Any, *, most: float = LARGEST) -> Floats:
    """An array of numbers from 0 to `most`, of any shape."""
    array = _floats(values)
    if array is None or not ((array >= 0) & (array <= most)).all():
        msg = f"{name}: must be numbers from 0 to {most:g}."
        raise InputError(msg)
    return array


def points_in_plane(name: str, points: Any) -> Floats:
    """An array of shape (n, 2), unless it is none or a coordinate is too large to square: then an InputError."""
    array = _floats(points)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not (np.abs(array) <= LARGEST).all():
        msg = f"{name}: must be coordinates of shape (n, 2), none above {LARGEST:g}."
        raise InputError(msg)
    return array


def _floats(values: Any) -> Floats | None:
    """An array of real numbers as floats; None for anything else."""
    array = plain_array(values)
    return array.astype(float) if array is not None and array.dtype.kind in "iuf" else None
