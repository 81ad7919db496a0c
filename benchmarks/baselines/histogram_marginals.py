"""Private histograms from noised marginals of both coordinates, with the arguments of `histograms`."""

import math
from collections.abc import Sequence

import numpy as np

from baselines.histograms import Cells, blocks, even_parts
from dpppsynth.core.types import Floats, Ints
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.spatial.simplex import norm_sub

# MST is private for a delta as well; rare values are those below three standard deviations of noise.
DELTA, RARE = 1e-6, 3.0
STEPS = 300


def spanning_tree(counts: Floats, epsilon: float, sensitivity: float, rng: np.random.Generator, *, side: int) -> Cells:
    """Noised marginals of both coordinates and of the pair, and the distribution that fits all of them: MST.

    McKenna, Miklau & Sheldon (2021), Winning the NIST contest, Journal of Privacy and Confidentiality 11(3). Of two
    coordinates there is but one tree, so nothing is spent on its choice. Rare values of a coordinate are merged. The
    fit is by projected gradients, which find what Private-PGM finds: the pair is measured, so the best fit is unique.
    """
    # Half of the budget for both coordinates, whose noise is therefore twice the pair's; a move changes two values.
    sigma = math.sqrt(2 * sensitivity) / gaussian_mu(epsilon, DELTA)
    cells = blocks(counts, side)
    ones = [cells.sum(axis=axis) + rng.normal(0, sigma * math.sqrt(2), side) for axis in (1, 0)]
    merged = [_merged(one, RARE * sigma * math.sqrt(2)) for one in ones]
    rows, columns = (_membership(labels) for labels in merged)
    pair = rows @ cells @ columns.T
    noisy = pair + rng.normal(0, sigma, pair.shape)
    weights = [1 / (2 * members.sum(axis=1)) for members in (rows, columns)]
    fitted = fit(noisy, (rows @ ones[0], columns @ ones[1]), weights, counts.sum())
    part = even_parts(len(counts), side)
    return Cells(merged[0][part][:, None] * len(columns) + merged[1][part], fitted.ravel())


def fit(pair: Floats, ones: Sequence[Floats], weights: Sequence[Floats], total: float) -> Floats:
    """Non-negative masses with this total nearest to a noised pair (a, b) of marginals and both coordinates' own.

    Squared distances of the coordinates' values count by weights, those of the pair by one.
    """
    mass = ahead = norm_sub(pair.ravel(), total).reshape(pair.shape)
    step = 1 / (1 + sum(size * weight.max() for size, weight in zip(pair.shape[::-1], weights, strict=True)))
    speed = 1.0
    for _ in range(STEPS):
        along, across = (w * (ahead.sum(axis=k) - one) for k, one, w in zip((1, 0), ones, weights, strict=True))
        slope = ahead - pair + along[:, None] + across
        found = norm_sub((ahead - step * slope).ravel(), total).reshape(pair.shape)
        faster = (1 + math.sqrt(1 + 4 * speed**2)) / 2
        ahead, mass, speed = found + (speed - 1) / faster * (found - mass), found, faster
    return mass


def _merged(noisy: Floats, least: float) -> Ints:
    """Numbers of values, where all that are rare have one."""
    rare = noisy < least
    return np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)


def _membership(labels: Ints) -> Floats:
    """(K, side) ones where a value has a number."""
    return (labels == np.arange(labels.max() + 1)[:, None]).astype(float)
