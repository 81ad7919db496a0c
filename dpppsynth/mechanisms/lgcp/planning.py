"""Plans of the log-Gaussian Cox mechanisms, and which settings each of them has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import covering, exact_or_guess, need_size, safe_digits
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import mention
from dpppsynth.inference.field_by_rule import field_by_rule
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.bound.fields import largest_field_sigma
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.models.recipes import segments
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, Profile, PureDP, gaussian_mu
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh

if TYPE_CHECKING:
    from dpppsynth.contract.estimator import AnyEstimator
    from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
    from dpppsynth.privacy.relations import CappedRelation

MECHANISMS = ("auto", "tents", "cells", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", "kim-lim-3.9")
# Private statistics of noised masses, behind which every prior is free.
MASSES = ("auto", "tents", "cells")
SPENDING_DELTA = ("field", "posterior-draw", "kim-lim-3.8", "kim-lim-3.9")
PRIORS = ("auto", "dense", "sparse")
PRIORS_BEHIND = {"auto": PRIORS, "tents": PRIORS, "cells": ("auto", "sparse")}
SAMPLERS = ("auto", "exact", "nuts", "proximal")
SAMPLERS_OF = {
    "posterior-draw": SAMPLERS,
    "lipschitz": ("auto", "exact", "nuts"),
    "kim-lim-3.8": ("auto", "nuts"),
    "kim-lim-3.9": ("auto", "nuts"),
}
# Whether several points may lie at one place, the default first.
CLUSTER_PLACES = ("apart", "shared")
# Points, a public number or guess, behind which a dense field is too narrow for NUTS: of a million its chains mix, of
# ten million they do not (R-hat 4.6), and the approximation is what there is. Its checks stand in `diagnostics`.
MOST_SAMPLED = 3_000_000
# Points from which on a field of sparse precision stands behind noised tents: finer than dense matrices allow.
SPARSE_FROM = 1000
# Share of its box that a window then fills at least: the field lives on all of the box.
FILLED = 0.5


def profile_of_budget(s: LGCPSynthesizer) -> Profile:
    """Profile of all the budget of a mechanism."""
    if s.mechanism not in SPENDING_DELTA:
        return PureDP(float(s.epsilon))
    if s.mechanism.startswith("kim-lim"):
        return ApproximateDP(float(s.epsilon), float(s.delta))
    return GaussianDP(gaussian_mu(s.epsilon, s.delta), float(s.delta))


def require_settings(s: LGCPSynthesizer) -> None:
    """Refuse settings that the mechanism does not have."""
    name, priors = s.mechanism, PRIORS_BEHIND.get(s.mechanism, ("auto",))
    if s.delta > 0 and name not in SPENDING_DELTA:
        msg = (
            f"delta: mechanism {name!r} is purely epsilon-private and spends no delta, got {s.delta!r}; leave "
            f"{mention('delta')} out."
        )
        raise InputError(msg)
    if s.delta == 0 and name in SPENDING_DELTA:
        msg = (
            f"delta: mechanism {name!r} cannot promise delta = 0; give one far below 1/n, such as "
            f"{mention('delta', '1e-6')}, or "
            "take mechanism 'tents' or 'lipschitz'."
        )
        raise InputError(msg)
    for given in ("sigma", "covariance"):
        # Behind a private statistic every prior is free.
        prior = given == "covariance" and "dense" in priors
        if getattr(s, given) is not None and name in MASSES and not prior:
            msg = f"{given}: mechanism {name!r} spends nothing on a covariance; leave it out."
            raise InputError(msg)
    if s.clusters and name not in MASSES:
        msg = f"clusters: mechanism {name!r} measures no pairs; leave it out, or take mechanism 'tents'."
        raise InputError(msg)
    if s.prior not in priors:
        msg = f"prior: mechanism {name!r} cannot take {s.prior!r}; leave it out, or take mechanism 'tents'."
        raise InputError(msg)
    if s.covariates is not None:
        _require_effects(s, priors)
    samplers = SAMPLERS_OF.get(name, ("auto",))
    if s.sampler not in samplers:
        known = ", ".join(samplers)
        msg = (
            f"sampler: mechanism {name!r} cannot take {s.sampler!r}; leave {mention('sampler')} out, or give one "
            f"of {known}."
        )
        raise InputError(msg)


def _require_effects(s: LGCPSynthesizer, priors: tuple[str, ...]) -> None:
    """Refuse covariates where no sparse field follows a private statistic."""
    if "sparse" not in priors:
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


def planned(s: LGCPSynthesizer, domain: Domain, n: int | None, expected_n: float | None) -> ReleasePlan:
    """Settle every choice from public parameters."""
    size = need_size(s.public_size(n, expected_n))
    if s.mechanism in MASSES:
        cells = s.mechanism == "cells" or (s.mechanism == "auto" and _counts_tell(s, domain, size))
        return (_cells if cells else _tents)(s, domain, n, size)
    if s.mechanism == "field":
        return _field(s, domain, n, size)
    # Loaded when a draw is asked for: its models are other ones.
    from dpppsynth.mechanisms.lgcp import draws

    return draws.planned(s, domain, n, size)


def _cells(s: LGCPSynthesizer, network: Domain, n: int | None, size: float) -> ReleasePlan:
    """Counts along streets, with a field behind them that knows where streets carry on."""
    if not isinstance(network, LinearNetwork):
        msg = "mechanism: 'cells' are counts along the streets of a network; on a window take 'tents'."
        raise InputError(msg)
    _require_no_nuts(s)
    if s.mesh is None:
        mesh: Mesh = rules.network_rules.street_cells(network, size, mass_epsilon(s), s.neighbouring())
    else:
        mesh = segments(covering(network, s.mesh))
    statistic = _measured(s, "cells", mesh, n, size)
    field = field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates)
    return _named(s, statistic, field)


def _tents(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """Masses of tents, with a dense field behind them, or a sparse one."""
    rule, sparse, relation = rules.of(domain), _is_sparse(s, domain, size), s.neighbouring()
    if s.mesh is not None:
        mesh = covering(domain, s.mesh)
    elif sparse and isinstance(domain, Window):
        mesh = rule.field_statistic_mesh(domain, "tents", size, mass_epsilon(s), relation)
    else:
        mesh = rule.mesh(domain, "tents", size, mass_epsilon(s), relation, scale=length_scale(s, domain, size))
    statistic = _measured(s, "tents", mesh, n, size)
    return _named(s, statistic, _sparse(s, statistic) if sparse else _dense(s, mesh, size))


def _field(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """Smoothed masses, whose covariance is what the budget allows."""
    mesh = field_mesh(s, domain)
    covariance = admissible_covariance(
        s, mesh, size, lambda shape, mu: largest_field_sigma(mesh, shape, s.neighbouring(), mu)
    )
    statistic = FieldMasses(mesh, covariance, *relation_and_budget(s, n, size))
    return ReleasePlan("lgcp-field", statistic, _dense(s, mesh, size))


def _measured(s: LGCPSynthesizer, basis: str, mesh: Mesh, n: int | None, size: float) -> LaplaceMasses:
    """Masses or counts, and pair sums where clusters are asked for."""
    if not s.clusters:
        return LaplaceMasses(basis, mesh, s.neighbouring(), *exact_or_guess(n, size), float(s.epsilon))
    # Loaded when clusters are asked for.
    from dpppsynth.mechanisms.lgcp.cluster_statistic import with_pairs

    return with_pairs(s, basis, mesh, n, size)


def _named(s: LGCPSynthesizer, statistic: LaplaceMasses, estimator: AnyEstimator) -> ReleasePlan:
    return ReleasePlan("lgcp-clusters" if s.clusters else f"lgcp-{statistic.basis}", statistic, estimator)


def mass_epsilon(s: LGCPSynthesizer) -> float:
    """Budget of masses or counts."""
    return float(s.epsilon) * (1 - (s.clusters or 0.0))


def length_scale(s: LGCPSynthesizer, domain: Domain, size: float) -> float:
    """The length scale given, or the rule's."""
    scale: float = s.length_scale or rules.of(domain).length_scale(domain, size)
    return scale


