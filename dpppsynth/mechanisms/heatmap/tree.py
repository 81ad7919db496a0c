"""Pyramid of a square grid (quadtree sums), and the tree of those of its cells that are measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """The measured cells of one level.

    Attributes
    ----------
    cells : (m,) int64 array
        Codes `u * 2^level + v`, in the order they were asked for.
    counts : (m,) float array
        Their noisy masses; 0 in dead cells.
    kept : (k,) int array
        Increasing positions into `cells`.
    alive : (m,) bool array
        False for cells without any grid cell inside the mask: they hold no mass.
    """

    cells: np.ndarray
    counts: np.ndarray
    kept: np.ndarray
    alive: np.ndarray

    @property
    def left_out(self) -> np.ndarray:
        """Increasing positions of the cells that are not kept."""
        return np.delete(np.arange(len(self.cells)), self.kept)


@dataclass(frozen=True, eq=False)
class CellTree:
    """Kept cells and their children, from the first measured level to the grid.

    The cells of each level but the first are those in the kept ones of the level before: with `c = 4**step`, those in
    the k-th kept cell stand at positions ck to ck + c - 1.

    Attributes
    ----------
    first, depth : int
        The first level, and that of the grid, whose side is `2^depth`.
    levels : tuple of TreeLevel
        Of levels `first`, `first + step`, ..., `depth`.
    inside : (side, side) array or None
        Grid cells that may hold mass: a mask, or the area of each that may; None for all.
    step : int
        1 where no level between is skipped.
    """

    first: int
    depth: int
    levels: tuple[TreeLevel, ...]
    inside: np.ndarray | None = None
    step: int = 1

    @property
    def side(self) -> int:
        """Cells of the grid along one axis."""
        return 2**self.depth

    @property
    def numbers(self) -> range:
        """Numbers of the levels."""
        return range(self.first, self.depth + 1, self.step)

    def areas(self) -> list[np.ndarray]:
        """The area of each cell that may hold mass, in grid cells unless `inside` says otherwise: (m,) per level."""
        if self.inside is None:
            each = zip(self.numbers, self.levels, strict=True)
            return [np.full(len(level.cells), 4 ** (self.depth - number)) for number, level in each]
        sums = pyramid(self.inside)[self.first :: self.step]
        return [numbers.ravel()[level.cells] for level, numbers in zip(self.levels, sums, strict=True)]


def grow(
    first: int,
    depth: int,
    w: int,
    read: Callable[[int, np.ndarray], np.ndarray],
    inside: np.ndarray | None = None,
    step: int = 1,
) -> CellTree:
    """Walk down a pyramid: keep the fullest cells of a level, and look at their children on the next.

    All cells of the first level are kept, and on every other level `w` of those looked at, or all where they are fewer.
    Equal counts go by position. How many cells are looked at depends on the arguments alone, never on the counts.

    Parameters
    ----------
    first, depth : int
        The first level, and that of the grid.
    w : int
        Cells to keep per level.
    read : callable
        `read(level, cells)` gives the noisy masses of cells, by their codes `u * 2^level + v`; it is called once
        for each level, in order.
    inside : (side, side) array of bool or float, optional
        Public mask of the grid cells that may hold mass, or the area of each that may. A cell without any counts 0
        whatever `read` says, and is kept only after all others.
    step : int
        Levels from one that is looked at to the next.

    Examples
    --------
    >>> grid = np.array([[9.0, 1.0], [4.0, 4.0]])
    >>> tree = grow(0, 1, 2, lambda level, cells: grid.ravel()[cells] if level else np.array([18.0]))
    >>> [level.kept.tolist() for level in tree.levels]
    [[0], [0, 2]]
    """
    numbers = None if inside is None else pyramid(inside)
    cells, levels = np.arange(4**first), []
    for level in range(first, depth + 1, step):
        alive = np.ones(len(cells), bool) if numbers is None else numbers[level].ravel()[cells] > 0
        counts = np.where(alive, read(level, cells), 0.0)
        # The largest counts, dead cells last and the lower position first among equals.
        kept = np.sort(np.lexsort((-counts, ~alive))[: len(cells) if level == first else w])
        levels.append(TreeLevel(cells, counts, kept, alive))
        cells = _within(cells[kept], level, step)
    return CellTree(first, depth, tuple(levels), inside, step)


def _within(cells: np.ndarray, level: int, step: int) -> np.ndarray:
    """Codes of the cells `step` levels below within each cell, along y first."""
    u, v = np.divmod(cells, 2**level)
    side, below = 2**step, 2 ** (level + step)
    corner = side * (u * below + v)
    return (corner[:, None] + (below * np.arange(side)[:, None] + np.arange(side)).ravel()).ravel()


def pyramid(p: np.ndarray) -> list[np.ndarray]:
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

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, section 3; here without the weights `2^-i`.

    Examples
    --------
    >>> [level.tolist() for level in pyramid(np.array([[4, 3], [2, 1]]))]
    [[[10]], [[4, 3], [2, 1]]]
    """
    levels = [p.astype(np.int64) if p.dtype.kind in "biu" else p]
    while len(levels[-1]) > 1:
        rows = levels[-1][::2] + levels[-1][1::2]
        levels.append(rows[:, ::2] + rows[:, 1::2])
    return levels[::-1]


def spread_evenly(tree: CellTree, masses: Sequence[np.ndarray], areas: Sequence[np.ndarray]) -> np.ndarray:
    """Masses on the grid; that of every left-out cell is spread evenly over its area inside the mask.

    Parameters
    ----------
    tree : CellTree
    masses, areas : sequence of (m,) array
        Of the cells of each level; those of kept cells above the grid do not matter.

    Returns
    -------
    (side, side) array
    """
    grid = np.zeros((2**tree.first, 2**tree.first))
    for level, cells, mass, area in zip(tree.numbers, tree.levels, masses, areas, strict=True):
        if level > tree.first:
            grid = grid.repeat(2**tree.step, axis=0).repeat(2**tree.step, axis=1)
        ended = slice(None) if level == tree.depth else cells.left_out
        grid.reshape(-1)[cells.cells[ended]] = mass[ended] / divisor(area[ended])
    return grid if tree.inside is None else grid * tree.inside


def divisor(shares: np.ndarray) -> np.ndarray:
    """The shares as divisors: 1 in place of 0."""
    return np.where(shares > 0, shares, 1)
