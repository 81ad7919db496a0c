"""`PoissonRelease`: Poisson patterns of the kernel synthesizer, each paid for by the budget."""

from dpppsynth.io.writing import geojson_text
from dpppsynth.mechanisms.kernel.statistic import PatternStatistic, PrivatePatterns
from dpppsynth.release.certificate import synthetic
from dpppsynth.release.release import PatternRelease
from dpppsynth.spatial.patterns import PointPattern


class PoissonRelease(PatternRelease):
    """Result of a release by the kernel synthesizer.

    It holds no intensity: the intensity is the data. Further patterns are a new spend; plan all of them at once, with
    `release(pattern, patterns=m)`.
    """

    statistic: PrivatePatterns[PatternStatistic]

    def paid_files(self) -> dict[str, str]:
        """Text of the patterns' files, by name."""
        return {synthetic(k): geojson_text(pattern) for k, pattern in enumerate(self.patterns)}

    @property
    def patterns(self) -> list[PointPattern]:
        return list(self.statistic.patterns)
