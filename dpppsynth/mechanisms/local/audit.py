"""Audits of local plans: trials run one client, and whole releases are held to the law of their counts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpppsynth.contract.audits.statistic_audit import AuditRun, Margin, More, StatisticAudit
from dpppsynth.contract.audits.target import Target
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.audit_clients import ClientAudit
from dpppsynth.mechanisms.local.audit_reports import ReportCounts, RoundCounts
from dpppsynth.mechanisms.local.audit_shuffled import MOST as MOST_SHUFFLED
from dpppsynth.mechanisms.local.audit_shuffled import among_others
from dpppsynth.mechanisms.local.displacement_statistic import DisplacementStatistic
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic, GridStatistic, UniformGridStatistic
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.randomizer_names import oracle
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints

# Persons of a release, at most, and persons times cells, but for a few; of two rounds there are as many as planned.
MOST, WORK, FEW = 10_000, 20_000_000, 100


@dataclass(frozen=True, eq=False)
class ReportsAudit(StatisticAudit):
    """Base of audits of counts of reports: one report of a client, and the counts of whole releases."""

    plan: AreaStatistic | GridStatistic | DisplacementStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Laws of the clients of each round, in which other persons report."""
        self._unknown("what its clients send", "rounds")

    @property
    def clients(self) -> Randomizer:
        """Law with the largest epsilon of the rounds in which there is anything to tell apart."""
        return max(self.rounds, key=lambda randomizer: (randomizer.inputs > 1, randomizer.spent))

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Released counts of each round, of reports about one place (1, 2)."""
        self._unknown("what its counts are of", "counts")

    def smaller(self) -> AreaStatistic | GridStatistic | DisplacementStatistic | None:
        """The plan for so many persons that a release is quick; None where there is no such plan."""
        self._unknown("how a smaller plan is made", "smaller")

    @property
    def few(self) -> int:
        """Number of persons of a quick release."""
        return min(int(self.plan.n), MOST, max(FEW, WORK // self.rounds[0].inputs))

    @property
    def opened(self) -> bool:
        """Whether releases are saved and opened again."""
        return len(self.plan.mesh.element_measure) <= grid_limits.AUDITED_CELLS

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
        """One report of one client, with either of two values, among others where something is stated of a shuffler."""
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

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Law of the one round."""
        return (self.plan.randomizer,)

    def smaller(self) -> AreaStatistic:
        """The plan for fewer persons."""
        return replace(self.plan, n=self.few, shuffle=None)

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Counts of reports about the cell of the place."""
        value = int(self.plan.element_values[self.plan.mesh.locate(place)][0])
        yield RoundCounts(self.plan.randomizer, lattice, value, self.plan.n)


@dataclass(frozen=True, eq=False)
class DisplacementAudit(ReportsAudit):
    """Reports about the start or the displacement of a trajectory."""

    plan: DisplacementStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Law of the one round."""
        return (self.plan.law,)

    def smaller(self) -> DisplacementStatistic:
        """The plan for fewer persons, each of whom stays in one place."""
        return replace(self.plan, n=self.few, user=None, shuffle=None)

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Counts of reports about staying in the cell of the place."""
        start = int(self.plan.element_values[self.plan.mesh.locate(place)][0])
        yield RoundCounts(self.plan.law, lattice, start * self.plan.law.displacements, self.plan.n)


@dataclass(frozen=True, eq=False)
class GridAudit(ReportsAudit):
    """Reports about rectangles of a uniform grid, to a frequency oracle."""

    plan: UniformGridStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Law of the one round."""
        return self.plan.randomizers

    def smaller(self) -> UniformGridStatistic:
        """The plan for fewer persons."""
        return replace(self.plan, n=self.few, shuffle=None)

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Counts of reports about the rectangle of the place."""
        yield from _of_grids(self.plan, [(self.plan.first, self.plan.randomizers[0])], [self.plan.n], lattice, place)


@dataclass(frozen=True, eq=False)
class AdaptiveGridAudit(ReportsAudit):
    """Reports about rectangles of a coarse grid, and of others about those of a finer one made from their counts."""

    plan: AdaptiveGridStatistic

    @property
    def rounds(self) -> tuple[Randomizer, ...]:
        """Laws of both rounds, the second as after even counts in the first."""
        plan = self.plan
        cells = len(plan.first)
        grid = plan.second(np.full(cells, plan.reports[0] / cells))
        return (*plan.randomizers, oracle(plan.oracle, epsilon=plan.epsilon, domain=len(grid)))

    def counts(self, lattice: Ints, place: Floats) -> Iterator[RoundCounts]:
        """Counts of reports about the rectangles of the place in either round."""
        plan = self.plan
        rounds = [(plan.first, plan.randomizers[0]), plan.second_round(plan.parts(lattice)[0])]
        yield from _of_grids(plan, rounds, [*plan.reports], lattice, place)

    def smaller(self) -> AdaptiveGridStatistic | None:
        """The plan itself, unless it is for too many persons: the rounds have the sizes that it gives them."""
        return None if self.plan.n > MOST else self.plan

    @property
    def opened(self) -> bool:
        """Never: certificates of two rounds tell what the first led to."""
        return False


def _of_grids(
    plan: GridStatistic, rounds: list[Any], numbers: list[int], lattice: Ints, place: Floats
) -> Iterator[RoundCounts]:
    xy = np.asarray(plan.domain.coordinates(place))
    for (grid, clients), counts, n in zip(rounds, plan.parts(lattice), numbers, strict=True):
        yield RoundCounts(clients, counts, int(grid.locate(xy)[0]), n)
