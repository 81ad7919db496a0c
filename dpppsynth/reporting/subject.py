"""`Subject`: a verified saved release, as input of its report."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpppsynth.contract import registry
from dpppsynth.contract.result import MechanismResult
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords, largest_error_plan
from dpppsynth.plotting import Background
from dpppsynth.privacy.catalogue import text
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release import CoxRelease, Release, StratifiedRelease, certificate
from dpppsynth.release.folder import OpenedRelease, load_verified, release_folder
from dpppsynth.release.verify import Verification, verify_opened
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.patterns import PointPattern

# Patterns that are looked at; a release may have thousands. Some always, more only until so many points were read.
ALWAYS, LOOKED_AT, ENOUGH = 4, 20, 50_000
RANDOMNESS = "randomness"


@dataclass(frozen=True, eq=False)
class Subject:
    """A verified release: its certificate as it was read, its first synthetic patterns, and how many there are in all.

    Patterns are marked by level where there are levels. A `background` is drawn under its maps.
    """

    folder: Path
    certificate: Mapping[str, Any]
    verification: Verification
    release: Release | StratifiedRelease
    patterns: tuple[PointPattern, ...]
    count: int
    background: Background | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that the certificate claims."""
        return self.verification.guarantee

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.release.domain

    @property
    def warning(self) -> str | None:
        """Reason why the release must not be published, where its certificate says so."""
        code = self.certificate["warning"]
        return None if code is None else text(code)

    @property
    def levels(self) -> dict[str, Release]:
        """The release of each level of the mark, or the one release under an empty name."""
        return self.release.parts

    @property
    def by(self) -> str | None:
        """Name of the mark whose levels were released one by one."""
        return self.release.by if isinstance(self.release, StratifiedRelease) else None

    @property
    def words(self) -> MechanismWords[Statistic, MechanismResult]:
        """Text on the release's mechanism."""
        return registry.of(self.release).words

    @property
    def largest_error_plan(self) -> Statistic:
        """Statistic of the release; of several levels, that with the largest errors."""
        return largest_error_plan(self.release.plans)

    def intensities(self) -> dict[str, Intensity]:
        """The released intensity of each level; none where only patterns were released, or inference has not run."""
        return {
            level: each.intensity
            for level, each in self.levels.items()
            if isinstance(each, CoxRelease) and each.inferred
        }

    def of_level(self, pattern: PointPattern, level: str) -> PointPattern:
        """The points of one level."""
        marks = (pattern.marks or {}).get(self.by or "")
        return pattern if marks is None else pattern.part(marks.astype(str) == level, synthetic=True)


def open_subject(
    path: str | Path,
    progress: Callable[[str], object] | None = None,
    *,
    background: Background | None = None,
    limit: bool = True,
) -> Subject:
    """Check a release, by its folder or certificate, and open it.

    InputError where there is no readable release; PrivacyCheckError where its certificate does not hold. A certificate
    that itself says that its release must not be published, such as that of a seeded run, is no such fault: the report
    says it as well.
    """
    say = progress or (lambda _step: None)
    folder = release_folder(path)
    say("checking the release")
    with certificate.published(folder, limit=limit) as found:
        verification, cert = verify_opened(found), found.certificate
        admitted = not cert["releasable"] and cert["warning"] is not None
        if any(not check.holds and not (admitted and check.name == RANDOMNESS) for check in verification.checks):
            verification.require()
        opened = OpenedRelease(found, verification, load_verified(found, verification))
        say("reading synthetic patterns")
        patterns = _first_patterns(opened)
    return Subject(folder, cert, verification, opened.release, patterns, len(opened.patterns), background)


def _first_patterns(opened: OpenedRelease) -> tuple[PointPattern, ...]:
    patterns: list[PointPattern] = []
    for name in opened.patterns[:LOOKED_AT]:
        if len(patterns) >= ALWAYS and sum(map(len, patterns)) >= ENOUGH:
            break
        patterns.append(opened.pattern(name))
    return tuple(patterns)


def exact(value: Any) -> str:
    """A value as it stands on the certificate; texts as they are."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
