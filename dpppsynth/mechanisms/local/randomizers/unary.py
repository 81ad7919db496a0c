"""Unary encodings: one independently randomised bit for each value.

References
----------
Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation, USENIX Security.
Erlingsson, Pihur and Korolova (2014), RAPPOR, CCS: symmetric unary encoding is its one-time basic form.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import TOTAL, BinaryLaw, binary_law, draws
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle

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
class UnaryOracle(FrequencyOracle):
    """Base of both: 62 bits in a word, the own bit and the others with their probabilities of being set.

    Counts are the reports with each bit set. `fast_counts` have exactly their law.
    """

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the words."""
        return tuple(f"word_{k}" for k in range(-(-self.domain // WORD)))

    @property
    def _width(self) -> int:
        return self.domain

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
        last = self.domain - WORD * (checked.shape[1] - 1)
        if len(checked) and (checked.min() < 0 or checked.max() >= 2**WORD or checked[:, -1].max() >= 2**last):
            msg = f"reports: must be words of {WORD} bits that stand for {self.domain} values; some have more bits."
            raise InputError(msg)
        return checked

    def count(self, reports: Ints) -> Ints:
        """(domain,) number of reports with the bit of each value set."""
        checked, counts = self._checked(reports), np.zeros(self.domain, dtype=np.int64)
        for part in self._parts(len(checked)):
            counts += unpack(checked[part], self.domain).sum(axis=0, dtype=np.int64)
        return counts

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return bit(reports, value)


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimizedUnary(UnaryOracle):
    """Optimized unary encoding: the own bit is a fair coin, each other bit is set with probability 1/(e^epsilon + 1).

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
