"""Audits of whole releases of a local plan: binomial tests of the counts of reports.

Trials run one client. A plan that counts anything else than what clients send, true cells say, shows in what it
releases: where all persons have one value, every count is binomial.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from scipy.special import rel_entr

from dpppsynth.contract.audits.moves import uniform_places
from dpppsynth.contract.audits.plan_audit import AuditRun
from dpppsynth.mechanisms.local.randomizers.area_law import AreaRandomizer
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential
from dpppsynth.mechanisms.local.randomizers.weights import TOTAL
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

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
    """Releases of a local plan, of two patterns each of which has all persons at one place.

    Attributes
    ----------
    run : AuditRun
        A release, with secret randomness, or the measurement alone.
    pair : tuple of PointPattern
    rounds : callable
        From released counts and the place (1, 2) to the counts of each round.
    opened : bool
        Whether releases are saved and opened again.
    """

    run: AuditRun
    pair: tuple[PointPattern, PointPattern]
    rounds: Callable[[Ints, Floats], Iterable[RoundCounts]]
    opened: bool

    @classmethod
    def of(
        cls, run: AuditRun, rounds: Callable[[Ints, Floats], Iterable[RoundCounts]], *, opened: bool
    ) -> "ReportCounts":
        """Releases of two patterns with as many persons as the run's plan has."""
        domain, n = run.plan.domain, run.plan.n
        places = uniform_places(domain, 2, np.random.default_rng(SEED))
        first, second = (PointPattern.at(np.tile(place, (n, 1)), domain) for place in places)
        return cls(run, (first, second), rounds, opened)

    def misfits(self, chance: float) -> dict[str, float]:
        """The oddest count and the logarithm of the probability, at most, of one as odd, if that is below the chance.

        Parameters
        ----------
        chance : float
            Probability, at most, that counts of the stated law show any.
        """
        tails = [log_tails(*_with_law(counts)) for pattern in self.pair for counts in self._counts(pattern)]
        # Either tail of every count, of both releases.
        log_chance = float(np.concatenate(tails).min()) + math.log(2 * sum(map(len, tails)))
        return {"law of the counts": log_chance} if log_chance < math.log(chance) else {}

    def _counts(self, pattern: PointPattern) -> Iterable[RoundCounts]:
        return self.rounds(self.run(pattern).lattice, pattern.positions[:1])


def log_tails(counts: Ints, n: int, chances: Floats) -> Floats:
    """(m,) Chernoff's bounds on the logarithm of a binomial tail, that on the side of the count (m,)."""
    shares, p = counts / n, np.clip(chances, LEAST, NEXT_TO_ONE)
    return np.asarray(-n * (rel_entr(shares, p) + rel_entr(1 - shares, 1 - p)))


def _with_law(released: RoundCounts) -> tuple[Ints, int, Floats]:
    """Counts, the number of reports, and the probability that one of them counts: supports of values, by an oracle."""
    clients, counts, value, n = released
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
