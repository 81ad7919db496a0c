"""Audits of noised pyramids of counts."""

from dataclasses import dataclass

import numpy as np

from dpppsynth.contract.audits.added_noise import log_laplace
from dpppsynth.contract.audits.hard_pairs import made_up_size
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed
from dpppsynth.contract.audits.noise_laws import DiscreteLaplace
from dpppsynth.contract.audits.noise_tests import stated_laws
from dpppsynth.contract.audits.stated_profile import MOST_SHIFTS, AsStated
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import one_by_one
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw, Weakened
from dpppsynth.contract.audits.weaker_noise import LessLaplace
from dpppsynth.mechanisms.heatmap.audit_branches import (
    CellRatio,
    LevelRatios,
    LevelTotals,
    LookedAt,
    PyramidRatio,
    always_seen,
    branches,
    lengths,
    sure_branches,
)
from dpppsynth.mechanisms.heatmap.audit_pairs import MISSED, person_pair
from dpppsynth.mechanisms.heatmap.audit_residuals import AddedToPyramid, Extremes, SharedNoise
from dpppsynth.mechanisms.heatmap.pyramid import pyramid
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.privacy.profiles import Profile, PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints


@dataclass(frozen=True, eq=False)
class HeatmapAudit(StatisticAudit):
    """Counts of the fullest cells of each level, with discrete Laplace noise."""

    plan: HeatmapStatistic

    def pair(self, relation: Relation) -> Pair:
        """Worst-case pair under adding or removing a person (`person_pair`)."""
        made_up_size(self.plan)
        return person_pair(self.plan)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Likelihood ratios of all levels and of each, and statistics that look for other noise than is stated."""
        plan, changing = self.plan, (self.plan, branches(self.plan, pair))
        return (
            AuditStatistic("likelihood ratio", PyramidRatio(*changing)),
            AuditStatistic("levels", LevelRatios(*changing), learned=True),
            AuditStatistic("looked at", LookedAt(*changing), learned=True, alone=True),
            *self._of_levels(pair),
            AuditStatistic("shared noise", SharedNoise.at(plan, pair), learned=True, alone=True),
            AuditStatistic("extremes", Extremes.at(plan, pair), learned=True, alone=True),
            AuditStatistic("total", LevelTotals(plan), learned=True, alone=True),
            *one_by_one(sum(lengths(plan))),
        )

    def _of_levels(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """One number of each level, which may tell no more than the level's own noise lets it."""
        found = []
        for number, branch in enumerate(sure_branches(self.plan, pair)):
            if len(branch.cells):
                name, ratio = f"level {self.plan.budgets.levels[number]}", CellRatio(self.plan, number, branch)
                found.append(AuditStatistic(name, ratio, claimed=self.of_number(branch.scale)))
        return tuple(found)

    def of_number(self, scale: float) -> AsStated:
        """Privacy profile of one noised number of a person whose cell is measured almost surely."""
        shift = np.array([(2.0**self.plan.bits + 1) / scale])
        return AsStated(self.plan.guarantee.profile, shift, unsure=2 * MISSED)

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """Sharper by the person's shares of the cells, worked out here from their points, and not as the plan does."""
        shifts = self._shifts(pair)
        return AsStated(claim, shifts) if 0 < len(shifts) <= MOST_SHIFTS else claim

    def _shifts(self, pair: Pair) -> Floats:
        """(k,) most by which the masses of cells differ, in scales of their noise, of all levels."""
        plan, points = self.plan, np.concatenate(changed(pair))
        cells, number = np.unique(plan.places[plan.mesh.locate(points)], axis=0, return_counts=True)
        persons = 1 if plan.user is not None else len(points)
        # Rounding to the lattice changes each of the person's masses by one unit at most.
        masses = 2.0**plan.bits * persons * number / max(1, len(points)) + 1
        found = [
            _sums(cells >> plan.depth - level, masses) / scale
            for level, scale in zip(plan.budgets.levels, plan.scales, strict=True)
        ]
        return np.concatenate(found)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: the L1 distances of the levels' masses in scales, if all cells were measured."""
        if not isinstance(claim, PureDP):
            return UNKNOWN
        each = zip(branches(self.plan, pair), self.plan.scales, strict=True)
        return sum(float(np.abs(branch.first - branch.second).sum()) / scale for branch, scale in each), claim.level

    def weakened(self, pair: Pair) -> Weakened:
        """Simulated, of the cells that are measured whatever the noise."""
        return LessLaplace(*always_seen(self.plan, pair))

    def alike(self, pair: Pair) -> bool:
        """Whether all masses of both patterns are the same."""
        return not any(len(branch.cells) for branch in branches(self.plan, pair))

    def noise(self, pair: Pair) -> AddedToPyramid:
        """The released masses less those of the points."""
        return AddedToPyramid(self.plan, pair)

    @property
    def numbers(self) -> int:
        """One: the number of measured cells in the window is random."""
        return 1

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the probability of no noise at all, at most."""
        plan = self.plan
        # All cells of the first level that lie in the window are measured, and one or more of each further one.
        inside = int(np.count_nonzero(pyramid(plan.inside)[plan.budgets.first]))
        return float(np.dot([inside] + [1] * (len(plan.scales) - 1), [log_laplace(each) for each in plan.scales]))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Size and sum of the noise of each level.

        Of a kept cell with a part in the window, one of those within it has one.
        """
        plan, noise, start, found = self.plan, self.noise(pair), 0, list[StatedLaw]()
        whole = bool((plan.inside > 0).all())
        for level, count, scale in zip(plan.budgets.levels, lengths(plan), plan.scales, strict=True):
            least = count if whole else max(1, count // 4**plan.budgets.step)
            law = DiscreteLaplace(scale)
            found += stated_laws(noise, law, count=count, start=start, least=least, of=f" of level {level}")
            start += count
        return tuple(found)


def _sums(cells: Ints, masses: Floats) -> Floats:
    """Sums of masses (k,) that are in the same one of cells (k, 2)."""
    _, which = np.unique(cells, axis=0, return_inverse=True)
    return np.asarray(np.bincount(which.ravel(), weights=masses), dtype=np.float64)
