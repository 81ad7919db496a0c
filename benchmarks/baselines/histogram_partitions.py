"""Private histograms that first find cells of like counts and then noise their totals, as `histograms` do."""

import math

import numpy as np

from baselines.histograms import Cells, blocks, grid_labels, totals
from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.grid_cells import hilbert_order

# Share of the budget that finds the buckets of DAWA, and longest bucket.
FINDING, LONGEST = 0.25, 1024
# AHP's share of the budget for the noised counts that are clustered, and its threshold; both as DPBench settled them.
CLUSTERING, THRESHOLD = 0.85, 0.35
# Most counts that AHP looks ahead.
AHEAD = 64
# Numbers held in memory at once.
AT_ONCE = 2**21


def dawa(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Buckets of nearly even counts along Hilbert's curve, found privately, and their noised totals: DAWA.

    Li, Hay & Miklau (2014), PVLDB 7(5): a quarter of the budget finds buckets of 1, 2, 4, ... cells; their totals are
    measured as they are.
    """
    cells = blocks(counts, side)
    order = hilbert_order(np.argwhere(np.ones(cells.shape)).astype(float))
    along, measured = cells.ravel()[order], (1 - FINDING) * epsilon / sensitivity
    ends = buckets(along, FINDING * epsilon / sensitivity, 1 / measured, rng)
    bucket = np.empty(side**2, dtype=np.int64)
    bucket[order] = np.searchsorted(ends, np.arange(side**2), side="right")
    labels = bucket[grid_labels(len(counts), side)]
    return Cells(labels, totals(labels, counts, len(ends)) + rng.laplace(0, 1 / measured, len(ends)))


def buckets(along: Floats, epsilon: float, price: float, rng: np.random.Generator) -> Ints:
    """Ends of the buckets of least noised cost: absolute deviations from their means, and a price for each bucket."""
    n, lengths = len(along), []
    costs = []
    for length in (2**k for k in range(int(math.log2(min(len(along), LONGEST))) + 1)):
        noise = rng.laplace(0, (2 - 1 / length - 1 / n) / epsilon, n - length + 1) if length > 1 else 0.0
        lengths.append(length)
        costs.append((price + np.maximum(0.0, deviations(along, length) + noise)).tolist())
    least, before = [0.0], [0]
    for end in range(1, n + 1):
        fits = ((least[end - k] + cost[end - k], end - k) for k, cost in zip(lengths, costs, strict=True) if k <= end)
        best, start = min(fits)
        least.append(best)
        before.append(start)
    ends = [n]
    while before[ends[-1]] > 0:
        ends.append(before[ends[-1]])
    return np.array(ends[::-1])


def deviations(along: Floats, length: int) -> Floats:
    """Sums of absolute deviations from the mean, of all intervals of a length."""
    windows = np.lib.stride_tricks.sliding_window_view(along, length)
    step = max(1, AT_ONCE // length)
    parts = (windows[i : i + step] for i in range(0, len(windows), step))
    return np.concatenate([np.abs(part - part.mean(axis=1, keepdims=True)).sum(axis=1) for part in parts])


def ahp(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Clusters of cells whose noised counts are alike, wherever they lie, and the clusters' noised totals: AHP.

    Zhang, Chen, Xu, Meng & Xie (2014), Towards accurate histogram publication under differential privacy, SDM.
    """
    cells = blocks(counts, side).ravel()
    first, second = CLUSTERING * epsilon / sensitivity, (1 - CLUSTERING) * epsilon / sensitivity
    noisy = cells + rng.laplace(0, 1 / first, len(cells))
    noisy[noisy <= THRESHOLD * math.log(len(cells)) / first] = 0.0
    order = np.argsort(noisy, kind="stable")
    ends = alike(noisy[order], 2 / second**2)
    cluster = np.empty(len(cells), dtype=np.int64)
    cluster[order] = np.searchsorted(ends, np.arange(len(cells)), side="right")
    labels = cluster[grid_labels(len(counts), side)]
    return Cells(labels, totals(labels, counts, len(ends)) + rng.laplace(0, 1 / second, len(ends)))


def alike(rising: Floats, variance: float) -> Ints:
    """Ends of clusters of increasing counts: a count joins unless a cluster that begins with it promises more.

    The error of a cluster is its squared deviations and the variance of noise on its mean.
    """
    sums, squares = (np.concatenate([[0.0], np.cumsum(rising**power)]) for power in (1, 2))

    def error(start: int, end: int) -> float:
        size = end - start
        return float(squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / size + variance / size)

    # Counts that the threshold set to zero are one cluster.
    start = int(np.searchsorted(rising, 0.0, side="right"))
    ends = [start] if start else []
    for at in range(start + 1, len(rising)):
        sizes = np.arange(1, min(AHEAD, len(rising) - at) + 1)
        means = (sums[at + sizes] - sums[at]) / sizes
        alone = float(((rising[at] - means) ** 2 + variance / sizes**2).min())
        if error(start, at + 1) >= error(start, at) + alone:
            ends.append(at)
            start = at
    return np.array([*ends, len(rising)] if not ends or ends[-1] < len(rising) else ends)
