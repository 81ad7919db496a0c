"""Storage of releases: folders of plain files, written and loaded. No pickle."""

import hashlib
import io
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.atomic_files import name_leftovers
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, TooLargeError
from dpppsynth.core.published_files import plain_text
from dpppsynth.io import write_pattern
from dpppsynth.io.reading import parse_synthetic
from dpppsynth.io.writing import geojson_text
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease
from dpppsynth.mechanisms.heatmap.release import Reconstruction
from dpppsynth.mechanisms.kernel.plan import PatternPlan
from dpppsynth.mechanisms.kernel.release import PoissonRelease
from dpppsynth.mechanisms.local.release import Estimator, GridEstimator
from dpppsynth.mechanisms.local.trajectory_release import TraceEstimator
from dpppsynth.mechanisms.planar_laplace.release import PointRelease
from dpppsynth.models.recipes import domain_of_release, mesh_from_recipe
from dpppsynth.privacy.guarantee import guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.release import certificate
from dpppsynth.release import work as effort
from dpppsynth.release.base import DOMAIN, Release, Saveable, state
from dpppsynth.release.build_release import made, together
from dpppsynth.release.certificate import COUNTS, OFFSET, POSTERIOR, SYNTHETIC, Published
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.lgcp_inference import FieldModel, Posterior
from dpppsynth.release.measurements import measurement
from dpppsynth.release.projection import Projection
from dpppsynth.release.rederive import STRATA, prefix
from dpppsynth.release.strata import StratifiedRelease
from dpppsynth.release.verify import Verification, alike, examine
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern

# Contents of a folder that a killed process left behind: nothing is written before it is private.
UNFINISHED = (
    "it holds no more than a release does: parts of one, or in `old` a whole one that was being replaced, which may be "
    "moved back if it is missing."
)


def scratch_prefix(folder: Path) -> str:
    """Prefix of the temporary folders, beside the target, in which a release is written."""
    return f".{folder.name}-"


