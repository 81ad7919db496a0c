"""Transport distances: exact Wasserstein-2 of histograms on one grid, and sliced Wasserstein-1 of sets of points."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import plain_array, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.minimum_cost_flow import Transshipment, unit_pair

# Arcs that a flow may have: about 125 x 125 cells, half a minute.
MOST_ARCS = 4_000_000
# What rounding may take from a cost, in squared sides of a cell: prices are as large as the squared extent of a grid.
ROUNDING = 1e-9


def wasserstein2(p: npt.ArrayLike, q: npt.ArrayLike, *, unit: Any = 1.0) -> float:
    """Exact Wasserstein-2 distance of two histograms on a grid: the root of the least mean squared distance moved.

    Parameters
    ----------
    p, q : array_like, shape (nx, ny)
        Non-negative masses; each is divided by its sum.
    unit : float or (float, float)
        Side of a cell, or its sides along the first and the second axis; the result has the same unit. By default
        distances are in cells.

    Raises
    ------
    InputError
        Shapes differ, a mass is negative or not finite, an array has no mass, `unit` breaks its rule, or there are more
        than about 125 x 125 cells.

    Notes
    -----
    About 0.01 s for 20 x 20 cells, 0.2 s for 50 x 50 and 1 to 6 s for 100 x 100. The square of the result is rounded:
    distances below 1e-8 of the grid's extent are noise, though equal histograms have distance 0.

    References
    ----------
    Auricchio, Bassetti, Gualandi and Veneroni (2018), Computing Kantorovich-Wasserstein distances on d-dimensional
    histograms using (d+1)-partite graphs, NeurIPS 31; Flamary et al. (2021), POT: Python Optimal Transport, JMLR
    22(78), for the solver.

    Examples
    --------
    >>> round(wasserstein2([[1, 0], [0, 0]], [[0, 0], [0, 1]], unit=3.0), 6)
    4.242641
    """
    one, other = unit_pair(p, q)
    sides = cell_sides(unit)
    if sum(one.shape) * one.size > MOST_ARCS:
        cells = f"{one.shape[0]} x {one.shape[1]} cells"
        msg = f"p, q: {cells} are too many for the exact distance; take coarser ones."
        raise InputError(msg)
    if np.array_equal(one, other):
        return 0.0
    squares = squared_distances(one.shape, sides)
    return float(sides[0] * math.sqrt(layers(one, other, *squares).least_cost()))


def layers(p: Floats, q: Floats, along_x: Floats, along_y: Floats) -> Transshipment:
    """Transport of p (nx, ny) to q along the first axis and then along the second, through cells in between.

    Mass of cell (x, y) goes to (x', y) in the middle and from there to (x', y'). The middle cells have as much room as
    can ever pass: what row and column both have. Moves along the axes cost (nx, nx) and (ny, ny).
    """
    (nx, ny), n = p.shape, p.size
    cell = np.arange(n).reshape(nx, ny)
    x, y = np.indices((nx, ny))
    # Nodes are the middle cells, those that p lies in and those that q lies in.
    first = np.broadcast_arrays(n + cell[None], cell[:, None, :], along_x[:, x])
    second = np.broadcast_arrays(cell[..., None], 2 * n + cell[:, None, :], along_y[y])
    tail, head, cost = (np.concatenate([part.ravel() for part in parts]) for parts in zip(first, second, strict=True))
    sent, received, room = np.zeros((3, 3, n))
    sent[1], received[2] = p.ravel(), q.ravel()
    room[0] = np.minimum(q.sum(axis=1)[:, None], p.sum(axis=0)[None, :]).ravel()
    return Transshipment(tail, head, cost, sent.ravel(), received.ravel(), room.ravel(), rounding=ROUNDING)


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


MOST_DIRECTIONS = 100_000


def sliced_wasserstein_points(one: npt.ArrayLike, other: npt.ArrayLike, *, directions: int = 180) -> float:
    """Sliced Wasserstein-1 distance of two sets of points, (n, 2) and (m, 2).

    The mean of the distances of their projections over all directions: 2 / pi for a shift by 1. Points of one set have
    equal masses that sum to 1. Directions are equispaced angles in a half-turn, whose error is about
    `1 / directions^2` of the result. InputError where there are no points, or a coordinate is not finite.

    References
    ----------
    Bonneel, Rabin, Peyre and Pfister (2015), Sliced and Radon Wasserstein barycenters of measures, Journal of
    Mathematical Imaging and Vision 51, 22-45; Nadjahi et al. (2020), Statistical and topological properties of sliced
    probability divergences, NeurIPS 33, for the uniform law of directions.

    Examples
    --------
    >>> round(sliced_wasserstein_points([[0, 0], [5, 5]], [[3, 4], [8, 9]]), 3)
    3.183
    """
    from scipy.stats import wasserstein_distance

    a, b = _points("one", one), _points("other", other)
    angle = (np.arange(whole("directions", directions, 1, most=MOST_DIRECTIONS)) + 0.5) * (math.pi / directions)
    across = np.column_stack([np.cos(angle), np.sin(angle)])
    # The other half-turn projects on the same lines.
    return float(np.mean([wasserstein_distance(a @ line, b @ line) for line in across]))


def _points(name: str, value: Any) -> Floats:
    array = plain_array(value)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not len(array) or array.dtype.kind not in "iuf":
        msg = f"{name}: must be the coordinates of points, an array of shape (n, 2) with at least one row."
        raise InputError(msg)
    if not (np.abs(array.astype(float)) <= LONGEST).all():
        msg = f"{name}: coordinates must be finite and at most {LONGEST:g}."
        raise InputError(msg)
    return array.astype(float)
