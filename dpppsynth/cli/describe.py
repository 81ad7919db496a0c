"""A settled plan in words, tables and JSON: public parameters only, and never a number of points."""

import math
from typing import TYPE_CHECKING, Any

from dpppsynth.cli.console import show_table, show_text
from dpppsynth.cli.limits import moves, noise_of
from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.contract.plan import Plan
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.mechanisms.heatmap import words as heatmaps
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.heatmap.release import Reconstruction
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan, PatternPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawPlan, KimLimPlan, LipschitzPlan
from dpppsynth.mechanisms.local.grid_plan import AdaptiveGridPlan, GridPlan
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.release import GridEstimator, ReportEstimator
from dpppsynth.mechanisms.planar_laplace.plan import PlanarLaplacePlan
from dpppsynth.models.trace import around
from dpppsynth.plotting.words import what_changes
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import TRAJECTORY, CappedRelation, GeoIndistinguishability, Local
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.release import Projection
from dpppsynth.release.lgcp_inference import LGCPInference

if TYPE_CHECKING:
    from dpppsynth.contract.stratified_plan import StratifiedPlan
    from dpppsynth.models import Covariance
    from dpppsynth.privacy import Guarantee
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mesh import Mesh


def show_plan(plan: "Plan | StratifiedPlan") -> None:
    """Print the guarantee, the public parameters, and epsilon by distance."""
    levels = _levels(plan)
    guarantee, first = plan.guarantee, next(iter(levels.values()))
    show_text(f"The guarantee holds. {guarantee}\n")
    promise = _promise(guarantee, first)
    if isinstance(plan, Plan):
        show_table("Public parameters", promise + _spent(plan))
    else:
        show_table("Public parameters", promise)
        for level, each in levels.items():
            show_table(f"{plan.by} {level}", _spent(each))
    show_distances(guarantee, first.domain)


def show_distances(guarantee: "Guarantee", domain: "Domain") -> None:
    """Print epsilon for one point that moves, by distance."""
    pairs, relation, delta = guarantee.by_distance, guarantee.relation, guarantee.profile.at
    # Of counts it does not matter how far a point moves.
    everywhere = isinstance(guarantee.profile, PureDP | TruncatedLaplaceDP)
    if not pairs and math.isfinite(relation.reach) and not everywhere:
        show_text("Nothing is promised about one point that moves farther than the privacy radius.")
        return
    if not pairs:
        epsilon, what = guarantee.epsilon_of_one_point(), what_changes(guarantee)
        show_text(f"Epsilon does not depend on distance: it is {epsilon:.4g} when {what}.")
        return
    shown = {pairs[math.ceil(len(pairs) / 2**k) - 1] for k in range(len(pairs).bit_length())}
    if relation.unit == "point" and math.isfinite(relation.reach):
        shown.add((relation.reach, guarantee.epsilon()))
    largest: dict[str, float] = {}
    for distance, epsilon in shown:
        # Distances that read the same get the largest of their epsilons.
        largest[f"{distance:.4g}"] = max(epsilon, largest.get(f"{distance:.4g}", 0.0))
    rows = [
        (distance, f"{epsilon:.4g}") for distance, epsilon in sorted(largest.items(), key=lambda row: float(row[0]))
    ]
    header = f"epsilon at delta = {delta:g}" if delta else "epsilon"
    unit = "cells of the grid" if isinstance(relation, GeoIndistinguishability) else domain.unit + _along(domain)
    moves = f"one point moves ({unit})"
    show_table("What an attacker can tell apart", rows, (moves, header))


def plan_json(plan: "Plan | StratifiedPlan") -> dict[str, Any]:
    """Everything public about a plan."""
    levels = _levels(plan)
    domain = _domain_json(next(iter(levels.values())).domain)
    common = {"holds": True, "guarantee": plan.guarantee.to_dict(), "domain": domain}
    if isinstance(plan, Plan):
        return _part_json(plan) | common
    return {"mechanism": STRATA, "by": plan.by, "levels": {k: _part_json(v) for k, v in levels.items()}} | common


def _levels(plan: "Plan | StratifiedPlan") -> "dict[str, Plan]":
    return {"": plan} if isinstance(plan, Plan) else plan.plans


