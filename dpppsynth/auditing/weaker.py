"""Law of the likelihood ratio at a pair under a mechanism with too little noise by a factor, where it is known.

It is made of public parameters and a pair that is made up, and by a fixed seed: so it costs no privacy. An audit is
rated by it, and not by what the claim would allow.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpppsynth.auditing.pairs import changed
from dpppsynth.auditing.target import Weakened
from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.core.errors import QualityError
from dpppsynth.mechanisms.bounded.audit import LessTruncated
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.audit import always_seen, branches
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import PosteriorDrawPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_plan import DrawPlan
from dpppsynth.mechanisms.planar_laplace.audit import ShorterMoves, move_shifts
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.target_posterior import FieldPrior
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

Pair = tuple[PointPattern, PointPattern]
Scores = tuple[Floats, Floats]

SEED, COUNT = 20261123, 20_000
# Factors at which a posterior is worked out; between them its mean and its spread are interpolated.
FACTORS = 2.0 ** np.arange(0, 7)


@dataclass(frozen=True, eq=False)
class LessLaplace:
    """Numbers with discrete Laplace noise, in so far as the two inputs' differ, by `change` (k,).

    The noise is of one scale, or of scales (k,).
    """

    change: Ints
    scale: float | Floats

    def __call__(self, factor: float) -> Scores:
        """Scores (N,), (N,) of the likelihood ratio; the second input's are the first's with the sign changed."""
        rng = np.random.default_rng(SEED)
        up, down = rng.geometric(-np.expm1(-factor / self.scale), (2, COUNT, len(self.change)))
        ratio = ((np.abs(up - down + self.change) - np.abs(up - down)) / self.scale).sum(axis=1)
        return ratio, -ratio


@dataclass(frozen=True, eq=False)
class LessGaussian:
    """Numbers with Gaussian noise, which tell the inputs apart as well as `N(0, 1)` and `N(mu, 1)`."""

    mu: float

    def __call__(self, factor: float) -> Scores:
        """Quantiles of the ratio, up to its scale."""
        noise = ndtri((np.arange(COUNT) + 0.5) / COUNT)
        return noise + factor * self.mu, noise


@dataclass(frozen=True, eq=False)
class WiderPrior:
    """A posterior draw whose prior's sigma is too large: the number `weight . Y` (V,), by Laplace's approximation.

    Where n is secret the intercept's prior is wider by the same factor: it protects n.
    """

    plan: PosteriorDrawPlan
    pair: Pair
    weight: Floats

    @cached_property
    def _moments(self) -> Floats:
        """(2, F, 2) mean and logarithm of the standard deviation, for either pattern and each factor."""
        return np.array([[self._posterior(pattern, factor) for factor in FACTORS] for pattern in self.pair])

    def _posterior(self, pattern: PointPattern, factor: float) -> tuple[float, float]:
        prior = self.plan.prior
        wider = np.full(prior.basis.shape[1], factor)
        wider[-1] = 1.0 if self.plan.intercept_sd is None else factor
        basis = prior.basis * wider
        posterior = FieldPrior(prior.centre, basis, prior.precision, prior.measure).posterior(
            tent_masses(pattern, self.plan.mesh)
        )
        sought = self.weight @ basis
        try:
            mode = posterior.mode()
        except QualityError:
            return np.nan, np.nan
        variance = sought @ np.linalg.solve(posterior.information(mode), sought)
        return float(sought @ mode), float(np.log(variance) / 2)

    def __call__(self, factor: float) -> Scores:
        """Quantiles of the number, up to a constant; beyond what can be worked out, of the last factor that can."""
        noise = ndtri((np.arange(COUNT) + 0.5) / COUNT)
        sides = []
        for moments in self._moments:
            known = np.isfinite(moments).all(axis=1)
            if not known.any():
                return noise, noise
            at = np.log(FACTORS[known])
            mean, spread = (np.interp(np.log(factor), at, column) for column in moments[known].T)
            sides.append(mean + np.exp(spread) * noise)
        return sides[0], sides[1]


def weakened(plan: Any, pair: Pair) -> Weakened | None:
    """Law of a plan's likelihood ratio at a pair, by how many times too little noise there is; None if it is not known.

    Of noised statistics and moved points it is exact, or simulated; of heat maps that of the cells looked at whatever
    the noise; of normal posterior draws approximate.
    """
    match plan:
        case BoundedCountsPlan():
            change = _change(plan, pair)
            return LessTruncated(change[change != 0], plan.scale, plan.max_error)
        case MovedPlan():
            shifts = move_shifts(plan, pair)
            return None if shifts is None else ShorterMoves(shifts, plan.rate * plan.bound)
        case StatisticPlan():
            change = _change(plan, pair)
            return LessLaplace(change[change != 0], plan.scale)
        case FieldStatisticPlan():
            change = _change(plan, pair).astype(np.float64)
            return LessGaussian(float(np.sqrt(change @ change)) / plan.scale)
        case PosteriorDrawPlan():
            return WiderPrior(plan, pair, _moved(plan, pair))
        case HeatmapPlan():
            return LessLaplace(*always_seen(plan, pair))
        case _:
            return None


def alike(plan: Any, pair: Pair) -> bool:
    """Whether a plan's mechanism treats both patterns alike: on its mesh they are the same."""
    match plan:
        case MovedPlan():
            shifts = move_shifts(plan, pair)
            return shifts is not None and not len(shifts)
        case StatisticPlan() | FieldStatisticPlan():
            return not _change(plan, pair).any()
        case DrawPlan():
            return not _moved(plan, pair).any()
        case HeatmapPlan():
            return not any(len(branch.cells) for branch in branches(plan, pair))
        case DiffusionPlan():
            first, second = (np.sort(plan.mesh.locate(places)) for places in changed(pair))
            return bool(np.array_equal(first, second))
        case _:
            return False


def _change(plan: StatisticPlan | FieldStatisticPlan, pair: Pair) -> Ints:
    """Difference of the statistics: of the moved points alone, since those of all points add up."""
    gone, came = (plan.exact(places) for places in changed(pair))
    return gone - came


def _moved(plan: DrawPlan, pair: Pair) -> Floats:
    """(V,) weights with which the field enters the difference of the log-likelihoods."""
    gone, came = (plan.mesh.basis(places).sum(axis=0) if len(places) else 0.0 for places in changed(pair))
    return np.asarray(gone - came, dtype=np.float64).ravel()
