"""Goodness-of-fit tests of added noise against its stated law, by Chernoff bounds.

The points are made up, so the noise in a release is known, and every run has as many draws of it as it has numbers,
not only those in which two inputs differ. A sum S of N draws is held to the stated law by Chernoff's bound, P(S <= x)
<= min over t > 0 of `e^(t x + N log E e^(-t X))`: noise that is too small by its absolute values, noise off its centre
by its sum. A program that deviates is not the mechanism it states, so its theorem says nothing about it.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpppsynth.contract.audits.added_noise import NoiseOf
from dpppsynth.contract.audits.noise_laws import StatedNoise
from dpppsynth.contract.audits.target import Released, StatedLaw
from dpppsynth.spatial.mesh import Floats

# Values of t that are tried, in units of 1 / scale. How many draws there are may depend on earlier ones; then the best
# t alone is not valid, so its probability is taken times their number.
TILTS = np.geomspace(1e-4, 30.0, 120)
# Standard deviations of bad luck that one in ten exceeds.
LUCK = 1.2816


@dataclass(frozen=True, eq=False)
class Part:
    """Some numbers of the noise of a run, of one law: those from a place on, `count` at most and `least` at least."""

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
        """Whether noise so many times too small is found with probability 0.9, by normal approximation."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TooSmall(Part):
    """One-sided test of the scale: the noise is too small in absolute value."""

    def add(self, noise: Floats) -> float:
        """Sum of the sizes of the noise, in scales."""
        return self.law.size(noise)

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of so small a total."""
        return _least(self.law.log_small(TILTS), count, -total)

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether noise so many times too small is found with probability 0.9, by normal approximation."""
        count, (mean, deviation) = sum(runs) * self.least, self.law.spread(factor)
        return self.log_chance(count * mean + LUCK * math.sqrt(count) * deviation, count, runs) <= log_level


@dataclass(frozen=True, eq=False)
class OffCentre(Part):
    """Two-sided test of the centre: the sum of the noise is too far from zero."""

    def add(self, noise: Floats) -> float:
        """Sum of the noise, in scales."""
        return float(noise.sum()) / self.law.scale

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of a total so far from zero."""
        return min(0.0, math.log(2) + _least(self.law.log_shifted(TILTS), count, abs(total)))

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Always false: noise that is too small is still centred at zero."""
        return False


def stated_laws(
    noise: NoiseOf, law: StatedNoise, *, count: int, start: int = 0, least: int | None = None, of: str = ""
) -> tuple[StatedLaw, ...]:
    """Both tests of numbers of one law: those from a place on, `count` at most and `least` at least.

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
