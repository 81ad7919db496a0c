"""Kim & Lim's Cox synthesizer: private on average over their model, not for every data set.

See docs/theory/kim_lim.md.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.parameter_forms import POSITIVE, Form
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.types import JsonObject
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, kim_lim_38, kim_lim_39
from dpppsynth.mechanisms.lgcp.field_parameters import on_field, run_of
from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_statistic import DrawnField, DrawStatistic
from dpppsynth.models.kim_lim_model import KimLimModel
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats


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
        """Make the model's own prior."""
        self.model.prepare()

    @cached_property
    def guarantee(self) -> Guarantee:
        """The paper's theorem, model-averaged."""
        bound = {"3.8": kim_lim_38, "3.9": kim_lim_39}[self.bound]
        return bound(self.mesh, None, self.relation, epsilon=self.epsilon, ratio=self.ratio, sampler=self.sampler)

    def implements(self, mechanism: str) -> bool:
        """Whether the mechanism's name ends with the bound."""
        return mechanism.rpartition("-")[2] == self.bound

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        """The plan on a certificate; the mechanism's name ends with the bound."""
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

    def parameters(self) -> JsonObject:
        """Public parameters for the certificate."""
        return super().parameters() | {"ratio": self.ratio}

    def prior_rows(self) -> Rows:
        """Ratio of sigma to length scale, and median of the length scale."""
        unit = self.domain.unit
        ratio = f"sigma / length scale = {self.ratio:.4g} per {unit}"
        median = f"length scale random with median {self.covariance.length_scale:.4g} {unit}"
        return [("covariance", f"{ratio}, {median}")]

    def _sample(self, masses: Floats, rng: np.random.Generator) -> DrawnField:
        run = self.model.draw(masses, rng, engine=self.engine)
        return DrawnField(run.field, diagnostics=run.diagnostics)
