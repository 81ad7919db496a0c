"""Frequency oracles by balanced designs: a report is a block, and blocks with the own value are likelier than others.

Every value lies in as many blocks, and every two values in as many. A fair comparison of 62 random bits with one
integer decides whether the reported block has the client's own value; given that, all such blocks are alike.
"""

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.binary import BinaryLaw
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.weights import LOST, TOTAL, log_ratio


@dataclass(frozen=True)
class DesignLaw:
    """Block with the own value with probability `keep / 2^62`; `odds` is how many blocks have it for each that has not.

    Attributes
    ----------
    keep : int
    odds : Fraction
    """

    keep: int
    odds: Fraction

    @property
    def coins(self) -> BinaryLaw:
        """Coins that come up where the block lacks the own value."""
        return BinaryLaw(TOTAL - self.keep)

    @cached_property
    def spent(self) -> float:
        """Logarithm of the ratio of a block's probabilities with and without the own value in it, rounded up."""
        without = (TOTAL - self.keep) * self.odds.numerator
        return log_ratio(self.keep * self.odds.denominator, without)


def design_law(epsilon: float, odds: Fraction) -> DesignLaw:
    """Law whose ratio of probabilities is at most `e^epsilon`, and as close to it as integers come.

    Examples
    --------
    >>> law = design_law(1.0, Fraction(1, 3))
    >>> round(law.keep / 2**62, 6), round(law.spent, 9)
    (0.475367, 1.0)
    """
    with decimal.localcontext(prec=60):
        weight = decimal.Decimal(epsilon).exp() * odds.numerator / odds.denominator
        keep = math.floor(TOTAL * (weight / (1 + weight)) * (1 - decimal.Decimal("1e-50")))
    if 0 < keep < TOTAL:
        law = DesignLaw(keep, odds)
        if epsilon * (1 - LOST) <= law.spent <= epsilon:
            return law
    msg = f"epsilon: {epsilon:g} is beyond what integer weights out of 2^62 can express here; take 0.0001 to 20."
    raise InputError(msg)


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignOracle(FrequencyOracle):
    """Base of oracles whose reports are blocks of a balanced design."""

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """Share of the blocks that hold a value, and of those that hold two given ones."""
        raise NotImplementedError

    @cached_property
    def law(self) -> DesignLaw:
        """Whether a report has the own value."""
        one, _ = self.shares
        return design_law(self.epsilon, one / (1 - one))

    @property
    def spent(self) -> float:
        """Epsilon that the integer weights certify."""
        return self.law.spent

    @property
    def p(self) -> Fraction:
        """Probability that the block holds the own value."""
        return Fraction(self.law.keep, TOTAL)

    @cached_property
    def q(self) -> Fraction:
        """Probability that the block holds another value: by how many blocks hold both, or only the other."""
        one, both = self.shares
        return self.p * both / one + (1 - self.p) * (one - both) / (1 - one)

    def kept(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n,) whether blocks hold the own value of their clients."""
        return ~self.law.coins.flips(rng, n)


def ideal_variance(epsilon: float, domain: int, one: float, both: float) -> float:
    """Total variance per client of a design, in real numbers, by the shares of blocks that hold one value and two.

    Examples
    --------
    >>> round(ideal_variance(1.0, 4, 1 / 4, 0.0), 6)
    7.556223
    """
    odds = math.exp(epsilon) * one / (1 - one)
    p = odds / (1 + odds)
    q = p * both / one + (1 - p) * (one - both) / (1 - one)
    gap = (p - q) ** 2
    return (p * (1 - p) + (domain - 1) * q * (1 - q)) / gap if gap else math.inf


def total_variance(oracle: FrequencyOracle) -> float:
    """Sum over all values of the variance of the estimated number of clients, per client; whatever values they have.

    Of n clients c_v have value v, which adds `c_v own + (n - c_v) other`. Over all values that is
    `n (own + (domain - 1) other)`.

    Examples
    --------
    >>> from dpppsynth.mechanisms.local.randomizers.oracles import RandomizedResponse
    >>> round(total_variance(RandomizedResponse(epsilon=1.0, domain=4)), 6)
    7.556223
    """
    instance("oracle", oracle, FrequencyOracle, "RandomizedResponse(epsilon=1.0, domain=9) is one")
    gap = (oracle.p - oracle.q) ** 2
    own, other = oracle.p * (1 - oracle.p) / gap, oracle.q * (1 - oracle.q) / gap
    return float(own + (oracle.domain - 1) * other)
