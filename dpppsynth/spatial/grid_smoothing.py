"""Gaussian smoothing of a distribution on a grid into a heat map, with the mass of every cell preserved.

The library's usual filters lose mass at borders or fold it back there. Here each cell's mass spreads over the cells of
the map alone, in proportion to the kernel, so a map has the mass of what it shows. Smoothing a private distribution is
post-processing: the map is as private as that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.minimum_cost_flow import grid_masses

# About five cells of a 256 x 256 grid.
SIGMA = 0.02
UNITS = "it is a length in the unit square that the grid covers; 0.02 is a common choice"
# Standard deviations beyond which a Gaussian has less than 2e-17 of its mass.
REACH = 8.5
# Cells of a padded map, or of a kernel: half a gigabyte.
MOST_CELLS = 2**26

Mask = npt.NDArray[np.bool_]
Widths = float | tuple[float, float]


def gaussian_kernel(side: int, sigma: float) -> Floats:
    """Matrix that smooths an axis: column b has the shares of b's mass that cells 0 ... side - 1 receive.

    Parameters
    ----------
    side : int
        Number of cells, 1/side apart; at most 8192.
    sigma : float
        Standard deviation, in units of the whole axis.

    Returns
    -------
    (side, side) array
        Columns add up to 1: `exp(-((a - b) / side)^2 / (2 sigma^2))`, divided by its sum over a.

    Raises
    ------
    InputError
        `side` is no whole number from 1 to 8192, or `sigma` not positive and finite.

    Examples
    --------
    >>> gaussian_kernel(2, 0.5).round(6)
    array([[0.622459, 0.377541],
           [0.377541, 0.622459]])
    """
    bell = _bell(whole("side", side, 1, most=math.isqrt(MOST_CELLS)), positive("sigma", sigma, remedy=UNITS))
    return bell / bell.sum(axis=0)


def gaussian_heatmap(p: npt.ArrayLike, sigma: Widths = SIGMA, *, inside: npt.ArrayLike | None = None) -> Floats:
    """Heat map of masses on a grid over the unit square, with the same total mass.

    Parameters
    ----------
    p : array_like, shape (a, b)
        Non-negative masses; cell (i, j) lies at (i / a, j / b).
    sigma : float or (float, float)
        Standard deviation of the kernel, in units of the unit square; towards 0 the map becomes p itself. Two numbers
        hold along the first and the second axis, where the square stands for a rectangle.
    inside : array_like of bool, shape (a, b), optional
        Cells of the map, where it is not the whole square: mass spreads over them alone, straight across what lies
        between them. Outside them p has no mass.

    Returns
    -------
    (a, b) array
        Divide by its maximum, transpose and draw with the origin below for a picture.

    Raises
    ------
    InputError
        A mass is negative, not finite or outside, a shape is wrong or `sigma` not positive and finite.

    References
    ----------
    Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI 37.

    Examples
    --------
    >>> gaussian_heatmap([[1, 0], [0, 0]], sigma=0.5).round(6)
    array([[0.387456, 0.235004],
           [0.235004, 0.142537]])
    """
    masses = grid_masses(p, "p")
    first, second = (_bell(side, width) for side, width in zip(masses.shape, _widths(sigma), strict=True))
    if inside is None:
        return (first / first.sum(axis=0)) @ masses @ (second / second.sum(axis=0)).T
    mask = _mask(inside, masses)
    # Unscaled mass that each inside cell spreads, itself included: never below 1, however narrow the kernel.
    spread = first.T @ mask.astype(np.float64) @ second
    scaled = np.divide(masses, spread, out=np.zeros_like(masses), where=mask)
    return np.where(mask, first @ scaled @ second.T, 0.0)


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
        A mass is negative or not finite, p is no two-dimensional array, or `sigma` is not positive, or so large that
        the map would have more than 67 million cells.

    Examples
    --------
    >>> found = infinite_heatmap([[1, 0], [0, 0]], sigma=0.1)
    >>> found.values.shape, found.offset
    ((6, 6), (2, 2))
    """
    masses = grid_masses(p, "p")
    widths = _widths(sigma)
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


def _bell(side: int, sigma: float) -> Floats:
    """(side, side) kernel between the cells of an axis, 1 on the diagonal."""
    cell = np.arange(side)
    return _density(cell[:, None] - cell, side, sigma)


def _density(steps: npt.NDArray[np.int64], side: int, sigma: float) -> Floats:
    """Kernel at a distance of so many cells; far ones are 0 by underflow."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-0.5 * (steps / side / sigma) ** 2)


def _widths(sigma: Widths) -> tuple[float, float]:
    """Standard deviations along the two axes."""
    given = sigma if isinstance(sigma, tuple | list) and len(sigma) == 2 else (sigma, sigma)
    first, second = (positive("sigma", each, remedy=UNITS) for each in given)
    return first, second


def _mask(inside: npt.ArrayLike, masses: Floats) -> Mask:
    mask = plain_array(inside)
    if mask is None or mask.dtype != np.bool_ or mask.shape != masses.shape:
        msg = f"inside: must be an array of True and False of the shape of p, {masses.shape}."
        raise InputError(msg)
    if masses[~mask].any():
        msg = "p: has mass in cells that are not inside; set it to zero there first."
        raise InputError(msg)
    return mask
