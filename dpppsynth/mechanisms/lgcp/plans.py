"""Plans of the log-Gaussian Cox mechanisms from the settings of an `LGCPSynthesizer`."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.contract.estimator import AnyEstimator
from dpppsynth.contract.pair_settings import caps_of
from dpppsynth.contract.plan import Plan
from dpppsynth.contract.synthesizer import covering, exact_or_guess, need_size, safe_digits
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.core.wording import mention
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.mechanisms.lgcp.bound.fields import largest_field_sigma
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, carries_no_information, kim_lim_ratio
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_intercept_sd, largest_sigma, point_sd
from dpppsynth.mechanisms.lgcp.clustered_plan import ClusteredPlan, require_simulated
from dpppsynth.mechanisms.lgcp.feasibility import choose_sampler
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.lgcp.lgcp_settings import LGCPSettings
from dpppsynth.mechanisms.lgcp.posterior_sampling import KimLimPlan, LipschitzPlan, PosteriorDrawPlan
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.models.kim_lim_model import require_small_network
from dpppsynth.models.pair_limits import finest, require_radius
from dpppsynth.models.proximal import proximal_factor
from dpppsynth.models.recipes import segments
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, Profile, PureDP, gaussian_mu
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.field_by_rule import field_by_rule
from dpppsynth.release.lgcp_inference import LGCPInference
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.precision_inference import PrecisionInference
from dpppsynth.release.street_inference import StreetInference
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh

# Share of the budget that is left to the intercept at least, where n is secret.
LITTLE = 1e-3
# Points from which on a field of sparse precision stands behind noised tents: finer than dense matrices allow.
SPARSE_FROM = 1000
# Share of its box that a window then fills at least: the field lives on all of the box.
FILLED = 0.5
PRIORS = ("auto", "dense", "sparse")
# Points, a public number or guess, behind which a dense field is too narrow for NUTS: of a million its chains mix, of
# ten million they do not (R-hat 4.6), and the approximation is what there is. Its checks stand in `diagnostics`.
MOST_SAMPLED = 3_000_000
SAMPLERS = ("auto", "exact", "nuts", "proximal")


@dataclass(frozen=True)
class LGCPRequest:
    """A synthesizer's settings with the public facts of one release."""

    settings: LGCPSettings
    domain: Domain
    n: int | None
    size: float

    @property
    def rules(self) -> Any:
        """Default rules of this kind of domain."""
        return rules.of(self.domain)

    @property
    def epsilon(self) -> float:
        """Budget of masses or counts."""
        return float(self.settings.epsilon) * (1 - (self.settings.clusters or 0.0))

    @property
    def length_scale(self) -> float:
        """The one given, or the rule's."""
        return self.settings.length_scale or self.rules.length_scale(self.domain, self.size)

    @property
    def sparse(self) -> bool:
        """Whether the field behind noised tents has a sparse precision."""
        s = self.settings
        own = s.covariance is not None and not isinstance(s.covariance, Covariance)
        if s.prior == "sparse" or own or s.covariates is not None:
            require_no_nuts(s)
            return True
        if isinstance(self.domain, LinearNetwork):
            return self.free and self.rules.has_streets(self.domain)
        return self.free and self.size >= SPARSE_FROM and self.rules.filled(self.domain) >= FILLED

    @property
    def free(self) -> bool:
        """Whether no setting asks for a dense field behind noised tents."""
        s = self.settings
        return (
            s.covariance is None
            and s.prior == "auto"
            and s.inference != "nuts"
            and s.length_scale is None
            and s.mesh is None
        )

    @property
    def basis(self) -> str:
        """Statistic of mechanism "auto": "cells" on large networks whose streets counts tell apart, else "tents"."""
        s, network = self.settings, self.domain
        own = s.mesh is not None or s.covariance is not None
        if isinstance(network, Window) or own or self.rules.fits_along(network):
            return "tents"
        rule = self.free and self.rules.streets_tell(network, self.size, self.epsilon, s.neighbouring())
        return "cells" if s.prior == "sparse" or s.covariates is not None or rule else "tents"


def require_no_nuts(settings: LGCPSettings) -> None:
    """Refuse NUTS behind a sparse prior.

    Raises
    ------
    InputError
    """
    if settings.inference == "nuts":
        msg = "inference: a sparse prior has too many unknowns for NUTS; take 'laplace', or the dense prior."
        raise InputError(msg)


