"""`MarkedMasses`: masses of tents in space times hats in time times types, with discrete Laplace noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LaplaceStatistic, lattice_tents
from dpppsynth.contract.parameter_forms import OBJECT, POSITIVE, Form, one_among
from dpppsynth.contract.statistic import Parameters, Statistic, capped, mesh_words
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.marked.bound import marked_tents, marks_sensitivity, time_bits
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import AnyOffset, MarkedOffset
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.patterns import PointPattern, require_place
from dpppsynth.spatial.person_points import labels_of

# Numbers that a field behind them can have in the memory of a small machine.
MOST_NUMBERS = 100_000
# Points whose shares are taken at once.
AT_ONCE = 50_000
# Form of types and times on a certificate.
MARKS_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["types", "times"],
    "additionalProperties": False,
    "properties": {"types": {"type": ["object", "null"]}, "times": {"type": ["object", "null"]}},
}


class MarkedStatistic(Statistic):
    """Base of statistics of points with types and times.

    Attributes
    ----------
    marks : Marks
        Public types and range of times.
    """

    keeps_marks: ClassVar[bool] = True
    if TYPE_CHECKING:

        @property
        def marks(self) -> Marks:
            """Public types and range of times."""

    @property
    def described(self) -> Marks:
        return self.marks

    def require_columns(self, pattern: PointPattern) -> None:
        """Refuse a pattern in another domain, or without the marks that are measured."""
        require_place(pattern, self.domain, None)
        user = self.persons_by
        if user is not None:
            labels_of(pattern, user)
        self.marks.require_names(set(pattern.marks or {}) - {user})

    def with_surrogate_marks(
        self, pattern: PointPattern, offset: AnyOffset | None, rng: np.random.Generator
    ) -> PointPattern:
        times, size = self.marks.times, len(pattern)
        if isinstance(offset, MarkedOffset):
            kinds, at = offset.draw(pattern.xy, rng)
        else:
            kinds = rng.integers(self.marks.shape[0], size=size)
            at = np.zeros(size) if times is None else rng.uniform(times.start, times.end, size)
        persons = {} if self.persons_by is None else {self.persons_by: np.arange(size)}
        return PointPattern.at(pattern.positions, pattern.domain, {**self.marks.columns(kinds, at), **persons})

    def require_marks(self, marks: Mapping[str, Any]) -> None:
        self.marks.require(marks)


@dataclass(frozen=True, eq=False, repr=False)
class MarkedMasses(MarkedStatistic, LaplaceStatistic):
    """Masses of points with marks, and the bound they satisfy.

    Numbers are in the order of types, of hats of each type, and of vertices of each hat.

    Attributes
    ----------
    mesh : Mesh
        Of the tents in space.
    marks : Marks
        Public types and range of times.
    relation : CappedRelation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    epsilon : float
        Budget asked for; the guarantee's own epsilon is at most this.
    """

    mesh: Mesh
    marks: Marks
    relation: CappedRelation
    n: int | None
    expected_n: float | None
    epsilon: float
    form: ClassVar[Form] = {
        "mesh": OBJECT,
        "marks": MARKS_FORM,
        "lattice_bits": one_among(LATTICE_BITS, LATTICE_BITS + 14),
        "scale": POSITIVE,
    }
    basis: ClassVar[str] = "tents"

    def __post_init__(self) -> None:
        types, hats, places = self.shape
        if self.size > MOST_NUMBERS:
            msg = (
                f"marks: {types} types times {hats} hats times {places} vertices are {self.size:,} numbers, and "
                f"{MOST_NUMBERS:,} the most; join rare types, or take fewer hats or a larger spacing."
            )
            raise InputError(msg)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"MarkedMasses({self.mesh!r}, {self.marks!r}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def bits(self) -> int:
        """Binary digits of the lattice: those of tents, and of hats."""
        return LATTICE_BITS + time_bits(self.marks)

    @cached_property
    def sensitivity(self) -> int:
        return marks_sensitivity(self.mesh, self.marks, self.relation)

    @cached_property
    def guarantee(self) -> Guarantee:
        return marked_tents(self.mesh, self.marks, self.relation, scale=self.scale)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        mesh, marks = mesh_from_recipe(p["mesh"], domain), Marks.from_dict(p["marks"])
        return cls(mesh, marks, capped(relation), p["n"], p["expected_n"], p["epsilon"])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of types, hats and vertices."""
        return (*self.marks.shape, len(self.mesh.vertices))

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def table_rows(self) -> Rows:
        types, hats, _ = self.shape
        measured = f"tents on {mesh_words(self.mesh)}, times {hats} hats in time, times {types} types"
        return [("measured", measured), *self.noise_rows()]

    def field_shares(self, field: Mesh, pieces: Pieces | None = None) -> "scipy.sparse.csr_array":
        types, hats, _ = self.shape
        return scipy.sparse.kron(scipy.sparse.eye_array(types * hats), field.shares(self.mesh), format="csr")

    def measure_near(self, field: Mesh) -> Floats:
        from dpppsynth.mechanisms.marked.intensity import MarkedMesh

        return MarkedMesh(field, self.marks).measure

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        return self.exact_at(pattern.positions, *self.marks.require(pattern.marks))

    def exact_at(self, positions: Floats, kinds: Ints, times: Floats) -> Ints:
        """(size,) masses of points at positions (n, 2) with type numbers (n,) and times (n,), in lattice units."""
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(positions), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            self._add(total, positions[part], kinds[part], times[part])
        return total

    def _add(self, total: Ints, positions: Floats, kinds: Ints, times: Floats) -> None:
        """Add the shares of some points: the product of both factors, each rounded for itself."""
        _, hats, places = self.shape
        vertex, tent = lattice_tents(self.mesh, positions, LATTICE_BITS)
        if self.marks.times is None:
            hat, share = np.zeros((len(kinds), 1), dtype=np.int64), np.ones((len(kinds), 1), dtype=np.int64)
        else:
            hat, share = self.marks.times.lattice(times, time_bits(self.marks))
        number = (kinds[:, None] * hats + hat)[:, :, None] * places + vertex[:, None, :]
        np.add.at(total, number.ravel(), (share[:, :, None] * tent[:, None, :]).ravel())
