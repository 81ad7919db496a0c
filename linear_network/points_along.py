"""Points at distances along broken lines, many at a time."""

import numpy as np
import shapely

from dpppsynth.core.arrays import Floats, Ints


class PointsAlong:
    """Broken lines, and the points at given distances along them.

    The points are those of `shapely.line_interpolate_point`, which makes an object of each, from the same operations in
    the same order. Distances below zero count as zero.

    Examples
    --------
    >>> corner = shapely.linestrings([[0, 0], [2, 0], [2, 3]])
    >>> PointsAlong(np.array([corner])).at(np.array([0, 0]), np.array([1.5, 4.0]))
    array([[1.5, 0. ],
           [2. , 2. ]])
    """

    def __init__(self, lines: Floats) -> None:
        self._corners, line = shapely.get_coordinates(lines, return_index=True)
        count = np.bincount(line, minlength=len(lines))
        self._first, self._steps = np.cumsum(count) - count, count - 1
        self._sides = np.diff(self._corners, axis=0, append=self._corners[-1:])
        self._length = np.sqrt((self._sides**2).sum(axis=1))
        # Along each line, added up from its beginning: of one sum over all lines a long one would take the digits.
        self._before = np.zeros(len(self._corners))
        for step in range(1, count.max(initial=1)):
            last = self._first[self._steps >= step] + step - 1
            self._before[last + 1] = self._before[last] + self._length[last]

    def at(self, line: Ints, along: Floats) -> Floats:
        """(n, 2) coordinates at distances (n,) along the lines of these numbers (n,)."""
        corner, steps = self._first.take(line), self._steps.take(line)
        left = np.flatnonzero(steps > 1)
        for step in range(1, self._steps.max(initial=1)):
            left = left[(steps[left] > step) & (along[left] >= self._before[corner[left] + 1])]
            corner[left] += 1
        length = self._length.take(corner)
        rest = along - self._before.take(corner)
        share = np.clip(np.divide(rest, length, out=np.zeros_like(rest), where=length > 0), 0, 1)
        found = self._sides.take(corner, axis=0)
        found *= share[:, None]
        found += self._corners.take(corner, axis=0)
        # The last corner itself, without the rounding of a sum.
        ends = share == 1
        found[ends] = self._corners[corner[ends] + 1]
        return found
