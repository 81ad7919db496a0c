"""Records of pair sums, with a cap for every point and with one for every person; words and examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dpppsynth.contract.audits.additive_audits import PairSumsAudit
from dpppsynth.contract.examples import RELATIONS, Example, in_threes, ring, square, streets
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic, PersonPairSumsStatistic
from dpppsynth.mechanisms.pairs.synthesizer import PairSums, PairSumsRelease


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


def points() -> Iterator[Example]:
    """Examples of all relations, of a window with a hole and of streets."""
    build = partial(PairSums, 1.0, radii=[30.0, 80.0], cap=[10, 20])
    for relation in RELATIONS:
        yield Example(str(relation), partial(build, relation=relation), square())
    yield Example("polygon with a hole", partial(build, alpha=25.0, shares=[0.25, 0.75], steps=8), ring())
    yield Example("streets", partial(build, alpha=25.0), streets())


def persons() -> Iterator[Example]:
    """Examples of persons with three points each, on a window and on streets."""
    build = partial(PairSums, 1.0, radii=[30.0], cap=10, user="user")
    yield Example("persons", build, square(), marks=in_threes)
    yield Example("persons on streets", build, streets(), marks=in_threes)


_sums = partial(Mechanism, settings=PairSums, estimators=(), result=PairSumsRelease)
POINTS = _sums(
    name="pair-sums",
    statistic=PairSumsStatistic,
    audit=PairSumsAudit,
    words=words("point"),
    examples=points,
)
PERSONS = _sums(
    name="pair-sums-persons",
    statistic=PersonPairSumsStatistic,
    audit=PairSumsAudit,
    words=words("person"),
    examples=persons,
)
