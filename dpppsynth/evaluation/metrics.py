"""Scores of the literature, and those of a utility report: one pattern against the original, with reference values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.evaluation.distances import (
    Density,
    common_domain,
    integral,
    misplaced_share,
    quadrature,
    values,
    wasserstein,
)
from dpppsynth.evaluation.envelopes import common_distances, envelope, listed_curves
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.simulated_patterns import homogeneous
from dpppsynth.evaluation.smoothing import KernelIntensity, kernel_intensity
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern
from dpppsynth.spatial.second_order import Envelope, KFunction, frozen


def propensity_mse(
    original: PointPattern,
    synthetic: PointPattern,
    original_intensity: Density,
    synthetic_intensity: Density,
    *,
    balanced: bool = False,
) -> float:
    """Propensity mean squared error (pMSE): how well the intensities tell synthetic points from original ones.

    With `f` and `f'` the intensities of the n original and the m synthetic points, each divided by its integral, a
    point x of the n + m pooled ones has the propensity `p(x) = f'(x) / (f(x) + f'(x))`, and
    `pMSE = mean (p - m / (n + m))^2`. Small is good.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same domain, at least one point each.
    original_intensity, synthetic_intensity : callable
        Non-negative functions of coordinates (n, 2). Their integral over the domain is their own `total` where they
        have one, and found as in `total_variation` otherwise.
    balanced : bool
        Weight the intensities by the numbers of points: `p = m f' / (n f + m f')`. Unlike the printed form, which only
        does for n = m, that scores 0 for a synthesizer whose intensity is proportional to the original's. At most 1.

    Returns
    -------
    float
        A point at which both intensities vanish counts as one at which they agree.

    Raises
    ------
    InputError
        The domains differ, a pattern is empty, or an intensity is negative, infinite or zero everywhere.

    References
    ----------
    Snoke, Raab, Nowok, Dibben and Slavkovic (2018), General and specific utility measures for synthetic data, Journal
    of the Royal Statistical Society A 181, 663-688; the form of the propensities is Kim and Lim's.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1, 1)
    >>> ours, theirs = PointPattern([[0.5, 0.5]], window), PointPattern([[0.1, 0.5], [0.2, 0.5], [0.9, 0.5]], window)
    >>> flat = lambda xy: np.ones(len(xy))
    >>> propensity_mse(ours, theirs, flat, flat), propensity_mse(ours, theirs, flat, flat, balanced=True)
    (0.0625, 0.0)
    """
    flag("balanced", balanced)
    domain = common_domain(original, synthetic, ("original", "synthetic"))
    if not len(original) or not len(synthetic):
        msg = "original, synthetic: propensities compare points of both; leave empty patterns out."
        raise InputError(msg)
    n, m = len(original), len(synthetic)
    pooled = np.concatenate([original.xy, synthetic.xy])
    ours, theirs = (
        values(intensity, pooled, name, domain) / integral(intensity, domain, name)
        for intensity, name in (
            (original_intensity, "original_intensity"),
            (synthetic_intensity, "synthetic_intensity"),
        )
    )
    return _propensity_error(ours, theirs, n, m, balanced=balanced)


def _propensity_error(ours: Floats, theirs: Floats, n: int, m: int, *, balanced: bool) -> float:
    """The same from normalised intensities (n + m,) at the pooled points."""
    vanish = (ours == 0) & (theirs == 0)
    ours, theirs = np.where(vanish, 1.0, ours), np.where(vanish, 1.0, theirs)
    if balanced:
        ours, theirs = n * ours, m * theirs
    return float(np.mean((theirs / (ours + theirs) - m / (n + m)) ** 2))


def mean_integrated_squared_error(
    originals: KFunction | Sequence[KFunction], synthetics: KFunction | Sequence[KFunction]
) -> float:
    """Mean integrated squared error (MISE) of the K-functions of synthetic patterns, relative to the originals'.

    The mean over all pairs of an original and a synthetic pattern of the integral of `(K_syn(r) / K_ori(r) - 1)^2` over
    the distances r at which `K_ori(r) > 0`, by the trapezoidal rule between neighbouring r at which that holds.

    Parameters
    ----------
    originals, synthetics : KFunction, or sequence of them
        On the same distances r and estimated in the same way, all in windows or all on networks.

    Returns
    -------
    float
        In the domain's unit of length. It grows with the range of r, and is ruled by the smallest r at which K_ori is
        positive: compare only what was computed on the same r.

    Raises
    ------
    InputError
        The distances or the kind of estimate differ, a sequence is empty, or an original K is positive nowhere.

    Examples
    --------
    >>> r = np.array([0.0, 1.0, 3.0])
    >>> ours = KFunction(r, np.array([0.0, 1.0, 2.0]), "ang", False, True)
    >>> mean_integrated_squared_error(ours, KFunction(r, np.array([0.0, 2.0, 4.0]), "ang", False, True))
    2.0
    """
    ours, theirs = (
        listed_curves([each] if isinstance(each, KFunction) else each, name, KFunction)
        for each, name in ((originals, "originals"), (synthetics, "synthetics"))
    )
    r = common_distances([*ours, *theirs], "originals, synthetics")
    synthetic = np.stack([each.k for each in theirs])
    return float(np.mean([_integrated(r, each.k, synthetic) for each in ours]))


def _integrated(r: Floats, original: Floats, synthetic: Floats) -> float:
    """Mean over rows of synthetic K (s, b) of the integrated squared relative error."""
    known = original > 0
    panel = np.where(known[:-1] & known[1:], np.diff(r), 0.0)
    if not panel.any():
        msg = "originals: K is zero at all but one of the distances r, so that nothing compares with it; add larger r."
        raise InputError(msg)
    squared = (synthetic / np.where(known, original, 1.0) - 1) ** 2
    return float(((squared[:, :-1] + squared[:, 1:]) / 2 @ panel).mean())


if TYPE_CHECKING:
    import pandas as pd

# Largest patterns that are compared with all their points. Others have a random part in all metrics but the number of
# points, the misplaced share and, on networks, kernel intensities.
LARGEST_IN_PLANE, LARGEST_ON_NETWORK = 20_000, 2_000
# Points of both patterns at which propensities are averaged, at most: each costs as much as there are points.
MOST_PROPENSITIES = 6_000
# Most pairs of points between which a report moves mass exactly: about a tenth of a second each.
EXACT_PAIRS = 1_000_000


@dataclass(frozen=True)
class Metric:
    """A row of a report: its name, its unit, and which values are good."""

    name: str
    unit: str
    better: str = "lower"


def averages(original: Any, values: Mapping[str, Floats], metrics: Sequence[Metric]) -> pd.DataFrame:
    """Average of the values (m, rows) of metrics over patterns, and the deviation of the synthetic ones'."""
    columns: dict[str, Any] = {"original": original}
    for name, each in values.items():
        columns[name] = known(each, np.mean, 1)
        if name == "synthetic":
            columns["sd"] = known(each, lambda column: np.std(column, ddof=1), 2)
    return metric_table(columns, metrics)


