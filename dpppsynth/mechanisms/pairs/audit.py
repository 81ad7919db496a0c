"""Audits of pair sums."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpppsynth.contract.audits.added_noise import Added, log_laplace
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.noise_laws import DiscreteLaplace
from dpppsynth.contract.audits.noise_tests import stated_laws
from dpppsynth.contract.audits.plan_audit import UNKNOWN, PlanAudit
from dpppsynth.contract.audits.stated_profile import AsStated
from dpppsynth.contract.audits.statistics import ReleasedLattice, one_by_one
from dpppsynth.contract.audits.target import StatedLaw, Statistic, Weakened
from dpppsynth.contract.audits.weaker_noise import LessLaplace
from dpppsynth.mechanisms.pairs.audit_pairs import differences, hardest
from dpppsynth.mechanisms.pairs.plan import PairSumsPlan
from dpppsynth.privacy.profiles import Profile, PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints


@dataclass(frozen=True, eq=False)
class PairRatio:
    """Log-likelihood ratio of two patterns with exact sums (L,), (L,), given noised ones."""

    first: Ints
    second: Ints
    scales: Floats

    def __call__(self, released: ReleasedLattice) -> float:
        """`sum((|o - S'| - |o - S|) / scale)`."""
        away = np.abs(released.lattice - self.second) - np.abs(released.lattice - self.first)
        return float((away / self.scales).sum())


@dataclass(frozen=True, eq=False)
class PairSumsAudit(PlanAudit):
    """Capped pair sums with discrete Laplace noise, of a scale for each radius."""

    plan: PairSumsPlan
    symmetric: ClassVar[bool] = True

    def pair(self, relation: Relation) -> Pair:
        """The worst of several made-up surroundings of a point."""
        return hardest(self.plan)

    def statistics(self, pair: Pair) -> tuple[Statistic, ...]:
        """The likelihood ratio, and single sums."""
        ratio = PairRatio(*self._exact(pair), np.array(self.plan.scales))
        return (Statistic("likelihood ratio", ratio), *one_by_one(self.numbers))

    def _exact(self, pair: Pair) -> tuple[Ints, Ints]:
        first, second = (self.plan.exact(pattern) for pattern in pair)
        return first, second

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """Sharper by the differences of the exact sums."""
        shifts = differences(self.plan, pair)
        return AsStated(claim, shifts[shifts > 0]) if shifts.any() else claim

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: differences of the exact sums in scales."""
        return (float(differences(self.plan, pair).sum()), claim.level) if isinstance(claim, PureDP) else UNKNOWN

    def weakened(self, pair: Pair) -> Weakened:
        """Simulated law of the sums that change."""
        first, second = self._exact(pair)
        changed = first != second
        return LessLaplace((first - second)[changed], np.array(self.plan.scales)[changed])

    def alike(self, pair: Pair) -> bool:
        """Whether the sums of both patterns are the same."""
        first, second = self._exact(pair)
        return bool((first == second).all())

    def noise(self, pair: Pair) -> Added:
        """The released sums less the exact ones."""
        return Added(self._exact(pair))

    @property
    def numbers(self) -> int:
        """Number of radii."""
        return self.plan.size

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the probability that none of the sums has noise."""
        return float(sum(log_laplace(scale) for scale in self.plan.scales[:first]))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Size and sum of the noise of each radius."""
        noise, found = self.noise(pair), list[StatedLaw]()
        for k, scale in enumerate(self.plan.scales):
            found += stated_laws(
                noise, DiscreteLaplace(scale), count=1, start=k, of=f" of radius {self.plan.radii[k]:g}"
            )
        return tuple(found)
