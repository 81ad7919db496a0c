"""A release on disk: plain files that an auditor, QGIS or the next script can open. No pickle."""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.domains import Window
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.io import write_pattern
from dpppsynth.models.planar import mesh_from_recipe
from dpppsynth.offset import Offset
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy import certificate
from dpppsynth.privacy.relations import relation_from_dict
from dpppsynth.privacy.verify import verify
from dpppsynth.release.base import Release
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.field import FieldModel, Posterior
from dpppsynth.release.projection import Projection
from dpppsynth.statistic import PrivateStatistic, StatisticPlan

DOMAIN, POSTERIOR, OFFSET = "domain.geojson", "posterior.nc", "offset.geojson"


def save(release: Release, folder: Path, patterns: list[PointPattern]) -> Path:
    """Write everything into a temporary folder beside `folder`, then rename it into place."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"path: {folder} exists and is not an empty folder; choose another, releases are never overwritten."
        raise InputError(msg)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        msg = f"path: cannot make the folder {folder.parent}: {err.strerror}; choose another."
        raise InputError(msg) from None
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        work = Path(scratch) / "release"
        work.mkdir()
        _write_parts(release, work, patterns)
        _write_certificate(release, work, {f.name for f in work.iterdir()})
        if folder.exists():
            folder.rmdir()
        work.replace(folder)
    return folder


def append_patterns(folder: Path, release: Release, patterns: list[PointPattern]) -> None:
    """Add synthetic patterns to a saved release, numbered on, and renew the certificate's file list.

    Files that are not the release's own stay out of the certificate.
    """
    known = set(certificate.read(folder)["files"])
    first = 1 + max((int(name[10:-8]) for name in known if re.fullmatch(r"synthetic_\d+\.geojson", name)), default=-1)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        work = Path(scratch) / "release"
        shutil.copytree(folder, work)
        for k, pattern in enumerate(patterns, first):
            known.add(f"synthetic_{k:03d}.geojson")
            write_pattern(pattern, work / f"synthetic_{k:03d}.geojson")
        _write_certificate(release, work, known)
        old = Path(scratch) / "old"
        folder.replace(old)
        try:
            work.replace(folder)
        except OSError:
            old.replace(folder)
            raise


def load_release(path: str | Path) -> CoxRelease:
    """Open a saved release, to sample or infer further from it.

    Raises
    ------
    InputError
        When the folder holds no readable release.
    PrivacyCheckError
        When its certificate does not hold (a seeded run excepted: it loads, marked as not private).
    """
    folder = Path(path)
    folder = folder if folder.is_dir() else folder.parent
    failed = [c for c in verify(folder).checks if not c.holds and c.name != "randomness"]
    if failed:
        msg = f"release: {folder} is not as it was released; " + " ".join(f"{c.name}: {c.detail}" for c in failed)
        raise PrivacyCheckError(msg)
    try:
        return _load(folder, certificate.read(folder))
    except (KeyError, TypeError, AttributeError):
        msg = f"release: {folder} has a certificate but is not a whole release of this version."
        raise InputError(msg) from None


def _load(folder: Path, cert: dict[str, Any]) -> CoxRelease:
    parameters = cert["parameters"]
    domain = Window.from_geojson(_json(folder / DOMAIN))
    plan = StatisticPlan(
        basis=parameters["basis"],
        mesh=mesh_from_recipe(parameters["mesh"], domain),
        relation=relation_from_dict(cert["guarantee"]["relation"]),
        n=parameters["n"],
        expected_n=parameters["expected_n"],
        epsilon=parameters["epsilon"],
    )
    statistic = PrivateStatistic.from_dict(plan, _json(folder / certificate.STATISTIC))
    return CoxRelease(
        cert["mechanism"], statistic, _estimator(parameters["estimator"], domain, folder), _posterior(folder)
    )


def _write_parts(release: Release, work: Path, patterns: list[PointPattern]) -> None:
    _dump(release.domain.to_geojson(), work / DOMAIN)
    if isinstance(release, CoxRelease):
        _write_cox(release, work)
    for k, pattern in enumerate(patterns):
        write_pattern(pattern, work / f"synthetic_{k:03d}.geojson")


def _write_cox(release: CoxRelease, work: Path) -> None:
    _dump(release.statistic.to_dict(), work / certificate.STATISTIC)
    if isinstance(release.estimator, FieldModel) and release.estimator.offset is not None:
        _dump(release.estimator.offset.to_geojson(), work / OFFSET)
    if release.draws is not None:
        release.posterior.to_netcdf(work / POSTERIOR, engine="scipy")


def _write_certificate(release: Release, work: Path, names: set[str]) -> None:
    cert = certificate.build(
        mechanism=release.mechanism,
        parameters=release.parameters(),
        guarantee=release.guarantee,
        domain={
            "file": DOMAIN,
            "fingerprint": release.domain.fingerprint(),
            "crs": release.domain.crs,
            "unit": release.domain.unit,
        },
        noise=release.statistic.noise,
        seeded=release.seeded,
        hashes={name: certificate.file_hash(work / name) for name in sorted(names)},
    )
    certificate.write(cert, work)


def _estimator(data: dict[str, Any], domain: Window, folder: Path) -> Projection | FieldModel | Drawn:
    if data["kind"] == "projection":
        return Projection(data["postprocess"])
    if data["kind"] == "drawn":
        return Drawn()
    return FieldModel(
        mesh=mesh_from_recipe(data["mesh"], domain),
        length_scales=tuple(data["length_scales"]),
        sigma=data["sigma"],
        offset=None if data["offset"] is None else Offset.from_geojson(_json(folder / OFFSET)),
        inference=data["inference"],
        engine=data["engine"],
    )


def _posterior(folder: Path) -> Posterior | None:
    if not (folder / POSTERIOR).exists():
        return None
    import xarray as xr

    with xr.open_dataset(folder / POSTERIOR, engine="scipy") as data:
        fields = np.asarray(data["log_intensity"].values, dtype=np.float32)
        return Posterior(fields, np.asarray(data["length_scale"].values, dtype=float))


def _dump(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        msg = f"release: {path.name} is missing or not JSON; the folder is not a whole release."
        raise InputError(msg) from None
