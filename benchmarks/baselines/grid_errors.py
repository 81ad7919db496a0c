"""Error formulas of range queries: noise of the reports, sampling of users, and non-uniformity inside cells.

The variances suppose uncorrelated estimates, which hashing and unary reports give; randomised response has negative
correlations, so a query over many of its cells is less noisy than said here.
"""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import finite, instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, checked_queries, reals, users
from dpppsynth.mechanisms.local.grids.sides import report_signal

LEAST_SIDE = 1e-6


def report_variance(epsilon: float) -> float:
    """`4 e^eps / (e^eps - 1)^2`: variance of an estimated count per report of somebody else, at the best hash range.

    Examples
    --------
    >>> round(report_variance(1.0), 6)
    3.682694
    """
    return 4 / report_signal(epsilon) ** 2


def noise_variance(grid: Rectangles, rectangles: Any, variances: Any, *, scale: float = 1.0) -> Floats:
    """(R,) variance of answers that stems from the reports' noise: `scale^2 sum_k w_k^2 Var_k`, w_k the overlaps.

    Parameters
    ----------
    grid : Rectangles
    rectangles : (R, 4) array
    variances : (T,) array
        Of the cells' estimated counts, as the frequency oracle has them.
    scale : float
        n over the number of reports, where the answers speak of all n users.
    """
    cells, scale = _grid(grid), positive("scale", scale, most=1e30)
    return scale**2 * _quadratic(cells, rectangles, _not_negative("variances", variances, len(cells)))


def sampling_variance(grid: Rectangles, rectangles: Any, frequencies: Any, *, n: int, reports: int) -> Floats:
    """(R,) variance of answers that stems from the random choice of `reports` among n users.

    It is `n^2 / reports * (n - reports) / (n - 1)` times the variance of a user's overlap; `f (1 - f)` for one cell.

    Parameters
    ----------
    grid : Rectangles
    rectangles : (R, 4) array
    frequencies : (T,) array
        Shares of all users in the cells.
    n, reports : int
        At least one report, at most n.
    """
    cells, n, reports = _grid(grid), users("n", n), users("reports", reports)
    if reports > n:
        msg = "reports: there cannot be more of them than users, n."
        raise InputError(msg)
    shares = _not_negative("frequencies", frequencies, len(cells))
    spread = _quadratic(cells, rectangles, shares) - cells.query(shares, rectangles) ** 2
    return n**2 / reports * (n - reports) / max(1, n - 1) * np.maximum(spread, 0.0)


def non_uniformity_bound(grid: Rectangles, rectangles: Any, counts: Any) -> Floats:
    """(R,) largest error of answers from the true counts (T,) of the cells: `sum count * max(w, 1 - w)` over cut cells.

    Zero for rectangles that are made of whole cells.
    """
    cells, corners = _grid(grid), checked_queries(rectangles)
    mass, bound = _not_negative("counts", counts, len(cells)), np.zeros(len(corners))
    for part, w in cells.batches(corners):
        bound[part] = np.where((w > 0) & (w < 1), np.maximum(w, 1 - w), 0.0) @ mass
    return bound


def side_objective(side: float, epsilon: float, n: int, alpha: float) -> float:
    """Square error of a query over half the width and height: `g^2 e^eps / (n (e^eps - 1)^2) + 4 alpha^2 / g^2`.

    In shares of the users. `ideal_side` is where it is least, and there both terms are equal.
    """
    side, alpha = finite("side", side, least=LEAST_SIDE), positive("alpha", alpha)
    noise = side * side * report_variance(epsilon) / (4 * users("n", n))
    return noise + 4 * (alpha / side) * (alpha / side)


def _quadratic(grid: Rectangles, rectangles: Any, weights: Floats) -> Floats:
    """(R,) `sum_k w_k^2 weight_k` over the overlaps w of each rectangle."""
    corners = checked_queries(rectangles)
    sums = np.zeros(len(corners))
    for part, w in grid.batches(corners):
        sums[part] = w**2 @ weights
    return sums


def _grid(grid: Any) -> Rectangles:
    return instance("grid", grid, Rectangles, "uniform_grid() makes one")


def _not_negative(name: str, values: Any, cells: int) -> Floats:
    numbers = reals(name, values, (cells,))
    if (numbers < 0).any():
        msg = f"{name}: must not be negative."
        raise InputError(msg)
    return numbers
