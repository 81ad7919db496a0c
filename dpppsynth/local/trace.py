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

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from dpppsynth.arguments import elements, entries, flag, instance, one_of, plain_array, positive, whole
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.local.trace_model import TraceModel
from dpppsynth.local.trajectories import MOST_CELLS, MOVES, GridTrajectories
from dpppsynth.mesh import Floats, Ints
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.local import NOTHING_ELSE
from dpppsynth.privacy.relations import Local
from dpppsynth.randomizers import OptimizedUnary
from dpppsynth.randomness import RngLike, generator

# Share of the budget for lengths, and of the clients whose trajectories are not cut.
FOR_LENGTH, KEPT = Fraction(1, 10), 0.9
LONGEST = 1000
# Words of reports held in memory at once.
CHUNK = 2**20
ASSUMED = (
    "Grid, longest length and budget were chosen without looking at any trajectory.",
    "A person's location is here their whole trajectory: they have one, and its length is protected with it.",
    "A person reports once in either round, from secret random bits, and no report is ever drawn again.",
    NOTHING_ELSE,
    ONE_RELEASE,
)


class Part(NamedTuple):
    """Reports of one kind that every client makes in a round: what they are about, how many, and their law."""

    name: str
    times: int
    randomizer: OptimizedUnary


@dataclass(frozen=True)
class TraceRound:
    """What every client is asked in one round; `LDPTrace.first` and `LDPTrace.second(longest)` make it.

    Attributes
    ----------
    cells : int
    longest : int
        Longer trajectories count as that long in the first round and are cut to it in the second.
    epsilon : float
        Of each report.
    moving : bool
        False in the first round, about lengths.

    Examples
    --------
    >>> first = LDPTrace(epsilon=2.0, cells=3, max_length=20).first
    >>> walks = GridTrajectories(3, [0, 1, 4, 8, 7], [0, 3, 5])
    >>> one, other = (first.clients(walks.part(k, k + 1), rng=k) for k in (0, 1))
    >>> (first.aggregate([one]) + first.aggregate([other.to_json()])).n
    2
    """

    cells: int
    longest: int
    epsilon: float
    moving: bool

    def __post_init__(self) -> None:
        whole("cells", self.cells, 1, most=MOST_CELLS)
        whole("longest", self.longest, 1, most=LONGEST)
        flag("moving", self.moving)
        self.parts  # noqa: B018 - refuses what integers cannot express

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The kinds of reports, none of them empty."""
        if not self.moving:
            return (Part("length", 1, OptimizedUnary(epsilon=self.epsilon, domain=self.longest)),)
        place = OptimizedUnary(epsilon=self.epsilon, domain=self.cells**2)
        parts = (Part("start", 1, place), Part("end", 1, place))
        if self.longest == 1:
            return parts
        return *parts, Part("moves", self.longest - 1, OptimizedUnary(epsilon=self.epsilon, domain=self.no_move + 1))

    @property
    def no_move(self) -> int:
        """The value of a report about a move that the trajectory does not have."""
        return len(MOVES) * self.cells**2

    @property
    def spent(self) -> Fraction:
        """Epsilon of all reports of one client, from their integer weights."""
        return sum((each.times * Fraction(each.randomizer.spent) for each in self.parts), Fraction(0))

    def values(self, trajectories: GridTrajectories) -> dict[str, Ints]:
        """(T, times) what the reports of every client are about; as sensitive as the trajectories."""
        grid = instance("trajectories", trajectories, GridTrajectories, "Trajectories.on_grid makes them").cells
        if grid != self.cells:
            msg = f"trajectories: are on a grid of {grid} by {grid} cells, the round's has {self.cells}."
            raise InputError(msg)
        walks = trajectories.mobility()
        if not self.moving:
            return {"length": np.minimum(walks.lengths, self.longest)[:, None] - 1}
        walks = walks.truncated(self.longest)
        first, last = walks.values[walks.offsets[:-1]], walks.values[walks.offsets[1:] - 1]
        return {"start": first[:, None], "end": last[:, None], "moves": self._moves(walks)}

    def _moves(self, walks: GridTrajectories) -> Ints:
        """(T, longest - 1) moves `cell * 8 + direction`, filled up with `no_move`."""
        moves = np.full((len(walks), self.longest - 1), self.no_move)
        place = np.column_stack(np.divmod(walks.values, self.cells))
        # Of the 3 by 3 cells around a cell it is the fifth, which is no direction.
        around = (np.diff(place, axis=0) + 1) @ (3, 1)
        code = walks.values[:-1] * len(MOVES) + around - (around > 4)
        inner = np.ones(len(code), dtype=bool)
        inner[walks.offsets[1:-1] - 1] = False
        moves[np.arange(self.longest - 1) < walks.lengths[:, None] - 1] = code[inner]
        return moves

    def clients(self, trajectories: GridTrajectories, rng: RngLike = None) -> "TraceReports":
        """Reports of clients, each from their own trajectory.

        Parameters
        ----------
        trajectories : GridTrajectories
            For a single client, a single one.
        rng : None, int or Generator
            None: secret bits. Anything else makes the reports reproducible and therefore not private.
        """
        values, source = self.values(trajectories), generator(rng)
        words = {each.name: each.randomizer.draw(values[each.name].ravel(), source) for each in self.parts}
        return TraceReports(self, words, rng is not None)

    def aggregate(self, reports: Iterable[Any]) -> "TraceCounts":
        """Counts of reports: `TraceReports`, or what their `to_dict` or `to_json` gave.

        Raises
        ------
        InputError
            For what no client sends, or no reports at all.
        """
        if isinstance(reports, TraceReports):
            reports = (reports,)
        parts = elements(reports)
        if not parts:
            msg = "reports: needs a sequence of at least one client's reports."
            raise InputError(msg)
        total = None
        for each in parts:
            counts = self._count(each if isinstance(each, TraceReports) else TraceReports.read(self, each))
            total = counts if total is None else total + counts
        return total  # type: ignore[return-value]

    def _count(self, reports: "TraceReports") -> "TraceCounts":
        if reports.round != self:
            msg = "reports: were made for another round; each round counts its own."
            raise InputError(msg)
        counts = {each.name: each.randomizer.count(reports.words[each.name]) for each in self.parts}
        return TraceCounts(self, reports.n, counts, reports.seeded)

    def simulate(self, trajectories: GridTrajectories, rng: RngLike = None, *, fast: bool = False) -> "TraceCounts":
        """Counts of what so many clients would report, with little memory.

        Parameters
        ----------
        trajectories : GridTrajectories
        rng : None, int or Generator
        fast : bool
            Draw the counts themselves, from binomial distributions in floating point: for studies. The law is the same
            to rounding, but no integer weights certify it, so the counts are marked as seeded.
        """
        values, source = self.values(trajectories), generator(rng)
        counts = {}
        for part in self.parts:
            draw = _fast if fast else _unary
            counts[part.name] = draw(part.randomizer, values[part.name].ravel(), source)
        return TraceCounts(self, len(trajectories), counts, fast or rng is not None)


def _unary(randomizer: OptimizedUnary, values: Ints, rng: np.random.Generator) -> Ints:
    """(domain,) counts of the clients' own draws, some of them at a time."""
    size = max(1, CHUNK // len(randomizer.columns))
    counts = (randomizer.count(randomizer.draw(part, rng)) for part in _chunks(values, size))
    return sum(counts, np.zeros(randomizer.size, dtype=np.int64))


def _chunks(values: Ints, size: int) -> Iterator[Ints]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _fast(randomizer: OptimizedUnary, values: Ints, rng: np.random.Generator) -> Ints:
    """(domain,) counts drawn themselves."""
    return randomizer.fast_counts(np.bincount(values, minlength=randomizer.domain), rng)


@dataclass(frozen=True, eq=False, repr=False)
class TraceReports:
    """Reports of some clients of one round; they may be shown to anybody.

    Attributes
    ----------
    round : TraceRound
    words : mapping of str to (n * times, words) array of int
        By part: the reports of the first client, then those of the second.
    seeded : bool
        True when the randomness can be reproduced: then nothing is private.
    """

    round: TraceRound
    words: Mapping[str, Ints]
    seeded: bool = False

    def __post_init__(self) -> None:
        instance("round", self.round, TraceRound)
        given = entries("words", self.words, [each.name for each in self.round.parts])
        flag("seeded", self.seeded)
        words = {each.name: each.randomizer.rows(given[each.name]) for each in self.round.parts}
        object.__setattr__(self, "words", words)
        for each in self.round.parts:
            if len(words[each.name]) != self.n * each.times:
                msg = f"words: {each.name!r} needs {each.times} reports of every client."
                raise InputError(msg)

    def __repr__(self) -> str:
        return f"TraceReports({self.round!r})"

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.words[self.round.parts[0].name])

    def to_dict(self) -> dict[str, Any]:
        """JSON form: words by part."""
        return {"seeded": self.seeded, "words": {name: rows.tolist() for name, rows in self.words.items()}}

    def to_json(self) -> str:
        """What a client sends."""
        return json.dumps(self.to_dict())

    @classmethod
    def read(cls, asked: TraceRound, data: Any) -> Self:
        """Reports to a round from what `to_dict` or `to_json` gave."""
        if isinstance(data, str | bytes):
            try:
                data = json.loads(data)
            except (ValueError, RecursionError):
                msg = "reports: a text must be what to_json() gave."
                raise InputError(msg) from None
        data = entries("reports", data, ("seeded", "words"))
        words = entries("words", data["words"], [each.name for each in asked.parts])
        rows = {}
        for each in asked.parts:
            array = plain_array(words[each.name])
            rows[each.name] = each.randomizer.rows(np.empty(0) if array is None else array)
        return cls(asked, rows, data["seeded"] is not False)


