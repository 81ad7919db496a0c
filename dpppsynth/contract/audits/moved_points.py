"""Audit statistics of points moved by planar Laplace noise, shared by all statistics computed from moved points."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.noise_laws import MOST_SHIFTS, AsStated
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.spatial.mesh import Floats

# Steps of the grid of privacy losses of all points, and of each; radii at which directions are integrated, which is off
# by half of what is added for each point.
MOVE_STEPS, OF_EACH, RADII, QUADRATURE = 1024, 64, 100, 1e-4


@dataclass(frozen=True, eq=False)
class MovesAsStated(AsStated):
    """Minimum of a claimed profile and the exact one of planar Laplace noise on points that move by `shifts`.

    Attributes
    ----------
    shifts : (k,) array
        Distances times the rate of the noise.
    bound : float
        Largest noise, times its rate; infinite where there is none.

    Examples
    --------
    >>> from dpppsynth.privacy import PureDP
    >>> stated = MovesAsStated(PureDP(1.0), np.array([1.0]))
    >>> round(PureDP(1.0).delta(0.0), 2), round(stated.delta(0.0), 2)
    (0.46, 0.3)
    """

    bound: float = math.inf

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """Privacy losses (m,), rounded up to a grid, the last one infinite, and their probabilities."""
        step = float(self.shifts.sum()) / max(MOVE_STEPS, OF_EACH * len(self.shifts))
        different, repeated = np.unique(self.shifts, return_counts=True)
        ends = np.ceil(different / step).astype(np.int64)
        end = int(ends @ repeated)
        size = 1 << (2 * end + 1).bit_length()
        spectrum = np.ones(size // 2 + 1, dtype=complex)
        for shift, k, times in zip(different, ends, repeated, strict=True):
            below = self._below(shift, step * np.arange(-k, k + 1))
            spectrum *= np.fft.rfft(np.diff(below, prepend=0.0), size) ** times
        chances = np.maximum(np.fft.irfft(spectrum, size)[: 2 * end + 1], 0.0)
        losses = np.append(step * np.arange(-end, end + 1), math.inf)
        never = max(0.0, 1 - chances.sum()) + QUADRATURE * len(self.shifts)
        return losses, np.append(chances, never)

    def _below(self, shift: float, losses: Floats) -> Floats:
        """(m,) probability that a point's loss is at most so large (m,), by its direction at each of many radii.

        Noise (r, phi) is `a = r + loss` from the other place where `cos phi = (r^2 + shift^2 - a^2) / (2 r shift)`.
        """
        # Apart from the others those radii at which some directions lead out of the other place's reach.
        edges = gammainc(2, [0.0, max(0.0, self.bound - shift), self.bound])
        weights = np.repeat(np.diff(edges), RADII) / (edges[-1] * RADII)
        radius = gammaincinv(2, edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(RADII) + 0.5) / RADII)
        radius = radius.reshape(-1, 1)[weights > 0]
        across = np.clip(radius + losses, 0.0, self.bound)
        cosine = (radius**2 + shift**2 - across**2) / (2 * radius * shift)
        return np.asarray(weights[weights > 0] @ np.arccos(np.clip(cosine, -1.0, 1.0)) / math.pi, dtype=np.float64)


def shifts_between(gone: Floats, came: Floats, rate: float, *, row_by_row: bool = False) -> Floats | None:
    """(k,) distances between a person's places (k, 2) and (k, 2), times the rate, without points that stay.

    None where it is not known which place is moved to which.
    """
    if not row_by_row and len(np.unique(came, axis=0)) > 1 and len(np.unique(gone, axis=0)) > 1:
        return None
    shifts = rate * np.hypot(*(gone - came).T)
    return np.asarray(shifts[shifts > 0], dtype=np.float64)


# Weight of a move along both axes relative to one along a single axis, in which one coordinate tells nothing.
ASLANT = 0.01


@dataclass(frozen=True, eq=False)
class MovesAudit(StatisticAudit):
    """Base of audits of points with planar Laplace noise on each, and of statistics computed from such points."""

    def shifts(self, pair: Pair) -> Floats | None:
        """(k,) distances between the person's places, times the rate; None where they are not known."""
        raise NotImplementedError

    @property
    def rate(self) -> float:
        """Epsilon of one point per unit of length on the map, as stated."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """Largest move on the map; infinite without."""
        return math.inf

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) distances, and among equal ones those that change both coordinates."""
        along = np.abs(self.plan.domain.coordinates(second) - self.plan.domain.coordinates(first))
        return np.asarray(np.hypot(*along.T) + ASLANT * along.min(axis=1))

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """The claim, tightened by the law of the moves, computed independently of the statistic."""
        shifts = self.shifts(pair)
        if shifts is None or not 0 < len(shifts) <= MOST_SHIFTS:
            return claim
        return MovesAsStated(claim, shifts, bound=self.rate * self.bound)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: the distances moved, times the rate."""
        if not isinstance(claim, PureDP | ApproximateDP):
            return UNKNOWN
        shifts = self.shifts(pair)
        return 0.0 if shifts is None else float(shifts.sum()), claim.level

    def alike(self, pair: Pair) -> bool:
        """Whether both patterns have their points at the same places."""
        shifts = self.shifts(pair)
        return shifts is not None and not len(shifts)
