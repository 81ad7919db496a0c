"""Client laws by integer weights out of 2^62, sampled exactly as they are certified.

A law is a table of whole numbers: an output is drawn with probability weight / 2^62, from 62 random bits and with no
floating point. Most laws here have the same shape: every output has a base weight whatever the client's value, and a
few outputs near the value have an excess on top. The largest ratio of two weights of one output is then a quotient of
two integers, and its logarithm is the epsilon that the client really spends (docs/theory/local.md).
"""

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpppsynth.core.arguments import instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints

BITS = 62
TOTAL = 2**BITS
# Share of the budget that rounding to integers may cost.
LOST = 1e-9


class Split(NamedTuple):
    """Decoded draws from [0, 2^62): `output` (n,) where it does not depend on the value, else -1; `near` (n,)."""

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
    """Integer law with weights (F,) near the value and 1 elsewhere, as close as integers come to it.

    Parameters
    ----------
    weights : (F,) array
        From 1 to `e^epsilon`, the largest first; F at most `outputs`.
    outputs : int
    epsilon : float
        No ratio of two weights of an output exceeds `e^epsilon`.
    total : int
        A power of two up to 2^62.

    Raises
    ------
    InputError
        When integers out of `total` do not come close enough to the law: epsilon is too large or too small for so many
        outputs.
    """
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
    """(size + 1,) counts, and their chances, of reports with the given weights (size,) out of 2^62.

    A report counts once, so those of the likelier ones together are binomial, too: less is lost in many cells.
    """
    near = weights > weights.min()
    return np.append(counts, counts[near].sum()), np.append(weights, weights[near].sum()) / TOTAL
