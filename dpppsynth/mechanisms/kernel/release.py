"""`PoissonRelease`: Poisson patterns of the kernel synthesizer, each paid for by the budget."""

from pathlib import Path

from dpppsynth.release.base import Release
from dpppsynth.spatial.patterns import PointPattern


class PoissonRelease(Release):
    """Result of a release by the kernel synthesizer.

    It holds no intensity: the intensity is the data. Further patterns are a new spend; plan all of them at once, with
    `release(pattern, patterns=m)`.
    """

    @property
    def patterns(self) -> list[PointPattern]:
        """The synthetic patterns, as many as were paid for."""
        return list(self.statistic.patterns)

    def save(self, path: str | Path) -> Path:
        """Write the release to a new or empty folder: synthetic patterns, domain, certificate."""
        return self._save(path, self.patterns)
