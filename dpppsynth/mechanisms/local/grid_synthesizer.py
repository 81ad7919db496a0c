"""Local mechanisms for range queries: a uniform grid, and two-round adaptive grids."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpppsynth.contract.registry import mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import EPSILON, EXPERT, Settings, setting
from dpppsynth.core.arguments import flag, instance, one_of, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.bound import POSTS
from dpppsynth.mechanisms.local.client import everybody, held_in_box
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic, Fitted, UniformGridStatistic, estimated
from dpppsynth.mechanisms.local.grids.cuts import PIECES
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, uniform_grid
from dpppsynth.mechanisms.local.grids.sides import AAG, PRIVAG, ROUNDINGS, group_sizes, split_users, uniform_side
from dpppsynth.mechanisms.local.one_report import REPORTER, one_point_each, require_no_marks
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.oracles import AUTO, ORACLES, oracle, stated_oracle
from dpppsynth.mechanisms.local.release import GridEstimator
from dpppsynth.mechanisms.local.reports import Counts, Report, Reports
from dpppsynth.mechanisms.local.saved_counts import first_counts
from dpppsynth.mechanisms.local.statistic import SHUFFLE_DELTA, SHUFFLED, Shuffle
from dpppsynth.mechanisms.local.synthesizer import ROUND, LocalMechanism, ReportSettings, number_of_reports
from dpppsynth.privacy.relations import Local, require_mark
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

HASHING = "local-hashing"
# Largest epsilon: beyond it a report hides nothing.
MOST_EPSILON = 50.0
NO_MORE = "be positive, and at most 50"
# Range of the constants of the side rules, which are shares of a mass.
MOST_ALPHA = 1000.0
SIGMA: dict[str, Any] = {
    "help": "Share of the persons who report in the first round",
    "option": "--first-share",
    "panel": EXPERT,
}
ROUNDING: dict[str, Any] = {"help": "Rounding of the sides", "choices": ROUNDINGS, "panel": EXPERT}


@dataclass(frozen=True)
class GridMechanism(LocalMechanism):
    """Base of local mechanisms on the cells of a grid over a window; a value is the number of a person's cell."""

    window: Any
    _: KW_ONLY
    epsilon: float = setting(**EPSILON)
    oracle: str = setting(HASHING, help="Kind of frequency oracle", choices=(AUTO, *ORACLES), panel=EXPERT)
    post: str = setting(POSTS[0], help="How estimates become an intensity", choices=POSTS, option="--postprocess")
    shuffled: int | None = setting(None, **SHUFFLED)
    shuffle_delta: float | None = setting(None, **SHUFFLE_DELTA)
    user: str | None = setting(None, **REPORTER)

    def settle(self) -> None:
        """Check the settings that all grid mechanisms share."""
        if not isinstance(self.window, Window):
            try:
                made = Window.rectangle(*self.window)
            except TypeError:
                msg = "window: needs a Window, or its bounds x0, y0, x1, y1."
                raise InputError(msg) from None
            object.__setattr__(self, "window", made)
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon, rule=NO_MORE, most=MOST_EPSILON)))
        one_of("oracle", self.oracle, (AUTO, *ORACLES))
        one_of("post", self.post, POSTS)
        Shuffle.of(self.shuffled, self.shuffle_delta)
        require_mark(self.user)

    def own_window(self, domain: Any) -> Window:
        """The mechanism's window; InputError for another domain, None excepted."""
        if domain is not None and instance("domain", domain, Domain).fingerprint() != self.window.fingerprint():
            msg = "domain: it is not the window that the mechanism was made for."
            raise InputError(msg)
        return self.window

    def _persons(self, xy: Any, user: str | None, rng: RngLike) -> Any:
        """One point of each person, where a mark tells persons; else all points as they are."""
        user = self.user if user is None else user
        return xy if user is None else one_point_each(xy, user, rng=rng)

    def _places(self, xy: Any, outside: Any, *, study: bool = False) -> Floats:
        """(n, 2) coordinates of a pattern in the window, or an array of points in its bounding box; at least one."""
        everybody(outside, study=study)
        if isinstance(xy, PointPattern):
            self.own_window(xy.domain)
            require_no_marks(xy)
            return np.asarray(xy.xy)
        places = held_in_box(PointPattern.checked(xy), self.window.bounds, outside)
        if not len(places):
            msg = "xy: needs at least one point; there is nobody to report."
            raise InputError(msg)
        return places


