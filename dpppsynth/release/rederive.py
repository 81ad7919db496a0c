"""Guarantee of a certificate derived again from its public parameters, and the files that follow from them.

One recipe for each registered mechanism. A recipe refuses parameters that are not exactly the ones its mechanism has,
so that a certificate cannot describe another release than the one whose bound it states.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import shapely

from dpppsynth.core.arguments import entries
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import strict_json
from dpppsynth.core.randomness import CHILDREN, drawn_by, source
from dpppsynth.mechanisms.bounded.bound import bounded_counts
from dpppsynth.mechanisms.heatmap import bound as pyramids
from dpppsynth.mechanisms.kernel.bound.heat import diffusion
from dpppsynth.mechanisms.kernel.bound.kernels import kim_lim_36, superposition
from dpppsynth.mechanisms.lgcp.bound.fields import UNIT_SCALE, field_statistic
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, kim_lim_38, kim_lim_39
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import lipschitz, theorem_a
from dpppsynth.mechanisms.local import bound as local
from dpppsynth.mechanisms.local.bound import POSTS, REPORTS, local_report, local_rounds, local_trajectories, square_grid
from dpppsynth.mechanisms.local.grids.rectangles import uniform_grid
from dpppsynth.mechanisms.local.grids.sides import first_side
from dpppsynth.mechanisms.local.randomizers.base import Randomizer
from dpppsynth.mechanisms.local.randomizers.registry import oracle, randomizer_from_dict
from dpppsynth.mechanisms.local.trajectories.protocol import TraceProtocol
from dpppsynth.mechanisms.planar_laplace import bound as moved
from dpppsynth.mechanisms.planar_laplace.bound import MOVES, moved_points, noise_bound, rate
from dpppsynth.models.covariances import covariance_from_dict
from dpppsynth.models.planar import cells_along
from dpppsynth.models.recipes import mesh_from_recipe, segments, window
from dpppsynth.privacy import bounds
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.noise import (
    TRUNCATED,
    OpenDPGaussian,
    OpenDPLaplace,
    SeededGaussian,
    SeededLaplace,
    laplace_scale,
)
from dpppsynth.privacy.profiles import ApproximateDP
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation, Local, Relation
from dpppsynth.release import certificate, contents, estimators
from dpppsynth.release.estimators import require
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Ints, Mesh


@dataclass(frozen=True)
class Derived:
    """Consequences of a mechanism's public parameters.

    Attributes
    ----------
    guarantee : Guarantee
    noise : str
        Sampler and entropy of the randomness that protects.
    released : dict of str to int
        Files of the statistics, and how many numbers each holds; none where only patterns are released.
    patterns : int
        Patterns that were paid for one by one; 0 where any number is free.
    others : frozenset of str
        Further files that such a release may hold, beside domain and synthetic patterns.
    offset : str or None
        Fingerprint of the public offset.
    possible : dict of str to callable
        By file of statistics, refuses numbers (an array) that no run gives, where that follows from public parameters.
    following : tuple of Following
        Files that follow from the statistics, or whose form does from public parameters.
    marks : tuple of (str, list of str), optional
        The mark on synthetic patterns, and its levels.
    remark : str
        What must be said with the bound.
    """

    guarantee: Guarantee
    noise: str
    released: Mapping[str, int]
    patterns: int = 0
    others: frozenset[str] = frozenset()
    offset: str | None = None
    possible: Mapping[str, Callable[[Ints], object]] = field(default_factory=dict)
    following: tuple["Following", ...] = ()
    marks: tuple[str, list[str]] | None = None
    remark: str = ""

    def source(self, *, seeded: bool) -> str:
        """Name of the noise, or of its substitute in a seeded run."""
        return (
            _SEEDED.get(self.noise, source(self.noise.removesuffix(source("")), seeded=True)) if seeded else self.noise
        )


class Following(NamedTuple):
    """A file of a release, the files of the statistics it follows from, and what refuses it where it does not.

    The check takes the file's bytes, and the statistics' numbers one after the other.
    """

    file: str
    statistics: tuple[str, ...]
    check: Callable[[bytes, Ints], object]


Parameters = Mapping[str, Any]
Recipe = Callable[[Parameters, Any, Domain], Derived]


def _stating(estimator: str | None, *names: str, capped: bool = True) -> Callable[[Recipe], Recipe]:
    """Let a recipe see only parameters with exactly these names, and with that kind of estimator.

    Unless not `capped`, its neighbours differ by a capped number of points.
    """
    stated = {"epsilon", "n", "expected_n", *names, *(() if estimator is None else ("estimator",))}

    def strict(recipe: Recipe) -> Recipe:
        @wraps(recipe)
        def derive(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
            require(parameters.keys() == stated, f"exactly {', '.join(sorted(stated))} are stated")
            require(estimator is None or parameters["estimator"]["kind"] == estimator, f"the estimator is {estimator}")
            public, n = relation.n_is_public, parameters["n"]
            require(n is None or type(n) is int, "n is a whole number")
            if capped and not isinstance(relation, CappedRelation):
                msg = "relation: this mechanism needs a cap on the points of one person, which this relation lacks."
                raise InputError(msg)
            require((n is not None) == public, "n is stated where it is public, and nowhere else")
            require(parameters["expected_n"] is None or not public, "expected_n takes the place of n where n is secret")
            return recipe(parameters, relation, domain)

        return derive

    return strict


def _holding(count: int) -> dict[str, int]:
    return {certificate.STATISTIC: count}


def _numbers(possible: Callable[[Ints], object]) -> dict[str, Callable[[Ints], object]]:
    return {certificate.STATISTIC: possible}


def _projected(parameters: Parameters, relation: Relation) -> None:
    estimators.projected(parameters["estimator"], n_is_public=relation.n_is_public)


def _beside(parameters: Parameters, tents: Mesh) -> dict[str, Any]:
    """Files that the estimator of masses on a mesh brings, and the offset's fingerprint."""
    estimator = parameters["estimator"]
    if estimator["kind"] == "drawn":
        return _with_offset(estimators.drawn(estimator))
    mesh, offset = estimators.fitted(estimator, tents)

    def posterior(content: bytes, _: Ints) -> None:
        contents.require_posterior(content, mesh, estimator["length_scales"])

    following = (Following(certificate.POSTERIOR, (), posterior),)
    return _with_offset(offset, certificate.POSTERIOR) | {"following": following}


