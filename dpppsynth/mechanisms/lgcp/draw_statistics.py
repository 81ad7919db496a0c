"""Statistics that are one posterior draw: of a Gaussian prior, of one of bounded slope, and of Kim & Lim's model."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.parameter_forms import POSITIVE, Form, or_null
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, kim_lim_38, kim_lim_39
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import lipschitz, theorem_a
from dpppsynth.mechanisms.lgcp.draw_statistic import DrawnField, DrawStatistic
from dpppsynth.mechanisms.lgcp.field_statistic import on_field, run_of
from dpppsynth.models.draws import nuts_draw
from dpppsynth.models.kim_lim_model import KimLimModel
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.models.target_posterior import LipschitzSet, proximal_draw
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
        intercept_sd = parameters["intercept_sd"]
        require((intercept_sd is None) == relation.n_is_public, "the intercept protects n where n is secret")
        return cls(*on_field(parameters, relation, domain), **run_of(parameters), intercept_sd=intercept_sd)

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
        return lipschitz(self.mesh, self.relation, slope=self.slope, sampler=self.sampler)

    @cached_property
    def support(self) -> LipschitzSet:
        return LipschitzSet(self.mesh, self.slope)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        require(parameters["delta"] == 0, "a field of bounded slope spends no delta")
        plan = cls(*on_field(parameters, relation, domain), **run_of(parameters), slope=parameters["slope"])
        # The bound does not depend on it, but a field with this covariance must exist.
        plan.covariance.matrix(plan.mesh)
        return plan

    def prior_rows(self) -> Rows:
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


@dataclass(frozen=True, eq=False, repr=False)
class KimLimStatistic(DrawStatistic):
    """One draw by NUTS, the length scale sampled with a log-normal prior and `sigma = ratio * length scale`.

    Attributes
    ----------
    bound : {"3.8", "3.9"}
        The sum over pairs of elements, or its closed form.
    ratio : float
        R, fixed at the bound.
    """

    bound: str = "3.8"
    ratio: float = float("nan")
    form: ClassVar[Form] = DrawStatistic.form | {"ratio": POSITIVE}

    @cached_property
    def model(self) -> KimLimModel:
        """The paper's model, of which everything is public."""
        return KimLimModel(self.mesh, self.ratio, self.covariance.length_scale, float(self.n or 0))

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.model

    def prepare(self) -> None:
        self.model.prepare()

    @cached_property
    def guarantee(self) -> Guarantee:
        bound = {"3.8": kim_lim_38, "3.9": kim_lim_39}[self.bound]
        return bound(self.mesh, None, self.relation, epsilon=self.epsilon, ratio=self.ratio, sampler=self.sampler)

    def implements(self, mechanism: str) -> bool:
        return mechanism.rpartition("-")[2] == self.bound

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        require(parameters["sampler"] == "nuts", "Kim & Lim's draws are made by NUTS")
        field = on_field(parameters, relation, domain)
        mesh, covariance = field[:2]
        require(mesh.recipe["builder"] in ("regular", "network"), "the mesh is regular")
        ratio = parameters["ratio"]
        median = RandomScale(ratio, mesh.smoothest_power).at(covariance.length_scale)
        same = replace(covariance, sigma=1.0) == replace(median, sigma=1.0)
        same = same and math.isclose(covariance.sigma, median.sigma, rel_tol=1e-9)
        require(same, "sigma and power are those of the ratio at the median length scale")
        bound = mechanism.rpartition("-")[2]
        return cls(*field, **run_of(parameters), bound=bound, ratio=ratio)

    def prior_rows(self) -> Rows:
        unit = self.domain.unit
        ratio = f"sigma / length scale = {self.ratio:.4g} per {unit}"
        median = f"length scale random with median {self.covariance.length_scale:.4g} {unit}"
        return [("covariance", f"{ratio}, {median}")]

    def _sample(self, masses: Floats, rng: np.random.Generator) -> DrawnField:
        run = self.model.draw(masses, rng, engine=self.engine)
        return DrawnField(run.field, diagnostics=run.diagnostics)
