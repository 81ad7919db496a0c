"""Exact privacy profile of the stated noise at one pair of patterns, often far below the worst-case claim.

Pure epsilon is about the rarest event of the worst pair. At a given pair the law of noised counts is known, and so is
delta for every epsilon: a program that exceeds it is not the mechanism it states, and its guarantee says nothing. It is
the same with points that are moved one by one; counts with bounded error claim no more than what they give away anyway.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.auditing.pairs import changed
from dpppsynth.auditing.persons import MISSED, Pair
from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.audit import branches
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import KernelPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import PosteriorDrawPlan
from dpppsynth.mechanisms.planar_laplace.audit import move_shifts
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.mesh import Floats, Ints

# Steps of the grid of privacy losses, from 0 to their largest sum; more noised numbers are not convolved.
STEPS, MOST_SHIFTS = 4096, 500
# Added to delta for the lattice of the noise, fine beside its scale, and for rounding of sums.
ROUNDING = 1e-5
# Steps of such a grid for moved points, of all and of each; radii at which directions are integrated, which is off by
# half of what is added for each point.
MOVE_STEPS, OF_EACH, RADII, QUADRATURE = 1024, 64, 100, 1e-4


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

    def to_dict(self) -> dict[str, Any]:
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


def as_stated(plan: Any, pair: Pair, claim: Profile) -> Profile:
    """A claim, sharper by the law of the stated noise at a pair where that is known: of heat maps, and moved points.

    The person's shares of the cells are worked out here from their points, and not as the plan does it; so is the law
    of the moves.
    """
    if isinstance(plan, MovedPlan):
        moved = move_shifts(plan, pair)
        if moved is None or not 0 < len(moved) <= MOST_SHIFTS:
            return claim
        return MovesAsStated(claim, moved, bound=plan.rate * plan.bound)
    if not isinstance(plan, HeatmapPlan):
        return claim
    shifts = _shifts(plan, pair)
    return AsStated(claim, shifts) if 0 < len(shifts) <= MOST_SHIFTS else claim


def excess(plan: Any, pair: Pair, claim: Profile) -> tuple[str, ...]:
    """Violations of the claim by the stated noise itself at a pair: these need no run to be refuted.

    A plan that was calibrated to a shorter privacy radius than it claims, or whose persons weigh more than one, shows
    here. Nothing is known of fields of bounded slope, heat flow, and other bounds on kernels.
    """
    spent, allowed = _spent(plan, pair, claim)
    if spent <= allowed * (1 + 1e-9):
        return ()
    return (f"at this pair the stated noise gives away {spent:.4g}, and {allowed:.4g} is claimed",)


def _spent(plan: Any, pair: Pair, claim: Profile) -> tuple[float, float]:
    """Parameter of the claim that the stated noise has at a pair, and the claimed one."""
    match plan, claim:
        case BoundedCountsPlan(), TruncatedLaplaceDP():
            return float(np.abs(_change(plan, pair)).sum()) / plan.scale, sum(claim.shifts) / claim.scale
        case StatisticPlan(), PureDP():
            return float(np.abs(_change(plan, pair)).sum()) / plan.scale, claim.level
        case FieldStatisticPlan(), GaussianDP():
            return float(np.linalg.norm(_change(plan, pair))) / plan.scale, claim.mu
        case PosteriorDrawPlan(), GaussianDP():
            return _increment(plan, pair), claim.mu
        case KernelPlan(), PoissonGaussianDP():
            return _farthest_move(*changed(pair)) / plan.bandwidth, claim.ratio
        case HeatmapPlan(), PureDP():
            each = zip(branches(plan, pair), plan.scales, strict=True)
            return sum(float(np.abs(branch.first - branch.second).sum()) / scale for branch, scale in each), claim.level
        case MovedPlan(), PureDP() | ApproximateDP():
            shifts = move_shifts(plan, pair)
            return 0.0 if shifts is None else float(shifts.sum()), claim.level
        case _:
            return 0.0, math.inf


def _increment(plan: PosteriorDrawPlan, pair: Pair) -> float:
    """Prior standard deviation of what two patterns change in the logarithm of the posterior's density."""
    gone, came = changed(pair)
    weight = sum(sign * plan.mesh.basis(at).sum(axis=0) for sign, at in ((1, gone), (-1, came)) if len(at))
    weight = np.asarray(weight, dtype=np.float64).ravel()
    level = (plan.intercept_sd or 0.0) * (len(gone) - len(came))
    return math.hypot(math.sqrt(max(0.0, float(weight @ plan.covariance.matrix(plan.mesh) @ weight))), level)


def _farthest_move(gone: Floats, came: Floats) -> float:
    """Lower bound on the largest displacement, whichever of the others (k, 2) each point has become."""
    apart = np.hypot(*(gone[:, None] - came).transpose(2, 0, 1))
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max())) if apart.size else 0.0


def _change(plan: Any, pair: Pair) -> Floats:
    """Difference of the statistics of two patterns, added up over the points in which they differ."""
    gone, came = (plan.exact(places) for places in changed(pair))
    return np.asarray(gone - came, dtype=np.float64)


def of_number(plan: HeatmapPlan, scale: float) -> AsStated:
    """Privacy profile of one noised number of a person whose cell is measured almost surely."""
    return AsStated(plan.guarantee.profile, np.array([(2.0**plan.bits + 1) / scale]), unsure=2 * MISSED)


def _shifts(plan: HeatmapPlan, pair: Pair) -> Floats:
    """(k,) most by which the masses of cells differ, in scales of their noise, of all levels."""
    points = np.concatenate(changed(pair))
    cells, number = np.unique(plan.places[plan.mesh.locate(points)], axis=0, return_counts=True)
    persons = 1 if plan.user is not None else len(points)
    # Rounding to the lattice changes each of the person's masses by one unit at most.
    masses = 2.0**plan.bits * persons * number / max(1, len(points)) + 1
    found = [
        _sums(cells >> plan.depth - level, masses) / scale
        for level, scale in enumerate(plan.scales, plan.budgets.first)
    ]
    return np.concatenate(found)


def _sums(cells: Ints, masses: Floats) -> Floats:
    """Sums of masses (k,) that are in the same one of cells (k, 2)."""
    _, which = np.unique(cells, axis=0, return_inverse=True)
    return np.asarray(np.bincount(which.ravel(), weights=masses), dtype=np.float64)