def save(release: Saveable, folder: Path, patterns: list[PointPattern]) -> Path:
    """Write everything into a temporary folder beside `folder`, then rename it into place."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"path: {folder} exists and is not an empty folder; choose another, releases are never overwritten."
        raise InputError(msg)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        msg = f"path: cannot make the folder {folder.parent}: {err.strerror}; choose another."
        raise InputError(msg) from None
    name_leftovers(folder.parent, scratch_prefix(folder), UNFINISHED)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=scratch_prefix(folder)) as scratch:
        work = Path(scratch) / "release"
        work.mkdir()
        _write_parts(release, work, patterns)
        _write_certificate(release, work, {f.name for f in work.iterdir()})
        if folder.exists():
            folder.rmdir()
        work.replace(folder)
    _warn_of_excess(release)
    return folder


def _warn_of_excess(release: Saveable) -> None:
    """Warn whoever saves a release that is too large to verify by default."""
    excess = effort.excess(release.parameters(), release.domain)
    if excess is not None:
        warnings.warn(f"release: {excess}", InformationWarning, stacklevel=4)


def stated(release: Saveable) -> dict[str, Any]:
    """Ledger record of a release, saved or not: its certificate, with the files that were paid for alone."""
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in _bought(release).items()}
    return state(release, hashes)


def append_patterns(folder: Path, release: Saveable, patterns: list[PointPattern]) -> None:
    """Add synthetic patterns to a saved release, numbered on, and renew the certificate's file list.

    Files that are not the release's own stay out of the certificate.
    """
    known = set(certificate.read(folder)["files"])
    first = 1 + max((int(name[10:-8]) for name in known if SYNTHETIC.fullmatch(name)), default=-1)
    name_leftovers(folder.parent, scratch_prefix(folder), UNFINISHED)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=scratch_prefix(folder)) as scratch:
        work = Path(scratch) / "release"
        shutil.copytree(folder, work, symlinks=True, copy_function=_copy)
        for k, pattern in enumerate(patterns, first):
            known.add(certificate.synthetic(k))
            write_pattern(pattern, work / certificate.synthetic(k))
        _write_certificate(release, work, known)
        old = Path(scratch) / "old"
        folder.replace(old)
        try:
            work.replace(folder)
        except OSError:
            old.replace(folder)
            raise


def _copy(source: str, target: str) -> None:
    """Copy what lies beside a release, links as such; a pipe or a device would keep the copy busy for ever."""
    if not Path(source).is_symlink() and not Path(source).is_file():
        msg = f"release: {source} is no plain file; take it out of the folder."
        raise InputError(msg)
    shutil.copy2(source, target, follow_symlinks=False)


def load_release(path: str | Path, *, limit: bool = True) -> Release | StratifiedRelease:
    """Open a saved release, to sample or infer further from it.

    Parameters
    ----------
    path : str or Path
        Its folder, reached without links, or the certificate in it.
    limit : bool
        As in `verify`: refuse what would take long to verify.

    Raises
    ------
    InputError
        When the folder holds no readable release.
    TooLargeError
        When it is too large to verify.
    PrivacyCheckError
        When its certificate does not hold (a seeded run excepted: it loads, marked as not private).
    """
    with open_release(path, limit=limit) as opened:
        return opened.release


@dataclass(frozen=True)
class OpenedRelease:
    """A release that was loaded, and its folder, still open.

    Attributes
    ----------
    published : Published
    verification : Verification
    release : Release or StratifiedRelease
    """

    published: Published
    verification: Verification
    release: Release | StratifiedRelease

    @property
    def patterns(self) -> list[str]:
        """Names of the synthetic patterns that the certificate lists, by their numbers."""
        names = [name for name in self.published.certificate["files"] if SYNTHETIC.fullmatch(name)]
        return sorted(names, key=lambda name: (len(name), name))

    def pattern(self, name: str, *, marked: bool = True) -> PointPattern:
        """One of them, marked by level where there are levels and it is wanted."""
        marks = [self.release.by] if marked and isinstance(self.release, StratifiedRelease) else []
        return _pattern(self.published, name, self.release.domain, marks)


@contextmanager
def open_release(path: str | Path, *, limit: bool = True) -> Iterator[OpenedRelease]:
    """Verify and load a release, and keep its folder open; errors as in `load_release`."""
    release_folder(path)
    with certificate.published(path, limit=limit) as found:
        verification = examine(found)
        yield OpenedRelease(found, verification, load_verified(found, verification))


def release_folder(path: str | Path) -> Path:
    """The folder of a release, named by itself or by its certificate; whether a release is in it is not looked at.

    Raises
    ------
    InputError
        When `path` is neither a folder nor the name of a certificate.
    """
    found = certificate.find(path)
    if found.name != certificate.FILENAME:
        msg = f"release: {path} is no folder; name the folder of a saved release, or the {certificate.FILENAME} in it."
        raise InputError(msg)
    return found.parent


def load_verified(found: Published, verification: Verification) -> Release | StratifiedRelease:
    """Load the release in a folder that `examine` has just verified; errors as in `load_release`."""
    failed = [c for c in verification.checks if not c.holds and c.name != "randomness"]
    reasons = " ".join(f"{c.name}: {c.detail}" for c in failed)
    if failed and all(c.too_large for c in failed):
        msg = f"release: {found.folder.path} was not verified; {reasons}"
        raise TooLargeError(msg)
    if failed:
        msg = f"release: {found.folder.path} is not as it was released; {reasons}"
        raise PrivacyCheckError(msg)
    try:
        release = _load(found)
        _require_restated(release, found.certificate)
    except (KeyError, TypeError, AttributeError):
        msg = f"release: {found.folder.path} has a certificate but is not a whole release of this version."
        raise InputError(msg) from None
    return release


def _require_restated(release: Release | StratifiedRelease, cert: dict[str, Any]) -> None:
    """Refuse a certificate that states anything which the release it was read into does not."""
    warnings = {None, release.warning, certificate.LARGE_DELTA, certificate.SEEDED if release.seeded else None}
    if not alike(cert["parameters"], release.parameters()) or cert["warning"] not in warnings:
        msg = "release: its certificate states something else beside its parameters; it is not as it was released."
        raise PrivacyCheckError(msg)


def _load(found: Published) -> Release | StratifiedRelease:
    cert = found.certificate
    mechanism, parameters = cert["mechanism"], cert["parameters"]
    guarantee = guarantee_from_dict(cert["guarantee"])
    domain = domain_of_release(_json(found, DOMAIN), cert["domain"].get("scale_factor"))
    saved = _Saved(found, domain, guarantee.relation)
    if mechanism != STRATA:
        return replace(saved.release(mechanism, parameters), entry=cert.get("ledger"))
    parts = zip(parameters["levels"], parameters["strata"], strict=True)
    releases = {
        level: saved.release(part["mechanism"], part["parameters"], prefix(k), {parameters["by"]: level})
        for k, (level, part) in enumerate(parts)
    }
    return together(releases)(parameters["by"], releases, guarantee, cert.get("ledger"))


@dataclass(frozen=True)
class _Saved:
    """A folder, and what all releases in it share."""

    found: Published
    domain: Domain
    relation: Relation

    def release(
        self, mechanism: str, parameters: dict[str, Any], start: str = "", level: dict[str, str] | None = None
    ) -> Release:
        """One release; `start` is what its files' names begin with, `level` the mark and value of its points."""
        plan = measurement(mechanism, parameters, self.relation, self.domain)
        if isinstance(plan, PatternPlan):
            patterns = tuple(self._patterns(level or {}))
            cert = self.found.certificate
            return PoissonRelease(mechanism, plan.restore(patterns, cert["noise"], seeded=cert["seeded"]))
        statistic = plan.restore(_json(self.found, start + certificate.STATISTIC))
        stated = parameters.get("estimator")
        estimator = None if stated is None else estimator_from_dict(stated, self.domain, self.found)
        file = start + POSTERIOR
        draws = _posterior(self.found, file, estimator) if isinstance(estimator, FieldModel) else None
        release: Release = made(mechanism, statistic, estimator, draws)
        return release

    def _patterns(self, level: dict[str, str]) -> Iterator[PointPattern]:
        names = (name for name in self.found.certificate["files"] if SYNTHETIC.fullmatch(name))
        for name in sorted(names, key=lambda name: (len(name), name)):
            pattern = _pattern(self.found, name, self.domain, list(level))
            for by, value in level.items():
                pattern = pattern.part((pattern.marks or {})[by].astype(str) == value, synthetic=True)
            yield pattern


