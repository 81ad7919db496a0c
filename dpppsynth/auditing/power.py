"""How large a fault an audit of so many trials would find.

A mechanism is pictured whose noise is too small by a factor, and whose law under two inputs is the hardest one that
its profile allows without the fault: the audit with the best statistic catches it with at least a stated probability.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, ndtr
from scipy.stats import binom

from dpppsynth.auditing.examine import TRIVIAL, WEIGHTS, grid, held_out, share
from dpppsynth.auditing.intervals import critical_excess, critical_shift
from dpppsynth.errors import InputError
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP, gaussian_mu

Floats = npt.NDArray[np.float64]

# Log likelihood ratios, in standard deviations, at which the best test may cut.
CUTS = np.linspace(-6.0, 6.0, 241)
# Largest factor looked for, and halvings of the interval of its logarithm.
LARGEST, HALVINGS = 64.0, 20
POWER = 0.9

# From a factor to the probabilities (m,), under either input, of the events that a best test may choose from.
Family = Callable[[float], tuple[Floats, Floats]]


class Refutation(NamedTuple):
    """Tests (m,) of the audit: the claim falls where `A - weights B` reaches `critical`."""

    weights: Floats
    critical: Floats

    @classmethod
    def of(cls, claimed: Profile, epsilon: float, n: int, level: float) -> "Refutation":
        """All tests at one epsilon, among which the training trials choose."""
        delta, weights = claimed.delta(epsilon), math.exp(epsilon) * WEIGHTS
        critical = critical_excess(n, epsilon, delta, level, weights)
        if epsilon == 0:
            weights, critical = np.append(weights, 1.0), np.append(critical, critical_shift(n, delta, level))
        return cls(weights, critical)

    def power(self, p: Floats, q: Floats, n: int) -> float:
        """Probability of the best test, for the best event of probabilities p, q (k,), by normal approximation."""
        mean, variance = n * (p - self.weights[:, None] * q), p * (1 - p) + self.weights[:, None] ** 2 * q * (1 - q)
        margin = (mean - self.critical[:, None]) / np.sqrt(n * variance + 1e-300)
        test, event = np.unravel_index(np.argmax(margin), margin.shape)
        b = np.arange(n + 1)
        # Least A that suffices for each B.
        a = np.ceil(self.critical[test] + self.weights[test] * b - 1e-9)
        return float(binom.pmf(b, n, q[event]) @ binom.sf(a - 1, n, p[event]))


def detectable(
    claimed: Profile, trials: int, false_alarm: float = 1e-6, *, delta: float | None = None, statistics: int = 1
) -> float:
    """Smallest factor of too little noise that an audit finds with probability 0.9.

    Probabilities are those of binomials; the event is chosen by normal approximation, which errs on the safe side. The
    factor multiplies mu, for Gaussian profiles, the ratio of Poisson-Gaussian ones, and epsilon for pure ones and for
    single pairs (epsilon, delta), that is the inverse of the noise's scale. Of any other profile the largest Gaussian
    one is taken that it covers where the audit looks.

    Parameters
    ----------
    claimed : Profile
    trials : int
        Runs on each input.
    false_alarm : float
    delta : float, optional
        Where the audit quotes epsilon; by default the claim's own.
    statistics : int
        How many the audit looks at: each takes its share of the false alarm.

    Returns
    -------
    float
        Infinite when no factor up to 64 would be found.

    Examples
    --------
    >>> from dpppsynth.privacy import GaussianDP
    >>> few, many = (detectable(GaussianDP(0.2367, at=1e-6), trials) for trials in (1000, 5000))
    >>> 1.5 < many < 2.0 < few
    True
    """
    if trials < 1:
        msg = f"trials: must be at least 1, got {trials!r}."
        raise InputError(msg)
    epsilons = grid(claimed, claimed.at if delta is None else delta)
    n, level = held_out(trials), share(false_alarm, statistics, len(epsilons))
    tests = [Refutation.of(claimed, epsilon, n, level) for epsilon in epsilons]
    family = _family(claimed, epsilons)

    def caught(factor: float) -> bool:
        p, q = family(factor)
        return any(test.power(p, q, n) >= POWER for test in tests)

    if not caught(LARGEST):
        return math.inf
    low, high = 0.0, math.log(LARGEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if caught(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _family(claimed: Profile, epsilons: tuple[float, ...]) -> Family:
    match claimed:
        case PureDP():
            return lambda factor: _response(factor * claimed.level, 0.0)
        case ApproximateDP():
            return lambda factor: _response(factor * claimed.level, claimed.slack)
        case PoissonGaussianDP():
            return lambda factor: _poisson_gaussian(factor * claimed.ratio, claimed.rate)
        case GaussianDP():
            return lambda factor: _gaussian(factor * claimed.mu)
        case _:
            mus = [gaussian_mu(epsilon, d) for epsilon in epsilons if 0 < (d := claimed.delta(epsilon)) < TRIVIAL]
            if not mus:
                return lambda factor: _response(factor * claimed.epsilon(claimed.at), claimed.at)
            return lambda factor: _gaussian(factor * min(mus))


def _response(epsilon: float, slack: float) -> tuple[Floats, Floats]:
    """Randomised response that lies open with probability `slack`: the open event, or that or the likelier answer."""
    right = float(expit(epsilon))
    return np.array([slack, slack + (1 - slack) * right]), np.array([0.0, (1 - slack) * (1 - right)])


def _gaussian(mu: float) -> tuple[Floats, Floats]:
    return ndtr(mu / 2 - CUTS), ndtr(-mu / 2 - CUTS)


def _poisson_gaussian(ratio: float, rate: float) -> tuple[Floats, Floats]:
    """Likelihood ratios above a cut; none of the Gaussians at all leaves both inputs alike."""
    k = np.arange(int(rate + 12 * math.sqrt(rate)) + 32)
    weights = np.exp(k * math.log(rate) - rate - gammaln(k + 1))
    mu = ratio * np.sqrt(np.maximum(k, 1.0))
    cuts = np.sort(CUTS * ratio * math.sqrt(max(rate, 1.0)))[:, None]
    nothing = (cuts <= 0).astype(float)
    p, q = (np.where(k == 0, nothing, ndtr(sign * mu / 2 - cuts / mu)) @ weights for sign in (1, -1))
    return p, q
