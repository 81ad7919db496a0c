"""Shares of the cells of a quadtree from estimates on all its levels, by Haar contrasts.

A cell's four children hold its share, and three contrasts tell how: left against right, low against high, and one
diagonal against the other. Every level at least as fine as the children estimates them without bias; estimates of all
such levels are averaged by their precision. From the coarsest cell on contrasts are then shrunk: of all cells of a
level a share w_k has contrasts of standard deviation t_k times the cell's own share, and these shares are found by
maximising the likelihood (empirical Bayes). What is left below zero is laid on the other children.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.core.types import Floats

# Standard deviations of contrasts, in shares of the cell, and steps towards how common each is.
SPREADS = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0])
STEPS, RAREST = 30, 1e-6


class LevelShares(NamedTuple):
    """Unbiased estimates of the shares of one level's cells.

    Attributes
    ----------
    shares : (side, side) array
    noise : float
        Variance of one of them, for a cell that is nearly empty.
    own : float
        What a cell's share adds to its variance, times the share: of its own reports, and of who reports here.
    """

    shares: Floats
    noise: float
    own: float


def summed(values: Floats, side: int) -> Floats:
    """(side, side) sums of values over square blocks.

    Examples
    --------
    >>> summed(np.arange(16.0).reshape(4, 4), 2).tolist()
    [[10.0, 18.0], [42.0, 50.0]]
    """
    block = len(values) // side
    return values.reshape(side, block, side, block).sum(axis=(1, 3))


def contrasts(children: Floats) -> Floats:
    """(3, side, side) contrasts of the four children of each cell, from the children's shares (2 side, 2 side)."""
    a, b, c, d = children[::2, ::2], children[::2, 1::2], children[1::2, ::2], children[1::2, 1::2]
    return np.stack([a - b + c - d, a + b - c - d, a - b - c + d])


def children_of(shares: Floats, contrast: Floats) -> Floats:
    """(2 side, 2 side) shares of the children of cells, by the cells' own (side, side) and their contrasts."""
    one, two, three = contrast
    found = np.empty((2 * len(shares), 2 * len(shares)))
    found[::2, ::2], found[::2, 1::2] = shares + one + two + three, shares - one + two - three
    found[1::2, ::2], found[1::2, 1::2] = shares + one - two - three, shares - one - two + three
    return found / 4


def pooled(levels: Sequence[LevelShares], shares: Floats) -> tuple[Floats, Floats]:
    """Contrasts (3, side, side) averaged over all levels by their precision, and their variances (side, side).

    Parameters
    ----------
    levels : sequence of LevelShares
        Those with at least twice as many cells along a side take part.
    shares : (side, side) array
        Of the cells whose children are asked for, not negative.
    """
    children = 2 * len(shares)
    weighted, precision = np.zeros((3, *shares.shape)), np.zeros(shares.shape)
    for level in levels:
        if len(level.shares) >= children:
            cells = 4 * (len(level.shares) // children) ** 2
            weight = 1 / (cells * level.noise + shares * level.own)
            weighted += weight * contrasts(summed(level.shares, children))
            precision += weight
    return weighted / precision, 1 / precision


def shrunk(contrast: Floats, shares: Floats, variance: Floats) -> Floats:
    """(side, side) posterior means of the contrasts of one kind, by empirical Bayes over the cells of a level."""
    spread = (SPREADS[:, None, None] * shares) ** 2 + variance
    log_density = -0.5 * (np.log(spread) + contrast**2 / spread)
    density = np.exp(log_density - log_density.max(axis=0))
    common = np.full(len(SPREADS), 1 / len(SPREADS))
    for _ in range(STEPS):
        belongs = density * common[:, None, None]
        common = (belongs / belongs.sum(axis=0)).mean(axis=(1, 2)) + RAREST
        common /= common.sum()
    belongs = density * common[:, None, None]
    kept = (belongs * (1 - variance / spread)).sum(axis=0) / belongs.sum(axis=0)
    return np.asarray(contrast * kept)


def within(children: Floats, shares: Floats, possible: npt.NDArray[np.bool_]) -> Floats:
    """Children's shares without the negative ones, scaled to the shares of their cells; even where none is left."""
    kept = np.where(possible, np.maximum(children, 0.0), 0.0)
    left = summed(kept, len(shares))
    kept = np.where(np.kron(left, np.ones((2, 2))) > 0, kept, possible / 1.0)
    total = summed(kept, len(shares))
    return kept * np.kron(np.divide(shares, total, out=np.zeros_like(total), where=total > 0), np.ones((2, 2)))


def quadtree_shares(levels: Sequence[LevelShares], *, inside: npt.NDArray[np.bool_], shrink: bool = True) -> Floats:
    """(side, side) shares of the finest level's cells, with sum one.

    Parameters
    ----------
    levels : sequence of LevelShares
        With powers of two of cells along their sides, the finest last.
    inside : (side, side) array of bool
        Finest cells that anybody can be in; the others get nothing.
    shrink : bool
        Shrink contrasts, and lay what is negative on other children. Otherwise shares are unbiased, where all cells are
        inside, and some are negative.
    """
    finest, found = len(levels[-1].shares), np.ones((1, 1))
    while len(found) < finest:
        contrast, variance = pooled(levels, np.maximum(found, 0.0))
        if shrink:
            contrast = np.stack([shrunk(each, found, variance) for each in contrast])
        children = children_of(found, contrast)
        possible = summed(inside / 1.0, len(children)) > 0
        found = within(children, found, possible) if shrink else children
    return found
