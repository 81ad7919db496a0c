"""Audits of whole releases of a local plan: binomial tests of the counts of reports.

Trials run one client. A plan that counts anything else than what clients send, true cells say, shows in what it
releases: where all persons have one value, every count is binomial.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from scipy.special import rel_entr

from dpppsynth.auditing.steps import uniform_places
from dpppsynth.auditing.whole import Measure, Whole
from dpppsynth.contract.plan import Plan
from dpppsynth.mechanisms.local.grid_plan import AdaptiveGridPlan, UniformGridPlan
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.randomizers.area_law import AreaRandomizer
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential
from dpppsynth.mechanisms.local.randomizers.weights import TOTAL
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Persons of a release, at most, and persons times cells, but for a few; of two rounds there are as many as planned.
MOST, WORK, FEW = 10_000, 20_000_000, 100
# Cells of releases that are saved: estimates of more take long.
MOST_CELLS = 32**2
SEED = 20261124
# Probabilities are kept off 0 and 1 by so much, which makes what is odd no odder than it is.
LEAST, NEXT_TO_ONE = 1e-300, 1 - 2.0**-53


@dataclass(frozen=True, eq=False)
class ReportCounts:
    """Releases of a local plan, of two patterns each of which has all persons at one place.

    Attributes
    ----------
    run : Whole or Measure
        A release, with secret randomness, or the measurement alone.
    pair : tuple of PointPattern
    """

    run: Whole | Measure
    pair: tuple[PointPattern, PointPattern]

    @classmethod
    def of(cls, thing: Any) -> Self | None:
        """Test target of a plan or its measurement; None where there is none, or two rounds of too many persons."""
        held = getattr(thing, "statistic", thing)
        if isinstance(held, LocalPlan | UniformGridPlan):
            cells = (held.randomizer if isinstance(held, LocalPlan) else held.randomizers[0]).inputs
            held = replace(held, n=min(held.n, MOST, max(FEW, WORK // cells)))
        elif not isinstance(held, AdaptiveGridPlan) or held.n > MOST:
            return None
        places = uniform_places(held.domain, 2, np.random.default_rng(SEED))
        first, second = (PointPattern.at(np.tile(place, (held.n, 1)), held.domain) for place in places)
        return cls(Whole(replace(thing, statistic=held)) if isinstance(thing, Plan) else Measure(held), (first, second))

    @property
    def opened(self) -> bool:
        """Whether releases are saved and opened again; certificates of two rounds tell what the first led to."""
        plan = self.run.plan
        return not isinstance(plan, AdaptiveGridPlan) and len(plan.mesh.element_measure) <= MOST_CELLS

    def misfits(self, chance: float) -> dict[str, float]:
        """The oddest count and the logarithm of the probability, at most, of one as odd, if that is below the chance.

        Parameters
        ----------
        chance : float
            Probability, at most, that counts of the stated law show any.
        """
        tails = np.concatenate([log_tails(*each) for pattern in self.pair for each in self._counts(pattern)])
        # Either tail of every count, of both releases.
        log_chance = float(tails.min()) + math.log(2 * len(tails))
        return {"law of the counts": log_chance} if log_chance < math.log(chance) else {}

    def _counts(self, pattern: PointPattern) -> Iterator[tuple[Ints, int, Floats]]:
        """Counts of each round, with the number of reports and the probability that one of them counts."""
        plan, released, place = self.run.plan, self.run(pattern).lattice, pattern.positions[:1]
        if isinstance(plan, LocalPlan):
            value = int(plan.element_values[plan.mesh.locate(place)][0])
            yield _with_law(plan.randomizer, released, value, plan.n)
            return
        xy = np.asarray(plan.domain.coordinates(place))
        rounds, numbers = [(plan.first, plan.randomizers[0])], [plan.n]
        if isinstance(plan, AdaptiveGridPlan):
            rounds.append(plan.second_round(plan.parts(released)[0]))
            numbers = [*plan.reports]
        for (grid, clients), counts, n in zip(rounds, plan.parts(released), numbers, strict=True):
            yield _with_law(clients, counts, int(grid.locate(xy)[0]), n)


def log_tails(counts: Ints, n: int, chances: Floats) -> Floats:
    """(m,) Chernoff's bounds on the logarithm of a binomial tail, that on the side of the count (m,)."""
    shares, p = counts / n, np.clip(chances, LEAST, NEXT_TO_ONE)
    return np.asarray(-n * (rel_entr(shares, p) + rel_entr(1 - shares, 1 - p)))


def _with_law(clients: Randomizer, counts: Ints, value: int, n: int) -> tuple[Ints, int, Floats]:
    """Counts and law of n reports, all about one value: supports of the values, by an oracle."""
    counts = clients.counts_of(counts, n)
    if isinstance(clients, FrequencyOracle):
        chances = np.full(clients.inputs, float(clients.q))
        chances[value] = float(clients.p)
        return clients.supports(counts), n, chances
    if isinstance(clients, SubsetExponential):
        return counts, n, np.append(clients.hits[value], clients.empty[value])
    weights = cast("AreaRandomizer | SquareWave", clients).column(value)
    # A report counts once, so those of the likelier cells together are binomial, too: less is lost in many cells.
    near = weights > weights.min()
    return np.append(counts, counts[near].sum()), n, np.append(weights, weights[near].sum()) / TOTAL
