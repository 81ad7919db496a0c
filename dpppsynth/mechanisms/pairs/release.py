"""`PairSumsRelease`: noised capped sums over pairs of near points."""

from dataclasses import dataclass
from pathlib import Path

from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic
from dpppsynth.release import folder_writing
from dpppsynth.release.certificate import PAIR_SUMS
from dpppsynth.release.release import PatternRelease, StatisticRelease
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class PairSumsRelease(StatisticRelease[PairSumsStatistic], PatternRelease):
    """Result of adding up pairs: everything in it is public. It holds numbers and no patterns."""

    @property
    def radii(self) -> tuple[float, ...]:
        """(L,) radii, in the domain's unit."""
        return self.statistic.definition.radii

    @property
    def caps(self) -> tuple[int, ...]:
        """(L,) caps on what one point, or person, adds to a sum."""
        return self.statistic.definition.caps

    @property
    def sums(self) -> Floats:
        """(L,) noised sums of `1 - distance / radius` over pairs, in pairs; some may be negative."""
        return self.statistic.masses

    @property
    def noise_sd(self) -> tuple[float, ...]:
        """(L,) standard deviations of their noise."""
        return self.statistic.definition.pairs.noise_sd

    @property
    def patterns(self) -> list[PointPattern]:
        """None: no pattern was paid for."""
        return []

    def table(self) -> str:
        """Radii, caps, sums and standard deviations of their noise, as CSV."""
        return self.statistic.definition.table(self.statistic.lattice)

    def write(self, folder: Path, start: str = "") -> None:
        super().write(folder, start)
        folder_writing.put(self.table(), folder / (start + PAIR_SUMS))
