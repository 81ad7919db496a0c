"""A settled plan in words, tables and JSON: public parameters only, and never a number of points."""

import math
from typing import TYPE_CHECKING, Any

from dpppsynth.cli.console import show_promise, show_table, show_text
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.rounding import upward
from dpppsynth.core.units import lengths_in
from dpppsynth.core.wording import Rows
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting.curves import keeps_marks, person, what_changes
from dpppsynth.privacy.interpretation import moved_anyway
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import (
    TRAJECTORY,
    AddRemove,
    AddRemovePerson,
    CappedRelation,
    GeoIndistinguishability,
    Local,
)
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

if TYPE_CHECKING:
    from dpppsynth.contract.stratified_plan import StratifiedPlan
    from dpppsynth.privacy import Guarantee
    from dpppsynth.spatial.domains import Domain


def show_plan(plan: "ReleasePlan | StratifiedPlan", *, verbose: bool = False) -> None:
    """Print the guarantee, the public parameters, and epsilon by distance."""
    levels = plan.parts
    guarantee, first = plan.guarantee, next(iter(levels.values()))
    show_promise(guarantee, first.domain, verbose=verbose, start="The guarantee holds. ")
    show_text("")
    if isinstance(plan, ReleasePlan) and plan.shuffled is not None:
        show_text(f"{plan.shuffled}\n")
    promise = _promise(guarantee, first)
    if isinstance(plan, ReleasePlan):
        show_table("Public parameters", promise + _spent(plan))
    else:
        show_table("Public parameters", promise)
        for level, each in levels.items():
            show_table(f"{plan.by} {level}", _spent(each))
    show_distances(guarantee, first.domain)


def show_distances(guarantee: "Guarantee", domain: "Domain") -> None:
    """Print epsilon for one point that moves, by distance; and before it that of a person who may have several."""
    if whom := person(guarantee):
        show_text(f"Epsilon is {upward(guarantee.epsilon(), 4)} for {whom}. What follows is about one point alone.")
    pairs, relation, delta = guarantee.by_distance, guarantee.relation, guarantee.profile.at
    # Of counts it does not matter how far a point moves.
    everywhere = isinstance(guarantee.profile, PureDP | TruncatedLaplaceDP)
    if not pairs and math.isfinite(relation.reach) and not everywhere:
        show_text("Nothing is promised about one point that moves farther than the privacy radius.")
        return
    if not pairs:
        epsilon, what = guarantee.epsilon_of_one_point(), what_changes(guarantee)
        show_text(f"Epsilon does not depend on distance: it is {upward(epsilon, 4)} when {what}.")
        if isinstance(relation, AddRemove | AddRemovePerson):
            show_text(f"{moved_anyway(guarantee)} Halve epsilon where that is the secret, too.")
        return
    shown = {pairs[math.ceil(len(pairs) / 2**k) - 1] for k in range(len(pairs).bit_length())}
    kept = keeps_marks(guarantee)
    if relation.unit == "point" and math.isfinite(relation.reach) and not kept:
        shown.add((relation.reach, guarantee.epsilon()))
    largest: dict[str, float] = {}
    for distance, epsilon in shown:
        # Distances that read the same get the largest of their epsilons.
        largest[f"{distance:.4g}"] = max(epsilon, largest.get(f"{distance:.4g}", 0.0))
    rows = [
        (distance, upward(epsilon, 4)) for distance, epsilon in sorted(largest.items(), key=lambda row: float(row[0]))
    ]
    header = f"epsilon at delta = {delta:g}" if delta else "epsilon"
    unit = "cells of the grid" if isinstance(relation, GeoIndistinguishability) else domain.unit + _along(domain)
    moves = f"one point moves{', its marks kept' if kept else ''} ({unit})"
    show_table("What an attacker can tell apart", rows, (moves, header))


def plan_json(plan: "ReleasePlan | StratifiedPlan") -> dict[str, Any]:
    """Everything public about a plan."""
    levels = plan.parts
    domain = _domain_json(next(iter(levels.values())).domain)
    common = {"holds": True, "guarantee": plan.guarantee.to_dict(), "domain": domain}
    if isinstance(plan, ReleasePlan):
        second = {} if plan.shuffled is None else {"shuffled": plan.shuffled.to_dict()}
        return _part_json(plan) | common | second
    return {"mechanism": STRATA, "by": plan.by, "levels": {k: _part_json(v) for k, v in levels.items()}} | common


def _part_json(plan: ReleasePlan) -> dict[str, Any]:
    statistic, estimator = plan.statistic, plan.estimator
    return {
        "mechanism": plan.mechanism,
        **({"reason": plan.reason} if plan.reason else {}),
        "parameters": statistic.parameters() | ({} if estimator is None else {"estimator": estimator.to_dict()}),
        **statistic.details(),
    }


def _along(domain: "Domain") -> str:
    return " along the edges" if isinstance(domain, LinearNetwork) else ""


def _promise(guarantee: "Guarantee", plan: ReleasePlan) -> list[tuple[str, str]]:
    relation = guarantee.relation
    distance = f"{lengths_in(relation.reach, plan.domain.unit)}{_along(plan.domain)}"
    radius = [("privacy radius", distance)] if math.isfinite(relation.reach) else []
    if radius and plan.domain.crs is not None:
        factor = f"{plan.domain.scale_factor:.7g}"
        longer = "as on the ground" if factor == "1" else f"at most {factor} times those on the ground"
        radius.append(("lengths on the map", f"{longer}; the radius is on the ground"))
    plain = guarantee.relation
    cap = f"at most {plain.max_points_per_person}" if isinstance(plain, CappedRelation) else "any number"
    if isinstance(plain, Local | GeoIndistinguishability):
        cap = "any number, in one trajectory" if plain == Local(TRAJECTORY) else "1, and one report"
    if plain.user_cap is not None:
        few = f"at most {plain.user_cap.most} count" if isinstance(plain, CappedRelation) else "1 is reported"
        cap = f"any number, of which {few}, drawn at random (persons by {plain.user_cap.user!r})"
    return [
        ("network" if isinstance(plan.domain, LinearNetwork) else "window", repr(plan.domain)),
        ("mechanism", plan.mechanism),
        *plan.reasons,
        ("theorem", guarantee.theorem_text),
        ("relation", relation.name),
        *radius,
        ("points per person", cap),
        ("epsilon", upward(guarantee.epsilon())),
        ("delta", f"{guarantee.profile.at:g}"),
        *([] if guarantee.mu is None else [("mu", f"{guarantee.mu:.6g}")]),
    ]


def _spent(plan: ReleasePlan) -> Rows:
    return plan.statistic.table_rows() + ([] if plan.estimator is None else plan.estimator.table_rows())


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
