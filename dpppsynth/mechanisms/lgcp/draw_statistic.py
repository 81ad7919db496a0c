"""Estimator and statistics of one posterior draw, whose field is the log-intensity.

Of a Gaussian prior, of one of bounded slope, and of Kim & Lim's model.
"""

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import Estimator, offset_rows, offset_stated
from dpppsynth.contract.parameter_forms import POSITIVE, Form, one_among, or_null
from dpppsynth.contract.result import UNFITTED, FitSummary
from dpppsynth.contract.statistic import Parameters, Releasing, Trial, mesh_words, require
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Confidential, JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import require_somewhere
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, kim_lim_38, kim_lim_39
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import lipschitz, theorem_a
from dpppsynth.mechanisms.lgcp.field_statistic import FieldStatistic, covariance_row
from dpppsynth.models.covariances import factor
from dpppsynth.models.draws import blocking, nuts_draw
from dpppsynth.models.kim_lim_model import KimLimModel
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.models.nuts import ENGINES, Diagnostics
from dpppsynth.models.target_posterior import FieldPrior, LipschitzSet, proximal_draw
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import Floats, integrate_exp
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True)
class Drawn(Estimator[LatticeStatistic]):
    """The intensity of a drawn field: exp of its values, linear between the vertices.

    Attributes
    ----------
    offset : Offset, optional
        Public base intensity that multiplies it.
    """

    offset: Offset | None = None
    kind: ClassVar[str] = "drawn"

    def intensity(self, draw: PrivateStatistic[LatticeStatistic]) -> LogLinear:
        """Log-linear intensity with the drawn vertex values, and the total that the field was drawn for.

        The posterior takes the integral to be a sum over vertices; between them exp of a linear function lies below it.
        """
        mesh, pieces = draw.definition.mesh, draw.definition.mesh.weighted_pieces(self.offset)
        shape = draw.values - draw.values.max()
        lost = mesh.integrate(pieces) @ np.exp(shape) / integrate_exp(mesh, pieces, shape[None])[0]
        return LogLinear(mesh, draw.values + np.log(lost), self.offset)

    def table_rows(self) -> Rows:
        return offset_rows(self.offset)

    def to_dict(self) -> JsonObject:
        return {"kind": self.kind, **offset_stated(self.offset)}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        return cls(offset)


# Standard deviation of the intercept where n is public: wide, and without influence on the guarantee.
INTERCEPT_SD = 3.0
# Share of the average offset that the fit supposes at least everywhere: points may lie where the offset is zero, and
# would drive the field there, and beside, up without end.
FLOOR = 1e-3
FAILED = (
    "sampler: the draw did not succeed. Why is secret, nothing is released, and the budget counts as spent. Rehearse "
    "the settings on surrogate patterns before the next release."
)

P_co = TypeVar("P_co", bound="DrawStatistic", covariant=True)


class Sampled(NamedTuple):
    """Field (V,) of a sampler; attempts of the exact one and diagnostics of NUTS, which stay with the custodian."""

    field: Floats
    attempts: int | None = None
    diagnostics: Diagnostics | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialFit(Confidential, Generic[P_co]):
    """A draw with confidential diagnostics of its run. It cannot be saved.

    Attributes
    ----------
    draw : PrivateStatistic
        The one thing here that is public; it does not point back.
    seconds : float
    attempts : int or None
        Attempts of the exact sampler up to the accepted one.
    diagnostics : Diagnostics or None
        Of NUTS.
    """

    draw: PrivateStatistic[P_co]
    seconds: float
    attempts: int | None
    diagnostics: Diagnostics | None

    def __repr__(self) -> str:
        return "ConfidentialFit(not for release: time, attempts and diagnostics depend on the data)"


