"""Private histograms of published papers: noised cells that settle where points are, as masses of pixels.

All take counts (P, P) of the pixels of a window's box, P a power of two, a budget, the L1 sensitivity of counts (one
where a point comes or goes, two where it moves) and a generator, and give noised `Cells`. The number of points is
known to all of them, also where it is secret. Noise is in floating point: nothing drawn here may be released.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import dctn, idctn

from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.simplex import norm_mul, norm_sub

# Constants of Qardaji et al.: points and unit of epsilon of a cell, of one level and of the finer of two, and the
# least side of the coarser one.
ONE_LEVEL, FINER, LEAST = 10.0, 5.0, 10


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell (P, P) of every pixel, by number, and noised numbers of points (K,) of the cells, some of them negative."""

    labels: Ints
    masses: Floats

    def density(self, inside: Floats, total: float, *, clipped: bool) -> Floats:
        """(P, P) masses of pixels, which add up to one and are even within cells.

        Parameters
        ----------
        inside : (P, P) array
            Areas of the pixels within the window.
        total : float
            Number of points.
        clipped : bool
            Negative masses are set to zero and the others scaled; otherwise all are shifted by one number until those
            that stay positive add up to `total`.
        """
        area = np.bincount(self.labels.ravel(), inside.ravel(), len(self.masses))
        settle = norm_mul if clipped else norm_sub
        mass = settle(self.masses, total, inside=area > 0)
        per_area = np.divide(mass, area, out=np.zeros(len(mass)), where=area > 0)
        density = per_area[self.labels] * inside
        return np.asarray(density / density.sum())


def even_parts(pixels: int, parts: int) -> Ints:
    """(pixels,) part of every pixel when an axis is cut into parts as even as pixels allow."""
    return np.arange(pixels) * parts // pixels


def grid_labels(pixels: int, side: int) -> Ints:
    """(pixels, pixels) cells of a grid, row by row."""
    part = even_parts(pixels, side)
    return part[:, None] * side + part


def blocks(counts: Floats, side: int) -> Floats:
    """(side, side) sums of equal blocks, side a divisor of the number of pixels along an axis."""
    size = len(counts) // side
    return np.asarray(counts.reshape(side, size, side, size).sum(axis=(1, 3)))


def totals(labels: Ints, counts: Floats, cells: int) -> Floats:
    """(cells,) sums of counts."""
    return np.bincount(labels.ravel(), counts.ravel(), cells)


def laplace_histogram(
    counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int
) -> Cells:
    """Counts of a grid with Laplace noise: Dwork, McSherry, Nissim & Smith (2006), TCC."""
    noisy = blocks(counts, side) + rng.laplace(0, sensitivity / epsilon, (side, side))
    return Cells(grid_labels(len(counts), side), noisy.ravel())


def uniform_grid(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator) -> Cells:
    """Uniform grid UG, with sqrt(n eps / 10) cells along each axis: Qardaji, Yang & Li (2013), ICDE."""
    side = min(len(counts), math.ceil(math.sqrt(counts.sum() * epsilon / (ONE_LEVEL * sensitivity))))
    labels = grid_labels(len(counts), side)
    return Cells(labels, totals(labels, counts, side**2) + rng.laplace(0, sensitivity / epsilon, side**2))


def adaptive_grid(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator) -> Cells:
    """Adaptive grid AG: cells of a coarse grid are cut by their noised counts, and both levels made to agree.

    Qardaji, Yang & Li (2013), ICDE, with half of the budget for each level.
    """
    pixels, half = len(counts), epsilon / (2 * sensitivity)
    side = max(LEAST, math.ceil(math.sqrt(counts.sum() * epsilon / (ONE_LEVEL * sensitivity)) / 4))
    side = min(side, pixels)
    coarse = grid_labels(pixels, side)
    above = totals(coarse, counts, side**2) + rng.laplace(0, 1 / half, side**2)
    start = np.searchsorted(even_parts(pixels, side), np.arange(side + 1))
    cuts = np.maximum(1, np.ceil(np.sqrt(np.maximum(above, 0) * half / FINER))).astype(int)
    cuts = np.minimum(cuts, np.diff(start).min())
    fine, pieces = _cut(coarse, start, cuts), cuts**2
    cell = np.repeat(np.arange(side**2), pieces)
    below = totals(fine, counts, len(cell)) + rng.laplace(0, 1 / half, len(cell))
    sums = np.bincount(cell, below)
    # Both levels have the same noise: a sum over pieces has the variance of as many counts.
    agreed = (pieces * above + sums) / (pieces + 1)
    return Cells(fine, below + ((agreed - sums) / pieces)[cell])


def _cut(coarse: Ints, start: Ints, cuts: Ints) -> Ints:
    """(P, P) numbers of pieces of a grid's cells, which are cut into `cuts` parts (K,) along each axis."""
    size, axis = np.diff(start), even_parts(len(coarse), len(start) - 1)
    place, length, parts = np.arange(len(coarse)) - start[axis], size[axis], cuts[coarse]
    i, j = place[:, None] * parts // length[:, None], place * parts // length
    return np.asarray(np.cumsum(cuts**2)[coarse] - parts**2 + i * parts + j)


def privelet(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Noised Haar wavelets of a grid, Privelet: Xiao, Wang & Gehrke (2011), IEEE TKDE 23(8)."""
    transform, weight = haar(side)
    scale = sensitivity * (1 + math.log2(side)) ** 2 / (epsilon * np.outer(weight, weight))
    wavelets = transform @ blocks(counts, side) @ transform.T + rng.laplace(0, scale)
    back = np.linalg.inv(transform)
    return Cells(grid_labels(len(counts), side), (back @ wavelets @ back.T).ravel())


@lru_cache
def haar(side: int) -> tuple[Floats, Floats]:
    """Transform (side, side) to the mean and the half differences of means of halves, and weights (side,) of its rows.

    A unit of a count changes as many wavelets as there are levels, and the mean, each by one over its weight.
    """
    rows, weights = [np.full(side, 1 / side)], [side]
    size = side
    while size > 1:
        for first in range(0, side, size):
            row = np.zeros(side)
            row[first : first + size // 2], row[first + size // 2 : first + size] = 1 / size, -1 / size
            rows.append(row)
            weights.append(size)
        size //= 2
    return np.array(rows), np.array(weights, dtype=float)


def fourier(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Noised cosine coefficients of low frequency, `side` along each axis.

    Barak et al. (2007), PODS, noise coefficients instead of counts; Rastogi & Nath (2010), SIGMOD, keep the first ones.
    """
    waves = dctn(counts, norm="ortho")[:side, :side]
    noisy = np.zeros(counts.shape)
    noisy[:side, :side] = waves + rng.laplace(0, sensitivity * wave_sum(len(counts), side) / epsilon, (side, side))
    # Waves are smooth on cells that are an eighth as wide as the shortest, or less.
    shown = min(len(counts), 8 * 2 ** math.ceil(math.log2(side)))
    return Cells(grid_labels(len(counts), shown), blocks(idctn(noisy, norm="ortho"), shown).ravel())


def wave_sum(pixels: int, side: int) -> float:
    """Most that absolute values of the first orthonormal cosine waves, side along each axis, add up to at a pixel."""
    return (1 + math.sqrt(2) * (side - 1)) ** 2 / pixels
