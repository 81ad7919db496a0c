"""`AreaStatistic`: randomised reports about the cells of a regular grid, and their counts.

A plan is made from public parameters alone; `measure` runs all clients in one process. What it returns, the counts of
the reports, is public, and everything after it is post-processing (docs/theory/local.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.parameter_forms import NULL, OBJECT, WHOLE, Form, const
from dpppsynth.contract.settings import PRIVACY
from dpppsynth.contract.statistic import Parameters, mesh_words, require
from dpppsynth.core.arguments import entries, instance, probability, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.local.bound import REPORTS, SEEDED, local_report, square_grid
from dpppsynth.mechanisms.local.one_report import require_no_marks
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer, randomizer_from_dict
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.models.regular_meshes import cells_along, grid_cells, regular_squares
from dpppsynth.privacy.bounds import void_delta
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy, shuffled_reports
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.intensity import held
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern, require_match

# Declarations of the two settings.
SHUFFLED: dict[str, Any] = {
    "help": "Least number of honest reports that an honest shuffler mixes: a second statement beside the local bound",
    "panel": PRIVACY,
}
SHUFFLE_DELTA: dict[str, Any] = {"help": "Delta of the statement on shuffled reports", "panel": PRIVACY}


@dataclass(frozen=True)
class Shuffle:
    """Public numbers of a guarantee for shuffled reports.

    Attributes
    ----------
    reports : int
        Least number of honest reports that are shuffled together; in each round, where there are two.
    delta : float
    """

    reports: int
    delta: float
    form: ClassVar[JsonObject] = {
        "type": "object",
        "properties": {"reports": WHOLE, "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
        "required": ["reports", "delta"],
        "additionalProperties": False,
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "reports", whole("shuffled", self.reports, 1, most=2**53))
        object.__setattr__(self, "delta", float(probability("shuffle_delta", self.delta)))

    @classmethod
    def of(cls, shuffled: Any, delta: Any) -> Self | None:
        """Shuffle with these two settings, which go together; None where neither is given."""
        if shuffled is None and delta is None:
            return None
        if shuffled is None or delta is None:
            given, missing = ("shuffle_delta", "shuffled") if shuffled is None else ("shuffled", "shuffle_delta")
            msg = f"{missing}: {given} needs it; give both, such as shuffled=10_000 and shuffle_delta=1e-8, or neither."
            raise InputError(msg)
        return cls(shuffled, delta)

    @classmethod
    def stated(cls, parameters: JsonRead) -> Self | None:
        """The shuffle that a certificate states; None without a shuffler."""
        if "shuffled" not in parameters:
            return None
        return cls(**entries("shuffled", parameters["shuffled"], ("reports", "delta")))

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands among the public parameters."""
        return {"reports": self.reports, "delta": self.delta}

    def require(self, n: int, least: int) -> None:
        """Refuse more honest reports than are shuffled (in the smaller round), and a delta that promises nothing."""
        if self.reports > least:
            msg = (
                f"shuffled: {self.reports} honest reports are more than the {least} that are shuffled together; state "
                "how many of these are honest at least."
            )
            raise InputError(msg)
        if self.delta >= void_delta(n, None):
            msg = f"shuffle_delta: {self.delta:g} is 1/n or more for {n} persons, which promises nothing; take less."
            raise InputError(msg)

    def one_message(self, local_epsilon: float, clones: float | None = None) -> ShuffledPrivacy:
        """Guarantee where every person sends one message within `local_epsilon`."""
        return shuffled_reports(local_epsilon, self.reports, self.delta, clones=clones)


def grid_mesh(window: Window, cells: int) -> Mesh:
    """The grid over a window as a mesh of regular squares."""
    return regular_squares(window, shape=(cells + 1, cells + 1))


def grid_values(mesh: Mesh, cells: int) -> Ints:
    """(T,) cell `i * cells + j` of each element of such a mesh."""
    i, j = grid_cells(mesh).T
    return np.asarray(i * cells + j, dtype=np.int64)