@dataclass(frozen=True, eq=False, repr=False)
class DrawStatistic(FieldStatistic):
    """Statistic of one posterior draw, with its guarantee, from public parameters alone.

    Attributes
    ----------
    sampler : {"exact", "nuts", "proximal"}
    engine : {"nutpie", "pymc"}
        Implementation of NUTS.
    offset : Offset, optional
        Public base intensity that multiplies the drawn one.
    intercept_sd : float or None
        Prior standard deviation of the intercept where n is secret: it protects n. None where n is public.

    Raises
    ------
    InputError
        When no guarantee is known for this relation.
    PrivacyCheckError
        When the guarantee exceeds the budget.
    """

    _: KW_ONLY
    sampler: str
    engine: str = "nutpie"
    offset: Offset | None = None
    intercept_sd: float | None = None
    form: ClassVar[Form] = FieldStatistic.form | {
        "sampler": one_among("exact", "nuts", "proximal"),
        "engine": one_among(*ENGINES, None),
    }
    # Public parameter beside those of the base.
    own: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        spent = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"{type(self).__name__}({self.mesh!r}, {self.relation!r}, {spent}, sampler={self.sampler!r})"

    @property
    def guarantee(self) -> Guarantee:
        raise NotImplementedError

    @classmethod
    def own_fields(cls, parameters: Parameters, mechanism: str) -> dict[str, Any]:
        # An engine is stated for NUTS alone.
        return {name: parameters[name] for name in ("sampler", "engine", cls.own) if parameters[name] is not None}

    def parameters(self) -> JsonObject:
        return super().parameters() | ({} if self.sampler == "nuts" else {"engine": None})

    def noise_name(self, *, seeded: bool = False) -> str:
        return f"{'seeded-' if seeded else ''}posterior-draw-{self.sampler}"

    def table_rows(self) -> Rows:
        engine = f" ({self.engine})" if self.sampler == "nuts" else ""
        field = [("drawn", f"one field on {mesh_words(self.mesh)}"), *self.prior_rows()]
        return [*field, ("sampler", self.sampler + engine)]

    def prior_rows(self) -> Rows:
        """Covariance, and standard deviation of the intercept where it has one."""
        rows = [covariance_row(self.covariance, self.domain)]
        if self.intercept_sd is not None:
            sd = f"standard deviation {self.intercept_sd:.4g}, which protects the number of points"
            rows.append(("intercept", sd))
        return rows

    def with_offset(self, offset: Offset | None) -> Self:
        return replace(self, offset=offset)

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        fit = self.fit(pattern, rng)
        estimate = Drawn(self.offset).intensity(fit.draw)
        found = fit.diagnostics
        return Trial(estimate, fit.attempts, UNFITTED if found is None else FitSummary(found.rhat, found.ess))

    @cached_property
    def prior(self) -> FieldPrior:
        """Gaussian prior of intercept and field: the intercept is wide, centred at the homogeneous intensity."""
        size = float(self.n if self.n is not None else self.expected_n or 1.0)
        measure = self.mesh.integrate(self.mesh.weighted_pieces(self.offset))
        require_somewhere(measure)
        share = self.mesh.measure / self.mesh.measure.sum()
        measure = np.maximum(measure, FLOOR * measure.sum() * share)
        centre = float(np.log(size / measure.sum()))
        return FieldPrior.gaussian(self.root, measure, centre, self.intercept_sd or INTERCEPT_SD)

    @cached_property
    def root(self) -> Floats:
        """(V, r) factor of the field's prior covariance; what it leaves out only lowers the variance."""
        return factor(self.covariance.matrix(self.mesh))

    @property
    def support(self) -> Callable[[Floats], Any] | None:
        """Indicator, for fields (m, V), of the set that the prior is restricted to; None without a restriction."""
        return None

    def prepare(self) -> None:
        _ = self.prior, self.support

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        return self.fit(pattern, rng).draw

    def fit(self, pattern: PointPattern, rng: RngLike = None) -> ConfidentialFit[Self]:
        """Spend the budget, and return confidential diagnostics of the run to the custodian.

        Parameters
        ----------
        pattern : PointPattern
        rng : None, int or Generator
            None: secret randomness. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            When the pattern is marked, lives in another window or has another number of points than planned.
        ReleaseBlocked
            When NUTS fails its diagnostics; the budget counts as spent.
        """
        rng = None if rng is None else generator(rng)
        pattern = self.admitted(pattern, rng)
        start = time.perf_counter()
        with blocking(FAILED):
            sample = partial(self._sample, rng=generator(rng))
            field, attempts, diagnostics = self.apply_noise(sample, tent_masses(pattern, self.mesh))
        seconds = time.perf_counter() - start
        lattice = np.round(field * 2.0**self.bits).astype(np.int64)
        seeded = rng is not None
        draw = PrivateStatistic(self, lattice, self.noise_name(seeded=seeded), seeded)
        return ConfidentialFit(draw, seconds, attempts, diagnostics)

    def _sample(self, masses: Floats, rng: np.random.Generator) -> Sampled:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDrawStatistic(DrawStatistic):
    """One draw from the posterior of the log-Gaussian Cox process."""

    own: ClassVar[str] = "intercept_sd"
    form: ClassVar[Form] = DrawStatistic.form | {own: or_null(POSITIVE)}

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
        stated = parameters["intercept_sd"] is not None
        require(stated != relation.n_is_public, "the intercept protects n where n is secret")
        return super().from_parameters(parameters, relation, domain, mechanism=mechanism)

    def _sample(self, masses: Floats, rng: np.random.Generator) -> Sampled:
        posterior = self.prior.posterior(masses)
        match self.sampler:
            case "exact":
                draw = NestedBoxes(posterior).draw(rng)
                return Sampled(draw.field, attempts=draw.attempts)
            case "proximal":
                return Sampled(posterior.field(proximal_draw(posterior, rng)))
            case _:
                run = nuts_draw(posterior, rng, engine=self.engine)
                return Sampled(run.field, diagnostics=run.diagnostics)


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzStatistic(DrawStatistic):
    """One draw from the posterior whose prior is a Gaussian field restricted to slopes of at most `slope`.

    Attributes
    ----------
    slope : float
        Largest gradient of the log-intensity, per unit of length: `epsilon / (2 alpha)` for one point per person.
    """

    slope: float = float("nan")
    own: ClassVar[str] = "slope"
    form: ClassVar[Form] = DrawStatistic.form | {own: POSITIVE}

    @cached_property
    def guarantee(self) -> Guarantee:
        return lipschitz(self.mesh, self.relation, slope=self.slope, sampler=self.sampler)

    @cached_property
    def support(self) -> LipschitzSet:
        return LipschitzSet(self.mesh, self.slope)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        require(parameters["delta"] == 0, "a field of bounded slope spends no delta")
        plan = super().from_parameters(parameters, relation, domain, mechanism=mechanism)
        # The bound does not depend on it, but a field with this covariance must exist.
        plan.covariance.matrix(plan.mesh)
        return plan

    def prior_rows(self) -> Rows:
        covariance, *rest = super().prior_rows()
        slope = f"of the log-intensity, at most {self.slope:.4g} per {self.domain.unit}"
        return [covariance, ("slope", slope), *rest]

    def _sample(self, masses: Floats, rng: np.random.Generator) -> Sampled:
        posterior = self.prior.posterior(masses)
        if self.sampler == "exact":
            draw = NestedBoxes(posterior).draw(rng, support=self.support)
            return Sampled(draw.field, attempts=draw.attempts)
        run = nuts_draw(posterior, rng, support=self.support, engine=self.engine)
        return Sampled(run.field, diagnostics=run.diagnostics)


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
    own: ClassVar[str] = "ratio"
    form: ClassVar[Form] = DrawStatistic.form | {own: POSITIVE}

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
        return bound(self.mesh, None, self.relation, epsilon=self.epsilon, ratio=self.ratio)

    def implements(self, mechanism: str) -> bool:
        return mechanism.rpartition("-")[2] == self.bound

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        require(parameters["sampler"] == "nuts", "Kim & Lim's draws are made by NUTS")
        require(parameters["mesh"].get("builder") in ("regular", "network"), "the mesh is regular")
        plan = super().from_parameters(parameters, relation, domain, mechanism=mechanism)
        median = RandomScale(plan.ratio, plan.mesh.smoothest_power).at(plan.covariance.length_scale)
        same = replace(plan.covariance, sigma=1.0) == replace(median, sigma=1.0)
        same = same and math.isclose(plan.covariance.sigma, median.sigma, rel_tol=1e-9)
        require(same, "sigma and power are those of the ratio at the median length scale")
        return plan

    @classmethod
    def own_fields(cls, parameters: Parameters, mechanism: str) -> dict[str, Any]:
        return super().own_fields(parameters, mechanism) | {"bound": mechanism.rpartition("-")[2]}

    def prior_rows(self) -> Rows:
        unit = self.domain.unit
        ratio = f"sigma / length scale = {self.ratio:.4g} per {unit}"
        median = f"length scale random with median {self.covariance.length_scale:.4g} {unit}"
        return [("covariance", f"{ratio}, {median}"), ("quadrature", "Voronoi dual mesh")]

    def _sample(self, masses: Floats, rng: np.random.Generator) -> Sampled:
        run = self.model.draw(masses, rng, engine=self.engine)
        return Sampled(run.field, diagnostics=run.diagnostics)
