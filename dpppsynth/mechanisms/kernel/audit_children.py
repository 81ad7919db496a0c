"""Statistics and laws of the children of kernels: likelihood ratios, and Poisson tests of their numbers."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely

from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed, unchanged
from dpppsynth.contract.audits.noise_tests import LUCK
from dpppsynth.contract.audits.statistics import patterns_of
from dpppsynth.contract.audits.target import StatedLaw
from dpppsynth.mechanisms.kernel.statistic import KernelStatistic
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


@dataclass(frozen=True, eq=False)
class DiffusionRatio:
    """Log-likelihood ratio of the children on a network, from log density ratios (T,) that are constant on segments."""

    mesh: Mesh
    log_ratio: Floats

    def __call__(self, released: Any) -> float:
        """Sum over the children of all patterns."""
        positions = np.concatenate([pattern.positions for pattern in patterns_of(released)])
        return float(self.log_ratio[self.mesh.locate(positions)].sum())


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
        """Logarithm of the probability, at most, of a total so large, or so small."""
        # Half a second, for which only audits need wait.
        from scipy.stats import poisson

        mean = float(np.dot(self._stated, runs))
        tails = poisson.logsf(total - 1, mean * (1 + ROUNDING)), poisson.logcdf(total, mean * (1 - ROUNDING))
        return min(0.0, math.log(2) + float(min(tails)))

    def finds(self, factor: float, runs: tuple[int, int], log_level: float) -> bool:
        """Whether kernels so many times too narrow are found with probability 0.9, by normal approximation."""
        mean, stated = (float(np.dot(each, runs)) for each in (self.means(factor), self._stated))
        unlucky = mean - math.copysign(LUCK * math.sqrt(mean), mean - stated)
        return (unlucky - stated) * (mean - stated) > 0 and self.log_chance(unlucky, 0, runs) <= log_level


def laws_of_children(plan: KernelStatistic, pair: Pair) -> tuple[StatedLaw, ...]:
    """Laws of all children, and of those within shares of the bandwidth from the first of the person's places.

    Where that is wider than the window, of a fourth of the window's extent.
    """
    window = plan.domain
    found = [StatedLaw("number of children", Children(plan, pair, (window, window)))]
    gone, came = changed(pair)
    for name, share in NEAR.items() if len(gone) else ():
        radius = share * min(plan.bandwidth, window.extent / 4)
        disks = (shapely.Point(places[0]).buffer(radius) for places in (gone, came))
        first, second = (Window.polygon(window.geometry.intersection(disk)) for disk in disks)
        found.append(StatedLaw(f"number of children {name} the person", Children(plan, pair, (first, second))))
    return tuple(found)
