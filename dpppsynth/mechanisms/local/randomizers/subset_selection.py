"""Subset selection: a report is a set of values of public size, the own one among them more often than others."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import draws
from dpppsynth.mechanisms.local.randomizers.frequency import DesignOracle, checked_budget, ideal_variance
from dpppsynth.mechanisms.local.randomizers.unary import WORD, bit, pack, unpack

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
class SubsetSelection(DesignOracle):
    """Subset selection: of all subsets of k values those with the own one are `e^epsilon` times as likely.

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

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the words, 62 values in each."""
        return tuple(f"word_{k}" for k in range(-(-self._pool // WORD)))

    @property
    def _width(self) -> int:
        return self._pool

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
        last = self._pool - WORD * (checked.shape[1] - 1)
        words = len(checked) == 0 or (checked.min() >= 0 and checked.max() < 2**WORD and checked[:, -1].max() < 2**last)
        if not words or any((self._members(checked[part]) != self.subset).any() for part in self._parts(len(checked))):
            msg = f"reports: must be words of {WORD} bits with {self.subset} of {self._pool} set; some are not."
            raise InputError(msg)
        return checked

    def _members(self, words: Ints) -> Ints:
        return np.bitwise_count(words).sum(axis=1, dtype=np.int64)

    def count(self, reports: Ints) -> Ints:
        """(domain,) number of reports with each value."""
        checked, counts = self._checked(reports), np.zeros(self.domain, dtype=np.int64)
        for part in self._parts(len(checked)):
            counts += unpack(checked[part], self.domain).sum(axis=0, dtype=np.int64)
        return counts

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return bit(reports, value)

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
