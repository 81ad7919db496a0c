"""Tests for reused noise: draws repeated between runs, and correlated signs between levels of one release.

The points of an audit are made up, so the noise of a run is known: what is released, less the exact numbers. How often
it may be the same as in an earlier run follows from the stated law. Given all earlier draws, the next one is like any
of k earlier ones with probability at most `k p`, where no outcome is likelier than p. So the number of repeats in N
draws is no larger, in law, than a sum of independent events of mean `m <= p N (N - 1) / 2` in all, and reaches r > m
with probability at most `e^(r - m) (m / r)^r` (Chernoff's bound).

Noise of the levels of one release is independent and symmetric. So of numbers at the same place in two levels, neither
zero, the signs agree as often as a coin shows heads, whatever their scales. Levels are compared with those next to them
in the order of the release, and with those two, three and more apart.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc
from scipy.stats import binom

from dpppsynth.auditing.target import Draws
from dpppsynth.auditing.whole import Levels
from dpppsynth.contract.additive_noise import MeasurementPlan, StatisticPlan
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.audit import looked_at, own_masses
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.heatmap.pyramid import pyramid
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan, KernelPlan, PatternPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.spatial.gaussian_kernel import hull, mass
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

Pair = tuple[PointPattern, PointPattern]
# From an input, 0 or 1, and what was released of it to the noise in it: whole numbers, or coordinates; None where what
# was released is of another kind.
NoiseOf = Callable[[int, Any], Any]


class Repeats(NamedTuple):
    """Result of a test for repeated noise or correlated signs.

    Attributes
    ----------
    draws : int
        Draws that were compared with each other, or numbers whose signs were.
    repeats : int
        Those that had come before, or signs that agree, or disagree where that is more frequent.
    log_chance : float
        Logarithm of the probability, at most, of so many.
    signs : bool
    """

    draws: int
    repeats: int
    log_chance: float
    signs: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return self._asdict()

    def __str__(self) -> str:
        if self.signs:
            return f"agree, or disagree, in {self.repeats} of {self.draws} numbers of two levels: they share it"
        return f"came again {self.repeats} times in {self.draws} draws: its key is too short, or shared"


@dataclass(frozen=True, eq=False)
class Added:
    """Noise added to counts or masses, whose exact values (V,), (V,) are those of the two patterns."""

    exact: tuple[Ints, Ints]

    @classmethod
    def at(cls, plan: MeasurementPlan, pair: Pair) -> "Added":
        """The added noise of a plan at its two patterns."""
        first, second = (plan.exact(pattern.positions) for pattern in pair)
        return cls((first, second))

    def __call__(self, side: int, released: Any) -> Ints | None:
        """(V,) noise."""
        lattice = getattr(released, "lattice", None)
        return None if lattice is None else np.asarray(lattice - self.exact[side])


@dataclass(frozen=True, eq=False)
class AddedToPyramid:
    """Noise added to the masses of the measured cells, level by level."""

    plan: HeatmapPlan
    pair: Pair

    @cached_property
    def _masses(self) -> list[list[tuple[Ints, Ints]]]:
        return [own_masses(self.plan, pattern) for pattern in self.pair]

    def __call__(self, side: int, released: Any) -> Floats:
        """(m,) noise; not a number in cells without any part in the window, which get none."""
        levels, noised = looked_at(self.plan, released)
        found = []
        for level, released_numbers, (cells, masses) in zip(levels, noised, self._masses[side], strict=True):
            at = np.minimum(np.searchsorted(cells, level.cells), len(cells) - 1)
            noise = released_numbers - np.where(cells[at] == level.cells, masses[at], 0)
            found.append(np.where(level.alive, noise, np.nan))
        return np.concatenate(found)


@dataclass(frozen=True)
class Positions:
    """Random positions, which are the noise themselves; none where nothing was drawn, which repeats easily."""

    def __call__(self, _side: int, released: Any) -> Any:
        """Whole numbers of the grid, or (m, 2) coordinates."""
        if not hasattr(released, "patterns"):
            return getattr(released, "lattice", None)
        drawn = [pattern.positions for pattern in released.patterns]
        return np.concatenate(drawn) if any(map(len, drawn)) else None


@dataclass(frozen=True, eq=False)
class FromLevel:
    """Noise of one level of a stratified release."""

    level: str
    noise: NoiseOf

    def __call__(self, side: int, released: Levels) -> list[Any]:
        """Noise of that level alone."""
        return [self.noise(side, released.parts[self.level])]


@dataclass(frozen=True, eq=False)
class One:
    """Draws of a release without levels."""

    noise: NoiseOf

    def __call__(self, side: int, released: Any) -> list[Any]:
        """The one draw of a run."""
        return [self.noise(side, released)]


@dataclass(frozen=True, eq=False)
class EveryLevel:
    """Noise of all levels of a stratified release: of each the first numbers, as many as the shortest one has."""

    levels: dict[str, NoiseOf]

    def __call__(self, side: int, released: Levels) -> list[Any]:
        """Draws of all levels, one for each."""
        drawn = [noise(side, released.parts[level]) for level, noise in self.levels.items()]
        shortest = min((len(each) for each in drawn if each is not None), default=0)
        return [None if each is None else each[:shortest] for each in drawn]


def noise_of(plan: Any, pair: Pair) -> NoiseOf | None:
    """Reader of a plan's noise from a release of either pattern; None where it is not known."""
    match plan:
        case MeasurementPlan():
            return Added.at(plan, pair)
        case HeatmapPlan():
            return AddedToPyramid(plan, pair)
        case MovedPlan() | PatternPlan():
            return Positions()
        case _:
            return None


