"""Frequency oracles in general: reports that support values, and unbiased estimates linear in the supports.

A report supports its client's own value with probability p and any other value with probability q. Of n clients, c of
them with a value, about `c p + (n - c) q` reports support it, and solving for c estimates it without bias.

Every value lies in as many blocks, and every two values in as many. A fair comparison of 62 random bits with one
integer decides whether the reported block has the client's own value; given that, all such blocks are alike.
"""

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import instance, one_of, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import LOST, TOTAL, BinaryLaw, log_ratio
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer, known_settings
from dpppsynth.spatial.simplex import norm_mul, norm_sub, possible

POSTS = ("none", "clip", "norm-sub")
LARGEST_EPSILON = 50.0
# Values of 4096 x 4096 cells.
LARGEST_DOMAIN = 2**24
# Numbers that are held at once while reports are drawn or read, and entries of the largest matrix that is made.
CHUNK = 2**20
LARGEST_MATRIX = 2**26


def checked_budget(epsilon: Any, domain: Any) -> tuple[float, int]:
    """The budget of a report and the number of values, checked; InputError."""
    rule = f"be positive and at most {LARGEST_EPSILON:g}"
    budget = float(positive("epsilon", epsilon, rule=rule, most=LARGEST_EPSILON))
    return budget, whole("domain", domain, 1, most=LARGEST_DOMAIN, remedy="take fewer cells")


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyOracle(Randomizer):
    """Base of oracles for any finite list of values, without distances between them.

    Attributes
    ----------
    epsilon : float
        Budget of one report, at most 50.
    domain : int
        Number of values, from 1 to 2^24.
    """

    domain: int
    # Whether every report counts once, so that counts add up to the number of reports.
    categorical: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._settled_domain()
        super().__post_init__()

    def _settled_domain(self) -> None:
        """Refuse a wrong epsilon or number of values; InputError."""
        object.__setattr__(self, "domain", checked_budget(self.epsilon, self.domain)[1])

    @property
    def inputs(self) -> int:
        return self.domain

    @property
    def size(self) -> int:
        return self.domain

    @property
    def p(self) -> Fraction:
        """Probability that a report supports its client's value, from the integer weights."""
        raise NotImplementedError

    @property
    def q(self) -> Fraction:
        """Probability that a report supports another value, from the integer weights."""
        raise NotImplementedError

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        """(n,) whether reports (n, columns), checked ones, support a value."""
        raise NotImplementedError

    @property
    def _width(self) -> int:
        """Numbers that drawing and reading one report takes."""
        return 1

    @property
    def _batch(self) -> int:
        return max(CHUNK // self._width, 1)

    def tallies(self, counts: Any) -> Ints:
        array = plain_array(counts)
        if array is None or self.categorical or array.shape != (self.size,) or array.dtype.kind not in "iuf":
            return super().tallies(counts)
        # Few reports may support nothing at all.
        return super().tallies(counts) if array.any() else np.zeros(self.size, dtype=np.int64)

    def reported(self, counts: Ints) -> int | None:
        counts = self.tallies(counts)
        return int(counts.sum()) if self.categorical else None

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        chances = np.full(self.inputs, float(self.q))
        chances[value] = float(self.p)
        return self.supports(counts), chances

    def supports(self, counts: Ints) -> Ints:
        """(domain,) number of reports that support each value."""
        return self.tallies(counts)

    def frequencies(self, counts: Ints, n: int) -> Floats:
        """(domain,) unbiased estimates of the shares of the values among n reports; some may be negative.

        Times n they are the estimated numbers of clients, `(supports - n q) / (p - q)`.

        Raises
        ------
        InputError
            When the counts cannot stem from n reports.
        """
        return (self.supports(self.counts_of(counts, n)) / n - float(self.q)) / float(self.p - self.q)

    def variance(self, count: npt.ArrayLike, n: int) -> Any:
        """Variance of the estimated number of clients with a value, n times its share.

        Parameters
        ----------
        count : float or array
            True number of clients with the value, from 0 to n.
        n : int
            Number of reports.

        Returns
        -------
        float or array
            `(c p (1 - p) + (n - c) q (1 - q)) / (p - q)^2`, exact.
        """
        n, array = whole("n", n, 1, most=2**53), plain_array(count)
        if array is None or array.dtype.kind not in "iuf" or not np.all((array >= 0) & (array <= n)):
            msg = "count: must be true numbers of clients, from 0 to n."
            raise InputError(msg)
        gap = (self.p - self.q) ** 2
        own, other = float(self.p * (1 - self.p) / gap), float(self.q * (1 - self.q) / gap)
        variance = np.asarray(array * own + (n - array) * other)
        return variance if variance.ndim else float(variance)

    def settings(self, **given: Any) -> dict[str, Any]:
        """Settings of `estimate`: `post` is "none", "clip" or "norm-sub".

        "none" leaves the unbiased estimates as they are, "clip" sets negative ones to zero and divides by the sum,
        "norm-sub" takes the nearest shares.
        """
        return {"post": one_of("post", known_settings(given, post="norm-sub")["post"], POSTS)}

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(domain,) estimated shares of the values; with `post="none"` they may be negative and miss one as their sum.

        Parameters are those of `Randomizer.estimate`, settings those of `settings`.
        """
        post, mask = self.settings(**settings)["post"], possible(inside, self.domain)
        shares = self.frequencies(counts, n)
        if post == "none":
            return np.where(mask, shares, 0.0)
        return (norm_mul if post == "clip" else norm_sub)(shares, inside=mask)

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        checked, most = self._checked(reports), self.domain - 1
        value, other = (whole(name, v, 0, most=most) for name, v in (("value", value), ("other", other)))
        sign = self.supported(checked, value).astype(float) - self.supported(checked, other)
        return sign * self._steps(checked)

    def _checked(self, reports: Any) -> Ints:
        """Reports that clients send; InputError for others."""
        raise NotImplementedError

    def _steps(self, reports: Ints) -> Floats | float:
        """Logarithms of the odds of a report for a value it supports against one that it does not."""
        return self.spent

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        """Counts as of reports of clients with given true counts (domain,), without a report: for experiments.

        Each value's support is the sum of two binomials. Floating point takes part, so nothing that is drawn here is
        private; which law of the counts it has the class tells.
        """
        counts = self.true_numbers(true_counts, rng)
        return rng.binomial(counts, float(self.p)) + rng.binomial(counts.sum() - counts, float(self.q))

    def true_numbers(self, true_counts: Any, rng: Any) -> Ints:
        """(domain,) true numbers of clients, checked, and the generator with them; InputError."""
        array = plain_array(true_counts)
        # Their sum must be a 64-bit number.
        known = array is not None and array.shape == (self.domain,) and array.dtype.kind in "iu"
        if array is None or not known or array.min() < 0 or int(array.max()) * self.domain >= 2**62:
            msg = f"true_counts: must be {self.domain} whole numbers, none negative, with a sum below 2^62."
            raise InputError(msg)
        instance("rng", rng, np.random.Generator, "dpppsynth.core.randomness.generator() makes one")
        return array.astype(np.int64)

    def _room(self, rows: int) -> None:
        """InputError for a matrix of too many rows."""
        if rows * self.domain > LARGEST_MATRIX:
            msg = (
                f"domain: the matrix of {self.domain} values and {rows} reports has more than {LARGEST_MATRIX} "
                "entries; take fewer values."
            )
            raise InputError(msg)


@dataclass(frozen=True)
class DesignLaw:
    """Block with the own value with probability `keep / 2^62`; `odds`: blocks with it for each without."""

    keep: int
    odds: Fraction

    @property
    def coins(self) -> BinaryLaw:
        """Law of a coin that comes up where the block lacks the client's value."""
        return BinaryLaw(TOTAL - self.keep)

    @cached_property
    def spent(self) -> float:
        """Logarithm of the ratio of a block's probabilities with and without the client's value in it, rounded up."""
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
        """Law of whether a report's block holds the client's value."""
        one, _ = self.shares
        return design_law(self.epsilon, one / (1 - one))

    @property
    def spent(self) -> float:
        return self.law.spent

    @property
    def p(self) -> Fraction:
        return Fraction(self.law.keep, TOTAL)

    @cached_property
    def q(self) -> Fraction:
        one, both = self.shares
        return self.p * both / one + (1 - self.p) * (one - both) / (1 - one)

    def kept(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n,) whether blocks hold their clients' values."""
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
    """Sum over all values of the variance of the estimated number of clients, per client; the same for all true values.

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
