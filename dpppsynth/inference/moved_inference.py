"""`MovedInference`: a Matern field inferred from counts of moved points on a lattice."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import covariate_rows, covariates_of, offset_rows
from dpppsynth.contract.rules import planar_rules
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import NO_RANGE, field_mesh, opened_values, require_somewhere
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.moved_lattice import MovedLattice, wide_tents
from dpppsynth.inference.sparse_inference import INFERENCES, LONGEST, SHORTEST, require_increasing
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.moved_posterior import (
    LatticePosterior,
    MovedLikelihood,
    Place,
    VertexMasses,
    moved_likelihood,
)
from dpppsynth.models.sparse_posterior import kept_masses
from dpppsynth.models.spectral_fields import SpectralField, Unknowns
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.offset import Offset


@dataclass(frozen=True, eq=False, repr=False)
class MovedInference(JudgedInference):
    """Prior of a Matern field of smoothness 1, chosen by how well one half of the moved points predicts the other.

    Attributes
    ----------
    mesh : Mesh
        The regular triangulation at whose vertices moved points were counted.
    ranges : tuple of float
        In increasing order.
    sigmas : tuple of float
        Standard deviations of the field, in increasing order.
    details : tuple of float
        Standard deviations of details, of an eighth of the range, in increasing order from 0 on. Priors are all
        combinations with ranges and sigmas.
    offset : Offset, optional
        Public base intensity.
    inference : {"laplace"}
    even : bool
        Whether an even field is one more prior; with covariates one that is even but for their effects.
    covariates : Design, optional
        Public covariates at the mesh's vertices.
    """

    mesh: Mesh
    ranges: tuple[float, ...]
    sigmas: tuple[float, ...]
    details: tuple[float, ...] = planar_rules.MOVED_DETAILS
    offset: Offset | None = None
    inference: str = "laplace"
    even: bool = False
    covariates: Design | None = None
    kind: ClassVar[str] = "moved"
    adjustable: ClassVar[frozenset[str]] = frozenset({"ranges", "sigmas", "details", "inference", "even"})

    def __post_init__(self) -> None:
        longest = LONGEST * self.mesh.domain.extent
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigmas", self.sigmas, SMALLEST_PARAMETER, LARGEST_PARAMETER)
        require_increasing("details", self.details, 0.0, LARGEST_PARAMETER)
        for name in ("ranges", "sigmas", "details"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        one_of("inference", self.inference, INFERENCES)
        flag("even", self.even)
        require_somewhere(self.measure)

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(range_ for range_, _, _ in self.combined) + self.even * (NO_RANGE,)

    @property
    def combined(self) -> list[tuple[float, float, float]]:
        """Range, sigma and detail of all priors but that of an even field."""
        return list(product(self.ranges, self.sigmas, self.details))

    def __repr__(self) -> str:
        return f"MovedInference({self.mesh!r}, ranges={self.ranges}, sigmas={self.sigmas}, details={self.details})"

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {"range": self.ranges, "sigma": self.sigmas, "details": self.details}

    @property
    def first(self) -> Place:
        return len(self.ranges) // 2, len(self.sigmas) // 2, 0

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1) -> MovedLikelihood:
        """Likelihood of the field at the nodes of the lattice, or at blocks of side x side nodes."""
        plan = cast(Any, statistic.definition)
        wide = [nodes + 2 * plan.extension for nodes in self.lattice.shape]
        return moved_likelihood(
            statistic.lattice.reshape(wide),
            self.lattice.filled(self.measure),
            rate=plan.rate,
            spacing=self.lattice.spacing,
            extension=plan.extension,
            side=side,
        )

    @cached_property
    def lattice(self) -> MovedLattice:
        """Nodes at which moved points were counted."""
        return MovedLattice(self.mesh)

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> SpectralField:
        even = number == len(self.combined)
        range_, sigma, detail = (self.ranges[0], 0.0, 0.0) if even else self.combined[number]
        shape, columns = likelihood.channel.shape, self._columns(likelihood)
        return SpectralField(shape, likelihood.spacing, sigma, range_, detail, columns)

    def _columns(self, likelihood: MovedLikelihood) -> Floats | None:
        """Covariates at the nodes of a likelihood, times the standard deviation of their effects; means over blocks."""
        design = self.covariates
        if design is None:
            return None
        return self.lattice.averages(opened_values(design) * design.prior_sd, self.measure, likelihood.spacing)

    def drawn(self, fit: LatticePosterior, moves: Unknowns, tents: "scipy.sparse.csr_array") -> tuple[Floats, Floats]:
        unknowns = fit.mode + np.concatenate([moves.T, -moves.T])
        mode, fields = (fit.prior.field(each)[..., self.lattice.nodes] for each in (fit.mode, unknowns))
        scale = 1.0 if self.covariates is None else self.covariates.prior_sd
        masses = VertexMasses(self.measure, fit.likelihood.law.n)
        bent = kept_masses(masses, mode, fields, tents, self.rule)
        return bent, fit.prior.effects_of(unknowns) * scale

    def tents(self, plan: LatticeStatistic) -> "scipy.sparse.csr_array":
        return wide_tents(self.mesh, cast(Any, plan).rate, self.lattice.spacing)

    def table_rows(self) -> Rows:
        sigmas = " or ".join(f"{each:g}" for each in self.sigmas)
        return [
            ("field", f"Matern, sigma {sigmas}, smoothness 1, on {mesh_words(self.mesh)}"),
            ("details", f"of an eighth of the range, sigma {' or '.join(f'{each:g}' for each in self.details)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("inference", self.inference),
            *offset_rows(self.offset),
            *covariate_rows(self.covariates),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigmas": self.sigmas,
            "field_details": self.details,
            "ranges": self.ranges,
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        return super().to_dict() | {"covariates": None if self.covariates is None else self.covariates.to_dict()}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        mesh = field_mesh(stated["mesh"], plan.mesh)
        require(mesh is plan.mesh, "the field lives where moved points are counted")
        return cls(mesh=mesh, **cls.stated_settings(stated), offset=offset, covariates=covariates_of(stated))
