"""Estimators by public rules from noised counts or tents: a field of sparse precision, or a plain estimate."""

from dataclasses import replace
from typing import Any

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.synthesizer import need_size
from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError, NoFieldError
from dpppsynth.core.wording import mention
from dpppsynth.inference.matern_inference import MaternInference, sampled_mesh
from dpppsynth.inference.projection import POSTPROCESSES as PROJECTIONS
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

FIELD = "field"
POSTPROCESSES = (*PROJECTIONS, FIELD)


def require_postprocess(postprocess: str, relation: CappedRelation, known: tuple[str, ...] = POSTPROCESSES) -> None:
    """Refuse unknown names, and a sum kept to an n that is secret."""
    one_of("postprocess", postprocess, known)
    if postprocess == "keep-n" and not relation.n_is_public:
        msg = "postprocess: 'keep-n' needs a public n, which this relation keeps secret; use 'clip'."
        raise InputError(msg)


def statistic_mesh(
    postprocess: str, domain: Domain, basis: str, size: float | None, epsilon: float, relation: CappedRelation
) -> Mesh:
    """Mesh of the statistic, by the rule of its estimate."""
    rule = rules.BY_DOMAIN[type(domain)]
    choose = rule.field_statistic_mesh if postprocess == FIELD else rule.mesh
    mesh: Mesh = choose(domain, basis, need_size(size), epsilon, relation)
    return mesh


def estimator_by_rule(postprocess: str, plan: LaplaceMasses) -> Projection | MaternInference | StreetInference:
    """Estimator of an intensity by name: "field", or a projection."""
    return field_by_rule(plan) if postprocess == FIELD else Projection(postprocess)


def field_by_rule(
    plan: LaplaceMasses,
    *,
    range_: float | None = None,
    offset: Offset | None = None,
    covariates: Covariates | None = None,
    inference: str = "laplace",
    engine: str = "nutpie",
) -> MaternInference | StreetInference:
    """The posterior of a Matern field in the plane, or of a field along streets.

    Parameters
    ----------
    plan : LaplaceMasses
    range_ : float, optional
        Of the field in the plane, instead of an average over public ones.
    offset : Offset, optional
    covariates : Covariates, optional
    inference : {"laplace", "nuts"}
    engine : {"nutpie", "pymc"}

    Raises
    ------
    NoFieldError
        When there are too many cells, tents or streets for it.
    """
    way: dict[str, Any] = {"inference": inference, "engine": engine}
    if isinstance(plan.domain, LinearNetwork):
        return replace(_along_streets(plan, plan.domain, range_, offset, covariates), **way)
    rule = rules.planar_rules
    ranges = (range_,) if range_ else rule.matern_ranges(plan.mesh)
    mesh = rule.matern_cells_mesh(plan.mesh) if plan.basis == "cells" else matern_mesh(plan.mesh, ranges[-1], inference)
    # Whoever gives a range has a prior of their own.
    smoothness, design = rule.matern_smoothness(mesh), None if covariates is None else covariates.on(mesh, offset)
    sigmas = rule.RISK_SIGMAS if offset is not None and range_ is None else ()
    return MaternInference(
        mesh, ranges, smoothness, sigmas=sigmas, offset=offset, even=range_ is None, covariates=design, **way
    )


def matern_mesh(tents: Mesh, range_: float, inference: str) -> Mesh:
    """Mesh of a Matern field behind tents, for NUTS no finer than it takes with this range."""
    mesh = rules.planar_rules.matern_mesh(tents)
    return sampled_mesh(tents, mesh, range_) if inference == "nuts" else mesh


def _along_streets(
    plan: LaplaceMasses,
    network: LinearNetwork,
    range_: float | None,
    offset: Offset | None,
    covariates: Covariates | None,
) -> StreetInference:
    """The posterior of a field on the plan's own segments, or on those of the rule."""
    rule, extent, mesh = rules.network_rules, network.extent, plan.mesh
    if not isinstance(mesh, NetworkMesh):
        if plan.basis == "cells":
            msg = (
                "mesh: behind counts on a network a field needs segments, such as network_mesh(network, 50.0); or take "
                f"{mention('postprocess', repr('clip'))}."
            )
            raise NoFieldError(msg)
        size = plan.expected_n if plan.n is None else plan.n
        if size is None:
            msg = "expected_n: a field along streets behind tents takes a public guess of a secret number of points."
            raise NoFieldError(msg)
        mesh = network_mesh(network, rule.street_segments(network, size, plan.mass_epsilon, plan.relation))
    cells = SegmentCells.of(mesh)
    return StreetInference(
        cells,
        rule.street_plane(network),
        (range_,) if range_ else tuple(extent * share for share in rule.PLANE_RANGES),
        rule.STREET_SIGMAS,
        tuple(extent * share for share in rule.STREET_RANGES),
        tuple(extent * share for share in rule.DETOURS),
        offset=offset,
        # Whoever gives a range has a prior of their own.
        even=range_ is None,
        covariates=None if covariates is None else covariates.on(cells, offset),
    )
