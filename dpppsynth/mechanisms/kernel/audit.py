"""Audits of Poisson cluster patterns: Gaussian kernels on windows, heat flow on networks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.contract.audits.added_noise import Positions
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import for_patterns
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw
from dpppsynth.linear_network.heat_kernels import diffusion_density
from dpppsynth.mechanisms.kernel.audit_children import TINY, DiffusionRatio, KernelRatio, laws_of_children
from dpppsynth.mechanisms.kernel.statistic import DiffusionStatistic, KernelStatistic, PatternStatistic
from dpppsynth.privacy.profiles import PoissonGaussianDP, Profile
from dpppsynth.spatial.gaussian_kernel import hull, mass
from dpppsynth.spatial.mesh import Floats

# Rows of a stochastic matrix that are compared at a time.
BLOCK = 2000


@dataclass(frozen=True, eq=False)
class PatternAudit(StatisticAudit):
    """Base of audits of patterns of children, whose places are the noise."""

    plan: PatternStatistic

    def likelihood_ratio(self, pair: Pair) -> Callable[[Any], float]:
        """Log-likelihood ratio of both patterns, a function of the children."""
        self._unknown("the likelihood ratio of two patterns", "likelihood_ratio")

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio, and numbers of children near the person, in coarse cells, and in all."""
        ratio = AuditStatistic("likelihood ratio", self.likelihood_ratio(pair))
        return (ratio, *for_patterns(self.plan.domain, pair, self.plan.relation))

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """The claim itself."""
        return claim

    def weakened(self, pair: Pair) -> None:
        """None: the law of the likelihood ratio is not known."""

    def noise(self, pair: Pair) -> Positions:
        """The places of the children."""
        return Positions()

    @property
    def numbers(self) -> int:
        """One, since the number of children is random."""
        return 1


@dataclass(frozen=True, eq=False)
class KernelAudit(PatternAudit):
    """Gaussian kernels on a window."""

    plan: KernelStatistic

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) distances moved, times the share of the kernel that is not cut off."""
        window = hull(self.plan.domain)
        inside = [mass(each, window, self.plan.bandwidth) for each in (first, second)]
        return np.asarray(np.hypot(*(second - first).T) * np.minimum(*inside))

    def likelihood_ratio(self, pair: Pair) -> Callable[[Any], float]:
        """Likelihood ratio of sums of kernels."""
        return KernelRatio(self.plan, pair)

    def alike(self, pair: Pair) -> bool:
        """Never: wherever points differ, their kernels do."""
        return False

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Distance moved in bandwidths; not known of other bounds than the superposition's."""
        if not isinstance(claim, PoissonGaussianDP):
            return UNKNOWN
        return _farthest_move(*changed(pair)) / self.plan.bandwidth, claim.ratio

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the largest probability of one child's place on its grid, at most."""
        return min(0.0, math.log(self._densest(pair) * self.plan.domain.resolution**2))

    def _densest(self, pair: Pair) -> float:
        """Largest density of the children anywhere, at most."""
        plan = self.plan
        region = hull(plan.domain)
        least = min(float(mass(pattern.xy, region, plan.bandwidth).min()) for pattern in pair)
        return plan.n / (2 * math.pi * plan.bandwidth**2 * least)

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Poisson laws of the numbers of children."""
        return laws_of_children(self.plan, pair)


@dataclass(frozen=True, eq=False)
class DiffusionAudit(PatternAudit):
    """Heat flow on the segments of a network."""

    plan: DiffusionStatistic

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) L1 distances of the laws of a child."""
        mesh, matrix = self.plan.mesh, self.plan.matrix
        pairs = np.column_stack([mesh.locate(first), mesh.locate(second)])
        different, where = np.unique(pairs, axis=0, return_inverse=True)
        apart = np.empty(len(different))
        for start in range(0, len(different), BLOCK):
            i, j = different[start : start + BLOCK].T
            apart[start : start + BLOCK] = np.abs(matrix.rows(i) - matrix.rows(j)).sum(axis=1)
        return apart[where.ravel()]

    def likelihood_ratio(self, pair: Pair) -> Callable[[Any], float]:
        """Likelihood ratio of densities that are constant on segments."""
        mesh = self.plan.mesh
        middle = mesh.pieces.corners.mean(axis=1)
        first, second = (diffusion_density(mesh, self.plan.matrix, p.positions, middle) for p in pair)
        return DiffusionRatio(mesh, np.log(np.maximum(first, TINY) / np.maximum(second, TINY)))

    def alike(self, pair: Pair) -> bool:
        """Whether the same numbers of points are on each segment."""
        first, second = (np.sort(self.plan.mesh.locate(places)) for places in changed(pair))
        return bool(np.array_equal(first, second))

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Parameters that are not known."""
        return UNKNOWN

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the largest probability of one child's place on its grid, at most."""
        plan = self.plan
        return min(0.0, math.log(2 * plan.n * plan.domain.resolution / plan.mesh.element_measure.min()))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """No laws: the numbers of children on segments are not tested."""
        return ()


def _farthest_move(gone: Floats, came: Floats) -> float:
    """Lower bound on the largest displacement, whichever of the others (k, 2) each point has become."""
    apart = np.hypot(*(gone[:, None] - came).transpose(2, 0, 1))
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max())) if apart.size else 0.0
