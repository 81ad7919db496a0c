"""Text on pair sums."""

from dataclasses import dataclass

from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.pairs.release import PairSumsRelease
from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic


@dataclass(frozen=True, kw_only=True)
class PairWords(MechanismWords[PairSumsStatistic, PairSumsRelease]):
    """Text on pair sums."""

    def remarks(self, release: PairSumsRelease) -> list[str]:
        unit = short_unit(release.domain.unit)
        each = zip(release.radii, release.sums, release.noise_sd, strict=True)
        found = "; ".join(f"within {r:g} {unit} {total:,.1f}, give or take {sd:,.1f}" for r, total, sd in each)
        return [f"Private sums over pairs of near points, a pair the less the farther apart: {found}."]

    def spent(self, mechanism: str) -> str:
        return f"is a {mechanism} release; it holds sums over pairs, and no pattern can be drawn from them"

    def figures(self, release: PairSumsRelease) -> dict[str, float]:
        return {f"pairs_{r:g}": float(total) for r, total in zip(release.radii, release.sums, strict=True)}


def words(whom: str) -> PairWords:
    """Text on sums to which one point, or person, adds a bounded number."""
    return PairWords(
        description="Pairs of points near each other were added up, a pair the less the farther apart its points are. "
        f"What one {whom} could add was capped, and random noise was added to every sum. Only these few numbers were "
        "released, and no synthetic points.",
    )


POINTS, PERSONS = words("point"), words("person")
