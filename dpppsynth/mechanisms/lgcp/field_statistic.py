"""`FieldMasses`: smoothed tent masses with discrete Gaussian noise (docs/theory/field.md, Theorem C)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import AdditiveStatistic, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.parameter_forms import GIVEN, OBJECT, POSITIVE, Form, const
from dpppsynth.contract.statistic import Parameters, capped, mesh_words
from dpppsynth.core.errors import PrivacyCheckError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonObject
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.lgcp.bound.fields import (
    LARGEST_MU,
    UNIT_SCALE,
    discrete_mu,
    field_sensitivity,
    field_statistic,
    largest_field_sigma,
)
from dpppsynth.models.covariances import Covariance, covariance_from_dict, factor, require_few_vertices, square_root
from dpppsynth.models.likelihood import MassLikelihood, NoisyField
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy import bounds
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import DiscreteNoise, OpenDPGaussian, SeededGaussian, gaussian_noise
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces

# Covariances by their kinds, each with further parameters.
KINDS: dict[str, Form] = {
    "powered-exponential": {"power": POSITIVE | {"maximum": 2}},
    "matern": {"smoothness": POSITIVE | {"maximum": 20}},
    "generalised-cauchy": {"power": POSITIVE | {"maximum": 2}, "tail": POSITIVE},
}
COVARIANCE: JsonObject = {
    "type": "object",
    "properties": {"sigma": POSITIVE, "length_scale": POSITIVE, "metric": const("shortest-path")},
    "required": ["kind", "sigma", "length_scale"],
    "oneOf": [
        {
            "properties": {"kind": const(kind), "sigma": GIVEN, "length_scale": GIVEN, "metric": GIVEN, **more},
            "required": list(more),
            "additionalProperties": False,
        }
        for kind, more in KINDS.items()
    ],
}


def covariance_row(covariance: Covariance, domain: Domain) -> tuple[str, str]:
    """Covariance of the field; a powered exponential's kind is not named."""
    more = {k: v for k, v in covariance.to_dict().items() if k not in ("sigma", "length_scale")}
    kind = more.pop("kind")
    shape = "" if kind == "powered-exponential" else f", {kind}"
    shape += "".join(f", {name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in more.items())
    scale = f"{covariance.length_scale:.4g} {domain.unit}"
    return "covariance", f"sigma {covariance.sigma:.4g}, length scale {scale}{shape}"


@dataclass(frozen=True, eq=False, repr=False)
class FieldStatistic(LatticeStatistic):
    """Base of statistics that spend the budget on a Gaussian field at the vertices of a mesh.

    Attributes
    ----------
    mesh : Mesh
    covariance : Covariance
        Of the field.
    relation : CappedRelation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    epsilon, delta : float
        Budget asked for; the guarantee spends at most this.
    """

    keeps_cap: ClassVar[bool] = True
    mesh: Mesh
    covariance: Covariance
    relation: CappedRelation
    n: int | None
    expected_n: float | None
    epsilon: float
    delta: float
    basis: ClassVar[str] = "field"
    form: ClassVar[Form] = {
        "mesh": OBJECT,
        "covariance": COVARIANCE,
        "lattice_bits": const(LATTICE_BITS),
        "delta": GIVEN,
    }
    attributes: ClassVar[Mapping[str, str]] = {"lattice_bits": "bits", "epsilon": "spent"}

    def __post_init__(self) -> None:
        require_few_vertices(self.mesh)

    @property
    def bits(self) -> int:
        return bounds.LATTICE_BITS

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        mesh, covariance = mesh_from_recipe(p["mesh"], domain), covariance_from_dict(p["covariance"])
        sizes, budget = (p["n"], p["expected_n"]), (p["epsilon"], p["delta"])
        return cls(mesh, covariance, capped(relation), *sizes, *budget, **cls.own_fields(p, mechanism))

    @classmethod
    def own_fields(cls, parameters: Parameters, mechanism: str) -> dict[str, Any]:
        """Arguments of the constructor that a subclass adds, by name, from public parameters."""
        return {}

    @property
    def size(self) -> int:
        return len(self.mesh.vertices)


# Points whose field values are held in memory at once.
BATCH = 4096


def lattice_field(mesh: Mesh, root: Floats, positions: Floats, bits: int) -> Ints:
    """(V,) sum over points of `root phi(x)` in units of `2^-bits`, each point's vector rounded to integers on its own.

    A point's vector depends on nothing but the point: no matrix product, whose rounding may depend on its neighbours in
    memory, takes part.

    Parameters
    ----------
    mesh : Mesh
    root : (V, V) array
        Symmetric root of a covariance at the vertices.
    positions : (n, 2) array
    bits : int
    """
    element, weight = mesh.values(positions)
    vertices = mesh.elements[element]
    total = np.zeros(len(root), dtype=np.int64)
    for start in range(0, len(positions), BATCH):
        part = slice(start, start + BATCH)
        value = sum(weight[part, k, None] * root[vertices[part, k]] for k in range(weight.shape[1]))
        total += np.rint(value * 2.0**bits).astype(np.int64).sum(axis=0)
    return total


@dataclass(frozen=True, eq=False, repr=False)
class FieldMasses(FieldStatistic, AdditiveStatistic):
    """Tent masses smoothed by the root of a covariance, with discrete Gaussian noise of standard deviation 1.

    The sigma of the covariance weighs the statistic against the noise: `largest_field_sigma` tells how large the budget
    lets it be. The guarantee's own epsilon at delta is at most epsilon.

    Raises
    ------
    PrivacyCheckError
        When sigma is too large for the budget.
    """

    form: ClassVar[Form] = FieldStatistic.form | {"basis": const("field"), "scale": POSITIVE}

    def __post_init__(self) -> None:
        super().__post_init__()
        budget = min(gaussian_mu(self.epsilon, self.delta), LARGEST_MU)
        if not self.mu <= budget:
            unit = replace(self.covariance, sigma=1.0)
            largest = largest_field_sigma(self.mesh, unit, self.relation, budget)
            msg = (
                f"covariance: sigma must be at most {largest!r} for epsilon = {self.epsilon:g} at delta = "
                f"{self.delta:g}, got {self.covariance.sigma!r}; lower it or spend more."
            )
            raise PrivacyCheckError(msg)

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"FieldMasses({self.covariance!r} on {self.mesh!r}, {self.relation!r}, {budget})"

    @property
    def scale(self) -> float:
        return UNIT_SCALE

    @cached_property
    def root(self) -> Floats:
        """(V, V) symmetric root of the covariance, which smooths the tent masses."""
        return square_root(self.covariance.matrix(self.mesh))

    @cached_property
    def sensitivity(self) -> float:
        """L2 sensitivity in lattice units."""
        return field_sensitivity(self.mesh, self.covariance, self.relation, bits=self.bits)

    @property
    def mu(self) -> float:
        """Gaussian parameter of the noised statistic."""
        return discrete_mu(self.sensitivity, self.scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        return field_statistic(self.mesh, self.covariance, self.relation, delta=self.delta)

    def noise_name(self, *, seeded: bool = False) -> str:
        return (SeededGaussian if seeded else OpenDPGaussian).name

    def table_rows(self) -> Rows:
        return [
            ("measured", f"smooth functionals on {mesh_words(self.mesh)}"),
            covariance_row(self.covariance, self.domain),
            ("noise", f"discrete Gaussian of standard deviation {self.noise_scale:.4g}"),
        ]

    def likelihood(
        self, statistic: PrivateStatistic[LatticeStatistic], measure: Floats, tents: Floats
    ) -> MassLikelihood:
        # The root of the covariance has its eigenvectors, those of the smallest eigenvalues being of no use.
        columns = factor(self.covariance.matrix(self.mesh))
        values = statistic.values @ (columns / np.linalg.norm(columns, axis=0))
        uniform = measure * ((self.n or self.expected_n or 1.0) / measure.sum())
        return NoisyField(values, columns, self.noise_scale, measure, tents, self.n, uniform)

    def field_shares(self, field: Mesh, pieces: Pieces | None = None) -> "scipy.sparse.csr_array":
        return field.shares(self.mesh)

    def design(self, field: Mesh) -> "scipy.sparse.csr_array":
        return scipy.sparse.csr_array(self.root @ self.field_shares(field).toarray())

    def prepare(self) -> None:
        super().prepare()
        _ = self.root

    def exact(self, positions: Floats) -> Ints:
        return lattice_field(self.mesh, self.root, positions, self.bits)

    def source(self, rng: RngLike) -> DiscreteNoise:
        return gaussian_noise(self.scale, sensitivity=self.sensitivity, mu=self.mu, rng=rng)
