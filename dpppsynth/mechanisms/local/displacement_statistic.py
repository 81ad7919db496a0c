"""`DisplacementStatistic`: one report of each person about their whole trajectory, and the counts of all of them."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.effort import number
from dpppsynth.contract.parameter_forms import TEXT, WHOLE, Form, const, or_null
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.arguments import instance, whole
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import local_trajectory
from dpppsynth.mechanisms.local.randomizers.displacements import DisplacementLaw, displacement_of
from dpppsynth.mechanisms.local.randomizers.randomizer_names import randomizer_from_dict
from dpppsynth.mechanisms.local.shuffle import Shuffle
from dpppsynth.mechanisms.local.statistic import ReportsStatistic, randomness_name, tally
from dpppsynth.mechanisms.local.trajectories import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.lines import LineModel
from dpppsynth.mechanisms.local.trajectory_statistic import WalksStatistic, checked_user
from dpppsynth.models.recipes import window
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern

# Work of a cell, and of a displacement from it.
CELL, WAY = 20.0, 0.5


@dataclass(frozen=True, eq=False, repr=False)
class DisplacementStatistic(WalksStatistic):
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
        """Reports of every person, and the displacements that are told apart."""
        far = f"up to {self.law.reach} cells from start to end; longer ones count as these"
        return [*self.report_rows(self.law.parameters()), ("displacements", far)]

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that every report satisfies."""
        return local_trajectory(self.law)

    def statement(self, shuffle: Shuffle) -> ShuffledPrivacy:
        """Second statement, by the clones of the clients' law."""
        return shuffle.one_message(self.law.spent, self.law.clones)

    @classmethod
    def work(cls, parameters: Parameters, domain: Domain) -> float:
        """Work of the cells of the grid and of the displacements from each."""
        clients = parameters.get("randomizer")
        stated = clients if isinstance(clients, dict) else {}
        return number(stated.get("cells")) ** 2 * (CELL + WAY * number(stated.get("reach")))

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        """The plan on a certificate."""
        p, law = parameters, randomizer_from_dict(parameters["randomizer"])
        require(isinstance(law, DisplacementLaw), "the clients report starts and displacements")
        plan = cls(window(domain), law, p["n"], p["user"], Shuffle.stated(p))  # type: ignore[arg-type]
        plan.require_relation(relation)
        return plan

    @property
    def size(self) -> int:
        """Number of counts."""
        return self.law.size

    def validate_released(self, lattice: Ints) -> None:
        """Refuse counts (size,) that n reports do not give."""
        self.law.counts_of(lattice, self.n)

    def parameters(self) -> JsonObject:
        """Public parameters for the certificate: enough to derive the guarantee again."""
        return {
            "basis": self.basis,
            "randomizer": self.law.parameters(),
            "user": self.user,
            "epsilon": self.epsilon,
            "n": self.n,
            "expected_n": None,
            **self.shuffled_parameters(),
        }

    def values(self, walks: GridTrajectories) -> Ints:
        """(T,) values of the clients with these trajectories. As sensitive as the points."""
        return trajectory_values(self.law, walks)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        """Run one client for every trajectory, and count their reports.

        The pattern is marked with `user` and with nothing else; the points of a trajectory in the order of its visits.
        """
        reports = partial(tally, self.law, rng=generator(rng))
        counts = self.apply_noise(reports, self.values(self.walks(pattern)))
        return self.counted(counts, seeded=rng is not None)

    def counted(self, counts: Ints, *, seeded: bool) -> PrivateStatistic[Self]:
        """Counts (size,) of n reports as what was released."""
        return PrivateStatistic(self, self.law.counts_of(counts, self.n), randomness_name(seeded), seeded)

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        """The released counts from their JSON form; InputError where they are no counts of n reports."""
        statistic = super().restore(data)
        self.law.counts_of(statistic.lattice, self.n)
        return statistic

    def model(self, lattice: Ints) -> LineModel:
        """Straight lines behind the counts, as many as there were trajectories."""
        starts, moves = self.law.parts(lattice, self.n, inside=self.inside)
        reach, inside = self.law.reach, self.inside
        return LineModel(cells=self.cells, n=self.n, starts=starts, displacements=moves, reach=reach, inside=inside)


def trajectory_values(law: DisplacementLaw, walks: GridTrajectories) -> Ints:
    """(T,) values of trajectories: their first cell, and the way from there to their last."""
    first, last = walks.values[walks.offsets[:-1]], walks.values[walks.offsets[1:] - 1]
    way = np.stack(np.divmod(last, law.cells), axis=1) - np.stack(np.divmod(first, law.cells), axis=1)
    return np.asarray(first * law.displacements + displacement_of(way, law.reach))
