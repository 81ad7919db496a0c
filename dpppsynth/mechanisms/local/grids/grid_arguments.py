"""Validation of the arrays that grids take; messages name argument and rule, never coordinates or counts."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local import grid_limits

Bounds = tuple[float, float, float, float]

# Largest coordinates and masses: their products and sums stay finite.
LARGEST = 1e150


def reals(name: str, value: Any, shape: tuple[int | None, ...]) -> Floats:
    """Finite real numbers of the given shape, None for any length; anything else is an InputError."""
    array = plain_array(value)
    if array is not None and array.shape[:1] == (0,) and shape[0] is None:
        array = np.zeros((0, *shape[1:]))  # type: ignore[arg-type]
    if array is None or array.dtype.kind not in "iuf" or not _fits(array.shape, shape):
        words = ", ".join("any" if length is None else str(length) for length in shape)
        msg = f"{name}: must be real numbers of shape ({words}), got {_kind(array)}."
        raise InputError(msg)
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        msg = f"{name}: must be finite, and at most {LARGEST:g} in size; leave out what is infinite or missing."
        raise InputError(msg)
    return numbers


def checked_bounds(bounds: Any) -> Bounds:
    """(x0, y0, x1, y1) of a rectangle with positive finite sides and area; anything else is an InputError."""
    x0, y0, x1, y1 = (float(number) for number in reals("bounds", bounds, (4,)))
    if not (x0 < x1 and y0 < y1 and (x1 - x0) * (y1 - y0) > 0):
        msg = "bounds: must be (x0, y0, x1, y1) with x0 < x1 and y0 < y1 and a positive area; check the order."
        raise InputError(msg)
    return x0, y0, x1, y1


def checked_queries(rectangles: Any) -> Floats:
    """(R, 4) rectangles of queries, the corner of smallest coordinates first; InputError for inverted ones."""
    corners = reals("rectangles", rectangles, (None, 4))
    if (corners[:, :2] > corners[:, 2:]).any():
        msg = "rectangles: must be (x0, y0, x1, y1) with x0 <= x1 and y0 <= y1; some are inverted, swap their corners."
        raise InputError(msg)
    return corners


def users(name: str, n: Any) -> int:
    """A number of users: at least one, and such that it is a float."""
    return whole(name, n, 1, most=2**53, remedy="it counts users")


def require_cells(number: int, name: str) -> None:
    """Refuse grids that would not fit into memory."""
    if not number <= grid_limits.CELLS:
        msg = f"{name}: ask for more than {grid_limits.CELLS} cells; take fewer."
        raise InputError(msg)


def _fits(found: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(found) == len(shape) and all(b is None or a == b for a, b in zip(found, shape, strict=True))


def _kind(array: np.ndarray | None) -> str:
    return "ragged or masked ones" if array is None else f"{array.dtype} of shape {array.shape}"
