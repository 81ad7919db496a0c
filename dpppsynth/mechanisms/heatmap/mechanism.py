"""Record of private heat maps, with its words and examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dpppsynth.contract.examples import Example, in_threes, ring, square
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.heatmap.audit import HeatmapAudit
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, Reconstruction
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer

# A map with fewer persons than so many times those that noise makes up may be of noise alone.
DROWNED = 2.0


@dataclass(frozen=True, kw_only=True)
class HeatmapWords(MechanismWords[Statistic, HeatmapRelease]):
    """Text on heat maps."""

    def remarks(self, release: HeatmapRelease) -> list[str]:
        found, noise = round(release.masses.sum()), release.noise_persons
        start = f"The private numbers tell of about {found:,} person{'' if found == 1 else 's'}"
        if noise > found:
            return [f"{start}, where noise alone makes up about {noise:,.0f} on average."]
        made_up = f"up to about {noise:,.0f}" if noise >= 1 else "less than one"
        return [f"{start}, of which {made_up} may be noise."]

    def figures(self, release: HeatmapRelease) -> dict[str, float]:
        return {"persons": float(release.masses.sum()), "noise_persons": release.noise_persons}

    def alarm(self, release: HeatmapRelease) -> str | None:
        if release.masses.sum() >= DROWNED * release.noise_persons:
            return None
        return (
            "Noise alone, without any person, would often give as much: what this heat map shows may be nothing but "
            "noise. What an epsilon can show of so many persons a rehearsal tells beforehand, at no cost."
        )


def examples() -> Iterator[Example]:
    """Examples of all variants, of persons with three points each."""
    build = partial(HeatmapSynthesizer, epsilon=1.0)
    yield Example("two levels", partial(build, shape=(24, 16), measure=8), square(), marks=in_threes)
    practical = partial(build, shape=(16, 16), w=6, variant="practical", fit="least-squares")
    yield Example("practical", practical, square(), marks=in_threes)
    theory = partial(build, variant="theory", shape=(16, 11))
    yield Example("polygon with a hole, theory", theory, ring(), marks=in_threes)


HEATMAP = Mechanism(
    name="heatmap",
    settings=HeatmapSynthesizer,
    statistic=HeatmapStatistic,
    estimators=(Reconstruction,),
    result=HeatmapRelease,
    audit=HeatmapAudit,
    words=HeatmapWords(
        description="Every person counts once, spread evenly over their points. The persons in squares of public "
        "grids, coarse and fine, were counted, and random noise was added to every count. A map was fitted to these "
        "noisy counts alone. The synthetic points were drawn from it, about one for each person.",
        intensity="from the noisy numbers",
        title="Private intensity of persons",
        counts="persons",
    ),
    examples=examples,
)
