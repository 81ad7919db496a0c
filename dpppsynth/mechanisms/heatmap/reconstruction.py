"""Fits of non-negative masses to the noised counts of a tree of cells: in weighted l1, and by weighted least squares.

In l1 as published, by convex dynamic programming. Given mass m, a cell's subtree costs a convex, piecewise linear
function of m. That of a kept cell follows from those of its children: their segments put in order of slope (the
infimal convolution), tilted about the cell's own count. All slopes are whole multiples of `1 / side`, so equal ones
are recognised exactly (docs/theory/heatmaps.md).

By least squares, pooling by inverse variance from the bottom up is exact on a tree; masses then go down, without
negative ones. Both are free post-processing of one measurement.
"""

from dataclasses import dataclass

import numpy as np

from dpppsynth.mechanisms.heatmap.bound import LevelBudgets
from dpppsynth.mechanisms.heatmap.tree import CellTree, TreeLevel, divisor, spread_evenly

# Smallest ratio of two levels' noise: smaller noise is negligible, and its square is still a float.
LEAST_RATIO = 1e-50


def solve(tree: CellTree) -> np.ndarray:
    """Masses of least weighted distance to the counts of a tree; ties are shared evenly.

    They minimise the sum over the levels i of `2^-i` times the absolute differences between their sums over the cells
    and the counts, where cells that are not kept count 0. Segments of equal slope share the mass left for them in
    proportion to their lengths, and mass that no count explains is uniform over the cell's area. A cell's function has
    at most one segment for each kept cell in it, and equal slopes are merged: besides the grid that is returned, work
    is the number of cells looked at, at worst times the number of levels, and a logarithm.

    Returns
    -------
    (side, side) array
        Masses >= 0, not normalised. Each cell of the first level has the positive part of its count.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, section 4.

    Examples
    --------
    >>> from dpppsynth.mechanisms.heatmap.tree import grow
    >>> counts = [np.array([10.0]), np.array([4.0, 3.0, 2.0, 1.0])]
    >>> solve(grow(0, 1, 1, lambda level, cells: counts[level][cells])).tolist()
    [[5.5, 1.5], [1.5, 1.5]]
    """
    sharing = _Sharing.of(_Segments.none(), len(tree.levels[-1].kept))
    sharings: list[_Sharing] = []
    for level in range(tree.depth, tree.first, -1):
        cells, above = tree.levels[level - tree.first], tree.levels[level - tree.first - 1]
        sharing = _Sharing.of(sharing.tilted(cells, 2 ** (tree.depth - level)), len(above.kept))
        sharings.append(sharing)
    areas = tree.areas()
    masses = [np.maximum(tree.levels[0].counts, 0.0)]
    for cells, share, area in zip(tree.levels[:-1], reversed(sharings), areas[1:], strict=True):
        masses.append(share.give(masses[-1][cells.kept], area))
    return spread_evenly(tree, masses, areas)


@dataclass(frozen=True, eq=False)
class _Segments:
    """Finite segments of the cost functions of one level's cells; all end in an infinite one.

    `cell` has positions into the level's cells, `slope` whole multiples of `1 / side`.
    """

    cell: np.ndarray
    slope: np.ndarray
    length: np.ndarray

    @classmethod
    def none(cls) -> "_Segments":
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class _Sharing:
    """Distribution of kept cells' mass to their children: groups of equal slope, in order.

    Attributes
    ----------
    child, group, length : (s,) arrays
        Finite segments of the children: position of the child, number of the group, mass it can take.
    node, slope, total, before : (g,) arrays
        Groups: number of the kept cell, slope, what the group can take, and all groups before it together.
    demand : (k,) array
        Capacity of all finite segments of a kept cell; the rest goes to the infinite ones.
    """

    child: np.ndarray
    group: np.ndarray
    length: np.ndarray
    node: np.ndarray
    slope: np.ndarray
    total: np.ndarray
    before: np.ndarray
    demand: np.ndarray

    @classmethod
    def of(cls, segments: _Segments, kept: int) -> "_Sharing":
        """The infimal convolution of the four children of each of the kept cells: their segments by slope."""
        node = segments.cell // 4
        order = np.lexsort((segments.slope, node))
        node, slope, length = node[order], segments.slope[order], segments.length[order]
        begins = np.ones(len(order), bool)
        begins[1:] = (node[1:] != node[:-1]) | (slope[1:] != slope[:-1])
        group = np.cumsum(begins) - 1
        node, slope = node[begins], slope[begins]
        total = np.bincount(group, weights=length, minlength=len(node))
        before, demand = _sums(total, node, kept)
        return cls(segments.cell[order], group, length, node, slope, total, before, demand)

    def tilted(self, level: TreeLevel, weight: int) -> _Segments:
        """Segments of the kept cells' own functions: `weight * |count - mass|` added to the convolution.

        It takes the weight from slopes left of the count, and adds it right of it. The convolution ends in the slope
        `weight - 1`, so the part of an infinite segment left of the count has slope -1.
        """
        count = np.maximum(level.counts[level.kept], 0.0)
        left = np.clip(count[self.node] - self.before, 0.0, self.total)
        cell = np.concatenate([level.kept[self.node], level.kept[self.node], level.kept])
        slope = np.concatenate([self.slope - weight, self.slope + weight, np.full(len(count), -1)])
        length = np.concatenate([left, self.total - left, np.maximum(count - self.demand, 0.0)])
        some = length > 0
        return _Segments(cell[some], slope[some], length[some])

    def give(self, mass: np.ndarray, areas: np.ndarray) -> np.ndarray:
        """Masses of all children of cells with the given masses; `areas` are the children's, inside the mask."""
        given = np.clip(mass[self.node] - self.before, 0.0, self.total)
        shares = self.length * (given / self.total)[self.group]
        rest = np.maximum(mass - self.demand, 0.0)
        areas = areas.reshape(-1, 4)
        evenly = rest[:, None] * areas / divisor(areas.sum(axis=1, keepdims=True))
        return np.bincount(self.child, weights=shares, minlength=areas.size) + evenly.ravel()


def _sums(values: np.ndarray, run: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the values before each one in its run, and of each run; runs stand together, in order.

    Sums are taken within each run, by doubling, so that rounding in one never touches another.
    """
    sums, step, longest = values.copy(), 1, np.bincount(run).max(initial=0)
    while step < longest:
        sums[step:] += np.where(run[step:] == run[:-step], sums[:-step], 0.0)
        step *= 2
    before, whole = np.zeros(len(values)), np.zeros(runs)
    before[1:] = np.where(run[1:] == run[:-1], sums[:-1], 0.0)
    ends = np.append(run[1:] != run[:-1], True)[: len(run)]
    whole[run[ends]] = sums[ends]
    return before, whole


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

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010), Boosting the accuracy of differentially private histograms through
    consistency, PVLDB 3.

    Examples
    --------
    >>> from dpppsynth.mechanisms.heatmap.tree import grow
    >>> counts = [np.array([20.0]), np.array([4.0, 3.0, 2.0, 1.0])]
    >>> tree = grow(0, 1, 1, lambda level, cells: counts[level][cells])
    >>> least_squares(tree, LevelBudgets(0, (1.0, 2.0))).tolist()
    [[5.25, 4.25], [3.25, 2.25]]
    >>> least_squares(tree, LevelBudgets(0, (1.0, 2.0)), shrink=True).round(2).tolist()
    [[5.24, 4.25], [3.25, 2.26]]
    """
    pooled = _pooled(tree, _variances(tree, budgets))
    areas, noise = tree.areas(), 2**0.5 / min(budgets.epsilons)
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
