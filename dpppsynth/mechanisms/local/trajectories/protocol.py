"""The LDPTrace protocol: two rounds of reports about a trajectory, and the model estimated from them.

In the first round every client reports the length of their trajectory; the aggregator announces a length that 90 % of
them do not exceed, as far as it can tell. In the second every client reports the first cell, the last cell and every
move of their trajectory, cut to that length. What a client spends does not depend on the trajectory: `epsilon / 10` in
the first round, and each of the `longest + 1` reports of the second an equal share of the rest (docs/theory/local.md).

The number of reports would tell a trajectory's length, so every client makes `longest - 1` reports of moves, and those
without as many moves fill up with a value of its own, "no move". As that is one of the `8 d^2 + 1` values of a unary
randomizer, its bound covers it: nothing else needs a proof. Leaving out its bit is postprocessing, so reporting a
vector without any one would be as private.

Source: Du, Hu, Zhang, Fang, Chen, Zheng and Gao, LDPTrace: locally differentially private trajectory synthesis,
PVLDB 16 (2023). Every move has a share of the budget to itself, there and here; the published code splits otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.arguments import elements, instance, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.trajectories.grid_trajectories import MOVES
from dpppsynth.mechanisms.local.trajectories.model import TraceModel
from dpppsynth.mechanisms.local.trajectories.rounds import LONGEST, TraceCounts, TraceRound
from dpppsynth.spatial.mesh import Floats, Ints

# Share of the budget for lengths, and of the clients whose trajectories are not cut.
FOR_LENGTH, KEPT = Fraction(1, 10), 0.9
# Up to it integers express the share of a trajectory of one cell.
LARGEST_EPSILON = 40


@dataclass(frozen=True, kw_only=True)
class TraceProtocol:
    """Split of a budget between two rounds, and the second round as a function of the first; public numbers alone.

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
    >>> protocol = TraceProtocol(epsilon=2.0, cells=3, max_length=20)
    >>> spent = protocol.first.spent + protocol.second(20).spent
    >>> 2 * (1 - 1e-9) <= spent <= 2
    True
    """

    epsilon: float
    cells: int
    max_length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        object.__setattr__(self, "max_length", whole("max_length", self.max_length, 1, most=LONGEST))
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=grid_limits.TRAJECTORIES_SIDE))
        try:
            # The largest and the smallest share of a report, before anybody reports.
            for longest in (1, self.max_length):
                self.second(longest)
            self.first  # noqa: B018
        except InputError:
            least = (self.max_length + 1) / 5000
            msg = f"epsilon: {self.epsilon:g} is split among up to {self.max_length + 2} reports, beyond what integer "
            # Shorter trajectories have larger shares, which help where shares are too small.
            other = ", or a smaller max_length" if self.epsilon < least else ""
            raise InputError(msg + f"weights can express; take {least:g} to {LARGEST_EPSILON}{other}.") from None

    @cached_property
    def first(self) -> TraceRound:
        """The round about lengths."""
        return TraceRound(self.cells, self.max_length, _below(Fraction(self.epsilon) * FOR_LENGTH), False)

    def second(self, longest: int) -> TraceRound:
        """The round about cells and moves of trajectories cut to the length that `longest` found."""
        longest = whole("longest", longest, 1, most=self.max_length)
        share = Fraction(self.epsilon) * (1 - FOR_LENGTH) / (longest + 1)
        return TraceRound(self.cells, longest, _below(share), True)

    def longest(self, lengths: TraceCounts) -> int:
        """The smallest length that holds 90 % of the estimated lengths; it is announced to all clients."""
        reached = np.cumsum(self._lengths(lengths))
        return int(np.searchsorted(reached, KEPT * reached[-1])) + 1

    def announced(self, lengths: TraceCounts) -> TraceRound:
        """The second round that follows from the counts of the first."""
        return self.second(self.longest(lengths))

    def counts(self, flat: Ints, clients: Sequence[int], longest: int | None = None) -> tuple[TraceCounts, TraceCounts]:
        """Counts of both rounds, from those of all parts one after the other.

        Parameters
        ----------
        flat : (first.size + second.size,) array of int
        clients : (int, int)
            Numbers of persons who reported in the first and in the second round.
        longest : int, optional
            Length that is said to have been announced.

        Raises
        ------
        InputError
            For numbers that are no counts, and where the first ones lead to another second round.
        """
        numbers, persons = plain_array(flat), elements(clients) or ()
        if numbers is None or numbers.ndim != 1 or len(persons) != 2:
            msg = "flat: needs the counts of both rounds one after the other, and clients their numbers of persons."
            raise InputError(msg)
        size = self.first.size
        # Fewer numbers than the first round has are refused with the others below.
        lengths = TraceCounts.of(self.first, persons[0], np.resize(numbers, size))
        second = self.announced(lengths)
        said = second.longest if longest is None else whole("longest", longest, 1, most=self.max_length)
        if (len(numbers), said) != (size + second.size, second.longest):
            msg = "statistic: its first counts lead to another second round; the file is not whole."
            raise InputError(msg)
        return lengths, TraceCounts.of(second, persons[1], numbers[size:])

    def _lengths(self, lengths: TraceCounts) -> Floats:
        """(max_length,) estimated numbers of trajectories of each length; even where noise left nothing."""
        if instance("lengths", lengths, TraceCounts).round != self.first:
            msg = "lengths: are counts of another round; those of `first` are needed."
            raise InputError(msg)
        totals = lengths.totals("length")
        return totals if totals.any() else np.ones(self.max_length)

    def model(
        self, lengths: TraceCounts, mobility: TraceCounts, *, n: int | None = None, inside: Any = None
    ) -> TraceModel:
        """The model behind the counts of the two rounds.

        Parameters
        ----------
        lengths, mobility : TraceCounts
            Of the first and the second round.
        n : int, optional
            Trajectories that the model stands for; as many as reported in the second round unless given.
        inside : (cells**2,) array of bool, optional
            Public: cells where a trajectory can start and end at all. Walks may still pass through the others, as
            straight lines between two places do.

        Raises
        ------
        InputError
            When the second round is not the one that the first one's counts ask for.
        """
        second = instance("mobility", mobility, TraceCounts).round
        if second != self.announced(lengths):
            msg = "mobility: are counts of another round; `second(longest(lengths))` is the one that was announced."
            raise InputError(msg)
        moves = np.zeros((self.cells**2, len(MOVES)))
        if second.longest > 1:
            moves = mobility.totals("moves")[: second.no_move].reshape(moves.shape)
        possible = np.ones(self.cells**2) if inside is None else np.asarray(inside, dtype=float)
        starts = possible * mobility.totals("start")
        return TraceModel(
            cells=self.cells,
            n=mobility.n if n is None else n,
            starts=starts if starts.any() else possible,
            lengths=self._lengths(lengths),
            moves=moves,
            ends=possible * mobility.totals("end"),
        )


def _below(share: Fraction) -> float:
    """The largest float that does not exceed the share."""
    nearest = float(share)
    return nearest if Fraction(nearest) <= share else float(np.nextafter(nearest, 0))
