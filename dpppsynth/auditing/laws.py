"""Goodness-of-fit tests of all noise in a release against its stated law, by Chernoff bounds.

The points are made up, so the noise in a release is known, and every run has as many draws of it as it has numbers,
not only those in which two inputs differ. A sum S of N draws is held to the stated law by Chernoff's bound, P(S <= x)
<= min over t > 0 of `e^(t x + N log E e^(-t X))`: noise that is too small by its absolute values, noise off its centre
by its sum. Numbers of children have Poisson laws. A program that deviates is not the mechanism it states, so its
theorem says nothing about it.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from scipy.stats import poisson

from dpppsynth.auditing.pairs import changed
from dpppsynth.auditing.repeats import NoiseOf, noise_of, numbers
from dpppsynth.auditing.statistics import Pair, patterns_of
from dpppsynth.auditing.target import Number, StatedLaw
from dpppsynth.auditing.whole import Levels
from dpppsynth.contract.additive_noise import MeasurementPlan
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.audit import lengths
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import KernelPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import hull, mass
from dpppsynth.spatial.mesh import Floats

# Values of t that are tried, in units of 1 / scale. How many draws there are may depend on earlier ones; then the best
# t alone is not valid, so its probability is taken times their number.
TILTS = np.geomspace(1e-4, 30.0, 120)
# Shares of the bandwidth within which children are counted: others' children may outweigh the person's in the larger.
NEAR = {"near": 1.0, "beside": 1 / 3}
# Standard deviations of bad luck that one in ten exceeds.
LUCK = 1.2816
# Children are rounded to a grid, and integrals in floating point.
ROUNDING = 1e-5


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


Noise = DiscreteLaplace | Truncated | DiscreteGaussian


@dataclass(frozen=True, eq=False)
class Part:
    """Some numbers of the noise of a run, of one law: those from a place on, `count` at most and `least` at least."""

    noise: NoiseOf
    law: Noise
    start: int
    count: int
    least: int

    def __call__(self, side: int, released: Any) -> tuple[float, int]:
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


@dataclass(frozen=True, eq=False)
class Children:
    """Poisson test of the number of children in a part of the window, one for each input; mean up to `ROUNDING`."""

    plan: KernelPlan
    pair: Pair
    regions: tuple[Window, Window]

    def __call__(self, side: int, released: Any) -> tuple[float, int]:
        """Test statistic of one run."""
        xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        return float(np.count_nonzero(self.regions[side].contains(xy))), 1

    def means(self, factor: float) -> tuple[float, float]:
        """Poisson means for all patterns of a run on either input, with kernels too narrow by the factor.

        Of each kernel, cut to the hull, it is what lies in the part.
        """
        whole, b = hull(self.plan.domain), self.plan.bandwidth / factor
        first, second = (
            self.plan.patterns * float((mass(pattern.xy, region, b) / mass(pattern.xy, whole, b)).sum())
            for pattern, region in zip(self.pair, self.regions, strict=True)
        )
        return first, second

    @cached_property
    def _stated(self) -> tuple[float, float]:
        return self.means(1.0)

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of a total so large, or so small."""
        mean = float(np.dot(self._stated, runs))
        tails = poisson.logsf(total - 1, mean * (1 + ROUNDING)), poisson.logcdf(total, mean * (1 - ROUNDING))
        return min(0.0, math.log(2) + float(min(tails)))

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether kernels so many times too narrow are found with probability 0.9, by normal approximation."""
        mean, stated = (float(np.dot(each, runs)) for each in (self.means(factor), self._stated))
        unlucky = mean - math.copysign(LUCK * math.sqrt(mean), mean - stated)
        return (unlucky - stated) * (mean - stated) > 0 and self.log_chance(unlucky, 0, runs) <= log_level


@dataclass(frozen=True, eq=False)
class AtLevel:
    """A law of one level of a stratified release."""

    level: str
    law: Number

    def __call__(self, side: int, released: Levels) -> tuple[float, int]:
        """Test statistic of one run."""
        return self.law(side, released.parts[self.level])

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Log-probability under that level's law alone."""
        return self.law.log_chance(total, count, runs)

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether too little noise is found at that level alone."""
        return self.law.finds(factor, runs, log_level)


def laws_of(plan: Any, pair: Pair) -> tuple[StatedLaw, ...]:
    """The stated laws of a plan's noise; none where its law is not known number by number."""
    if isinstance(plan, KernelPlan):
        return _of_children(plan, pair)
    noise = noise_of(plan, pair)
    found: list[StatedLaw] = []
    if noise is None:
        return ()
    for name, *where in _parts(plan):
        part: Any = (noise, *where)
        found += [
            StatedLaw(f"size of the noise{name}", TooSmall(*part)),
            StatedLaw(f"sum of the noise{name}", OffCentre(*part)),
        ]
    return tuple(found)


