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

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from dpppsynth.core.arguments import elements, entries, flag, instance, one_of, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.randomizers.randomizer import fingerprint
from dpppsynth.mechanisms.local.randomizers.unary import OptimizedUnary
from dpppsynth.mechanisms.local.trajectories.paths import MOVES, GridTrajectories
from dpppsynth.mechanisms.local.trajectories.walks import TraceModel
from dpppsynth.spatial.mesh import Floats, Ints

# Longest trajectory that a round may be about.
LONGEST = 1000
# Words of reports held in memory at once.
CHUNK = 2**20
ROUNDS = "first and second(...) of LDPTrace are some"
SAME = "ask clients and count their reports with the same epsilon, cells and longest length"


class RoundPart(NamedTuple):
    """Reports of one kind that every client makes in a round: what they are about, how many, and their law."""

    name: str
    times: int
    randomizer: OptimizedUnary


@dataclass(frozen=True)
class TraceRound:
    """Questions to every client in one round; made by `TraceProtocol.first` and `TraceProtocol.second(longest)`.

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
    >>> first = TraceRound(3, 20, 0.2, moving=False)
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
        # Plain numbers, so that equal rounds have equal fingerprints.
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=grid_limits.TRAJECTORIES_SIDE))
        object.__setattr__(self, "longest", whole("longest", self.longest, 1, most=LONGEST))
        object.__setattr__(self, "moving", flag("moving", self.moving))
        # The parts refuse what integers cannot express.
        object.__setattr__(self, "epsilon", self.parts[0].randomizer.epsilon)

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

    def identity(self) -> dict[str, Any]:
        """Parameters that clients and aggregator must share, in JSON form."""
        return {"kind": "trace-round"} | {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen digits that stand for `identity` in reports and counts."""
        return fingerprint(self.identity())

    @property
    def no_move(self) -> int:
        """The value of a report about a move that the trajectory does not have."""
        return len(MOVES) * self.cells**2

    @property
    def size(self) -> int:
        """Number of counts that an aggregator keeps."""
        return sum(each.randomizer.size for each in self.parts)

    @property
    def spent(self) -> Fraction:
        """Epsilon of all reports of one client, from their integer weights."""
        return sum((each.times * Fraction(each.randomizer.spent) for each in self.parts), Fraction(0))

    def values(self, trajectories: GridTrajectories) -> dict[str, Ints]:
        """(T, times) values that every client reports about; as sensitive as the trajectories."""
        grid = instance("trajectories", trajectories, GridTrajectories, "Trajectories.on_grid makes them").cells
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
        """Counts of reports: `TraceReports`, or what `to_dict` or `to_json` of one client's gave.

        Raises
        ------
        InputError
            For what no client sends, answers to another round, or no reports at all.
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
        counts = self.tally(self.values(trajectories), generator(rng), fast=fast)
        return TraceCounts(self, len(trajectories), counts, fast or rng is not None)

    def tally(self, values: Mapping[str, Ints], rng: np.random.Generator, *, fast: bool = False) -> dict[str, Ints]:
        """(size,) counts by part of the reports about such values as `values` gives."""
        draw = _fast if flag("fast", fast) else _unary
        return {part.name: draw(part.randomizer, values[part.name].ravel(), rng) for part in self.parts}


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


def _require_answers(name: str, mechanism: Any, asked: TraceRound) -> None:
    if mechanism != asked.fingerprint:
        msg = f"{name}: are answers to another round than {asked!r}; {SAME}."
        raise InputError(msg)


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

    def __iter__(self) -> Iterator["TraceReports"]:
        """The reports of each client."""
        for k in range(self.n):
            words = {part.name: self.words[part.name][k * part.times :][: part.times] for part in self.round.parts}
            yield TraceReports(self.round, words, self.seeded)

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.words[self.round.parts[0].name])

    def to_dict(self) -> dict[str, Any]:
        """JSON form: what the round was, and words by part."""
        words = {name: rows.tolist() for name, rows in self.words.items()}
        return {"mechanism": self.round.fingerprint, "seeded": self.seeded, "words": words}

    def to_json(self) -> str:
        """Message of a client."""
        return json.dumps(self.to_dict())

    @classmethod
    def read(cls, asked: TraceRound, data: Any) -> Self:
        """Reports of one client to a round, from what their `to_dict` or `to_json` gave.

        Raises
        ------
        InputError
            For answers to another round, for what no client sends, and for reports of several clients: whoever sends
            one line of text counts once.
        """
        reports = cls.read_batch(asked, data)
        if reports.n != 1:
            msg = "reports: are those of several clients; read one by one, or with read_batch from whom you trust."
            raise InputError(msg)
        return reports

    @classmethod
    def read_batch(cls, asked: TraceRound, data: Any) -> Self:
        """Reports of any number of clients, as `read`: from a collector who vouches for their number."""
        instance("asked", asked, TraceRound, ROUNDS)
        if isinstance(data, str | bytes):
            try:
                data = json.loads(data)
            except (ValueError, RecursionError):
                msg = "reports: a text must be what to_json() gave."
                raise InputError(msg) from None
        data = entries("reports", data, ("mechanism", "seeded", "words"))
        _require_answers("reports", data["mechanism"], asked)
        words = entries("words", data["words"], [each.name for each in asked.parts])
        rows = {}
        for each in asked.parts:
            array = plain_array(words[each.name])
            rows[each.name] = each.randomizer.rows(np.empty(0) if array is None else array)
        return cls(asked, rows, data["seeded"] is not False)


@dataclass(frozen=True, eq=False, repr=False)
class TraceCounts:
    """An aggregator's counts of one round, by part; additive over any partition of the clients.

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

    @classmethod
    def of(cls, asked: TraceRound, n: int, flat: Ints, *, seeded: bool = False) -> Self:
        """Counts of all parts of a round, one after the other; the inverse of `flat`."""
        ends = np.cumsum([each.randomizer.size for each in asked.parts])
        parts = zip(asked.parts, np.split(flat, ends[:-1]), strict=True)
        return cls(asked, n, {part.name: counts for part, counts in parts}, seeded)

    @property
    def flat(self) -> Ints:
        """(size,) counts of all parts, in the order of the round's parts."""
        return np.concatenate([self.counts[each.name] for each in self.round.parts])

    def __add__(self, other: "TraceCounts") -> "TraceCounts":
        if not isinstance(other, TraceCounts) or other.round != self.round:
            msg = "counts: only counts of the same round add up."
            raise InputError(msg)
        counts = {name: self.counts[name] + other.counts[name] for name in self.counts}
        return TraceCounts(self.round, self.n + other.n, counts, self.seeded or other.seeded)

    def __radd__(self, other: Any) -> "TraceCounts":
        """Support for `sum(parts)`, which starts from 0."""
        return self if type(other) is int and other == 0 else self + other

    def to_dict(self) -> dict[str, Any]:
        """JSON form, for an aggregator on another machine."""
        counts = {name: values.tolist() for name, values in self.counts.items()}
        return {"mechanism": self.round.fingerprint, "counts": counts, "n": self.n, "seeded": self.seeded}

    @classmethod
    def from_dict(cls, asked: TraceRound, data: Any) -> Self:
        """Counts of a round from their JSON form; InputError for those of another round, or that are no counts."""
        instance("asked", asked, TraceRound, ROUNDS)
        data = entries("counts", data, ("mechanism", "counts", "n", "seeded"))
        _require_answers("counts", data["mechanism"], asked)
        return cls(asked, data["n"], data["counts"], data["seeded"])

    def totals(self, name: str) -> Floats:
        """(domain,) estimated numbers of reports about each value of a part, negative ones 0."""
        one_of("name", name, self.counts)
        part = next(each for each in self.round.parts if each.name == name)
        reports = self.n * part.times
        found: Floats = np.maximum(part.randomizer.frequencies(self.counts[name], reports), 0) * reports
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
