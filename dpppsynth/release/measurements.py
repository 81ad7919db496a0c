"""Measurements from the public parameters on a certificate: one builder for each registered mechanism."""

from collections.abc import Callable, Mapping
from typing import Any

from dpppsynth.contract.additive_noise import FieldStatisticPlan, StatisticPlan
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan, KernelPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import KimLimPlan, LipschitzPlan, PosteriorDrawPlan
from dpppsynth.mechanisms.local.grid_plan import AdaptiveGridPlan, UniformGridPlan
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.randomizers.registry import randomizer_from_dict
from dpppsynth.mechanisms.local.trajectory_plan import TracePlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.models.covariances import Covariance, covariance_from_dict
from dpppsynth.models.recipes import mesh_from_recipe, segments, window
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

Builder = Callable[[Mapping[str, Any], Any, Domain], Any]


def measurement(mechanism: str, parameters: Mapping[str, Any], relation: Relation, domain: Domain) -> Any:
    """The measurement of a certificate, rebuilt."""
    return MEASUREMENTS[mechanism](parameters, relation, domain)


def _statistic(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> StatisticPlan:
    mesh = mesh_from_recipe(p["mesh"], domain)
    return StatisticPlan(p["basis"], mesh, relation, p["n"], p["expected_n"], p["epsilon"])


def _bounded(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> BoundedCountsPlan:
    mesh, sizes = mesh_from_recipe(p["mesh"], domain), (p["n"], p["expected_n"])
    return BoundedCountsPlan(p["basis"], mesh, relation, *sizes, p["epsilon"], p["delta"], p["max_error"])


def _moved(p: Mapping[str, Any], relation: AlphaNeighbours, domain: Domain) -> MovedPlan:
    budget = p["epsilon"], p["delta"], p["max_error"]
    return MovedPlan(window(domain), relation, p["n"], *budget, track=p["track"])


Common = tuple[Mesh, Covariance, CappedRelation, int | None, float | None, float, float]


def _on_field(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> Common:
    """Mesh, covariance, relation, sizes and budget: the first arguments of every plan about a Gaussian field."""
    mesh, covariance = mesh_from_recipe(p["mesh"], domain), covariance_from_dict(p["covariance"])
    return mesh, covariance, relation, p["n"], p["expected_n"], p["epsilon"], p["delta"]


def _field(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> FieldStatisticPlan:
    return FieldStatisticPlan(*_on_field(p, relation, domain))


def _run(p: Mapping[str, Any]) -> dict[str, Any]:
    return {"sampler": p["sampler"]} | ({} if p["engine"] is None else {"engine": p["engine"]})


def _posterior_draw(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> PosteriorDrawPlan:
    return PosteriorDrawPlan(*_on_field(p, relation, domain), **_run(p), intercept_sd=p["intercept_sd"])


def _lipschitz(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> LipschitzPlan:
    return LipschitzPlan(*_on_field(p, relation, domain), **_run(p), slope=p["slope"])


def _kim_lim(bound: str) -> Builder:
    return lambda p, relation, domain: KimLimPlan(
        *_on_field(p, relation, domain), **_run(p), bound=bound, ratio=p["ratio"]
    )


def _kernel(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> KernelPlan:
    return KernelPlan(
        window(domain), relation, p["n"], p["epsilon"], p["delta"], p["bandwidth"], p["bound"], p["patterns"]
    )


def _diffusion(p: Mapping[str, Any], relation: CappedRelation, domain: Domain) -> DiffusionPlan:
    mesh = segments(mesh_from_recipe(p["mesh"], domain))
    return DiffusionPlan(mesh, relation, p["n"], p["epsilon"], p["delta"], p["bandwidth"], p["patterns"])


def _heatmap(p: Mapping[str, Any], _: Relation, domain: Domain) -> HeatmapPlan:
    mesh = mesh_from_recipe(p["mesh"], domain)
    split = {"w": p["w"], "variant": p["variant"], "decay": p["decay"], "user": p["user"]}
    return HeatmapPlan(mesh, p["expected_n"], p["epsilon"], **split)


def _reports(p: Mapping[str, Any], _: Relation, domain: Domain) -> LocalPlan:
    return LocalPlan(mesh_from_recipe(p["mesh"], domain), randomizer_from_dict(p["randomizer"]), p["n"])


def _uniform_grid(p: Mapping[str, Any], _: Relation, domain: Domain) -> UniformGridPlan:
    return UniformGridPlan(window(domain), p["epsilon"], p["n"], p["columns"], p["rows"], p["oracle"])


def _adaptive_grid(p: Mapping[str, Any], _: Relation, domain: Domain) -> AdaptiveGridPlan:
    stated = ("cuts", "alpha", "sigma", "rounding", "margin", "pieces", "oracle", "cells")
    chosen = {name: p[name] for name in stated}
    return AdaptiveGridPlan(window(domain), p["epsilon"], p["n"], p["reports"], **chosen)


def _trajectories(p: Mapping[str, Any], _: Relation, domain: Domain) -> TracePlan:
    known = {name: p[name] for name in ("clients", "user", "longest")}
    return TracePlan(window(domain), p["epsilon"], p["cells"], p["max_length"], p["n"], **known)


MEASUREMENTS: dict[str, Builder] = {
    "laplace-cells": _statistic,
    "laplace-tents": _statistic,
    "bounded-cells": _bounded,
    "planar-laplace": _moved,
    "lgcp-tents": _statistic,
    "lgcp-field": _field,
    "lgcp-posterior-draw": _posterior_draw,
    "lgcp-lipschitz": _lipschitz,
    "lgcp-kim-lim-3.8": _kim_lim("3.8"),
    "lgcp-kim-lim-3.9": _kim_lim("3.9"),
    "kernel": _kernel,
    "kernel-diffusion": _diffusion,
    "heatmap": _heatmap,
    **dict.fromkeys(("disk-area", "hybrid-area", "square-wave", "subset-exponential"), _reports),
    "uniform-grid": _uniform_grid,
    "adaptive-grid": _adaptive_grid,
    "trajectories": _trajectories,
}
