"""Uniform spreading of the mass of an unmeasured cell over its area inside the mask."""

from collections.abc import Sequence

import numpy as np

from dpppsynth.mechanisms.heatmap.cell_tree import CellTree


def spread_evenly(tree: CellTree, masses: Sequence[np.ndarray], areas: Sequence[np.ndarray]) -> np.ndarray:
    """The grid of masses: that of every left-out cell is uniform over its area inside the mask.

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
