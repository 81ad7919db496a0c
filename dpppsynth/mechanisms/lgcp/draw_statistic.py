"""Estimator and statistic of posterior draws: the drawn field is the log-intensity."""

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import Estimator, offset_rows, offset_stated
from dpppsynth.contract.mesh_sizes import mesh_words
from dpppsynth.contract.parameter_forms import Form, one_among
from dpppsynth.contract.result import UNFITTED, FitSummary
from dpppsynth.contract.statistic import Releasing, Trial
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Confidential, JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import require_somewhere
from dpppsynth.inference.lgcp_inference import ENGINES
from dpppsynth.mechanisms.lgcp.field_statistic import ATTRIBUTES, FIELD, covariance_row
from dpppsynth.models.covariances import Covariance, factor, require_few_vertices
from dpppsynth.models.draws import blocking
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.nuts import Diagnostics
from dpppsynth.models.target_posterior import FieldPrior
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import Floats, Mesh, integrate_exp
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


@dataclass(frozen=True, eq=False, repr=False)
class DrawnField(Confidential):
    """Result of a sampler: the field (V,), and confidential diagnostics of the run."""

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
class DrawStatistic(LatticeStatistic):
    """Statistic of one posterior draw, with its guarantee, from public parameters alone.

    Attributes
    ----------
    mesh : Mesh
    covariance : Covariance
        Of the field's Gaussian prior.
    relation : CappedRelation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    epsilon, delta : float
        Budget asked for; the guarantee spends at most this.
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

    keeps_cap: ClassVar[bool] = True
    mesh: Mesh
    covariance: Covariance
    relation: CappedRelation
    n: int | None
    expected_n: float | None
    epsilon: float
    delta: float
    _: KW_ONLY
    sampler: str
    engine: str = "nutpie"
    offset: Offset | None = None
    intercept_sd: float | None = None
    basis: ClassVar[str] = "field"
    form: ClassVar[Form] = FIELD | {
        "sampler": one_among("exact", "nuts", "proximal"),
        "engine": one_among(*ENGINES, None),
    }
    attributes: ClassVar[Mapping[str, str]] = ATTRIBUTES
    # The released log-intensity is rounded to multiples of 2^-20.
    bits: ClassVar[int] = 20

    def __post_init__(self) -> None:
        require_few_vertices(self.mesh)
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        spent = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"{type(self).__name__}({self.mesh!r}, {self.relation!r}, {spent}, sampler={self.sampler!r})"

    @property
    def guarantee(self) -> Guarantee:
        raise NotImplementedError

    def parameters(self) -> JsonObject:
        return super().parameters() | ({} if self.sampler == "nuts" else {"engine": None})

    @property
    def size(self) -> int:
        return len(self.mesh.vertices)

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
        """Set that the prior is restricted to: tells for fields (m, V) which lie inside."""
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
            outcome = self.apply_noise(sample, tent_masses(pattern, self.mesh))
        seconds = time.perf_counter() - start
        lattice = np.round(outcome.field * 2.0**self.bits).astype(np.int64)
        seeded = rng is not None
        draw = PrivateStatistic(self, lattice, self.noise_name(seeded=seeded), seeded)
        return ConfidentialFit(draw, seconds, outcome.attempts, outcome.diagnostics)

    def _sample(self, masses: Floats, rng: np.random.Generator) -> DrawnField:
        raise NotImplementedError
