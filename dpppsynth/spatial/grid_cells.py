"""Cells of regular grids that hold points, and the order of points along Hilbert's curve."""

import numpy as np

from dpppsynth.core.types import Floats, Ints

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


# The curve visits 4^BITS squares.
BITS = 16


def hilbert_order(xy: Floats) -> Ints:
    """(n,) numbers of points (n, 2) in the order of Hilbert's curve through their bounding box.

    Examples
    --------
    >>> hilbert_order(np.array([[0, 0], [0, 3.0], [3.0, 3.0], [3.0, 0]])).tolist()
    [0, 1, 2, 3]
    """
    low = xy.min(axis=0, initial=np.inf)
    side = (xy - low).max(initial=0.0) or 1.0
    x, y = np.minimum((xy - low) / side * 2**BITS, 2**BITS - 1).astype(np.int64).T
    met = np.zeros(len(xy), dtype=np.int64)
    for bit in 2 ** np.arange(BITS)[::-1]:
        right, upper = (x & bit) > 0, (y & bit) > 0
        met = 4 * met + ((3 * right) ^ upper)
        # The first and the last quarter hold the curve turned over.
        turned = right & ~upper
        x, y = (np.where(turned, 2**BITS - 1 - each, each) for each in (x, y))
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.argsort(met, kind="stable")
