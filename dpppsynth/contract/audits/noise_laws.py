"""Stated laws of added noise, and tests of an audit against them.

A law has moment generating functions of its absolute values and of its sum. The points of an audit are made up, so the
noise in a release is known, and every run has as many draws of it as it has numbers, not only those in which two
inputs differ. A sum S of N draws is held to the stated law by Chernoff's bound, P(S <= x) <= min over t > 0 of
`e^(t x + N log E e^(-t X))`: noise that is too small by its absolute values, noise off its centre by its sum. A program
that deviates is not the mechanism it states, so its theorem says nothing about it.

The law also gives the exact privacy profile at one pair of patterns, often far below the worst-case claim: pure
epsilon is about the rarest event of the worst pair.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpppsynth.contract.audits.target import Noise, Released, Scores, StatedLaw
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.spatial.mesh import Floats, Ints


@dataclass(frozen=True)
class StatedNoise(ABC):
    """Stated law of one number's noise, of a scale in lattice units."""

    scale: float

    def size(self, noise: Floats) -> float:
        """Size of the noise in scales, summed; small where the noise is."""
        return float(np.abs(noise).sum()) / self.scale

    @abstractmethod
    def spread(self, factor: float) -> tuple[float, float]:
        """Mean and standard deviation of a draw's contribution to `size`, for noise too small by a factor."""

    @abstractmethod
    def log_small(self, t: Floats) -> Floats:
        """Logarithm of the Laplace transform of a draw's contribution to `size`."""

    @abstractmethod
    def log_shifted(self, t: Floats) -> Floats:
        """Logarithm of the moment generating function of a draw, in scales."""


@dataclass(frozen=True)
class DiscreteLaplace(StatedNoise):
    """Noise of a scale s, of whole numbers k with probability proportional to `e^(-|k| / s)`."""

    def spread(self, factor: float) -> tuple[float, float]:
        q = math.exp(-factor / self.scale)
        mean, square = 2 * q / (1 - q**2), 2 * q / (1 - q) ** 2
        return mean / self.scale, math.sqrt(square - mean**2) / self.scale

    def log_small(self, t: Floats) -> Floats:
        """Logarithm of `E e^(-t |X| / s)`."""
        step = 1 / self.scale
        return np.asarray(np.log(np.tanh(step / 2)) + np.log1p(np.exp(-(1 + t) * step)) - _log1mexp(-(1 + t) * step))

    def log_shifted(self, t: Floats) -> Floats:
        """Logarithm of `E e^(t X / s)`; infinite from t = 1 on."""
        step, inside = 1 / self.scale, t < 1
        known = np.where(inside, t, 0.0)
        log = 2 * _log1mexp(np.array(-step)) - _log1mexp(-(1 - known) * step) - _log1mexp(-(1 + known) * step)
        return np.where(inside, log, np.inf)


@dataclass(frozen=True)
class Truncated(StatedNoise):
    """Discrete Laplace noise truncated at `bound`."""

    bound: int

    def spread(self, factor: float) -> tuple[float, float]:
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
class DiscreteGaussian(StatedNoise):
    """Noise with `E e^(t X) <= e^(t^2 s^2 / 2)`, of a scale s at which sums over the lattice equal integrals.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy: the bound on `E e^(t X)`.
    """

    def size(self, noise: Floats) -> float:
        """Sum of squares, in squared scales."""
        return float((noise / self.scale) @ (noise / self.scale))

    def spread(self, factor: float) -> tuple[float, float]:
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


# From an input, 0 or 1, and what was released of it to the noise in it: whole numbers, or coordinates; None where what
# was released is of another kind.
NoiseOf = Callable[[int, Released], Noise | None]


def added(exact: tuple[Ints, Ints], side: int, released: Released) -> Ints | None:
    """(V,) noise added to counts or masses, whose exact values (V,), (V,) are those of the two patterns."""
    lattice = getattr(released, "lattice", None)
    return None if lattice is None else np.asarray(lattice - exact[side])


def released_places(_side: int, released: Released) -> Noise | None:
    """Released positions as noise: whole numbers of the grid, or (m, 2) coordinates; None where nothing was drawn."""
    if not hasattr(released, "patterns"):
        return getattr(released, "lattice", None)
    drawn = [pattern.positions for pattern in released.patterns]
    return np.concatenate(drawn) if any(map(len, drawn)) else None


def one(noise: NoiseOf, side: int, released: Released) -> list[Noise | None]:
    """The one noise draw of a run without levels."""
    return [noise(side, released)]


def log_laplace(scale: float) -> float:
    """Logarithm of the probability that discrete Laplace noise is zero, which no other value exceeds.

    Examples
    --------
    >>> round(math.exp(log_laplace(2.0)), 4)
    0.2449
    """
    return math.log(math.tanh(1 / (2 * scale)))