Planner = Callable[[LGCPRequest], Plan]


def _pure(settings: LGCPSettings) -> Profile:
    return PureDP(float(settings.epsilon))


def _gaussian(settings: LGCPSettings) -> Profile:
    return GaussianDP(gaussian_mu(settings.epsilon, settings.delta), float(settings.delta))


def _stated(settings: LGCPSettings) -> Profile:
    return ApproximateDP(float(settings.epsilon), float(settings.delta))


@dataclass(frozen=True)
class LGCPVariant:
    """Options of a log-Gaussian Cox mechanism, and its planning function.

    Attributes
    ----------
    settle : callable
        From a `LGCPRequest` to a `Plan`.
    ceiling : callable
        From settings to the profile of all their budget.
    spends_delta : bool
        Whether it needs a positive delta; the others refuse one.
    has_covariance : bool
        Whether sigma, length scale and power belong to what the budget is spent on.
    samplers : tuple of str
    priors : tuple of str
        Fields behind a private statistic.
    has_clusters : bool
        Whether pair sums may be measured as well.
    """

    settle: Planner
    ceiling: Callable[[LGCPSettings], Profile]
    spends_delta: bool
    has_covariance: bool = True
    samplers: tuple[str, ...] = ("auto",)
    priors: tuple[str, ...] = ("auto",)
    has_clusters: bool = False

    def require(self, settings: LGCPSettings) -> None:
        """Refuse settings that this mechanism does not have."""
        name, s = settings.mechanism, settings
        if s.delta > 0 and not self.spends_delta:
            msg = (
                f"delta: mechanism {name!r} is purely epsilon-private and spends no delta, got {s.delta!r}; leave "
                f"{mention('delta')} out."
            )
            raise InputError(msg)
        if s.delta == 0 and self.spends_delta:
            msg = (
                f"delta: mechanism {name!r} cannot promise delta = 0; give one far below 1/n, such as "
                f"{mention('delta', '1e-6')}, or "
                "take mechanism 'tents' or 'lipschitz'."
            )
            raise InputError(msg)
        for given in ("sigma", "covariance"):
            # Behind a private statistic every prior is free.
            prior = given == "covariance" and "dense" in self.priors
            if getattr(s, given) is not None and not self.has_covariance and not prior:
                msg = f"{given}: mechanism {name!r} spends nothing on a covariance; leave it out."
                raise InputError(msg)
        if s.clusters and not self.has_clusters:
            msg = f"clusters: mechanism {name!r} measures no pairs; leave it out, or take mechanism 'tents'."
            raise InputError(msg)
        if s.prior not in self.priors:
            msg = f"prior: mechanism {name!r} cannot take {s.prior!r}; leave it out, or take mechanism 'tents'."
            raise InputError(msg)
        if s.covariates is not None:
            self._require_effects(s)
        if s.sampler not in self.samplers:
            known = ", ".join(self.samplers)
            msg = (
                f"sampler: mechanism {name!r} cannot take {s.sampler!r}; leave {mention('sampler')} out, or give one "
                f"of {known}."
            )
            raise InputError(msg)

    def _require_effects(self, s: LGCPSettings) -> None:
        """Refuse covariates where no sparse field follows a private statistic."""
        if "sparse" not in self.priors:
            msg = (
                f"covariates: mechanism {s.mechanism!r} spends its budget on the field itself, which has no effects "
                "apart from it; take mechanism 'tents'."
            )
            raise InputError(msg)
        if s.prior == "dense" or s.inference == "nuts":
            given = mention("prior" if s.prior == "dense" else "inference")
            msg = f"covariates: they go with a sparse prior and its Laplace approximation; leave {given} out."
            raise InputError(msg)
        if s.covariance is not None:
            msg = f"covariates: they go with the prior by the rule; leave {mention('covariance')} out."
            raise InputError(msg)

    def plan(self, settings: LGCPSettings, domain: Domain, n: int | None, expected_n: float | None) -> Plan:
        """Settle every choice from public parameters."""
        size = need_size(settings.public_size(n, expected_n))
        return self.settle(LGCPRequest(settings, domain, n, size))


