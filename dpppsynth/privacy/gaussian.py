"""The Gaussian privacy profile, accurate in its tails, and inverses of privacy profiles.

Rounding is always towards less privacy: delta and epsilon up, the budget `gaussian_mu` down.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from dpppsynth.core.arguments import finite, positive, probability

Floats = npt.NDArray[np.float64]

# Three-point Gauss-Legendre rule on [-1, 1].
NODES, WEIGHTS = np.array([-math.sqrt(0.6), 0.0, math.sqrt(0.6)]), np.array([5.0, 8.0, 5.0]) / 9
# Relative error of computed deltas is below this, and they are raised by as much.
ROUNDING = 1e-12
# Sums of larger ones would leave the range of floats.
LARGEST_EPSILON = 1e300
RULE = "be positive and finite"


def delta_gaussian(epsilon: float, mu: float) -> float:
    """Privacy profile of the Gaussian mechanism: largest `P(A) - e^epsilon P'(A)` for P, P' = N(mu, 1), N(0, 1).

    Relative error below 2e-12, upwards, as long as the value can be represented.

    Parameters
    ----------
    epsilon : float
        Finite; below zero it is that of the other direction.
    mu : float
        Positive.
    """
    epsilon, mu = finite("epsilon", epsilon), positive("mu", mu, rule=RULE)
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(-epsilon, mu)
    return gaussian_delta(epsilon, mu)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """`delta_gaussian` for epsilon of at least zero, which may be infinite, and without its checks."""
    return min(1.0, float(gaussian_deltas(epsilon, np.array([mu], dtype=np.float64))[0]) * (1 + ROUNDING))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian profile passes below (epsilon, delta), rounded down.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-6), 6)
    0.236704
    """
    from scipy.optimize import brentq

    epsilon, delta = finite("epsilon", epsilon, least=0), probability("delta", delta)
    high = 1.0
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2

    def excess(log_mu: float) -> float:
        return math.log(max(gaussian_delta(epsilon, math.exp(log_mu)), 5e-324) / delta)

    # The profile at 0 is below mu / sqrt(2 pi), so mu = delta is always allowed.
    mu = math.exp(brentq(excess, math.log(delta), math.log(high), xtol=1e-15, maxiter=1000))
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-14
    return mu


def gaussian_deltas(epsilon: float, mu: Floats) -> Floats:
    """(m,) profiles without the rounding up, from Mills' ratio `R`: `phi(u) (R(u) - R(u + mu))`, `u = eps/mu - mu/2`.

    Subtracting loses no digits where mu > .05; below, `-R' = 1 - u R` is integrated over the interval instead.
    """
    with np.errstate(over="ignore"):
        u = np.clip(epsilon / mu - mu / 2, -1e150, 40.0)
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    small = np.minimum(mu, 0.05)
    x = np.maximum(u, -small / 2)[:, None] + small[:, None] * (1 + NODES) / 2
    gentle = density * small * ((1 - x * _mills(x)) @ WEIGHTS) / 2
    upper = np.where(u < 0, scipy.special.ndtr(-u), density * _mills(np.maximum(u, 0)))
    return np.where(mu < 0.05, gentle, upper - density * _mills(u + mu))


def _mills(x: Floats) -> Floats:
    """Mills' ratio `(1 - Phi(x)) / phi(x)`."""
    return np.asarray(math.sqrt(math.pi / 2) * scipy.special.erfcx(x / math.sqrt(2)))


def smallest_epsilon(profile: Callable[[float], float], delta: float, guess: float) -> float:
    """Smallest epsilon whose delta is at most the one given, rounded up; infinite beyond 1e300."""
    from scipy.optimize import brentq

    if profile(0.0) <= delta:
        return 0.0
    high = max(guess, 1e-300)
    while high < LARGEST_EPSILON and profile(high) > delta:
        high *= 2
    if not high < LARGEST_EPSILON:
        return math.inf
    epsilon = float(
        brentq(lambda e: math.log(max(profile(e), 5e-324) / delta), 0.0, high, xtol=1e-15 * high, maxiter=1000)
    )
    step = 1e-15 * high
    while profile(epsilon) > delta:
        epsilon, step = epsilon + step, 2 * step
    return epsilon


def require_delta(value: Any) -> None:
    """InputError unless delta lies strictly between 0 and 1."""
    probability("delta", value)
