"""`ErrorTerms`: epsilon, delta and error bound of a release of answers, and searches for terms within a delta."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpppsynth.core.arguments import flag, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.privacy.bounds import laplace_scale
from dpppsynth.privacy.noise import DiscreteNoise, laplace_noise, truncated_laplace_noise
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.privacy.truncated.error_bounds import (
    LARGEST,
    least_whole_epsilon,
    least_whole_error,
    require_whole,
    whole_bound,
)
from dpppsynth.privacy.truncated.geometric import MOST_SHIFTS, MOST_WORK, TruncatedGeometric
from dpppsynth.privacy.truncated.shifted_losses import at_least_one
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

# Relative safety margin of a stated delta, more than all roundings. Range of probabilities as floats.
ROUND_UP, TINY = 1e-11, 1e-300
MOST_QUERIES, LARGEST_EPSILON = 100_000, 1e100


@dataclass(frozen=True, repr=False)
class ErrorTerms:
    """Epsilon, delta and error bound of a release of answers.

    Attributes
    ----------
    epsilon : float
        Budget of all answers together.
    max_error : int or float
        No answer is off by more; infinite without a bound.
    sensitivity, queries, joint
        Change of the answers between neighbouring data sets, as in `BoundedErrorAnswers`.

    Raises
    ------
    InputError
        A number breaks its rule.
    """

    epsilon: float
    max_error: float
    sensitivity: int = 1
    queries: int = 1
    joint: bool = True

    def __post_init__(self) -> None:
        epsilon = positive(
            "epsilon", self.epsilon, most=LARGEST_EPSILON, rule=f"be positive, {LARGEST_EPSILON:g} at most"
        )
        most, remedy = self.max_error, "math.inf stands for no bound"
        endless = isinstance(most, float) and most == math.inf
        most = math.inf if endless else whole_bound(most, remedy=remedy)
        remedy = "round it up to a whole number: answers are whole"
        sensitivity = require_whole("sensitivity", self.sensitivity, 1, remedy=remedy)
        queries, joint = whole("queries", self.queries, 1, most=MOST_QUERIES), flag("joint", self.joint)
        if joint and queries != 1:
            msg = (
                f"queries: sensitivity is that of all answers together, got queries={queries}; with joint=False it is "
                "that of each answer."
            )
            raise InputError(msg)
        found = {"max_error": most, "sensitivity": sensitivity, "queries": queries, "joint": joint}
        for name, value in {"epsilon": float(epsilon), **found}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        numbers = f"epsilon={self.epsilon:g}, delta={self.delta:.3g}, max_error={self.max_error:g}"
        return f"ErrorTerms({numbers}, scale={self.scale:.4g})"

    @property
    def total(self) -> int:
        """L1 sensitivity of all answers together."""
        return self.sensitivity * self.queries

    @cached_property
    def scale(self) -> float:
        """Scale b of the noise, whose law is `P(k) ~ exp(-|k| / b)` within the bound."""
        return laplace_scale(self.total, self.epsilon)

    @cached_property
    def delta(self) -> float:
        """Smallest delta at this epsilon, rounded up: probability of answers that only one data set gives."""
        if self.max_error == math.inf:
            return 0.0
        one = self._law.exposed(self.sensitivity)
        if one < TINY:
            return 2 * TINY * self.queries
        return min(1.0, at_least_one([one], self.queries) * (1 + ROUND_UP))

    @cached_property
    def log_delta(self) -> float:
        """Natural logarithm of delta, of use where it is tiny; minus infinity without a bound."""
        if self.max_error == math.inf:
            return -math.inf
        one = self._law.log_exposed(self.sensitivity)
        return one + math.log(self.queries) if one < math.log(TINY) else math.log(self.delta)

    @cached_property
    def _law(self) -> TruncatedGeometric:
        return TruncatedGeometric(self.scale, int(self.max_error))

    @cached_property
    def profile(self) -> Profile:
        """Privacy profile of all answers together: exact, or one pair of epsilon and delta beyond 64 queries.

        The worst that neighbours can do is to change one answer by all that is allowed, or each of them.
        """
        if self.max_error == math.inf:
            return PureDP(self.epsilon)
        if self.queries > MOST_SHIFTS or self.queries * self.total > MOST_WORK:
            return ApproximateDP(self.epsilon, self.delta)
        return TruncatedLaplaceDP(self.scale, int(self.max_error), (self.sensitivity,) * self.queries, self.delta)

    def noise(self, rng: RngLike) -> DiscreteNoise:
        """The noise; an InputError where it is practically uniform, or beyond 64-bit integers."""
        budget: dict[str, Any] = {"sensitivity": self.total, "epsilon": self.epsilon, "rng": rng}
        if self.max_error == math.inf:
            return laplace_noise(self.scale, **budget)
        return truncated_laplace_noise(self.scale, int(self.max_error), **budget)

    def require_room(self, answers: int) -> None:
        """Refuse more answers than the budget is shared by."""
        if not self.joint and answers > self.queries:
            msg = f"values: got {answers} answers, more than the {self.queries} that the budget is shared by."
            raise InputError(msg)


def least_error(epsilon: float, delta: float, **change: Any) -> int:
    """Smallest bound on the error that costs no more than delta."""
    widest = ErrorTerms(epsilon, LARGEST, **change)
    return least_whole_error(lambda most: replace(widest, max_error=most).delta, epsilon, delta)


def smallest_epsilon(delta: float, max_error: float, **change: Any) -> float:
    """Smallest epsilon, rounded up, at which the bound on the error costs no more than delta."""
    terms = ErrorTerms(float(LARGEST), max_error, **change)

    def cost(epsilon: float) -> float:
        return replace(terms, epsilon=epsilon).delta

    return least_whole_epsilon(cost, delta, terms.max_error, sensitivity=terms.total, first=terms.epsilon)