def _is_sparse(s: LGCPSynthesizer, domain: Domain, size: float) -> bool:
    """Whether the field behind noised tents has a sparse precision."""
    own = s.covariance is not None and not isinstance(s.covariance, Covariance)
    if s.prior == "sparse" or own or s.covariates is not None:
        _require_no_nuts(s)
        return True
    if not _is_free(s):
        return False
    if isinstance(domain, LinearNetwork):
        return rules.network_rules.has_streets(domain)
    return size >= SPARSE_FROM and bool(rules.of(domain).filled(domain) >= FILLED)


def _is_free(s: LGCPSynthesizer) -> bool:
    """Whether no setting asks for a dense field behind noised tents."""
    unset = s.covariance is None and s.length_scale is None and s.mesh is None
    return unset and s.prior == "auto" and s.inference != "nuts"


def _counts_tell(s: LGCPSynthesizer, domain: Domain, size: float) -> bool:
    """Whether "auto" takes counts along streets: on large networks whose streets these tell apart."""
    rule = rules.network_rules
    if not isinstance(domain, LinearNetwork) or s.mesh is not None or s.covariance is not None:
        return False
    if rule.fits_along(domain):
        return False
    tell = _is_free(s) and rule.streets_tell(domain, size, mass_epsilon(s), s.neighbouring())
    return tell or s.prior == "sparse" or s.covariates is not None


