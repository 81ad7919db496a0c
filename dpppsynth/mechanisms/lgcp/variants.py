"""Plans of the log-Gaussian Cox mechanisms from the settings of an `LGCPSynthesizer`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.estimator import AnyEstimator
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import covering, need_size
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.inference.field_by_rule import field_by_rule
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.mechanisms.lgcp.bound.fields import largest_field_sigma
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.mechanisms.lgcp.lgcp_settings import LGCPSettings
from dpppsynth.mechanisms.lgcp.request import (
    LGCPRequest,
    admissible_covariance,
    field_mesh,
    require_no_nuts,
    settled,
)
from dpppsynth.models.covariances import Covariance
from dpppsynth.models.recipes import segments
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, Profile, PureDP, gaussian_mu
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh

PRIORS = ("auto", "dense", "sparse")
# Points, a public number or guess, behind which a dense field is too narrow for NUTS: of a million its chains mix, of
# ten million they do not (R-hat 4.6), and the approximation is what there is. Its checks stand in `diagnostics`.
MOST_SAMPLED = 3_000_000
SAMPLERS = ("auto", "exact", "nuts", "proximal")


Planner = Callable[[LGCPRequest], ReleasePlan]


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
        From a `LGCPRequest` to a `ReleasePlan`.
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

    def plan(self, settings: LGCPSettings, domain: Domain, n: int | None, expected_n: float | None) -> ReleasePlan:
        """Settle every choice from public parameters."""
        size = need_size(settings.public_size(n, expected_n))
        return self.settle(LGCPRequest(settings, domain, n, size))


def _auto(request: LGCPRequest) -> ReleasePlan:
    return _cells(request) if request.basis == "cells" else _tents(request)


def _cells(request: LGCPRequest) -> ReleasePlan:
    """Counts along streets, with a field behind them that knows where streets carry on."""
    s, network = request.settings, request.domain
    if not isinstance(network, LinearNetwork):
        msg = "mechanism: 'cells' are counts along the streets of a network; on a window take 'tents'."
        raise InputError(msg)
    require_no_nuts(s)
    mesh = _segments(request) if s.mesh is None else segments(covering(network, s.mesh))
    statistic = _measured(request, "cells", mesh)
    field = field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates)
    return _planned(request, statistic, field)


def _measured(request: LGCPRequest, basis: str, mesh: Mesh) -> LaplaceMasses:
    """Masses or counts, and pair sums where clusters are asked for."""
    if not request.settings.clusters:
        return LaplaceMasses(*request.measured(basis, mesh))
    # Loaded when clusters are asked for.
    from dpppsynth.mechanisms.lgcp.cluster_statistic import with_pairs

    return with_pairs(request, basis, mesh)


def _planned(request: LGCPRequest, statistic: LaplaceMasses, estimator: AnyEstimator) -> ReleasePlan:
    return ReleasePlan(
        "lgcp-clusters" if request.settings.clusters else f"lgcp-{statistic.basis}", statistic, estimator
    )


def _segments(request: LGCPRequest) -> NetworkMesh:
    """Segments of a field along streets."""
    s = request.settings
    mesh: NetworkMesh = request.rules.street_cells(request.domain, request.size, request.epsilon, s.neighbouring())
    return mesh


def _tents(request: LGCPRequest) -> ReleasePlan:
    s, domain, relation = request.settings, request.domain, request.settings.neighbouring()
    if s.mesh is not None:
        mesh = covering(domain, s.mesh)
    elif request.sparse and isinstance(domain, Window):
        mesh = request.rules.field_statistic_mesh(domain, "tents", request.size, request.epsilon, relation)
    else:
        scale = request.length_scale
        mesh = request.rules.mesh(domain, "tents", request.size, request.epsilon, relation, scale=scale)
    statistic = _measured(request, "tents", mesh)
    return _planned(request, statistic, _sparse(request, statistic) if request.sparse else _denoiser(request, mesh))


def _sparse(request: LGCPRequest, statistic: LaplaceMasses) -> MaternInference | StreetInference | PrecisionInference:
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


def _field(request: LGCPRequest) -> ReleasePlan:
    s = request.settings
    mesh = field_mesh(request)
    covariance = admissible_covariance(
        request, mesh, lambda shape, mu: largest_field_sigma(mesh, shape, s.neighbouring(), mu)
    )
    statistic = FieldMasses(mesh, covariance, *settled(request))
    return ReleasePlan("lgcp-field", statistic, _denoiser(request, mesh))


def _draw(request: LGCPRequest) -> ReleasePlan:
    # Loaded when a draw is asked for: its models are other ones.
    from dpppsynth.mechanisms.lgcp.draw_planning import PLANNERS

    return PLANNERS[request.settings.mechanism](request)


MECHANISMS: dict[str, LGCPVariant] = {
    "auto": LGCPVariant(_auto, _pure, spends_delta=False, has_covariance=False, priors=PRIORS, has_clusters=True),
    "tents": LGCPVariant(_tents, _pure, spends_delta=False, has_covariance=False, priors=PRIORS, has_clusters=True),
    "cells": LGCPVariant(
        _cells, _pure, spends_delta=False, has_covariance=False, priors=("auto", "sparse"), has_clusters=True
    ),
    "field": LGCPVariant(_field, _gaussian, spends_delta=True),
    "posterior-draw": LGCPVariant(_draw, _gaussian, spends_delta=True, samplers=SAMPLERS),
    "lipschitz": LGCPVariant(_draw, _pure, spends_delta=False, samplers=("auto", "exact", "nuts")),
    "kim-lim-3.8": LGCPVariant(_draw, _stated, spends_delta=True, samplers=("auto", "nuts")),
    "kim-lim-3.9": LGCPVariant(_draw, _stated, spends_delta=True, samplers=("auto", "nuts")),
}
