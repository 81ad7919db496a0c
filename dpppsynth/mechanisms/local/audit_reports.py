"""Audits of whole releases of a local plan: binomial tests of the counts of reports.

Trials run one client. A plan that counts anything else than what clients send, true cells say, shows in what it
releases: where all persons have one value, every count is binomial.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from dpppsynth.contract.audits.moves import uniform_places
from dpppsynth.contract.audits.statistic_audit import AuditRun
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
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
        cls, run: AuditRun, rounds: Callable[[Ints, Floats], Iterable[RoundCounts]], *, n: int, opened: bool
    ) -> "ReportCounts":
        """Releases of two patterns of n persons."""
        domain = run.plan.domain
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