def _auto(request: LGCPRequest) -> Plan:
    return _cells(request) if request.basis == "cells" else _tents(request)


def _cells(request: LGCPRequest) -> Plan:
    """Counts along streets, with a field behind them that knows where streets carry on."""
    s, network = request.settings, request.domain
    if not isinstance(network, LinearNetwork):
        msg = "mechanism: 'cells' are counts along the streets of a network; on a window take 'tents'."
        raise InputError(msg)
    require_no_nuts(s)
    mesh = _segments(request) if s.mesh is None else segments(covering(network, s.mesh))
    statistic = _measured(request, "cells", mesh)
    return _planned(
        statistic, field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates)
    )


def _measured(request: LGCPRequest, basis: str, mesh: Mesh) -> StatisticPlan:
    """Masses or counts, and pair sums where clusters are asked for."""
    s = request.settings
    settled = basis, mesh, s.neighbouring(), *exact_or_guess(request.n, request.size), float(s.epsilon)
    if not s.clusters:
        return StatisticPlan(*settled)
    require_simulated(request.size)
    radii, caps = rules.cluster_rules.pair_levels(
        request.domain, request.size, s.epsilon * s.clusters, secret=request.n is None
    )
    if s.cluster_radii is not None:
        radii = s.cluster_radii
        for radius in radii:
            require_radius(radius, request.domain, name="cluster_radii")
        caps = caps[:1] * len(radii)
    if s.cluster_caps is not None:
        caps = caps_of(s.cluster_caps, len(radii), name="cluster_caps")
    steps = tuple(finest(request.domain, radius, request.n) for radius in radii)
    return ClusteredPlan(*settled, float(s.clusters), radii, caps, steps, s.cluster_places)


def _planned(statistic: StatisticPlan, estimator: AnyEstimator) -> Plan:
    clustered = isinstance(statistic, ClusteredPlan)
    return Plan("lgcp-clusters" if clustered else f"lgcp-{statistic.basis}", statistic, estimator)


def _segments(request: LGCPRequest) -> NetworkMesh:
    """Segments of a field along streets."""
    s = request.settings
    mesh: NetworkMesh = request.rules.street_cells(request.domain, request.size, request.epsilon, s.neighbouring())
    return mesh


def _tents(request: LGCPRequest) -> Plan:
    s, domain, relation = request.settings, request.domain, request.settings.neighbouring()
    if s.mesh is not None:
        mesh = covering(domain, s.mesh)
    elif request.sparse and isinstance(domain, Window):
        mesh = request.rules.field_statistic_mesh(domain, "tents", request.size, request.epsilon, relation)
    else:
        scale = request.length_scale
        mesh = request.rules.mesh(domain, "tents", request.size, request.epsilon, relation, scale=scale)
    statistic = _measured(request, "tents", mesh)
    return _planned(statistic, _sparse(request, statistic) if request.sparse else _denoiser(request, mesh))


def _sparse(request: LGCPRequest, statistic: StatisticPlan) -> MaternInference | StreetInference | PrecisionInference:
    """The posterior of a sparse field after noised tents."""
    s, own, tents = request.settings, request.settings.covariance, statistic.mesh
    if isinstance(own, SparseMatern):
        mesh = tents if isinstance(request.domain, LinearNetwork) else request.rules.matern_mesh(tents)
        return MaternInference(mesh, (own.range,), (own.smoothness,), own.sigma, offset=s.offset)
    if own is None:
        return field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates)
    if s.mesh is None:
        msg = "mesh: a precision of one's own belongs to the vertices of a mesh; give mesh= with covariance=."
        raise InputError(msg)
    return PrecisionInference(tents, own, offset=s.offset)


def _denoiser(request: LGCPRequest, mesh: Mesh) -> LGCPInference:
    """The posterior of a dense field after a private statistic."""
    s, field, sigma = request.settings, request.rules.field_mesh(mesh), request.rules.FITTED_SIGMA
    scales = (s.length_scale,) if s.length_scale else request.rules.length_scales(request.domain)
    # What a field statistic was made with is no prior of one's own: the budget is spent on it.
    own = s.covariance if isinstance(s.covariance, Covariance) and s.mechanism != "field" else None
    if own is not None:
        scales, sigma = (own.length_scale,), own.sigma
    many = (request.size or 0) > MOST_SAMPLED
    inference = ("laplace" if many else "nuts") if s.inference == "auto" else s.inference
    settings: Any = {"offset": s.offset, "inference": inference, "engine": s.engine, "own": own}
    # Who gives a length scale, or a covariance, has a prior of their own.
    return LGCPInference(field, scales, sigma, **settings, even=own is None and not s.length_scale)


