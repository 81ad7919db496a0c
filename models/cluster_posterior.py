"""Posterior of the law of clusters given noised sums over pairs, by simulation of the very same sums.

Laws stand on a grid. Sums are simulated for some of them, drawn from the prior and then from the posterior so far; the
logarithms of the others' are a quadratic function of expected numbers of neighbours, fitted to the simulated ones, and
what is left over tells how sums vary from pattern to pattern. The law without clusters has simulations of its own.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from dpppsynth.core.progress import Progress, each_of, silent
from dpppsynth.core.workers import in_threads
from dpppsynth.models.cluster_process import NO_CLUSTERS, ClusterLaw
from dpppsynth.spatial.mesh import Floats, Ints

# Prior probability of no clusters; and where places may be shared, of spread clusters alone and of shared places alone.
EMPTY, SPREAD_ALONE, SHARED_ALONE = 0.8, 0.1, 0.04
# Mean numbers of places about a parent: log-normal about the typical one, with this deviation of logarithms.
SIZES, TYPICAL_SIZE, SIZE_SD = np.geomspace(0.5, 50.0, 14), 6.0, 1.0
# Spreads between shares of the smallest and the largest radius, even in logarithms; shares of coincident points.
NARROWEST, WIDEST, SPREADS = 0.25, 1.0, 12
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# Simulations without clusters, and with them in each of the rounds, up to so many points; of more points fewer.
PLAIN, EACH, ROUNDS, MANY = 16, 48, 2, 2_500
FEWEST_PLAIN, FEWEST = 8, 24
# Simulations of a round for each number that is fitted to them, at least.
TO_EACH = 1.5
# Relative error that the average of the simulations without clusters may have.
SLACK = 0.02
# Simulations at a time: each holds a pattern's pairs.
THREADS = 4
# Normal laws whose mixture stands for Laplace noise.
MIXED = 5
# Mean of the logarithm of a squared standard normal number.
LOG_SQUARE = -1.2704
# Least sum of which a logarithm is taken, and bounds of logarithms of relative variances.
LEAST_SUM, LOG_VARIANCES = 0.5, (-12.0, 2.0)
# Sums (L,) of one pattern with a law of clusters.
Simulate = Callable[[ClusterLaw, np.random.Generator], Floats]


@dataclass(frozen=True)
class ClusterPrior:
    """Prior on a grid of laws, by public radii alone.

    Attributes
    ----------
    radii : tuple of float
        Increasing.
    streets : bool
        Whether distances are along streets.
    shared : bool
        Whether several points may lie at one place. Sums over pairs hardly tell shared places from tight clusters.
    """

    radii: tuple[float, ...]
    streets: bool
    shared: bool = False

    @property
    def spreads(self) -> Floats:
        """(12,) spreads of the laws, increasing."""
        return np.asarray(np.geomspace(NARROWEST * self.radii[0], WIDEST * self.radii[-1], SPREADS))

    @cached_property
    def table(self) -> Floats:
        """(M, 4) sizes, spreads, coincident shares and prior probabilities; the first law has no clusters."""
        spreads = self.spreads
        sizes = np.exp(-0.5 * (np.log(SIZES / TYPICAL_SIZE) / SIZE_SD) ** 2)
        apart, shared = (SPREAD_ALONE, SHARED_ALONE) if self.shared else (1 - EMPTY, 0.0)
        both, shares = 1 - EMPTY - apart - shared, SHARES if self.shared else ()
        laws = [(NO_CLUSTERS.size, NO_CLUSTERS.spread, 0.0, EMPTY)]
        laws += [(0.0, NO_CLUSTERS.spread, share, shared / len(shares)) for share in shares]
        for (size, chance), spread in itertools.product(zip(SIZES, sizes / sizes.sum(), strict=True), spreads):
            laws.append((size, spread, 0.0, apart * chance / SPREADS))
            laws += [(size, spread, share, both * chance / SPREADS / len(shares)) for share in shares]
        # Few digits, so that machines whose logarithms differ in the last have one table.
        return np.array([[float(f"{value:.6g}") for value in law[:3]] + [law[3]] for law in laws])

    def law(self, k: int) -> ClusterLaw:
        """The k-th law."""
        return ClusterLaw(*map(float, self.table[k, :3]))

    @cached_property
    def neighbours(self) -> Floats:
        """(M, L) expected sums of `1 - distance / radius` over the others in a point's cluster."""
        size, spread, share = self.table[:, :3].T
        near = self._near(np.array(self.radii) / (2 * spread[:, None]))
        return np.asarray((size / (1 - share))[:, None] * near + (2 * share / (1 - share))[:, None])

    def _near(self, u: Floats) -> Floats:
        """Mean of `(1 - D / r)^+` for the distance D of two places of a cluster, by `u = r / (2 spread)`."""
        if self.streets:
            return np.asarray(scipy.special.erf(u) + np.expm1(-(u**2)) / (u * np.sqrt(np.pi)))
        return np.asarray(1 - np.sqrt(np.pi) / (2 * u) * scipy.special.erf(u))


