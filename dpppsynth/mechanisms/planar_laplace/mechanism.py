"""Record of points moved by planar Laplace noise, with its words and examples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, N, Refusal, ring, square
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.planar_laplace.audit import MovedAudit
from dpppsynth.mechanisms.planar_laplace.release import PointRelease
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints, farthest
from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.interpretation import cost_of_bound
from dpppsynth.privacy.relations import AlphaNeighbours


@dataclass(frozen=True, kw_only=True)
class MovedWords(MechanismWords[MovedPoints, Result]):
    """Text on moved points, which are never called synthetic."""

    moved: bool = True

    def describe(self, plan: MovedPoints, by: str | None = None) -> str:
        marks = "Marks are not released." if by is None else f"No mark but {by} is released."
        return f"{self.description} {marks}"

    def errors(self, plan: MovedPoints, by: str | None = None) -> list[str]:
        domain, most = plan.domain, plan.max_error
        if most is None:
            mean = f"{2 / plan.rate:.4g} {short_unit(domain.unit)}"
            far = f"{mean} on average, and some several times as far"
            said = [f"There is no bound on how far a point was moved: {far}."]
        else:
            said = [f"No point was moved by more than {farthest(most, domain)}: longer moves were drawn again."]
            if plan.error_bound > most:
                said.append(
                    "Points that fell outside the area were put into the nearest place inside. With that, none is "
                    f"farther than {farthest(plan.error_bound, domain)} from where it was."
                )
        if not plan.track:
            return [*said, f"The points are in random order{'' if by is None else f' within each level of {by}'}."]
        twice = "" if most is None else f" They may be off by up to {farthest(2 * most, domain)}."
        order = (
            "The points are one person's track, in its order, which is public. Positions that a filter made smoother "
            f"follow from the moved ones alone.{twice}"
        )
        return [*said, order]

    def costs(self, plan: MovedPoints, guarantee: Guarantee) -> list[str]:
        return [] if plan.max_error is None else [cost_of_bound(guarantee)]

    def shown(self, plan: MovedPoints) -> str | None:
        far = f", by {farthest(plan.error_bound, plan.domain)} at most" if math.isfinite(plan.error_bound) else ""
        return (
            f"Every point below stands for a point of the data, moved at random{far}. Where it lies tells no more "
            "about the true place than the guarantee above allows"
        )

    def spent(self, mechanism: str) -> str:
        return (
            "holds points that were moved once; moving them again would be a new spend (synthesize, with a new "
            "budget), and there is no intensity to draw others from"
        )


DISTANCE = r"^relation: needs a AlphaNeighbours, got .*; the bound grows with the distance"


def examples() -> Iterator[Example | Refusal]:
    """Examples with and without a bound on the moves, as points and as a track."""
    build = PlanarLaplaceSynthesizer
    for relation in RELATIONS[:2]:
        yield Example(str(relation), partial(build, 1.0, relation=relation), square())
    yield Example("bounded", partial(build, 1.0, delta=1e-6, alpha=25.0), ring())
    person = AlphaNeighbours(25.0, max_points_per_person=N)
    track = partial(build, 1e3, relation=person, max_error=900.0, track=True)
    yield Example("track", track, square())
    yield Example("moved points", partial(build, 1.0, alpha=25.0, max_error=500.0), square(), levels=True)
    for relation in RELATIONS[2:]:
        yield Refusal(relation, partial(build, 1.0, delta=1e-6, relation=relation), square(), DISTANCE)


POINTS = Mechanism(
    name="planar-laplace",
    settings=PlanarLaplaceSynthesizer,
    statistic=MovedPoints,
    estimators=(),
    result=PointRelease,
    audit=MovedAudit,
    words=MovedWords(description="Every point was moved at random, by a distance and in a direction of its own."),
    examples=examples,
)
