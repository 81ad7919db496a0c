"""Audits of local statistics: trials run one client, and whole releases are held to the law of their counts.

Trials run one client. A plan that counts anything else than what clients send, true cells say, shows in what it
releases: where all persons have one value, every count is binomial.

The others' reports are about a third place, where there is one: what they tell of the two places in question, they then
tell by chance alone. Statistics of all reports do not depend on their order.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from dpppsynth.contract.audits.neighbouring_pairs import uniform_places
from dpppsynth.contract.audits.statistic_audit import AuditRun, Margin, More, StatisticAudit
from dpppsynth.contract.audits.statistics import MOST_NUMBERS
from dpppsynth.contract.audits.target import AuditStatistic, Target
from dpppsynth.mechanisms.local.audit_clients import ClientAudit, Respond, counted_reports, report_ratio
from dpppsynth.mechanisms.local.displacements import DisplacementStatistic
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic, GridStatistic
from dpppsynth.mechanisms.local.randomizers.oracles import oracle
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import ApproximateDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Cells of releases that audits save: estimates of more take long.
MOST_CELLS = 32**2

SEED = 20261124
# Probabilities are kept off 0 and 1 by so much, which makes what is odd no odder than it is.
LEAST, NEXT_TO_ONE = 1e-300, 1 - 2.0**-53


class RoundCounts(NamedTuple):
    """Counts of n reports of one round, all about one value."""

    clients: Randomizer
    counts: Ints
    value: int
    n: int


@dataclass(frozen=True, eq=False)
class ReportCounts:
    """Whole releases of a local mechanism, of two patterns each with all persons at one place."""

    run: AuditRun
    pair: tuple[PointPattern, PointPattern]
    rounds: Callable[[Ints, Floats], Iterable[RoundCounts]]
    opened: bool

    @classmethod
    def of(
        cls, run: AuditRun, rounds: Callable[[Ints, Floats], Iterable[RoundCounts]], *, n: int, opened: bool
    ) -> "ReportCounts":
        """Releases of two patterns of n persons."""
        domain = run.plan.domain
        places = uniform_places(domain, 2, np.random.default_rng(SEED))
        first, second = (PointPattern.at(np.tile(place, (n, 1)), domain) for place in places)
        return cls(run, (first, second), rounds, opened)

    def misfits(self, chance: float) -> dict[str, float]:
        """Log-probability of a count as unlikely as the least likely one, by name, if it is below that of `chance`."""
        tails = [tails_of(counts) for pattern in self.pair for counts in self._counts(pattern)]
        # Either tail of every count, of both releases.
        log_chance = float(np.concatenate(tails).min()) + math.log(2 * sum(map(len, tails)))
        return {"law of the counts": log_chance} if log_chance < math.log(chance) else {}

    def _counts(self, pattern: PointPattern) -> Iterable[RoundCounts]:
        return self.rounds(self.run(pattern).lattice, pattern.positions[:1])


def tails_of(released: RoundCounts) -> Floats:
    """(m,) bounds on the logarithms of the tails of all binomial numbers made of the counts."""
    clients, counts, value, n = released
    numbers, chances = clients.binomials(clients.counts_of(counts, n), value)
    return log_tails(numbers, n, chances)


def log_tails(counts: Ints, n: int, chances: Floats) -> Floats:
    """(m,) Chernoff's bounds on the logarithm of a binomial tail, that on the side of the count (m,)."""
    shares, p = counts / n, np.clip(chances, LEAST, NEXT_TO_ONE)
    return np.asarray(-n * (rel_entr(shares, p) + rel_entr(1 - shares, 1 - p)))


# Reports of a run, at most: the statement for so many is looked at where more are shuffled.
MOST_SHUFFLED = 500


def of_own_report(features: Callable[[Any], ArrayLike], reports: Any) -> ArrayLike:
    """Features of the first of the reports (m, columns), the client's own, which only the shuffler sees by itself."""
    return features(np.atleast_2d(reports)[:1])


def among_others(target: Target, clients: Randomizer, statement: ShuffledPrivacy) -> Target:
    """Audit of one report alone, and of the shuffled guarantee for that report among other persons' reports."""
    first, second = target.pair
    other = next((value for value in range(clients.inputs) if value not in (first, second)), second)
    own = tuple(replace(each, features=partial(of_own_report, each.features)) for each in target.statistics)
    claim = ApproximateDP(statement.epsilon, statement.delta)
    mixed = [AuditStatistic("likelihood ratio, shuffled", partial(report_ratio, clients, target.pair), claimed=claim)]
    if 1 < clients.size <= MOST_NUMBERS:
        mixed.append(AuditStatistic("counts, shuffled", partial(counted_reports, clients), learned=True, claimed=claim))
    run = Respond(clients, other, statement.reports - 1)
    return replace(target, run=run, statistics=(*own, *mixed))


