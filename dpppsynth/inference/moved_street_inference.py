"""`MovedStreetInference`: a field along streets behind counts of points that were moved off them."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.core.arguments import one_of
from dpppsynth.inference.field_inference import INTERCEPT_SD
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.moved_lattice import WIDE_NODES, WIDE_SCALES
from dpppsynth.inference.sparse_inference import INFERENCES
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.models.moved_posterior import (
    LatticePosterior,
    MovedLikelihood,
    Place,
    VertexMasses,
    street_likelihood,
)
from dpppsynth.models.recipes import around, trace_mesh
from dpppsynth.models.sparse_fields import constant
from dpppsynth.models.sparse_posterior import kept_masses
from dpppsynth.models.spectral_fields import Unknowns
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class MovedStreetInference(JudgedInference, StreetInference):
    """Priors of `StreetInference`, chosen by how well one half of the moved points foretells the other."""

    kind: ClassVar[str] = "moved-streets"

    def require_inference(self) -> None:
        one_of("inference", self.inference, INFERENCES)

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {name: getattr(self, name) for name in self.averaged}

    @property
    def first(self) -> Place:
        return tuple((len(values) - 1) // 2 for values in self.lists.values())

    def likelihood(  # type: ignore[override]
        self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1
    ) -> MovedLikelihood:
        plan = cast(Any, statistic.definition)
        return street_likelihood(
            statistic.lattice.reshape(plan.sides),
            self.measure,
            self._on_lattice(plan),
            rate=plan.rate,
            spacing=plan.spacing,
            extension=plan.extension,
            side=side,
        )

    def _on_lattice(self, plan: Any) -> "scipy.sparse.csr_array":
        """(nodes, V) shares of the segments at the nodes of the lattice without its extension, in C order."""
        nodes = (plan.mesh.vertices - plan.box[:2]) / plan.spacing
        i, j = np.rint(nodes).astype(np.int64).T
        nx, ny = plan.shape
        where = (np.ones(len(i)), (i * ny + j, np.arange(len(i))))
        return (scipy.sparse.csr_array(where, shape=(nx * ny, len(i))) @ self.mesh.shares(plan.mesh)).tocsr()

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> WhitenedField:
        if number == len(self.combined):
            return WhitenedField(self.explained(constant(len(self.measure), INTERCEPT_SD)))
        return WhitenedField(self.field_with(self.combined[number]))

    def drawn(self, fit: LatticePosterior, moves: Unknowns, tents: "scipy.sparse.csr_array") -> tuple[Floats, Floats]:
        unknowns = fit.mode + np.concatenate([moves.T, -moves.T])
        masses = VertexMasses(self.measure, fit.likelihood.law.n)
        fields = kept_masses(masses, fit.field, fit.prior.field(unknowns), tents, self.rule)
        return fields, fit.prior.effects_of(unknowns)

    def tents(self, plan: LatticeStatistic) -> "scipy.sparse.csr_array":
        moved = cast(Any, plan)
        spacing = max(WIDE_SCALES / moved.rate, WIDE_NODES * max(moved.spacing))
        x0, y0, x1, y1 = around(self.mesh.domain)
        return self.mesh.shares(trace_mesh(self.mesh.domain, spacing=min(spacing, x1 - x0, y1 - y0)))
