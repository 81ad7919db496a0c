"""Reports from the cells of grids of one or two levels, counted by a frequency oracle.

Both plans are made from public parameters alone, and `measure` runs all clients in one process. What is released are
the oracle's counts, those of the second level after those of the first. The second grid is a function of the first
counts, so anybody can make it again (docs/theory/local.md).
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, NamedTuple, Self

import numpy as np

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.parameter_forms import POSITIVE, TEXT, WHOLE, Form, const, one_among, two
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.arguments import elements, instance, one_of, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import local_rounds
from dpppsynth.mechanisms.local.grids.cuts import adaptive_cells, even_cells, pooled_levels
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, uniform_grid
from dpppsynth.mechanisms.local.grids.sides import AAG, clipped_frequencies, first_side, second_sides, split_users
from dpppsynth.mechanisms.local.one_report import require_no_marks
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.oracles import oracle
from dpppsynth.mechanisms.local.statistic import (
    OneRoundStatistic,
    ReportsStatistic,
    Shuffle,
    drawn_by,
    randomness_name,
)
from dpppsynth.models.recipes import window
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern, require_match

CUTS = ("even", "adaptive")


class Fitted(NamedTuple):
    """Cells, and estimated numbers of persons (T,) in them, which may be negative."""

    grid: Rectangles
    masses: Floats


class GridLevel(NamedTuple):
    """Reports on one level of a grid.

    Attributes
    ----------
    grid : Rectangles
    clients : FrequencyOracle
    counts : array of int
        Of its reports.
    reports : int
    """

    grid: Rectangles
    clients: FrequencyOracle
    counts: Ints
    reports: int

    @property
    def shares(self) -> Floats:
        """(T,) unbiased estimates of the cells' shares, some of which may be negative."""
        return self.clients.frequencies(self.counts, self.reports)

    def variances(self, expected: Floats, n: int) -> Floats:
        """(T,) variances of n times the shares, with `expected` (T,) of n persons in the cells.

        From the reports, and from who among n persons reports on this level.
        """
        shares = np.clip(expected / n, 0.0, 1.0)
        noise = self.clients.variance(shares * self.reports, self.reports) / self.reports**2
        chosen = (n - self.reports) / max(1, n - 1) / self.reports
        return np.asarray(n**2 * (noise + chosen * shares * (1 - shares)))