def draws_of(plan: Any, pair: Pair) -> tuple[Draws, ...]:
    """The noise of a plan's releases, all of whose draws are compared with each other."""
    noise = noise_of(plan, pair)
    return () if noise is None else (Draws("noise", One(noise), log_likeliest(plan, pair)),)


def draws_of_levels(by: str, plans: dict[str, Any], pairs: dict[str, Pair]) -> tuple[Draws, ...]:
    """The noise of each level, and of all levels together."""
    known = {level: noise for level, plan in plans.items() if (noise := noise_of(plan, pairs[level])) is not None}
    alone = tuple(
        Draws(f"noise of {by} {level}", FromLevel(level, noise), log_likeliest(plans[level], pairs[level]))
        for level, noise in known.items()
    )
    if len(known) < 2:
        return alone
    first = min((numbers(plans[level]) for level in known), default=0)
    likeliest = max(log_likeliest(plans[level], pairs[level], first) for level in known)
    signs = all(isinstance(plans[level], MeasurementPlan) for level in known)
    return (*alone, Draws(f"noise of all levels of {by}", EveryLevel(known), likeliest, signs=signs))


def log_likeliest(plan: Any, pair: Pair, first: int | None = None) -> float:
    """Logarithm of an upper bound on the probability of any outcome of a plan's noise, or of its `first` numbers."""
    match plan:
        case HeatmapPlan():
            # All cells of the first level that lie in the window are looked at, and one or more of each further one.
            inside = int(np.count_nonzero(pyramid(plan.inside)[plan.budgets.first]))
            return float(
                np.dot([int(inside)] + [1] * (len(plan.scales) - 1), [log_laplace(each) for each in plan.scales])
            )
        case BoundedCountsPlan():
            return _count(plan, first) * math.log(float(TruncatedGeometric(plan.scale, plan.max_error).pmf(0)))
        case StatisticPlan():
            return _count(plan, first) * log_laplace(plan.scale)
        case FieldStatisticPlan():
            # `sum_k e^(-k^2 / (2 s^2)) >= s sqrt(2 pi)`, by Poisson's summation.
            return -_count(plan, first) * math.log(plan.scale * math.sqrt(2 * math.pi))
        case MovedPlan():
            kept = float(gammainc(2, plan.rate * plan.bound))
            return _count(plan, first) // 2 * min(0.0, math.log((plan.rate * plan.step) ** 2 / (2 * math.pi * kept)))
        case KernelPlan():
            return min(0.0, math.log(_densest(plan, pair) * plan.domain.resolution**2))
        case DiffusionPlan():
            return min(0.0, math.log(2 * plan.n * plan.domain.resolution / plan.mesh.element_measure.min()))
        case _:
            return 0.0


