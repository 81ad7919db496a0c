"""Audits of counts or tent masses, and pair sums after them, released in one vector."""

from dataclasses import dataclass

import numpy as np

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits.additive_audits import CountsAudit
from dpppsynth.contract.audits.hard_pairs import SEED, worst_case_move, worst_location
from dpppsynth.contract.audits.near_points import Ends, hardest, scales
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.pair_sums_audit import PairSumsAudit
from dpppsynth.contract.audits.statistics import Weighted, coarse_sums, one_by_one
from dpppsynth.contract.audits.target import AuditStatistic
from dpppsynth.contract.statistic import capped
from dpppsynth.core.arguments import instance
from dpppsynth.privacy.relations import Relation


@dataclass(frozen=True, eq=False)
class MassesAndPairsAudit(PairSumsAudit):
    """Counts or tent masses, and capped pair sums after them; its plan is a `LaplaceMasses` as well."""

    def pair(self, relation: Relation) -> Pair:
        """The worst of several surroundings of a point, whose move shows in the masses, or in the sums, most."""
        return hardest(self.plan, relation, [self._plain_in_masses(relation)])

    def _plain_in_masses(self, relation: Relation) -> Ends:
        """Move that shows in the masses most, or place where a point does."""
        masses, rng = CountsAudit(self._masses_plan), np.random.default_rng(SEED)
        if not relation.n_is_public:
            place = worst_location(self.plan, masses.presence, rng)[None]
            return place, place
        before, after = worst_case_move(self.plan, capped(relation), masses.separation, rng)
        return before[None], after[None]

    @property
    def _masses_plan(self) -> LaplaceMasses:
        plan: LaplaceMasses = instance("plan", self.plan, LaplaceMasses, "PairSumsAudit takes plans without masses")
        return plan

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """The likelihood ratio; the matched filter; totals and coarse cells of the masses; sums; single numbers."""
        sums = len(self.plan.radii)
        masses, unit = self.numbers - sums, 2.0**-self.plan.bits
        first, second = self.exact(pair)
        return (
            self.ratio(pair),
            # By least squares, each number by the size of its noise.
            AuditStatistic("near", Weighted((first - second) / scales(self.plan) ** 2)),
            AuditStatistic("total", Weighted(np.repeat([1.0, 0.0], [masses, sums]), unit)),
            coarse_sums(self.plan, masses, unit, others=sums),
            AuditStatistic("pair sums", Weighted(np.eye(sums, self.numbers, masses)), learned=True),
            *one_by_one(self.numbers),
        )
