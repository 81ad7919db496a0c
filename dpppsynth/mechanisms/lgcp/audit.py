"""Audits of log-Gaussian Cox fields: of the noised field statistic, and of posterior draws."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from dpppsynth.contract.audits.additive_audits import AdditiveNoiseAudit
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed
from dpppsynth.contract.audits.noise_laws import COUNT, DiscreteGaussian, StatedNoise, less_gaussian
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import coarse_sums, gaussian_ratio, one_by_one, weighted
from dpppsynth.contract.audits.target import AuditStatistic, Scores, StatedLaw, Weakened
from dpppsynth.core.errors import QualityError
from dpppsynth.mechanisms.lgcp.draw_statistic import DrawStatistic, PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses, FieldStatistic
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.target_posterior import FieldPrior
from dpppsynth.privacy.profiles import GaussianDP, Profile
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Factors at which a posterior is worked out; between them its mean and its spread are interpolated.
FACTORS = 2.0 ** np.arange(0, 7)


@dataclass(frozen=True, eq=False)
class WiderPrior:
    """A posterior draw whose prior's sigma is too large: the number `weight . Y` (V,), by Laplace's approximation.

    Where n is secret the intercept's prior is wider by the same factor: it protects n.
    """

    plan: PosteriorDrawStatistic
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
        posterior = FieldPrior(prior.centre, basis, prior.measure).posterior(tent_masses(pattern, self.plan.mesh))
        sought = self.weight @ basis
        try:
            mode = posterior.mode()
        except QualityError:
            return np.nan, np.nan
        variance = sought @ np.linalg.solve(posterior.information(mode), sought)
        return float(sought @ mode), float(np.log(variance) / 2)

    def __call__(self, factor: float) -> Scores:
        """Quantiles of the number, up to a constant; beyond what can be worked out, of the last factor that can."""
        noise = scipy.special.ndtri((np.arange(COUNT) + 0.5) / COUNT)
        sides = []
        for moments in self._moments:
            known = np.isfinite(moments).all(axis=1)
            if not known.any():
                return noise, noise
            at = np.log(FACTORS[known])
            mean, spread = (np.interp(np.log(factor), at, column) for column in moments[known].T)
            sides.append(mean + np.exp(spread) * noise)
        return sides[0], sides[1]


@dataclass(frozen=True, eq=False)
class FieldAudit(StatisticAudit):
    """Base of audits of a Gaussian field; a point's effect is measured by the prior standard deviation at its place."""

    plan: FieldStatistic

    def separation(self, first: Floats, second: Floats) -> Floats:
        mesh = self.plan.mesh
        (one, here), (other, there) = mesh.values(first), mesh.values(second)
        vertices = np.concatenate([mesh.elements[one], mesh.elements[other]], axis=1)
        return self._sd(vertices, np.concatenate([here, -there], axis=1))

    def presence(self, at: Floats) -> Floats:
        element, weight = self.plan.mesh.values(at)
        return self._sd(self.plan.mesh.elements[element], weight)

    def _sd(self, vertices: Any, weight: Floats) -> Floats:
        """(P,) standard deviations of sums of the field's values at vertices (P, k), weighted (P, k)."""
        local = self.plan.covariance.matrix(self.plan.mesh)[vertices[:, :, None], vertices[:, None, :]]
        return np.sqrt(np.clip(np.einsum("pi,pij,pj->p", weight, local, weight), 0, None))


@dataclass(frozen=True, eq=False)
class FieldStatisticAudit(FieldAudit, AdditiveNoiseAudit):
    """Tent masses smoothed by a covariance, with discrete Gaussian noise."""

    plan: FieldMasses

    @property
    def law(self) -> StatedNoise:
        return DiscreteGaussian(self.plan.scale)

    @property
    def log_mode(self) -> float:
        """Bound on the log-probability of no noise: `sum_k e^(-k^2 / (2 s^2)) >= s sqrt(2 pi)` (Poisson summation)."""
        return -math.log(self.plan.scale * math.sqrt(2 * math.pi))

    def likelihood_ratio(self, pair: Pair) -> Callable[[Any], float]:
        return partial(gaussian_ratio, *self.exact(pair), self.plan.scale)

    def weakened(self, pair: Pair) -> Weakened:
        """Exact law of the likelihood ratio, that of two normal variables."""
        change = self.change(pair).astype(np.float64)
        return partial(less_gaussian, float(np.sqrt(change @ change)) / self.plan.scale)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """The parameter mu: the Euclidean distance of the statistics in scales."""
        if not isinstance(claim, GaussianDP):
            return UNKNOWN
        change = np.asarray(self.change(pair), dtype=np.float64)
        return float(np.linalg.norm(change)) / self.plan.scale, claim.mu


@dataclass(frozen=True, eq=False)
class DrawAudit(FieldAudit):
    """Posterior draws under a prior whose exact privacy is not known at a pair."""

    plan: DrawStatistic

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio: a move multiplies the posterior by `e^-(Y(x) - Y(x'))`. Totals, and single numbers."""
        mesh, unit = self.plan.mesh, 2.0**-self.plan.bits
        return (
            AuditStatistic("likelihood ratio", partial(weighted, self.weight(pair), unit)),
            AuditStatistic("total", partial(log_total, mesh.measure, unit)),
            coarse_sums(self.plan, len(mesh.vertices), unit),
            *one_by_one(len(mesh.vertices)),
        )

    def weight(self, pair: Pair) -> Floats:
        """(V,) weights with which the field enters the difference of the log-likelihoods."""
        basis = self.plan.mesh.basis
        gone, came = (basis(places).sum(axis=0) if len(places) else 0.0 for places in changed(pair))
        return np.asarray(gone - came, dtype=np.float64)

    def alike(self, pair: Pair) -> bool:
        return not self.weight(pair).any()

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        return claim

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        return UNKNOWN

    def weakened(self, pair: Pair) -> Weakened | None:
        return None

    def noise(self, pair: Pair) -> None:
        """None: a draw has no noise beside the field itself."""

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class PosteriorDrawAudit(DrawAudit):
    """Posterior draws under a Gaussian prior, by Theorem A."""

    plan: PosteriorDrawStatistic

    def weakened(self, pair: Pair) -> Weakened:
        return WiderPrior(self.plan, pair, self.weight(pair).ravel())

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """The parameter mu: prior standard deviation of the change in the logarithm of the posterior's density."""
        return (self.increment(pair), claim.mu) if isinstance(claim, GaussianDP) else UNKNOWN

    def increment(self, pair: Pair) -> float:
        """Prior standard deviation of the change in the posterior's log-density between two patterns."""
        gone, came = changed(pair)
        plan, weight = self.plan, self.weight(pair).ravel()
        level = (plan.intercept_sd or 0.0) * (len(gone) - len(came))
        return math.hypot(math.sqrt(max(0.0, float(weight @ plan.covariance.matrix(plan.mesh) @ weight))), level)


def log_total(measure: Floats, unit: float, released: Any) -> float:
    """Logarithm of the mean number of points, `log sum_j a_j e^(Y_j)`, by the integrals (V,) of the basis."""
    field = released.lattice * unit
    top = field.max()
    return float(top + np.log(measure @ np.exp(field - top)))