def _part_json(plan: Plan) -> dict[str, Any]:
    statistic, estimator = plan.statistic, plan.estimator
    mesh, noise = getattr(statistic, "mesh", None), getattr(statistic, "noise_scale", None)
    return {
        "mechanism": plan.mechanism,
        "parameters": statistic.parameters() | ({} if estimator is None else {"estimator": estimator.to_dict()}),
        **({} if noise is None else {"noise_scale": noise}),
        **({"levels": heatmaps.levels(statistic)} if isinstance(statistic, HeatmapPlan) else {}),
        **({} if mesh is None else {"mesh": _mesh_json(mesh)}),
    }


def _along(domain: "Domain") -> str:
    return " along the edges" if isinstance(domain, LinearNetwork) else ""


def _promise(guarantee: "Guarantee", plan: Plan) -> list[tuple[str, str]]:
    relation = guarantee.relation
    distance = f"{relation.reach:g} {plan.domain.unit}{_along(plan.domain)}"
    radius = [("privacy radius", distance)] if math.isfinite(relation.reach) else []
    if radius and plan.domain.crs is not None:
        radius.append(
            ("lengths on the map", f"at most {plan.domain.scale_factor:.7g} times true ones; the radius is true")
        )
    plain = guarantee.relation
    cap = f"at most {plain.max_points_per_person}" if isinstance(plain, CappedRelation) else "any number"
    if isinstance(plain, Local | GeoIndistinguishability):
        cap = "any number, in one trajectory" if plain == Local(TRAJECTORY) else "1, and one report"
    return [
        ("network" if isinstance(plan.domain, LinearNetwork) else "window", repr(plan.domain)),
        ("mechanism", plan.mechanism),
        ("theorem", guarantee.theorem),
        ("relation", relation.name),
        *radius,
        ("points per person", cap),
        ("epsilon", f"{guarantee.epsilon():.6g}"),
        ("delta", f"{guarantee.profile.at:g}"),
        *([] if guarantee.mu is None else [("mu", f"{guarantee.mu:.6g}")]),
    ]


def _spent(plan: Plan) -> list[tuple[str, str]]:
    return _bought(plan.statistic) + _estimated(plan.estimator)


def _bought(statistic: Any) -> list[tuple[str, str]]:
    """Rows of the statistic, draw or patterns that the budget is spent on."""
    if isinstance(statistic, PatternPlan):
        cells = [("cells", _mesh_words(statistic.mesh))] if isinstance(statistic, DiffusionPlan) else []
        return [
            ("bandwidth", f"{statistic.bandwidth:.6g} {statistic.domain.unit}"),
            *cells,
            ("patterns", f"{statistic.patterns}, all paid for by this budget"),
        ]
    if isinstance(statistic, LocalPlan | GridPlan):
        return _reports(statistic)
    if isinstance(statistic, PlanarLaplacePlan):
        return moves(statistic)
    mesh = _mesh_words(statistic.mesh)
    if isinstance(statistic, HeatmapPlan):
        return _pyramid(statistic, mesh)
    if isinstance(statistic, StatisticPlan):
        return [("measured", f"{statistic.basis} on {mesh}"), *noise_of(statistic)]
    if isinstance(statistic, DrawPlan):
        engine = f" ({statistic.engine})" if statistic.sampler == "nuts" else ""
        return [("drawn", f"one field on {mesh}"), *_field(statistic), ("sampler", statistic.sampler + engine)]
    noise = f"discrete Gaussian of standard deviation {statistic.noise_scale:.4g}"
    return [("measured", f"smooth functionals on {mesh}"), *_field(statistic), ("noise", noise)]


def _pyramid(statistic: HeatmapPlan, mesh: str) -> list[tuple[str, str]]:
    """The levels of counts that the budget is spent on, from coarse to fine."""
    nx, ny = statistic.shape
    return [("grid", f"{nx} x {ny} cells: {mesh}"), *heatmaps.measured(statistic)]


def _reports(statistic: LocalPlan | GridPlan) -> list[tuple[str, str]]:
    """Rows of the reports that every person sends."""
    law = (statistic.randomizer if isinstance(statistic, LocalPlan) else statistic.randomizers[0]).parameters()
    numbers = ", ".join(f"{name} {value}" for name, value in law.items() if name not in ("kind", "epsilon"))
    rows = [
        ("reports", f"one from each of {statistic.n} persons"),
        ("grid", _mesh_words(statistic.mesh)),
        ("client", f"{law['kind']} ({numbers})"),
    ]
    if isinstance(statistic, AdaptiveGridPlan):
        rows.append(("second grid", f"{statistic.cuts} cuts, by the first one's reports; other persons report on it"))
    return rows


