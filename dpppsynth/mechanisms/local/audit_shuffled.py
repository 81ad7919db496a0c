"""Audits of the second statement, on shuffled reports: a client's report among those of others.

The others' reports are about a third place, where there is one: what they tell of the two places in question, they then
tell by chance alone. Statistics of all reports do not depend on their order.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.contract.audits.statistics import MOST_NUMBERS
from dpppsynth.contract.audits.target import AuditStatistic, Target
from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.local.audit_clients import ClientLaw, CountedReports, ReportRatio
from dpppsynth.privacy.profiles import ApproximateDP
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.mesh import Ints

# Reports of a run, at most: the statement for so many is looked at where more are shuffled.
MOST = 500


@dataclass(frozen=True, eq=False)
class RespondAmong:
    """The reports of a client and of others, the client's first, drawn with secret randomness on every run."""

    randomizer: ClientLaw
    other: int
    others: int

    def __call__(self, value: int) -> Ints:
        """(1 + others, columns) reports of a client with a value, and of others with theirs."""
        return self.randomizer.draw(np.array([value] + [self.other] * self.others), generator())


@dataclass(frozen=True, eq=False)
class OwnReport:
    """A number, or several, of the client's own report, which the shuffler alone sees by itself."""

    features: Callable[[Any], ArrayLike]

    def __call__(self, reports: Any) -> ArrayLike:
        """Features of the first of the reports (m, columns)."""
        return self.features(np.atleast_2d(reports)[:1])


def among_others(target: Target, clients: ClientLaw, statement: ShuffledPrivacy) -> Target:
    """Audit of one report and, with other persons' reports around it, of the statement on as many as it is of."""
    first, second = target.pair
    other = next((value for value in range(clients.inputs) if value not in (first, second)), second)
    own = tuple(replace(each, features=OwnReport(each.features)) for each in target.statistics)
    claim = ApproximateDP(statement.epsilon, statement.delta)
    mixed = [AuditStatistic("likelihood ratio, shuffled", ReportRatio(clients, target.pair), claimed=claim)]
    if 1 < clients.size <= MOST_NUMBERS:
        mixed.append(AuditStatistic("counts, shuffled", CountedReports(clients), learned=True, claimed=claim))
    run = RespondAmong(clients, other, statement.reports - 1)
    return replace(target, run=run, statistics=(*own, *mixed))
