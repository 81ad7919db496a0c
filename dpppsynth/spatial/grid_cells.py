"""Cells of regular grids that hold points, without a mesh."""

import numpy as np

from dpppsynth.core.arrays import Floats, Ints

Bounds = tuple[float, float, float, float]


def cell_places(xy: Floats, bounds: Bounds, shape: tuple[int, int]) -> Ints:
    """(n, 2) places (i, j) of the cells that hold points (n, 2), in a grid of (nx, ny) cells over a box.

    A border belongs to the cell right and above, the box's own to the last cells; points outside take the nearest cell.
    """
    return np.clip(np.floor(in_cells(xy, bounds, shape)).astype(np.int64), 0, np.array(shape) - 1)


def in_cells(xy: Floats, bounds: Bounds, shape: tuple[int, int]) -> Floats:
    """(n, 2) coordinates in cells of the grid."""
    x0, y0, x1, y1 = bounds
    return (xy - np.array([x0, y0])) / np.array([x1 - x0, y1 - y0]) * np.array(shape)
