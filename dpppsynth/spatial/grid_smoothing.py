"""Gaussian smoothing of a distribution on a grid into a heat map, with the mass of every cell preserved.

The library's usual filters lose mass at borders or fold it back there. Here each cell's mass spreads over the cells of
the map alone, in proportion to the kernel, so a map has the mass of what it shows. Smoothing a private distribution is
post-processing: the map is as private as that.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import plain_array, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.minimum_cost_flow import grid_masses

# About five cells of a 256 x 256 grid.
SIGMA = 0.02
UNITS = "it is a length in the unit square that the grid covers; 0.02 is a common choice"
# Entries of a kernel: half a gigabyte.
MOST_CELLS = 2**26

Mask = npt.NDArray[np.bool_]
Widths = float | tuple[float, float]


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


def _bell(side: int, sigma: float) -> Floats:
    """(side, side) kernel between the cells of an axis, 1 on the diagonal; far ones are 0 by underflow."""
    cell = np.arange(side)
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-0.5 * ((cell[:, None] - cell) / side / sigma) ** 2)


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
