"""Compiled search for near lattice places: along columns of the lattice, in whole numbers.

Importing this module imports numba, so that it is imported where it is used.
"""

import numpy as np

from dpppsynth.core.types import Ints
from dpppsynth.core.workers import compiled


@compiled
def near_in_order(
    x: Ints, y: Ints, column: Ints, reach: int, first: np.ndarray, second: np.ndarray, apart: np.ndarray
) -> int:
    """Number of pairs of places nearer than `reach`, of places (k,) in the order of x, then y.

    Columns end before so many places (c,). Pairs and their squared distances are written where there is room for them:
    arrays (0,) have them counted alone.
    """
    found, room, start = 0, len(first), 0
    for own in range(len(column)):
        low = start
        for other in range(own, len(column)):
            width = x[low] - x[start]
            if width >= reach:
                break
            # Places of the other column that are near enough are a range, which moves along with the place.
            begin = end = low
            for a in range(start, column[own]):
                while begin < column[other] and y[begin] < y[a] and width**2 + (y[a] - y[begin]) ** 2 >= reach**2:
                    begin += 1
                end = max(end, begin)
                while end < column[other] and (y[end] <= y[a] or width**2 + (y[end] - y[a]) ** 2 < reach**2):
                    end += 1
                for b in range(max(begin, a + 1), end):
                    if found < room:
                        first[found], second[found] = a, b
                        apart[found] = width**2 + (y[b] - y[a]) ** 2
                    found += 1
            low = column[other]
        start = column[own]
    return found
