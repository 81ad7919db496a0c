"""Stable geometric sums of powers `q^k`, `q = exp(-rate)`, from positive terms alone; rate 0 is allowed."""

import math
import sys
from collections.abc import Iterable

import numpy as np

from dpppsynth.spatial.mesh import Floats


def geometric_sum(rate: float, terms: int) -> float:
    """Sum `1 + q + ... + q^(terms - 1)`."""
    return math.expm1(-rate * terms) / math.expm1(-rate) if rate else float(terms)


def two_sided_sum(rate: float, bound: int) -> float:
    """Sum of `q^|k|` over k from `-bound` to `bound`."""
    return geometric_sum(rate, bound + 1) + math.exp(-rate) * geometric_sum(rate, bound)


def power_sums(rate: float, last: int) -> tuple[float, float, float]:
    """Sums of `q^k`, `k q^k` and `k^2 q^k` over k from 0 to `last`, by doubling the number of terms."""
    terms, ones, first, second = 0, 0.0, 0.0, 0.0
    for bit in f"{last + 1:b}":
        weight = math.exp(-rate * terms)
        second += weight * (second + 2 * terms * first + float(terms) ** 2 * ones)
        first += weight * (first + terms * ones)
        ones += weight * ones
        terms *= 2
        if bit == "1":
            weight = math.exp(-rate * terms)
            ones, first, second = ones + weight, first + terms * weight, second + float(terms) ** 2 * weight
            terms += 1
    return ones, first, second


ULP = sys.float_info.epsilon


def exposed_part(rate: float, bound: int, shift: int) -> float:
    """Probability of an infinite loss where one coordinate shifts, `P(k > bound - shift)`."""
    if shift > 2 * bound:
        return 1.0
    if shift > bound:
        below = math.exp(-rate) * geometric_sum(rate, shift - bound - 1)
        return (geometric_sum(rate, bound + 1) + below) / two_sided_sum(rate, bound)
    return math.exp(-rate * (bound - shift + 1)) * geometric_sum(rate, shift) / two_sided_sum(rate, bound)


def at_least_one(probabilities: Iterable[float], times: int = 1) -> float:
    """Probability that any of independent events happens: `1 - prod(1 - p)^times`, to full relative accuracy."""
    left = 0.0
    for probability in probabilities:
        if probability >= 1:
            return 1.0
        left += math.log1p(-probability)
    # Not minus zero, where there are none.
    return 0.0 - math.expm1(times * left)


def finite_part(epsilon: float, shifts: list[int], rate: float, bound: int) -> float:
    """Hockey-stick divergence from answers that both data sets can give, none of its terms rounded to below 0."""
    total = sum(shifts)
    y = np.arange((total + 1) // 2)
    loss = rate * (total - 2 * y)
    excess = loss - epsilon
    excess = np.where(excess > -4 * ULP * loss, excess + 4 * ULP * loss, 0.0)
    return float((loss_weights(shifts, rate, bound)[: len(y)] * np.exp(-rate * y) * -np.expm1(-excess)).sum())


def loss_weights(shifts: list[int], rate: float, bound: int) -> Floats:
    """(sum of shifts + 1,) probabilities of the losses `rate (sum shifts - 2 y)`, times `exp(rate y)`.

    Those of one coordinate are P(0) wherever both data sets can give the answer y; the two ends stand for all
    answers beyond them as well.
    """
    height, weights = 1 / two_sided_sum(rate, bound), np.ones(1)
    for shift in shifts:
        first = max(shift - bound, 0)
        ends = height * math.exp(-rate) * geometric_sum(rate, bound - shift) if shift < bound else 0.0
        longer = np.zeros(len(weights) + shift)
        longer[first : len(longer) - first] = height * sliding_sums(weights, shift - 2 * first + 1)
        longer[: len(weights)] += ends * weights
        longer[shift:] += ends * weights
        weights = longer
    return weights


def sliding_sums(values: Floats, width: int) -> Floats:
    """(n + width - 1,) sums of up to `width` neighbours of (n,) values, which are all the windows that meet them.

    Windows are a suffix of one block of `width` values and a prefix of the next: differences of running sums would
    cancel.
    """
    windows = len(values) + width - 1
    blocks = -(-(windows + width - 1) // width)
    padded = np.zeros((blocks, width))
    padded.ravel()[width - 1 : width - 1 + len(values)] = values
    prefix = padded.cumsum(axis=1).ravel()
    suffix = padded[:, ::-1].cumsum(axis=1)[:, ::-1].copy()
    # A window that is one whole block is its prefix.
    suffix[:, 0] = 0.0
    return suffix.ravel()[:windows] + prefix[width - 1 : width - 1 + windows]