@dataclass(frozen=True, eq=False, repr=False)
class TraceCounts:
    """What an aggregator keeps of one round: counts by part, which add up over any partition of the clients.

    Attributes
    ----------
    round : TraceRound
    n : int
        Number of clients.
    counts : mapping of str to (size,) array of int
    seeded : bool
    """

    round: TraceRound
    n: int
    counts: Mapping[str, Ints]
    seeded: bool = False

    def __post_init__(self) -> None:
        instance("round", self.round, TraceRound)
        whole("n", self.n, 1, most=2**53)
        given = entries("counts", self.counts, [each.name for each in self.round.parts])
        flag("seeded", self.seeded)
        counts = {each.name: each.randomizer.tallies(given[each.name]) for each in self.round.parts}
        object.__setattr__(self, "counts", counts)
        for each in self.round.parts:
            if counts[each.name].max() > self.n * each.times:
                msg = f"counts: those of {each.name!r} exceed the number of reports."
                raise InputError(msg)

    def __repr__(self) -> str:
        return f"TraceCounts({self.round!r}, n={self.n})"

    def __add__(self, other: "TraceCounts") -> "TraceCounts":
        if not isinstance(other, TraceCounts) or other.round != self.round:
            msg = "counts: only counts of the same round add up."
            raise InputError(msg)
        counts = {name: self.counts[name] + other.counts[name] for name in self.counts}
        return TraceCounts(self.round, self.n + other.n, counts, self.seeded or other.seeded)

    def totals(self, name: str) -> Floats:
        """(domain,) estimated numbers of reports about each value of a part, negative ones 0."""
        one_of("name", name, self.counts)
        part = next(each for each in self.round.parts if each.name == name)
        reports = self.n * part.times
        found: Floats = np.maximum(part.randomizer.frequencies(self.counts[name], reports), 0) * reports
        return found


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
