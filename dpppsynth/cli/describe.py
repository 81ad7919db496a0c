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
    show_distances(plan.guarantee, plan.statistic.mesh.domain.unit)


def show_distances(guarantee: "Guarantee", unit: str) -> None:
    """Print what an attacker can tell apart, by the distance that one point moves."""
    pairs = guarantee.by_distance
    if not pairs:
        what = "moves, however far" if guarantee.relation.n_is_public else "is added or removed"
        show_text(f"Epsilon does not depend on distance: it is {_one_point(guarantee):.4g} when one point {what}.")
        return
    step = max(1, len(pairs) // ROWS)
    rows = [(f"{distance:.4g}", f"{epsilon:.4g}") for distance, epsilon in pairs[step - 1 :: step]]
    show_table("What an attacker can tell apart", rows, (f"one point moves ({unit})", "epsilon"))


def plan_json(plan: "Plan") -> dict[str, Any]:
    """Everything public about a plan."""
    statistic = plan.statistic
    return {
        "mechanism": plan.mechanism,
        "holds": True,
        "guarantee": plan.guarantee.to_dict(),
        "parameters": statistic.parameters() | {"estimator": plan.estimator.to_dict()},
        "noise_scale": statistic.scale / 2.0**statistic.bits,
        "mesh": _mesh_json(statistic.mesh),
        "domain": _domain_json(statistic.mesh.domain),
    }


def _one_point(guarantee: "Guarantee") -> float:
    return guarantee.epsilon() / guarantee.relation.max_points_per_person


def _parameters(plan: "Plan") -> list[tuple[str, str]]:
    from dpppsynth.release import FieldModel

    statistic, relation = plan.statistic, plan.guarantee.relation
    scale = statistic.scale / 2.0**statistic.bits
    rows = [
        ("window", repr(statistic.mesh.domain)),
        ("mechanism", plan.mechanism),
        ("theorem", plan.guarantee.theorem),
        ("relation", relation.name),
        ("privacy radius", f"{relation.reach:g} {statistic.mesh.domain.unit}"),
        ("points per person", f"at most {relation.max_points_per_person}"),
        ("epsilon", f"{plan.guarantee.epsilon():.6g}"),
        ("delta", "0"),
        ("measured", f"{statistic.basis} on {_mesh_words(statistic.mesh)}"),
        ("noise", f"discrete Laplace of scale {scale:.4g} points, standard deviation {2**0.5 * scale:.4g}"),
    ]
    if relation.reach == float("inf"):
        rows = [row for row in rows if row[0] != "privacy radius"]
    if not isinstance(plan.estimator, FieldModel):
        return [*rows, ("intensity", f"masses made non-negative ({plan.estimator.postprocess})")]
    model = plan.estimator
    engine = f" ({model.engine})" if model.inference == "nuts" else ""
    rows += [
        ("field", f"log-Gaussian, sigma {model.sigma:g}, on {_mesh_words(model.mesh)}"),
        ("length scales", ", ".join(f"{each:.4g}" for each in model.length_scales)),
        ("inference", model.inference + engine),
    ]
    return rows if model.offset is None else [*rows, ("offset", f"fingerprint {model.offset.fingerprint[:12]}")]


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
