"""Posterior draw under a Lipschitz-constrained prior: pure epsilon-privacy at all distances (Theorem D)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.parameter_forms import POSITIVE, Form
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.types import JsonObject
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import lipschitz
from dpppsynth.mechanisms.lgcp.field_parameters import on_field, run_of
from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_statistic import DrawnField, DrawStatistic
from dpppsynth.models.draws import nuts_draw
from dpppsynth.models.lipschitz_prior import LipschitzSet
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzStatistic(DrawStatistic):
    """One draw from the posterior whose prior is a Gaussian field restricted to slopes of at most `slope`.

    Attributes
    ----------
    slope : float
        Largest gradient of the log-intensity, per unit of length: `epsilon / (2 alpha)` for one point per person.
    """

    slope: float = float("nan")
    form: ClassVar[Form] = DrawStatistic.form | {"slope": POSITIVE}

    @cached_property
    def guarantee(self) -> Guarantee:
        """Theorem D."""
        return lipschitz(self.mesh, self.relation, slope=self.slope, sampler=self.sampler)

    @cached_property
    def support(self) -> LipschitzSet:
        """Fields nowhere steeper than `slope`."""
        return LipschitzSet(self.mesh, self.slope)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        """The plan on a certificate."""
        require(parameters["delta"] == 0, "a field of bounded slope spends no delta")
        plan = cls(*on_field(parameters, relation, domain), **run_of(parameters), slope=parameters["slope"])
        # The bound does not depend on it, but a field with this covariance must exist.
        plan.covariance.matrix(plan.mesh)
        return plan

    def parameters(self) -> JsonObject:
        """Public parameters for the certificate."""
        return super().parameters() | {"slope": self.slope}

    def prior_rows(self) -> Rows:
        """Covariance, slope and intercept."""
        covariance, *rest = super().prior_rows()
        slope = f"of the log-intensity, at most {self.slope:.4g} per {self.domain.unit}"
        return [covariance, ("slope", slope), *rest]

    def _sample(self, masses: Floats, rng: np.random.Generator) -> DrawnField:
        posterior = self.prior.posterior(masses)
        if self.sampler == "exact":
            draw = NestedBoxes(posterior).draw(rng, support=self.support)
            return DrawnField(draw.field, attempts=draw.attempts)
        run = nuts_draw(posterior, rng, support=self.support, engine=self.engine)
        return DrawnField(run.field, diagnostics=run.diagnostics)
