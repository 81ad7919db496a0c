"""Posterior draw under a Gaussian prior: as private as a Gaussian mechanism, for every data set (Theorem A)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.parameter_forms import POSITIVE, Form, or_null
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.types import JsonObject
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import theorem_a
from dpppsynth.mechanisms.lgcp.field_parameters import on_field, run_of
from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_statistic import DrawnField, DrawStatistic
from dpppsynth.models.draws import nuts_draw
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.models.proximal import proximal_draw
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDrawStatistic(DrawStatistic):
    """One draw from the posterior of the log-Gaussian Cox process."""

    form: ClassVar[Form] = DrawStatistic.form | {"intercept_sd": or_null(POSITIVE)}

    @cached_property
    def guarantee(self) -> Guarantee:
        """Theorem A, or E with the proximal sampler."""
        return theorem_a(
            self.mesh,
            self.covariance,
            self.relation,
            delta=self.delta,
            intercept_sd=self.intercept_sd,
            sampler=self.sampler,
        )

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        """The plan on a certificate."""
        intercept_sd = parameters["intercept_sd"]
        require((intercept_sd is None) == relation.n_is_public, "the intercept protects n where n is secret")
        return cls(*on_field(parameters, relation, domain), **run_of(parameters), intercept_sd=intercept_sd)

    def parameters(self) -> JsonObject:
        """Public parameters for the certificate."""
        return super().parameters() | {"intercept_sd": self.intercept_sd}

    def _sample(self, masses: Floats, rng: np.random.Generator) -> DrawnField:
        posterior = self.prior.posterior(masses)
        match self.sampler:
            case "exact":
                draw = NestedBoxes(posterior).draw(rng)
                return DrawnField(draw.field, attempts=draw.attempts)
            case "proximal":
                return DrawnField(posterior.field(proximal_draw(posterior, rng)))
            case _:
                run = nuts_draw(posterior, rng, engine=self.engine)
                return DrawnField(run.field, diagnostics=run.diagnostics)
