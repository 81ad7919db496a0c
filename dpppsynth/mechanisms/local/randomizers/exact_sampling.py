"""Exact sampling from integer weights, by random bits alone.

Weights out of 2^62 do not suffice where a report is one of very many subsets. A uniform number from [0, 1) is then made
62 bits at a time and compared with exact fractions: the first bits decide but for some 2^-62 of all draws, and where
they do not, further ones do.

A law is a table of whole numbers: an output is drawn with probability weight / 2^62, from 62 random bits and with no
floating point. Most laws here have the same shape: every output has a base weight whatever the client's value, and a
few outputs near the value have an excess on top. The largest ratio of two weights of one output is then a quotient of
two integers, and its logarithm is the epsilon that the client really spends (docs/theory/local.md).
"""

import decimal
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints

BITS = 62
TOTAL = 2**BITS
# Share of the budget that rounding to integers may cost.
LOST = 1e-9


class Split(NamedTuple):
    """Decoded draws from [0, 2^62): `output` (n,), or -1 where it depends on the value, then by `near` (n,)."""

    output: Ints
    near: Ints


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    """Base weights of all outputs, the same for every value, and excess weights of a few outputs near the value.

    Attributes
    ----------
    outputs : int
        Number of outputs.
    low : int
        Smallest base weight; the first `extra` outputs have one more.
    extra : int
        Fewer than `outputs`.
    excess : (F,) array of int
        Added to the outputs near a value, whichever they are for that value.
    total : int
        Sum of all weights for every value.
    """

    outputs: int
    low: int
    extra: int
    excess: Ints
    total: int = TOTAL

    def __post_init__(self) -> None:
        self.excess.flags.writeable = False
        if self.outputs * self.low + self.extra + int(self.excess.sum()) != self.total or self.low < 1:
            msg = "weights: they must be positive and sum to the total; this is a defect of the law."
            raise InputError(msg)

    @property
    def spent(self) -> float:
        """Logarithm of the largest ratio of two weights of one output, rounded up."""
        return log_ratio(self.low + int(self.excess.max()), self.low)

    @property
    def base(self) -> Ints:
        """(outputs,) base weights."""
        return self.low + (np.arange(self.outputs) < self.extra).astype(np.int64)

    @cached_property
    def _steps(self) -> Ints:
        return np.cumsum(self.excess)

    def split(self, draws: Ints) -> Split:
        """Meaning of draws (n,) from [0, total): an output, or the number of one near the value."""
        even = self.outputs * self.low
        output = np.where(draws < even, draws // self.low, draws - even)
        near = draws - (even + self.extra)
        beyond = near >= 0
        output[beyond] = -1
        near[~beyond] = -1
        near[beyond] = np.searchsorted(self._steps, near[beyond], side="right")
        return Split(output, near)


def excess_law(weights: Floats, outputs: int, epsilon: float, *, total: int = TOTAL) -> ExcessLaw:
    """Integer law with weights (F,) near the value and 1 elsewhere, as close as integers come to it."""
    above = np.asarray(weights, dtype=float) - 1
    if not above.max(initial=0.0) > 0:
        raise InputError(_beyond(epsilon, outputs, total))
    extra = float(above.sum())
    # Exactly: in floating point the quotient would be some dozen units off, more than a small epsilon can spare.
    near = math.ceil(total / (outputs + Fraction(extra))) if extra < total else 0
    # The first one that fits; weights are rounded down, and what that leaves over may not fit everywhere.
    tried = (_rounded(above, outputs, epsilon, low, total) for low in (near, near - 1, near - 2))
    law = next((law for law in tried if law is not None), None)
    if law is None or not law.spent >= epsilon * (1 - LOST):
        raise InputError(_beyond(epsilon, outputs, total))
    return law


def _beyond(epsilon: float, outputs: int, total: int) -> str:
    bits = int(math.log2(total))
    return (
        f"epsilon: {epsilon:g} is beyond what integer weights out of 2^{bits} can express for {outputs} outputs; take "
        "one between 0.0001 and 12, or fewer cells."
    )


def _rounded(above: Floats, outputs: int, epsilon: float, low: int, total: int) -> ExcessLaw | None:
    """The law with this smallest weight; None where what is left over does not fit anywhere."""
    if low < 1:
        return None
    most = largest_weight(low, epsilon) - low
    # Compared as integers: `most` may have more digits than a double.
    excess = np.minimum(np.floor(above * low).astype(np.int64), most)
    left = total - outputs * low - int(excess.sum())
    if left < 0:
        taken = np.ceil(-left * (excess / max(1, excess.sum()))).astype(np.int64)
        if -left > min(1.0, epsilon) * LOST / 2 * excess.sum() or (taken > excess).any():
            return None
        excess -= taken
        left += int(taken.sum())
    low, extra = low + left // outputs, left % outputs
    return ExcessLaw(outputs, low, extra, excess, total)


def largest_weight(low: int, epsilon: float) -> int:
    """Largest integer whose ratio to `low` is at most `e^epsilon`."""
    with decimal.localcontext(prec=60):
        return int(decimal.Decimal(low) * decimal.Decimal(epsilon).exp() * (1 - decimal.Decimal("1e-50")))


def log_ratio(large: int, small: int) -> float:
    """Logarithm of a ratio of integers, rounded up."""
    with decimal.localcontext(prec=60):
        value = (decimal.Decimal(large) / decimal.Decimal(small)).ln()
        nearest = float(value)
        return nearest if decimal.Decimal(nearest) >= value else math.nextafter(nearest, math.inf)


def draws(rng: np.random.Generator, n: int, *, bits: int = BITS) -> Ints:
    """(n,) independent uniform integers from [0, 2^bits)."""
    instance("rng", rng, np.random.Generator, "dpppsynth.core.randomness.generator() makes one")
    return rng.integers(0, 2 ** whole("bits", bits, 1, most=BITS), size=n, dtype=np.int64)


def with_likelier(counts: Ints, weights: Ints) -> tuple[Ints, Floats]:
    """(size + 1,) counts, and chances, of reports with weights (size,) out of 2^62; the last is of all likelier ones.

    A report counts once, so those of the likelier ones together are binomial, too: less is lost in many cells.
    """
    near = weights > weights.min()
    return np.append(counts, counts[near].sum()), np.append(weights, weights[near].sum()) / TOTAL


# Random bits, of 62, that are drawn only if the first 16 do not decide a comparison.
LATER = BITS - 16


@dataclass(frozen=True)
class BinaryLaw:
    """One bit that is flipped with probability `flip / 2^62`."""

    flip: int

    @property
    def keep(self) -> int:
        """Weight of the bit that is not flipped."""
        return TOTAL - self.flip

    def flips(self, rng: np.random.Generator, n: int) -> npt.NDArray[np.bool_]:
        """(n,) independent bits, each set with probability `flip / 2^62`: whether 62 random bits are below `flip`."""
        high, low = divmod(self.flip, 2**LATER)
        first = rng.integers(0, 2 ** (BITS - LATER), size=n, dtype=np.uint16)
        flips = first < high
        # The first bits decide nearly all; the others are drawn where they do not.
        tied = np.flatnonzero(first == high)
        flips[tied] = draws(rng, len(tied), bits=LATER) < low
        return flips

    @cached_property
    def log_odds(self) -> float:
        """Logarithm of the odds of being kept, rounded up."""
        return log_ratio(self.keep, self.flip)


def binary_law(epsilon: float) -> BinaryLaw:
    """Law of a bit whose odds of being kept are at most `e^epsilon`, and as close to it as integers come."""
    with decimal.localcontext(prec=60):
        flip = math.ceil(decimal.Decimal(TOTAL) / (1 + decimal.Decimal(epsilon).exp()))
    law = BinaryLaw(flip)
    if not epsilon * (1 - LOST) <= law.log_odds <= epsilon:
        msg = f"epsilon: {epsilon:g} is beyond what integer weights out of 2^{BITS} can express; take 0.0001 to 20."
        raise InputError(msg)
    return law


@dataclass(frozen=True, eq=False)
class Choice:
    """A law of outcomes 0, 1, ..., each with its whole-number weight out of the sum of all, however large.

    Attributes
    ----------
    weights : sequence of int
        Not negative; not all zero.

    Examples
    --------
    >>> Choice((1, 0, 2)).pick(np.array([0, 2**61]), np.random.default_rng(1)).tolist()
    [0, 2]
    """

    weights: Sequence[int]

    def __post_init__(self) -> None:
        if not len(self.weights) or min(self.weights) < 0 or not self.total:
            msg = "weights: must be whole numbers that are not negative, and not all zero."
            raise InputError(msg)

    @cached_property
    def _ends(self) -> list[int]:
        return list(itertools.accumulate(self.weights))

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self._ends[-1]

    @cached_property
    def _floors(self) -> Ints:
        return np.array([(end << BITS) // self.total for end in self._ends], dtype=np.int64)

    def pick(self, first: Ints, rng: np.random.Generator) -> Ints:
        """(n,) outcomes, given the first 62 bits (n,) of each uniform number; more come from `rng` where needed."""
        found = np.searchsorted(self._floors, first, side="left")
        for k in np.flatnonzero(found < np.searchsorted(self._floors, first, side="right")):
            found[k] = self._settled(int(first[k]), rng)
        return found

    def _settled(self, digits: int, rng: np.random.Generator) -> int:
        """Outcome of a uniform number that starts with 62 such bits: bits are added until its place is certain."""
        unit = TOTAL
        while True:
            # The number lies in [digits, digits + 1) / unit; outcomes end at fractions of the total.
            least = bisect_right(self._ends, digits * self.total // unit)
            most = bisect_left(self._ends, -(-(digits + 1) * self.total // unit))
            if least == most:
                return least
            unit *= TOTAL
            digits = digits * TOTAL + int(draws(rng, 1)[0])


def uniform_below(bounds: Ints, rng: np.random.Generator) -> Ints:
    """(n,) integers, each uniform from 0 up to, without, its positive bound (n,)."""
    found = draws(rng, len(bounds))
    fair = TOTAL - TOTAL % bounds
    while len(again := np.flatnonzero(found >= fair)):
        found[again] = draws(rng, len(again))
    return found % bounds


def distinct(sizes: Ints, taken: Ints, rng: np.random.Generator) -> Ints:
    """(n, k) distinct positions, in no order: uniform subsets of two ranges of positions, by Floyd's method.

    References
    ----------
    Bentley and Floyd (1987), A sample of brilliance, Communications of the ACM 30(9).
    """
    chosen = np.full((len(sizes), int(taken[0].sum()) if len(taken) else 0), -1, dtype=np.int64)
    for k in range(chosen.shape[1]):
        second = k >= taken[:, 0]
        run = second.astype(np.int64)[:, None]
        size, number = (np.take_along_axis(each, run, axis=1)[:, 0] for each in (sizes, taken))
        start, done = np.where(second, sizes[:, 0], 0), np.where(second, k - taken[:, 0], k)
        last = size - number + done
        position = start + uniform_below(last + 1, rng)
        double = (chosen[:, :k] == position[:, None]).any(axis=1)
        chosen[:, k] = np.where(double, start + last, position)
    return chosen


def meeting(at: Ints, far: Ints, k: int, rng: np.random.Generator) -> Ints:
    """(n, k) positions, in no order, of uniform subsets of `at + far` positions that meet the first `at` of them."""
    if not len(at):
        return np.empty((0, k), dtype=np.int64)
    if k == 1:
        return uniform_below(at, rng)[:, None]
    taken, base = draws(rng, len(at)), int(far.max(initial=0)) + 1
    for code, rows in groups(at * base + far):
        taken[rows] = _shared(*divmod(code, base), k).pick(taken[rows], rng)
    return distinct(np.stack([at, far], axis=1), np.stack([taken, k - taken], axis=1), rng)


@lru_cache(maxsize=4096)
def _shared(at: int, far: int, k: int) -> Choice:
    """Choice of how many of the k positions are among the first `at`; not none."""
    return Choice([0] + [math.comb(at, taken) * math.comb(far, k - taken) for taken in range(1, min(at, k) + 1)])


def groups(keys: Ints) -> list[tuple[int, Ints]]:
    """Distinct keys among (n,), each with the indices where it occurs.

    Examples
    --------
    >>> [(key, places.tolist()) for key, places in groups(np.array([7, 3, 7]))]
    [(3, [1]), (7, [0, 2])]
    """
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(keys) else []
