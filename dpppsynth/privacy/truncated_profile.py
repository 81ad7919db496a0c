"""Privacy profile of truncated discrete Laplace noise (docs/theory/bounded_error.md, Theorem N)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpppsynth.core.arguments import elements, positive, probability
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.profiles import RULE, Profile
from dpppsynth.privacy.truncated.error_bounds import require_whole
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric

__all__ = ["TruncatedLaplaceDP"]

# Relative precision of epsilon, upwards.
PRECISION = 1e-14


@dataclass(frozen=True)
class TruncatedLaplaceDP(Profile):
    """Numbers with independent noise `P(k) ~ exp(-|k| / scale)`, `|k| <= bound`, of which some shift.

    The profile never falls below the probability of an answer that only one of two neighbouring patterns can give:
    epsilon is infinite at a smaller delta.

    Attributes
    ----------
    scale : float
    bound : int
    shifts : tuple of int
        By how much each number changes that differs between the worst neighbouring patterns.
    at : float
        The delta at which the profile is quoted.

    Examples
    --------
    >>> profile = TruncatedLaplaceDP(scale=2.0, bound=25, shifts=(1, 1), at=1e-5)
    >>> round(profile.epsilon(1e-5), 6), profile.epsilon(1e-6)
    (0.999979, inf)
    """

    scale: float
    bound: int
    shifts: tuple[int, ...]
    at: float
    kind: ClassVar[str] = "truncated-laplace"

    def __post_init__(self) -> None:
        shifts = tuple(require_whole("shifts", shift, 1) for shift in elements(self.shifts) or ())
        if not shifts:
            msg = "shifts: needs by how much each number changes, such as (1, 1), got none."
            raise InputError(msg)
        object.__setattr__(self, "scale", float(positive("scale", self.scale, rule=RULE)))
        object.__setattr__(self, "bound", require_whole("bound", self.bound, 1))
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "at", probability("delta", self.at))

    @cached_property
    def _law(self) -> TruncatedGeometric:
        return TruncatedGeometric(self.scale, self.bound)

    @property
    def total(self) -> float:
        """Epsilon from which on delta falls no more, `sum shifts / scale` rounded up."""
        return self._law.epsilon_total(self.shifts)

    @property
    def floor(self) -> float:
        """The smallest delta at any epsilon: the probability of outputs possible under one of two neighbours alone."""
        return self.delta(self.total)

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence, rounded up."""
        return float(self._law.delta(epsilon, self.shifts))

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below the floor."""
        if not delta >= self.floor:
            return math.inf
        low, high = 0.0, self.total
        if self.delta(low) <= delta:
            return low
        # Bisection: where the profile is flat a search for a root would stop anywhere.
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def describe(self) -> str:
        return self.quoted(
            f". With a probability of about {self.floor:.3g} the release is one that only one of the two patterns can "
            "give: that is the price of the hard bound on the error, and no epsilon holds at a smaller probability"
        )
