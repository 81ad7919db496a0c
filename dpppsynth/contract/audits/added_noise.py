"""Noise of a run, read off what was released: the points of an audit are made up, so the exact numbers are known."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpppsynth.contract.additive_noise import AdditiveStatistic
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.target import Noise, Released
from dpppsynth.spatial.mesh import Ints

# From an input, 0 or 1, and what was released of it to the noise in it: whole numbers, or coordinates; None where what
# was released is of another kind.
NoiseOf = Callable[[int, Released], Noise | None]


@dataclass(frozen=True, eq=False)
class Added:
    """Noise added to counts or masses, whose exact values (V,), (V,) are those of the two patterns."""

    exact: tuple[Ints, Ints]

    @classmethod
    def at(cls, plan: AdditiveStatistic, pair: Pair) -> "Added":
        """The added noise of a plan at its two patterns."""
        first, second = (plan.exact(pattern.positions) for pattern in pair)
        return cls((first, second))

    def __call__(self, side: int, released: Released) -> Ints | None:
        """(V,) noise."""
        lattice = getattr(released, "lattice", None)
        return None if lattice is None else np.asarray(lattice - self.exact[side])


@dataclass(frozen=True)
class Positions:
    """Random positions, which are the noise themselves; none where nothing was drawn, which repeats easily."""

    def __call__(self, _side: int, released: Released) -> Noise | None:
        """Whole numbers of the grid, or (m, 2) coordinates."""
        if not hasattr(released, "patterns"):
            return getattr(released, "lattice", None)
        drawn = [pattern.positions for pattern in released.patterns]
        return np.concatenate(drawn) if any(map(len, drawn)) else None


@dataclass(frozen=True, eq=False)
class One:
    """Draws of a release without levels."""

    noise: NoiseOf

    def __call__(self, side: int, released: Released) -> list[Noise | None]:
        """The one draw of a run."""
        return [self.noise(side, released)]


def log_laplace(scale: float) -> float:
    """Logarithm of the probability that discrete Laplace noise is zero, which no other value exceeds.

    Examples
    --------
    >>> round(math.exp(log_laplace(2.0)), 4)
    0.2449
    """
    return math.log(math.tanh(1 / (2 * scale)))
