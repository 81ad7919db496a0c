"""Bernoulli laws of single bits by integer weights out of 2^62, for unary encodings and Hadamard response."""

import decimal
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.weights import BITS, LOST, TOTAL, draws, log_ratio

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
    """Law of a bit whose odds of being kept are at most `e^epsilon`, and as close to it as integers come.

    Raises
    ------
    InputError
        When integers out of 2^62 do not come within a billionth.
    """
    with decimal.localcontext(prec=60):
        flip = math.ceil(decimal.Decimal(TOTAL) / (1 + decimal.Decimal(epsilon).exp()))
    law = BinaryLaw(flip)
    if not epsilon * (1 - LOST) <= law.log_odds <= epsilon:
        msg = f"epsilon: {epsilon:g} is beyond what integer weights out of 2^{BITS} can express; take 0.0001 to 20."
        raise InputError(msg)
    return law