def drawn_by(relation: Relation) -> str | None:
    """Mark by which a relation identifies persons, of each of whom one point is drawn."""
    return None if relation.user_cap is None else relation.user_cap.user


def randomness_name(seeded: bool) -> str:
    """Name of the reports' randomness on certificates."""
    return SEEDED if seeded else REPORTS


class ReportsStatistic(LatticeStatistic):
    """Base of statistics that count reports: whole numbers of a public number of reports."""

    n: int
    shuffle: Shuffle | None
    # Of all counts of reports.
    form: ClassVar[Form] = {"n": WHOLE, "expected_n": NULL, "shuffled": Shuffle.form}
    attributes: ClassVar[Mapping[str, str]] = {"shuffled": "shuffle"}
    optional: ClassVar[frozenset[str]] = frozenset({"shuffled"})
    expected_n: ClassVar[None] = None
    capped: ClassVar[bool] = False
    keeps_cap: ClassVar[bool] = True

    @property
    def bits(self) -> int:
        """Zero: counts are whole."""
        return 0

    def noise_name(self, *, seeded: bool = False) -> str:
        return randomness_name(seeded)

    def report_rows(self, client: Mapping[str, Any]) -> Rows:
        """Number of reports, grid, and the law of a client's report."""
        numbers = ", ".join(f"{name} {value}" for name, value in client.items() if name not in ("kind", "epsilon"))
        return [
            ("reports", f"one from each of {self.n} persons"),
            ("grid", mesh_words(self.mesh)),
            ("client", f"{client['kind']} ({numbers})"),
        ]

    def require_columns(self, pattern: PointPattern) -> None:
        if self.count_unit is None and self.persons_by is None:
            require_no_marks(instance("pattern", pattern, PointPattern))
        super().require_columns(pattern)

    def require_relation(self, relation: Relation) -> None:
        """Refuse a relation stated on a certificate that is not the clients' own."""
        require(relation == self.relation, "the relation is that of the clients' mechanism")

    @property
    def relation(self) -> Relation:
        """Neighbouring relation: one person's location, or trajectory, changes."""
        return self.guarantee.relation

    @property
    def together(self) -> int:
        """Number of reports that are shuffled together: with two rounds, those of the smaller one."""
        return self.n

    def statement(self, shuffle: Shuffle) -> ShuffledPrivacy:
        """Second guarantee for these reports under an honest shuffler."""
        raise NotImplementedError

    @cached_property
    def shuffled(self) -> ShuffledPrivacy | None:
        return None if self.shuffle is None else self.statement(self.shuffle)

    def settle_shuffle(self) -> None:
        """Refuse a shuffler's public numbers that do not suit these reports; InputError."""
        if self.shuffle is not None:
            instance("shuffle", self.shuffle, Shuffle, "Shuffle(10_000, 1e-8) is one").require(self.n, self.together)

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        statistic = super().restore(data)
        self.validate_released(statistic.lattice)
        return statistic