def _field(request: LGCPRequest) -> Plan:
    s = request.settings
    mesh = _mesh(request)
    covariance = _covariance(request, mesh, lambda shape, mu: largest_field_sigma(mesh, shape, s.neighbouring(), mu))
    statistic = FieldStatisticPlan(mesh, covariance, *_settled(request))
    return Plan("lgcp-field", statistic, _denoiser(request, mesh))


def _posterior_draw(request: LGCPRequest) -> Plan:
    mesh = _mesh(request)
    plan = choose_sampler(lambda sampler: _draw_with(request, mesh, sampler), request.settings.sampler, "proximal")
    return Plan("lgcp-posterior-draw", plan, Drawn(request.settings.offset))


def _draw_with(request: LGCPRequest, mesh: Mesh, sampler: str) -> PosteriorDrawPlan:
    s, relation = request.settings, request.settings.neighbouring()
    factor = proximal_factor() if sampler == "proximal" else 1.0
    given = s.sigma is not None or s.covariance is not None

    def largest(shape: Covariance, mu: float) -> float:
        # Under add/remove a field that is given may take all but a little of what it shares with the intercept.
        tiny = LITTLE * mu if given and isinstance(relation, AddRemove) else None
        return largest_sigma(mesh, shape, relation, mu, factor=factor, intercept_sd=tiny)

    covariance = _covariance(request, mesh, largest, cap=rules.DRAW_SIGMA)
    intercept_sd = None
    if isinstance(relation, AddRemove):
        mu = gaussian_mu(s.epsilon, s.delta)
        field_sd = point_sd(covariance.matrix(mesh))
        intercept_sd = largest_intercept_sd(relation, mu, field_sd, factor=factor)
    return PosteriorDrawPlan(
        mesh,
        covariance,
        *_settled(request),
        sampler=sampler,
        engine=s.engine,
        offset=s.offset,
        intercept_sd=intercept_sd,
    )


def _lipschitz(request: LGCPRequest) -> Plan:
    s, relation, domain = request.settings, request.settings.neighbouring(), request.domain
    mesh = _mesh(request, request.rules.smooth_mesh)
    # Where no path's length is known an infinite reach is refused by the theorem, in words.
    moved = on_map(relation, domain).reach
    reach = min(moved, domain.diameter if math.isinf(moved) else domain.longest_path)
    slope = s.epsilon / (2 * reach * relation.max_points_per_person) * (1 - 1e-12)
    length_scale = request.length_scale

    def build(sampler: str) -> LipschitzPlan:
        sigma = s.sigma or rules.lipschitz_sigma(slope, length_scale, request.size, sampler)
        covariance = s.covariance or PoweredExponential(sigma, length_scale, mesh.smoothest_power)
        return LipschitzPlan(
            mesh, covariance, *_settled(request), sampler=sampler, engine=s.engine, offset=s.offset, slope=slope
        )

    many = s.sampler == "auto" and request.size > rules.LIPSCHITZ_EXACT
    plan = build("nuts") if many else choose_sampler(build, s.sampler, "nuts")
    return Plan("lgcp-lipschitz", plan, Drawn(s.offset))


