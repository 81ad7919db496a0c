"""`LineTrace` and its statistic: one report of each person about the start or the displacement of a trajectory."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.parameter_forms import TEXT, WHOLE, Form, const, or_null
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import EPSILON, PRIVACY, setting
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.arguments import flag, instance, plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import local_trajectory
from dpppsynth.mechanisms.local.randomizers.area import grid_radius
from dpppsynth.mechanisms.local.randomizers.displacements import MOST_CELLS, DisplacementLaw, displacement_of
from dpppsynth.mechanisms.local.randomizers.randomizer import randomizer_from_dict
from dpppsynth.mechanisms.local.release import LineEstimator
from dpppsynth.mechanisms.local.reports import Counts
from dpppsynth.mechanisms.local.statistic import (
    SHUFFLE_DELTA,
    SHUFFLED,
    OneRoundStatistic,
    ReportsStatistic,
    Shuffle,
)
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism, number_of_reports, require_window
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.walks import LineModel
from dpppsynth.mechanisms.local.trajectory_statistic import WalksStatistic, checked_user
from dpppsynth.mechanisms.local.trajectory_synthesizer import OfTrajectories
from dpppsynth.models.recipes import window
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class DisplacementStatistic(OneRoundStatistic, WalksStatistic):
    """Counts of one report of each person, about the start or the displacement of their trajectory.

    Attributes
    ----------
    window : Window
        The grid tiles its bounding box.
    law : DisplacementLaw
    n : int
        Public number of trajectories.
    user : str or None
        Mark that tells trajectories, whose points are in the order of the rows; None where every point is one.
    shuffle : Shuffle, optional
        Public numbers of a shuffler, for a second statement.
    """

    window: Window
    law: DisplacementLaw
    n: int
    user: str | None = "trajectory"
    shuffle: Shuffle | None = None
    basis: ClassVar[str] = "displacements"
    form: ClassVar[Form] = ReportsStatistic.form | {
        "basis": const("displacements"),
        "randomizer": {"type": "object", "required": ["kind", "epsilon", "cells", "reach", "radius"]},
        "user": or_null(TEXT | {"minLength": 1}),
        "n": WHOLE,
    }

    def __post_init__(self) -> None:
        instance("window", self.window, Window, "Window.rectangle(0, 0, 1000, 1000) is one")
        instance("law", self.law, DisplacementLaw)
        object.__setattr__(self, "n", whole("n", self.n, 1, most=2**53))
        checked_user(self.user)
        self.guarantee.require(self.epsilon, 0.0)
        self.settle_shuffle()

    def __repr__(self) -> str:
        return (
            f"DisplacementStatistic({self.cells} x {self.cells} cells, reach {self.law.reach}, "
            f"epsilon={self.epsilon:g})"
        )

    @property
    def epsilon(self) -> float:
        """Budget of a person's report."""
        return float(self.law.epsilon)

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Cells along each side of the grid."""
        return self.law.cells

    def table_rows(self) -> Rows:
        far = f"up to {self.law.reach} cells from start to end; longer ones count as these"
        return [*self.report_rows(self.law.parameters()), ("displacements", far)]

    @cached_property
    def guarantee(self) -> Guarantee:
        return local_trajectory(self.law)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p, law = parameters, randomizer_from_dict(parameters["randomizer"])
        require(isinstance(law, DisplacementLaw), "the clients report starts and displacements")
        plan = cls(window(domain), law, p["n"], p["user"], Shuffle.stated(p))  # type: ignore[arg-type]
        plan.require_relation(relation)
        return plan

    @property
    def randomizer(self) -> DisplacementLaw:
        """Law of a report."""
        return self.law

    def admitted(self, pattern: PointPattern, rng: RngLike = None) -> PointPattern:
        """The pattern itself, marked with `user` and with nothing else: every report is about a whole trajectory."""
        return pattern

    def values(self, pattern: PointPattern) -> Ints:
        return trajectory_values(self.law, self.walks(pattern))

    def model(self, lattice: Ints) -> LineModel:
        starts, moves = self.law.parts(lattice, self.n, inside=self.inside)
        reach, inside = self.law.reach, self.inside
        return LineModel(cells=self.cells, n=self.n, starts=starts, displacements=moves, reach=reach, inside=inside)


def trajectory_values(law: DisplacementLaw, walks: GridTrajectories) -> Ints:
    """(T,) values of trajectories: their first cell, and the displacement from there to their last."""
    first, last = walks.values[walks.offsets[:-1]], walks.values[walks.offsets[1:] - 1]
    way = np.stack(np.divmod(last, law.cells), axis=1) - np.stack(np.divmod(first, law.cells), axis=1)
    return np.asarray(first * law.displacements + displacement_of(way, law.reach))


@dataclass(frozen=True)
class LineTrace(OfTrajectories, LocalMechanism):
    """Synthetic trajectories from one report of each person, about the start or the displacement of theirs.

    Each device draws one of the two questions and answers it with the whole budget: the cell of the start by the disk
    area mechanism, or the direction and distance from start to end by the best frequency oracle. Synthetic trajectories
    are straight lines, whose displacements have the same law everywhere, as far as they stay inside.

    Parameters
    ----------
    epsilon : float
        Budget of a trajectory: of a person, who has one.
    cells : int
        Cells along each side of a grid over the window's bounding box, at most 64.
    reach : int
        Cells from start to end, along the longer axis, that are told apart; longer displacements count as these.
    user : str or None
        Of patterns: the mark that tells trajectories, whose points are in the order of the rows. None takes every point
        for a trajectory of its own.
    shuffled, shuffle_delta : int and float, optional
        As of the other local mechanisms.

    Examples
    --------
    >>> mechanism = LineTrace(epsilon=2.0, cells=3)
    >>> report = mechanism.client([(0, 0), (0, 1), (1, 1)])
    >>> walks = GridTrajectories(3, [0, 1, 4, 8] * 500, list(range(0, 2001, 4)))
    >>> model = mechanism.estimate(mechanism.simulate(walks, rng=1))
    >>> model.expected_visits.shape, len(model.synthesize(7, rng=1))
    ((3, 3), 7)
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    basis: ClassVar[str] = DisplacementStatistic.basis
    cells: int = setting(help="Number of cells along each side of the grid", example="8")
    reach: int = setting(3, help="Cells from start to end that are told apart")
    user: str | None = setting(
        "trajectory", help="Column that tells whose point a row is", metavar="COLUMN", panel=PRIVACY
    )
    shuffled: int | None = setting(None, **SHUFFLED)
    shuffle_delta: float | None = setting(None, **SHUFFLE_DELTA)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_CELLS))
        Shuffle.of(self.shuffled, self.shuffle_delta)
        checked_user(self.user)
        for name in ("epsilon", "reach"):
            object.__setattr__(self, name, getattr(self.randomizer, name))

    @cached_property
    def randomizer(self) -> DisplacementLaw:
        radius = grid_radius(self.epsilon, self.cells)
        return DisplacementLaw(epsilon=self.epsilon, cells=self.cells, reach=self.reach, radius=radius)

    def value(self, place: Any) -> int:
        """The client's value for the cells (k, 2) of a trajectory, in the order of its visits."""
        return int(self.trajectory_values(self._walk(place))[0])

    def _walk(self, cells: Any) -> GridTrajectories:
        pairs = plain_array(cells)
        shaped = pairs is not None and pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu"
        if pairs is None or not shaped or not len(pairs) or pairs.min() < 0 or pairs.max() >= self.cells:
            msg = f"place: needs the cells (i, j) of one trajectory, whole numbers from 0 to {self.cells - 1}."
            raise InputError(msg)
        return GridTrajectories(
            self.cells, pairs[:, 0].astype(int) * self.cells + pairs[:, 1], np.array([0, len(pairs)])
        )

    def trajectory_values(self, trajectories: GridTrajectories) -> Any:
        """(T,) values of the clients with these trajectories."""
        if instance("trajectories", trajectories, GridTrajectories).cells != self.cells:
            msg = f"trajectories: are on another grid; the mechanism has {self.cells} x {self.cells} cells."
            raise InputError(msg)
        return trajectory_values(self.randomizer, trajectories)

    def simulate(self, trajectories: GridTrajectories, rng: RngLike = None, *, fast: bool = False) -> Counts:
        """Run all clients in one process, for studies and audits.

        Parameters
        ----------
        trajectories : GridTrajectories
        rng : None, int or Generator
            As in `client`.
        fast : bool
            Not to be had here; reports are drawn one by one.
        """
        if flag("fast", fast):
            msg = "fast: reports on trajectories are drawn one by one; leave it out."
            raise InputError(msg)
        return self.counts(self.trajectory_values(trajectories), rng, fast=False)

    def estimate(self, counts: Counts) -> LineModel:
        """Model of straight lines estimated from counts, which does not depend on where the window is."""
        own = self.own(counts)
        starts, moves = self.randomizer.parts(own.values, own.n)
        inside: Any = np.ones(self.cells**2, dtype=bool)
        return LineModel(cells=self.cells, n=own.n, starts=starts, displacements=moves, reach=self.reach, inside=inside)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        window, number = require_window(domain), number_of_reports(n, expected_n)
        return ReleasePlan(
            self.basis, DisplacementStatistic(window, self.randomizer, number, self.user, self.shuffle), LineEstimator()
        )
