"""Text on points moved by planar Laplace noise: bounds on the moves, and their cost in delta."""

import math
from dataclasses import dataclass

from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints, farthest
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.interpretation import cost_of_bound

MOVED = "Every point was moved at random, by a distance and in a direction of its own."


@dataclass(frozen=True, kw_only=True)
class MovedWords(MechanismWords[MovedPoints, Result]):
    """Text on moved points, which are never called synthetic."""

    moved: bool = True

    def describe(self, by: str | None = None) -> str:
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


POINTS = MovedWords(description=MOVED)
