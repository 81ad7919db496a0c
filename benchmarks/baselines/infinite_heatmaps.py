"""Heat maps and earth movers on all of the plane, for which theorems on heat maps are proved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import real_array
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.grid_smoothing import MOST_CELLS, Widths
from dpppsynth.spatial.minimum_cost_flow import grid_arcs, grid_masses, minimum_cost_flow

# Standard deviations beyond which a Gaussian has less than 2e-17 of its mass.
REACH = 8.5
# Weight of mass without a counterpart in the norm: the diameter of the unit square.
DIAMETER = 2.0


@dataclass(frozen=True, eq=False)
class InfiniteHeatmap:
    """Heat map on as many cells around the grid as the kernel reaches.

    Attributes
    ----------
    values : (a + 2 m, b + 2 n) array
    offset : (int, int)
        Margins m and n: cell (i, j) of the grid is `values[i + m, j + n]`.
    """

    values: Floats
    offset: tuple[int, int]


def infinite_heatmap(p: npt.ArrayLike, sigma: Widths) -> InfiniteHeatmap:
    """Heat map on a grid that goes on beyond the unit square on all sides, where every cell spreads in the same way.

    Bounds on how maps change with the earth mover's distance are proved for these maps: with masses that add up to 1,
    `EMD(H_p, H_q) <= EMD(p, q)`, `KL(H_p || H_q) <= EMD(p, q) / (2 sigma^2)` and
    `SIM(H_p, H_q) >= 1 - sqrt(EMD(p, q)) / (2 sigma)`.

    Parameters
    ----------
    p : array_like, shape (a, b)
        Non-negative masses; cell (i, j) lies at (i / a, j / b).
    sigma : float or (float, float)
        Standard deviation of the kernel, in units of the unit square, or one along either axis.

    Returns
    -------
    InfiniteHeatmap
        Less than 1e-15 of the mass lies beyond its cells.

    Raises
    ------
    InputError
        A mass is negative or not finite, p is no two-dimensional array, or `sigma` is so large that the map would have
        more than 67 million cells.

    Examples
    --------
    >>> found = infinite_heatmap([[1, 0], [0, 0]], sigma=0.1)
    >>> found.values.shape, found.offset
    ((6, 6), (2, 2))
    """
    masses = grid_masses(p, "p")
    widths = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    reach = [max(1.0, REACH * width * side) for side, width in zip(masses.shape, widths, strict=True)]
    if math.prod(side + 2 * margin for side, margin in zip(masses.shape, reach, strict=True)) > MOST_CELLS:
        msg = f"sigma: reaches so far that the map would have more than {MOST_CELLS} cells; lower it."
        raise InputError(msg)
    along, across = (math.ceil(margin) for margin in reach)
    first = _wide_kernel(masses.shape[0], widths[0], along)
    second = _wide_kernel(masses.shape[1], widths[1], across)
    return InfiniteHeatmap(first @ masses @ second.T, (along, across))


def _wide_kernel(side: int, sigma: float, margin: int) -> Floats:
    """(side + 2 margin, side) shares of the mass of the middle cells that cells receive."""
    target = np.arange(-margin, side + margin)
    total = _density(np.arange(-margin, margin + 1), side, sigma).sum()
    return _density(target[:, None] - np.arange(side), side, sigma) / total


def _density(steps: npt.NDArray[np.int64], side: int, sigma: float) -> Floats:
    """Kernel at a distance of so many cells; far ones are 0 by underflow."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-0.5 * (steps / side / sigma) ** 2)


def emd_norm(z: npt.ArrayLike) -> float:
    """Earth mover's norm of signed masses on a grid over the unit square.

    The least `EMD(p, q) + 2 |r|_1` over all ways to write `z = p - q + r` with p, q >= 0 of equal mass: what has a
    counterpart is moved to it, and the rest is paid for at the diameter of the square. It is `EMD(p, q)` for a
    difference of distributions p - q, and `2 z.sum()` for z >= 0.

    Parameters
    ----------
    z : array_like, shape (a, b)
        Finite numbers of any sign.

    Raises
    ------
    InputError
        z is not a two-dimensional array of finite numbers, or their absolute values have no finite sum.

    Examples
    --------
    >>> emd_norm([[1, 0], [0, -1]])
    1.0
    >>> emd_norm([[3, 0], [0, 0]])
    6.0
    """
    masses = real_array(z)
    with np.errstate(over="ignore", invalid="ignore"):
        if masses is None or masses.ndim != 2 or not masses.size or not np.isfinite(np.abs(masses).sum()):
            msg = (
                "z: must be a two-dimensional array of finite numbers, with a finite sum of absolute values; a single "
                "row is [[1, -1]]."
            )
            raise InputError(msg)
    (a, b), cells = masses.shape, np.arange(masses.size)
    tail, head, length = grid_arcs((a, b), (b, a))
    # Mass without a counterpart comes from one more node, at the same distance from all cells.
    tail, head = np.concatenate([tail, cells]), np.concatenate([head, np.full(a * b, a * b)])
    length = np.concatenate([length, np.full(a * b, DIAMETER * a * b)])
    return minimum_cost_flow(tail, head, length, np.append(masses, -masses.sum())) / (a * b)
