"""Staircase noise: the additive noise of smallest expected error among all that keep one answer epsilon-private.

For comparisons: the noise is floating-point, so nothing drawn here may be released.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.baseline_arguments import checked_epsilon, real_numbers, uniforms
from dpppsynth.core.arguments import finite, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.privacy.truncated.truncated_laplace import in_range
from dpppsynth.spatial.mesh import Floats

# Below it, squares of `1 - e^-epsilon` are lost in rounding.
LEAST_EPSILON = 1e-8


@dataclass(frozen=True)
class Staircase:
    """Law whose density falls by `e^-epsilon` once in every `sensitivity`, after a share `gamma` of the first stair.

    It protects one answer that changes by at most `sensitivity`. Several answers spend epsilon each even where their
    changes add up to no more than that: a stair may lie between two answers however near they are.

    Parameters
    ----------
    epsilon : float
        From 1e-8 to 500.
    sensitivity : float
    gamma : float
        From 0 to 1; `optimal_gamma` tells the best.

    Raises
    ------
    InputError

    References
    ----------
    Geng & Viswanath (2014), The optimal mechanism in differential privacy, ISIT.

    Examples
    --------
    >>> law = Staircase(1.0, 1.0, optimal_gamma(1.0))
    >>> round(law.variance, 6)
    1.918104
    """

    epsilon: float
    sensitivity: float
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _budget(self.epsilon))
        object.__setattr__(self, "sensitivity", in_range("sensitivity", self.sensitivity))
        gamma = finite("gamma", self.gamma, least=0)
        if gamma > 1:
            msg = f"gamma: must lie in [0, 1], got {gamma!r}; optimal_gamma() tells the best."
            raise InputError(msg)
        object.__setattr__(self, "gamma", float(gamma))

    def pdf(self, z: Any) -> Floats:
        """Density at each z."""
        stair, rest = self._stairs(real_numbers("z", z))
        height = np.exp(-self.epsilon * (stair + (rest >= self.gamma)))
        return height * -math.expm1(-self.epsilon) / (2 * self.sensitivity * self._first)

    def tail(self, t: Any) -> Floats:
        """Probability that the noise is larger than each t in absolute value: the beta of (t, beta)-accuracy."""
        t = real_numbers("t", t)
        stair, rest = self._stairs(np.maximum(t, 0))
        inside = np.minimum(rest, self.gamma) + self._fall * np.maximum(rest - self.gamma, 0)
        return np.exp(-self.epsilon * stair) * (1 + math.expm1(-self.epsilon) * inside / self._first)

    @property
    def mean_absolute(self) -> float:
        """Mean of the absolute value."""
        return self.sensitivity * (self._mean_stair + self._mean_rest)

    @property
    def variance(self) -> float:
        """Mean square; the mean is zero."""
        q = -math.expm1(-self.epsilon)
        stairs = self._fall * (1 + self._fall) / q**2
        cube = self.gamma**3
        rest = (cube + self._fall * (1 - cube)) / (3 * self._first)
        return self.sensitivity**2 * (stairs + 2 * self._mean_stair * self._mean_rest + rest)

    def sample(self, size: Any, rng: RngLike = None) -> Floats:
        """Floating-point noise of a shape, for studies: never for a release."""
        u, source = uniforms(size, rng)
        stair = np.floor(source.standard_exponential(u.shape) / self.epsilon)
        high = source.random(u.shape) * self._first < self.gamma
        v = source.random(u.shape)
        rest = np.where(high, self.gamma * v, self.gamma + (1 - self.gamma) * v)
        return np.asarray(np.sign(u) * self.sensitivity * (stair + rest))

    @property
    def _fall(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _first(self) -> float:
        """Mass of one stair's two parts in units of its higher one."""
        return self.gamma + self._fall * (1 - self.gamma)

    @property
    def _mean_stair(self) -> float:
        return self._fall / -math.expm1(-self.epsilon)

    @property
    def _mean_rest(self) -> float:
        square = self.gamma**2
        return (square + self._fall * (1 - square)) / (2 * self._first)

    def _stairs(self, z: Floats) -> tuple[Floats, Floats]:
        """Number of the stair of each z, and how far along it z lies, in [0, 1)."""
        ratio = np.minimum(np.abs(z) / self.sensitivity, 1e300)
        stair = np.floor(ratio)
        return stair, ratio - stair


def optimal_gamma(epsilon: float, *, error: str = "square") -> float:
    """Share of the first stair that makes the mean error smallest.

    Parameters
    ----------
    epsilon : float
    error : {"square", "absolute"}
        Error whose mean is to be smallest: the squared noise (its variance) or its absolute value.

    Examples
    --------
    >>> round(optimal_gamma(1.0), 6), round(optimal_gamma(1.0, error="absolute"), 6)
    (0.416737, 0.377541)
    """
    epsilon = _budget(epsilon)
    if one_of("error", error, ("square", "absolute")) == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    # ((b (1 + b) / 2)^(1/3) - b) / (1 - b) with b = e^-epsilon, without its cancellation for small epsilon.
    q = -math.expm1(-epsilon)
    x = (math.log1p(-q / 2) + 2 * epsilon) / 3
    return math.exp(x - epsilon) * -math.expm1(-x) / q


def _budget(value: Any) -> float:
    epsilon = checked_epsilon(value)
    if epsilon < LEAST_EPSILON:
        msg = f"epsilon: must be at least {LEAST_EPSILON:g}, got {epsilon!r}; nothing is left of an answer below it."
        raise InputError(msg)
    return epsilon
