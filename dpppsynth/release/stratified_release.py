"""`StratifiedRelease`: one release for each level of a public mark, under one certificate."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.result import Values
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.progress import Progress, ProgressLike, announced, inner_progress
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import JsonObject
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release import certificate, folder_writing
from dpppsynth.release.cox import CoxRelease, both_kinds
from dpppsynth.release.release import PatternRelease, Release, StatisticRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.pattern_sources import synthetic
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class StratifiedRelease:
    """Result of `release_by`: everything in it is public.

    Attributes
    ----------
    by : str
        Name of the mark.
    releases : dict of str to Release
        One for each level.
    guarantee : Guarantee
        Of all of them together.
    entry : str or None
        Name of its authorisation in a ledger.
    levels : tuple of int or str
        The levels as they stand in files, unless given the names of `releases`.
    kept : Path or None
        Folder into which what was paid for was written as soon as it was measured.
    """

    by: str
    releases: dict[str, Release]
    guarantee: Guarantee
    entry: str | None = None
    levels: Values = ()
    kept: Path | None = None
    mechanism: ClassVar[str] = STRATA
    # Of reports, which have no levels, alone.
    shuffled: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels) or tuple(self.releases))

    def _repr_html_(self) -> str:
        rows = [("by", self.by), ("levels", ", ".join(map(str, self.levels))), ("domain", repr(self.domain))]
        seeded = "Seeded: not private." if self.seeded else ""
        return html_card("StratifiedRelease", rows, text=seeded) + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        return f"StratifiedRelease(by={self.by!r}, {', '.join(map(repr, self.releases.values()))})"

    @property
    def mark_names(self) -> tuple[str, ...]:
        """Name of the mark on synthetic patterns."""
        return (self.by,)

    @property
    def parts(self) -> dict[str, Release]:
        """The release of each level."""
        return self.releases

    @property
    def prefixes(self) -> list[str]:
        """Beginnings of the names of the files of each level."""
        return certificate.prefixes(self.by, self.levels)

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self._first.domain

    @property
    def seeded(self) -> bool:
        """True when the randomness of any level could be reproduced: then the release is not private."""
        return any(release.seeded for release in self.releases.values())

    @property
    def noise(self) -> str:
        """Code of the sampler and entropy of the randomness that protects, the same in all levels."""
        return self._first.noise

    @property
    def warning(self) -> str | None:
        """Code of the reason why the release must not be published, if a level or all together must not."""
        releases = self.releases.values()
        own = next((release.warning for release in releases if release.warning), None)
        return own or certificate.large_delta(self.guarantee.profile.at, [release.size for release in releases])

    @property
    def snap(self) -> float | None:
        """Public tolerance within which points were moved onto the domain, the same in all levels."""
        return self._first.snap

    @property
    def plans(self) -> list[Statistic]:
        """Statistics of all levels."""
        return [release.statistic.definition for release in self.releases.values()]

    @property
    def patterns(self) -> list[PointPattern]:
        """The synthetic patterns that were paid for one by one, marked by level."""
        drawn = [_paid(release).patterns for release in self.releases.values()]
        return [self._join(each) for each in zip(*drawn, strict=True)]

    def sample(self, m: int = 1, rng: RngLike = None, **options: Any) -> list[PointPattern]:
        """Draw synthetic patterns, marked by level; parameters as in `CoxRelease.sample`."""
        rng = generator(rng)
        drawn = [_free(release).sample(m, rng, **options) for release in self.releases.values()]
        return [self._join(each) for each in zip(*drawn, strict=True)]

    def finish(self, rng: RngLike, say: Progress) -> Self:
        """The release after inference; failures at one level leave the others unchanged.

        Raises
        ------
        QualityError
            With the release of all levels.
        """
        found: dict[str, Release] = {}
        failed = None
        for k, (level, release) in enumerate(self.releases.items()):
            try:
                found[level] = release.finish(rng, inner_progress(say, f"{self.by} {level}", k, len(self.releases)))
            except QualityError as error:
                found[level], failed = cast(Release, error.release), error
        finished = replace(self, releases=found)
        if failed is not None:
            raise QualityError(str(failed), finished) from None
        return finished

    def infer(self, rng: RngLike = None, *, progress: ProgressLike = None, **changes: Any) -> "StratifiedRelease":
        """Run inference again on every level's private statistic; parameters and errors as in `CoxRelease.infer`."""
        rng = generator(rng)
        again: dict[str, Release] = {}
        with announced(progress) as say:
            for k, (level, release) in enumerate(self.releases.items()):
                inner = inner_progress(say, f"{self.by} {level}", k, len(self.releases))
                again[level] = _free(release).infer(rng, progress=inner, **changes)
        return replace(self, releases=again)

    def parameters(self) -> JsonObject:
        """Public parameters, as they stand on the certificate."""
        strata = [
            {"mechanism": release.mechanism, "parameters": release.parameters()} for release in self.releases.values()
        ]
        return {"by": self.by, "levels": list(self.levels), "strata": strata}

    def save(
        self,
        path: str | Path,
        *,
        patterns: int = 1,
        draws: int = 0,
        rng: RngLike = None,
        source: str = "released",
        fixed_n: bool = False,
        progress: ProgressLike = None,
    ) -> Path:
        """Write the release to a new or empty folder; parameters as in `CoxRelease.save`."""
        if not isinstance(self._first, CoxRelease):
            return folder_writing.save(self, Path(path), self.patterns, progress=progress)
        drawn = both_kinds(self, patterns, draws, rng, source, fixed_n=fixed_n)
        return folder_writing.save(self, Path(path), drawn, progress=progress)

    def keep(self, path: Path) -> Self:
        """Write what was paid for to a new folder; as in `Release.keep`."""
        paid = self.patterns if isinstance(self._first, PatternRelease) else []
        return replace(self, kept=folder_writing.keep(self, path, paid))

    def paid_files(self) -> dict[str, str]:
        """Text of the files that the budget was spent on, by name."""
        from dpppsynth.io.writing import geojson_text

        if not isinstance(self._first, StatisticRelease):
            return {synthetic(k): geojson_text(pattern) for k, pattern in enumerate(self.patterns)}
        return {
            start + name: text
            for start, release in zip(self.prefixes, self.releases.values(), strict=True)
            for name, text in release.paid_files().items()
        }

    def write(self, folder: Path) -> None:
        """Write the files of all levels, each with a beginning of its own."""
        for start, release in zip(self.prefixes, self.releases.values(), strict=True):
            release.write(folder, start)

    def certificate_dict(self) -> JsonObject:
        """The certificate, saved or not, listing the paid files alone."""
        return folder_writing.certificate_dict(self)

    @property
    def _first(self) -> Release:
        return next(iter(self.releases.values()))

    def _join(self, parts: Iterable[PointPattern]) -> PointPattern:
        parts = list(parts)
        mark = np.repeat(np.array(self.levels), [len(part) for part in parts])
        xy = np.concatenate([part.xy for part in parts])
        return PointPattern.synthetic(xy, self.domain, {self.by: mark}).told(parts[0].source)


def _free(release: Release) -> CoxRelease[LatticeStatistic]:
    if not isinstance(release, CoxRelease):
        msg = f"release: patterns of a {release.mechanism} release were paid for one by one; they are in `patterns`."
        raise InputError(msg)
    return release


def _paid(release: Release) -> PatternRelease:
    if not isinstance(release, PatternRelease):
        msg = f"release: a {release.mechanism} release holds no patterns; draw some with `sample(m)`."
        raise InputError(msg)
    return release
