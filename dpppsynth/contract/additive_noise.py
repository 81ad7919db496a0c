"""Counts and tent masses with discrete Laplace noise, and base classes of all noised statistics.

A plan is made from public parameters alone and knows its guarantee; `measure` spends the budget and returns a
`PrivateStatistic`, public from then on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

import numpy as np
import scipy

from dpppsynth.contract.parameter_forms import OBJECT, POSITIVE, Form, one_among
from dpppsynth.contract.result import Saved
from dpppsynth.contract.statistic import Parameters, Statistic, capped, mesh_words, require
from dpppsynth.core.arguments import instance, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows, instead
from dpppsynth.models.likelihood import MassLikelihood, NoisyMasses
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy import bounds
from dpppsynth.privacy.bounds import laplace_scale
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import DiscreteNoise, OpenDPLaplace, SeededLaplace, laplace_noise, require_room
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.patterns import PointPattern

# Counts per cell, or masses per vertex.
BASES = ("cells", "tents")
# Entries of a matrix that fit into the memory of a small machine.
MOST_ENTRIES = 100_000_000
P_co = TypeVar("P_co", bound=Statistic, covariant=True)


def require_few_made_up(number: float, most: float, epsilon: float, *, of: str, remedy: str) -> None:
    """Refuse noise that adds more than `most` spurious points or persons on average."""
    if number > most:
        msg = (
            f"epsilon: {epsilon:g} would make up more than {most:g} {of} of noise; take a larger epsilon, or {remedy}."
        )
        raise InputError(msg)


def cell_counts(mesh: Mesh, positions: Floats) -> Ints:
    """(T,) number of points per element; a point on a border belongs to one element by the mesh's rule."""
    return np.bincount(mesh.locate(positions), minlength=len(mesh.elements)).astype(np.int64)


def lattice_tents(mesh: Mesh, positions: Floats, bits: int) -> tuple[Ints, Ints]:
    """(n, k) vertices about each position, and their basis values rounded to integers that sum to `2^bits`.

    Largest remainders go up, so two points' roundings differ from their exact values by little in L1 (docs/theory.md,
    section 4).
    """
    element, weight = mesh.values(positions)
    scaled = weight * 2**bits
    low = np.floor(scaled).astype(np.int64)
    rank = np.argsort(np.argsort(low - scaled, axis=1, kind="stable"), axis=1, kind="stable")
    low += rank < (2**bits - low.sum(axis=1))[:, None]
    return mesh.elements[element], low


def lattice_masses(mesh: Mesh, positions: Floats, bits: int) -> Ints:
    """(V,) tent masses in units of `2^-bits`.

    Integers add exactly: no floating-point sum touches sensitive values.
    """
    vertices, shares = lattice_tents(mesh, positions, bits)
    total = np.zeros(len(mesh.vertices), dtype=np.int64)
    np.add.at(total, vertices.ravel(), shares.ravel())
    return total


class LatticeStatistic(Statistic):
    """Base of statistics of whole numbers on a lattice, one per vertex or element of a mesh.

    Attributes
    ----------
    mesh : Mesh
    n : int or None
        Public number of points; None when the relation keeps it secret.
    bits : int
        Released are multiples of `2^-bits`.
    """

    attributes: ClassVar[Mapping[str, str]] = {"lattice_bits": "bits"}
    if TYPE_CHECKING:

        @property
        def mesh(self) -> Mesh:
            """Mesh of what is measured."""

        @property
        def basis(self) -> str:
            """Kind of the numbers, as on certificates."""

        @property
        def bits(self) -> int:
            """Binary digits of the lattice."""

    @property
    def domain(self) -> Domain:
        return self.mesh.domain

    def likelihood(
        self, statistic: "PrivateStatistic[LatticeStatistic]", measure: Floats, tents: Floats
    ) -> MassLikelihood:
        """Likelihood of a field whose mesh has the integrals `measure` and shares `tents` of the statistic's."""
        raise NotImplementedError

    def field_shares(self, field: Mesh, pieces: Pieces | None = None) -> "scipy.sparse.csr_array":
        """Sparse (K, V) shares of the statistic's cells or tents in what lies near each vertex of a field's mesh.

        Parameters
        ----------
        field : Mesh
        pieces : Pieces, optional
            Of the field's mesh, cut and weighted by a public offset; its own unless given.

        Raises
        ------
        InputError
            Where numbers are no sums of expected masses at vertices.
        """
        msg = (
            f"mesh: {self.basis} are no sums of what lies near the vertices of a mesh; release tents or counts, "
            f"{instead('tents', 'cells')}, or take the posterior of this release."
        )
        raise InputError(msg)

    def design(self, field: Mesh) -> "scipy.sparse.csr_array":
        """Sparse (K, V) matrix from expected masses near the vertices of a field's mesh to the means of the numbers."""
        return self.field_shares(field)

    def measure_near(self, field: Mesh) -> Floats:
        """(V,) measures of what lies near the vertices of a field's mesh, in the order of the columns of `design`."""
        return field.measure

    def masses(self, lattice: Ints) -> Floats:
        """Masses, in points, of released numbers: the first ones where others are measured as well."""
        return np.asarray(lattice / 2.0**self.bits, dtype=np.float64)

    def reopened(self, saved: Saved) -> "PrivateStatistic[Self]":
        return self.restore(saved.statistic)

    def restore(self, data: JsonRead) -> "PrivateStatistic[Self]":
        """The released statistic from its JSON form."""
        return PrivateStatistic(self, np.array(data["lattice"], dtype=np.int64), data["noise"], data["seeded"])


