"""The field of sparse precision that public rules put behind noised counts or tents."""

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.contract.synthesizer import need_size
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.linear_network.segment_cells import SegmentCells
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.projection import Projection
from dpppsynth.release.street_inference import StreetInference
from dpppsynth.spatial.offset import Offset


def estimator_by_rule(postprocess: str, plan: StatisticPlan) -> Projection | MaternInference | StreetInference:
    """Estimator of an intensity by name: "field", or a projection."""
    return field_by_rule(plan) if postprocess == "field" else Projection(postprocess)


def field_by_rule(
    plan: StatisticPlan, *, range_: float | None = None, offset: Offset | None = None
) -> MaternInference | StreetInference:
    """The posterior of a Matern field in the plane, or of a field along streets.

    Parameters
    ----------
    plan : StatisticPlan
    range_ : float, optional
        Of the field in the plane, instead of an average over public ones.
    offset : Offset, optional

    Raises
    ------
    InputError
        When there are too many cells, tents or streets for it.
    """
    if isinstance(plan.domain, LinearNetwork):
        return _along_streets(plan, plan.domain, range_, offset)
    rule = rules.planar_rules
    mesh = rule.matern_cells_mesh(plan.mesh) if plan.basis == "cells" else rule.matern_mesh(plan.mesh)
    ranges = (range_,) if range_ else rule.matern_ranges(plan.mesh)
    # Whoever gives a range has a prior of their own.
    return MaternInference(mesh, ranges, rule.matern_smoothness(mesh), offset=offset, even=range_ is None)


def _along_streets(
    plan: StatisticPlan, network: LinearNetwork, range_: float | None, offset: Offset | None
) -> StreetInference:
    """The posterior of a field on the plan's own segments, or on those of the rule."""
    rule, extent, mesh = rules.network_rules, network.extent, plan.mesh
    if not isinstance(mesh, NetworkMesh):
        if plan.basis == "cells":
            msg = (
                "mesh: behind counts on a network a field needs segments, such as network_mesh(network, 50.0); or take "
                f"{mention('postprocess', repr('clip'))}."
            )
            raise InputError(msg)
        size = need_size(plan.n or plan.expected_n)
        mesh = rule.street_cells(network, size, plan.epsilon, plan.relation)
    return StreetInference(
        SegmentCells.of(mesh),
        rule.street_plane(network),
        (range_,) if range_ else tuple(extent * share for share in rule.PLANE_RANGES),
        rule.STREET_SIGMAS,
        tuple(extent * share for share in rule.STREET_RANGES),
        tuple(extent * share for share in rule.DETOURS),
        offset=offset,
    )
