"""Text on heat maps: persons, and the share of them that may be noise. Everything follows from what is released."""

from dataclasses import dataclass

from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease

# A map with fewer persons than so many times those that noise makes up may be of noise alone.
DROWNED = 2.0


@dataclass(frozen=True, kw_only=True)
class HeatmapWords(MechanismWords[Statistic, HeatmapRelease]):
    """Text on heat maps."""

    def remarks(self, release: HeatmapRelease) -> list[str]:
        return [f"The private numbers tell of {persons_in_words(release)}."]

    def figures(self, release: HeatmapRelease) -> dict[str, float]:
        return {"persons": float(release.masses.sum()), "noise_persons": release.noise_persons}

    def alarm(self, release: HeatmapRelease) -> str | None:
        return noise_warning(release)


HEATMAP = HeatmapWords(
    description="Every person counts once, spread evenly over their points. The persons in the squares of a public "
    "grid were counted, coarse squares first; random noise was added to every count, and only the fullest squares were "
    "divided and counted again. A map was fitted to these noisy counts alone. The synthetic points were drawn from it, "
    "about one for each person.",
    intensity="from the noisy numbers",
    title="Private intensity of persons",
    counts="persons",
)


def persons_in_words(release: HeatmapRelease) -> str:
    """Noised number of persons, in words."""
    found, noise = round(release.masses.sum()), release.noise_persons
    start = f"about {found:,} person{'' if found == 1 else 's'}"
    if noise > found:
        return f"{start}, where noise alone makes up about {noise:,.0f} on average"
    made_up = f"up to about {noise:,.0f}" if noise >= 1 else "less than one"
    return f"{start}, of which {made_up} may be noise"


def noise_warning(release: HeatmapRelease) -> str | None:
    """Warning that the map may be noise alone."""
    if release.masses.sum() >= DROWNED * release.noise_persons:
        return None
    return (
        "Noise alone, without any person, would often give as much: what this heat map shows may be nothing but noise. "
        "What an epsilon can show of so many persons a rehearsal tells beforehand, at no cost."
    )
