"""Audits of stratified releases: all levels in the same runs, a pair of patterns for each.

Levels are released from points of their own, so what one level publishes tells no more than that level claims, however
many others change. A pair that changes a person in every level is therefore no neighbouring one, and each statistic
looks at one level alone: one run audits them all.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpppsynth.auditing.levels import draws_of_levels, laws_of_levels
from dpppsynth.auditing.whole import WholeStrata, of_level
from dpppsynth.contract.audits.neighbouring_pairs import Pair, what_changes
from dpppsynth.contract.audits.statistic_audit import StatisticAudit
from dpppsynth.contract.audits.target import AuditStatistic, Target
from dpppsynth.contract.registry import mechanism
from dpppsynth.contract.stratified_plan import StratifiedPlan
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.patterns import PointPattern


def strata_target(
    planned: StratifiedPlan, claim: Guarantee, pair: Any, statistics: tuple[AuditStatistic, ...]
) -> Target:
    """Releases of all levels together.

    Parameters
    ----------
    planned : StratifiedPlan
    claim : Guarantee
        Of the release as a whole, and so of its weakest level; the others are held to their own.
    pair : tuple of PointPattern, optional
        Of the level with the largest epsilon, without its mark.
    statistics : tuple of AuditStatistic
        Functions of `Levels`, looked at beside those of each level: all of it for the level with the largest epsilon,
        what needs no training for the others.
    """
    by = planned.by
    audits = {level: mechanism(each.mechanism).audit(each.statistic) for level, each in planned.plans.items()}
    weakest = max(audits, key=lambda level: float(planned.plans[level].guarantee.epsilon()))
    given = {weakest: pair}
    pairs = {level: each.neighbours(claim.relation, given.get(level)) for level, each in audits.items()}
    claims = {level: each.guarantee.profile for level, each in planned.plans.items()} | {weakest: claim.profile}
    # The statistic by which the audit is rated comes first.
    looked = _of_level(by, weakest, audits[weakest], pairs[weakest], claims[weakest])
    for level in [each for each in audits if each != weakest]:
        others = _of_level(by, level, audits[level], pairs[level], claims[level])
        looked += [each for each in others if not each.learned]
    return Target(
        run=WholeStrata(planned),
        pair=_marked(by, pairs),
        claimed=claim.profile,
        statistics=(*looked, *statistics),
        words=_words(planned, weakest, what_changes(pairs[weakest], claim.relation, given=pair is not None)),
        weakened=audits[weakest].weakened(pairs[weakest]),
        alike=all(each.alike(pairs[level]) for level, each in audits.items()),
        draws=draws_of_levels(by, audits, pairs),
        laws=laws_of_levels(by, audits, pairs),
        excess=tuple(
            f"{by} {level}: {found}"
            for level, each in audits.items()
            for found in each.excess(pairs[level], claims[level])
        ),
    )


def _of_level(by: str, level: str, audit: StatisticAudit, pair: Pair, claim: Profile) -> list[AuditStatistic]:
    """Statistics of one level, held to a claim and to the stated noise's own profile at the level's pair."""
    stated = audit.as_stated(pair, claim)
    found = of_level(by, level, audit.statistics(pair))
    return [each if each.claimed else each.held_to(stated) for each in found]


def _marked(by: str, pairs: Mapping[str, Pair]) -> Pair:
    first, second = (_joined(by, {level: pair[side] for level, pair in pairs.items()}) for side in (0, 1))
    return first, second


def _joined(by: str, parts: Mapping[str, PointPattern]) -> PointPattern:
    positions = np.concatenate([part.positions for part in parts.values()])
    mark = np.repeat(list(parts), [len(part) for part in parts.values()])
    return PointPattern.at(positions, next(iter(parts.values())).domain, {by: mark})


def _words(plan: StratifiedPlan, weakest: str, change: str) -> str:
    mechanism = plan.plans[weakest].mechanism
    return f"{mechanism} of {len(plan.plans)} levels at once; the weakest of the levels, {plan.by} {weakest}: {change}"