def known(values: Floats, statistic: Callable[[Floats], Any], least: int) -> Floats:
    """(rows,) statistic of each column's numbers; not a number where there are fewer than `least` of them."""
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([float(statistic(each)) if len(each) >= least else math.nan for each in columns])


def metric_table(columns: Mapping[str, Any], metrics: Sequence[Metric]) -> pd.DataFrame:
    """One row per metric: columns of numbers, then unit and better."""
    import pandas as pd

    words = {"unit": [each.unit for each in metrics], "better": [each.better for each in metrics]}
    return pd.DataFrame({**columns, **words}, index=pd.Index([each.name for each in metrics], name="metric"))


# Share of the largest distance from which L-functions are compared: below, points at one place decide.
LEAST_SHARE = 0.1

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
        """Pointwise envelope of the synthetic patterns' L-functions, lowest to highest; None for a single pattern."""
        return envelope(self.original, self.synthetic) if len(self.synthetic) > 1 else None


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
    def part(self) -> PointPattern:
        """The original, or the random part of a large one that is compared."""
        return self.original.part(kept_part(self.original, self.rng))

    @cached_property
    def k(self) -> KFunction:
        """K-function of the original."""
        return k_function(self.part, self.r)

    @cached_property
    def intensity(self) -> KernelIntensity | None:
        """Kernel intensity of the original; None on networks too large for heat flow, whatever the points."""
        found = kernel_intensity(self._smoothed(self.original, self.part), self.bandwidth)
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

    def score(self, pattern: PointPattern, released: Density | None = None) -> Scored:
        """Score one pattern; `released` is the intensity it was drawn from, where there is one."""
        kept = pattern.part(kept_part(pattern, self.rng), synthetic=True)
        return self._scored(pattern, kept, self._k(kept), released)

    def uniform(self) -> Scored:
        """Score a homogeneous Poisson pattern of the same mean, the reference without data."""
        return self.score(self.uniform_pattern())

    def uniform_pattern(self) -> PointPattern:
        """A homogeneous Poisson pattern of the same mean."""
        domain = self.original.domain
        return poisson_pattern(homogeneous(domain, len(self.original) / domain.size), self.rng)

    def resampled(self) -> Scored:
        """Score a bootstrap sample of the original's points, the reference for sampling variation.

        Pairs of copies of one point are taken out of K. They stand for no two points, and would hide small distances.
        """
        domain, n = self.original.domain, len(self.original)
        source = self.rng.integers(n, size=n)
        pattern = PointPattern.at(self.original.positions[source], domain)
        kept = np.flatnonzero(kept_part(pattern, self.rng))
        part = PointPattern.at(pattern.positions[kept], domain)
        return self._scored(pattern, part, without_copies(self._k(part), source[kept], domain), None)

    def _k(self, pattern: PointPattern) -> KFunction:
        """K of a pattern; without pairs of points it is zero."""
        return k_function(pattern, self.r) if len(pattern) > 1 else replace(self.k, k=frozen(np.zeros(len(self.r))))

    def _scored(self, pattern: PointPattern, part: PointPattern, k: KFunction, released: Density | None) -> Scored:
        # An original without pairs that near has no K to err from.
        near = np.count_nonzero(self.k.k) > 1
        error = mean_integrated_squared_error(self.k, k) if near else math.nan
        second_order = error, float(np.abs(k.l - self.k.l)[self.r >= LEAST_SHARE * self.r[-1]].max())
        # Without points there are no shares of them.
        first_order = self._first_order(pattern, part, released) if len(pattern) else (math.nan,) * 5
        return Scored(k, (float(len(pattern)), *second_order, *first_order))

    def _first_order(self, pattern: PointPattern, part: PointPattern, released: Density | None) -> tuple[float, ...]:
        surface = None if self.intensity is None else kernel_intensity(self._smoothed(pattern, part), self.bandwidth)
        return (
            misplaced_share(self.original, pattern, self.side),
            math.nan if surface is None else mass_distance(self._mass, self._masses(surface)),
            *self._propensities(pattern, surface if released is None else released),
            wasserstein(self.part, part, self.transport),
        )

    def _smoothed(self, pattern: PointPattern, part: PointPattern) -> PointPattern:
        """The points whose kernels are added up: along streets heat flows from any number at once."""
        return pattern if isinstance(pattern.domain, LinearNetwork) else part

    def _propensities(self, pattern: PointPattern, surface: Density | None) -> tuple[float, float]:
        """Propensity scores as printed and balanced; at a random part of many points, of both in proportion."""
        if self.intensity is None or surface is None:
            return math.nan, math.nan
        share = propensity_share(self.original, pattern)
        original, synthetic = (self._share(each, share) for each in (self.original, pattern))
        at = np.concatenate([original.xy, synthetic.xy])
        domain, name = self.original.domain, "synthetic_intensity"
        ours = self.intensity(at) / integral(self.intensity, domain, "original_intensity")
        theirs = values(surface, at, name, domain) / integral(surface, domain, name)
        sizes = len(original), len(synthetic)
        printed, balanced = (_propensity_error(ours, theirs, *sizes, balanced=each) for each in (False, True))
        return printed, balanced

    def _share(self, pattern: PointPattern, share: float) -> PointPattern:
        """A random part of a pattern, at least one point; the pattern itself where the share is all."""
        if share == 1:
            return pattern
        size = max(1, round(share * len(pattern)))
        return PointPattern.at(pattern.positions[self.rng.choice(len(pattern), size, replace=False)], pattern.domain)

    def _masses(self, intensity: Any) -> Floats:
        xy, weight = quadrature(self.original.domain)
        return np.asarray(intensity(xy) * weight)


