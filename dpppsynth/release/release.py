"""`Release`: what every result has, whatever the budget bought."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from dpppsynth.core.published_files import plain_text
from dpppsynth.privacy.bounds import Size
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release import certificate, folder_writing
from dpppsynth.release.certificate import STATISTIC
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Base of all results: everything in it is public.

    Attributes
    ----------
    mechanism : str
        For instance "lgcp-tents".
    statistic : PrivateStatistic or PrivatePatterns
        The private result that the budget was spent on.
    entry : str or None
        Name of its authorisation in a ledger.
    """

    mechanism: str
    statistic: Any
    _: KW_ONLY
    entry: str | None = None
    # Whether the budget bought numbers, in a file of their own; otherwise it bought patterns.
    has_statistic: ClassVar[bool] = True

    @classmethod
    def of(cls, mechanism: str, measured: Any, estimator: Any, draws: Any = None, *, entry: str | None = None) -> Self:
        """The release of what was measured, and of the estimator and posterior draws where there are any."""
        return cls(mechanism, measured, entry=entry)

    @classmethod
    def opened(cls, plan: Any, saved: Any) -> Self:
        """A saved release.

        Parameters
        ----------
        plan : PublishedPlan
        saved : SavedPart
        """
        return cls.of(plan.mechanism, plan.statistic.restore(saved.document(STATISTIC)), plan.estimator)

    def __repr__(self) -> str:
        tail = ", seeded: not private" if self.seeded else ""
        spent = f"epsilon={self.guarantee.epsilon():.4g}"
        delta = self.guarantee.profile.at
        spent += f", delta={delta:g}" if delta else ""
        return f"{type(self).__name__}({self.mechanism}, {spent}, {self.domain!r}{tail})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, proved from public parameters before the data were touched."""
        return self.statistic.plan.guarantee

    @property
    def domain(self) -> Domain:
        """Public window."""
        return self.statistic.plan.domain

    @property
    def seeded(self) -> bool:
        """True when the noise was reproducible: then the release is not private."""
        return self.statistic.seeded

    @property
    def noise(self) -> str:
        """Sampler and entropy of the randomness that protects."""
        return self.statistic.noise

    @property
    def warning(self) -> str | None:
        """Reason why it must not be released: a delta of 1/n or more promises nothing."""
        return certificate.large_delta(self.guarantee.profile.at, [self.size])

    @property
    def size(self) -> Size:
        """Number of points where it is public, else None; and the public guess of it, if any."""
        return self.statistic.plan.n, self.statistic.plan.expected_n

    @property
    def plans(self) -> list[Any]:
        """Measurements of all levels, here one."""
        return [self.statistic.plan]

    def parameters(self) -> dict[str, Any]:
        """Public parameters, as they stand on the certificate."""
        return self.statistic.plan.parameters()

    def bought(self) -> dict[str, str]:
        """Text of the files that hold what the budget was spent on, by name: sampling leaves them as they are."""
        return {STATISTIC: plain_text(self.statistic.to_dict())}

    def write(self, folder: Path, start: str = "") -> None:
        """Write the release's own files, beside domain and patterns; their names begin with `start`."""
        if self.has_statistic:
            folder_writing.put(self.bought()[STATISTIC], folder / (start + STATISTIC))

    def stated(self) -> dict[str, Any]:
        """The certificate, saved or not, with the files that were paid for alone."""
        return folder_writing.stated(self)

    def _save(self, path: str | Path, patterns: list[PointPattern]) -> Path:
        return folder_writing.save(self, Path(path), patterns)