# Values of t that are tried, in units of 1 / scale. How many draws there are may depend on earlier ones; then the best
# t alone is not valid, so its probability is taken times their number.
TILTS = np.geomspace(1e-4, 30.0, 120)
# Standard deviations of bad luck that one in ten exceeds.
LUCK = 1.2816


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a run's noise with one law: numbers from an index on, `least` to `count` of them."""

    noise: NoiseOf
    law: StatedNoise
    start: int
    count: int
    least: int

    def __call__(self, side: int, released: Released) -> tuple[float, int]:
        """Sum over the numbers of one run, and how many there are."""
        drawn = self.noise(side, released)
        if drawn is None:
            return math.nan, 0
        noise = np.asarray(drawn[self.start : self.start + self.count], dtype=np.float64)
        noise = noise[~np.isnan(noise)]
        return self.add(noise), len(noise)

    def add(self, noise: Floats) -> float:
        """Test statistic of a run's noise, whose law is known."""
        raise NotImplementedError

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether noise too small by a factor is found with probability 0.9, by normal approximation."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TooSmall(Part):
    """One-sided test of the scale: the noise is too small in absolute value."""

    def add(self, noise: Floats) -> float:
        return self.law.size(noise)

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Upper bound on the log-probability of so small a total."""
        return _least(self.law.log_small(TILTS), count, -total)

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        count, (mean, deviation) = sum(runs) * self.least, self.law.spread(factor)
        return self.log_chance(count * mean + LUCK * math.sqrt(count) * deviation, count, runs) <= log_level


@dataclass(frozen=True, eq=False)
class OffCentre(Part):
    """Two-sided test of the centre: the sum of the noise is too far from zero."""

    def add(self, noise: Floats) -> float:
        return float(noise.sum()) / self.law.scale

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Upper bound on the log-probability of a total so far from zero."""
        return min(0.0, math.log(2) + _least(self.law.log_shifted(TILTS), count, abs(total)))

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        return False


def stated_laws(
    noise: NoiseOf, law: StatedNoise, *, count: int, start: int = 0, least: int | None = None, of: str = ""
) -> tuple[StatedLaw, ...]:
    """Both noise tests of numbers with one law: from an index on, `least` to `count` of them.

    Parameters
    ----------
    noise : NoiseOf
    law : StatedNoise
    count, start, least : int
        All of `count` unless `least` is given.
    of : str
        Which numbers, where those of a release have several laws.
    """
    part = (noise, law, start, count, count if least is None else least)
    return (
        StatedLaw(f"size of the noise{of}", TooSmall(*part)),
        StatedLaw(f"sum of the noise{of}", OffCentre(*part)),
    )


def _least(logs: Floats, count: int, excess: float) -> float:
    """Chernoff's bound on the logarithm of a tail; `excess` in the units of the tilts."""
    return min(0.0, math.log(len(TILTS)) + float(np.min(count * logs - TILTS * excess)))


# Steps of the grid of privacy losses, from 0 to their largest sum; more noised numbers are not convolved.
STEPS, MOST_SHIFTS = 4096, 500
# Added to delta for the lattice of the noise, fine beside its scale, and for rounding of sums.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class AsStated(Profile):
    """Minimum of a claimed profile and the exact one of Laplace noise on numbers that differ by `shifts` scales.

    Epsilon is quoted from the claim alone.

    Attributes
    ----------
    claim : Profile
    shifts : (k,) array
        Differences of the noised numbers between both inputs, in scales of their noise; positive.
    unsure : float
        Probability, at most, that the numbers are not looked at.

    References
    ----------
    Koskela, Jälkö and Honkela (2020), Computing tight differential privacy guarantees using FFT, AISTATS: sums of
    privacy losses, here rounded up. Zhu, Dong and Wang (2022), Optimal accounting of differential privacy via
    characteristic function, AISTATS: numbers looked at by what was noised before add no more than if all were seen.

    Examples
    --------
    >>> from dpppsynth.privacy import PureDP
    >>> stated = AsStated(PureDP(1.0), np.full(4, 0.25))
    >>> round(PureDP(1.0).delta(0.0), 2), round(stated.delta(0.0), 2), stated.epsilon(0.0)
    (0.46, 0.18, 1.0)
    """

    claim: Profile
    shifts: Floats
    unsure: float = 0.0

    @property
    def at(self) -> float:
        return self.claim.at

    def delta(self, epsilon: float) -> float:
        """Delta `E (1 - e^(epsilon - L))_+` over the privacy loss L, or the claim's delta where that is less."""
        losses, chances = self._law
        lost = float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))
        lost += ROUNDING + self.unsure * (1 + math.exp(epsilon))
        return min(self.claim.delta(epsilon), lost)

    def epsilon(self, delta: float) -> float:
        return self.claim.epsilon(delta)

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """Privacy losses (m,), rounded up to a grid, and their probabilities under the first input."""
        step = float(self.shifts.sum()) / STEPS
        ends = np.ceil(self.shifts / step).astype(np.int64)
        end = int(ends.sum())
        size = 1 << (2 * end + 1).bit_length()
        spectrum = np.ones(size // 2 + 1, dtype=complex)
        for shift, k in zip(self.shifts, ends, strict=True):
            at = step * np.arange(-k, k + 1)
            # The loss is `shift - 2 x` for noise x between 0 and the shift, and at either end of that beyond.
            below = np.where(at >= shift, 1.0, np.where(at < -shift, 0.0, np.exp((at - shift) / 2) / 2))
            spectrum *= np.fft.rfft(np.diff(below, prepend=0.0), size)
        chances = np.maximum(np.fft.irfft(spectrum, size)[: 2 * end + 1], 0.0)
        losses = np.asarray(step * np.arange(-end, end + 1), dtype=np.float64)
        return losses, chances.astype(np.float64)


SEED, COUNT = 20261123, 20_000


def less_laplace(change: Ints, scale: float | Floats, factor: float) -> Scores:
    """Likelihood ratio with too little discrete Laplace noise, of one scale or of scales (k,), for a change (k,).

    Scores (N,), (N,); the second input's are the first's with the sign changed.
    """
    rng = np.random.default_rng(SEED)
    up, down = rng.geometric(-np.expm1(-factor / scale), (2, COUNT, len(change)))
    ratio = ((np.abs(up - down + change) - np.abs(up - down)) / scale).sum(axis=1)
    return ratio, -ratio


def less_gaussian(mu: float, factor: float) -> Scores:
    """Quantiles of the likelihood ratio, up to its scale, for inputs as far apart as `N(0, 1)` and `N(mu, 1)`."""
    noise = scipy.special.ndtri((np.arange(COUNT) + 0.5) / COUNT)
    return noise + factor * mu, noise
