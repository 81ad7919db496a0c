"""Audits of noised pair sums."""

from dataclasses import dataclass
from typing import ClassVar

from dpppsynth.contract.audits.added_noise import Added, log_laplace
from dpppsynth.contract.audits.near_points import differences, hardest, scales
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.noise_laws import DiscreteLaplace
from dpppsynth.contract.audits.noise_tests import stated_laws
from dpppsynth.contract.audits.stated_profile import MOST_SHIFTS, AsStated
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import LaplaceRatio, one_by_one
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw, Weakened
from dpppsynth.contract.audits.weaker_noise import LessLaplace
from dpppsynth.contract.pairs_statistic import PairsStatistic
from dpppsynth.privacy.profiles import Profile, PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Ints


@dataclass(frozen=True, eq=False)
class PairSumsAudit(StatisticAudit):
    """Capped pair sums with discrete Laplace noise, of a scale for each radius."""

    plan: PairsStatistic
    symmetric: ClassVar[bool] = True

    def pair(self, relation: Relation) -> Pair:
        """The worst of several made-up surroundings of a point."""
        return hardest(self.plan, relation)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio, and single numbers."""
        return (self.ratio(pair), *one_by_one(self.numbers))

    def ratio(self, pair: Pair) -> AuditStatistic:
        """Log-likelihood ratio of both patterns, of all numbers."""
        return AuditStatistic("likelihood ratio", LaplaceRatio(*self.exact(pair), scales(self.plan)))

    def exact(self, pair: Pair) -> tuple[Ints, Ints]:
        """(size,), (size,) numbers of both patterns without noise."""
        first, second = (self.plan.exact_numbers(pattern) for pattern in pair)
        return first, second

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """Sharper by the differences of the exact numbers."""
        shifts = differences(self.plan, pair)
        shifts = shifts[shifts > 0]
        return AsStated(claim, shifts) if 0 < len(shifts) <= MOST_SHIFTS else claim

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: differences of the exact numbers in scales."""
        return (float(differences(self.plan, pair).sum()), claim.level) if isinstance(claim, PureDP) else UNKNOWN

    def weakened(self, pair: Pair) -> Weakened:
        """Simulated law of the numbers that change."""
        first, second = self.exact(pair)
        changed = first != second
        return LessLaplace((first - second)[changed], scales(self.plan)[changed])

    def alike(self, pair: Pair) -> bool:
        """Whether the numbers of both patterns are the same."""
        first, second = self.exact(pair)
        return bool((first == second).all())

    def noise(self, pair: Pair) -> Added:
        """The released numbers less the exact ones."""
        return Added(self.exact(pair))

    @property
    def numbers(self) -> int:
        """Number of released numbers."""
        return self.plan.size

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the probability that none of the numbers has noise."""
        left, found = self.numbers if first is None else first, 0.0
        for _, size, scale in self.plan.noise_groups():
            found += min(size, left) * log_laplace(scale)
            left -= min(size, left)
        return found

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Size and sum of the noise of each scale."""
        noise, start, found = self.noise(pair), 0, list[StatedLaw]()
        for label, size, scale in self.plan.noise_groups():
            found += stated_laws(noise, DiscreteLaplace(scale), count=size, start=start, of=f" of {label}")
            start += size
        return tuple(found)
