"""`TraceStatistic`: the two rounds of LDPTrace reports, the second adapted to the first.

A plan is made from public parameters alone; `measure` runs all clients in one process. What is released are the counts
of the reports of both rounds. The second round is a function of the first counts, so anybody can make it again, and
everything after the counts is post-processing (docs/theory/local.md).
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.parameter_forms import TEXT, WHOLE, Form, const, or_null, two
from dpppsynth.contract.statistic import Parameters, mesh_words, require
from dpppsynth.core.arguments import elements, instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import local_trajectories
from dpppsynth.mechanisms.local.statistic import ReportsStatistic, Shuffle, grid_mesh, grid_values, randomness_name
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories, starts
from dpppsynth.mechanisms.local.trajectories.protocol import FOR_LENGTH, RoundLaw, TraceCounts, TraceProtocol
from dpppsynth.mechanisms.local.trajectories.walks import TraceModel, WalkModel
from dpppsynth.models.recipes import window
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy, shuffled_rounds
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern, require_match
from dpppsynth.spatial.persons import persons


class WalksStatistic(ReportsStatistic):
    """Base of statistics that count reports about trajectories on a square grid over a window.

    Attributes
    ----------
    window : Window
    cells : int
        Cells along each side of the grid.
    n : int
        Public number of trajectories.
    user : str or None
        Mark that tells trajectories, whose points are in the order of the rows; None where every point is one.
    """

    window: Window
    cells: int
    n: int
    user: str | None

    @property
    def domain(self) -> Domain:
        return self.window

    @cached_property
    def mesh(self) -> Mesh:
        """The grid as a mesh of regular squares."""
        return grid_mesh(self.window, self.cells)

    @cached_property
    def element_values(self) -> Ints:
        """(T,) cell `i * cells + j` of each element of the mesh."""
        return grid_values(self.mesh, self.cells)

    @cached_property
    def inside(self) -> Any:
        """(cells**2,) whether a cell meets the window at all."""
        inside = np.zeros(self.cells**2, dtype=bool)
        inside[self.element_values] = True
        return inside

    def model(self, lattice: Ints) -> WalkModel:
        """Model of trajectories estimated from the counts, with as many trajectories as were reported."""
        raise NotImplementedError

    def require_counted(self, pattern: PointPattern) -> None:
        if number_of_trajectories(pattern, self.user) != self.n:
            msg = "n: the release was planned for another number of trajectories; plan with that of this pattern."
            raise InputError(msg)

    def walks(self, pattern: PointPattern) -> GridTrajectories:
        """The cells of every trajectory. As sensitive as the points."""
        require_match(pattern, self.domain, None, self.user)
        self.require_counted(pattern)
        order, lengths = _in_order(pattern, self.user)
        values = self.element_values[self.mesh.locate(pattern.positions)]
        return GridTrajectories(self.cells, values[order], starts(lengths))


@dataclass(frozen=True, eq=False, repr=False)
class TraceStatistic(WalksStatistic):
    """Counts of the reports of both rounds of LDPTrace, those of the second after those of the first.

    In each round they are in the order of `RoundLaw.parts`: of lengths; of first cells, last cells and moves.

    Attributes
    ----------
    window : Window
        The grid tiles its bounding box.
    epsilon : float
        Budget of a trajectory, all its reports together.
    cells : int
        Cells along each side of the grid.
    max_length : int
        Longer trajectories are cut to it.
    n : int
        Public number of trajectories.
    clients : (int, int)
        Numbers of persons who report in the first and in the second round; all of them unless given.
    user : str or None
        Mark that tells trajectories, whose points are in the order of the rows; None where every point is one.
    longest : int or None
        Length that the first counts lead to, once it is known.
    shuffle : Shuffle, optional
        Public numbers of a shuffler of each round's messages, for a second statement.
    """

    window: Window
    epsilon: float
    cells: int
    max_length: int
    n: int
    _: KW_ONLY
    clients: Any = None
    user: str | None = "trajectory"
    longest: int | None = None
    shuffle: Shuffle | None = None
    basis: ClassVar[str] = "trajectories"
    form: ClassVar[Form] = ReportsStatistic.form | {
        "basis": const("trajectories"),
        "cells": WHOLE,
        "max_length": WHOLE,
        "clients": two(WHOLE),
        "user": or_null(TEXT | {"minLength": 1}),
        "longest": WHOLE,
    }
    attributes: ClassVar[dict[str, str]] = {
        "shuffled": "shuffle",
        "cells": "protocol.cells",
        "max_length": "protocol.max_length",
    }

    def __post_init__(self) -> None:
        instance("window", self.window, Window, "Window.rectangle(0, 0, 1000, 1000) is one")
        object.__setattr__(self, "n", whole("n", self.n, 1, most=2**53))
        given = (self.n, self.n) if self.clients is None else elements(self.clients) or ()
        object.__setattr__(self, "clients", tuple(whole("clients", each, 1, most=self.n) for each in given))
        if len(self.clients) != 2:
            msg = "clients: needs the numbers of persons in both rounds, none above n."
            raise InputError(msg)
        checked_user(self.user)
        self.guarantee.require(self.protocol.epsilon, 0.0)
        self.settle_shuffle()

    def __repr__(self) -> str:
        return (
            f"TraceStatistic({self.cells} x {self.cells} cells, up to {self.max_length} long, epsilon={self.epsilon:g})"
        )

    def table_rows(self) -> Rows:
        first, second = self.clients
        return [
            ("reports", f"of {first} of {self.n} persons in the first round, and of {second} in the second"),
            ("grid", mesh_words(self.mesh)),
            ("longest", f"{self.max_length} cells; longer trajectories are cut"),
        ]

    @cached_property
    def protocol(self) -> TraceProtocol:
        """The protocol of both rounds."""
        return TraceProtocol(epsilon=self.epsilon, cells=self.cells, max_length=self.max_length)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that all reports of a person satisfy together, whatever is announced between the rounds."""
        return local_trajectories(self.protocol, self.longest)

    @property
    def together(self) -> int:
        return min(self.clients)

    def statement(self, shuffle: Shuffle) -> ShuffledPrivacy:
        rounds = float(self.protocol.first.total), self.protocol.epsilon * (1 - float(FOR_LENGTH))
        return shuffled_rounds(rounds, shuffle.reports, shuffle.delta)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p, known = parameters, {name: parameters[name] for name in ("clients", "user", "longest")}
        known["shuffle"] = Shuffle.stated(p)
        require(p["longest"] is not None, "the longest length is known")
        plan = cls(window(domain), p["epsilon"], p["cells"], p["max_length"], p["n"], **known)
        plan.require_relation(relation)
        return plan

    @property
    def size(self) -> int:
        """Number of counts of both rounds; the longest length is known by now."""
        return self.protocol.first.size + self.protocol.second(whole("longest", self.longest, 1)).size

    @property
    def most_numbers(self) -> int:
        return self.protocol.first.size + self.protocol.second(self.protocol.max_length).size

    def validate_released(self, lattice: Ints) -> None:
        self.counts(lattice)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        """Run one client for every trajectory, in two rounds, and count their reports.

        The pattern is marked with `user` and with nothing else; the points of a trajectory in the order of its
        visits.
        """
        walks, source = self.walks(pattern), None if rng is None else generator(rng)

        def reports(law: RoundLaw) -> TraceCounts:
            return TraceCounts(
                law, self.apply_noise(partial(law.tally_about, rng=generator(source)), law.about(walks)), self.n
            )

        lengths = reports(self.protocol.first)
        return self.counted(lengths, reports(self.protocol.announced(lengths)), seeded=rng is not None)

    def counted(self, lengths: TraceCounts, mobility: TraceCounts, *, seeded: bool) -> PrivateStatistic[Self]:
        """Counts of both rounds as a released statistic; InputError where they are not those of this statistic."""
        if (lengths.n, mobility.n) != self.clients:
            msg = "clients: the counts are not those of so many persons; plan with their numbers."
            raise InputError(msg)
        settled = replace(self, longest=mobility.law.longest)
        both = np.concatenate([lengths.values, mobility.values])
        return PrivateStatistic(settled, both, randomness_name(seeded), seeded)

    def counts(self, lattice: Ints) -> tuple[TraceCounts, TraceCounts]:
        """The counts of both rounds, from a released statistic; InputError where they do not belong together."""
        return self.protocol.counts(lattice, self.clients, self.longest)

    def model(self, lattice: Ints) -> TraceModel:
        return self.protocol.model(*self.counts(lattice), n=self.n, inside=self.inside)


def number_of_trajectories(pattern: PointPattern, user: str | None) -> int:
    """Number of trajectories of a pattern marked with `user`, which is public."""
    require_match(pattern, pattern.domain, None, user)
    return len(_in_order(pattern, user)[1])


def checked_user(user: Any) -> str | None:
    """Name of the mark that identifies trajectories; None where every point is a trajectory."""
    if user is not None and not instance("user", user, str, "it names the mark that tells trajectories apart"):
        msg = "user: needs the name of a mark, got an empty text; it names the mark that tells trajectories apart."
        raise InputError(msg)
    return None if user is None else str(user)


def _in_order(pattern: PointPattern, user: str | None) -> tuple[Ints, Ints]:
    """(n,) rows of one trajectory after the other, each in its own order, and (T,) lengths."""
    if user is None:
        return np.arange(len(pattern)), np.ones(len(pattern), dtype=np.int64)
    who = persons((pattern.marks or {})[user])
    return np.argsort(who, kind="stable"), np.bincount(who)
