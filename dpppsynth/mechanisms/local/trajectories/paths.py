"""Trajectories: the cells of a grid in the order of their visits, and the moves between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mesh import Floats, Ints

# Cells along a side of a grid.
MOST_SIDE = 1024

# The neighbours of a cell, in the order in which moves are numbered: along x, then along y.
MOVES = np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y])
OFFSETS = "offsets: must be increasing whole numbers from 0 to the number of points; every trajectory has a point."


@dataclass(frozen=True, eq=False, repr=False)
class GridTrajectories:
    """Trajectories of which only the cells are known.

    Parameters
    ----------
    cells : int
        Cells d along each side of the grid.
    values : array_like of int, shape (n,)
        Cells `i * d + j`, i along x and j along y, of one trajectory after the other.
    offsets : array_like of int, shape (T + 1,)
        Where each trajectory starts, and n.

    Examples
    --------
    >>> GridTrajectories(3, [0, 0, 8, 8], [0, 4]).mobility().values
    array([0, 4, 8])
    """

    cells: int
    values: Ints
    offsets: Ints

    def __post_init__(self) -> None:
        d = whole("cells", self.cells, 1, most=MOST_SIDE)
        values = plain_array(self.values)
        flat = values is not None and values.ndim == 1 and values.dtype.kind in "iu" and len(values) > 0
        if values is None or not flat or values.min() < 0 or values.max() >= d * d:
            msg = f"values: must be whole numbers from 0 to {d * d - 1}, the cells of a {d} by {d} grid; at least one."
            raise InputError(msg)
        values = values.astype(np.int64)
        values.flags.writeable = False
        object.__setattr__(self, "cells", d)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "offsets", checked_offsets(self.offsets, len(values)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"GridTrajectories({self.cells} by {self.cells} cells)"

    @property
    def lengths(self) -> Ints:
        """(T,) number of cells of each, repetitions included."""
        return np.diff(self.offsets)

    def histogram(self) -> Floats:
        """(d, d) shares of all points in the cells, indexed [i, j]."""
        counts = np.bincount(self.values, minlength=self.cells**2)
        return counts.reshape(self.cells, self.cells) / len(self.values)

    def mobility(self, longest: int | None = None) -> "GridTrajectories":
        """The same trajectories as moves between neighbouring cells: stays dropped, jumps filled in straight.

        Parameters
        ----------
        longest : int, optional
            Cells of each that are kept; nothing is filled in after them.
        """
        place = np.column_stack(np.divmod(self.values, self.cells))
        way = np.diff(place, axis=0, prepend=place[:1])
        steps = np.abs(way).max(axis=1)
        # The first cell of every trajectory is one step, wherever the one before it ended.
        steps[self.offsets[:-1]] = 1
        kept = steps
        if longest is not None:
            before = np.cumsum(steps) - steps
            before -= np.repeat(before[self.offsets[:-1]], self.lengths)
            kept = np.clip(whole("longest", longest, 1, most=2**53) - before, 0, steps)
        last = np.repeat(np.arange(len(steps)), kept)
        left = steps[last] - 1 - (np.arange(len(last)) - np.repeat(np.cumsum(kept) - kept, kept))
        size = steps[last][:, None]
        filled = place[last] - (2 * left[:, None] * way[last] + size) // (2 * size)
        lengths = np.add.reduceat(kept, self.offsets[:-1])
        return GridTrajectories(self.cells, filled[:, 0] * self.cells + filled[:, 1], starts(lengths))

    def part(self, first: int, last: int) -> "GridTrajectories":
        """Trajectories from number `first` to before number `last`."""
        first = whole("first", first, 0, most=len(self) - 1)
        offsets = self.offsets[first : whole("last", last, first + 1, most=len(self)) + 1]
        return GridTrajectories(self.cells, self.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def neighbouring_cells(cell: Ints, cells: int) -> tuple[Ints, Any]:
    """(n, 8) the cells around each cell, in the order of `MOVES`, and whether they lie on the grid (0 where not)."""
    place = np.stack(np.divmod(cell, cells), axis=-1)[:, None] + MOVES
    inside = ((place >= 0) & (place < cells)).all(axis=-1)
    return np.where(inside, place[..., 0] * cells + place[..., 1], 0), inside


def starts(lengths: Ints) -> Ints:
    """(T + 1,) offsets of trajectories of these lengths (T,)."""
    return np.concatenate([[0], np.cumsum(lengths)])


def checked_offsets(offsets: Any, size: int) -> Ints:
    """(T + 1,) offsets that divide `size` points into trajectories; InputError otherwise."""
    array = plain_array(offsets)
    flat = array is not None and array.ndim == 1 and len(array) > 1 and array.dtype.kind in "iu"
    if array is None or not flat or array[0] != 0 or array[-1] != size or not (array[1:] > array[:-1]).all():
        raise InputError(OFFSETS)
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array