def _kim_lim(bound: str) -> Planner:
    def settle(request: LGCPRequest) -> Plan:
        s, relation = request.settings, request.settings.neighbouring()
        if not isinstance(relation, AlphaNeighbours) or relation.max_points_per_person > 1:
            msg = (
                "relation: Kim & Lim's bounds are for alpha-neighbours with one point per person; give "
                f"{mention('alpha')}."
            )
            raise InputError(msg)
        for given in ("covariance", "offset"):
            if getattr(s, given) is not None:
                msg = (
                    f"{given}: Kim & Lim's synthesizer has none but {mention('sigma')} and {mention('length_scale')}; "
                    "leave it out."
                )
                raise InputError(msg)
        mesh = _mesh(request, request.rules.kim_lim_mesh)
        require_small_network(mesh)
        length_scale = request.length_scale
        largest = kim_lim_ratio(mesh, relation, epsilon=s.epsilon, delta=s.delta, corollary=bound == "3.9")
        unit = RandomScale(1.0, mesh.smoothest_power).at(length_scale).sigma
        ratio = largest if s.sigma is None else s.sigma / unit
        if ratio > largest:
            msg = (
                f"sigma: {s.sigma:g} is more than Kim & Lim's bound {bound} admits for this budget; at most "
                f"{safe_digits(largest * unit)} at length scale {length_scale:g}."
            )
            raise PrivacyCheckError(msg)
        covariance = RandomScale(ratio, mesh.smoothest_power).at(length_scale)
        plan = KimLimPlan(
            mesh, covariance, *_settled(request), sampler="nuts", engine=s.engine, bound=bound, ratio=ratio
        )
        if carries_no_information(covariance.sigma):
            msg = (
                f"mechanism: under Kim & Lim's bound {bound} the field has a standard deviation of about "
                f"{covariance.sigma:.2g}: the synthetic pattern carries no spatial information. Take mechanism "
                "'tents', 'field' or 'posterior-draw'."
            )
            warnings.warn(msg, InformationWarning, stacklevel=2)
        return Plan(f"lgcp-kim-lim-{bound}", plan, Drawn())

    return settle


def _mesh(request: LGCPRequest, rule: Callable[[Domain], Mesh] | None = None) -> Mesh:
    """Mesh of the field that the budget is spent on."""
    if request.settings.mesh is not None:
        return covering(request.domain, request.settings.mesh)
    return (rule or request.rules.draw_mesh)(request.domain)


def _settled(request: LGCPRequest) -> tuple[CappedRelation, int | None, float | None, float, float]:
    """CappedRelation, sizes and budget, in the order of the plans' arguments."""
    s = request.settings
    return s.neighbouring(), *exact_or_guess(request.n, request.size), float(s.epsilon), float(s.delta)


def _covariance(
    request: LGCPRequest, mesh: Mesh, largest_sigma: Callable[[Covariance, float], float], cap: float = math.inf
) -> Covariance:
    """The covariance asked for, verified, or the default: the largest admissible sigma, at most `cap`."""
    s = request.settings
    standard = PoweredExponential(1.0, request.length_scale, mesh.smoothest_power)
    shape = standard if s.covariance is None else replace(s.covariance, sigma=1.0)
    largest = largest_sigma(shape, gaussian_mu(s.epsilon, s.delta))
    wanted = s.sigma if s.covariance is None else s.covariance.sigma
    if wanted is None:
        return replace(shape, sigma=min(largest, cap))
    if wanted > largest:
        msg = (
            f"sigma: {wanted:g} at length scale {shape.length_scale:g} does not satisfy (epsilon, delta) = "
            f"({s.epsilon:g}, {s.delta:g}); the largest admissible is {safe_digits(largest)}."
        )
        raise PrivacyCheckError(msg)
    return replace(shape, sigma=float(wanted))


MECHANISMS: dict[str, LGCPVariant] = {
    "auto": LGCPVariant(_auto, _pure, spends_delta=False, has_covariance=False, priors=PRIORS, has_clusters=True),
    "tents": LGCPVariant(_tents, _pure, spends_delta=False, has_covariance=False, priors=PRIORS, has_clusters=True),
    "cells": LGCPVariant(
        _cells, _pure, spends_delta=False, has_covariance=False, priors=("auto", "sparse"), has_clusters=True
    ),
    "field": LGCPVariant(_field, _gaussian, spends_delta=True),
    "posterior-draw": LGCPVariant(_posterior_draw, _gaussian, spends_delta=True, samplers=SAMPLERS),
    "lipschitz": LGCPVariant(_lipschitz, _pure, spends_delta=False, samplers=("auto", "exact", "nuts")),
    "kim-lim-3.8": LGCPVariant(_kim_lim("3.8"), _stated, spends_delta=True, samplers=("auto", "nuts")),
    "kim-lim-3.9": LGCPVariant(_kim_lim("3.9"), _stated, spends_delta=True, samplers=("auto", "nuts")),
}
