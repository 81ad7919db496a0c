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
from dpppsynth.models.planar import mesh_from_recipe
from dpppsynth.privacy import bounds, certificate
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.noise import OpenDPLaplace
from dpppsynth.privacy.relations import Relation, relation_from_dict


@dataclass(frozen=True)
class Derived:
    """What a mechanism's public parameters imply: the guarantee, and how many numbers were released."""

    guarantee: Guarantee
    released: int


def _cells(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    _require(parameters, basis="cells", lattice_bits=0)
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    return Derived(bounds.counts(relation, scale=parameters["scale"]), len(mesh.elements))


def _tents(parameters: Mapping[str, Any], relation: Relation, domain: Window) -> Derived:
    _require(parameters, basis="tents", lattice_bits=bounds.LATTICE_BITS)
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    return Derived(bounds.tents(mesh, relation, scale=parameters["scale"]), len(mesh.vertices))


def _require(parameters: Mapping[str, Any], **stated: Any) -> None:
    if any(parameters[name] != value for name, value in stated.items()):
        msg = f"parameters: expected {stated} for this mechanism."
        raise InputError(msg)


RECOMPUTE: dict[str, Callable[[Mapping[str, Any], Relation, Window], Derived]] = {
    "laplace-cells": _cells,
    "laplace-tents": _tents,
    "lgcp-tents": _tents,
}


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
        _check_files(cert, folder),
        _check_seed(cert),
        _check_statistic(cert, folder, derived),
        _check_bound(cert, derived),
    )
    return Verification(guarantee_from_dict(cert["guarantee"]), checks)


def _check_files(cert: Mapping[str, Any], folder: Path) -> Check:
    wrong = [
        name
        for name, digest in cert["files"].items()
        if not (folder / name).is_file() or certificate.file_hash(folder / name) != digest
    ]
    wrong += [name for name in (cert["domain"]["file"], certificate.STATISTIC) if name not in cert["files"]]
    others = sorted(f.name for f in folder.iterdir() if f.name not in {*cert["files"], certificate.FILENAME})
    beside = f"; not covered: {', '.join(others)}" if others else ""
    detail = f"missing or changed: {', '.join(wrong)}." if wrong else f"{len(cert['files'])} files as released{beside}"
    return Check("files", not wrong, detail)


def _check_seed(cert: Mapping[str, Any]) -> Check:
    clean = (
        not cert["seeded"] and cert["releasable"] and cert["warning"] is None and cert["noise"] == OpenDPLaplace.name
    )
    return Check("randomness", clean, "secret noise" if clean else certificate.SEEDED)


def _check_statistic(cert: Mapping[str, Any], folder: Path, derived: "Derived | str") -> Check:
    """The released numbers are as many as the mesh has, and made with the noise that the certificate states."""
    try:
        statistic = json.loads((folder / certificate.STATISTIC).read_text(encoding="utf-8"))
        same = (statistic["noise"], statistic["seeded"]) == (cert["noise"], cert["seeded"])
        whole = all(type(value) is int for value in statistic["lattice"])
        length = len(statistic["lattice"])
    except (OSError, LookupError, TypeError, ValueError):
        return Check("statistic", False, f"{certificate.STATISTIC} is missing or not a private statistic.")
    fits = isinstance(derived, str) or length == derived.released
    if not (same and whole and fits):
        return Check("statistic", False, "it is not the one this certificate speaks of.")
    return Check("statistic", True, f"{length} noised numbers")


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
    except (OSError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError, ShapelyError):
        return "it cannot be derived from the certificate's parameters and domain file."
    if (domain.fingerprint(), domain.crs, domain.unit) != (stated["fingerprint"], stated["crs"], stated["unit"]):
        return "the domain file is not the domain of the certificate."
    return derived


def _check_bound(cert: Mapping[str, Any], derived: "Derived | str") -> Check:
    """Compare the derived guarantee, field by field, with the claim."""
    if isinstance(derived, str):
        return Check("bound", False, derived)
    guarantee, parameters, said = derived.guarantee, cert["parameters"], cert["guarantee"]
    epsilon = guarantee.epsilon()
    if not math.isclose(epsilon, parameters["epsilon"], rel_tol=1e-9):
        return Check("bound", False, f"the scale gives epsilon = {epsilon:.6g}, the stated budget differs.")
    if (parameters["n"] is not None) != guarantee.relation.n_is_public:
        return Check("bound", False, "the number of points must be stated where it is public, and nowhere else.")
    claimed = guarantee_from_dict(said)
    if not _agree(guarantee, claimed, said["profile"]):
        return Check("bound", False, f"the parameters give epsilon = {epsilon:.6g}, the claim differs.")
    if claimed.assumptions != guarantee.assumptions or said["in_words"] != str(claimed):
        return Check(
            "bound", False, f"epsilon = {epsilon:.6g} follows, but the sentences are not this schema version's."
        )
    return Check("bound", True, f"epsilon = {epsilon:.6g} follows from the public parameters")


def _agree(derived: Guarantee, claimed: Guarantee, claimed_profile: dict[str, Any]) -> bool:
    """Same promise, numbers to rounding across machines."""
    return (
        derived.relation == claimed.relation
        and derived.theorem == claimed.theorem
        and math.isclose(derived.epsilon(), claimed.epsilon(), rel_tol=1e-12)
        and claimed_profile | {"epsilon": 0} == derived.profile.to_dict() | {"epsilon": 0}
        and len(derived.by_distance) == len(claimed.by_distance)
        and np.allclose(derived.by_distance, claimed.by_distance, rtol=1e-9, atol=0)
    )