def laws_of_levels(by: str, plans: dict[str, Any], pairs: dict[str, Pair]) -> tuple[StatedLaw, ...]:
    """The stated laws of the noise of every level of a stratified release."""
    return tuple(
        StatedLaw(f"{law.name} of {by} {level}", AtLevel(level, law.number))
        for level, plan in plans.items()
        for law in laws_of(plan, pairs[level])
    )


def _parts(plan: Any) -> list[tuple[str, Noise, int, int, int]]:
    """Name, law, first number, how many there are, and at least, of each kind of noise in a plan's release."""
    if isinstance(plan, HeatmapPlan):
        return _of_levels(plan)
    if not isinstance(plan, MeasurementPlan):
        return []
    law: Noise
    match plan:
        case BoundedCountsPlan():
            law = Truncated(plan.scale, plan.max_error)
        case FieldStatisticPlan():
            law = DiscreteGaussian(plan.scale)
        case _:
            law = DiscreteLaplace(plan.scale)
    count = numbers(plan)
    return [("", law, 0, count, count)]


def _of_levels(plan: HeatmapPlan) -> list[tuple[str, Noise, int, int, int]]:
    """Laws level by level: of a kept cell with a part in the window, one of the four children has one."""
    each, first = lengths(plan), plan.budgets.first
    whole = bool((plan.inside > 0).all())
    least = [count if whole else max(1, count // 4) for count in each]
    starts = np.cumsum([0, *each]).tolist()
    return [
        (f" of level {level}", DiscreteLaplace(scale), *each_level)
        for level, scale, *each_level in zip(
            range(first, first + len(each)), plan.scales, starts[:-1], each, least, strict=True
        )
    ]


def _of_children(plan: KernelPlan, pair: Pair) -> tuple[StatedLaw, ...]:
    """All children; and those no farther from the first of the person's places than some shares of the bandwidth.

    Where that is wider than the window, of a fourth of the window's extent.
    """
    window = plan.domain
    found = [StatedLaw("number of children", Children(plan, pair, (window, window)))]
    gone, came = changed(pair)
    for name, share in NEAR.items() if len(gone) else ():
        radius = share * min(plan.bandwidth, window.extent / 4)
        disks = (shapely.Point(places[0]).buffer(radius) for places in (gone, came))
        first, second = (Window.polygon(window.geometry.intersection(disk)) for disk in disks)
        found.append(StatedLaw(f"number of children {name} the person", Children(plan, pair, (first, second))))
    return tuple(found)


def _least(logs: Floats, count: int, excess: float) -> float:
    """Chernoff's bound on the logarithm of a tail; `excess` in the units of the tilts."""
    return min(0.0, math.log(len(TILTS)) + float(np.min(count * logs - TILTS * excess)))


def _log1mexp(x: Floats) -> Floats:
    """`log(1 - e^x)` of negative numbers."""
    return np.asarray(np.log(-np.expm1(x)))


def _log1pexp(x: Floats) -> Floats:
    return np.asarray(np.log1p(np.exp(x)))
