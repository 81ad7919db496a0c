"""Laws of added noise, by the moment generating functions of its absolute values and of its sum."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.spatial.mesh import Floats


class StatedNoise(Protocol):
    """The stated law of one noised number, of a scale."""

    @property
    def scale(self) -> float:
        """Scale in lattice units."""

    def size(self, noise: Floats) -> float:
        """Sum that is small where the noise is, in scales."""

    def spread(self, factor: float) -> tuple[float, float]:
        """Mean and standard deviation of what a draw adds to `size`, of noise so many times too small."""

    def log_small(self, t: Floats) -> Floats:
        """Logarithm of the Laplace transform of what a draw adds to `size`."""

    def log_shifted(self, t: Floats) -> Floats:
        """Logarithm of the moment generating function of a draw, in scales."""


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise of a scale s, of whole numbers k with probability proportional to `e^(-|k| / s)`."""

    scale: float

    def size(self, noise: Floats) -> float:
        """Sum that is small where the noise is, in scales."""
        return float(np.abs(noise).sum()) / self.scale

    def spread(self, factor: float) -> tuple[float, float]:
        """Mean and standard deviation of what a draw adds to `size`, of noise so many times too small."""
        q = math.exp(-factor / self.scale)
        mean, square = 2 * q / (1 - q**2), 2 * q / (1 - q) ** 2
        return mean / self.scale, math.sqrt(square - mean**2) / self.scale

    def log_small(self, t: Floats) -> Floats:
        """Logarithm of `E e^(-t |X| / s)`."""
        step = 1 / self.scale
        return np.asarray(np.log(np.tanh(step / 2)) + _log1pexp(-(1 + t) * step) - _log1mexp(-(1 + t) * step))

    def log_shifted(self, t: Floats) -> Floats:
        """Logarithm of `E e^(t X / s)`; infinite from t = 1 on."""
        step, inside = 1 / self.scale, t < 1
        known = np.where(inside, t, 0.0)
        log = 2 * _log1mexp(np.array(-step)) - _log1mexp(-(1 - known) * step) - _log1mexp(-(1 + known) * step)
        return np.where(inside, log, np.inf)


@dataclass(frozen=True)
class Truncated:
    """Discrete Laplace noise truncated at `bound`."""

    scale: float
    bound: int

    def size(self, noise: Floats) -> float:
        """Sum that is small where the noise is, in scales."""
        return DiscreteLaplace(self.scale).size(noise)

    def spread(self, factor: float) -> tuple[float, float]:
        """Mean and standard deviation of what a draw adds to `size`, of noise so many times too small."""
        k = np.arange(-self.bound, self.bound + 1)
        chances = TruncatedGeometric(self.scale / factor, self.bound).pmf(k)
        mean, square = float(np.abs(k) @ chances), float(k**2 @ chances)
        return mean / self.scale, math.sqrt(square - mean**2) / self.scale

    def log_small(self, t: Floats) -> Floats:
        """Logarithm of `E e^(-t |X| / s)`."""
        k = np.arange(-self.bound, self.bound + 1)
        return self._log_mean(-t[:, None] * np.abs(k) / self.scale)

    def log_shifted(self, t: Floats) -> Floats:
        """Logarithm of `E e^(t X / s)`."""
        return self._log_mean(t[:, None] * np.arange(-self.bound, self.bound + 1) / self.scale)

    def _log_mean(self, exponents: Floats) -> Floats:
        chances = TruncatedGeometric(self.scale, self.bound).pmf(np.arange(-self.bound, self.bound + 1))
        return np.asarray(np.log(np.exp(exponents) @ chances))


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise with `E e^(t X) <= e^(t^2 s^2 / 2)` of a scale s so large that sums over the lattice are integrals.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy: the bound on `E e^(t X)`.
    """

    scale: float

    def size(self, noise: Floats) -> float:
        """Sum of squares, in squared scales."""
        return float((noise / self.scale) @ (noise / self.scale))

    def spread(self, factor: float) -> tuple[float, float]:
        """Mean and standard deviation of what a draw adds to `size`, of noise so many times too small."""
        return factor**-2, math.sqrt(2) * factor**-2

    def log_small(self, t: Floats) -> Floats:
        """Logarithm of `E e^(-t X^2 / s^2)`, that of a normal variable and a margin for the lattice.

        By Poisson's summation both sums over the lattice are off by a share of `4 e^(-2 pi^2 s'^2)` at most, where
        s' is the smaller of both standard deviations.
        """
        spread = self.scale / np.sqrt(1 + 2 * t)
        return np.asarray(-np.log1p(2 * t) / 2 + 8 * np.exp(-2 * (np.pi * spread) ** 2))

    def log_shifted(self, t: Floats) -> Floats:
        """Bound on the logarithm of `E e^(t X / s)`."""
        return t**2 / 2


def _log1mexp(x: Floats) -> Floats:
    """`log(1 - e^x)` of negative numbers."""
    return np.asarray(np.log(-np.expm1(x)))


def _log1pexp(x: Floats) -> Floats:
    return np.asarray(np.log1p(np.exp(x)))
