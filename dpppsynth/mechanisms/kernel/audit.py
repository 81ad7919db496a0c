"""Audits of Poisson cluster patterns: Gaussian kernels on windows, heat flow on networks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import shapely

from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed, unchanged
from dpppsynth.contract.audits.noise_laws import LUCK, NoiseOf, released_places
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import for_patterns, patterns_of
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw
from dpppsynth.linear_network.heat_kernels import diffusion_density
from dpppsynth.mechanisms.kernel.statistic import DiffusionStatistic, KernelStatistic, PatternStatistic
from dpppsynth.privacy.profiles import PoissonGaussianDP, Profile
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import gaussian_sum, hull, mass
from dpppsynth.spatial.mesh import Floats, Mesh

# Shares of the bandwidth within which children are counted: others' children may outweigh the person's in the larger.
NEAR = {"near": 1.0, "beside": 1 / 3}
# Children are rounded to a grid, and integrals in floating point.
ROUNDING = 1e-5
# Added to densities to keep their logarithms finite.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class KernelRatio:
    """Log-likelihood ratio, up to a constant, of the kernels' children: `sum log f / f'` over all of them.

    `f` and `f'` are the plan's densities at both patterns. Kernels of points that both have are summed once.
    """

    plan: KernelStatistic
    pair: Pair

    @cached_property
    def _kernels(self) -> tuple[tuple[Floats, Floats], ...]:
        """Points (k, 2) and weights (k,) of kernels: of both patterns, of the first alone, of the second alone."""
        region, bandwidth = hull(self.plan.domain), self.plan.bandwidth
        return tuple((xy, 1 / mass(xy, region, bandwidth)) for xy in (unchanged(self.pair), *changed(self.pair)))

    def __call__(self, released: Any) -> float:
        """Sum over the children of all patterns."""
        children = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        both, first, second = (gaussian_sum(xy, weight, self.plan.bandwidth, children) for xy, weight in self._kernels)
        return float(np.log(np.maximum(both + first, TINY) / np.maximum(both + second, TINY)).sum())


def diffusion_ratio(mesh: Mesh, log_ratio: Floats, released: Any) -> float:
    """Log-likelihood ratio of the children on a network, from log density ratios (T,) that are constant on segments."""
    positions = np.concatenate([pattern.positions for pattern in patterns_of(released)])
    return float(log_ratio[mesh.locate(positions)].sum())


@dataclass(frozen=True, eq=False)
class Children:
    """Poisson test of the number of children in a part of the window, one for each input; mean up to `ROUNDING`."""

    plan: KernelStatistic
    pair: Pair
    regions: tuple[Window, Window]

    def __call__(self, side: int, released: Any) -> tuple[float, int]:
        """Test statistic of one run."""
        xy = np.concatenate([pattern.xy for pattern in patterns_of(released)])
        return float(np.count_nonzero(self.regions[side].contains(xy))), 1

    def means(self, factor: float) -> tuple[float, float]:
        """Poisson means for all patterns of a run on either input, with kernels too narrow by the factor.

        Of each kernel, cut to the hull, it is what lies in the part.
        """
        whole, b = hull(self.plan.domain), self.plan.bandwidth / factor
        first, second = (
            self.plan.patterns * float((mass(pattern.xy, region, b) / mass(pattern.xy, whole, b)).sum())
            for pattern, region in zip(self.pair, self.regions, strict=True)
        )
        return first, second

    @cached_property
    def _stated(self) -> tuple[float, float]:
        return self.means(1.0)

    def log_chance(self, total: float, count: int, runs: tuple[int, int]) -> float:
        """Upper bound on the log-probability of a total so large, or so small."""
        # Half a second, for which only audits need wait.
        from scipy.stats import poisson

        mean = float(np.dot(self._stated, runs))
        tails = poisson.logsf(total - 1, mean * (1 + ROUNDING)), poisson.logcdf(total, mean * (1 - ROUNDING))
        return min(0.0, math.log(2) + float(min(tails)))

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether kernels too narrow by a factor are found with probability 0.9, by normal approximation."""
        mean, stated = (float(np.dot(each, runs)) for each in (self.means(factor), self._stated))
        unlucky = mean - math.copysign(LUCK * math.sqrt(mean), mean - stated)
        return (unlucky - stated) * (mean - stated) > 0 and self.log_chance(unlucky, 0, runs) <= log_level


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
        return claim

    def weakened(self, pair: Pair) -> None:
        """None: the law of the likelihood ratio is not known."""

    def noise(self, pair: Pair) -> NoiseOf:
        return released_places

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
        return KernelRatio(self.plan, pair)

    def alike(self, pair: Pair) -> bool:
        """False: kernels differ wherever points do."""
        return False

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Distance moved in bandwidths; not known of other bounds than the superposition's."""
        if not isinstance(claim, PoissonGaussianDP):
            return UNKNOWN
        return _farthest_move(*changed(pair)) / self.plan.bandwidth, claim.ratio

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        # Largest density of the children anywhere, at most.
        plan, region = self.plan, hull(self.plan.domain)
        least = min(float(mass(pattern.xy, region, plan.bandwidth).min()) for pattern in pair)
        densest = plan.n / (2 * math.pi * plan.bandwidth**2 * least)
        return min(0.0, math.log(densest * plan.domain.resolution**2))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Laws of all children, and of those within shares of the bandwidth from the first of the person's places.

        Where that is wider than the window, of a fourth of the window's extent.
        """
        plan, window = self.plan, self.plan.domain
        found = [StatedLaw("number of children", Children(plan, pair, (window, window)))]
        gone, came = changed(pair)
        for name, share in NEAR.items() if len(gone) else ():
            radius = share * min(plan.bandwidth, window.extent / 4)
            disks = (shapely.Point(places[0]).buffer(radius) for places in (gone, came))
            first, second = (Window.polygon(window.geometry.intersection(disk)) for disk in disks)
            found.append(StatedLaw(f"number of children {name} the person", Children(plan, pair, (first, second))))
        return tuple(found)


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
        mesh = self.plan.mesh
        middle = mesh.pieces.corners.mean(axis=1)
        first, second = (diffusion_density(mesh, self.plan.matrix, p.positions, middle) for p in pair)
        return partial(diffusion_ratio, mesh, np.log(np.maximum(first, TINY) / np.maximum(second, TINY)))

    def alike(self, pair: Pair) -> bool:
        """Whether the same numbers of points are on each segment."""
        first, second = (np.sort(self.plan.mesh.locate(places)) for places in changed(pair))
        return bool(np.array_equal(first, second))

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        return UNKNOWN

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        plan = self.plan
        return min(0.0, math.log(2 * plan.n * plan.domain.resolution / plan.mesh.element_measure.min()))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """No laws: the numbers of children on segments are not tested."""
        return ()


def _farthest_move(gone: Floats, came: Floats) -> float:
    """Lower bound on the largest displacement, whichever of the others (k, 2) each point has become."""
    apart = np.hypot(*(gone[:, None] - came).transpose(2, 0, 1))
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max())) if apart.size else 0.0
