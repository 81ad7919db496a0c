"""Footprint of a disk on a grid: the cells reported more often around a value, and their weights.

A cell is named by its index, so the offset of two cells is a pair of whole numbers and the cell side is the unit. A
cell is high when its centre lies in the disk, mixed when the disk only reaches into it, and low otherwise. The share of
a mixed cell that counts as high is the area of the cell after its centre is drawn onto the circle while its borders
nearest to the middle stay where they are.

The mutual information of a value and its report is at most the report's entropy under a uniform law less its entropy
given the value. That bound depends on epsilon and the shape of the domain alone, so its maximiser is public.
"""

import math
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints

# Cells along a side of the grid of values and of the box of reports: arrays of the latter are kept.
MOST_SIDE, MOST_BOX = 1024, 4096


def offsets(radius: int) -> tuple[Ints, Ints]:
    """Offsets -radius .. radius along x as a column and along y as a row."""
    steps = np.arange(-radius, radius + 1)
    return steps[:, None], steps[None, :]


def high(x: Any, y: Any, radius: Any) -> np.ndarray:
    """Whether the centres of cells at these offsets lie in or on a circle of whole radius."""
    return np.asarray(np.square(x) + np.square(y) <= np.square(radius))


def reached(x: Any, y: Any, radius: Any) -> np.ndarray:
    """Whether a disk of whole radius holds the centre of a cell or has some of its inside."""
    # Twice the distances to the nearest borders, so that everything is compared as whole numbers.
    near = [np.maximum(2 * np.abs(each) - 1, 0) for each in (x, y)]
    inside = np.square(near[0]) + np.square(near[1]) < 4 * np.square(radius)
    return np.asarray(inside | high(x, y, radius))


def high_shares(x: Any, y: Any, radius: Any) -> Floats:
    """Shares, from 0 to 1, of cells at these offsets that count as high for a circle of whole radius.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), theorem VI.1, whose
    area is negative for some mixed cells, (3, 2) of radius 3 the first: here it is 0 there.

    Examples
    --------
    >>> high_shares([0, 1, 2], [0, 1, 1], 1).round(6).tolist()
    [1.0, 0.171573, 0.0]
    """
    x, y, radius = _whole("x", x), _whole("y", y), _whole("radius", radius, least=0)
    centre = np.sqrt(np.maximum(np.square(x) + np.square(y), 1))
    drawn = radius / centre - 1
    sides = [np.maximum(drawn * np.abs(each) + 0.5, 0.0) for each in (x, y)]
    mixed = np.where(reached(x, y, radius), 4 * sides[0] * sides[1], 0.0)
    return np.where(high(x, y, radius), 1.0, mixed)


def _whole(name: str, value: Any, least: int = -MOST_BOX) -> Ints:
    array = plain_array(value)
    numbers = array is not None and array.dtype.kind in "iu"
    if array is None or not numbers or not ((array >= least) & (array <= MOST_BOX)).all():
        msg = f"{name}: must be whole numbers from {least} to {MOST_BOX}, in cells."
        raise InputError(msg)
    return array.astype(np.int64)


def output_mask(member: np.ndarray, cells: int) -> np.ndarray:
    """Cells of the box around the grid that belong to the footprint of some value."""
    radius = len(member) // 2
    box = np.arange(-radius, cells + radius)
    # For such a footprint the nearest value decides.
    rim = box - np.clip(box, 0, cells - 1) + radius
    return np.asarray(member[np.ix_(rim, rim)])


# Below, differences of exponentials lose digits, and their series are exact.
SMALL = 1e-4
# Tolerance for products that are whole numbers but for rounding.
GUARD = 1e-9
# A side of that length is beyond any use and short of overflow.
LONGEST = 1e300


def optimal_radius(epsilon: float, side: float = 1.0) -> float:
    """Radius of the disk area mechanism on a square that maximises the bound of mutual information.

    Parameters
    ----------
    epsilon : float
    side : float
        Of the square; the radius has the same unit.

    Raises
    ------
    InputError
        An argument is not a positive finite number.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section V.

    Examples
    --------
    >>> round(optimal_radius(3.5), 6)
    0.233247
    """
    epsilon, side = float(positive("epsilon", epsilon)), float(positive("side", side, most=LONGEST))
    # Beyond it the radius is zero in doubles.
    epsilon = min(epsilon, 1000.0)
    first, second = moments(epsilon)
    shrunk = math.exp(-epsilon)
    root = math.sqrt((2 * second * shrunk) ** 2 + math.pi * shrunk * first * second)
    return (2 * second * shrunk + root) / (math.pi * first) * side


def moments(epsilon: float) -> tuple[float, float]:
    """The paper's m1 = e^eps - 1 - eps and m2 = 1 - e^eps + eps e^eps over e^eps, up to a common factor.

    Relative to e^eps nothing overflows, and the radius depends on their ratio only.
    """
    if epsilon < SMALL:
        return 1 / 2 - epsilon / 3 + epsilon**2 / 8, 1 / 2 - epsilon / 6 + epsilon**2 / 24
    return -math.expm1(-epsilon) - epsilon * math.exp(-epsilon), epsilon + math.expm1(-epsilon)


def grid_radius(epsilon: float, cells: int) -> int:
    """Radius in whole cells on a square grid: the optimal radius rounded down.

    Examples
    --------
    >>> [grid_radius(3.5, cells) for cells in (4, 5, 10, 15, 20)]
    [0, 1, 2, 3, 4]
    """
    cells = whole("cells", cells, 1, most=MOST_SIDE)
    return math.floor(optimal_radius(epsilon) * cells + GUARD)
