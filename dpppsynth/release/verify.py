"""Verification of a certificate without the data: its bound, its hash and its files."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from shapely.errors import ShapelyError

from dpppsynth.contract.estimator import COVARIATES, OFFSETS
from dpppsynth.contract.statistic import require
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.crs import crs_member
from dpppsynth.core.errors import InputError, PrivacyCheckError, TooLargeError
from dpppsynth.core.published_files import REMEDY, strict_json
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.workers import in_time
from dpppsynth.io.reading import parse_synthetic
from dpppsynth.models.recipes import domain_of_release
from dpppsynth.privacy.catalogue import same_code, text
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict, require_scale
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.relations import relation_from_dict
from dpppsynth.privacy.shuffling import ShuffledPrivacy, shuffled_from_dict
from dpppsynth.privacy.truncated.error_bounds import LARGEST
from dpppsynth.release import certificate
from dpppsynth.release.offset_file import offset_name, read_offset
from dpppsynth.release.rederive import RederivedRelease, has_form, knows, rederive, same_values, spends, stated_budget
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.pattern_sources import OTHER_SOURCES, synthetic

# Share by which an epsilon that was rounded up to six digits may be below the one found on another machine.
LAST_DIGIT = 2e-5
# Seconds that a release of unknown origin may take.
SECONDS = 60.0
# Errors of reading and using JSON of unknown content.
UNUSABLE = (OSError, LookupError, AttributeError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Check:
    """One item of a verification."""

    name: str
    holds: bool
    detail: str

    def to_dict(self) -> JsonObject:
        """JSON form."""
        return asdict(self)


@dataclass(frozen=True)
class Verification:
    """Outcome of `verify`.

    Attributes
    ----------
    guarantee : Guarantee
        Claim of the certificate.
    checks : tuple of Check
    shuffled : ShuffledPrivacy or None
        Second statement of the certificate, on an honest shuffler of reports.
    domain : Window or LinearNetwork or None
        Public domain; None where nothing could be derived.
    snap : float or None
        Tolerance within which points were moved onto the domain, a public choice that the certificate states.
    """

    guarantee: Guarantee
    checks: tuple[Check, ...]
    shuffled: ShuffledPrivacy | None = None
    domain: Domain | None = None
    snap: float | None = None

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def require(self) -> None:
        """Raise `PrivacyCheckError` with the checks that do not hold."""
        failed = [f"{c.name}: {c.detail}" for c in self.checks if not c.holds]
        if failed:
            msg = "certificate does not hold. " + " ".join(failed)
            raise PrivacyCheckError(msg)


def verify(path: str | Path, *, limit: bool = True) -> Verification:
    """Check a certificate file (or the one in a folder) and the files beside it.

    Only plain files are opened, from a folder that is held open and reached without links. What is parsed are the very
    bytes whose hash the certificate states.

    Parameters
    ----------
    path : str or Path
    limit : bool
        Take a minute at most, and no very large files: the origin is unknown. False takes every release as large as it
        is.

    Raises
    ------
    InputError
        When there is no readable certificate at `path`. A certificate that is readable but wrong is reported in the
        result instead.
    TooLargeError
        When a file is larger than most releases need, or more time than a minute.
    """
    with certificate.published(path, limit=limit) as found:
        return verify_opened(found)


def verify_opened(found: certificate.Published) -> Verification:
    """Verify an open folder, from which the release may then be read."""
    if not found.folder.limit:
        return _verified(found)
    try:
        return in_time(partial(_verified, found), SECONDS)
    except TimeoutError:
        msg = f"certificate: {found.path} takes more than {SECONDS:g} seconds; it is {REMEDY}."
        raise TooLargeError(msg) from None


def _verified(found: certificate.Published) -> Verification:
    cert = found.certificate
    try:
        claimed = guarantee_from_dict(cert["guarantee"])
        second = None if "shuffled" not in cert else shuffled_from_dict(cert["shuffled"])
    except (ValueError, ArithmeticError) as err:
        msg = f"certificate: {found.path} claims what is no guarantee: {err}"
        raise InputError(msg) from None
    derived = _derive(found)
    checks = (
        _check_content(cert, derived),
        _check_files(found, derived),
        _check_seed(cert),
        _check_statistic(found, derived),
        _check_bound(cert, derived),
        *_check_shuffled(cert, derived),
    )
    domain = derived.domain if isinstance(derived, RederivedRelease) else None
    claimed = claimed if domain is None else claimed.in_unit(domain.unit)
    return Verification(claimed, checks, second, domain, cert.get("snap"))


def _check_content(cert: JsonRead, derived: RederivedRelease | str) -> Check:
    """Check that nothing was edited, and that the description of randomness is one of those known."""
    unedited = certificate.content_hash(cert) == cert["content_hash"]
    if isinstance(derived, RederivedRelease) and cert["noise"] != derived.statistic.noise_name(seeded=cert["seeded"]):
        return Check("content", False, "the stated randomness is not this mechanism's.")
    if cert["releasable"] is not (not cert["seeded"] and cert["warning"] is None):
        return Check("content", False, "whether it may be released does not follow from seed and warning.")
    return Check("content", unedited, "unedited" if unedited else "some field was edited after the release.")


def _check_files(found: certificate.Published, derived: RederivedRelease | str) -> Check:
    """Check that all listed files are there unchanged and belong to such a release."""
    listed, domain = found.certificate["files"], found.certificate["domain"]["file"]
    wrong = [name for name, digest in listed.items() if not _unchanged(found, name, digest)]
    if isinstance(derived, RederivedRelease):
        known = {domain, *derived.released, *derived.others}
        if derived.statistic.has_patterns:
            known |= {*_numbered(listed)}
        # An offset is in one of its files.
        known -= OFFSETS - {offset_name(listed)}
        # What a release is opened from must be listed, and all of it in a complete one: where a run was stopped before,
        # files may stand beside that nobody reads.
        complete = any(certificate.SYNTHETIC.fullmatch(f) or certificate.POSTERIORS.fullmatch(f) for f in listed)
        present = [name for name in derived.others if complete and found.folder.has(name)]
        offset = [offset_name(listed)] if derived.offset else []
        stated = [name for name in derived.others if name.endswith(COVARIATES)]
        wrong += [name for name in {domain, *derived.released, *offset, *stated, *present} if name not in listed]
        if derived.offset and not wrong and _offset(found) != derived.offset:
            wrong.append(offset_name(listed))
        strange = [name for name in listed if name not in known]
        if strange:
            return Check("files", False, f"not part of such a release: {', '.join(strange)}.")
    others = [name for name in found.folder.names() if name not in {*listed, certificate.FILENAME}]
    beside = f"; not covered: {', '.join(others)}" if others else ""
    detail = f"missing or changed: {', '.join(wrong)}." if wrong else f"{len(listed)} files as released{beside}"
    return Check("files", not wrong, detail)


def _numbered(listed: Iterable[str]) -> list[str]:
    """Names of as many synthetic patterns as are listed: their numbers go from 0 on, and carry nothing."""
    listed = list(listed)
    sources = (None, *OTHER_SOURCES) if any(map(certificate.POSTERIORS.fullmatch, listed)) else (None,)
    count = sum(map(bool, map(certificate.SYNTHETIC.fullmatch, listed)))
    matched = [match for match in map(certificate.SYNTHETIC.fullmatch, listed) if match]
    if len({match["number"] for match in matched}) < count:
        return []
    return [synthetic(k, source) for k in range(count) for source in sources]


def _unchanged(found: certificate.Published, name: str, digest: str) -> bool:
    """Whether it is a plain file of the folder with this hash."""
    try:
        return found.folder.digest(name) == digest
    except OSError:
        return False


def _offset(found: certificate.Published) -> str | None:
    """Fingerprint of the offset in the folder, if it is one and nothing else is there."""
    try:
        return read_offset(found).fingerprint
    except (*UNUSABLE, ShapelyError):
        return None


def _check_seed(cert: JsonRead) -> Check:
    if cert["seeded"]:
        return Check("randomness", False, text(certificate.SEEDED))
    if not cert["releasable"] or cert["warning"] is not None:
        return Check("randomness", False, "this certificate says that it must not be released.")
    empty = _promises_nothing(cert["parameters"])
    if empty is not None:
        return Check("randomness", False, text(empty))
    return Check("randomness", True, "secret noise")


def _promises_nothing(parameters: JsonRead) -> str | None:
    """Code of the warning that the joint delta of all levels promises nothing, if these are parameters of a release."""
    if not certificate.parameters_make_sense(parameters):
        return None
    parts = [part["parameters"] for part in parameters.get("strata", [])] or [parameters]
    delta = max(stated_budget(part)[1] for part in parts)
    return certificate.large_delta(delta, [(part["n"], part["expected_n"]) for part in parts])


def _check_statistic(found: certificate.Published, derived: RederivedRelease | str) -> Check:
    """Check that the released statistic has the size and the noise that the certificate states."""
    cert = found.certificate
    # Where nothing can be derived, the bound does not hold; what stands in the usual file is looked at all the same.
    plans = derived.released if isinstance(derived, RederivedRelease) else {certificate.STATISTIC: None}
    expected = {name: -1 if plan is None else plan.size for name, plan in plans.items()}
    released, numbers = {}, 0
    for name, count in expected.items():
        try:
            statistic = found.document(name)
            same = statistic["noise"] == cert["noise"] and statistic["seeded"] is cert["seeded"]
            same = same and statistic.keys() == {"lattice", "noise", "seeded"}
            whole = all(type(value) is int and abs(value) < LARGEST for value in statistic["lattice"])
            fits = count in (-1, len(statistic["lattice"]))
            numbers += len(statistic["lattice"])
            plan = plans[name]
            if whole and fits and plan is not None:
                released[name] = np.array(statistic["lattice"], dtype=np.int64)
                plan.validate_released(released[name])
        except UNUSABLE:
            return Check("statistic", False, f"{name} is missing or not a private statistic.")
        if not (same and whole and fits):
            return Check("statistic", False, f"{name} is not the one this certificate speaks of.")
    paid = derived.statistic.paid_patterns if isinstance(derived, RederivedRelease) else 0
    if paid and len(cert["files"]) != paid + 1 + len(expected):
        beside = "the domain and what was drawn" if expected else "the domain"
        return Check("statistic", False, f"{paid} patterns were paid for; beside {beside} no other file belongs here.")
    wrong = _misplaced(found, derived, released) if isinstance(derived, RederivedRelease) else None
    if wrong is not None:
        return Check("statistic", False, wrong)
    return Check("statistic", True, f"{numbers} released numbers" if expected else "none beside the patterns")


def check_claim(cert: JsonRead, domain: Domain) -> Check:
    """Check that the guarantee that a certificate claims follows from its parameters, on a given domain."""
    if not knows(cert["mechanism"]) or not has_form(cert["mechanism"], cert["parameters"]):
        return Check("bound", False, "its parameters are not those of a release")
    relation = relation_from_dict(cert["guarantee"]["relation"])
    try:
        derived = rederive(cert["mechanism"], cert["parameters"], relation, domain)
    except (InputError, PrivacyCheckError) as err:
        return Check("bound", False, str(err))
    return _check_bound(cert, derived)


def _misplaced(found: certificate.Published, derived: RederivedRelease, released: Mapping[str, Ints]) -> str | None:
    """First file that does not follow from others, or does not have its required form, with the reason."""
    listed = found.certificate["files"]
    for file, statistics, follows in derived.following:
        try:
            if file in listed:
                numbers = [np.empty(0, dtype=np.int64), *(released[name] for name in statistics)]
                follows(found.content(file), np.concatenate(numbers))
        except (*UNUSABLE, ArithmeticError, ShapelyError):
            return f"{file} does not follow from what was drawn."
    for name in filter(certificate.SYNTHETIC.fullmatch, listed):
        try:
            _require_pattern(found.content(name), name, derived)
        except UNUSABLE:
            return f"{name} is no synthetic pattern, or holds something else beside it."
    return None


def _require_pattern(content: bytes, name: str, derived: RederivedRelease) -> None:
    """Refuse what is no pattern in the domain, with the marks of such a release and nothing beside them."""
    domain, marks = cast(Domain, derived.domain), {*derived.mark_names}
    document = strict_json(content)
    closed = document.keys() == {"type", "crs", "features"} and document["crs"] == crs_member(domain.crs)
    closed = closed and all(
        each.keys() == {"type", "properties", "geometry"}
        and each["properties"].keys() == marks
        and each["geometry"].keys() == {"type", "coordinates"}
        and len(each["geometry"]["coordinates"]) == 2
        for each in document["features"]
    )
    require(closed, "a pattern is a collection of points with their marks")
    described = derived.statistic.described
    pattern = parse_synthetic(content, name, domain, marks=derived.mark_names, described=described)
    if len(pattern):
        derived.require_marks(pattern.marks or {})


def _derive(found: certificate.Published) -> RederivedRelease | str:
    """The guarantee that follows from the parameters and the domain file, or why none does."""
    cert = found.certificate
    if not knows(cert["mechanism"]):
        return f"mechanism {cert['mechanism']!r} is not known to this version."
    if not has_form(cert["mechanism"], cert["parameters"]):
        return "its parameters are not those of a release."
    stated = cert["domain"]
    try:
        written = found.document(stated["file"])
        domain = domain_of_release(written, stated["scale_factor"])
        require_scale(domain)
        derived = rederive(
            cert["mechanism"], cert["parameters"], relation_from_dict(cert["guarantee"]["relation"]), domain
        )
    except PrivacyCheckError as err:
        return f"its parameters are not those of a release that holds: {err}"
    except InputError as err:
        return f"it cannot be derived from the certificate's parameters and domain file: {err}"
    except (*UNUSABLE, ArithmeticError, ShapelyError, MemoryError):
        return "it cannot be derived from the certificate's parameters and domain file."
    if canonical_json(written) != canonical_json(domain.to_geojson()):
        return "the domain file holds something else beside the domain."
    if (domain.fingerprint(), domain.crs, domain.unit) != (stated["fingerprint"], stated["crs"], stated["unit"]):
        return "the domain file is not the domain of the certificate."
    return replace(derived, domain=domain)


def _check_bound(cert: JsonRead, derived: RederivedRelease | str) -> Check:
    """Compare the derived guarantee, field by field, with the claim."""
    if isinstance(derived, str):
        return Check("bound", False, derived)
    guarantee, said = derived.guarantee, cert["guarantee"]
    epsilon = guarantee.epsilon()
    if cert["mechanism"] != STRATA and not spends(guarantee, cert["parameters"]):
        return Check("bound", False, f"the parameters give epsilon = {epsilon:.6g}, the stated budget differs.")
    claimed = guarantee_from_dict(said)
    if not _agree(guarantee, claimed, said["profile"]):
        return Check("bound", False, f"the parameters give epsilon = {epsilon:.6g}, the claim differs.")
    if not same_code(claimed.assumptions, guarantee.assumptions):
        return Check("bound", False, f"epsilon = {epsilon:.6g} follows, but on other assumptions than it states.")
    return Check("bound", True, f"epsilon = {epsilon:.6g} follows from the public parameters")


def _check_shuffled(cert: JsonRead, derived: RederivedRelease | str) -> tuple[Check, ...]:
    """Compare the second statement that follows from the parameters with that on the certificate, if there is any."""
    said, own = cert.get("shuffled"), derived.shuffled if isinstance(derived, RederivedRelease) else None
    if said is None and own is None:
        return ()
    if own is None or said is None or not _follows(said, own):
        return (Check("shuffled", False, "what it states on shuffled reports does not follow from its parameters."),)
    detail = f"epsilon = {said['epsilon']:g} at delta = {own.delta:g} follows for {own.reports} shuffled reports"
    return (Check("shuffled", True, detail),)


def _follows(said: JsonRead, own: ShuffledPrivacy) -> bool:
    """Whether a statement on a certificate, with its words, follows from the parameters behind another."""
    claimed = shuffled_from_dict(said)
    return said == claimed.to_dict() and own.proves(claimed)


def _agree(derived: Guarantee, claimed: Guarantee, claimed_profile: JsonObject) -> bool:
    """Whether two guarantees agree, numbers to rounding across machines."""
    return (
        derived.relation == claimed.relation
        and same_code(claimed.theorem, derived.theorem)
        and len(derived.by_distance) == len(claimed.by_distance)
        and (_tables_agree if isinstance(derived.profile, DiscreteLosses) else _numbers_agree)(
            derived, claimed, claimed_profile
        )
    )


def _numbers_agree(derived: Guarantee, claimed: Guarantee, claimed_profile: JsonObject) -> bool:
    return same_values(claimed_profile, derived.profile.to_dict()) and np.allclose(
        derived.by_distance, claimed.by_distance, rtol=1e-9, atol=0
    )


def _tables_agree(derived: Guarantee, claimed: Guarantee, claimed_profile: JsonObject) -> bool:
    """Whether two tables agree, but for the last of six digits, which may differ by machine."""
    ours, theirs = derived.profile, claimed.profile
    if not (isinstance(ours, DiscreteLosses) and isinstance(theirs, DiscreteLosses)):
        return False
    return (
        # All fields of the claim follow from its own rows.
        same_values(claimed_profile, theirs.to_dict())
        and ours.at == theirs.at
        and theirs.no_better_than(ours, LAST_DIGIT)
        # A weaker claim is true, but could carry hidden data in its numbers.
        and ours.no_better_than(theirs, LAST_DIGIT)
        and len(ours.rows) == len(theirs.rows)
        and all(
            math.isclose(said, distance, rel_tol=1e-9)
            and (1 - LAST_DIGIT) * epsilon <= loss <= (1 + LAST_DIGIT) * epsilon
            for (distance, epsilon), (said, loss) in zip(derived.by_distance, claimed.by_distance, strict=True)
        )
    )
