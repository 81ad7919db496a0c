"""The noise in all numbers of all runs, held to its stated law.

The points are made up, so the noise in a release is known, and every run has as many draws of it as it has numbers,
not only those in which two inputs differ. A sum S of N draws is held to the stated law by Chernoff's bound, P(S <= x)
<= min over t > 0 of `e^(t x + N log E e^(-t X))`: noise that is too small by its absolute values, noise off its centre
by its sum. Numbers of children have Poisson laws. A program that deviates is not the mechanism it states, so its
theorem says nothing about it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from scipy.stats import poisson

from dpppsynth.auditing.pairs import changed
from dpppsynth.auditing.pyramid import lengths
from dpppsynth.auditing.repeats import NoiseOf, noise_of
from dpppsynth.auditing.statistics import Pair, patterns_of
from dpppsynth.auditing.target import Law, Number
from dpppsynth.auditing.whole import Levels
from dpppsynth.bounded_plan import BoundedCountsPlan
from dpppsynth.domains import Window
from dpppsynth.heatmaps.plan import HeatmapPlan
from dpppsynth.kernel import hull, mass
from dpppsynth.kernel_plan import KernelPlan
from dpppsynth.mesh import Floats
from dpppsynth.statistic import FieldStatisticPlan, MeasurementPlan, StatisticPlan
from dpppsynth.truncated import TruncatedGeometric

# Values of t that are tried, in units of 1 / scale. How many draws there are may depend on earlier ones; then the best
# t alone is not valid, so its probability is taken times their number.
TILTS = np.geomspace(1e-4, 30.0, 120)
# Children are rounded to a grid, and integrals in floating point.
ROUNDING = 1e-5
# From positive t in units of 1 / scale (m,) to logarithms of means (m,) of `e^(-t |X|)`, and of `e^(t X)`.
LogMean = Callable[[Floats], Floats]


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise of a scale s, of whole numbers k with probability proportional to `e^(-|k| / s)`."""

    scale: float

    def size(self, noise: Floats) -> float:
        """Sum that is small where the noise is, in scales."""
        return float(np.abs(noise).sum()) / self.scale

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
    """Such noise of at most `bound` in absolute value."""

    scale: float
    bound: int

    def size(self, noise: Floats) -> float:
        """Sum that is small where the noise is, in scales."""
        return DiscreteLaplace(self.scale).size(noise)

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
    """Some numbers of the noise of a run: those from a place on, `count` of them at most, of one law."""

    noise: NoiseOf
    law: Noise
    start: int
    count: int

    def __call__(self, side: int, released: Any) -> tuple[float, int]:
        """Sum over the numbers of one run, and how many there are."""
        drawn = self.noise(side, released)
        if drawn is None:
            return math.nan, 0
        numbers = np.asarray(drawn[self.start : self.start + self.count], dtype=np.float64)
        numbers = numbers[~np.isnan(numbers)]
        return self.add(numbers), len(numbers)

    def add(self, noise: Floats) -> float:
        """Sum of which the law is known."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TooSmall(Part):
    """Sizes of the noise, too small together."""

    def add(self, noise: Floats) -> float:
        """In scales."""
        return self.law.size(noise)

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of so small a total."""
        return _least(self.law.log_small(TILTS), count, -total)


@dataclass(frozen=True, eq=False)
class OffCentre(Part):
    """Sums of the noise, too far from zero in either direction."""

    def add(self, noise: Floats) -> float:
        """In scales."""
        return float(noise.sum()) / self.law.scale

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of a total so far from zero."""
        return min(0.0, math.log(2) + _least(self.law.log_shifted(TILTS), count, abs(total)))


@dataclass(frozen=True, eq=False)
class Children:
    """Number of children in a region, or anywhere; Poisson of a mean that is known up to `ROUNDING`.

    Attributes
    ----------
    region : Window or None
    means : tuple of two float
        Of all patterns of a run on either input.
    """

    region: Window | None
    means: tuple[float, float]

    def __call__(self, side: int, released: Any) -> tuple[float, int]:
        """Of one run."""
        xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        return float(len(xy) if self.region is None else np.count_nonzero(self.region.contains(xy))), 1

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Logarithm of the probability, at most, of a total so large, or so small."""
        mean = float(np.dot(self.means, runs))
        tails = poisson.logsf(total - 1, mean * (1 + ROUNDING)), poisson.logcdf(total, mean * (1 - ROUNDING))
        return min(0.0, math.log(2) + float(min(tails)))


