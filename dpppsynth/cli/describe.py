"""A settled plan in words, tables and JSON: public parameters only, and never a number of points."""

from typing import TYPE_CHECKING, Any

from dpppsynth.cli.screen import show_table, show_text

if TYPE_CHECKING:
    from dpppsynth.domains import Window
    from dpppsynth.mesh import Mesh
    from dpppsynth.privacy import Guarantee
    from dpppsynth.synthesizers import Plan

ROWS = 8


def show_plan(plan: "Plan") -> None:
    """Print the guarantee, the public parameters, and epsilon by distance."""
    show_text(f"The guarantee holds. {plan.guarantee}\n")
    show_table("Public parameters", _parameters(plan))
    show_distances(plan.guarantee, plan.domain.unit)


def show_distances(guarantee: "Guarantee", unit: str) -> None:
    """Print what an attacker can tell apart, by the distance that one point moves."""
    pairs, delta = guarantee.by_distance, guarantee.profile.at
    if not pairs:
        what = "moves, however far" if guarantee.relation.n_is_public else "is added or removed"
        show_text(f"Epsilon does not depend on distance: it is {_one_point(guarantee):.4g} when one point {what}.")
        return
    step = max(1, len(pairs) // ROWS)
    rows = [(f"{distance:.4g}", f"{epsilon:.4g}") for distance, epsilon in pairs[step - 1 :: step]]
    epsilon = f"epsilon at delta = {delta:g}" if delta else "epsilon"
    show_table("What an attacker can tell apart", rows, (f"one point moves ({unit})", epsilon))


def plan_json(plan: "Plan") -> dict[str, Any]:
    """Everything public about a plan."""
    estimator = {} if plan.estimator is None else {"estimator": plan.estimator.to_dict()}
    mesh = getattr(plan.statistic, "mesh", None)
    noise = getattr(plan.statistic, "noise_scale", None)
    return {
        "mechanism": plan.mechanism,
        "holds": True,
        "guarantee": plan.guarantee.to_dict(),
        "parameters": plan.statistic.parameters() | estimator,
        "domain": _domain_json(plan.domain),
    } | {
        key: value
        for key, value in {"noise_scale": noise, "mesh": None if mesh is None else _mesh_json(mesh)}.items()
        if value is not None
    }


def _one_point(guarantee: "Guarantee") -> float:
    return guarantee.epsilon() / guarantee.relation.max_points_per_person


def _parameters(plan: "Plan") -> list[tuple[str, str]]:
    guarantee, relation = plan.guarantee, plan.guarantee.relation
    rows = [
        ("window", repr(plan.domain)),
        ("mechanism", plan.mechanism),
        ("theorem", guarantee.theorem),
        ("relation", relation.name),
        ("privacy radius", f"{relation.reach:g} {plan.domain.unit}"),
        ("points per person", f"at most {relation.max_points_per_person}"),
        ("epsilon", f"{guarantee.epsilon():.6g}"),
        ("delta", f"{guarantee.profile.at:g}"),
        *([] if guarantee.mu is None else [("mu", f"{guarantee.mu:.6g}")]),
        *_spent_on(plan.statistic),
        *_estimated(plan.estimator),
    ]
    return [row for row in rows if row != ("privacy radius", f"inf {plan.domain.unit}")]


def _spent_on(statistic: Any) -> list[tuple[str, str]]:
    """What the budget buys."""
    from dpppsynth.draw import DrawPlan
    from dpppsynth.kernel_plan import KernelPlan
    from dpppsynth.statistic import StatisticPlan

    if isinstance(statistic, KernelPlan):
        return [
            ("bandwidth", f"{statistic.bandwidth:.6g} {statistic.domain.unit}"),
            ("patterns", f"{statistic.patterns}, all paid for by this budget"),
        ]
    mesh = _mesh_words(statistic.mesh)
    if isinstance(statistic, StatisticPlan):
        scale = statistic.noise_scale
        noise = f"discrete Laplace of scale {scale:.4g} points, standard deviation {2**0.5 * scale:.4g}"
        return [("measured", f"{statistic.basis} on {mesh}"), ("noise", noise)]
    covariance = statistic.covariance
    unit = statistic.domain.unit
    rows = [
        ("covariance", f"sigma {covariance.sigma:.4g}, length scale {covariance.length_scale:.4g} {unit}, power "
        f"{covariance.power:g}"),
    ]
    if isinstance(statistic, DrawPlan):
        engine = f" ({statistic.engine})" if statistic.sampler == "nuts" else ""
        return [("drawn", f"one field on {mesh}"), *rows, ("sampler", statistic.sampler + engine)]
    noise = f"discrete Gaussian of standard deviation {statistic.noise_scale:.4g}"
    return [("measured", f"smooth functionals on {mesh}"), *rows, ("noise", noise)]


def _estimated(estimator: Any) -> list[tuple[str, str]]:
    """How the intensity is made."""
    from dpppsynth.release import FieldModel, Projection

    if isinstance(estimator, Projection):
        return [("intensity", f"masses made non-negative ({estimator.postprocess})")]
    rows = []
    if isinstance(estimator, FieldModel):
        engine = f" ({estimator.engine})" if estimator.inference == "nuts" else ""
        rows = [
            ("field", f"log-Gaussian, sigma {estimator.sigma:g}, on {_mesh_words(estimator.mesh)}"),
            ("length scales", ", ".join(f"{each:.4g}" for each in estimator.length_scales)),
            ("inference", estimator.inference + engine),
        ]
    offset = getattr(estimator, "offset", None)
    return rows if offset is None else [*rows, ("offset", f"fingerprint {offset.fingerprint[:12]}")]


def _mesh_words(mesh: "Mesh") -> str:
    size = _mesh_json(mesh)
    sides = " x ".join(f"{side:.4g}" for side in size["spacing"])
    return f"{size['elements']} {mesh.kind}s, {size['vertices']} vertices, spacing {sides} {mesh.domain.unit}"


def _mesh_json(mesh: "Mesh") -> dict[str, Any]:
    x0, y0, x1, y1 = mesh.domain.bounds
    nx, ny = mesh.recipe["shape"]
    return {
        "kind": mesh.kind,
        "vertices": len(mesh.vertices),
        "elements": len(mesh.elements),
        "spacing": [(x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)],
    }


def _domain_json(window: "Window") -> dict[str, Any]:
    return {
        "bounds": list(window.bounds),
        "area": window.area,
        "crs": window.crs,
        "unit": window.unit,
        "fingerprint": window.fingerprint(),
    }