@dataclass(frozen=True, repr=False)
class GridCounts(Counts):
    """Counts of the reports on one grid; as `Counts`, with answers to range queries."""

    @cached_property
    def fitted(self) -> Fitted:
        """Cells (`grid`) and unbiased estimates (`masses`) of the persons in them, which may be negative."""
        mechanism: Any = self.mechanism
        return estimated(mechanism.grid, mechanism.randomizer, self.values, self.n)

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1; unbiased for unions of cells."""
        return self.fitted.grid.query(self.fitted.masses, rectangles)


class Round(GridMechanism):
    """A grid whose cells a frequency oracle counts: all of a uniform grid, one round of an adaptive one."""

    counts_kind = GridCounts

    @cached_property
    def grid(self) -> Rectangles:
        """The cells."""
        raise NotImplementedError

    @cached_property
    def randomizer(self) -> FrequencyOracle:
        return oracle(stated_oracle(self.oracle), epsilon=self.epsilon, domain=len(self.grid))

    def identity(self) -> dict[str, Any]:
        return self.randomizer.parameters() | self.grid.to_dict()

    def described_grid(self, window: Any) -> dict[str, Any]:
        """Cells in JSON form, for devices."""
        self.own_window(instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one"))
        return self.grid.to_dict()

    def value(self, place: Any, *, outside: str = "raise") -> int:
        """The number of the cell that holds the point (x, y); `outside` as in `CellMechanism.cell`."""
        return int(self.values([place], outside=outside)[0])

    def client(self, place: Any, rng: RngLike = None, *, outside: str = "raise") -> Report:
        return self._report(self.value(place, outside=outside), rng)

    def values(self, xy: Any, *, outside: str = "raise") -> Ints:
        """(n,) numbers of the cells of all points (n, 2), or of a pattern; `outside` as in `CellMechanism.cell`."""
        return self.grid.locate(self._places(xy, outside))

    def clients(self, values: Any, rng: RngLike = None) -> Reports:
        given = plain_array(values)
        return super().clients(values if given is None or given.ndim != 2 else self.values(values), rng)

    def simulate(
        self, xy: Any, rng: RngLike = None, *, fast: bool = False, outside: str = "raise", user: str | None = None
    ) -> GridCounts:
        """Run all clients in one process.

        Parameters
        ----------
        xy : PointPattern or (n, 2) array
            One point for each person.
        rng, fast
            As in other mechanisms.
        outside : {"raise", "clip", "drop"}
            Of an array of points: refuse those beyond the window's bounding box, take their nearest cells, or leave
            them out, which shows in the public number of reports and is for studies: with `rng` or `fast`.
        user : str, optional
            Mark of a pattern that tells persons: each sends one report, about one of their points drawn at random.
        """
        rng = None if rng is None else generator(rng)
        xy = self._persons(xy, user, rng)
        places = self._places(xy, outside, study=studied(rng, fast))
        counts: Any = self.counts(self.grid.locate(places), rng, fast=fast)
        return counts


@dataclass(frozen=True)
class UniformGrid(Round):
    """Equal cells, counted by a frequency oracle: every person reports the cell they are in.

    Parameters
    ----------
    window : Window, or bounds (x0, y0, x1, y1)
        The grid tiles its bounding box.
    epsilon : float
    cells : int or (int, int)
        Cells along x and y, one number for both. `UniformGrid.sized(window, n=...)` has a rule.
    oracle : str
        Kind of frequency oracle: "local-hashing", "randomized-response", "subset-selection", "projective-response",
        "optimized-unary", "symmetric-unary", "hadamard-response", or "auto" for the one with the least total variance
        of those with short reports, as `randomizers.best_oracle` finds it.
    post : {"field", "norm-sub", "clip"}
        How the intensity of a release is made from estimates some of which are negative, as in `GridEstimator`.

    Examples
    --------
    >>> grid = UniformGrid((0, 0, 1, 1), epsilon=1.0, cells=4)
    >>> counts = grid.simulate(np.random.default_rng(1).random((1000, 2)), rng=1)
    >>> counts.query([[0, 0, 1, 1]]).shape
    (1,)
    """

    _: KW_ONLY
    cells: Any = setting(10, help="Number of cells along each side of the grid", kind=int, otherwise="a rule")

    uses_number: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.settle()
        given = self.cells if isinstance(self.cells, tuple | list) else (self.cells, self.cells)
        if len(given) != 2:
            msg = "cells: needs one whole number, or two along x and y."
            raise InputError(msg)
        object.__setattr__(self, "cells", tuple(whole("cells", side, 1, most=4096) for side in given))
        self.randomizer  # noqa: B018 - what integers cannot express is refused at once

    @classmethod
    def sized(cls, window: Any, *, epsilon: float, n: int, **settings: Any) -> "UniformGrid":
        """The grid whose side balances noise against spread inside cells, for a public number of persons."""
        return cls(window, epsilon=epsilon, cells=uniform_side(epsilon, n), **settings)

    @cached_property
    def grid(self) -> Rectangles:
        return uniform_grid(self.window.bounds, *self.cells)

    def plan(self, domain: Any = None, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        """Make the release plan from public parameters alone; `domain` is the mechanism's own window."""
        window, number = self.own_window(domain), number_of_reports(n, expected_n)
        columns, rows = self.cells
        public = (float(self.epsilon), number, columns, rows, stated_oracle(self.oracle), self.shuffle)
        plan = UniformGridStatistic(window, *public, self.user)
        return ReleasePlan("uniform-grid", plan, GridEstimator(self.post))