@dataclass(frozen=True, eq=False)
class ClusterPosterior:
    """Posterior probabilities of the laws of a grid.

    Attributes
    ----------
    prior : ClusterPrior
    probabilities : (M,) array
    """

    prior: ClusterPrior
    probabilities: Floats

    def __repr__(self) -> str:
        return f"ClusterPosterior(no clusters: {self.none:.2f}, else {self.average})"

    @property
    def none(self) -> float:
        """Probability that there are no clusters."""
        return float(self.probabilities[0])

    @property
    def likely(self) -> bool:
        """Whether clusters are more likely than none."""
        return self.none < 0.5

    @property
    def average(self) -> ClusterLaw:
        """Means of size, spread (of those laws that have one) and coincident share, where there are clusters."""
        size, spread, share = self.prior.table[1:, :3].T
        weight = self._given_clusters
        spread_weight = weight * (size > 0)
        mean = float(spread_weight @ spread / spread_weight.sum()) if spread_weight.any() else NO_CLUSTERS.spread
        return ClusterLaw(float(weight @ size), mean, float(weight @ share))

    @property
    def _given_clusters(self) -> Floats:
        weight = self.probabilities[1:]
        total = weight.sum()
        return np.asarray(weight / total if total else self.prior.table[1:, 3] / self.prior.table[1:, 3].sum())

    @classmethod
    def empty(cls, prior: ClusterPrior) -> Self:
        """Posterior with certainty that there are no clusters."""
        probabilities = np.zeros(len(prior.table))
        probabilities[0] = 1.0
        return cls(prior, probabilities)

    def draw(self, rng: np.random.Generator) -> ClusterLaw:
        """One law of the posterior, clusters or none."""
        return self.prior.law(int(rng.choice(len(self.probabilities), p=self.probabilities / self.probabilities.sum())))

    @property
    def central(self) -> ClusterLaw:
        """Central law: no clusters unless likely, else means of logarithms, with coincident points where likely.

        One law for all patterns lies nearer to the original's than each draw does.
        """
        if not self.likely:
            return NO_CLUSTERS
        weight, (size, spread, share) = self._given_clusters, self.prior.table[1:, :3].T
        weight = weight * ((share > 0) == (weight[share > 0].sum() > 0.5))
        wide = weight * (size > 0)
        mean_share = float(weight @ share / weight.sum())
        if not wide.sum() > 0.5 * weight.sum():
            return ClusterLaw(0.0, NO_CLUSTERS.spread, mean_share)
        logs = np.log(np.column_stack([size, spread])[size > 0])
        middle = np.exp(wide[size > 0] @ logs / wide.sum())
        return ClusterLaw(float(middle[0]), float(middle[1]), mean_share)

    @classmethod
    def inferred(
        cls,
        prior: ClusterPrior,
        simulate: Simulate,
        observed: Floats,
        scales: Sequence[float],
        n: float,
        rng: np.random.Generator,
        say: Progress = silent,
    ) -> Self:
        """The posterior given noised sums.

        Parameters
        ----------
        prior : ClusterPrior
        simulate : callable
            From a law and a generator to the sums (L,) of one pattern, before noise; called by several threads at once.
        observed : (L,) array
        scales : sequence of float
            Of their Laplace noise.
        n : float
            Number of points, about.
        rng : Generator
        say : callable
            Told how far it is.
        """

        def simulated(laws: Iterable[ClusterLaw]) -> Floats:
            tasks = [(law, np.random.default_rng(rng.integers(2**63))) for law in laws]
            return np.array(in_threads(lambda task: simulate(*task), tasks, most=THREADS))

        share = min(1.0, MANY / n)
        say("simulating patterns without clusters")
        plain = simulated([NO_CLUSTERS] * max(FEWEST_PLAIN, round(PLAIN * share)))
        tried, found = np.empty(0, dtype=np.int64), np.empty((0, len(observed)))
        probabilities = prior.table[:, 3]
        fitted = _quadratic(prior.neighbours, prior.table[:, 2]).shape[1]
        runs = max(FEWEST, round(EACH * share), int(np.ceil(TO_EACH * fitted)))
        for _ in each_of(say, "simulating clusters", range(ROUNDS)):
            new = _through(probabilities, runs, rng)
            tried = np.concatenate([tried, new])
            found = np.concatenate([found, simulated(prior.law(int(k)) for k in new)])
            likelihood = PairLaws.fitted(prior, n, plain, tried, found).log_likelihood(observed, scales)
            weight = prior.table[:, 3] * np.exp(likelihood - likelihood.max())
            probabilities = weight / weight.sum()
        return cls(prior, probabilities)


