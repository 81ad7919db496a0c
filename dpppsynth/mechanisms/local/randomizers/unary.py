"""Reports of one bit for each value: unary encodings, whose bits are independent, and subsets of a public size.

References
----------
Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation, USENIX Security.
Erlingsson, Pihur and Korolova (2014), RAPPOR, CCS: symmetric unary encoding is its one-time basic form.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import TOTAL, BinaryLaw, binary_law, draws
from dpppsynth.mechanisms.local.randomizers.frequency import (
    DesignOracle,
    FrequencyOracle,
    checked_budget,
    ideal_variance,
)

WORD = 62
Bits = npt.NDArray[np.bool_]


def pack(bits: Bits) -> Ints:
    """(n, ceil(d / 62)) words of bits (n, d).

    Examples
    --------
    >>> pack(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    n, size = bits.shape
    words = -(-size // WORD)
    filled = np.zeros((n, words * WORD), dtype=bool)
    filled[:, :size] = bits
    places = np.zeros((n, words, 64), dtype=bool)
    places[:, :, :WORD] = filled.reshape(n, words, WORD)
    return np.packbits(places, axis=-1, bitorder="little").view("<i8")[:, :, 0].astype(np.int64)


def unpack(words: Ints, size: int) -> Bits:
    """(n, size) bits of words (n, ceil(size / 62))."""
    n, width = words.shape
    octets = np.ascontiguousarray(words.astype("<i8")).view(np.uint8)
    places = np.unpackbits(octets, axis=-1, bitorder="little").reshape(n, width, 64)
    return places[:, :, :WORD].reshape(n, width * WORD)[:, :size].astype(bool)


def bit(words: Ints, place: int) -> Bits:
    """(n,) one bit of words (n, w)."""
    return (words[:, place // WORD] >> (place % WORD) & 1).astype(bool)


# Values up to which the matrix of all 2^d reports is made.
MOST_BITS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class BitOracle(FrequencyOracle):
    """Base of oracles whose reports have one bit for each value, 62 in a word."""

    @property
    def _pool(self) -> int:
        """Number of bits."""
        return self.domain

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the words."""
        return tuple(f"word_{k}" for k in range(-(-self._pool // WORD)))

    @property
    def _width(self) -> int:
        return self._pool

    def _fits(self, words: Ints) -> bool:
        """Whether words (n, columns) have no other bits than those of values."""
        last = 2 ** (self._pool - WORD * (words.shape[1] - 1))
        return not len(words) or bool(words.min() >= 0 and words.max() < 2**WORD and words[:, -1].max() < last)

    def count(self, reports: Ints) -> Ints:
        checked, counts = self._checked(reports), np.zeros(self.domain, dtype=np.int64)
        for part in self._batches(len(checked)):
            counts += unpack(checked[part], self.domain).sum(axis=0, dtype=np.int64)
        return counts

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return bit(reports, value)


@dataclass(frozen=True, kw_only=True, eq=False)
class UnaryOracle(BitOracle):
    """Base of unary encodings: the bit of the client's value, and the others, with their probabilities of being set.

    Counts are the reports with each bit set. `fast_counts` have exactly their law.
    """

    @cached_property
    def _law(self) -> BinaryLaw:
        """Law of the bits of other values."""
        raise NotImplementedError

    @property
    def _keep(self) -> int:
        """Weight of setting the bit of the own value."""
        raise NotImplementedError

    @property
    def p(self) -> Fraction:
        return Fraction(self._keep, TOTAL)

    @property
    def q(self) -> Fraction:
        return Fraction(self._law.flip, TOTAL)

    def matrix(self) -> Floats:
        """(2^domain, domain) probabilities of every word given each value; up to 12 values."""
        if self.domain > MOST_BITS:
            msg = f"domain: the matrix has 2^{self.domain} rows; at most {MOST_BITS} values have one."
            raise InputError(msg)
        bits = unpack(np.arange(2**self.domain)[:, None], self.domain)
        own, other = (np.where(bits, float(c), float(1 - c)) for c in (self.p, self.q))
        return other.prod(axis=1)[:, None] / other * own

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        bits = self._law.flips(rng, len(values) * self.domain).reshape(-1, self.domain)
        bits[np.arange(len(values)), values] = draws(rng, len(values)) < self._keep
        return pack(bits)

    def _checked(self, reports: Any) -> Ints:
        checked = self.rows(reports)
        if not self._fits(checked):
            msg = f"reports: must be words of {WORD} bits that stand for {self.domain} values; some have more bits."
            raise InputError(msg)
        return checked


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimizedUnary(UnaryOracle):
    """Optimized unary encoding: the client's bit is a fair coin, each other is set with probability 1/(e^epsilon + 1).

    Examples
    --------
    >>> oracle = OptimizedUnary(epsilon=np.log(3), domain=100)
    >>> oracle.p, round(float(oracle.q), 9), oracle.columns
    (Fraction(1, 2), 0.25, ('word_0', 'word_1'))
    """

    kind: ClassVar[str] = "optimized-unary"

    @cached_property
    def _law(self) -> BinaryLaw:
        return binary_law(self.epsilon)

    @property
    def _keep(self) -> int:
        return TOTAL // 2

    @property
    def spent(self) -> float:
        return self._law.log_odds


@dataclass(frozen=True, kw_only=True, eq=False)
class SymmetricUnary(UnaryOracle):
    """Symmetric unary encoding, as in basic one-time RAPPOR: every bit is flipped with probability 1/(e^(eps/2) + 1).

    Examples
    --------
    >>> oracle = SymmetricUnary(epsilon=np.log(9), domain=4)
    >>> round(float(oracle.p), 9), round(float(oracle.q), 9)
    (0.75, 0.25)
    """

    kind: ClassVar[str] = "symmetric-unary"

    @cached_property
    def _law(self) -> BinaryLaw:
        return binary_law(self.epsilon / 2)

    @property
    def _keep(self) -> int:
        return self._law.keep

    @property
    def spent(self) -> float:
        return 2 * self._law.log_odds


# Bits of the random keys whose smallest ones make a subset; ties at its end are drawn again.
KEY_BITS = 48


def selected_size(epsilon: float, domain: int) -> int:
    """Size of the subsets with the least total variance: `domain / (e^epsilon + 1)`, rounded down or up.

    Examples
    --------
    >>> [selected_size(epsilon, 100) for epsilon in (0.5, 1.0, 3.0, 5.0)]
    [38, 27, 5, 1]
    """
    epsilon, domain = checked_budget(epsilon, domain)
    ideal, most = domain / (math.exp(epsilon) + 1), max(1, domain - 1)
    sizes = (min(max(1, around), most) for around in (math.floor(ideal), math.ceil(ideal)))

    def variance(size: int) -> float:
        one = size / max(2, domain)
        return ideal_variance(epsilon, domain, one, one * (size - 1) / most)

    return min(sizes, key=variance)


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetSelection(DesignOracle, BitOracle):
    """Subset selection: subsets of k values that hold the client's value are `e^epsilon` times as likely as others.

    No oracle has a smaller total variance; reports are long, one bit for each value. With k = 1 it is randomised
    response. Counts are supports. `fast_counts` have exactly the law of counts of reports.

    Attributes
    ----------
    subset : int
        Values in a report, fewer than there are; `selected_size(epsilon, domain)` if not given.

    References
    ----------
    Ye and Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy, IEEE
    Transactions on Information Theory 64(8); Wang et al. (2016), Mutual information optimally local private discrete
    distribution estimation.

    Examples
    --------
    >>> oracle = SubsetSelection(epsilon=1.0, domain=16)
    >>> oracle.subset, round(float(oracle.p), 6), round(float(oracle.q), 6)
    (4, 0.475367, 0.234976)
    """

    subset: Any = None
    kind: ClassVar[str] = "subset-selection"

    def __post_init__(self) -> None:
        super()._settled_domain()
        asked = selected_size(float(self.epsilon), self.domain) if self.subset is None else self.subset
        most = self._pool - 1
        size = whole("subset", asked, 1, most=most, remedy="leave it out for the best one")
        object.__setattr__(self, "subset", size)
        super().__post_init__()

    @property
    def _pool(self) -> int:
        """Number of values that subsets are taken of: one that nobody has is added to a single one."""
        return max(2, self.domain)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        one = Fraction(self.subset, self._pool)
        return one, one * Fraction(self.subset - 1, self._pool - 1)

    def matrix(self) -> Floats:
        """(C(domain, subset), domain) probabilities of all subsets, in lexicographic order."""
        rows = math.comb(self._pool, self.subset)
        self._room(rows)
        own = float(self.p / math.comb(self._pool - 1, self.subset - 1))
        other = float((1 - self.p) / math.comb(self._pool - 1, self.subset))
        found = np.full((rows, self._pool), other)
        found[np.arange(rows)[:, None], np.array([*combinations(range(self._pool), self.subset)])] = own
        return found[:, : self.domain]

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        kept, rows = self.kept(len(values), rng), np.arange(len(values))
        chosen = np.zeros((len(values), self._pool), dtype=bool)
        left = rows
        while len(left):
            keys = draws(rng, len(left) * self._pool, bits=KEY_BITS).reshape(len(left), self._pool)
            # The own value comes first, or last and so in no subset; all others are alike.
            keys[np.arange(len(left)), values[left]] = np.where(kept[left], -1, 2**KEY_BITS)
            ends = np.partition(keys, (self.subset - 1, self.subset), axis=1)[:, self.subset - 1 : self.subset + 1]
            chosen[left] = keys <= ends[:, :1]
            # Where the last key of a subset is that of the next one as well, no order is fair but a new one.
            left = left[ends[:, 0] == ends[:, 1]]
        return pack(chosen)

    def _checked(self, reports: Any) -> Ints:
        checked = self.rows(reports)
        numbers = (np.bitwise_count(checked[part]).sum(axis=1, dtype=np.int64) for part in self._batches(len(checked)))
        if not self._fits(checked) or any((found != self.subset).any() for found in numbers):
            msg = f"reports: must be words of {WORD} bits with {self.subset} of {self._pool} set; some are not."
            raise InputError(msg)
        return checked

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        """Counts with exactly the law of counts of reports (up to floating point), for experiments.

        Values are taken one after the other: of reports that still lack j members with m values to come, each has the
        next one with probability j / m.
        """
        counts, size = self.true_numbers(true_counts, rng), self.subset
        supports = rng.binomial(counts, float(self.p))
        lacking = np.zeros((self.domain, size + 1), dtype=np.int64)
        lacking[:, size - 1], lacking[:, size] = supports, counts - supports
        # Of others than the own value, whose place in the subset is settled.
        left = np.full(self.domain, self._pool - 1)
        for value in range(self.domain):
            others = np.arange(self.domain) != value
            chances = np.arange(size + 1) / np.maximum(left[others], 1)[:, None]
            taken = rng.binomial(lacking[others], np.minimum(chances, 1.0))
            supports[value] += taken.sum()
            lacking[others] += np.pad(taken[:, 1:], ((0, 0), (0, 1))) - taken
            left[others] -= 1
        return supports
