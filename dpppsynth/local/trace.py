"""LDPTrace: trajectories under local differential privacy, learned from starts, ends, lengths and moves.

Two rounds of unary reports. In the first every client reports the length of their trajectory; the aggregator announces
a length that 90 % of them do not exceed, as far as it can tell. In the second every client reports the first cell, the
last cell and every move of their trajectory, cut to that length. What a client spends does not depend on the
trajectory: `epsilon / 10` in the first round, and each of the `longest + 1` reports of the second an equal share of the
rest (docs/theory/local.md).

The number of reports would tell a trajectory's length, so every client makes `longest - 1` reports of moves, and those
without as many moves fill up with a value of its own, "no move". As that is one of the `8 d^2 + 1` values of a unary
randomizer, its bound covers it: nothing else needs a proof. Leaving out its bit is postprocessing, so reporting a
vector without any one would be as private.

Source: Du, Hu, Zhang, Fang, Chen, Zheng and Gao, LDPTrace: locally differentially private trajectory synthesis,
PVLDB 16 (2023). Every move has a share of the budget to itself, there and here; the published code splits otherwise.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpppsynth.arguments import instance, positive, whole
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.local.grid_trajectories import MOST_CELLS, MOVES, GridTrajectories
from dpppsynth.local.trace_model import TraceModel
from dpppsynth.local.trace_rounds import LONGEST, TraceCounts, TraceReports, TraceRound
from dpppsynth.mesh import Floats
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.local import NOTHING_ELSE
from dpppsynth.privacy.relations import Local
from dpppsynth.randomness import RngLike, generator

__all__ = ["LDPTrace", "TraceCounts", "TraceReports", "TraceRound"]

# Share of the budget for lengths, and of the clients whose trajectories are not cut.
FOR_LENGTH, KEPT = Fraction(1, 10), 0.9
ASSUMED = (
    "Grid, longest length and budget were chosen without looking at any trajectory.",
    "A person's location is here their whole trajectory: they have one, and its length is protected with it.",
    "A person reports once in either round, from secret random bits, and no report is ever drawn again.",
    NOTHING_ELSE,
    ONE_RELEASE,
)


@dataclass(frozen=True, kw_only=True)
class LDPTrace:
    """Synthetic trajectories from clients who randomise what they tell about theirs.

    Parameters
    ----------
    epsilon : float
        Budget of a trajectory: of a person, who has one.
    cells : int
        Cells along each side of the grid.
    max_length : int
        Public: longer trajectories are cut to it.

    Examples
    --------
    >>> mechanism = LDPTrace(epsilon=2.0, cells=3, max_length=20)
    >>> walks = GridTrajectories(3, np.tile([0, 1, 4, 8], 500), 4 * np.arange(501))
    >>> model = mechanism.estimate(*mechanism.simulate(walks, rng=1))
    >>> model.expected_visits.shape, len(model.synthesize(7, rng=1))
    ((3, 3), 7)
    """

    epsilon: float
    cells: int
    max_length: int = 200

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        whole("max_length", self.max_length, 1, most=LONGEST)
        whole("cells", self.cells, 1, most=MOST_CELLS)
        try:
            # The largest and the smallest share of a report, before anybody reports.
            for longest in (1, self.max_length):
                self._require(self.second(longest))
        except InputError:
            least = (self.max_length + 1) / 5000
            msg = f"epsilon: {self.epsilon:g} is split among up to {self.max_length + 2} reports, beyond what integer "
            raise InputError(msg + f"weights can express; take {least:g} to 40, or a smaller max_length.") from None

    @property
    def first(self) -> TraceRound:
        """The round about lengths."""
        return TraceRound(self.cells, self.max_length, _below(Fraction(self.epsilon) * FOR_LENGTH), False)

    def second(self, longest: int) -> TraceRound:
        """The round about cells and moves of trajectories cut to the length that `longest` found."""
        longest = whole("longest", longest, 1, most=self.max_length)
        share = Fraction(self.epsilon) * (1 - FOR_LENGTH) / (longest + 1)
        return TraceRound(self.cells, longest, _below(share), True)

    def _require(self, second: TraceRound) -> None:
        if self.first.spent + second.spent > Fraction(self.epsilon):
            msg = f"epsilon: the rounds spend more than {self.epsilon:g}; this is a defect of their split."
            raise PrivacyCheckError(msg)

    def longest(self, lengths: TraceCounts) -> int:
        """The smallest length that holds 90 % of the estimated lengths; it is announced to all clients."""
        return self._shortest(self._lengths(lengths))

    def _shortest(self, totals: Floats) -> int:
        reached = np.cumsum(totals)
        return int(np.searchsorted(reached, KEPT * reached[-1])) + 1

    def _lengths(self, lengths: TraceCounts) -> Floats:
        """(max_length,) estimated numbers of trajectories of each length; even where noise left nothing."""
        if instance("lengths", lengths, TraceCounts).round != self.first:
            msg = "lengths: are counts of another round; those of `first` are needed."
            raise InputError(msg)
        totals = lengths.totals("length")
        return totals if totals.any() else np.ones(self.max_length)

    def simulate(
        self, trajectories: GridTrajectories, rng: RngLike = None, *, fast: bool = False
    ) -> tuple[TraceCounts, TraceCounts]:
        """Counts of both rounds with these clients; arguments as of `TraceRound.simulate`."""
        source = None if rng is None else generator(rng)
        lengths = self.first.simulate(trajectories, source, fast=fast)
        second = self.second(self.longest(lengths))
        self._require(second)
        return lengths, second.simulate(trajectories, source, fast=fast)

    def estimate(self, lengths: TraceCounts, mobility: TraceCounts) -> TraceModel:
        """The model behind the counts of the two rounds.

        Raises
        ------
        InputError
            When the second round is not the one that the first one's counts ask for.
        """
        totals = self._lengths(lengths)
        second = instance("mobility", mobility, TraceCounts).round
        if second != self.second(self._shortest(totals)):
            msg = "mobility: are counts of another round; `second(longest(lengths))` is the one that was announced."
            raise InputError(msg)
        moves = np.zeros((self.cells**2, len(MOVES)))
        if second.longest > 1:
            moves = mobility.totals("moves")[: second.no_move].reshape(moves.shape)
        return TraceModel(
            cells=self.cells,
            n=mobility.n,
            starts=mobility.totals("start"),
            lengths=totals,
            moves=moves,
            ends=mobility.totals("end"),
        )

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon for a person's whole trajectory, its length included."""
        return Guarantee(Local(), PureDP(self.epsilon), "Theorem T (trajectories, local)", ASSUMED)


def _below(share: Fraction) -> float:
    """The largest float that does not exceed the share."""
    nearest = float(share)
    return nearest if Fraction(nearest) <= share else float(np.nextafter(nearest, 0))
