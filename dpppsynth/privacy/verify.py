"""Re-check a certificate without the data: the bound from its public parameters, its hash, its files."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from shapely.errors import ShapelyError

from dpppsynth.domains import Window
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.mesh import Mesh
from dpppsynth.models.covariances import covariance_from_dict
from dpppsynth.models.planar import mesh_from_recipe
from dpppsynth.privacy import bounds, certificate
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.fields import UNIT_SCALE, field_statistic
from dpppsynth.privacy.guarantee import Guarantee, PureDP, guarantee_from_dict
from dpppsynth.privacy.kernels import kim_lim_36, superposition
from dpppsynth.privacy.kim_lim import kim_lim_38, kim_lim_39
from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace
from dpppsynth.privacy.posterior_draw import lipschitz, theorem_a
from dpppsynth.privacy.relations import Relation, relation_from_dict
from dpppsynth.randomness import CHILDREN, drawn_by, source


@dataclass(frozen=True)
class Derived:
    """What a mechanism's public parameters imply.

    Attributes
    ----------
    guarantee : Guarantee
    noise : str
        Sampler and entropy of the randomness that protects.
    released : dict of str to int
        Files of the statistics, and how many numbers each holds; none where only patterns are released.
    patterns : int
        Patterns that were paid for one by one; 0 where any number is free.
    """

    guarantee: Guarantee
    noise: str
    released: Mapping[str, int]
    patterns: int = 0


def _holding(count: int) -> dict[str, int]:
    return {certificate.STATISTIC: count}


Recipe = Callable[[Mapping[str, Any], Relation, Window], Derived]


def _cells(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    _require(parameters, basis="cells", lattice_bits=0)
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    return Derived(bounds.counts(relation, scale=parameters["scale"]), OpenDPLaplace.name, _holding(len(mesh.elements)))


def _tents(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    _require(parameters, basis="tents", lattice_bits=bounds.LATTICE_BITS)
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    return Derived(
        bounds.tents(mesh, relation, scale=parameters["scale"]), OpenDPLaplace.name, _holding(len(mesh.vertices))
    )


def _field(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    _require(parameters, basis="field", lattice_bits=bounds.LATTICE_BITS, scale=UNIT_SCALE)
    mesh, covariance = mesh_from_recipe(parameters["mesh"], domain), covariance_from_dict(parameters["covariance"])
    guarantee = field_statistic(mesh, covariance, relation, delta=parameters["delta"], scale=parameters["scale"])
    return Derived(guarantee, OpenDPGaussian.name, _holding(len(mesh.vertices)))


def _posterior_draw(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    mesh, covariance = mesh_from_recipe(parameters["mesh"], domain), covariance_from_dict(parameters["covariance"])
    guarantee = theorem_a(
        mesh,
        covariance,
        relation,
        delta=parameters["delta"],
        intercept_sd=parameters["intercept_sd"],
        sampler=parameters["sampler"],
    )
    return _drawn(parameters, guarantee, mesh)


def _lipschitz(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    guarantee = lipschitz(mesh, relation, slope=parameters["slope"], sampler=parameters["sampler"])
    return _drawn(parameters, guarantee, mesh)


def _kim_lim(bound: Callable[..., Guarantee]) -> Recipe:
    def derive(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
        _require(parameters, sampler="nuts")
        mesh = mesh_from_recipe(parameters["mesh"], domain)
        guarantee = bound(mesh, None, relation, epsilon=parameters["epsilon"], ratio=parameters["ratio"])
        return _drawn(parameters, guarantee, mesh)

    return derive


def _drawn(parameters: Mapping[str, Any], guarantee: Guarantee, mesh: Mesh) -> Derived:
    return Derived(guarantee, source(drawn_by(parameters["sampler"])), _holding(len(mesh.vertices)))


def _kernel(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    public = {name: parameters[name] for name in ("bandwidth", "delta", "patterns")}
    if parameters["bound"] == "superposition":
        guarantee = superposition(domain, relation, **public)
    else:
        guarantee = kim_lim_36(domain, relation, n=parameters["n"], epsilon=parameters["epsilon"], **public)
    return Derived(guarantee, source(CHILDREN), {}, parameters["patterns"])


def _require(parameters: Mapping[str, Any], **stated: Any) -> None:
    if any(parameters[name] != value for name, value in stated.items()):
        msg = f"parameters: expected {stated} for this mechanism."
        raise InputError(msg)


RECOMPUTE: dict[str, Recipe] = {
    "laplace-cells": _cells,
    "laplace-tents": _tents,
    "lgcp-tents": _tents,
    "lgcp-field": _field,
    "lgcp-posterior-draw": _posterior_draw,
    "lgcp-lipschitz": _lipschitz,
    "lgcp-kim-lim-3.8": _kim_lim(kim_lim_38),
    "lgcp-kim-lim-3.9": _kim_lim(kim_lim_39),
    "kernel": _kernel,
}


# The mechanism of a release by levels of a mark, and what the files of each level begin with.
STRATA = "strata"


def prefix(k: int) -> str:
    """Beginning of the names of the k-th level's files."""
    return f"level_{k:03d}_"


