"""Footprint of a disk on a grid: the cells reported more often around a value, and their weights.

A cell is named by its index, so the offset of two cells is a pair of whole numbers and the cell side is the unit. A
cell is high when its centre lies in the disk, mixed when the disk only reaches into it, and low otherwise. The share of
a mixed cell that counts as high is the area of the cell after its centre is drawn onto the circle while its borders
nearest to the middle stay where they are.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local import grid_limits


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

    Parameters
    ----------
    x, y : arrays of int
        Offsets in cells, broadcast against each other.
    radius : int or array of int
        In cells, at least 0.

    Returns
    -------
    array
        1 where the centre is in or on the circle, 0 where the disk does not reach, the shrunken area in between.

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


def _whole(name: str, value: Any, least: int = -grid_limits.AREA_BOX) -> Ints:
    array = plain_array(value)
    numbers = array is not None and array.dtype.kind in "iu"
    if array is None or not numbers or not ((array >= least) & (array <= grid_limits.AREA_BOX)).all():
        msg = f"{name}: must be whole numbers from {least} to {grid_limits.AREA_BOX}, in cells."
        raise InputError(msg)
    return array.astype(np.int64)


def output_mask(member: np.ndarray, cells: int) -> np.ndarray:
    """Cells of the box around the grid that belong to the footprint of some value.

    Parameters
    ----------
    member : (2 radius + 1, 2 radius + 1) array of bool
        Offsets of the footprint: symmetric, and with every offset all those nearer to zero along both axes.
    cells : int
        Along each axis of the grid of values.

    Returns
    -------
    (cells + 2 radius, cells + 2 radius) array of bool
        Indexed from -radius on; in C order the marked cells are the lexicographic list of reports.
    """
    radius = len(member) // 2
    box = np.arange(-radius, cells + radius)
    # For such a footprint the nearest value decides.
    rim = box - np.clip(box, 0, cells - 1) + radius
    return np.asarray(member[np.ix_(rim, rim)])


class FootprintSizes(NamedTuple):
    """Areas in cells: `high` S_H, `low` S_L; what is not high of an output cell is low."""

    high: float
    low: float

    @property
    def outputs(self) -> int:
        """Number of cells that are reported at all."""
        return round(self.high + self.low)


def closed_form_sizes(radius: int, cells: int) -> FootprintSizes:
    """High and low area around every value, in time proportional to the radius.

    Parameters
    ----------
    radius : int
        In cells, at least 0.
    cells : int
        Along each axis of the grid of values.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy, theorem VI.4, less the `m` that the print
    lacks in the number of strictly interior cells.

    Examples
    --------
    >>> [round(size, 8) for size in closed_form_sizes(2, 5)]
    [16.64582472, 60.35417528]
    """
    radius, cells = (
        whole("radius", radius, 0, most=grid_limits.AREA_BOX),
        whole("cells", cells, 1, most=grid_limits.AREA_SIDE),
    )
    parts = footprint_parts(radius)
    split = float(parts.mixed @ parts.times)
    low = cells**2 + 4 * radius * cells - 4 * radius - 1
    return FootprintSizes(parts.pure + split, low + int(parts.times.sum()) - split)


class Parts(NamedTuple):
    """Footprint by its parts: number of high cells, shares (k,) of mixed cells, and how many (k,) have each share."""

    pure: int
    mixed: Floats
    times: Ints


def footprint_parts(radius: int) -> Parts:
    """Parts of the footprint of a whole radius by its symmetry, without looking at every cell.

    Strictly between 0 and 45 degrees, row k ends at the outermost cell (x_k, k) that the disk reaches, and the cells
    before that one are all high; these count eightfold. Axes and diagonals count fourfold, and no axis is mixed.
    """
    k = np.arange(1, radius + 1)
    # Largest x with (2x - 1)^2 + (2k - 1)^2 < 4 radius^2, whose root is exact enough far beyond any radius here.
    x = (np.sqrt(4 * radius**2 - (2 * k - 1) ** 2 - 1).astype(np.int64) + 1) // 2
    x, k = x[x > k], k[x > k]
    full = math.isqrt(radius**2 // 2)
    ends = high_shares(np.append(x, full + 1), np.append(k, full + 1), radius)
    interior = int((x - k - 1).sum()) + int((ends[:-1] == 1).sum())
    times = np.append(np.full(len(x), 8), 4)
    mixed = (ends < 1) & np.append(np.full(len(x), True), reached(full + 1, full + 1, radius))
    return Parts(1 + 4 * (radius + full) + 8 * interior, ends[mixed], times[mixed])
