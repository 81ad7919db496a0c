"""`Release`: base of all releases."""

from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.registry import require_known
from dpppsynth.contract.result import Saved
from dpppsynth.contract.statistic import Measured, Statistic
from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.progress import Progress, ProgressLike
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.rounding import upward
from dpppsynth.core.types import JsonObject
from dpppsynth.privacy.bounds import Size
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.release import certificate, folder_writing
from dpppsynth.release.certificate import STATISTIC
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern

P = TypeVar("P", bound=Statistic)


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Base of all results: everything in it is public.

    Attributes
    ----------
    mechanism : str
        For instance "lgcp-tents".
    statistic : Measured
        What the budget was spent on.
    entry : str or None
        Name of its authorisation in a ledger.
    kept : Path or None
        Folder into which what was paid for was written as soon as it was measured.
    snap : float or None
        Public tolerance within which points were moved onto the domain; None where none was stated.
    """

    mechanism: str
    statistic: Measured[Statistic]
    _: KW_ONLY
    entry: str | None = None
    kept: Path | None = None
    snap: float | None = None

    def __post_init__(self) -> None:
        require_known(self.mechanism)

    @classmethod
    def of(cls, mechanism: str, measured: Any, estimator: Any, *, entry: str | None = None) -> Self:
        """Release of a measured statistic."""
        return cls(mechanism, measured, entry=entry)

    def finish(self, rng: RngLike, say: Progress) -> Self:
        """The release after inference; by default itself."""
        return self

    def reopened(self, saved: Saved) -> Self:
        """The release with inference results from its saved files; by default itself."""
        return self

    def _repr_html_(self) -> str:
        rows = [("mechanism", self.mechanism), ("domain", repr(self.domain))]
        seeded = "Seeded: not private." if self.seeded else ""
        return html_card(type(self).__name__, rows, text=seeded) + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        tail = ", seeded: not private" if self.seeded else ""
        spent = f"epsilon={upward(self.guarantee.epsilon(), 4)}"
        delta = self.guarantee.profile.at
        spent += f", delta={delta:g}" if delta else ""
        return f"{type(self).__name__}({self.mechanism}, {spent}, {self.domain!r}{tail})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, proved from public parameters before the data were touched."""
        return self.statistic.definition.guarantee.in_unit(self.domain.unit)

    @property
    def shuffled(self) -> ShuffledPrivacy | None:
        """Second guarantee for reports mixed by an honest shuffler; None where none was requested."""
        return self.statistic.definition.shuffled

    @property
    def mark_names(self) -> tuple[str, ...]:
        """Names of the marks on synthetic patterns."""
        return self.statistic.definition.mark_names

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self.statistic.definition.domain

    @property
    def seeded(self) -> bool:
        """True when the noise was reproducible: then the release is not private."""
        return self.statistic.seeded

    @property
    def noise(self) -> str:
        """Code of the sampler and entropy of the randomness that protects."""
        return self.statistic.noise

    @property
    def warning(self) -> str | None:
        """Code of the reason why the release must not be published: a delta of 1/n or more promises nothing."""
        return certificate.large_delta(self.guarantee.profile.at, [self.size])

    @property
    def size(self) -> Size:
        """Number of points where it is public, else None; and the public guess of it, if any."""
        return self.statistic.definition.n, self.statistic.definition.expected_n

    @property
    def parts(self) -> "dict[str, Release]":
        """The release of each level of a mark: here the release itself, under an empty name."""
        return {"": self}

    @property
    def prefixes(self) -> list[str]:
        """Beginnings of the names of the files of each level."""
        return [""]

    @property
    def plans(self) -> list[Statistic]:
        """Statistics of all levels."""
        return [part.statistic.definition for part in self.parts.values()]

    def parameters(self) -> JsonObject:
        """Public parameters, as they stand on the certificate."""
        return self.statistic.definition.parameters()

    def paid_files(self) -> dict[str, str]:
        """Text of the files that the budget was spent on, by name; further sampling leaves them unchanged."""
        raise NotImplementedError

    def write(self, folder: Path, start: str = "") -> None:
        """Write the release's own files, beside domain and patterns; their names begin with `start`."""

    def certificate_dict(self) -> JsonObject:
        """The certificate, saved or not, listing the paid files alone."""
        return folder_writing.certificate_dict(self)

    def keep(self, path: Path) -> Self:
        """Write the paid files to a new folder, durably; its name is kept as `kept`.

        `save` with the same path completes it, by this release or by the one that `load_release` opens.
        """
        return self._kept_with(path, [])

    def _kept_with(self, path: Path, patterns: list[PointPattern]) -> Self:
        return replace(self, kept=folder_writing.keep(self, path, patterns))

    def save(self, path: str | Path, *, progress: ProgressLike = None) -> Path:
        """Write the release to a new or empty folder."""
        raise NotImplementedError

    def _save(
        self,
        path: str | Path,
        patterns: list[PointPattern],
        *,
        progress: ProgressLike = None,
    ) -> Path:
        return folder_writing.save(self, Path(path), patterns, progress=progress)


class PatternRelease(Release):
    """Base of releases whose patterns were paid for one by one."""

    @property
    def patterns(self) -> list[PointPattern]:
        """The patterns that were paid for."""
        raise NotImplementedError

    def keep(self, path: Path) -> Self:
        return self._kept_with(path, self.patterns)

    def save(self, path: str | Path, *, progress: ProgressLike = None) -> Path:
        return self._save(path, self.patterns, progress=progress)

    def sample(self, m: int = 1, rng: RngLike = None) -> list[PointPattern]:
        """The first m of the paid patterns; same interface as sampling from an intensity.

        Parameters
        ----------
        m : int
        rng : None, int or Generator
            Changes nothing: these patterns are drawn already.

        Raises
        ------
        InputError
            When fewer were paid for: another one would be a new spend.
        """
        found = self.patterns
        if whole("m", m, 0) > len(found):
            msg = (
                f"m: a {self.mechanism} release has no patterns"
                if not found
                else (
                    f"m: {len(found)} {'was' if len(found) == 1 else 'were'} paid for, and {self.mechanism} draws no "
                    "others for free; another one takes a new budget."
                )
            )
            raise InputError(msg)
        return found[:m]


@dataclass(frozen=True, eq=False, repr=False)
class StatisticRelease(Release, Generic[P]):
    """Base of releases of noised numbers; other attributes as in `Release`.

    Attributes
    ----------
    statistic : PrivateStatistic
        The numbers.
    """

    statistic: PrivateStatistic[P]

    def paid_files(self) -> dict[str, str]:
        return {STATISTIC: plain_text(self.statistic.to_dict())}

    def write(self, folder: Path, start: str = "") -> None:
        folder_writing.put(self.paid_files()[STATISTIC], folder / (start + STATISTIC))