# Persons of a release, at most, and persons times cells, but for a few; of two rounds there are as many as planned.
MOST, WORK, FEW = 10_000, 20_000_000, 100


@dataclass(frozen=True, eq=False)
class ReportsAudit(StatisticAudit):
    """Base of audits of counts of reports: one report of a client, and the counts of whole releases."""

    plan: AreaStatistic | GridStatistic | DisplacementStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Laws of the clients of each round, in which other persons report."""
        return (self.plan.randomizer,)  # type: ignore[union-attr]

    @property
    def clients(self) -> Randomizer:
        """Law of the round with the largest epsilon, among those with more than one value."""
        return max(self.rounds, key=lambda randomizer: (randomizer.inputs > 1, randomizer.spent))

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Released counts of each round, of reports about one place (1, 2)."""
        self._unknown("what its counts are of", "counts")

    def smaller(self) -> AreaStatistic | GridStatistic | DisplacementStatistic | None:
        """The same statistic for so few persons that a release is quick; None where there is no such statistic."""
        return replace(self.plan, n=self.few, shuffle=None)  # type: ignore[type-var]

    @property
    def few(self) -> int:
        """Number of persons of a quick release."""
        return min(int(self.plan.n), MOST, max(FEW, WORK // self.rounds[0].inputs))

    @property
    def opened(self) -> bool:
        """Whether releases are saved and opened again."""
        return len(self.plan.mesh.element_measure) <= MOST_CELLS

    def target(
        self,
        run: AuditRun,
        name: str,
        claim: Guarantee,
        *,
        margin: Margin,
        pair: Any = None,
        statistics: More = (),
        relation: Relation | None = None,
    ) -> Target:
        made = ClientAudit(self.clients).target(margin, guarantee=claim, pair=pair, statistics=statistics)
        if self.plan.shuffle is not None:
            fewer = replace(self.plan.shuffle, reports=min(self.plan.shuffle.reports, MOST_SHUFFLED))
            made = among_others(made, self.clients, self.plan.statement(fewer))
        few = self.smaller()
        if few is None:
            return made
        counted = ReportCounts.of(run.on(few), type(self)(few).counts, n=few.n, opened=self.opened)
        return replace(made, counted=counted)


@dataclass(frozen=True, eq=False)
class CellsAudit(ReportsAudit):
    """Reports about cells of a square grid."""

    plan: AreaStatistic

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        value = int(self.plan.element_values[self.plan.mesh.locate(place)][0])
        yield RoundCounts(self.plan.randomizer, lattice, value, self.plan.n)


@dataclass(frozen=True, eq=False)
class DisplacementAudit(ReportsAudit):
    """Reports about the start or the displacement of a trajectory."""

    plan: DisplacementStatistic

    def smaller(self) -> DisplacementStatistic:
        return replace(self.plan, n=self.few, user=None, shuffle=None)

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        start = int(self.plan.element_values[self.plan.mesh.locate(place)][0])
        yield RoundCounts(self.plan.law, lattice, start * self.plan.law.displacements, self.plan.n)


@dataclass(frozen=True, eq=False)
class GridAudit(ReportsAudit):
    """Reports about the rectangles of a grid, to a frequency oracle."""

    plan: GridStatistic

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        xy = np.asarray(self.plan.domain.coordinates(place))
        for grid, clients, counts, n in self.plan.levels(lattice):
            yield RoundCounts(clients, counts, int(grid.locate(xy)[0]), n)


@dataclass(frozen=True, eq=False)
class AdaptiveGridAudit(GridAudit):
    """Reports about rectangles of a coarse grid and, by other persons, of a finer grid made from the first counts."""

    plan: AdaptiveGridStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        plan = self.plan
        cells = len(plan.first)
        grid = plan.second(np.full(cells, plan.reports[0] / cells))
        return (*plan.randomizers, oracle(plan.oracle, epsilon=plan.epsilon, domain=len(grid)))

    def smaller(self) -> AdaptiveGridStatistic | None:
        return None if self.plan.n > MOST else self.plan

    @property
    def opened(self) -> bool:
        return False
