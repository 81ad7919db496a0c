"""Metrics of a utility report: one pattern scored against the original, and two reference values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.distances import (
    Density,
    integral,
    misplaced_share,
    quadrature,
    quadrature_cell,
    values,
)
from dpppsynth.evaluation.envelopes import Envelope, envelope
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.scores import mean_integrated_squared_error, propensity_mse
from dpppsynth.evaluation.smoothing import KernelIntensity, kernel_intensity
from dpppsynth.evaluation.transport import wasserstein
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import PiecewiseConstant, mass_distance
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern
from dpppsynth.spatial.second_order import KFunction, frozen

# Largest patterns whose K-function is made of all their points.
LARGEST_IN_PLANE, LARGEST_ON_NETWORK = 20_000, 2_000
# Most pairs of points between which a report moves mass exactly: about a tenth of a second each.
EXACT_PAIRS = 1_000_000


@dataclass(frozen=True)
class Metric:
    """A row of a report: its name, what it is counted in, and which values are good."""

    name: str
    unit: str
    better: str = "lower"


# A unit of "length" stands for that of the domain.
METRICS = (
    Metric("points", "points", "as the original"),
    Metric("K, MISE", "length"),
    Metric("L, largest difference", "length"),
    Metric("misplaced share", "share"),
    Metric("total variation", "share"),
    Metric("pMSE", "squared probability"),
    Metric("pMSE, balanced", "squared probability"),
    Metric("Wasserstein", "length"),
)


@dataclass(frozen=True, eq=False, repr=False)
class KComparison:
    """K-functions of the original and of synthetic patterns, at the same distances; as confidential as the original."""

    original: KFunction
    synthetic: tuple[KFunction, ...]

    @cached_property
    def envelope(self) -> Envelope | None:
        """Pointwise envelope of the synthetic patterns' L-functions, from the lowest to the highest; None of one."""
        return envelope(self.original, self.synthetic) if len(self.synthetic) > 1 else None


@dataclass(frozen=True, eq=False, repr=False)
class KnownIntensity:
    """An intensity at the only coordinates where it will be asked for: its values (n,) there, and its integral."""

    at: Floats
    total: float

    def __call__(self, _: Floats) -> Floats:
        """(n,) values, without looking where: scores of one pattern ask at the same pooled points."""
        return self.at