def _field(statistic: Any) -> list[tuple[str, str]]:
    """The Gaussian field that the budget is spent on."""
    covariance, unit = statistic.covariance, statistic.domain.unit
    scale = f"{covariance.length_scale:.4g} {unit}"
    if isinstance(statistic, KimLimPlan):
        ratio = f"sigma / length scale = {statistic.ratio:.4g} per {unit}"
        return [("covariance", f"{ratio}, length scale random with median {scale}")]
    rows = [("covariance", f"sigma {covariance.sigma:.4g}, length scale {scale}{_shape(covariance)}")]
    if isinstance(statistic, LipschitzPlan):
        rows.append(("slope", f"of the log-intensity, at most {statistic.slope:.4g} per {unit}"))
    if getattr(statistic, "intercept_sd", None) is not None:
        rows.append(
            ("intercept", f"standard deviation {statistic.intercept_sd:.4g}, which protects the number of points")
        )
    return rows


def _shape(covariance: "Covariance") -> str:
    """Kind and parameters of a covariance beside sigma and length scale; a powered exponential's kind is not named."""
    more = {k: v for k, v in covariance.to_dict().items() if k not in ("sigma", "length_scale")}
    kind = more.pop("kind")
    named = "" if kind == "powered-exponential" else f", {kind}"
    return named + "".join(
        f", {name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in more.items()
    )


def _estimated(estimator: Any) -> list[tuple[str, str]]:
    """Rows of the estimator of the intensity."""
    if isinstance(estimator, Reconstruction):
        return [("intensity", f"of persons, {heatmaps.fitted(estimator)}")]
    if isinstance(estimator, ReportEstimator):
        chosen = ", ".join(f"{name} {value}" for name, value in estimator.settings.items())
        return [("intensity", "shares of the cells, estimated from counts of reports" + (chosen and f" ({chosen})"))]
    if isinstance(estimator, GridEstimator):
        return [("intensity", f"unbiased estimates of the cells, made non-negative ({estimator.post})")]
    if isinstance(estimator, Projection):
        return [("intensity", f"masses made non-negative ({estimator.postprocess})")]
    rows = []
    if isinstance(estimator, LGCPInference):
        engine = f" ({estimator.engine})" if estimator.inference == "nuts" else ""
        rows = [
            ("field", f"log-Gaussian, sigma {estimator.sigma:g}, on {_mesh_words(estimator.mesh)}"),
            ("length scales", ", ".join(f"{each:.4g}" for each in estimator.length_scales)),
            ("inference", estimator.inference + engine),
        ]
    offset = getattr(estimator, "offset", None)
    return rows if offset is None else [*rows, ("offset", f"fingerprint {offset.fingerprint[:12]}")]


def _mesh_words(mesh: "Mesh") -> str:
    size, unit = _mesh_json(mesh), mesh.domain.unit
    if "longest_segment" in size:
        fineness = f"none longer than {size['longest_segment']:.4g}"
    else:
        fineness = f"spacing {' x '.join(f'{side:.4g}' for side in size['spacing'])}"
    return f"{size['elements']} {mesh.kind}s, {size['vertices']} vertices, {fineness} {unit}"


def _mesh_json(mesh: "Mesh") -> dict[str, Any]:
    size: dict[str, Any] = {"kind": mesh.kind, "vertices": len(mesh.vertices), "elements": len(mesh.elements)}
    if isinstance(mesh, NetworkMesh):
        return size | {"longest_segment": float(mesh.element_measure.max())}
    x0, y0, x1, y1 = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    nx, ny = mesh.recipe["shape"]
    return size | {"spacing": [(x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)]}


def _domain_json(domain: "Domain") -> dict[str, Any]:
    if isinstance(domain, LinearNetwork):
        size = {"length": domain.length, "vertices": len(domain.vertices), "edges": len(domain.edges)}
        extent: dict[str, Any] = size | {"changes": list(domain.changes)}
    else:
        extent = {"area": domain.size}
    return {
        "bounds": list(domain.bounds),
        **extent,
        "crs": domain.crs,
        "unit": domain.unit,
        "fingerprint": domain.fingerprint(),
    }
