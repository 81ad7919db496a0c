"""The pyramid (quadtree sums) of a square grid, from the whole grid down to single cells."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, shown
from dpppsynth.core.errors import InputError

SIDES = "the side of a grid is a power of two; pad a smaller array with zeros"


def square(name: str, value: Any) -> np.ndarray:
    """The numbers as a (side, side) array, the side a power of two: int64 for whole numbers, else as they are.

    Raises
    ------
    InputError
        Where the array has another shape, holds anything but finite real numbers, or ones too large to be added.
    """
    array = plain_array(value)
    if array is None:
        msg = f"{name}: must be a square array without gaps, got {shown(value)}; {SIDES}."
        raise InputError(msg)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0].bit_count() != 1:
        msg = f"{name}: must be a square array, got shape {array.shape}; {SIDES}."
        raise InputError(msg)
    if array.dtype.kind not in "biuf":
        msg = f"{name}: must hold real numbers, got dtype {array.dtype}; convert the array to float."
        raise InputError(msg)
    if not np.isfinite(array).all():
        msg = f"{name}: must be finite, got NaN or infinity; leave such records out."
        raise InputError(msg)
    with np.errstate(over="ignore"):
        total = np.abs(array, dtype=float).sum()
    # Half of the largest float, as the weights of all levels of a pyramid add up to less than 2.
    if total >= (np.finfo(array.dtype).max / 2 if array.dtype.kind == "f" else 2.0**63):
        msg = f"{name}: must hold numbers whose sum can be represented; divide them by a constant first."
        raise InputError(msg)
    return array if array.dtype.kind == "f" else array.astype(np.int64)


def pyramid(p: Any) -> list[np.ndarray]:
    """Sums of a grid over the cells of every level.

    Parameters
    ----------
    p : (side, side) array
        Masses, of either sign; the side is a power of two.

    Returns
    -------
    list of array
        Shapes (1, 1), (2, 2), ..., (side, side); element (u, v) of level i is the sum over the square of side `2^-i`
        at `(u, v) / 2^i`. Whole numbers stay whole (int64).

    Raises
    ------
    InputError

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, section 3; here without the weights `2^-i`.

    Examples
    --------
    >>> [level.tolist() for level in pyramid([[4, 3], [2, 1]])]
    [[[10]], [[4, 3], [2, 1]]]
    """
    levels = [square("p", p)]
    while len(levels[-1]) > 1:
        rows = levels[-1][::2] + levels[-1][1::2]
        levels.append(rows[:, ::2] + rows[:, 1::2])
    return levels[::-1]


def pyramid_norm(z: Any) -> float:
    """The sum over all levels i of `2^-i` times the absolute sums over its cells.

    It is at least the earth mover's norm of an array that sums to zero, and of any array after `|sum(z)| / side` is
    added.

    Parameters
    ----------
    z : (side, side) array

    Examples
    --------
    >>> pyramid_norm([[4, 3], [2, 1]])
    15.0
    """
    return float(sum(2.0**-level * np.abs(sums).sum() for level, sums in enumerate(pyramid(z))))
