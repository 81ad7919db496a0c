"""`PoissonRelease`: Poisson patterns of the kernel synthesizer, each paid for by the budget."""

from pathlib import Path
from typing import Any, ClassVar, Self

from dpppsynth.io.writing import geojson_text
from dpppsynth.release.certificate import synthetic
from dpppsynth.release.release import Release
from dpppsynth.spatial.patterns import PointPattern


class PoissonRelease(Release):
    """Result of a release by the kernel synthesizer.

    It holds no intensity: the intensity is the data. Further patterns are a new spend; plan all of them at once, with
    `release(pattern, patterns=m)`.
    """

    has_statistic: ClassVar[bool] = False

    @classmethod
    def opened(cls, plan: Any, saved: Any) -> Self:
        """A saved release: its patterns are what was bought."""
        cert = saved.certificate
        measured = plan.statistic.restore(tuple(saved.patterns()), cert["noise"], seeded=cert["seeded"])
        return cls.of(plan.mechanism, measured, None)

    def bought(self) -> dict[str, str]:
        """Text of the patterns' files, by name."""
        return {synthetic(k): geojson_text(pattern) for k, pattern in enumerate(self.patterns)}

    @property
    def patterns(self) -> list[PointPattern]:
        """The synthetic patterns, as many as were paid for."""
        return list(self.statistic.patterns)

    def save(self, path: str | Path) -> Path:
        """Write the release to a new or empty folder: synthetic patterns, domain, certificate."""
        return self._save(path, self.patterns)