def log_laplace(scale: float) -> float:
    """Logarithm of the probability that discrete Laplace noise is zero, which no other value exceeds.

    Examples
    --------
    >>> round(math.exp(log_laplace(2.0)), 4)
    0.2449
    """
    return math.log(math.tanh(1 / (2 * scale)))


def _densest(plan: KernelPlan, pair: Pair) -> float:
    """Largest density of the children anywhere, at most."""
    region = hull(plan.domain)
    least = min(float(mass(pattern.xy, region, plan.bandwidth).min()) for pattern in pair)
    return plan.n / (2 * math.pi * plan.bandwidth**2 * least)


def numbers(plan: Any) -> int:
    """Number of noised values that a plan releases; the least possible where it is random."""
    if isinstance(plan, MeasurementPlan):
        cells = isinstance(plan, StatisticPlan) and plan.basis == "cells"
        return len(plan.mesh.elements) if cells else len(plan.mesh.vertices)
    return 2 * plan.n if isinstance(plan, MovedPlan) else 1


def _count(plan: Any, first: int | None) -> int:
    return numbers(plan) if first is None else first


class SeenNoise(NamedTuple):
    """Summary of one run's draws of one kind: digests, and agreeing signs and their number, by distance of levels."""

    digests: tuple[bytes, ...]
    agree: tuple[int, ...] = ()
    compared: tuple[int, ...] = ()


def seen(draws: Draws, side: int, released: Any) -> SeenNoise:
    """Summary that is kept of the noise of a run."""
    drawn = draws.noise(side, released)
    digests = tuple(_digest(each) for each in drawn if each is not None)
    if not draws.signs:
        return SeenNoise(digests)
    signs = [np.sign(each) for each in drawn]
    # Products of independent signs along a chain are independent: one chain for every distance.
    products = [
        np.concatenate([one * other for one, other in zip(signs, signs[apart:], strict=False)])
        for apart in range(1, len(signs))
    ]
    agree = tuple(int((each > 0).sum()) for each in products)
    return SeenNoise(digests, agree, tuple(int(np.count_nonzero(each)) for each in products))


def repeated(draws: Draws, runs: Sequence[SeenNoise]) -> Repeats:
    """Number of repeated draws in the noise of all runs.

    Examples
    --------
    >>> same = [SeenNoise((b"a",))] * 3
    >>> repeated(Draws("coin", One(lambda side, released: None), math.log(0.5)), same)
    Repeats(draws=3, repeats=2, log_chance=-0.07..., signs=False)
    """
    digests = [digest for run in runs for digest in run.digests]
    count = len(digests)
    again = count - len(set(digests))
    mean = min(float(count), math.exp(draws.log_likeliest) * count * (count - 1) / 2)
    return Repeats(count, again, _log_tail(again, mean, draws.log_likeliest, count))


def agreement(runs: Sequence[SeenNoise]) -> Repeats:
    """Agreement, or disagreement, of the signs of two levels' noise at the most significant distance."""
    agree, compared = (np.sum([getattr(run, name) for run in runs], axis=0) for name in ("agree", "compared"))
    most = np.maximum(agree, compared - agree)
    log_chances = math.log(2 * len(most)) + binom.logsf(most - 1, compared, 0.5)
    oddest = int(np.argmin(log_chances))
    return Repeats(int(compared[oddest]), int(most[oddest]), min(0.0, float(log_chances[oddest])), signs=True)


def _log_tail(again: int, mean: float, log_likeliest: float, count: int) -> float:
    """Logarithm of Chernoff's bound on as many repeats as were seen."""
    if again <= mean or not again:
        return 0.0
    # The mean itself may be too small for a float.
    log_mean = log_likeliest + math.log(count * (count - 1) / 2)
    return again - mean - again * (math.log(again) - log_mean)


def _digest(noise: Any) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(noise).tobytes(), digest_size=16).digest()