class AdditiveStatistic(LatticeStatistic):
    """Base of statistics with additive noise of the given `scale` in lattice units."""

    keeps_cap: ClassVar[bool] = True

    if TYPE_CHECKING:

        @property
        def scale(self) -> float:
            """Scale of the noise, or its standard deviation."""

    def exact(self, positions: Floats) -> Ints:
        """Exact numbers of points at positions (n, 2) in lattice units, without noise."""
        raise NotImplementedError

    def source(self, rng: RngLike) -> DiscreteNoise:
        """Noise sampler of the statistic."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.source(None)

    @property
    def additive(self) -> bool:
        return True

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        return self.exact(pattern.positions)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> "PrivateStatistic[Self]":
        # One generator, so that draws of a seeded run do not share their stream.
        rng = None if rng is None else generator(rng)
        pattern = self.admitted(pattern, rng)
        return self.noised(self.exact_numbers(pattern), rng)

    def noised(self, exact: Ints, rng: RngLike = None) -> "PrivateStatistic[Self]":
        noise = self.source(rng)
        return PrivateStatistic(self, self.apply_noise(noise.add, exact), noise.name, noise.seeded)

    @property
    def noise_scale(self) -> float:
        """Scale b of Laplace noise, whose variance is about `2 b^2`, or standard deviation of Gaussian noise."""
        return self.scale / 2.0**self.bits


class LaplaceStatistic(AdditiveStatistic):
    """Base of masses with discrete Laplace noise of one scale, chosen for their `sensitivity` and epsilon."""

    if TYPE_CHECKING:

        @property
        def sensitivity(self) -> int:
            """L1 sensitivity in lattice units."""

        @property
        def epsilon(self) -> float:
            """Budget asked for; the guarantee's own epsilon is at most this."""

    def __post_init__(self) -> None:
        require_room(self.scale, self.sensitivity, self.mass_epsilon)

    @property
    def mass_epsilon(self) -> float:
        """Budget of the counts or masses: all of it, unless something else is measured as well."""
        return self.epsilon

    @cached_property
    def scale(self) -> float:
        return laplace_scale(self.sensitivity, self.mass_epsilon)

    def noise_name(self, *, seeded: bool = False) -> str:
        return (SeededLaplace if seeded else OpenDPLaplace).name

    def noise_rows(self) -> Rows:
        """Scale and standard deviation of the noise."""
        scale = self.noise_scale
        law = f"discrete Laplace of scale {scale:.4g} points, standard deviation {2**0.5 * scale:.4g}"
        return [("noise", law)]

    def likelihood(
        self, statistic: "PrivateStatistic[LatticeStatistic]", measure: Floats, tents: Floats
    ) -> MassLikelihood:
        return NoisyMasses(statistic.masses, self.noise_scale, measure, tents, self.n)

    def source(self, rng: RngLike) -> DiscreteNoise:
        return laplace_noise(self.scale, sensitivity=self.sensitivity, epsilon=self.mass_epsilon, rng=rng)


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceMasses(LaplaceStatistic):
    """Counts or tent masses with discrete Laplace noise, and their guarantee.

    Attributes
    ----------
    basis : {"cells", "tents"}
        Counts per element, or P1 masses per vertex.
    mesh : Mesh
    relation : CappedRelation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    epsilon : float
        Budget asked for; the guarantee's own epsilon is at most this.
    """

    basis: str
    mesh: Mesh
    relation: CappedRelation
    n: int | None
    expected_n: float | None
    epsilon: float
    form: ClassVar[Form] = {
        "basis": one_among(*BASES),
        "mesh": OBJECT,
        "lattice_bits": one_among(0, bounds.LATTICE_BITS),
        "scale": POSITIVE,
    }

    def __post_init__(self) -> None:
        one_of("basis", self.basis, BASES)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"LaplaceMasses({self.basis} on {self.mesh!r}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def bits(self) -> int:
        return 0 if self.basis == "cells" else bounds.LATTICE_BITS

    @cached_property
    def sensitivity(self) -> int:
        if self.basis == "cells":
            return bounds.counts_sensitivity(self.relation)
        return bounds.tents_sensitivity(self.mesh, self.relation, bits=self.bits)

    @cached_property
    def guarantee(self) -> Guarantee:
        if self.basis == "cells":
            return bounds.counts(self.relation, scale=self.scale, domain=self.domain)
        return bounds.tents(self.mesh, self.relation, scale=self.scale, bits=self.bits)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        require(p["basis"] == mechanism.rpartition("-")[2], "the basis is the mechanism's")
        mesh, sizes = mesh_from_recipe(p["mesh"], domain), (p["n"], p["expected_n"])
        return cls(p["basis"], mesh, capped(relation), *sizes, p["epsilon"])

    def implements(self, mechanism: str) -> bool:
        return mechanism.rpartition("-")[2] == self.basis

    @property
    def size(self) -> int:
        return len(self.mesh.elements if self.basis == "cells" else self.mesh.vertices)

    def table_rows(self) -> Rows:
        return [("measured", f"{self.basis} on {mesh_words(self.mesh)}"), *self.noise_rows()]

    def field_shares(self, field: Mesh, pieces: Pieces | None = None) -> "scipy.sparse.csr_array":
        cells = self.basis == "cells"
        return field.cell_shares(self.mesh, pieces or field.pieces) if cells else field.shares(self.mesh)

    def exact(self, positions: Floats) -> Ints:
        if self.basis == "cells":
            return cell_counts(self.mesh, positions)
        return lattice_masses(self.mesh, positions, self.bits)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStatistic(Generic[P_co]):
    """Noised numbers: public information once measured.

    Attributes
    ----------
    definition : LatticeStatistic
    lattice : (V,) or (T,) array of int
        Noised values in lattice units.
    noise : str
        Name of the sampler.
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    definition: P_co
    lattice: Ints
    noise: str
    seeded: bool

    def __post_init__(self) -> None:
        self.lattice.flags.writeable = False

    def __repr__(self: "PrivateStatistic[LatticeStatistic]") -> str:
        return (
            f"PrivateStatistic({self.definition.basis} on {getattr(self.definition, 'mesh', self.definition.domain)!r})"
        )

    @property
    def values(self: "PrivateStatistic[LatticeStatistic]") -> Floats:
        """(V,) or (T,) noised numbers: masses in points, or the smoothed masses of a field statistic."""
        return self.lattice / 2.0**self.definition.bits

    @property
    def masses(self: "PrivateStatistic[LatticeStatistic]") -> Floats:
        """The values that are masses: of cells and tents."""
        return self.definition.masses(self.lattice)

    @property
    def noise_scale(self: "PrivateStatistic[AdditiveStatistic]") -> float:
        """The definition's `noise_scale`."""
        return self.definition.noise_scale

    def design(self: "PrivateStatistic[LatticeStatistic]", mesh: Mesh | None = None) -> "scipy.sparse.csr_array":
        """Sparse (K, V) matrix from expected points near the vertices of a mesh to the means of the released numbers.

        Of tents and counts the columns sum to one. Of points with types and times there is a column for each type,
        instant and vertex, in this order. Exact for tents of nested meshes, and for counts of cells that are whole
        elements.

        Parameters
        ----------
        mesh : Mesh, optional
            Of a field over the domain of the release; that of the statistic unless given.

        Raises
        ------
        InputError
            When the numbers are no such sums, or the mesh is of another domain.
        """
        return self.definition.design(self._field_mesh(mesh))

    def likelihood(self: "PrivateStatistic[LatticeStatistic]", mesh: Mesh | None = None) -> MassLikelihood:
        """Likelihood of a log-intensity at the vertices of a mesh, given the released numbers and their noise.

        Its attributes `measure` and `tents` are what `design` is about. `dpppsynth.models.build_noise_aware` makes a
        model of it.

        Parameters
        ----------
        mesh : Mesh, optional
            As in `design`.

        Raises
        ------
        InputError
            As there, or where the matrix has more than 100 million entries.
        """
        plan, field = self.definition, self._field_mesh(mesh)
        shares, measure = plan.field_shares(field), plan.measure_near(field)
        if shares.shape[0] * shares.shape[1] > MOST_ENTRIES:
            rows, columns = shares.shape
            msg = f"mesh: {rows} numbers times {columns} values of a field are too many; take a coarser mesh"
            raise InputError(msg)
        return plan.likelihood(self, measure, shares.toarray())

    def _field_mesh(self: "PrivateStatistic[LatticeStatistic]", mesh: Mesh | None) -> Mesh:
        if mesh is None:
            return self.definition.mesh
        instance("mesh", mesh, Mesh, "release.statistic.definition.mesh is one")
        if mesh.domain.fingerprint() != self.definition.domain.fingerprint():
            msg = "mesh: is of another domain than the release; make one of release.domain"
            raise InputError(msg)
        return mesh

    def to_dict(self) -> JsonObject:
        """JSON form; the statistic's definition stands on the certificate."""
        return {"lattice": self.lattice.tolist(), "noise": self.noise, "seeded": self.seeded}