class GridStatistic(ReportsStatistic):
    """Base of statistics that count a frequency oracle's reports on the cells of a grid.

    Attributes
    ----------
    window : Window
        The grid tiles its bounding box.
    epsilon : float
        Budget of one report.
    n : int
        Public number of persons.
    oracle : str
        Kind of frequency oracle, "least-variance" for the best one by `best_oracle`.
    drawn_by : str, optional
        Mark that tells persons, of each of whom one point is drawn; without it every point is a person.
    """

    window: Window
    epsilon: float
    n: int
    oracle: str
    drawn_by: str | None

    def _settle(self) -> None:
        instance("window", self.window, Window, "Window.rectangle(0, 0, 1000, 1000) is one")
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        object.__setattr__(self, "n", whole("n", self.n, 1, most=2**53))
        self.guarantee.require(self.epsilon, 0.0)
        self.settle_shuffle()

    @property
    def domain(self) -> Domain:
        return self.window

    @cached_property
    def first(self) -> Rectangles:
        """The grid of one level, or the first of two."""
        raise NotImplementedError

    @cached_property
    def randomizers(self) -> tuple[FrequencyOracle, ...]:
        """Client mechanisms that are known beforehand: of the first level."""
        return (oracle(self.oracle, epsilon=self.epsilon, domain=len(self.first)),)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that every report satisfies, and so all of them together."""
        raise NotImplementedError

    @cached_property
    def mesh(self) -> Mesh:
        """The first level as a mesh of regular squares."""
        columns, rows = len(self.first.columns) - 1, len(self.first.rows) - 1
        return regular_squares(self.window, shape=(columns + 1, rows + 1))

    def table_rows(self) -> Rows:
        return self.report_rows(self.randomizers[0].parameters())

    def places(self, pattern: PointPattern) -> Floats:
        """(n, 2) coordinates of a pattern that matches the statistic. As sensitive as the points."""
        require_no_marks(instance("pattern", pattern, PointPattern))
        require_match(pattern, self.domain, self.n)
        return np.asarray(self.domain.coordinates(pattern.positions))

    def fitted(self, lattice: Ints, *, consistent: bool = False) -> Fitted:
        """Cells and unbiased estimates of the persons in them, from released counts."""
        raise NotImplementedError

    def levels(self, lattice: Ints) -> tuple[GridLevel, ...]:
        """Reports of each level, the finest last, from released counts."""
        raise NotImplementedError

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        # Says, before numbers are counted, where the first level's counts lead to another second level.
        self.fitted(np.array(data["lattice"], dtype=np.int64))
        return super().restore(data)


@dataclass(frozen=True, eq=False, repr=False)
class UniformGridStatistic(OneRoundStatistic, GridStatistic):
    """Counts of reports on a grid of equal cells; `columns` by `rows` of them, others as in `GridStatistic`."""

    window: Window
    epsilon: float
    n: int
    columns: int
    rows: int
    oracle: str = "local-hashing"
    shuffle: Shuffle | None = None
    drawn_by: str | None = None
    basis: ClassVar[str] = "uniform-grid"
    form: ClassVar[Form] = ReportsStatistic.form | {
        "basis": const("uniform-grid"),
        "columns": WHOLE,
        "rows": WHOLE,
        "oracle": TEXT,
    }

    def __post_init__(self) -> None:
        self._settle()

    def __repr__(self) -> str:
        return f"UniformGridStatistic({self.columns} x {self.rows} cells, {self.oracle}, epsilon={self.epsilon:g})"

    @cached_property
    def first(self) -> Rectangles:
        return uniform_grid(self.window.bounds, self.columns, self.rows)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        public = (p["epsilon"], p["n"], p["columns"], p["rows"], p["oracle"], Shuffle.stated(p))
        plan = cls(window(domain), *public, drawn_by(relation))
        plan.require_relation(relation)
        return plan

    @property
    def randomizer(self) -> FrequencyOracle:
        """Law of a report."""
        return self.randomizers[0]

    def values(self, pattern: PointPattern) -> Ints:
        return self.first.locate(self.places(pattern))

    def levels(self, lattice: Ints) -> tuple[GridLevel, ...]:
        return (GridLevel(self.first, self.randomizer, lattice, self.n),)

    def fitted(self, lattice: Ints, *, consistent: bool = False) -> Fitted:
        return estimated(self.first, self.randomizer, lattice, self.n)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveGridStatistic(GridStatistic):
    """Counts of reports on a coarse grid by some persons, and by all others on a finer grid made from the first counts.

    Attributes
    ----------
    window, epsilon, n, oracle
        As in `GridStatistic`.
    reports : (int, int)
        Numbers of persons who report on the first and on the second level.
    cuts : {"even", "adaptive"}
        Of PrivAG, or narrow towards denser neighbours.
    alpha : (float, float)
        Constants of the first and the second level's sides.
    sigma : float
        Share of persons on the first level that the sides are made for.
    rounding : (str, str)
        Of the first and the second level's sides.
    margin : float
        Share of a cell that adaptive cuts leave on either side.
    pieces : str
        As in `grids.adaptive_cells`.
    cells : int or None
        Cells of the second level, once it is known.
    """

    window: Window
    epsilon: float
    n: int
    reports: tuple[int, int]
    _: KW_ONLY
    cuts: str = "adaptive"
    alpha: tuple[float, float] = (AAG.first, AAG.second)
    sigma: float = AAG.sigma
    rounding: tuple[str, str] = ("nearest", "floor")
    margin: float = 0.01
    pieces: str = "exact"
    oracle: str = "local-hashing"
    cells: int | None = None
    shuffle: Shuffle | None = None
    drawn_by: str | None = None
    basis: ClassVar[str] = "adaptive-grid"
    form: ClassVar[Form] = ReportsStatistic.form | {
        "basis": const("adaptive-grid"),
        "reports": two(WHOLE),
        "cuts": one_among(*CUTS),
        "alpha": two(POSITIVE),
        "sigma": POSITIVE | {"exclusiveMaximum": 1},
        "rounding": two(one_among("nearest", "ceil", "floor")),
        "margin": {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5},
        "pieces": one_among("exact", "literal_floor", "literal_ceil"),
        "oracle": TEXT,
        "cells": WHOLE,
    }

    def __post_init__(self) -> None:
        one_of("cuts", self.cuts, CUTS)
        counts = tuple(whole("reports", number, 1, most=2**53) for number in elements(self.reports) or ())
        object.__setattr__(self, "reports", counts)
        if len(counts) != 2 or sum(counts) > whole("n", self.n, 1, most=2**53):
            msg = "reports: needs the numbers of persons in both rounds, together at most n."
            raise InputError(msg)
        for name in ("alpha", "rounding"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._settle()
        # Whatever is wrong with the second level's settings is said before anybody reports, on a grid of one cell: the
        # first level of a plan that somebody made up may have millions.
        self._divided(uniform_grid(self.window.bounds, 1, 1), np.zeros(1))

    def __repr__(self) -> str:
        side = len(self.first.columns) - 1
        return (
            f"AdaptiveGridStatistic({side} x {side} cells, {self.cuts} cuts, {self.oracle}, epsilon={self.epsilon:g})"
        )

    def table_rows(self) -> Rows:
        second = f"{self.cuts} cuts, by the first one's reports; other persons report on it"
        return [*super().table_rows(), ("second grid", second)]

    @cached_property
    def first(self) -> Rectangles:
        side = first_side(self.epsilon, self.n, alpha=self.alpha[0], rounding=self.rounding[0])
        return uniform_grid(self.window.bounds, side, side)

    @cached_property
    def guarantee(self) -> Guarantee:
        return local_rounds(self.epsilon, self.randomizers, self.drawn_by)

    @property
    def together(self) -> int:
        return min(self.reports)

    def statement(self, shuffle: Shuffle) -> ShuffledPrivacy:
        return shuffle.one_message(self.epsilon)

    def second(self, counts: Floats) -> Rectangles:
        """The second level's cells, for unbiased counts (K,) of the persons who reported on the first."""
        return self._divided(self.first, counts)

    def _divided(self, first: Rectangles, counts: Floats) -> Rectangles:
        shares = clipped_frequencies(counts, self.reports[0])
        constants = {"alpha": self.alpha[1], "sigma": self.sigma, "rounding": self.rounding[1]}
        sides = second_sides(shares, self.epsilon, self.n, **constants)  # type: ignore[arg-type]
        if self.cuts == "even":
            return even_cells(first, sides)
        return adaptive_cells(first, counts, sides, margin=self.margin, pieces=self.pieces)

    def prepare(self) -> None:
        self._finest()

    @property
    def most_numbers(self) -> int:
        return self.randomizers[0].size + self._finest().size

    def _finest(self) -> FrequencyOracle:
        """Client mechanism of the finest second level that is possible."""
        most = np.ones(len(self.first))
        constants = {"alpha": self.alpha[1], "sigma": self.sigma, "rounding": self.rounding[1]}
        sides = second_sides(most, self.epsilon, self.n, **constants)  # type: ignore[arg-type]
        return oracle(self.oracle, epsilon=self.epsilon, domain=int((sides**2).sum()))

    def second_round(self, counts: Ints) -> tuple[Rectangles, FrequencyOracle]:
        """Cells and client mechanism of the second round, from the first round's counts of reports."""
        clients, reports = self.randomizers[0], self.reports[0]
        grid = self.second(estimated(self.first, clients, counts, reports).masses)
        return grid, oracle(self.oracle, epsilon=self.epsilon, domain=len(grid))

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        stated = ("cuts", "alpha", "sigma", "rounding", "margin", "pieces", "oracle", "cells")
        p, chosen = parameters, {name: parameters[name] for name in stated}
        first = first_side(p["epsilon"], p["n"], alpha=p["alpha"][0], rounding=p["rounding"][0])
        # Before so large a grid is made that no second level follows from it.
        require(p["cells"] >= first**2, "the second level has no fewer cells than the first")
        chosen |= {"shuffle": Shuffle.stated(p), "drawn_by": drawn_by(relation)}
        plan = cls(window(domain), p["epsilon"], p["n"], p["reports"], **chosen)
        plan.require_relation(relation)
        return plan

    @property
    def _rounds(self) -> tuple[tuple[FrequencyOracle, int], ...]:
        """Client mechanism and number of reports of both rounds; the second level's cells are known by now."""
        second = oracle(self.oracle, epsilon=self.epsilon, domain=whole("cells", self.cells, 1))
        return (self.randomizers[0], self.reports[0]), (second, self.reports[1])

    @property
    def size(self) -> int:
        """Number of counts of both levels."""
        return sum(clients.size for clients, _ in self._rounds)

    def validate_released(self, lattice: Ints) -> None:
        for (clients, reports), counts in zip(self._rounds, self.parts(lattice), strict=True):
            clients.counts_of(counts, reports)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        source = generator(rng)
        places = self.places(self.admitted(pattern, source))
        groups = split_users(self.n, self.sigma, source)
        if tuple(map(len, groups)) != self.reports:
            msg = "reports: running all clients here, the rounds have the sizes that sigma gives them."
            raise InputError(msg)
        reports = partial(self.randomizers[0].tally, rng=source)
        first = self.apply_noise(reports, self.first.locate(places[groups[0]]))
        grid, clients = self.second_round(first)
        second = self.apply_noise(partial(clients.tally, rng=source), grid.locate(places[groups[1]]))
        return self.counted(np.concatenate([first, second]), seeded=rng is not None)

    def counted(self, counts: Ints, *, seeded: bool) -> PrivateStatistic[Self]:
        """Counts of both rounds' reports, one after the other, as a released statistic."""
        grid, clients = self.second_round(counts[: self.randomizers[0].size])
        settled = replace(self, cells=len(grid))
        clients.counts_of(settled.parts(counts)[1], self.reports[1])
        return PrivateStatistic(settled, counts, randomness_name(seeded), seeded)

    def parts(self, lattice: Ints) -> tuple[Ints, Ints]:
        """The counts of each level."""
        size = self.randomizers[0].size
        return lattice[:size], lattice[size:]

    def levels(self, lattice: Ints) -> tuple[GridLevel, ...]:
        first, second = self.parts(lattice)
        grid, clients = self.second_round(first)
        one = GridLevel(self.first, self.randomizers[0], first, self.reports[0])
        return one, GridLevel(grid, clients, second, self.reports[1])

    def fitted(self, lattice: Ints, *, consistent: bool = False) -> Fitted:
        first, second = self.parts(lattice)
        grid, clients = self.second_round(first)
        if self.cells not in (None, len(grid)):
            msg = "cells: the first level's counts lead to another second level; the file is not whole."
            raise InputError(msg)
        reports = self.reports[1]
        shares = estimated(grid, clients, second, reports).masses / reports
        if consistent:
            above = self.randomizers[0].frequencies(first, self.reports[0])
            weights = _precision(self.randomizers[0], self.reports[0]), _precision(clients, reports)
            agreed = pooled_levels(grid, above, shares, first_weight=weights[0], second_weight=weights[1])
            shares = agreed.second
        return Fitted(grid, self.n * shares)


def _precision(clients: FrequencyOracle, n: int) -> float:
    """Inverse of the variance of a share that is nearly zero."""
    return n**2 / clients.variance(0, n)


def estimated(grid: Rectangles, clients: FrequencyOracle, counts: Ints, n: int) -> Fitted:
    """Cells and unbiased estimates of the n persons who all reported, from an oracle's counts."""
    return Fitted(grid, n * clients.frequencies(counts, n))