def without_copies(k: KFunction, source: npt.NDArray[np.int64], domain: Domain) -> KFunction:
    """K of points copied from others, their sources (n,), without pairs of copies of one point."""
    copies = np.unique(source, return_counts=True)[1]
    pairs = (copies * (copies - 1)).sum() / (len(source) * (len(source) - 1))
    return replace(k, k=frozen(np.maximum(k.k - pairs * domain.size, 0.0)))


def transport_method(original: PointPattern, patterns: Sequence[PointPattern]) -> str:
    """One method of `wasserstein` for all patterns, since sliced and exact distances are not comparable."""
    largest = _largest(original.domain)
    sizes = [min(len(each), largest) for each in (original, *patterns)]
    pairs = sizes[0] * max(sizes)
    return "sliced" if pairs > EXACT_PAIRS and not isinstance(original.domain, LinearNetwork) else "exact"


def thins(pattern: PointPattern) -> bool:
    """Whether a random subset of the points is compared."""
    return len(pattern) > _largest(pattern.domain)


def propensity_share(original: PointPattern, pattern: PointPattern) -> float:
    """Share of the points at which propensities are averaged."""
    return min(1.0, MOST_PROPENSITIES / (len(original) + len(pattern)))


def kept_part(pattern: PointPattern, rng: np.random.Generator, most: int | None = None) -> npt.NDArray[np.bool_]:
    """(n,) mask of a random choice of `most` points, by default as many as a report compares."""
    most = _largest(pattern.domain) if most is None else most
    chosen = np.full(len(pattern), len(pattern) <= most)
    if len(pattern) > most:
        chosen[rng.choice(len(pattern), most, replace=False)] = True
    return chosen


def _largest(domain: Domain) -> int:
    return LARGEST_ON_NETWORK if isinstance(domain, LinearNetwork) else LARGEST_IN_PLANE
