"""Opening a release on disk: verified first, then read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpppsynth.contract.estimator import AnyEstimator
from dpppsynth.contract.registry import mechanism, stratified
from dpppsynth.contract.result import marks_of
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError, PrivacyCheckError, TooLargeError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.io.reading import parse_synthetic
from dpppsynth.models.recipes import domain_of_release
from dpppsynth.privacy.guarantee import guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.release import certificate
from dpppsynth.release.certificate import DOMAIN, STATISTIC, SYNTHETIC, Published
from dpppsynth.release.offset_file import offset_name, read_offset
from dpppsynth.release.rederive import same_values
from dpppsynth.release.release import Release
from dpppsynth.release.stratified_release import StratifiedRelease
from dpppsynth.release.verify import Verification, verify_opened
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.patterns import PointPattern


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
    """A release that was loaded, and its folder, still open."""

    published: Published
    verification: Verification
    release: Release | StratifiedRelease

    @property
    def patterns(self) -> list[str]:
        """Names of the synthetic patterns that the certificate lists, by their numbers."""
        matches = filter(None, map(SYNTHETIC.fullmatch, self.published.certificate["files"]))
        return [match[0] for match in sorted(matches, key=lambda match: int(match["number"]))]

    def pattern(self, name: str, *, marked: bool = True) -> PointPattern:
        """One of the patterns that the certificate lists, marked by level if there are levels and this is asked for."""
        marks = list(self.release.mark_names) if marked else []
        return _pattern(self.published, name, self.release.domain, marks, marks_of(self.release) if marked else None)


@contextmanager
def open_release(path: str | Path, *, limit: bool = True) -> Iterator[OpenedRelease]:
    """Verify and load a release, and keep its folder open; errors as in `load_release`."""
    release_folder(path)
    with certificate.published(path, limit=limit) as found:
        verification = verify_opened(found)
        yield OpenedRelease(found, verification, load_verified(found, verification))


def release_folder(path: str | Path) -> Path:
    """The folder of a release, named by itself or by its certificate; its contents are not checked.

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
    """Load the release in a folder that `verify_opened` has verified; errors as in `load_release`."""
    failed = [c for c in verification.checks if not c.holds and c.name != "randomness"]
    reasons = " ".join(f"{c.name}: {c.detail}" for c in failed)
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


def _require_restated(release: Release | StratifiedRelease, cert: JsonObject) -> None:
    """Refuse a certificate that states anything which the release it was read into does not."""
    warnings = {None, release.warning, certificate.LARGE_DELTA, certificate.SEEDED if release.seeded else None}
    if not same_values(cert["parameters"], release.parameters()) or cert["warning"] not in warnings:
        msg = "release: its certificate states something else beside its parameters; it is not as it was released."
        raise PrivacyCheckError(msg)


def _load(found: Published) -> Release | StratifiedRelease:
    cert = found.certificate
    name, parameters = cert["mechanism"], cert["parameters"]
    domain = domain_of_release(_json(found, DOMAIN), cert["domain"]["scale_factor"])
    guarantee = guarantee_from_dict(cert["guarantee"]).in_unit(domain.unit)
    if name != STRATA:
        opened = _opened(found, domain, guarantee.relation, name, parameters)
        return replace(opened, entry=cert.get("ledger"))
    by, levels = parameters["by"], parameters["levels"]
    parts = zip(certificate.prefixes(by, levels), levels, parameters["strata"], strict=True)
    releases = {
        str(level): _opened(
            found,
            domain,
            guarantee.relation,
            part["mechanism"],
            part["parameters"],
            start,
            {by: str(level)},
        )
        for start, level, part in parts
    }
    kind = stratified(releases)
    together: StratifiedRelease = instance(
        "release", kind(by, releases, guarantee, cert.get("ledger"), tuple(levels)), StratifiedRelease
    )
    return together


def _opened(
    found: Published,
    domain: Domain,
    relation: Relation,
    name: str,
    parameters: JsonRead,
    start: str = "",
    level: Mapping[str, str] | None = None,
) -> Release:
    """One release; `start` is what its files' names begin with, `level` the mark and value of its points."""
    statistic, estimator = plan_of(found, domain, relation, name, parameters)
    saved = SavedPart(found, domain, start, level or {})
    release = mechanism(name).build_release(statistic.reopened(saved), estimator)
    opened: Release = instance("release", release.reopened(saved), Release)
    return replace(opened, snap=found.certificate.get("snap"))


def plan_of(
    found: Published, domain: Domain, relation: Relation, name: str, parameters: JsonRead
) -> tuple[Statistic, AnyEstimator | None]:
    """Statistic and estimator of a saved release, rebuilt from its certificate.

    Parameters
    ----------
    found : Published
        Folder with the public offset, where there is one.
    domain : Window or LinearNetwork
    relation : Relation
    name : str
        Of the mechanism.
    parameters : mapping
        Public parameters of the release, or of one of its levels.
    """
    described = mechanism(name)
    plan = described.statistic.from_parameters(parameters, relation, domain, mechanism=name)
    if not described.estimators:
        return plan, None
    stated = parameters["estimator"]
    # Offsets of types or times are read for points with marks alone, whose estimators take them.
    offset: Any = None if stated.get("offset") is None else _offset(found).from_source(stated.get("offset_source", ""))
    estimator = described.estimator(stated["kind"]).from_dict(stated, plan, offset)
    return plan.with_offset(offset), estimator


@dataclass(frozen=True)
class SavedPart:
    """The files of a release, or of one level of it, in an open folder.

    Attributes
    ----------
    found : Published
    domain : Window or LinearNetwork
    start : str
        What the names of its files begin with.
    level : mapping
        Mark and value of its points, in a release by levels.
    """

    found: Published
    domain: Domain
    start: str
    level: Mapping[str, str]

    @property
    def certificate(self) -> JsonObject:
        """Certificate of the whole release."""
        return self.found.certificate

    @property
    def statistic(self) -> JsonObject:
        """JSON form of the released numbers."""
        return _json(self.found, self.start + STATISTIC)

    def content(self, name: str) -> bytes | None:
        """A file of this part, if the certificate lists it."""
        listed = self.start + name in self.found.certificate["files"]
        return self.found.content(self.start + name) if listed else None

    def patterns(self) -> Iterator[PointPattern]:
        """Synthetic patterns of this part."""
        names = (name for name in self.found.certificate["files"] if SYNTHETIC.fullmatch(name))
        for name in sorted(names, key=lambda name: (len(name), name)):
            pattern = _pattern(self.found, name, self.domain, list(self.level))
            for by, value in self.level.items():
                pattern = pattern.part((pattern.marks or {})[by].astype(str) == value, synthetic=True)
            yield pattern


def _pattern(
    found: Published, name: str, domain: Domain, marks: list[str], described: Marks | None = None
) -> PointPattern:
    try:
        return parse_synthetic(found.content(name), name, domain, marks=marks, described=described)
    except OSError:
        raise _lacking(name) from None


def _offset(found: Published) -> AnyOffset:
    try:
        return read_offset(found)
    except (InputError, TooLargeError):
        raise
    except (OSError, TypeError, ValueError, RecursionError):
        raise _lacking(offset_name(found.certificate["files"])) from None


def _json(found: Published, name: str) -> JsonObject:
    try:
        return dict(found.document(name))
    except (OSError, TypeError, ValueError, RecursionError):
        raise _lacking(name) from None


def _lacking(name: str) -> InputError:
    return InputError(f"release: {name} is missing or not as released; the folder is not a whole release.")
