"""Validation of true answers; error messages never show one."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.error_bounds import LARGEST
from dpppsynth.spatial.mesh import Ints

# Whole numbers up to here are floats without rounding.
EXACT = 2**53


def whole_values(values: Any, most: int = LARGEST) -> Ints:
    """(N,) whole numbers, kept as integers or as floats, possibly none; or InputError."""
    array = plain_array(values)
    if array is not None and array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array is None or not array.ndim or array.dtype.kind not in "iuf":
        kind = f" of dtype {array.dtype}" if array is not None and array.ndim else ""
        raise InputError(_message(f"got a {type(values).__name__}{kind}"))
    if array.ndim > 1:
        raise InputError(_message(f"got a table {array.shape}; give one column, or ravel it: sensitivity is of all"))
    fault = _fault(array, most)
    if fault:
        raise InputError(_message(fault))
    return array.astype(np.int64)


def _fault(array: np.ndarray, most: int) -> str:
    """Description of invalid numbers, or None."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return "but some are missing or infinite; fill them in first"
        if (array != np.floor(array)).any():
            return "but some have fractions; round them, and state the sensitivity of what that gives"
        most = EXACT
    # Not by their absolute value: that of the smallest integer is no integer of its kind.
    return "" if ((array >= -most) & (array <= most)).all() else f"but some are beyond 2^{most.bit_length() - 1}"


def _message(fault: str) -> str:
    return f"values: must be one series of whole numbers (N,), {fault}."
