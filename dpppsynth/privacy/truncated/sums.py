"""Stable geometric sums of powers `q^k`, `q = exp(-rate)`, from positive terms alone; rate 0 is allowed."""

import math


def geometric_sum(rate: float, terms: int) -> float:
    """`1 + q + ... + q^(terms - 1)`."""
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