def _write_parts(release: Saveable, work: Path, patterns: list[PointPattern]) -> None:
    _dump(release.domain.to_geojson(), work / DOMAIN)
    parts: list[Any] = list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]
    for k, part in enumerate(parts):
        start = prefix(k) if isinstance(release, StratifiedRelease) else ""
        if isinstance(part, CoxRelease | PointRelease):
            name, text = _statistic(part, start)
            _put(text, work / name)
        if isinstance(part, CoxRelease):
            _write_cox(part, work, start)
        if isinstance(part, BoundedErrorRelease):
            _dump(part.to_geojson(), work / (start + COUNTS))
    for k, pattern in enumerate(patterns):
        write_pattern(pattern, work / certificate.synthetic(k))


def _bought(release: Saveable) -> dict[str, str]:
    """Files that hold what the budget was spent on, by name: sampling and inferring again leave them as they are."""
    parts: list[Any] = list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]
    if isinstance(release, StratifiedRelease | PoissonRelease) and isinstance(parts[0], PoissonRelease):
        return {certificate.synthetic(k): geojson_text(pattern) for k, pattern in enumerate(release.patterns)}
    starts = map(prefix, range(len(parts))) if isinstance(release, StratifiedRelease) else ("",)
    return dict(_statistic(part, start) for part, start in zip(parts, starts, strict=True) if isinstance(part, Release))


def _statistic(release: Release, start: str) -> tuple[str, str]:
    return start + certificate.STATISTIC, plain_text(release.statistic.to_dict())


def _write_cox(release: CoxRelease, work: Path, start: str) -> None:
    offset = getattr(release.estimator, "offset", None)
    if offset is not None:
        _dump(offset.to_geojson(), work / OFFSET)
    if release.draws is not None:
        release.posterior.to_netcdf(work / (start + POSTERIOR), engine="scipy")


def _write_certificate(release: Saveable, work: Path, names: set[str]) -> None:
    cert = state(release, {name: certificate.file_hash(work / name) for name in sorted(names)})
    certificate.write(cert, work)


def estimator_from_dict(
    data: dict[str, Any], domain: Domain, found: Published
) -> Projection | FieldModel | Drawn | Reconstruction | Estimator | GridEstimator | TraceEstimator:
    """The estimator of a release's intensity from its certificate; an offset has a file of its own."""
    if data["kind"] == "projection":
        return Projection(data["postprocess"])
    if data["kind"] == "reconstruction":
        return Reconstruction(data["fit"])
    if data["kind"] == "reports":
        return Estimator(data["settings"])
    if data["kind"] == "grid":
        return GridEstimator(data["post"], data["consistent"])
    if data["kind"] == "trajectories":
        return TraceEstimator()
    offset = None if data["offset"] is None else Offset.from_geojson(_json(found, OFFSET))
    if data["kind"] == "drawn":
        return Drawn(offset)
    return FieldModel(
        mesh=mesh_from_recipe(data["mesh"], domain),
        length_scales=tuple(data["length_scales"]),
        sigma=data["sigma"],
        offset=offset,
        inference=data["inference"],
        engine=data["engine"],
    )


def _posterior(found: Published, name: str, model: FieldModel) -> Posterior | None:
    if name not in found.certificate["files"]:
        return None
    vertices = len(model.mesh.vertices)
    from scipy.io import netcdf_file

    try:
        with netcdf_file(io.BytesIO(found.content(name)), mmap=False) as data:
            fields = np.array(data.variables["log_intensity"].data, dtype=np.float32)
            scales = np.array(data.variables["length_scale"].data, dtype=float)
        whole = fields.shape == (*fields.shape[:2], vertices) and scales.shape == fields.shape[1:2]
        whole = whole and fields.size > 0 and bool(np.isfinite(fields).all() and np.isfinite(scales).all())
    except TooLargeError:
        raise
    except Exception:  # noqa: BLE001 - the reader raises whatever a broken header leads to
        whole = False
    if not whole:
        msg = f"release: {name} is no posterior on the mesh of this release; the folder is not whole."
        raise InputError(msg)
    return Posterior(fields, scales)


def _pattern(found: Published, name: str, domain: Domain, marks: list[str]) -> PointPattern:
    try:
        return parse_synthetic(found.content(name), name, domain, marks=marks)
    except OSError:
        raise _lacking(name) from None


def _dump(data: dict[str, Any], path: Path) -> None:
    _put(plain_text(data), path)


def _put(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _json(found: Published, name: str) -> dict[str, Any]:
    try:
        return dict(found.document(name))
    except (OSError, TypeError, ValueError, RecursionError):
        raise _lacking(name) from None


def _lacking(name: str) -> InputError:
    return InputError(f"release: {name} is missing or not as released; the folder is not a whole release.")
