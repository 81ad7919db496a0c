"""Pair sums with discrete Laplace noise, and statistics that hold them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import sum_up
from dpppsynth.core.types import JsonRead
from dpppsynth.models.pair_sums import PairStatistic, require_few, require_radius
from dpppsynth.privacy.bounds import laplace_scale, pair_sums_sensitivity
from dpppsynth.privacy.noise import OpenDPLaplace, SeededLaplace, laplace_noise, require_room
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints

# A measurement's `apply_noise`.
Randomise = Callable[[Callable[[Ints], Ints], Ints], Ints]


class NoiseGroup(NamedTuple):
    """Released numbers in a row with noise of one scale, in lattice units; `label` says of what."""

    label: str
    size: int
    scale: float


@dataclass(frozen=True, eq=False)
class NoisedPairs:
    """Doubled capped sums over pairs, one for each radius, with noise of a budget of its own for each.

    Attributes
    ----------
    statistic : PairStatistic
    relation : Relation
    epsilons : tuple of float
        Budget of each radius.
    """

    statistic: PairStatistic
    relation: Relation
    epsilons: tuple[float, ...]

    @property
    def bits(self) -> int:
        """Binary digits of the released sums: those of shares, and one since sums are doubled."""
        return self.statistic.bits + 1

    @cached_property
    def sensitivities(self) -> tuple[int, ...]:
        """Largest change of each doubled sum, in lattice units."""
        bits = self.statistic.bits
        return tuple(pair_sums_sensitivity(self.relation, cap, bits=bits) for cap in self.statistic.caps)

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """Scale of each sum's noise, in lattice units."""
        return tuple(laplace_scale(*each) for each in zip(self.sensitivities, self.epsilons, strict=True))

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        """One group for each radius."""
        levels = zip(self.statistic.radii, self.scales, strict=True)
        return tuple(NoiseGroup(f"radius {radius:g}", 1, scale) for radius, scale in levels)

    @property
    def noise_sd(self) -> tuple[float, ...]:
        """Standard deviation of each sum's noise, about, in pairs."""
        return tuple(2**0.5 * scale / 2.0**self.bits for scale in self.scales)

    @property
    def spent(self) -> float:
        """Epsilon of all radii together."""
        return sum_up(
            Fraction(change) / Fraction(scale) for change, scale in zip(self.sensitivities, self.scales, strict=True)
        )

    def require(self, n: int | None, *, name: str = "radii", remedy: str = "") -> None:
        """Refuse, from public numbers, meaningless radii, too many pairs of places, and noise beyond 64 bits.

        Parameters
        ----------
        n : int or None
        name : str
            Of the radii, in messages.
        remedy : str
            For too many pairs, where steps cannot be chosen.
        """
        statistic = self.statistic
        for radius, steps in zip(statistic.radii, statistic.steps, strict=True):
            require_radius(radius, statistic.domain, name=name)
            require_few(statistic.domain, radius, steps, n, name=name, remedy=remedy)
        for scale, sensitivity, epsilon in zip(self.scales, self.sensitivities, self.epsilons, strict=True):
            require_room(scale, sensitivity, epsilon)

    def noise(self, level: int, rng: RngLike = None) -> OpenDPLaplace | SeededLaplace:
        """Noise of one radius."""
        sensitivity, epsilon = self.sensitivities[level], self.epsilons[level]
        return laplace_noise(self.scales[level], sensitivity=sensitivity, epsilon=epsilon, rng=rng)

    def add(self, apply_noise: Randomise, exact: Ints, rng: RngLike = None) -> Ints:
        """(L,) exact sums with noise, each drawn through a measurement's `apply_noise`; `rng` as there."""
        # One generator, so that radii do not share their noise in a seeded run.
        source = None if rng is None else generator(rng)
        noises = [self.noise(level, source) for level in range(len(exact))]
        return np.concatenate([apply_noise(noise.add, exact[k : k + 1]) for k, noise in enumerate(noises)])

    def values(self, lattice: Ints) -> Floats:
        """(L,) sums, in pairs, of numbers in lattice units."""
        return np.asarray(lattice / 2.0**self.bits, dtype=np.float64)


class PairsStatistic(LatticeStatistic):
    """Base of statistics whose last released numbers are capped pair sums, one for each radius.

    All have discrete Laplace noise, each of its group's scale.

    Attributes
    ----------
    relation : Relation
    radii : tuple of float
    caps : tuple of int
        One for each radius.
    """

    if TYPE_CHECKING:

        @property
        def relation(self) -> Relation:
            """Neighbouring patterns."""

        @property
        def radii(self) -> tuple[float, ...]:
            """Lengths on the map, in the domain's unit."""

        @property
        def caps(self) -> tuple[int, ...]:
            """Cap of each radius."""

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        statistic = super().restore(data)
        if len(statistic.lattice) != self.size:
            msg = "statistic: it has another number of values than its plan; the file is not whole."
            raise InputError(msg)
        return statistic

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        """Numbers with noise of one scale, from the first to the last."""
        raise NotImplementedError
