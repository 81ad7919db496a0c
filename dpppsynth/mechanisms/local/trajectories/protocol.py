"""LDPTrace's rounds: the clients' reports, their counts, and both rounds within one budget.

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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpppsynth.core.arguments import elements, flag, instance, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer, fingerprint
from dpppsynth.mechanisms.local.randomizers.unary import OptimizedUnary
from dpppsynth.mechanisms.local.trajectories.paths import MOST_SIDE, MOVES, GridTrajectories
from dpppsynth.mechanisms.local.trajectories.walks import TraceModel
from dpppsynth.spatial.mesh import Floats, Ints

# Longest trajectory that a round may be about.
LONGEST = 1000
# Words of reports held in memory at once.
CHUNK = 2**20


class RoundPart(NamedTuple):
    """Reports of one kind that every client makes in a round: their subject, number and law."""

    name: str
    times: int
    randomizer: OptimizedUnary


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundLaw(Randomizer):
    """All reports of a client in one round, side by side in a row; `TraceProtocol` makes one for each round.

    Counts are those of all parts, one after the other.

    Attributes
    ----------
    epsilon : float
        Of each report; `spent` is that of the row.
    cells : int
    longest : int
        Longer trajectories count as that long in the first round and are cut to it in the second.
    moving : bool
        False in the first round, about lengths.
    """

    cells: int
    longest: int
    moving: bool
    kind: ClassVar[str] = "trace-round"

    def __post_init__(self) -> None:
        # Plain numbers, so that equal rounds have equal fingerprints.
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_SIDE))
        object.__setattr__(self, "longest", whole("longest", self.longest, 1, most=LONGEST))
        object.__setattr__(self, "moving", flag("moving", self.moving))
        # The parts refuse what integers cannot express.
        super().__post_init__()

    def __repr__(self) -> str:
        return f"RoundLaw({self.cells} x {self.cells} cells, up to {self.longest} long, epsilon={self.epsilon:g})"

    @cached_property
    def parts(self) -> tuple[RoundPart, ...]:
        """The kinds of reports, none of them empty."""
        if not self.moving:
            return (RoundPart("length", 1, OptimizedUnary(epsilon=self.epsilon, domain=self.longest)),)
        place = OptimizedUnary(epsilon=self.epsilon, domain=self.cells**2)
        parts = (RoundPart("start", 1, place), RoundPart("end", 1, place))
        if self.longest == 1:
            return parts
        return *parts, RoundPart(
            "moves", self.longest - 1, OptimizedUnary(epsilon=self.epsilon, domain=self.no_move + 1)
        )

    @property
    def no_move(self) -> int:
        """The value of a report about a move that the trajectory does not have."""
        return len(MOVES) * self.cells**2

    @property
    def size(self) -> int:
        return sum(each.randomizer.size for each in self.parts)

    @cached_property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the words of all reports."""
        return tuple(
            f"{part.name}_{k}_{word}" if part.times > 1 else f"{part.name}_{word}"
            for part in self.parts
            for k in range(part.times)
            for word in part.randomizer.columns
        )

    @property
    def total(self) -> Fraction:
        """Epsilon of all reports of one client, from their integer weights."""
        return sum((each.times * Fraction(each.randomizer.spent) for each in self.parts), Fraction(0))

    @property
    def spent(self) -> float:
        nearest = float(self.total)
        return nearest if Fraction(nearest) >= self.total else math.nextafter(nearest, math.inf)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits that stand for the round in reports and counts."""
        return fingerprint(self.parameters())

    def about(self, trajectories: GridTrajectories) -> dict[str, Ints]:
        """(T, times) values that every client reports about, by part; as sensitive as the trajectories."""
        grid = instance("trajectories", trajectories, GridTrajectories).cells
        if grid != self.cells:
            msg = f"trajectories: are on a grid of {grid} by {grid} cells, the round's has {self.cells}."
            raise InputError(msg)
        walks = trajectories.mobility(self.longest)
        if not self.moving:
            return {"length": walks.lengths[:, None] - 1}
        first, last = walks.values[walks.offsets[:-1]], walks.values[walks.offsets[1:] - 1]
        return {"start": first[:, None], "end": last[:, None], "moves": self._moves(walks)}

    def _moves(self, walks: GridTrajectories) -> Ints:
        """(T, longest - 1) moves `cell * 8 + direction`, filled up with `no_move`."""
        moves = np.full((len(walks), self.longest - 1), self.no_move)
        place = np.column_stack(np.divmod(walks.values, self.cells))
        # The fifth of the 3 by 3 cells around a cell is the cell itself, which is no direction.
        around = (np.diff(place, axis=0) + 1) @ (3, 1)
        code = walks.values[:-1] * len(MOVES) + around - (around > 4)
        inner = np.ones(len(code), dtype=bool)
        inner[walks.offsets[1:-1] - 1] = False
        moves[np.arange(self.longest - 1) < walks.lengths[:, None] - 1] = code[inner]
        return moves

    def draw(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(n, columns) reports of clients with the given values (n, reports), those of all parts side by side."""
        ends = np.cumsum([each.times for each in self.parts])
        asked = zip(self.parts, np.split(values, ends[:-1], axis=1), strict=True)
        drawn = [part.randomizer.draw(about.ravel(), rng) for part, about in asked]
        return np.concatenate([words.reshape(len(values), -1) for words in drawn], axis=1)

    def words(self, reports: Ints) -> dict[str, Ints]:
        """(n * times, words) reports by part, from rows (n, columns)."""
        ends = np.cumsum([each.times * len(each.randomizer.columns) for each in self.parts])
        each = zip(self.parts, np.split(self.rows(reports), ends[:-1], axis=1), strict=True)
        return {part.name: rows.reshape(len(rows) * part.times, rows.shape[1] // part.times) for part, rows in each}

    def count(self, reports: Ints) -> Ints:
        words = self.words(reports)
        return np.concatenate([part.randomizer.count(words[part.name]) for part in self.parts])

    def by_part(self, counts: Ints) -> dict[str, Ints]:
        """Counts (size,) of each part."""
        ends = np.cumsum([each.randomizer.size for each in self.parts])
        return {part.name: of for part, of in zip(self.parts, np.split(counts, ends[:-1]), strict=True)}

    def counts_of(self, counts: Any, n: int) -> Ints:
        array, n = plain_array(counts), whole("n", n, 1, most=2**53)
        if array is None or array.shape != (self.size,):
            msg = f"counts: must be {self.size} whole numbers, as this round counts them."
            raise InputError(msg)
        found = self.by_part(array)
        checked = {part.name: part.randomizer.tallies(found[part.name]) for part in self.parts}
        for part in self.parts:
            if checked[part.name].max() > n * part.times:
                msg = f"counts: those of {part.name!r} exceed the number of reports."
                raise InputError(msg)
        return np.concatenate(list(checked.values()))

    def tally_about(self, about: Mapping[str, Ints], rng: np.random.Generator, *, fast: bool = False) -> Ints:
        """(size,) counts of the reports about such values as `about` gives, with little memory."""
        flag("fast", fast)
        found = []
        for part in self.parts:
            law, values = part.randomizer, about[part.name].ravel()
            few = CHUNK // len(law.columns)
            found.append(law.fast_tally(values, rng) if fast else law.tally(values, rng, most=few))
        return np.concatenate(found)


class TraceCounts(NamedTuple):
    """Counts (size,) of one round, and the number of clients who were counted."""

    law: RoundLaw
    values: Ints
    n: int

    def totals(self, name: str) -> Floats:
        """(domain,) estimated numbers of reports about each value of a part, negative ones 0."""
        part = next(each for each in self.law.parts if each.name == name)
        reports = self.n * part.times
        counts = self.law.by_part(self.values)[name]
        found: Floats = np.maximum(part.randomizer.frequencies(counts, reports), 0) * reports
        return found


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
    >>> spent = protocol.first.total + protocol.second(20).total
    >>> 2 * (1 - 1e-9) <= spent <= 2
    True
    """

    epsilon: float
    cells: int
    max_length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        object.__setattr__(self, "max_length", whole("max_length", self.max_length, 1, most=LONGEST))
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_SIDE))
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
    def first(self) -> RoundLaw:
        """The round about lengths."""
        return RoundLaw(
            cells=self.cells,
            longest=self.max_length,
            epsilon=_below(Fraction(self.epsilon) * FOR_LENGTH),
            moving=False,
        )

    def second(self, longest: int) -> RoundLaw:
        """The round about cells and moves of trajectories cut to the length that `longest` found."""
        longest = whole("longest", longest, 1, most=self.max_length)
        share = Fraction(self.epsilon) * (1 - FOR_LENGTH) / (longest + 1)
        return RoundLaw(cells=self.cells, longest=longest, epsilon=_below(share), moving=True)

    def longest(self, lengths: TraceCounts) -> int:
        """The smallest length that holds 90 % of the estimated lengths; it is announced to all clients."""
        reached = np.cumsum(self._lengths(lengths))
        return int(np.searchsorted(reached, KEPT * reached[-1])) + 1

    def announced(self, lengths: TraceCounts) -> RoundLaw:
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
        lengths = _answers(self.first, np.resize(numbers, size), persons[0])
        second = self.announced(lengths)
        said = second.longest if longest is None else whole("longest", longest, 1, most=self.max_length)
        if (len(numbers), said) != (size + second.size, second.longest):
            msg = "statistic: its first counts lead to another second round; the file is not whole."
            raise InputError(msg)
        return lengths, _answers(second, numbers[size:], persons[1])

    def _lengths(self, lengths: TraceCounts) -> Floats:
        """(max_length,) estimated numbers of trajectories of each length; even where noise left nothing."""
        totals = lengths.totals("length")
        return totals if totals.any() else np.ones(self.max_length)

    def model(
        self, lengths: TraceCounts, mobility: TraceCounts, *, n: int | None = None, inside: Any = None
    ) -> TraceModel:
        """The model estimated from the counts of the two rounds.

        Parameters
        ----------
        lengths, mobility : TraceCounts
            Of the first and the second round.
        n : int, optional
            Trajectories that the model stands for; as many as reported in the second round unless given.
        inside : (cells**2,) array of bool, optional
            Public: cells where a trajectory can start and end at all. Walks may still pass through the others, as
            straight lines between two places do.
        """
        second = mobility.law
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


def _answers(law: RoundLaw, counts: Ints, n: int) -> TraceCounts:
    """Counts of a round, checked to be possible for n clients."""
    return TraceCounts(law, law.counts_of(counts, n), n)


def _below(share: Fraction) -> float:
    """The largest float that does not exceed the share."""
    nearest = float(share)
    return nearest if Fraction(nearest) <= share else float(np.nextafter(nearest, 0))
