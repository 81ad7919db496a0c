"""Squared distances between grid cells, separated by axis, in units of a cell's side."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, shown
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.minimum_cost_flow import Floats

# Largest ratio of a cell's sides: beyond it the shorter one has too few digits.
MOST_OBLONG = 1000.0
# Squares and sums of larger sides, or inverses of smaller ones, may be no doubles.
SHORTEST, LONGEST = 1e-100, 1e100


def cell_sides(unit: Any) -> Floats:
    """(2,) sides of a cell along the first and the second axis, from one number or two; InputError otherwise."""
    array = plain_array(unit)
    if array is not None and array.shape in ((), (2,)) and array.dtype.kind in "iuf":
        sides = np.broadcast_to(array.astype(float), 2)
        if (sides >= SHORTEST).all() and (sides <= LONGEST).all() and sides.max() <= MOST_OBLONG * sides.min():
            return sides
    msg = (
        f"unit: must be the side of a cell, or its two sides, positive and finite and no more than {MOST_OBLONG:g} "
        f"times as long as wide, got {shown(unit)}; 1.0 gives distances in cells."
    )
    raise InputError(msg)


def squared_distances(shape: tuple[int, ...], sides: Floats) -> tuple[Floats, Floats]:
    """(nx, nx) and (ny, ny) squared distances along either axis, in squares of the first side."""
    along = [np.subtract.outer(np.arange(n), np.arange(n)) ** 2.0 for n in shape]
    return along[0], along[1] * (sides[1] / sides[0]) ** 2
