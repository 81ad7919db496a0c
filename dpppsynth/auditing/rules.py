"""Rejection rules of an audit: an event, a weight, and the critical number of times the event is seen.

The same rules decide an audit and rate it beforehand, so what `power` simulates is what `examine` does.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.auditing.intervals import LARGEST_EPSILON, critical_excess, critical_shift
from dpppsynth.privacy.profiles import Profile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Share of the trials for training; the others decide.
TRAINING = 5
# Epsilons at which the profile is tested, beside the claimed one.
EPSILONS = (0.0, 0.1, 0.25, 0.5)
# Delta from which on a claim is practically empty at an epsilon.
TRIVIAL = 0.999
# Weights of a run on the second input, in units of the one that makes the excess unbiased, that are weighed up.
WEIGHTS = 2.0 ** np.arange(-5, 6)
DIRECTIONS = ("first against second", "second against first")


def grid(claimed: Profile, delta: float) -> tuple[float, ...]:
    """Increasing epsilons at which a claim is tested, without those where it is practically empty."""
    level = claimed.epsilon(delta)
    epsilons = {*EPSILONS, level} if level <= LARGEST_EPSILON else set(EPSILONS)
    return tuple(epsilon for epsilon in sorted(epsilons) if claimed.delta(epsilon) < TRIVIAL)


def share(false_alarm: float, statistics: int, epsilons: int) -> float:
    """Level of one bound: there is one per statistic, direction and epsilon, and one on epsilon itself."""
    return false_alarm / (statistics * len(DIRECTIONS) * (epsilons + 1))


def held_out(trials: int) -> int:
    """Number of held-out (deciding) trials on one input."""
    return trials - trials // TRAINING


class Rules(NamedTuple):
    """Rejection rules for a claim at one epsilon, by n deciding runs on each input: `A - weights B >= critical`.

    Attributes
    ----------
    epsilon : float
    n : int
    weights, critical : (W,) arrays
        At epsilon 0 the last is the number of right guesses, which has a bound of its own.
    """

    epsilon: float
    n: int
    weights: Floats
    critical: Floats

    @classmethod
    def of(cls, claimed: Profile, epsilon: float, n: int, level: float) -> "Rules":
        """All rules at one epsilon, among which the training trials choose."""
        delta, weights = claimed.delta(epsilon), np.asarray(math.exp(epsilon) * WEIGHTS, dtype=np.float64)
        critical = critical_excess(n, epsilon, delta, level, weights)
        if epsilon == 0:
            weights, critical = np.append(weights, 1.0), np.append(critical, critical_shift(n, delta, level))
        return cls(epsilon, n, weights, critical)

    def counts_guesses(self, rule: int) -> bool:
        """Whether a rule is the number of right guesses."""
        return rule == len(WEIGHTS)

    def margins(self, p: Floats, q: Floats) -> Floats:
        """(..., m, W) standard deviations by which events of probabilities p, q (..., m) are expected to refute."""
        p, q = p[..., None], q[..., None]
        spread = self.n * (p * (1 - p) + self.weights**2 * q * (1 - q))
        return np.asarray((self.n * (p - self.weights * q) - self.critical) / np.sqrt(spread + 1e-300))

    def choose(self, p: Floats, q: Floats) -> tuple[Ints, Ints]:
        """Event and rule (...) most likely to refute, by estimates (..., m) of its probabilities."""
        margins = self.margins(p, q)
        best = margins.reshape(*margins.shape[:-2], -1).argmax(axis=-1)
        return best // len(self.weights), best % len(self.weights)