@dataclass(frozen=True, eq=False)
class AtLevel:
    """A law of one level of a stratified release."""

    level: str
    law: Number

    def __call__(self, side: int, released: Levels) -> tuple[float, int]:
        """Of one run."""
        return self.law(side, released.parts[self.level])

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Of that level alone."""
        return self.law.log_chance(total, count, runs)


def laws_of(plan: Any, pair: Pair) -> tuple[Law, ...]:
    """What is stated of the noise of a plan; nothing where its law is not known number by number."""
    if isinstance(plan, KernelPlan):
        return _of_children(plan, pair)
    noise = noise_of(plan, pair)
    found: list[Law] = []
    if noise is None:
        return ()
    for name, law, start, count in _parts(plan):
        part = noise, law, start, count
        found += [Law(f"size of the noise{name}", TooSmall(*part)), Law(f"sum of the noise{name}", OffCentre(*part))]
    return tuple(found)


def laws_of_levels(by: str, plans: dict[str, Any], pairs: dict[str, Pair]) -> tuple[Law, ...]:
    """The same of every level of a stratified release."""
    return tuple(
        Law(f"{law.name} of {by} {level}", AtLevel(level, law.number))
        for level, plan in plans.items()
        for law in laws_of(plan, pairs[level])
    )


def _parts(plan: Any) -> list[tuple[str, Noise, int, int]]:
    """Name, law, first number and how many there are, of each kind of noise in a plan's release."""
    if isinstance(plan, HeatmapPlan):
        each, start = lengths(plan), np.cumsum([0, *lengths(plan)])
        levels = range(plan.budgets.first, plan.budgets.first + len(each))
        return [
            (f" of level {level}", DiscreteLaplace(scale), int(at), count)
            for level, scale, at, count in zip(levels, plan.scales, start, each, strict=False)
        ]
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
    cells = isinstance(plan, StatisticPlan) and plan.basis == "cells"
    return [("", law, 0, len(plan.mesh.elements) if cells else len(plan.mesh.vertices))]


def _of_children(plan: KernelPlan, pair: Pair) -> tuple[Law, ...]:
    """All children; and those no farther than the bandwidth from the first of the person's places."""
    everywhere = Law("number of children", Children(None, _means(plan, pair, plan.domain)))
    places, _ = changed(pair)
    if not len(places):
        return (everywhere,)
    disk = shapely.Point(places[0]).buffer(plan.bandwidth)
    near = Window.polygon(plan.domain.geometry.intersection(disk))
    return everywhere, Law("number of children near the person", Children(near, _means(plan, pair, near)))


def _means(plan: KernelPlan, pair: Pair, region: Window) -> tuple[float, float]:
    """Mean numbers of children in a part of the window: of each kernel, cut to the hull, what lies in the part."""
    whole, b = hull(plan.domain), plan.bandwidth
    first, second = ((mass(each.xy, region, b) / mass(each.xy, whole, b)).sum() for each in pair)
    return plan.patterns * float(first), plan.patterns * float(second)


def _least(logs: Floats, count: int, excess: float) -> float:
    """Chernoff's bound on the logarithm of a tail; `excess` in the units of the tilts."""
    return min(0.0, math.log(len(TILTS)) + float(np.min(count * logs - TILTS * excess)))


def _log1mexp(x: Floats) -> Floats:
    """`log(1 - e^x)` of negative numbers."""
    return np.asarray(np.log(-np.expm1(x)))


def _log1pexp(x: Floats) -> Floats:
    return np.asarray(np.log1p(np.exp(x)))
