"""Noise of the levels of a stratified release, and its laws: of each level, and of all levels together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpppsynth.auditing.whole import Levels
from dpppsynth.contract.audits.added_noise import NoiseOf
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.statistic_audit import StatisticAudit
from dpppsynth.contract.audits.target import Draws, Number, StatedLaw

Audits = Mapping[str, StatisticAudit]
Pairs = Mapping[str, Pair]


@dataclass(frozen=True, eq=False)
class FromLevel:
    """Noise of one level of a stratified release."""

    level: str
    noise: NoiseOf

    def __call__(self, side: int, released: Levels) -> list[Any]:
        """Noise of that level alone."""
        return [self.noise(side, released.parts[self.level])]


@dataclass(frozen=True, eq=False)
class EveryLevel:
    """Noise of all levels of a stratified release: of each the first numbers, as many as the shortest one has."""

    levels: dict[str, NoiseOf]

    def __call__(self, side: int, released: Levels) -> list[Any]:
        """Draws of all levels, one for each."""
        drawn = [noise(side, released.parts[level]) for level, noise in self.levels.items()]
        shortest = min((len(each) for each in drawn if each is not None), default=0)
        return [None if each is None else each[:shortest] for each in drawn]


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


def draws_of_levels(by: str, audits: Audits, pairs: Pairs) -> tuple[Draws, ...]:
    """The noise of each level, and of all levels together."""
    known = {level: noise for level, each in audits.items() if (noise := each.noise(pairs[level])) is not None}
    alone = tuple(
        Draws(f"noise of {by} {level}", FromLevel(level, noise), audits[level].log_likeliest(pairs[level]))
        for level, noise in known.items()
    )
    if len(known) < 2:
        return alone
    first = min(audits[level].numbers for level in known)
    likeliest = max(audits[level].log_likeliest(pairs[level], first) for level in known)
    signs = all(audits[level].symmetric for level in known)
    return (*alone, Draws(f"noise of all levels of {by}", EveryLevel(known), likeliest, signs=signs))


def laws_of_levels(by: str, audits: Audits, pairs: Pairs) -> tuple[StatedLaw, ...]:
    """The stated laws of the noise of every level."""
    return tuple(
        StatedLaw(f"{law.name} of {by} {level}", AtLevel(level, law.number))
        for level, each in audits.items()
        for law in each.laws(pairs[level])
    )
