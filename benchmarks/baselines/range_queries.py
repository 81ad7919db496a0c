"""Range queries: random rectangles, answers, and their errors.

Answers that know nothing of the points stand beside: at small areas the error hardly tells them from good ones.
"""

import math
from typing import Any

import numpy as np

from dpppsynth.core.arguments import one_of, positive, real, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.rectangles import (
    LARGEST,
    MOST_CELLS,
    checked_bounds,
    checked_queries,
    reals,
    uniform_grid,
    users,
)

# Range of the sanity bound: values outside change no error that a float can hold.
BOUNDS = 1e-100, LARGEST
SHAPES = ("proportional", "random")


def query_workload(
    bounds: Any, area_share: float, count: int = 500, *, shape: str = "proportional", rng: RngLike = None
) -> Floats:
    """(count, 4) rectangles of one area, at uniform places inside the bounds.

    Parameters
    ----------
    bounds : (float, float, float, float)
        x0, y0, x1, y1.
    area_share : float
        Area of a query over that of the bounds, above 0 and at most 1.
    count : int
    shape : {"proportional", "random"}
        Of the same proportions as the bounds, or of a width between `area_share` and 1 of theirs, uniformly drawn.
    rng : optional
        Give one, and take the same workload for all mechanisms that are compared.

    Examples
    --------
    >>> query_workload((0, 0, 2, 1), 1.0, 1, rng=1).tolist()
    [[0.0, 0.0, 2.0, 1.0]]
    """
    x0, y0, x1, y1 = checked_bounds(bounds)
    rho, count = _share(area_share), whole("count", count, 1, most=MOST_CELLS)
    one_of("shape", shape, SHAPES)
    uniform = generator(rng)
    wide = np.full(count, math.sqrt(rho)) if shape == "proportional" else rho + (1 - rho) * uniform.random(count)
    width, height = wide * (x1 - x0), np.minimum(1.0, rho / wide) * (y1 - y0)
    left = x0 + uniform.random(count) * (x1 - x0 - width)
    low = y0 + uniform.random(count) * (y1 - y0 - height)
    # Rounding must not carry a corner past the border.
    return np.minimum(np.column_stack([left, low, left + width, low + height]), (x1, y1, x1, y1))


def true_answers(xy: Any, rectangles: Any, bounds: Any) -> Ints:
    """(R,) numbers of points (n, 2) in rectangles (R, 4), half-open as cells are, closed at the border of the bounds.

    Work is the number of points in the rectangles' vertical strips. Rectangles without area hold no points.

    Raises
    ------
    InputError
        When points lie outside the bounds.
    """
    grid, corners = uniform_grid(bounds, 1, 1), checked_queries(rectangles)
    points = reals("xy", xy, (None, 2))
    grid.locate(points)
    points = points[np.argsort(points[:, 0])]
    _, _, right, top = grid.bounds
    # A closed border is the next number, excluded.
    ends = np.where(corners[:, 2:] >= (right, top), np.inf, corners[:, 2:])
    first = np.searchsorted(points[:, 0], corners[:, 0], side="left")
    last = np.searchsorted(points[:, 0], ends[:, 0], side="left")
    solid = (corners[:, :2] < corners[:, 2:]).all(axis=1)
    answers = np.zeros(len(corners), dtype=np.int64)
    for query in np.flatnonzero(solid):
        y = points[first[query] : last[query], 1]
        answers[query] = np.count_nonzero((y >= corners[query, 1]) & (y < ends[query, 1]))
    return answers


def average_query_error(truth: Any, answers: Any, n: int, bound: float = 0.02) -> float:
    """Average of `|truth - answer| / max(truth, bound n)` over a workload.

    Parameters
    ----------
    truth, answers : (R,) arrays
        Numbers of users; the truth over all n of them, also where only some reported.
    n : int
        Number of all users.
    bound : float
        Share of the users below which an error is measured against that share.

    Notes
    -----
    Where answers are far below the bound, answering zero scores close to their ratio to it: see `zero_answers_error`.

    Examples
    --------
    >>> round(average_query_error([100, 5, 0], [90, 15, 0], 1000), 12)
    0.2
    """
    true = reals("truth", truth, (None,))
    found = reals("answers", answers, (len(true),))
    if not len(true) or (true < 0).any():
        msg = "truth: must be numbers of users, none negative, and at least one."
        raise InputError(msg)
    least = np.clip(positive("bound", bound, remedy="0.02 is usual"), *BOUNDS) * users("n", n)
    return float(np.mean(np.abs(true - found) / np.maximum(true, least)))


def zero_answers_error(truth: Any, n: int, bound: float = 0.02) -> float:
    """Average query error of answering 0 to everything, the reference for all others."""
    return average_query_error(truth, np.zeros(np.shape(reals("truth", truth, (None,)))), n, bound)


def constant_density_answers(rectangles: Any, bounds: Any, n: int) -> Floats:
    """(R,) answers under a uniform density of total n, the baseline without data."""
    return uniform_grid(bounds, 1, 1).query([users("n", n)], rectangles)


def _share(area_share: Any) -> float:
    rho = real(area_share)
    if rho is None or not 1e-30 <= rho <= 1:
        msg = f"area_share: must lie in (0, 1], got {shown(area_share)}; 0.01 is one hundredth of the area."
        raise InputError(msg)
    return float(rho)
