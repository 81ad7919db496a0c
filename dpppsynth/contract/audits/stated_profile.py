"""Exact privacy profile of stated Laplace noise at one pair of patterns, often far below the worst-case claim.

Pure epsilon is about the rarest event of the worst pair. At a given pair the law of noised numbers is known, and so is
delta for every epsilon: a program that exceeds it is not the mechanism it states, and its guarantee says nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpppsynth.core.types import JsonObject
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.mesh import Floats

# Steps of the grid of privacy losses, from 0 to their largest sum; more noised numbers are not convolved.
STEPS, MOST_SHIFTS = 4096, 500
# Added to delta for the lattice of the noise, fine beside its scale, and for rounding of sums.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class AsStated:
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
        """Delta at which the claim is quoted."""
        return self.claim.at

    def delta(self, epsilon: float) -> float:
        """`E (1 - e^(epsilon - L))_+` over the privacy loss L, or the claim's delta where that is less."""
        losses, chances = self._law
        lost = float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))
        lost += ROUNDING + self.unsure * (1 + math.exp(epsilon))
        return min(self.claim.delta(epsilon), lost)

    def epsilon(self, delta: float) -> float:
        """Epsilon of the claim."""
        return self.claim.epsilon(delta)

    def to_dict(self) -> JsonObject:
        """JSON form of the claim."""
        return self.claim.to_dict()

    def describe(self) -> str:
        """The claim in words."""
        return self.claim.describe()

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