class OneRoundStatistic(ReportsStatistic):
    """Base of statistics whose clients send one report each, all by one law.

    Attributes
    ----------
    randomizer : Randomizer
    drawn_by : str or None
        Mark that tells persons, of each of whom one point is drawn; without it every point is a person.
    """

    if TYPE_CHECKING:

        @property
        def randomizer(self) -> Any:
            """Law of a report."""

        @property
        def drawn_by(self) -> str | None:
            """Mark that tells persons."""

    def statement(self, shuffle: Shuffle) -> ShuffledPrivacy:
        return shuffle.one_message(self.randomizer.spent, self.randomizer.clones)

    def table_rows(self) -> Rows:
        return self.report_rows(self.randomizer.parameters())

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that every report satisfies, and so all of them together."""
        return local_report(self.randomizer, self.drawn_by)

    @property
    def size(self) -> int:
        size: int = self.randomizer.size
        return size

    def validate_released(self, lattice: Ints) -> None:
        self.randomizer.counts_of(lattice, self.n)

    def values(self, pattern: PointPattern) -> Ints:
        """(n,) values of the clients of a pattern. As sensitive as the points."""
        raise NotImplementedError

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        source = generator(rng)
        values = self.values(self.admitted(pattern, source))
        counts = self.apply_noise(partial(self.randomizer.tally, rng=source), values)
        return self.counted(counts, seeded=rng is not None)

    def counted(self, counts: Ints, *, seeded: bool) -> PrivateStatistic[Self]:
        """Counts (size,) of n reports as a released statistic."""
        return PrivateStatistic(self, self.randomizer.counts_of(counts, self.n), randomness_name(seeded), seeded)


@dataclass(frozen=True, eq=False, repr=False)
class AreaStatistic(OneRoundStatistic):
    """Counts of the reports of n clients, whose values are the cells of a regular grid.

    Attributes
    ----------
    mesh : PlanarMesh
        Regular squares over the window: the grid.
    randomizer : Randomizer
        With one value for each cell of the grid, `i * cells + j` for the cell (i, j).
    n : int
        Public number of reports.
    shuffle : Shuffle, optional
        Public numbers of a shuffler, for a second statement.
    drawn_by : str, optional
        Mark that tells persons, of each of whom one point is drawn; without it every point is a person.
    """

    mesh: Mesh
    randomizer: Any
    n: int
    shuffle: Shuffle | None = None
    drawn_by: str | None = None
    basis: ClassVar[str] = "reports"
    form: ClassVar[Form] = ReportsStatistic.form | {
        "basis": const("reports"),
        "mesh": OBJECT,
        "randomizer": {"type": "object", "required": ["kind", "epsilon"]},
    }

    def __post_init__(self) -> None:
        instance("mesh", self.mesh, Mesh, "models.regular_squares(window, shape=(16, 16)) makes one")
        instance("randomizer", self.randomizer, Randomizer)
        object.__setattr__(self, "n", whole("n", self.n, 1))
        nx, ny = self.shape
        side = square_grid(self.randomizer)
        if (nx, ny) != (side, side):
            msg = f"mesh: it has {nx} x {ny} cells, and the mechanism {side} x {side}."
            raise InputError(msg)
        self.guarantee.require(self.epsilon, 0.0)
        self.settle_shuffle()

    def __repr__(self) -> str:
        nx, ny = self.shape
        return f"AreaStatistic({self.randomizer.kind} on {nx} x {ny} cells, epsilon={self.epsilon:g})"

    def settle_shuffle(self) -> None:
        if self.shuffle is not None and self.randomizer.metric:
            msg = "shuffled: nothing is stated of a shuffler under geo-indistinguishability; take a local mechanism."
            raise InputError(msg)
        super().settle_shuffle()

    @property
    def epsilon(self) -> float:
        """Budget of one report."""
        return float(self.randomizer.epsilon)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Cells (nx, ny) along x and y."""
        return cells_along(self.mesh)

    @cached_property
    def element_values(self) -> Ints:
        """(T,) value of the clients in each element of the mesh."""
        return grid_values(self.mesh, self.shape[1])

    @cached_property
    def inside(self) -> Any:
        """(inputs,) whether the part of a cell inside the window is large enough for persons."""
        inside = np.zeros(self.randomizer.inputs, dtype=bool)
        inside[self.element_values[held(self.mesh.element_measure)]] = True
        return inside

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p, clients = parameters, randomizer_from_dict(parameters["randomizer"])
        require(clients.kind == mechanism, f"the clients' mechanism is {mechanism}")
        plan = cls(mesh_from_recipe(p["mesh"], domain), clients, p["n"], Shuffle.stated(p), drawn_by(relation))
        plan.require_relation(relation)
        return plan

    def values(self, pattern: PointPattern) -> Ints:
        require_no_marks(instance("pattern", pattern, PointPattern))
        require_match(pattern, self.domain, self.n)
        return self.element_values[self.mesh.locate(pattern.positions)]

    def shares(self, statistic: PrivateStatistic[Self], settings: Mapping[str, Any]) -> Floats:
        """(inputs,) estimated shares of the values, with settings of the randomizer's estimator."""
        estimate = self.randomizer.estimate(statistic.lattice, self.n, inside=self.inside, **settings)
        return np.asarray(estimate, dtype=float)
