"""Audits of points that are moved one by one."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from dpppsynth.contract.audits.added_noise import Positions
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.stated_profile import MOST_SHIFTS
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw, Weakened
from dpppsynth.mechanisms.planar_laplace.audit_rows import (
    EndRows,
    Farthest,
    MoveRatio,
    Place,
    ShorterMoves,
    move_shifts,
)
from dpppsynth.mechanisms.planar_laplace.audit_stated import MovesAsStated
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Weight of a move along both axes relative to one along a single axis, in which one coordinate tells nothing.
ASLANT = 0.01


@dataclass(frozen=True, eq=False)
class MovedAudit(StatisticAudit):
    """Points with planar Laplace noise on each."""

    plan: MovedPoints

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) distances, and among equal ones those that change both coordinates."""
        along = np.abs(second - first)
        return np.asarray(np.hypot(*along.T) + ASLANT * along.min(axis=1))

    def pair(self, relation: Relation) -> Pair:
        """The hardest move; the moved points come first in the second pattern, whose rows are turned round.

        The order of the rows is not protected, so it must not differ between the patterns; that of a track is.
        """
        one, other = super().pair(relation)
        return (one, other) if self.plan.track else (one, PointPattern.at(other.positions[::-1], other.domain))

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Likelihood ratio, distances, coordinates and order of what is released."""
        plan = self.plan
        return (
            AuditStatistic("likelihood ratio", MoveRatio.at(plan, pair)),
            AuditStatistic("farthest", Farthest.at(plan, pair), learned=True, alone=True),
            AuditStatistic("place", Place.at(plan, pair), learned=True, alone=True),
            AuditStatistic("end rows", EndRows(plan), learned=True, alone=True),
        )

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """Sharper by the law of the moves, worked out here and not as the plan does it."""
        shifts = move_shifts(self.plan, pair)
        if shifts is None or not 0 < len(shifts) <= MOST_SHIFTS:
            return claim
        return MovesAsStated(claim, shifts, bound=self.plan.rate * self.plan.bound)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: the distances moved, times the rate."""
        if not isinstance(claim, PureDP | ApproximateDP):
            return UNKNOWN
        shifts = move_shifts(self.plan, pair)
        return 0.0 if shifts is None else float(shifts.sum()), claim.level

    def weakened(self, pair: Pair) -> Weakened | None:
        """Simulated, where it is known which point is moved to which place."""
        shifts = move_shifts(self.plan, pair)
        return None if shifts is None else ShorterMoves(shifts, self.plan.rate * self.plan.bound)

    def alike(self, pair: Pair) -> bool:
        """Whether nothing moves."""
        shifts = move_shifts(self.plan, pair)
        return shifts is not None and not len(shifts)

    def noise(self, pair: Pair) -> Positions:
        """The released places."""
        return Positions()

    @property
    def numbers(self) -> int:
        """Two coordinates of each point."""
        return self.plan.size

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of the largest probability of all points' places on their grid, at most."""
        plan, count = self.plan, self.numbers if first is None else first
        kept = float(gammainc(2, plan.rate * plan.bound))
        return count // 2 * min(0.0, math.log((plan.rate * plan.step) ** 2 / (2 * math.pi * kept)))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """No laws: which released row is whose is not known."""
        return ()