@dataclass(frozen=True)
class SecondRound(Round):
    """The round that follows from the first one's counts: its grid is broadcast, and other persons report."""

    _: KW_ONLY
    grid: Rectangles

    def __post_init__(self) -> None:
        self.settle()
        instance("grid", self.grid, Rectangles)

    def plan(self, *_: Any, **__: Any) -> ReleasePlan:
        """Refused: one round alone is no release."""
        msg = "plan: one round of an adaptive grid is no release; combine() both rounds' counts."
        raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveCounts:
    """Counts of both rounds."""

    mechanism: "AdaptiveGrid"
    plan: AdaptiveGridStatistic
    first: Counts
    second: Counts

    def __repr__(self) -> str:
        return f"AdaptiveCounts({self.first.n} and {self.second.n} reports to {self.mechanism!r})"

    @property
    def seeded(self) -> bool:
        """True when the random bits of any report can be reproduced: then nothing is private."""
        return self.first.seeded or self.second.seeded

    @cached_property
    def fitted(self) -> Fitted:
        """Cells (`grid`) and unbiased estimates (`masses`) of the persons in them, which may be negative."""
        return self.plan.fitted(self._values, consistent=self.mechanism.consistent)

    @property
    def grid(self) -> Rectangles:
        """The second round's cells."""
        return self.fitted.grid

    @property
    def n(self) -> int:
        """Public number of persons."""
        return self.plan.n

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1."""
        return self.fitted.grid.query(self.fitted.masses, rectangles)

    def release(self, domain: Any = None) -> Any:
        """Private intensity, certificate and synthetic patterns: a `GridRelease`."""
        self.mechanism.own_window(domain)
        plan = self.mechanism.settled(self.plan)
        statistic = self.plan.counted(self._values, seeded=self.seeded)
        return mechanism(plan.mechanism).build_release(statistic, plan.estimator)

    @property
    def _values(self) -> Ints:
        return np.concatenate([self.first.values, self.second.values])


@dataclass(frozen=True)
class AdaptiveGrid(GridMechanism):
    """Base of grids in two rounds: some persons report on a coarse grid, the others on one made from its counts."""

    _: KW_ONLY
    sigma: float = setting(PRIVAG.sigma, **SIGMA)
    consistent: bool = setting(True, help="Let the first round's reports take part in the estimate", panel=EXPERT)
    rounding_g1: str = setting("nearest", **ROUNDING, option="--first-rounding")
    rounding_g2: str = setting("floor", **ROUNDING, option="--second-rounding")
    # Settings that are the constants of the side rules: of the first level, and of the second.
    constants: ClassVar[tuple[str, ...]]
    cuts: ClassVar[str]
    rounds: ClassVar[str] = "Every person reports in one of both rounds: draw none of the other round from this file."
    refused: ClassVar[Mapping[str, str]] = {**ReportSettings.refused, "cells": "makes its grids by a rule"}

    def __post_init__(self) -> None:
        self.settle()
        flag("consistent", self.consistent)
        for name in self.constants:
            positive(name, getattr(self, name), most=MOST_ALPHA)
        # Settings that no number of persons makes right are refused before anybody reports.
        self.settings(1000)

    def uneven(self) -> dict[str, Any]:
        """Options of uneven cuts."""
        return {}

    @property
    def randomizer(self) -> Any:
        msg = "randomizer: an adaptive grid has one for each round, first(n).randomizer and second(...).randomizer."
        raise InputError(msg)

    def asked(self, domain: Any, n: int | None, after: str | None) -> Any:
        persons = number_of_reports(n, None)
        first = self.first(persons)
        return first if after is None else self.second(first_counts(after, first, self.own_window(domain)), persons)

    def share(self, after: str | None) -> dict[str, str]:
        """Mark and value of the persons of one round, since their number is not that of all points."""
        return {ROUND: "1" if after is None else "2"}

    def combined(self, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        persons = number_of_reports(n, None)
        return self.combine(first_counts(after, self.first(persons), domain), counts, persons)

    def own_audit(self) -> None:
        """None: the clients' law depends on the round, and so on a plan."""

    def neighbouring(self) -> Any:
        return Local(user=self.user)

    def settings(
        self, n: int, reports: tuple[int, int] | None = None, shuffle: Shuffle | None = None
    ) -> AdaptiveGridStatistic:
        """Statistic of both rounds for n persons; `reports` of each round, by default as `sigma` splits the persons."""
        return AdaptiveGridStatistic(
            self.window,
            float(self.epsilon),
            n,
            group_sizes(n, self.sigma) if reports is None else reports,
            cuts=self.cuts,
            alpha=(getattr(self, self.constants[0]), getattr(self, self.constants[-1])),
            sigma=self.sigma,
            rounding=(self.rounding_g1, self.rounding_g2),
            **self.uneven(),
            oracle=stated_oracle(self.oracle),
            shuffle=shuffle,
            drawn_by=self.user,
        )

    def plan(self, domain: Any = None, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        """Make the release plan from public parameters alone; `domain` is the mechanism's own window."""
        self.own_window(domain)
        return self.settled(self.settings(number_of_reports(n, expected_n), shuffle=self.shuffle))

    def settled(self, plan: AdaptiveGridStatistic) -> ReleasePlan:
        """The plan of these rounds, with the estimator."""
        return ReleasePlan("adaptive-grid", plan, GridEstimator(self.post, self.consistent))

    def first(self, n: int) -> UniformGrid:
        """The first round for a public number of persons, with clients and an aggregator of its own."""
        side = len(self.settings(n).first.columns) - 1
        own: dict[str, Any] = {"oracle": self.oracle, "post": self.post, "user": self.user}
        return UniformGrid(self.window, epsilon=self.epsilon, cells=side, **own)

    def second(self, first: Counts, n: int) -> SecondRound:
        """The second round, after the first one's counts."""
        first = self.first(n).own(first)
        grid, _ = self.settings(n, (first.n, 1)).second_round(first.values)
        own: dict[str, Any] = {"oracle": self.oracle, "post": self.post, "user": self.user}
        return SecondRound(self.window, epsilon=self.epsilon, grid=grid, **own)

    def combine(self, first: Counts, second: Counts, n: int) -> AdaptiveCounts:
        """Counts of both rounds together.

        Parameters
        ----------
        first, second : Counts
            Of the two rounds.
        n : int
            Public number of persons, at least as many as reported.
        """
        second = self.second(first, n).own(second)
        return AdaptiveCounts(self, self.settings(n, (first.n, second.n), self.shuffle), first, second)

    def simulate(
        self, xy: Any, rng: RngLike = None, *, fast: bool = False, outside: str = "raise", user: str | None = None
    ) -> AdaptiveCounts:
        """Run all clients of both rounds in one process, for studies and audits.

        Parameters
        ----------
        xy : PointPattern or (n, 2) array
            One point for each person.
        rng : None, int or Generator
            None: secret random bits. Anything else makes the run reproducible and therefore not private.
        fast : bool
            Draw counts at once from their law with floating-point numbers: for studies, never private.
        outside : {"raise", "clip", "drop"}
            As in `UniformGrid.simulate`.
        user : str, optional
            As in `UniformGrid.simulate`.
        """
        seeded, source = studied(rng, fast), generator(rng)
        xy = self._persons(xy, user, source)
        places = self._places(xy, outside, study=seeded)
        n = len(places)
        groups = split_users(n, self.sigma, source)
        one = self.first(n)
        first = one.counts(one.values(places[groups[0]]), source, fast=fast)
        two = self.second(first, n)
        second = two.counts(two.values(places[groups[1]]), source, fast=fast)
        first, second = (replace(each, seeded=seeded) for each in (first, second))
        return self.combine(first, second, n)

    def value(self, place: Any) -> int:
        """Refused: a place's value depends on the round."""
        msg = "place: its value depends on the round; use the client() of first(n) or second(...)."
        raise InputError(msg)

    def aggregate(self, reports: Any) -> Any:
        msg = "aggregate: reports belong to a round; use first(n).aggregate and second(...).aggregate."
        raise InputError(msg)


@dataclass(frozen=True)
class PrivAG(AdaptiveGrid):
    """Two rounds with even cuts: first-round cells with more estimated persons are divided more finely.

    Parameters
    ----------
    window : Window, or bounds (x0, y0, x1, y1)
    epsilon : float
    alpha : float
        Share of the mass of border cells that counts as error in the rules for both sides.
    sigma : float
        Share of the persons who report in the first round.
    consistent : bool
        Let the first round's reports take part in the estimate, which makes it better; as published they do not.
    rounding_g1, rounding_g2 : {"nearest", "ceil", "floor"}
        Of the sides.
    oracle, post
        As in `UniformGrid`.

    References
    ----------
    Yang et al. (2022), Answering multi-dimensional range queries under local differential privacy.
    """

    _: KW_ONLY
    alpha: float = setting(
        PRIVAG.first,
        help="Share of the mass of border cells that counts as error in the rules for both sides",
        option="--border-share",
        panel=EXPERT,
    )
    constants: ClassVar[tuple[str, ...]] = ("alpha",)
    cuts: ClassVar[str] = "even"
    method: ClassVar[str] = "privag"


@dataclass(frozen=True)
class AdvancedAdaptiveGrid(AdaptiveGrid):
    """Two rounds with uneven cuts: cells are narrow on the side of the denser neighbour.

    Parameters
    ----------
    window : Window, or bounds (x0, y0, x1, y1)
    epsilon : float
    alpha1, alpha2 : float
        Constants of the sides of both levels.
    sigma : float
        Share of the persons who report in the first round.
    margin : float
        Share of a cell that a cut leaves on either side at least; in [0, 0.5).
    pieces : {"exact", "literal_floor", "literal_ceil"}
        Rule of the number of pieces of a cut: so that there are as many cells as intended, or as printed.
    consistent, rounding_g1, rounding_g2, oracle, post
        As in `PrivAG`.

    References
    ----------
    Balioglu, Khodaie, Taweel & Gursoy (2024), Grid-based decompositions for spatial data under local differential
    privacy.
    """

    _: KW_ONLY
    alpha1: float = setting(
        AAG.first, help="Constant of the sides of the first level", option="--first-constant", panel=EXPERT
    )
    alpha2: float = setting(
        AAG.second, help="Constant of the sides of the second level", option="--second-constant", panel=EXPERT
    )
    sigma: float = setting(AAG.sigma, **SIGMA)
    margin: float = setting(0.01, help="Share of a cell that a cut leaves on either side at least", panel=EXPERT)
    pieces: str = setting("exact", help="How many pieces the sides of a cut have", choices=PIECES, panel=EXPERT)
    constants: ClassVar[tuple[str, ...]] = ("alpha1", "alpha2")
    cuts: ClassVar[str] = "adaptive"
    method: ClassVar[str] = "aag"
    siblings: ClassVar[tuple[type[Settings], ...]] = (PrivAG,)

    def uneven(self) -> dict[str, Any]:
        return {"margin": self.margin, "pieces": self.pieces}


def studied(rng: RngLike, fast: Any) -> bool:
    """Whether a run counts as a study, which is not private: `fast`, or with the caller's random numbers."""
    return flag("fast", fast) or rng is not None