@dataclass(frozen=True, eq=False, repr=False)
class Scored:
    """One pattern's K-function, and its values of `METRICS`; not a number where it has no points to compare."""

    k: KFunction
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The original, and the public settings by which patterns are compared with it."""

    original: PointPattern
    r: Floats
    side: float
    bandwidth: float
    transport: str
    rng: np.random.Generator

    @cached_property
    def k(self) -> KFunction:
        """K-function of the original."""
        return k_function(self.original.part(kept_for_k(self.original, self.rng)), self.r)

    @cached_property
    def intensity(self) -> KernelIntensity | None:
        """Kernel intensity of the original; None on a network that heat flow cannot serve, whatever the points."""
        found = kernel_intensity(self.original, self.bandwidth)
        if isinstance(self.original.domain, LinearNetwork):
            try:
                found(self.original.xy[:1])
            except InputError:
                return None
        return found

    @cached_property
    def _mass(self) -> Floats:
        """(m,) mass of the original's intensity at the nodes of a fine quadrature: every pattern is set against it."""
        return self._masses(self.intensity)

    @cached_property
    def _own(self) -> Floats:
        """(n,) the original's intensity at its own points."""
        return np.empty(0) if self.intensity is None else self.intensity(self.original.xy)

    def score(self, pattern: PointPattern, released: Density | None = None) -> Scored:
        """Score one pattern; `released` is the intensity it was drawn from, where there is one."""
        kept = pattern.part(kept_for_k(pattern, self.rng), synthetic=True)
        return self._scored(pattern, self._k(kept), released)

    def uniform(self) -> Scored:
        """Score a homogeneous Poisson pattern of the same mean, the reference without data."""
        return self.score(self.uniform_pattern())

    def uniform_pattern(self) -> PointPattern:
        """A homogeneous Poisson pattern of the same mean."""
        domain = self.original.domain
        mesh = _coarse_mesh(domain)
        level = np.full(len(mesh.elements), len(self.original) / domain.size)
        return poisson_pattern(PiecewiseConstant(mesh, level), self.rng)

    def resampled(self) -> Scored:
        """Score a bootstrap sample of the original's points, the reference for sampling variation.

        Pairs of copies of one point are taken out of K. They stand for no two points, and would hide small distances.
        """
        domain, n = self.original.domain, len(self.original)
        source = self.rng.integers(n, size=n)
        pattern = PointPattern.at(self.original.positions[source], domain)
        kept = np.flatnonzero(kept_for_k(pattern, self.rng))
        k = self._k(PointPattern.at(pattern.positions[kept], domain))
        return self._scored(pattern, without_copies(k, source[kept], domain), None)

    def _k(self, pattern: PointPattern) -> KFunction:
        """K of a pattern; without pairs of points it is zero."""
        return k_function(pattern, self.r) if len(pattern) > 1 else replace(self.k, k=frozen(np.zeros(len(self.r))))

    def _scored(self, pattern: PointPattern, k: KFunction, released: Density | None) -> Scored:
        # An original without pairs that near has no K to err from.
        near = np.count_nonzero(self.k.k) > 1
        error = mean_integrated_squared_error(self.k, k) if near else math.nan
        second_order = error, float(np.abs(k.l - self.k.l).max())
        # Without points there are no shares of them.
        first_order = self._first_order(pattern, released) if len(pattern) else (math.nan,) * 5
        return Scored(k, (float(len(pattern)), *second_order, *first_order))

    def _first_order(self, pattern: PointPattern, released: Density | None) -> tuple[float, ...]:
        return (
            misplaced_share(self.original, pattern, self.side),
            *self._of_intensities(pattern, released),
            wasserstein(self.original, pattern, self.transport),
        )

    def _of_intensities(self, pattern: PointPattern, released: Density | None) -> tuple[float, float, float]:
        if self.intensity is None:
            return (math.nan,) * 3
        surface = kernel_intensity(pattern, self.bandwidth)
        ours = KnownIntensity(np.concatenate([self._own, self.intensity(pattern.xy)]), self.intensity.total)
        theirs = self._pooled(pattern, surface if released is None else released)
        return (
            mass_distance(self._mass, self._masses(surface)),
            propensity_mse(self.original, pattern, ours, theirs),
            propensity_mse(self.original, pattern, ours, theirs, balanced=True),
        )

    def _pooled(self, pattern: PointPattern, intensity: Density) -> KnownIntensity:
        """The synthetic intensity at the points of the original, then at those of the pattern."""
        domain, name = self.original.domain, "synthetic_intensity"
        at = values(intensity, np.concatenate([self.original.xy, pattern.xy]), name, domain)
        return KnownIntensity(at, integral(intensity, domain, name))

    def _masses(self, intensity: Any) -> Floats:
        xy, weight = quadrature(self.original.domain)
        return np.asarray(intensity(xy) * weight)


def without_copies(k: KFunction, source: npt.NDArray[np.int64], domain: Domain) -> KFunction:
    """K of points that are copies of others, told by their sources (n,), without pairs of copies of one point."""
    copies = np.unique(source, return_counts=True)[1]
    pairs = (copies * (copies - 1)).sum() / (len(source) * (len(source) - 1))
    return replace(k, k=frozen(np.maximum(k.k - pairs * domain.size, 0.0)))


def least_bandwidth(domain: Domain) -> float:
    """Smallest kernel bandwidth: a cell of the quadrature, between whose nodes far narrower kernels fall."""
    return quadrature_cell(domain)


def transport_method(original: PointPattern, patterns: Sequence[PointPattern]) -> str:
    """One method of `wasserstein` for all patterns: sliced distances must not stand beside exact ones."""
    pairs = len(original) * max(len(original), *map(len, patterns))
    return "sliced" if pairs > EXACT_PAIRS and not isinstance(original.domain, LinearNetwork) else "exact"


def thins(pattern: PointPattern) -> bool:
    """Whether K is made of a random part of the points, which leaves its expectation as it is."""
    return len(pattern) > _largest(pattern.domain)


def kept_for_k(pattern: PointPattern, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """(n,) a random choice of as many points as a K-function may be made of."""
    chosen = np.full(len(pattern), not thins(pattern))
    if thins(pattern):
        chosen[rng.choice(len(pattern), _largest(pattern.domain), replace=False)] = True
    return chosen


def _largest(domain: Domain) -> int:
    return LARGEST_ON_NETWORK if isinstance(domain, LinearNetwork) else LARGEST_IN_PLANE


def _coarse_mesh(domain: Domain) -> Mesh:
    if isinstance(domain, LinearNetwork):
        return network_mesh(domain, domain.diameter)
    window: Any = domain
    return regular_triangulation(window, shape=(2, 2))