def _require_no_nuts(s: LGCPSynthesizer) -> None:
    """Refuse NUTS behind a sparse prior."""
    if s.inference == "nuts":
        msg = "inference: a sparse prior has too many unknowns for NUTS; take 'laplace', or the dense prior."
        raise InputError(msg)


def _sparse(s: LGCPSynthesizer, statistic: LaplaceMasses) -> AnyEstimator:
    """The posterior of a sparse field after noised tents."""
    own, tents = s.covariance, statistic.mesh
    if isinstance(own, SparseMatern):
        mesh = tents if isinstance(tents.domain, LinearNetwork) else rules.planar_rules.matern_mesh(tents)
        return MaternInference(mesh, (own.range,), (own.smoothness,), own.sigma, offset=s.offset)
    if own is None:
        return field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates)
    if s.mesh is None:
        msg = "mesh: a precision of one's own belongs to the vertices of a mesh; give mesh= with covariance=."
        raise InputError(msg)
    return PrecisionInference(tents, own, offset=s.offset)


def _dense(s: LGCPSynthesizer, mesh: Mesh, size: float) -> LGCPInference:
    """The posterior of a dense field after a private statistic."""
    rule = rules.of(mesh.domain)
    scales = (s.length_scale,) if s.length_scale else rule.length_scales(mesh.domain)
    sigma = rule.FITTED_SIGMA
    # What a field statistic was made with is no prior of one's own: the budget is spent on it.
    own = s.covariance if isinstance(s.covariance, Covariance) and s.mechanism != "field" else None
    if own is not None:
        scales, sigma = (own.length_scale,), own.sigma
    inference = ("laplace" if size > MOST_SAMPLED else "nuts") if s.inference == "auto" else s.inference
    settings: dict[str, Any] = {"offset": s.offset, "inference": inference, "engine": s.engine, "own": own}
    # A given length scale, or covariance, is a prior of one's own.
    return LGCPInference(rule.field_mesh(mesh), scales, sigma, **settings, even=own is None and not s.length_scale)


def field_mesh(s: LGCPSynthesizer, domain: Domain, rule: Callable[[Any], Mesh] | None = None) -> Mesh:
    """Mesh of the field that the budget is spent on."""
    if s.mesh is not None:
        return covering(domain, s.mesh)
    return (rule or rules.of(domain).draw_mesh)(domain)


def relation_and_budget(
    s: LGCPSynthesizer, n: int | None, size: float
) -> tuple[CappedRelation, int | None, float | None, float, float]:
    """Relation, sizes and budget, in the order of the arguments of statistics about a field."""
    return s.neighbouring(), *exact_or_guess(n, size), float(s.epsilon), float(s.delta)


def admissible_covariance(
    s: LGCPSynthesizer,
    mesh: Mesh,
    size: float,
    largest_sigma: Callable[[Covariance, float], float],
    cap: float = math.inf,
) -> Covariance:
    """The covariance asked for, verified, or the default: the largest admissible sigma, at most `cap`."""
    standard = PoweredExponential(1.0, length_scale(s, mesh.domain, size), mesh.smoothest_power)
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
