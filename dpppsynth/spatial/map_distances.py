"""Distances and similarities of heat maps and their distributions. Not private: they take the true map.

=================  =====================================================  ==============
`emd`              earth mover's distance, l1 on the unit square          0 where equal
`similarity`       what two maps have in common, SIM                      1 where equal
`pearson`          correlation of their cells, CC                         1 where equal
`kl`               Kullback-Leibler divergence, KL                        0 where equal
=================  =====================================================  ==============

Cell (i, j) of an array (a, b) lies at (i / a, j / b). Arrays of masses are divided by their sums; those of different
shapes, without mass or with a negative or infinite one are refused. SIM, CC and KL compare cell by cell, so they do not
see how far misplaced mass is; emd does.

References
----------
Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI 37;
Bylinskii, Judd, Oliva, Torralba and Durand (2019), What do different evaluation metrics tell us about saliency models?,
IEEE Transactions on Pattern Analysis and Machine Intelligence 41, 740-757; Ling and Okada (2007), An efficient earth
mover's distance algorithm for robust histogram comparison, the same journal 29, 840-853.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import flag, whole
from dpppsynth.core.types import Floats
from dpppsynth.spatial.minimum_cost_flow import grid_flow, unit_pair

# The benchmark's guard of the logarithm and the quotient.
SMALLEST = 2.220446e-16


def emd(p: npt.ArrayLike, q: npt.ArrayLike, *, side: int | None = None) -> float:
    """Earth mover's distance of two distributions on a grid over the unit square, for the l1 ground distance.

    Parameters
    ----------
    p, q : array_like, shape (a, b)
        Non-negative masses; each is divided by its sum.
    side : int, optional
        Sum blocks first, so that no axis has more than this many cells. On a square grid of Δ cells an axis that `side`
        divides, this changes the distance by at most `2 (1 / side - 1 / Δ)`; on any other grid by less than `2 / side`.

    Returns
    -------
    float
        From 0 to `(1 - 1/a) + (1 - 1/b)`, exact up to rounding unless `side` makes it coarse.

    Raises
    ------
    InputError
        A mass is negative or not finite, all of them are zero, the shapes differ or `side` is no positive whole number.

    Notes
    -----
    A minimum-cost flow between neighbours (Ling and Okada 2007), proved least by its prices. About 0.01 s for 32 x 32
    cells, 0.1 s for 64 x 64, 0.5 s for 128 x 128, 2 to 12 s for 256 x 256, and from 20 s to minutes for 512 x 512:
    least where few cells have mass.

    Examples
    --------
    >>> emd([[1, 0], [0, 0]], [[0, 0], [0, 1]])
    1.0
    """
    one, other = unit_pair(p, q)
    if side is not None:
        side = whole("side", side, 1)
        one, other = coarse(one, side), coarse(other, side)
    # Times a b, distances of neighbours are whole numbers.
    a, b = one.shape
    return grid_flow(one - other, (b, a)) / (a * b)


def similarity(h: npt.ArrayLike, g: npt.ArrayLike, *, benchmark: bool = False) -> float:
    """Mass that two maps have in common, `sum min(h, g)`: 1 minus their distance in total variation.

    Parameters
    ----------
    h, g : array_like, shape (a, b)
        Non-negative masses; each is divided by its sum.
    benchmark : bool
        Scale each map to values from 0 to 1 before it is divided by its sum, as the saliency benchmark does; NaN where
        one is constant. Then it is no longer a total variation.

    Examples
    --------
    >>> h, g = [[0.5, 0.5], [0, 0]], [[0.4, 0.3], [0.2, 0.1]]
    >>> round(similarity(h, g), 12), round(similarity(h, g, benchmark=True), 12)
    (0.7, 0.833333333333)
    """
    truth, estimate = unit_pair(h, g, ("h", "g"))
    if flag("benchmark", benchmark):
        if _constant(truth) or _constant(estimate):
            return math.nan
        truth, estimate = _stretched(truth), _stretched(estimate)
    return float(np.minimum(truth, estimate).sum())


def pearson(h: npt.ArrayLike, g: npt.ArrayLike, *, benchmark: bool = False) -> float:
    """Pearson correlation between the cells of two maps, from -1 to 1.

    Parameters
    ----------
    h, g : array_like, shape (a, b)
        Non-negative masses, not all of them zero.
    benchmark : bool
        Where a map is constant the correlation is undefined: NaN as in the saliency benchmark, and 0 by default.

    Examples
    --------
    >>> round(pearson([[0.5, 0.5], [0, 0]], [[0.4, 0.3], [0.2, 0.1]]), 12)
    0.894427191
    """
    truth, estimate = unit_pair(h, g, ("h", "g"))
    undefined = math.nan if flag("benchmark", benchmark) else 0.0
    if _constant(truth) or _constant(estimate):
        return undefined
    one, other = truth - truth.mean(), estimate - estimate.mean()
    return min(1.0, max(-1.0, float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))))


def kl(h: npt.ArrayLike, g: npt.ArrayLike) -> float:
    """Kullback-Leibler divergence of the estimate g from the true map h, regularised as in the saliency benchmark.

    `sum h log(e + h / (g + e))` with e = 2.220446e-16. Where g has no mass, its terms are large, up to about 36 h, but
    finite, and their size depends on e.

    Parameters
    ----------
    h, g : array_like, shape (a, b)
        True map and estimate: non-negative masses; each is divided by its sum.

    Examples
    --------
    >>> round(kl([[0.5, 0.5], [0, 0]], [[0.4, 0.3], [0.2, 0.1]]), 12)
    0.36698458754
    """
    truth, estimate = unit_pair(h, g, ("h", "g"))
    return float((truth * np.log(SMALLEST + truth / (estimate + SMALLEST))).sum())


def coarse(p: Floats, side: int) -> Floats:
    """Masses p (a, b) summed over blocks: min(side, a) along the first axis and min(side, b) along the second."""
    for axis, cells in enumerate(p.shape):
        parts = min(side, cells)
        # Cell i goes to the block that i / cells lies in, of those that begin at k / parts.
        p = np.add.reduceat(p, -(-np.arange(parts) * cells // parts), axis=axis)
    return p


def _constant(h: Floats) -> bool:
    return bool(h.min() == h.max())


def _stretched(h: Floats) -> Floats:
    """Map scaled to values from 0 to 1 and divided by its sum."""
    raised = (h - h.min()) / (h.max() - h.min())
    return raised / raised.sum()
