"""Distance shells around the cells of a square grid, by exact squared distances, up to symmetry.

A shell of a cell are all cells at one distance from it. Cells that a turn or reflection of the grid carries into each
other form an orbit: they have shells of the same sizes, so whatever depends on these sizes is needed once an orbit.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local import grid_limits


@dataclass(frozen=True, eq=False)
class Shells:
    """Shells around every cell of a grid of `cells` by `cells` cells; cell (i, j) has number `i*cells + j`.

    Attributes
    ----------
    cells : int
        Cells along a side, at least 1.
    squares : (A,) array of int
        Squared distances that occur between any two cells, in cell sides, ascending from 0.
    rank : (m, m) array of int
        Of the distance between two of the `m = cells^2` cells: its place among `squares`.
    orbit : (m,) array of int
        Orbit of each cell.
    first : (B,) array of int
        A cell of each orbit.
    """

    cells: int
    squares: Ints
    rank: Ints
    orbit: Ints
    first: Ints

    @property
    def size(self) -> int:
        """Number m of cells."""
        return self.cells**2

    @cached_property
    def distances(self) -> Floats:
        """(A,) distances in cell sides."""
        return np.sqrt(self.squares)

    @cached_property
    def beyond(self) -> Ints:
        """(B, A + 1) how many cells are at least as far from a cell of the orbit as each distance; none in the end."""
        width = len(self.squares)
        shell = np.arange(len(self.first))[:, None] * width + self.rank[self.first]
        sizes = np.bincount(shell.ravel(), minlength=len(self.first) * width).reshape(-1, width)
        return np.pad(np.cumsum(sizes[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    @cached_property
    def nearest(self) -> Ints:
        """(B, B) places among `squares` of the least distance between cells of two orbits."""
        order = np.argsort(self.orbit, kind="stable")
        starts = np.searchsorted(self.orbit[order], np.arange(len(self.first)))
        return np.minimum.reduceat(self.rank[self.first][:, order], starts, axis=1)

    @cached_property
    def order(self) -> Ints:
        """(m, m) cells from the nearest to the farthest of each cell; its shells are runs of its row."""
        return np.argsort(self.rank, axis=1, kind="stable")

    def places(self, subsets: npt.NDArray[np.integer]) -> Ints:
        """(n, m) places of the distances between subsets and cells in the list of distances."""
        found = self.rank[subsets[:, 0]]
        for column in subsets.T[1:]:
            found = np.minimum(found, self.rank[column])
        return found

    @cached_property
    def symmetries(self) -> Ints:
        """(8, m) where the turns and reflections of the grid carry each cell."""
        grid = np.arange(self.size).reshape(self.cells, self.cells)
        turned = [np.rot90(grid, turns) for turns in range(4)]
        return np.array([each.ravel() for square in turned for each in (square, square.T)])


def shells(cells: int) -> Shells:
    """Shells of a grid with so many cells along a side, 1 to 64.

    Examples
    --------
    >>> shells(2).squares.tolist(), shells(2).beyond.tolist()
    ([0, 1, 2], [[4, 3, 1, 0]])
    """
    return _shells(whole("cells", cells, 1, most=grid_limits.SHELLS_SIDE))


@lru_cache(maxsize=4)
def _shells(cells: int) -> Shells:
    line = np.arange(cells)
    i, j = np.divmod(np.arange(cells**2), cells)
    squares = np.unique(np.add.outer(line**2, line**2))
    places = np.zeros(squares[-1] + 1, dtype=np.int32)
    places[squares] = np.arange(len(squares))
    rank = places[np.subtract.outer(i, i) ** 2 + np.subtract.outer(j, j) ** 2]
    near = np.sort([np.minimum(i, cells - 1 - i), np.minimum(j, cells - 1 - j)], axis=0)
    _, first, orbit = np.unique(near[0] * cells + near[1], return_index=True, return_inverse=True)
    return Shells(cells, squares, rank, orbit, first)


def mean_distance(cells: int) -> float:
    """Mean distance in cell sides between two distinct cells; 0 where there is only one.

    Examples
    --------
    >>> round(mean_distance(5), 6)
    2.653714
    """
    whole("cells", cells, 1, most=grid_limits.SHELLS_SIDE)
    # Number of occurrences of each offset along one axis.
    often = cells - np.arange(cells)
    often[1:] *= 2
    total = np.outer(often, often) * np.hypot.outer(np.arange(cells), np.arange(cells))
    return math.fsum(total.ravel()) / max(1, cells**2 * (cells**2 - 1))


def all_subsets(m: int, k: int, most: int) -> npt.NDArray[np.int16]:
    """(C(m, k), k) all subsets of k of m cells in lexicographic order; InputError where there are more than `most`."""
    number = math.comb(m, k)
    if number > most:
        msg = (
            f"subset: {k} of {m} cells have C({m}, {k}) = {shown(number)} subsets, and at most {most} can be listed; "
            "take a larger epsilon, a smaller subset, or fewer cells."
        )
        raise InputError(msg)
    flat = itertools.chain.from_iterable(itertools.combinations(range(m), k))
    return np.fromiter(flat, dtype=np.int16, count=number * k).reshape(number, k)
