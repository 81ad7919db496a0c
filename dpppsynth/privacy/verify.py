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
from dpppsynth.errors import PrivacyCheckError
from dpppsynth.models.planar import mesh_from_recipe
from dpppsynth.privacy import bounds, certificate
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.relations import relation_from_dict


def _cells(parameters: Mapping[str, Any], relation: Any, _domain: Window) -> Guarantee:
    return bounds.counts(relation, scale=parameters["scale"])


def _tents(parameters: Mapping[str, Any], relation: Any, domain: Window) -> Guarantee:
    mesh = mesh_from_recipe(parameters["mesh"], domain)
    return bounds.tents(mesh, relation, scale=parameters["scale"], bits=parameters["lattice_bits"])


RECOMPUTE: dict[str, Callable[[Mapping[str, Any], Any, Window], Guarantee]] = {
    "laplace-cells": _cells,
    "laplace-tents": _tents,
    "lgcp-tents": _tents,
}


BASIS = {"laplace-cells": "cells", "laplace-tents": "tents", "lgcp-tents": "tents"}


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
    checks = (
        Check("content", unedited, "unedited" if unedited else "some field was edited after the release."),
        _check_files(cert, folder),
        _check_seed(cert),
        _check_bound(cert, folder),
    )
    return Verification(guarantee_from_dict(cert["guarantee"]), checks)


def _check_files(cert: Mapping[str, Any], folder: Path) -> Check:
    wrong = [
        name
        for name, digest in cert["files"].items()
        if not (folder / name).is_file() or certificate.file_hash(folder / name) != digest
    ]
    if cert["domain"]["file"] not in cert["files"]:
        wrong.append(cert["domain"]["file"])
    others = sorted(f.name for f in folder.iterdir() if f.name not in {*cert["files"], certificate.FILENAME})
    beside = f"; not covered: {', '.join(others)}" if others else ""
    detail = f"missing or changed: {', '.join(wrong)}." if wrong else f"{len(cert['files'])} files as released{beside}"
    return Check("files", not wrong, detail)


def _check_seed(cert: Mapping[str, Any]) -> Check:
    clean = not cert["seeded"] and cert["releasable"]
    return Check("randomness", clean, "secret noise" if clean else certificate.SEEDED)


def _check_bound(cert: Mapping[str, Any], folder: Path) -> Check:
    """Derive the guarantee again and compare it, field by field, with the claim."""
    recompute = RECOMPUTE.get(cert["mechanism"])
    if recompute is None:
        return Check("bound", False, f"mechanism {cert['mechanism']!r} is not known to this version.")
    try:
        domain = Window.from_geojson(json.loads((folder / cert["domain"]["file"]).read_text(encoding="utf-8")))
        derived = recompute(cert["parameters"], relation_from_dict(cert["guarantee"]["relation"]), domain)
    except (OSError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError, ShapelyError):
        return Check("bound", False, "it cannot be derived from the certificate's parameters and domain file.")
    stated = cert["domain"]
    if (domain.fingerprint(), domain.crs, domain.unit) != (stated["fingerprint"], stated["crs"], stated["unit"]):
        return Check("bound", False, "the domain file is not the domain of the certificate.")
    if not math.isclose(derived.epsilon(), cert["parameters"].get("epsilon", math.nan), rel_tol=1e-9):
        return Check("bound", False, f"the scale gives epsilon = {derived.epsilon():.6g}, the stated budget differs.")
    if cert["parameters"].get("basis") != BASIS[cert["mechanism"]]:
        return Check("bound", False, "the stated basis is not that of the mechanism.")
    if (cert["parameters"].get("n") is not None) != derived.relation.n_is_public:
        return Check("bound", False, "the number of points must be stated where it is public, and nowhere else.")
    said = cert["guarantee"]
    if not _agree(derived, guarantee_from_dict(said), said["in_words"], said["profile"]):
        return Check("bound", False, f"the parameters give epsilon = {derived.epsilon():.6g}, the claim differs.")
    return Check("bound", True, f"epsilon = {derived.epsilon():.6g} follows from the public parameters")


def _agree(derived: Guarantee, claimed: Guarantee, in_words: str, claimed_profile: dict[str, Any]) -> bool:
    """Same promise: numbers to rounding across machines, everything else to the letter."""
    return (
        derived.relation == claimed.relation
        and derived.theorem == claimed.theorem
        and set(derived.assumptions) <= set(claimed.assumptions)
        and math.isclose(derived.epsilon(), claimed.epsilon(), rel_tol=1e-12)
        and claimed_profile | {"epsilon": 0} == derived.profile.to_dict() | {"epsilon": 0}
        and len(derived.by_distance) == len(claimed.by_distance)
        and np.allclose(derived.by_distance, claimed.by_distance, rtol=1e-9, atol=0)
        and in_words == str(claimed)
    )
