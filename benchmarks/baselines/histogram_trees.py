"""Private histograms on trees of halved or quartered boxes, with the arguments of `histograms`."""

import math

import numpy as np

from baselines.histograms import Cells, blocks, grid_labels
from dpppsynth.core.types import Floats, Ints

QUARTERS = 4
# Growth of the budget from a level to the finer one, by Cormode et al.
GROWTH = 2 ** (1 / 3)


def privtree(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator) -> Cells:
    """Leaves of a quadtree that splits as long as noised, biased counts are positive: PrivTree.

    Zhang, Xiao & Xie (2016), SIGMOD: fanout 4, threshold 0, and half of the budget for the tree.
    """
    half = epsilon / 2
    labels = privtree_leaves(counts, half, sensitivity, rng)
    found = np.bincount(labels.ravel(), counts.ravel())
    return Cells(labels, found + rng.laplace(0, sensitivity / half, len(found)))


def privtree_leaves(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator) -> Ints:
    """(P, P) leaf of every pixel. With each level the count that decides on a split is lowered, but not without end."""
    scale = sensitivity * (2 * QUARTERS - 1) / (QUARTERS - 1) / epsilon
    bias = scale * math.log(QUARTERS)
    labels, first, pixels = np.zeros(counts.shape, dtype=np.int64), 0, len(counts)
    open_ones = np.ones((1, 1), dtype=bool)
    for depth in range(pixels.bit_length()):
        side = 2**depth
        biased = np.maximum(-bias, blocks(counts, side) - depth * bias)
        splits = open_ones & (biased + rng.laplace(0, scale, (side, side)) > 0) & (side < pixels)
        leaves = open_ones & ~splits
        numbers = np.where(leaves, first + np.cumsum(leaves.ravel()).reshape(side, side) - 1, 0)
        labels += _spread(numbers, pixels)
        first += int(leaves.sum())
        open_ones = _spread(splits, 2 * side)
    return labels


def quadtree(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Quadtree of noised counts whose budgets grow geometrically to the leaves, made consistent by least squares.

    Hay et al. (2010), PVLDB 3(1), for consistency; Cormode et al. (2012), ICDE, for quadtrees and their budgets.
    """
    depth = side.bit_length() - 1
    growing = GROWTH ** np.arange(depth + 1)
    scales = sensitivity * growing.sum() / (epsilon * growing)
    noisy = [blocks(counts, 2**k) + rng.laplace(0, scales[k], (2**k, 2**k)) for k in range(depth + 1)]
    return Cells(grid_labels(len(counts), side), consistent(noisy, 2 * scales**2).ravel())


def consistent(levels: list[Floats], variances: Floats) -> Floats:
    """(side, side) leaves of the tree nearest to noised levels of these variances, by weighted least squares."""
    pooled, variance = [levels[-1]], [variances[-1]]
    for level, own in zip(reversed(levels[:-1]), variances[-2::-1], strict=True):
        below = QUARTERS * variance[0]
        share = below / (own + below)
        pooled.insert(0, share * level + (1 - share) * blocks(pooled[0], len(level)))
        variance.insert(0, own * share)
    agreed = pooled[0]
    for level in pooled[1:]:
        missing = (agreed - blocks(level, len(agreed))) / QUARTERS
        agreed = level + _spread(missing, len(level))
    return agreed


def measure_tree(
    counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, depth: int | None = None
) -> Cells:
    """Binary tree of noised counts, made consistent and non-negative from the root down: PMM.

    He, Vershynin & Zhu (2023), Algorithmically effective differentially private synthetic data, COLT: the paper's depth
    is log2(n eps), and noise is the smaller the more the diameters of a level's boxes add up to. It is continuous here.
    """
    if depth is None:
        depth = int(min(2 * math.log2(len(counts)), max(0.0, math.log2(counts.sum() * epsilon / sensitivity))))
    # Diameters of all boxes of the level above each level, which are halved along both axes in turn.
    diameters = np.array([2.0 ** (level - level // 2) for level in [0, *range(depth)]])
    scales = sensitivity * np.sqrt(diameters).sum() / (epsilon * np.sqrt(diameters))
    agreed = np.maximum(0.0, counts.sum() + rng.laplace(0, scales[0], (1, 1)))
    for level in range(1, depth + 1):
        shape = 2 ** ((level + 1) // 2), 2 ** (level // 2)
        noisy = _box_sums(counts, shape) + rng.laplace(0, scales[level], shape)
        agreed = _halved(agreed, noisy, axis=(level + 1) % 2)
    rows, columns = (np.arange(len(counts)) * parts // len(counts) for parts in agreed.shape)
    return Cells(rows[:, None] * agreed.shape[1] + columns, agreed.ravel())


def _halved(above: Floats, noisy: Floats, axis: int) -> Floats:
    """Halves of boxes along an axis: noised masses shifted alike to the boxes' own, and neither below zero."""
    halves = np.moveaxis(noisy, axis, 0)
    first, second = halves[::2], halves[1::2]
    whole = np.moveaxis(above, axis, 0)
    first = np.clip((whole + first - second) / 2, 0, whole)
    return np.moveaxis(np.stack([first, whole - first], axis=1).reshape(halves.shape), 0, axis)


def _box_sums(counts: Floats, shape: tuple[int, int]) -> Floats:
    """Sums of boxes in a grid of this shape."""
    rows, columns = (len(counts) // parts for parts in shape)
    return np.asarray(counts.reshape(shape[0], rows, shape[1], columns).sum(axis=(1, 3)))


def _spread(values: Floats, side: int) -> Floats:
    """(side, side) values of cells, repeated on a finer grid."""
    times = side // len(values)
    return np.repeat(np.repeat(values, times, axis=0), times, axis=1)