def _through(probabilities: Floats, count: int, rng: np.random.Generator) -> Ints:
    """(count,) laws with clusters, spread evenly through their probabilities."""
    # A little of the prior's breadth, where all weight is on a few laws or on none.
    ends = np.cumsum(probabilities[1:] + 1e-3 / len(probabilities))
    at = (np.arange(count) + rng.random(count)) / count * ends[-1]
    return 1 + np.minimum(np.searchsorted(ends, at), len(ends) - 1)


@dataclass(frozen=True, eq=False)
class PairLaws:
    """Means (M, L) and covariances (M, L, L) of the sums under each law of clusters."""

    mean: Floats
    covariance: Floats

    @classmethod
    def fitted(cls, prior: ClusterPrior, n: float, plain: Floats, tried: Ints, found: Floats) -> "PairLaws":
        """Laws fitted to simulated sums: (P, L) without clusters, and (K, L) under the laws `tried` (K,)."""
        # Where caps bind nobody, the mean is the sum of both terms times half the number of points.
        terms = np.log(np.maximum(2 * plain.mean(axis=0) / n, 1e-3) + prior.neighbours)
        columns = _quadratic(terms, prior.table[:, 2])
        logs = np.log(np.maximum(found, LEAST_SUM))
        slopes = np.linalg.lstsq(columns[tried], logs, rcond=None)[0]
        left = logs - columns[tried] @ slopes
        variance = _variances(prior, terms, tried, left) * len(tried) / max(1, len(tried) - columns.shape[1])
        mean = np.exp(columns @ slopes + variance / 2)
        sd = mean * np.sqrt(np.expm1(variance))
        covariance = sd[:, :, None] * sd[:, None, :] * _correlation(left / np.sqrt(variance[tried]))
        mean[0] = plain.mean(axis=0)
        covariance[0] = np.cov(plain.T).reshape(2 * mean.shape[1:]) + np.diag((SLACK * mean[0]) ** 2)
        return cls(mean, covariance)

    def log_likelihood(self, observed: Floats, scales: Sequence[float]) -> Floats:
        """(M,) log-likelihoods of noised sums (L,), with Laplace noise as a mixture of normal noise."""
        from numpy.polynomial.laguerre import laggauss

        nodes, weights = laggauss(MIXED)
        total = np.full(len(self.mean), -np.inf)
        away = (observed - self.mean)[:, :, None]
        for picked in itertools.product(range(MIXED), repeat=len(scales)):
            noise = np.diag(2 * np.square(scales) * nodes[list(picked)])
            covariance = self.covariance + noise
            square = (away * np.linalg.solve(covariance, away)).sum(axis=(1, 2))
            log = -0.5 * (square + np.linalg.slogdet(covariance)[1]) + np.log(weights[list(picked)]).sum()
            total = np.logaddexp(total, log)
        return np.asarray(total)


def _quadratic(terms: Floats, share: Floats) -> Floats:
    """(M, c) columns of a regression on terms (M, L), their products, and coincident shares (M,)."""
    levels = range(terms.shape[1])
    products = [terms[:, i] * terms[:, j] for i, j in itertools.combinations_with_replacement(levels, 2)]
    found = [np.ones(len(terms)), terms, *products]
    return np.column_stack([*found, share] if share.any() else found)


def _variances(prior: ClusterPrior, terms: Floats, tried: Ints, left: Floats) -> Floats:
    """(M, L) variances of logarithms, of residuals (K, L): themselves log-linear in law and number of neighbours."""
    size, _, share = prior.table[:, :3].T
    found = [np.ones(len(terms)), np.log1p(size), terms.mean(axis=1)]
    columns = np.column_stack([*found, share] if share.any() else found)
    slopes = np.linalg.lstsq(columns[tried], np.log(left**2 + np.exp(LOG_VARIANCES[0])), rcond=None)[0]
    return np.asarray(np.exp(np.clip(columns @ slopes - LOG_SQUARE, *LOG_VARIANCES)))


def _correlation(left: Floats) -> Floats:
    """(L, L) correlations of residuals (K, L), a little less than found so that they can be inverted."""
    levels = left.shape[1]
    found = np.corrcoef(left.T).reshape(levels, levels) if levels > 1 else np.eye(1)
    return np.asarray(0.99 * found + 0.01 * np.eye(levels))
