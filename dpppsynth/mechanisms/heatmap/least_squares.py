"""Weighted least squares fit of non-negative masses to all noised counts of a tree of cells.

The counts are those that `solve` takes, so this is free post-processing of the same measurement. Pooling by
inverse variance from the bottom up is exact on a tree; masses then go down, without negative ones.
"""

from dataclasses import dataclass

import numpy as np

from dpppsynth.core.arguments import flag, instance
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets
from dpppsynth.mechanisms.heatmap.cell_tree import CellTree
from dpppsynth.mechanisms.heatmap.spreading import divisor, spread_evenly

# Smallest ratio of two levels' noise: smaller noise is negligible, and its square is still a float.
LEAST_RATIO = 1e-50


def least_squares(tree: CellTree, budgets: LevelBudgets, *, shrink: bool = False) -> np.ndarray:
    """Masses that fit all counts of a tree by weighted least squares, made non-negative from the top down.

    A count of a level with budget epsilon weighs `epsilon^2`, the inverse of its noise's variance up to a constant.
    Each cell's mass is first pooled with what its subtree says of it. A cell of the first level gets the positive part,
    and every kept cell gives its mass to its children: they get the masses nearest to their pooled ones, by weighted
    squares, among those that are not negative and add up to its own. Where no pooled mass and no share of it is
    negative, that is the exact least squares fit. Work is the number of cells looked at, besides the grid returned.

    Parameters
    ----------
    tree : CellTree
        Left-out cells are uniform over their area.
    budgets : LevelBudgets
        That the counts were noised with; only their ratios matter unless `shrink`.
    shrink : bool
        Draw the pooled masses of a kept cell's children towards an even spread of its mass m over its area, by the
        factor `m^2 / (m^2 + s)`, s the sum of their noise's variances. Of all factors that one has the least worst
        expected square error over all ways to split a known m among cells of equal area and noise, before the sign.

    Returns
    -------
    (side, side) array
        Masses >= 0, not normalised; 0 in dead cells.

    Raises
    ------
    InputError
        The budgets belong to other levels, or an argument breaks its rule.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010), Boosting the accuracy of differentially private histograms through
    consistency, PVLDB 3.

    Examples
    --------
    >>> from dpppsynth.heatmaps import select_cells
    >>> tree = select_cells([[[20]], [[4, 3], [2, 1]]], w=1)
    >>> least_squares(tree, LevelBudgets(0, (1.0, 2.0))).tolist()
    [[5.25, 4.25], [3.25, 2.25]]
    >>> least_squares(tree, LevelBudgets(0, (1.0, 2.0)), shrink=True).round(2).tolist()
    [[5.24, 4.25], [3.25, 2.26]]
    """
    instance("tree", tree, CellTree, "grow() makes one, and `sparse_aggregate(...).tree` is one")
    pooled = _pooled(tree, _variances(tree, budgets))
    areas, noise, shrink = tree.areas(), 2**0.5 / min(budgets.epsilons), flag("shrink", shrink)
    masses = [np.maximum(pooled[0].mean, 0.0)]
    for cells, children, area in zip(tree.levels[:-1], pooled[1:], areas[1:], strict=True):
        mass = masses[-1][cells.kept]
        masses.append(_shared(mass, _shrunk(mass, children, area, noise) if shrink else children))
    return spread_evenly(tree, masses, areas)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Estimates of a level's cell masses from the counts in and below them: means (m,), variances; 0 in dead cells."""

    mean: np.ndarray
    variance: np.ndarray


def _variances(tree: CellTree, budgets: LevelBudgets) -> list[np.ndarray]:
    """Variances of the counts of each level, in units of the largest; 0 in dead cells, which are known to be empty."""
    instance("budgets", budgets, LevelBudgets, "level_budgets() makes them")
    if budgets.levels != tuple(tree.numbers):
        msg = (
            f"budgets: must belong to the tree's levels {tree.first} to {tree.depth}, got those of {budgets.first} to "
            f"{budgets.depth}; take the ones its counts were noised with."
        )
        raise InputError(msg)
    ratios = np.maximum(min(budgets.epsilons) / np.array(budgets.epsilons), LEAST_RATIO)
    return [np.where(level.alive, ratio**2, 0.0) for level, ratio in zip(tree.levels, ratios, strict=True)]


def _pooled(tree: CellTree, variances: list[np.ndarray]) -> list[_Estimates]:
    """Exact weighted least squares in every cell's subtree, without the sign: each level from the first measured."""
    estimates = [_Estimates(tree.levels[-1].counts, variances[-1])]
    for cells, variance in zip(tree.levels[-2::-1], variances[-2::-1], strict=True):
        kept, children = cells.kept, estimates[-1]
        below = children.variance.reshape(len(kept), -1).sum(axis=1)
        own = below / divisor(below + variance[kept])
        mean, pooled = cells.counts.copy(), variance.copy()
        mean[kept] = own * mean[kept] + (1 - own) * children.mean.reshape(len(kept), -1).sum(axis=1)
        pooled[kept] *= own
        estimates.append(_Estimates(mean, pooled))
    return estimates[::-1]


def _shrunk(mass: np.ndarray, children: _Estimates, areas: np.ndarray, noise: float) -> _Estimates:
    """Children's means closer to an even spread of (k,) `mass`; `noise` is the deviation, in persons, of variance 1.

    A split of m among c cells is at most `m sqrt(1 - 1/c)` away from the even one, and the noise of c cells of variance
    v has `(c - 1) v` along splits. The best factor is `m^2 (1 - 1/c)` over that and the noise: `m^2 / (m^2 + c v)`.
    """
    areas = areas.reshape(len(mass), -1)
    even = mass[:, None] * (areas / divisor(areas.sum(axis=1, keepdims=True)))
    deviation = noise * np.sqrt(children.variance.reshape(areas.shape).sum(axis=1))
    factor = (mass / divisor(np.hypot(mass, deviation))) ** 2
    mean = even + factor[:, None] * (children.mean.reshape(areas.shape) - even)
    return _Estimates(mean.ravel(), children.variance)


def _shared(mass: np.ndarray, children: _Estimates) -> np.ndarray:
    """(c k,) masses nearest to the children's means, by weighted squares, among those >= 0 that add up to (k,) `mass`.

    They are `max(0, mean - lambda * variance)`: water poured into basins as wide as the variances, whose floors are
    higher the smaller mean and variance's ratio. The floors are taken from the lowest one, so a small mass survives
    beside large means.
    """
    mean, width = (each.reshape(len(mass), -1) for each in (children.mean, children.variance))
    alive, heights = width > 0, mean / divisor(width)
    floors = np.where(alive, np.max(heights, axis=1, where=alive, initial=-np.inf, keepdims=True) - heights, 0.0)
    order = np.lexsort((floors, ~alive))
    widths, solids = (np.take_along_axis(each, order, axis=1).cumsum(axis=1) for each in (width, width * floors))
    # Water-filling: the level over the lowest children alone is never too low; adding the flooded ones corrects it.
    surface = ((mass[:, None] + solids) / divisor(widths)).min(axis=1, keepdims=True)
    return (width * np.maximum(surface - floors, 0.0)).ravel()
