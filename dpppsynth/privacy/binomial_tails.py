"""Brackets of binomial probabilities: bounds from below and above that rounding errors cannot pass.

A single probability is a number of thirty digits, and a tail is that times a sum of positive terms that fall off. The
errors of both are far below MARGIN, by which results are moved outwards.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

# Relative errors are below it: thirty digits of logarithms up to 1e12, and sums of at most MOST_TERMS positive terms.
MARGIN = 1e-8
DIGITS = 30
# Terms that are added at once, and at most.
BLOCK, MOST_TERMS = 4096, 2**22
# Terms below it, beside the first, end a sum.
NEGLIGIBLE = 1e-12


class Bracket(NamedTuple):
    """A number that is known to lie between two others."""

    low: float
    high: float


def binomial_pmf(trials: int, chance: float, successes: int) -> Bracket:
    """Probability of so many successes.

    Examples
    --------
    >>> low, high = binomial_pmf(4, 0.5, 2)
    >>> low < 0.375 < high < 0.375 * (1 + 1e-7)
    True
    """
    if not 0 <= successes <= trials:
        return Bracket(0.0, 0.0)
    real = _real()
    failures, p = trials - successes, real.mpf(chance)
    ways = real.loggamma(trials + 1) - real.loggamma(successes + 1) - real.loggamma(failures + 1)
    value = float(real.exp(ways + successes * real.log(p) + failures * real.log1p(-p)))
    # Below the range of floats with all their digits nothing but zero bounds from below.
    return Bracket(value * (1 - MARGIN) if value > 1e-290 else 0.0, value * (1 + MARGIN) + 1e-300)


@cache
def _real() -> Any:
    """Numbers of thirty digits; a context of its own, for the precision of mpmath's is shared by all threads."""
    from mpmath.ctx_mp import MPContext

    made = MPContext()
    made.dps = DIGITS
    return made


def tail_over_pmf(trials: int, chance: float, least: int) -> Bracket:
    """Probability of at least so many successes, as a multiple of that of exactly so many.

    Examples
    --------
    >>> low, high = tail_over_pmf(4, 0.5, 2)
    >>> low < 11 / 6 < high
    True
    """
    if least >= trials:
        return Bracket(1.0, 1.0)
    odds, total, last, done = chance / (1 - chance), 1.0, 1.0, 0
    while least + done < trials and done < MOST_TERMS:
        k = np.arange(least + done, min(least + done + BLOCK, trials), dtype=np.float64)
        ratios = (trials - k) / (k + 1) * odds
        terms = last * np.cumprod(ratios)
        total, last, done = total + float(terms.sum()), float(terms[-1]), done + len(k)
        if last <= NEGLIGIBLE and ratios[-1] < 1:
            # Ratios fall, so what is left is less than a geometric series.
            return Bracket(total * (1 - MARGIN), (total + last * ratios[-1] / (1 - ratios[-1])) * (1 + MARGIN))
    return Bracket(total * (1 - MARGIN), total * (1 + MARGIN) if least + done >= trials else np.inf)


def upper_tail(trials: int, chance: float, least: int) -> Bracket:
    """Probability of at least so many successes, where `least` is at or above the mean; below it between 0 and 1."""
    if least <= 0:
        return Bracket(1.0, 1.0)
    if least < trials * chance:
        return Bracket(0.0, 1.0)
    one, sum_ = binomial_pmf(trials, chance, least), tail_over_pmf(trials, chance, least)
    return Bracket(one.low * sum_.low, min(1.0, one.high * sum_.high))


def most_below(trials: int, chance: float, limit: int) -> float:
    """Upper bound of the probability of fewer than `limit` successes.

    Examples
    --------
    >>> 6 / 16 - 1 / 16 < most_below(4, 0.5, 2) < 5 / 16 + 1e-7
    True
    """
    if limit <= 0:
        return 0.0
    if limit > trials:
        return 1.0
    if limit - 1 <= trials * chance:
        # Failures mirrored; 1 - chance is exact to half a unit in the last place, the tail's margin covers it.
        return upper_tail(trials, 1 - chance, trials - limit + 1).high
    return min(1.0, (1 - upper_tail(trials, chance, limit).low) * (1 + MARGIN))