def _strata(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    stated = parameters["strata"]
    parts = [RECOMPUTE[each["mechanism"]](each["parameters"], relation, domain) for each in stated]
    spent = all(_spends(part.guarantee, each["parameters"]) for part, each in zip(parts, stated, strict=True))
    budgets = {_budget(each["parameters"]) for each in stated}
    kinds = {(part.noise, part.patterns) for part in parts}
    if not spent or len(parts) != len(parameters["levels"]) or len(budgets) > 1 or len(kinds) > 1:
        msg = "parameters: one release for each level, all of one kind and budget."
        raise InputError(msg)
    released = {prefix(k) + name: count for k, part in enumerate(parts) for name, count in part.released.items()}
    guarantee = parallel([part.guarantee for part in parts], parameters["by"])
    return Derived(guarantee, parts[0].noise, released, parts[0].patterns)


RECOMPUTE[STRATA] = _strata


@dataclass(frozen=True)
class Check:
    """One thing an auditor can tick off."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """Outcome of `verify`.

    Attributes
    ----------
    guarantee : Guarantee
        What the certificate claims.
    checks : tuple of Check
    """

    guarantee: Guarantee
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def require(self) -> None:
        """Raise `PrivacyCheckError` naming the checks that do not hold."""
        failed = [f"{c.name}: {c.detail}" for c in self.checks if not c.holds]
        if failed:
            msg = "certificate does not hold. " + " ".join(failed)
            raise PrivacyCheckError(msg)


def verify(path: str | Path) -> Verification:
    """Check a certificate file (or the one in a folder) and the files beside it.

    Raises
    ------
    InputError
        When there is no readable certificate at `path`. A certificate that is readable but wrong is reported in the
        result instead.
    """
    path = Path(path)
    cert = certificate.read(path)
    folder = path if path.is_dir() else path.parent
    unedited = certificate.content_hash(cert) == cert["content_hash"]
    derived = _derive(cert, folder)
    checks = (
        Check("content", unedited, "unedited" if unedited else "some field was edited after the release."),
        _check_files(cert, folder, derived),
        _check_seed(cert, derived),
        _check_statistic(cert, folder, derived),
        _check_bound(cert, derived),
    )
    return Verification(guarantee_from_dict(cert["guarantee"]), checks)


def _check_files(cert: Mapping[str, Any], folder: Path, derived: "Derived | str") -> Check:
    wrong = [
        name
        for name, digest in cert["files"].items()
        if not (folder / name).is_file() or certificate.file_hash(folder / name) != digest
    ]
    needed = [cert["domain"]["file"], *(() if isinstance(derived, str) else derived.released)]
    wrong += [name for name in needed if name not in cert["files"]]
    others = sorted(f.name for f in folder.iterdir() if f.name not in {*cert["files"], certificate.FILENAME})
    beside = f"; not covered: {', '.join(others)}" if others else ""
    detail = f"missing or changed: {', '.join(wrong)}." if wrong else f"{len(cert['files'])} files as released{beside}"
    return Check("files", not wrong, detail)


def _check_seed(cert: Mapping[str, Any], derived: "Derived | str") -> Check:
    named = isinstance(derived, str) or cert["noise"] == derived.noise
    clean = not cert["seeded"] and cert["releasable"] and cert["warning"] is None and named
    why = certificate.SEEDED if cert["seeded"] else "this certificate says that it must not be released."
    return Check("randomness", clean, "secret noise" if clean else why)


def _check_statistic(cert: Mapping[str, Any], folder: Path, derived: "Derived | str") -> Check:
    """What is released is as much as was paid for, and made with the noise that the certificate states."""
    # Where nothing can be derived, the bound does not hold; what stands in the usual file is looked at all the same.
    expected = {certificate.STATISTIC: -1} if isinstance(derived, str) else derived.released
    for name, count in expected.items():
        try:
            statistic = json.loads((folder / name).read_text(encoding="utf-8"))
            same = (statistic["noise"], statistic["seeded"]) == (cert["noise"], cert["seeded"])
            whole = all(type(value) is int for value in statistic["lattice"])
            fits = count in (-1, len(statistic["lattice"]))
        except (OSError, LookupError, TypeError, ValueError):
            return Check("statistic", False, f"{name} is missing or not a private statistic.")
        if not (same and whole and fits):
            return Check("statistic", False, f"{name} is not the one this certificate speaks of.")
    paid = 0 if isinstance(derived, str) else derived.patterns
    if paid and len(cert["files"]) != paid + 1:
        return Check(
            "statistic", False, f"{paid} patterns were paid for; beside the domain no other file belongs here."
        )
    numbers = sum(count for count in expected.values() if count > 0)
    return Check("statistic", True, f"{numbers} released numbers" if expected else "none beside the patterns")


def _derive(cert: Mapping[str, Any], folder: Path) -> "Derived | str":
    """The guarantee that follows from the parameters and the domain file, or why none does."""
    recompute = RECOMPUTE.get(cert["mechanism"])
    if recompute is None:
        return f"mechanism {cert['mechanism']!r} is not known to this version."
    if not certificate.parameters_make_sense(cert["parameters"]):
        return "its parameters are not those of a release."
    stated = cert["domain"]
    try:
        domain = Window.from_geojson(json.loads((folder / stated["file"]).read_text(encoding="utf-8")))
        derived = recompute(cert["parameters"], relation_from_dict(cert["guarantee"]["relation"]), domain)
    except (
        OSError,
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
        ArithmeticError,
        ShapelyError,
        PrivacyCheckError,
    ):
        return "it cannot be derived from the certificate's parameters and domain file."
    if (domain.fingerprint(), domain.crs, domain.unit) != (stated["fingerprint"], stated["crs"], stated["unit"]):
        return "the domain file is not the domain of the certificate."
    return derived


def _check_bound(cert: Mapping[str, Any], derived: "Derived | str") -> Check:
    """Compare the derived guarantee, field by field, with the claim."""
    if isinstance(derived, str):
        return Check("bound", False, derived)
    guarantee, said = derived.guarantee, cert["guarantee"]
    epsilon = guarantee.epsilon()
    parts = [part["parameters"] for part in cert["parameters"].get("strata", [])] or [cert["parameters"]]
    if cert["mechanism"] != STRATA and not _spends(guarantee, cert["parameters"]):
        return Check("bound", False, f"the parameters give epsilon = {epsilon:.6g}, the stated budget differs.")
    if any((part["n"] is not None) != guarantee.relation.n_is_public for part in parts):
        return Check("bound", False, "the number of points must be stated where it is public, and nowhere else.")
    claimed = guarantee_from_dict(said)
    if not _agree(guarantee, claimed, said["profile"]):
        return Check("bound", False, f"the parameters give epsilon = {epsilon:.6g}, the claim differs.")
    if claimed.assumptions != guarantee.assumptions or said["in_words"] != str(claimed):
        return Check(
            "bound", False, f"epsilon = {epsilon:.6g} follows, but the sentences are not this schema version's."
        )
    return Check("bound", True, f"epsilon = {epsilon:.6g} follows from the public parameters")


def _spends(guarantee: Guarantee, parameters: Mapping[str, Any]) -> bool:
    """Whether a guarantee keeps to the stated budget, and spends all of it where the noise is set from the budget."""
    epsilon, delta = _budget(parameters)
    low = 1 - 1e-9 if isinstance(guarantee.profile, PureDP) else 0.0
    return low * epsilon <= guarantee.epsilon() and guarantee.keeps_to(epsilon, delta)


def _budget(parameters: Mapping[str, Any]) -> tuple[float, float]:
    return parameters["epsilon"], parameters.get("delta", 0.0)


def _agree(derived: Guarantee, claimed: Guarantee, claimed_profile: dict[str, Any]) -> bool:
    """Same promise, numbers to rounding across machines."""
    return (
        derived.relation == claimed.relation
        and derived.theorem == claimed.theorem
        and math.isclose(derived.epsilon(), claimed.epsilon(), rel_tol=1e-12)
        and _alike(claimed_profile, derived.profile.to_dict())
        and len(derived.by_distance) == len(claimed.by_distance)
        and np.allclose(derived.by_distance, claimed.by_distance, rtol=1e-9, atol=0)
    )


def _alike(claimed: Any, derived: Any) -> bool:
    """Same JSON, numbers to rounding across machines."""
    if isinstance(derived, dict):
        return (
            isinstance(claimed, dict)
            and claimed.keys() == derived.keys()
            and all(_alike(claimed[key], value) for key, value in derived.items())
        )
    if isinstance(derived, list):
        return isinstance(claimed, list) and len(claimed) == len(derived) and all(map(_alike, claimed, derived))
    if isinstance(derived, float):
        return isinstance(claimed, int | float) and math.isclose(claimed, derived, rel_tol=1e-9)
    return bool(claimed == derived)
