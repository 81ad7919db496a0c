"""`Users`: points of persons in the cells of a square grid, each person's equally weighted, rounded and added up.

Every person's shares are rounded on their own to multiples of `2^-bits` that add up to one. Whole numbers add exactly,
so adding or removing a person changes a sum of them by `2^bits` units in L1, whatever the others are. Messages never
say which row or person breaks a rule, nor how many there are.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpppsynth.core.types import Confidential
from dpppsynth.mechanisms.heatmap.bound import DEEPEST
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.persons import persons

# A person and a cell in one 64-bit number.
CELL_BITS = 2 * DEEPEST


@dataclass(frozen=True, eq=False, repr=False)
class Users(Confidential):
    """Points of persons in the cells of a square grid; as sensitive as their places.

    Attributes
    ----------
    depth : int
        The grid has side `2^depth`.
    user : (k,) array of int
        Persons, numbered from 0, rising.
    cell : (k,) array of int
        Cells `(i, j)` as `i * side + j`, i along x and j along y, rising within a person.
    points : (k,) array of int
        Numbers of points of the person in the cell. They weigh alike, and a person's together one.

    Examples
    --------
    >>> users = Users.from_columns(["ann", "ann", "bob"], [0, 1, 1], [0, 0, 1], side=2)
    >>> users.total()
    array([[0.5, 0. ],
           [0.5, 1. ]])
    >>> users.lattice(bits=3)
    array([[4, 0],
           [4, 8]])
    """

    depth: int
    user: Ints
    cell: Ints
    points: Ints

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.side} x {self.side} cells)"

    @classmethod
    def from_columns(cls, user: Any, i: Any, j: Any, *, side: int) -> Self:
        """Take points in any order by their persons' labels and their cells on a grid, whose side is a power of two."""
        depth = side.bit_length() - 1
        # One number to sort by is quicker than two.
        key = (persons(user) << CELL_BITS) | (np.asarray(i, dtype=np.int64) * side + np.asarray(j, dtype=np.int64))
        rows, points = np.unique(key, return_counts=True)
        return cls(depth, rows >> CELL_BITS, rows & ((1 << CELL_BITS) - 1), points)

    @property
    def side(self) -> int:
        """Cells along each axis of the grid."""
        return 1 << self.depth

    def total(self) -> Floats:
        """(side, side) sum of all persons' shares, without noise."""
        total = np.zeros(self.side**2)
        np.add.at(total, self.cell, self.points / sums(self.user, self.points)[self.user])
        return total.reshape(self.side, self.side)

    def lattice(self, bits: int = LATTICE_BITS) -> Ints:
        """(side, side) sum of all persons' shares in units of `2^-bits`, without noise.

        Adding or removing a person changes this by `2^bits` in L1. Largest remainders go up, lower cells first.
        """
        total = np.zeros(self.side**2, dtype=np.int64)
        np.add.at(total, self.cell, rounded(self.user, self.points, bits))
        return total.reshape(self.side, self.side)


def rounded(user: Ints, points: Ints, bits: int) -> Ints:
    """(k,) shares of persons' points in units of `2^-bits`, largest remainders up, a person's together `2^bits`.

    Of equal remainders the first goes up. A person's result depends on that person's rows alone. Persons (k,) are
    numbered from 0, their rows together and in order; arithmetic is exact for less than `2^(63 - bits)` points each.

    Examples
    --------
    >>> rounded(np.array([0, 0, 0, 1]), np.array([1, 1, 1, 7]), bits=3)
    array([3, 3, 2, 8])
    """
    low, rest = np.divmod(points << bits, sums(user, points)[user])
    missing = 2**bits - sums(user, low)
    # Sorting within persons leaves the column of persons as it is.
    order = np.lexsort([-rest, user])
    start = np.searchsorted(user, np.arange(len(missing)))
    low[order] += np.arange(len(low)) - start[user] < missing[user]
    return low


def sums(user: Ints, numbers: Ints) -> Ints:
    """(persons,) sums of persons' whole numbers."""
    total = np.zeros(int(user.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(total, user, numbers)
    return total