def _with_offset(offset: str | None, *others: str) -> dict[str, Any]:
    beside = () if offset is None else (certificate.OFFSET,)
    return {"others": frozenset((*others, *beside)), "offset": offset}


@_stating("projection", "basis", "mesh", "lattice_bits", "scale")
def _cells(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    require((parameters["basis"], parameters["lattice_bits"]) == ("cells", 0), "cells are counted in whole numbers")
    _projected(parameters, relation)
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    guarantee = bounds.counts(relation, scale=parameters["scale"], domain=domain)
    return Derived(guarantee, OpenDPLaplace.name, _holding(len(mesh.elements)))


@_stating("projection", "basis", "mesh", "lattice_bits", "scale", "delta", "max_error")
def _bounded(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    require((parameters["basis"], parameters["lattice_bits"]) == ("cells", 0), "cells are counted in whole numbers")
    mesh, most, n = mesh_from_recipe(parameters["mesh"], domain), parameters["max_error"], parameters["n"]
    require(type(most) is int, "max_error is a whole number")
    _projected(parameters, relation)
    scale = laplace_scale(bounds.counts_sensitivity(relation), parameters["epsilon"])
    require(parameters["scale"] == scale, "the scale is that of the budget")
    public = {"scale": scale, "max_error": most, "delta": parameters["delta"]}
    guarantee = bounded_counts(relation, **public, domain=domain)

    def possible(lattice: Ints) -> None:
        low, high = int(lattice.min()), int(lattice.max())
        total, room = int(lattice.sum()), most * len(lattice)
        require(low >= -most, "no count is off by more than max_error")
        require(n is None or (high <= n + most and abs(total - n) <= room), "no count is off by more than max_error")

    def counted(content: bytes, lattice: Ints) -> None:
        contents.require_counts(content, mesh, np.maximum(lattice, 0))

    return Derived(
        guarantee,
        TRUNCATED + OpenDPLaplace.name,
        _holding(len(mesh.elements)),
        others=frozenset({certificate.COUNTS}),
        possible=_numbers(possible),
        following=(Following(certificate.COUNTS, (certificate.STATISTIC,), counted),),
    )


@_stating(None, "basis", "delta", "max_error", "track")
def _moved(parameters: Parameters, relation: AlphaNeighbours, domain: Domain) -> Derived:
    n, most, place = parameters["n"], parameters["max_error"], window(domain)
    require(parameters["basis"] == "moved", "points are moved")
    require(isinstance(relation, AlphaNeighbours), "the bound grows with the distance, so alpha is stated")
    capped = not parameters["track"] or relation.max_points_per_person >= n
    require(isinstance(parameters["track"], bool) and capped, "all points of a track are one person's")
    bound = noise_bound(place, most)
    public: dict[str, Any] = {"rate": rate(relation, parameters["epsilon"], domain), "farthest": place.diameter}
    guarantee = moved_points(relation, **public, bound=bound, domain=domain)

    def possible(lattice: Ints) -> None:
        xy, (x0, y0, x1, y1) = lattice.reshape(-1, 2) * place.resolution, place.bounds
        near = math.inf if most is None else most
        require(bool(((xy >= [x0 - near, y0 - near]) & (xy <= [x1 + near, y1 + near])).all()), "no move is longer")

    def placed(content: bytes, lattice: Ints) -> None:
        document, raw = strict_json(content), lattice.reshape(-1, 2) * place.resolution
        points = np.array([feature["geometry"]["coordinates"] for feature in document["features"]], dtype=float)
        require(points.shape == raw.shape and bool(place.contains(points).all()), "all points are there")
        # Into the window, and there to its inner part, is no further than to its border and a step.
        border = shapely.distance(place.geometry, shapely.points(raw)) * (1 + 1e-9)
        moved = np.hypot(*(points - raw).T)
        allowed = np.where(place.contains(raw), 0, border + place.resolution)
        require(bool((moved <= allowed).all()), "points are those drawn")

    following = (Following(certificate.synthetic(0), (certificate.STATISTIC,), placed),)
    return Derived(guarantee, MOVES, _holding(2 * n), 1, possible=_numbers(possible), following=following)


def _tents(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    lattice = (parameters["basis"], parameters["lattice_bits"])
    require(lattice == ("tents", bounds.LATTICE_BITS), f"tents lie on a lattice of {bounds.LATTICE_BITS} bits")
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    guarantee = bounds.tents(mesh, relation, scale=parameters["scale"])
    if parameters["estimator"]["kind"] == "projection":
        _projected(parameters, relation)
        return Derived(guarantee, OpenDPLaplace.name, _holding(len(mesh.vertices)))
    return Derived(guarantee, OpenDPLaplace.name, _holding(len(mesh.vertices)), **_beside(parameters, mesh))


@_stating("field", "basis", "mesh", "covariance", "lattice_bits", "scale", "delta")
def _field(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    lattice = (parameters["basis"], parameters["lattice_bits"], parameters["scale"])
    require(lattice == ("field", bounds.LATTICE_BITS, UNIT_SCALE), "the field statistic has noise 1 on its lattice")
    mesh, covariance = mesh_from_recipe(parameters["mesh"], domain), covariance_from_dict(parameters["covariance"])
    guarantee = field_statistic(mesh, covariance, relation, delta=parameters["delta"], scale=parameters["scale"])
    return Derived(guarantee, OpenDPGaussian.name, _holding(len(mesh.vertices)), **_beside(parameters, mesh))


DRAWN = ("mesh", "covariance", "sampler", "engine", "lattice_bits", "delta")


@_stating("drawn", *DRAWN, "intercept_sd")
def _posterior_draw(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    mesh, covariance = mesh_from_recipe(parameters["mesh"], domain), covariance_from_dict(parameters["covariance"])
    sampler, intercept_sd = parameters["sampler"], parameters["intercept_sd"]
    require((intercept_sd is None) == relation.n_is_public, "the intercept protects n where n is secret")
    delta = parameters["delta"]
    guarantee = theorem_a(mesh, covariance, relation, delta=delta, intercept_sd=intercept_sd, sampler=sampler)
    return _drawn(parameters, guarantee, mesh)


@_stating("drawn", *DRAWN, "slope")
def _lipschitz(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    require(parameters["delta"] == 0, "a field of bounded slope spends no delta")
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    # The bound does not depend on it, but a field with this covariance must exist.
    covariance_from_dict(parameters["covariance"]).matrix(mesh)
    guarantee = lipschitz(mesh, relation, slope=parameters["slope"], sampler=parameters["sampler"])
    return _drawn(parameters, guarantee, mesh)


def _kim_lim(bound: Callable[..., Guarantee]) -> Recipe:
    @_stating("drawn", *DRAWN, "ratio")
    def derive(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
        require(parameters["sampler"] == "nuts", "Kim & Lim's draws are made by NUTS")
        covariance, ratio = covariance_from_dict(parameters["covariance"]), parameters["ratio"]
        mesh = mesh_from_recipe(parameters["mesh"], domain)
        require(mesh.recipe["builder"] in ("regular", "network"), "the mesh is regular")
        median = RandomScale(ratio, mesh.smoothest_power).at(covariance.length_scale)
        same = replace(covariance, sigma=1.0) == replace(median, sigma=1.0)
        same = same and math.isclose(covariance.sigma, median.sigma, rel_tol=1e-9)
        require(same, "sigma and power are those of the ratio at the median length scale")
        guarantee = bound(mesh, None, relation, epsilon=parameters["epsilon"], ratio=ratio)
        return _drawn(parameters, guarantee, mesh)

    return derive


def _drawn(parameters: Parameters, guarantee: Guarantee, mesh: Mesh) -> Derived:
    sampler = parameters["sampler"]
    require((parameters["engine"] is not None) == (sampler == "nuts"), "an engine is stated for NUTS alone")
    return Derived(guarantee, source(drawn_by(sampler)), _holding(len(mesh.vertices)), **_beside(parameters, mesh))


@_stating(None, "bandwidth", "bound", "patterns", "delta")
def _kernel(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    public = {name: parameters[name] for name in ("bandwidth", "delta", "patterns")}
    if parameters["bound"] == "superposition":
        guarantee = superposition(window(domain), relation, **public)
    else:
        guarantee = kim_lim_36(window(domain), relation, n=parameters["n"], epsilon=parameters["epsilon"], **public)
    return Derived(guarantee, source(CHILDREN), {}, parameters["patterns"])


@_stating(None, "bandwidth", "mesh", "patterns", "delta")
def _diffusion(parameters: Parameters, relation: CappedRelation, domain: Domain) -> Derived:
    public = {name: parameters[name] for name in ("bandwidth", "delta", "patterns")}
    guarantee = diffusion(segments(mesh_from_recipe(parameters["mesh"], domain)), relation, **public)
    return Derived(guarantee, source(CHILDREN), {}, parameters["patterns"])


@_stating("reconstruction", "basis", "mesh", "lattice_bits", "w", "variant", "decay", "user", capped=False)
def _heatmap(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
    estimators.reconstructed(parameters["estimator"])
    lattice = (parameters["basis"], parameters["lattice_bits"])
    require(lattice == ("heatmap", bounds.LATTICE_BITS), f"masses lie on a lattice of {bounds.LATTICE_BITS} bits")
    w, mesh = parameters["w"], mesh_from_recipe(parameters["mesh"], domain)
    depth = pyramids.grid_depth(cells_along(mesh))
    split = {name: parameters[name] for name in ("variant", "decay")}
    budgets = pyramids.level_budgets(parameters["epsilon"], depth, w, **split)
    guarantee = pyramids.heatmap(pyramids.level_scales(budgets), user=parameters["user"])
    require(relation == guarantee.relation, "the user is the one that the relation names")
    return Derived(guarantee, OpenDPLaplace.name, _holding(sum(pyramids.layout(budgets.first, depth, w))))


def _reports(kind: str) -> Recipe:
    @_stating("reports", "basis", "mesh", "randomizer", capped=False)
    def derive(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
        require(parameters["basis"] == "reports", "reports are counted")
        stated = entries("randomizer", parameters["randomizer"])
        require(stated.get("kind") == kind, f"the clients' mechanism is {kind}")
        randomizer = randomizer_from_dict(stated)
        require(randomizer.epsilon == parameters["epsilon"], "epsilon is that of every report")
        settled = {"kind": "reports", "settings": randomizer.settings(**parameters["estimator"].get("settings", {}))}
        estimators.among(parameters["estimator"], [settled], "the estimator has all its settings")
        side = square_grid(randomizer)
        shape = cells_along(mesh_from_recipe(parameters["mesh"], domain))
        require(shape == (side, side), "the values are the cells of the grid")
        guarantee = local_report(randomizer)
        require(relation == guarantee.relation, "the relation is that of the clients' mechanism")
        possible = _possible((randomizer, parameters["n"]))
        return Derived(guarantee, REPORTS, _holding(randomizer.size), possible=_numbers(possible))

    return derive


def _possible(*rounds: tuple[Randomizer, int]) -> Callable[[Ints], object]:
    """Check of released counts, one after the other: InputError unless so many reports of each mechanism give them."""

    def check(lattice: Ints) -> None:
        ends = np.cumsum([clients.size for clients, _ in rounds])
        for (clients, n), counts in zip(rounds, np.split(lattice, ends[:-1]), strict=True):
            clients.counts_of(counts, n)

    return check


def _on_grid(parameters: Parameters, basis: str, relation: Relation) -> None:
    known = [{"kind": "grid", "post": post, "consistent": both} for post in POSTS for both in (False, True)]
    estimators.among(parameters["estimator"], known, f"the estimator is a grid's, with post {' or '.join(POSTS)}")
    require(parameters["basis"] == basis, f"the basis is {basis}")
    require(relation == Local(), "the relation is local")


@_stating("grid", "basis", "columns", "rows", "oracle", capped=False)
def _uniform_grid(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
    _on_grid(parameters, "uniform-grid", relation)
    grid = uniform_grid(window(domain).bounds, parameters["columns"], parameters["rows"])
    clients = oracle(parameters["oracle"], epsilon=parameters["epsilon"], domain=len(grid))
    possible = _possible((clients, parameters["n"]))
    return Derived(local_report(clients), REPORTS, _holding(clients.size), possible=_numbers(possible))


@_stating(
    "grid",
    *("basis", "reports", "cuts", "alpha", "sigma", "rounding", "margin", "pieces", "oracle", "cells"),
    capped=False,
)
def _adaptive_grid(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
    _on_grid(parameters, "adaptive-grid", relation)
    window(domain)
    epsilon, kind, n = (parameters[name] for name in ("epsilon", "oracle", "n"))
    require(sum(parameters["reports"]) <= n, "nobody reports in both rounds")
    first = first_side(epsilon, n, alpha=parameters["alpha"][0], rounding=parameters["rounding"][0])
    # The second level follows from the first counts; loading the release makes it again and compares the number.
    both = [oracle(kind, epsilon=epsilon, domain=cells) for cells in (first**2, parameters["cells"])]
    possible = _possible(*zip(both, parameters["reports"], strict=True))
    released = _holding(sum(clients.size for clients in both))
    return Derived(local_rounds(epsilon, both), REPORTS, released, possible=_numbers(possible))


@_stating("trajectories", "basis", "cells", "max_length", "clients", "user", "longest", capped=False)
def _trajectories(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
    estimators.among(parameters["estimator"], [{"kind": "trajectories"}], "the estimator has no settings")
    require(parameters["basis"] == "trajectories", "the basis is trajectories")
    window(domain)
    clients, n = parameters["clients"], parameters["n"]
    require(n <= 2**53, "there are at most 2**53 trajectories")
    require(len(clients) == 2, "there are two rounds")
    require(min(clients) >= 1 and max(clients) <= n, "somebody reports in each round, and nobody twice")
    split = {name: parameters[name] for name in ("epsilon", "cells", "max_length")}
    protocol, longest = TraceProtocol(**split), parameters["longest"]
    guarantee = local_trajectories(protocol, longest)
    require(relation == guarantee.relation, "the relation is local, of trajectories")
    released = _holding(protocol.first.size + protocol.second(longest).size)
    # The longest length follows from the first counts.
    possible = partial(protocol.counts, clients=tuple(clients), longest=longest)
    return Derived(guarantee, REPORTS, released, possible=_numbers(possible))


# How certificates of seeded runs name what takes the place of secret noise.
_SEEDED = {
    OpenDPLaplace.name: SeededLaplace.name,
    TRUNCATED + OpenDPLaplace.name: TRUNCATED + SeededLaplace.name,
    OpenDPGaussian.name: SeededGaussian.name,
    REPORTS: local.SEEDED,
    MOVES: moved.SEEDED,
}

RECOMPUTE: dict[str, Recipe] = {
    "laplace-cells": _cells,
    "laplace-tents": _stating("projection", "basis", "mesh", "lattice_bits", "scale")(_tents),
    "bounded-cells": _bounded,
    "planar-laplace": _moved,
    "lgcp-tents": _stating("field", "basis", "mesh", "lattice_bits", "scale")(_tents),
    "lgcp-field": _field,
    "lgcp-posterior-draw": _posterior_draw,
    "lgcp-lipschitz": _lipschitz,
    "lgcp-kim-lim-3.8": _kim_lim(kim_lim_38),
    "lgcp-kim-lim-3.9": _kim_lim(kim_lim_39),
    "kernel": _kernel,
    "kernel-diffusion": _diffusion,
    "heatmap": _heatmap,
    **{kind: _reports(kind) for kind in ("disk-area", "hybrid-area", "square-wave", "subset-exponential")},
    "uniform-grid": _uniform_grid,
    "adaptive-grid": _adaptive_grid,
    "trajectories": _trajectories,
}

# The mechanism of a release by levels of a mark, and what the files of each level begin with.
STRATA = "strata"


def prefix(k: int) -> str:
    """Beginning of the names of the k-th level's files."""
    return f"level_{k:03d}_"


def _strata(parameters: Parameters, relation: Relation, domain: Domain) -> Derived:
    require(parameters.keys() == {"by", "levels", "strata"}, "by, levels and strata are stated")
    stated = parameters["strata"]
    parts = [RECOMPUTE[each["mechanism"]](each["parameters"], relation, domain) for each in stated]
    spent = all(spends(part.guarantee, each["parameters"]) for part, each in zip(parts, stated, strict=True))
    kinds = {
        (each["mechanism"], part.noise, part.patterns, part.offset, budget(each["parameters"]))
        for part, each in zip(parts, stated, strict=True)
    }
    alike = spent and len(parts) == len(parameters["levels"]) and len(kinds) == 1
    require(alike, "there is one release for each level, all of one kind and budget")
    tracks = any(each["parameters"].get("track") for each in stated)
    require(not tracks, "a track is one person's, whose points are not released by levels")
    released = {prefix(k) + name: count for k, part in enumerate(parts) for name, count in part.released.items()}
    # The offset is shared, a posterior each level's own.
    others = {
        name if name == certificate.OFFSET else prefix(k) + name for k, part in enumerate(parts) for name in part.others
    }
    possible = {prefix(k) + name: check for k, part in enumerate(parts) for name, check in part.possible.items()}
    guarantee, first = parallel([part.guarantee for part in parts], parameters["by"]), parts[0]
    marks = (parameters["by"], parameters["levels"])
    drawn = (first.noise, released, first.patterns, frozenset(others), first.offset)
    return Derived(guarantee, *drawn, possible=possible, following=_by_level(parts), marks=marks)


def _by_level(parts: Sequence[Derived]) -> tuple[Following, ...]:
    """Files of all levels that follow from their statistics; patterns of all levels are in one file."""
    own: dict[str, Following] = {}
    for k, part in enumerate(parts):
        for file, names, check in part.following:
            place = file if certificate.SYNTHETIC.fullmatch(file) else prefix(k) + file
            before = own[place].statistics if place in own else ()
            own[place] = Following(place, (*before, *(prefix(k) + name for name in names)), check)
    return tuple(own.values())


RECOMPUTE[STRATA] = _strata


def spends(guarantee: Guarantee, parameters: Parameters) -> bool:
    """Whether a guarantee keeps to the stated budget, and spends all of it where the noise is set from the budget."""
    epsilon, delta = budget(parameters)
    low = 1 - 1e-9 if isinstance(guarantee.profile, PureDP) else 0.0
    quoted = guarantee.profile.at == delta or isinstance(guarantee.profile, ApproximateDP)
    return quoted and low * epsilon <= guarantee.epsilon() and guarantee.keeps_to(epsilon, delta)


def budget(parameters: Parameters) -> tuple[float, float]:
    """Epsilon and delta asked for."""
    return parameters["epsilon"], parameters.get("delta", 0.0)
