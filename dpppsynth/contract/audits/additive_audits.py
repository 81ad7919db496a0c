"""Audits of counts, masses and pair sums with added noise, shared by all families."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import AdditiveStatistic, LaplaceMasses, LaplaceStatistic
from dpppsynth.contract.audits.hard_pairs import (
    SEED,
    Ends,
    differences,
    hardest,
    scales,
    worst_case_move,
    worst_location,
)
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed
from dpppsynth.contract.audits.noise_laws import (
    MOST_SHIFTS,
    AsStated,
    DiscreteLaplace,
    NoiseOf,
    StatedNoise,
    added,
    less_laplace,
    log_laplace,
    stated_laws,
)
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import coarse_sums, laplace_ratio, one_by_one, weighted
from dpppsynth.contract.audits.target import AuditStatistic, Released, StatedLaw, Weakened
from dpppsynth.contract.pairs_statistic import PairsStatistic
from dpppsynth.contract.statistic import capped
from dpppsynth.core.arguments import instance
from dpppsynth.privacy.profiles import Profile, PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints


@dataclass(frozen=True, eq=False)
class NoisedNumbersAudit(StatisticAudit):
    """Base of audits of exact numbers with independent symmetric noise on each."""

    symmetric: ClassVar[bool] = True

    def exact(self, pair: Pair) -> tuple[Ints, Ints]:
        """(V,), (V,) numbers of both patterns without noise."""
        first, second = (self.plan.exact_numbers(pattern) for pattern in pair)
        return first, second

    def alike(self, pair: Pair) -> bool:
        first, second = self.exact(pair)
        return bool((first == second).all())

    def noise(self, pair: Pair) -> NoiseOf:
        return partial(added, self.exact(pair))

    @property
    def numbers(self) -> int:
        return self.plan.size


@dataclass(frozen=True, eq=False)
class AdditiveNoiseAudit(NoisedNumbersAudit):
    """Base of audits of a statistic whose numbers add up over the points."""

    plan: AdditiveStatistic

    @property
    def law(self) -> StatedNoise:
        """The stated law of the noise of each number."""
        self._unknown("the law of its noise", "law")

    def likelihood_ratio(self, pair: Pair) -> Callable[[Released], float]:
        """Log-likelihood ratio of both patterns, a function of what is released."""
        self._unknown("the likelihood ratio of two patterns", "likelihood_ratio")

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio; the matched filter for the move; the total; coarse cells; and single numbers.

        Examples
        --------
        >>> from dpppsynth import AlphaNeighbours, LaplaceSynthesizer, Window
        >>> plan = LaplaceSynthesizer(1.0, alpha=25.0).plan(Window.rectangle(0, 0, 500, 500), n=40).statistic
        >>> audit = CountsAudit(plan)
        >>> [statistic.name for statistic in audit.statistics(audit.pair(plan.relation))]
        ['likelihood ratio', 'near', 'total', 'cells', 'one number']
        """
        return (AuditStatistic("likelihood ratio", self.likelihood_ratio(pair)), *self.sums(pair))

    def sums(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Weighted sums of the released numbers, and single ones."""
        first, second = self.exact(pair)
        unit = 2.0**-self.plan.bits
        return (
            # Difference of the exact statistics: the matched filter for the move.
            AuditStatistic("near", partial(weighted, np.asarray((first - second) * unit, dtype=np.float64), unit)),
            AuditStatistic("total", partial(weighted, np.ones(len(first)), unit)),
            coarse_sums(self.plan, len(first), unit),
            *one_by_one(len(first)),
        )

    def change(self, pair: Pair) -> Ints:
        """(V,) difference of the statistics, of the points in which the patterns differ."""
        gone, came = (self.plan.exact(places) for places in changed(pair))
        return gone - came

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        return claim

    def alike(self, pair: Pair) -> bool:
        return not self.change(pair).any()

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the largest probability of independent numbers' noise: that of each, times their number."""
        return (self.numbers if first is None else first) * self.log_mode

    @property
    def log_mode(self) -> float:
        """Logarithm of the largest probability, or a bound on it, of any value of one number's noise."""
        self._unknown("how likely its noise may come again", "log_mode")

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        return stated_laws(self.noise(pair), self.law, count=self.numbers)


@dataclass(frozen=True, eq=False)
class LaplaceAudit(AdditiveNoiseAudit):
    """Numbers with discrete Laplace noise of one scale."""

    plan: LaplaceStatistic

    @property
    def law(self) -> StatedNoise:
        return DiscreteLaplace(self.plan.scale)

    @property
    def log_mode(self) -> float:
        return log_laplace(self.plan.scale)

    def likelihood_ratio(self, pair: Pair) -> Callable[[Released], float]:
        return partial(laplace_ratio, *self.exact(pair), self.plan.scale)

    def weakened(self, pair: Pair) -> Weakened:
        change = self.change(pair)
        return partial(less_laplace, change[change != 0], self.plan.scale)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        return (self.epsilon(pair), claim.level) if isinstance(claim, PureDP) else UNKNOWN

    def epsilon(self, pair: Pair) -> float:
        """L1 distance of the statistics in scales of the noise."""
        return float(np.abs(self.change(pair)).sum()) / self.plan.scale


@dataclass(frozen=True, eq=False)
class CountsAudit(LaplaceAudit):
    """Counts of cells, or tent masses, with discrete Laplace noise."""

    plan: LaplaceMasses

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) changes: 2 where the cells differ; of tents the Kullback-Leibler divergence of the noised masses.

        That is larger, at equal L1 distance, for a change of few masses.
        """
        mesh = self.plan.mesh
        if self.plan.basis == "cells":
            return 2.0 * (mesh.locate(first) != mesh.locate(second))
        return self._divergence(abs(mesh.basis(first) - mesh.basis(second)))

    def presence(self, at: Floats) -> Floats:
        """(P,) changes: one count; of tents the divergence of the noised masses."""
        if self.plan.basis == "cells":
            return np.ones(len(at))
        return self._divergence(self.plan.mesh.basis(at))

    def _divergence(self, change: "scipy.sparse.csr_array") -> Floats:
        """(P,) of sparse changes (P, V): `d + e^-d - 1` for each mass, in scales of the Laplace noise."""
        change = change / self.plan.noise_scale
        change.data += np.expm1(-change.data)
        return np.asarray(change.sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PairSumsAudit(NoisedNumbersAudit):
    """Capped pair sums with discrete Laplace noise, of a scale for each radius."""

    plan: PairsStatistic

    def pair(self, relation: Relation) -> Pair:
        """The worst of several made-up surroundings of a point."""
        return hardest(self.plan, relation)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        return (self.ratio(pair), *one_by_one(self.numbers))

    def ratio(self, pair: Pair) -> AuditStatistic:
        """Log-likelihood ratio of both patterns, of all numbers."""
        return AuditStatistic("likelihood ratio", partial(laplace_ratio, *self.exact(pair), scales(self.plan)))

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        shifts = differences(self.plan, pair)
        shifts = shifts[shifts > 0]
        return AsStated(claim, shifts) if 0 < len(shifts) <= MOST_SHIFTS else claim

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        return (float(differences(self.plan, pair).sum()), claim.level) if isinstance(claim, PureDP) else UNKNOWN

    def weakened(self, pair: Pair) -> Weakened:
        first, second = self.exact(pair)
        changed = first != second
        return partial(less_laplace, (first - second)[changed], scales(self.plan)[changed])

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        left, found = self.numbers if first is None else first, 0.0
        for _, size, scale in self.plan.noise_groups():
            found += min(size, left) * log_laplace(scale)
            left -= min(size, left)
        return found

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        noise, start, found = self.noise(pair), 0, list[StatedLaw]()
        for label, size, scale in self.plan.noise_groups():
            found += stated_laws(noise, DiscreteLaplace(scale), count=size, start=start, of=f" of {label}")
            start += size
        return tuple(found)


@dataclass(frozen=True, eq=False)
class MassesAndPairsAudit(PairSumsAudit):
    """Counts or tent masses followed by capped pair sums; the statistic is a `LaplaceMasses`."""

    def pair(self, relation: Relation) -> Pair:
        """Worst of several surroundings of a point, by the change of masses or sums under a move."""
        return hardest(self.plan, relation, [self._plain_in_masses(relation)])

    def _plain_in_masses(self, relation: Relation) -> Ends:
        """Move that shows in the masses most, or place where a point does."""
        plan = instance("plan", self.plan, LaplaceMasses, "PairSumsAudit takes plans without masses")
        masses, rng = CountsAudit(plan), np.random.default_rng(SEED)
        if not relation.n_is_public:
            place = worst_location(self.plan, masses.presence, rng)[None]
            return place, place
        before, after = worst_case_move(self.plan, capped(relation), masses.separation, rng)
        return before[None], after[None]

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio; the matched filter; totals and coarse cells of the masses; sums; single numbers."""
        sums = len(self.plan.radii)
        masses, unit = self.numbers - sums, 2.0**-self.plan.bits
        first, second = self.exact(pair)
        return (
            self.ratio(pair),
            # By least squares, each number by the size of its noise.
            AuditStatistic("near", partial(weighted, (first - second) / scales(self.plan) ** 2, 1.0)),
            AuditStatistic("total", partial(weighted, np.repeat([1.0, 0.0], [masses, sums]), unit)),
            coarse_sums(self.plan, masses, unit, others=sums),
            AuditStatistic("pair sums", partial(weighted, np.eye(sums, self.numbers, masses), 1.0), learned=True),
            *one_by_one(self.numbers),
        )
