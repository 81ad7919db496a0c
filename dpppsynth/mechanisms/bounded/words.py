"""Text on counts with bounded error: the bound, and its cost in delta. Everything follows from public parameters."""

from dataclasses import dataclass

from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.interpretation import cost_of_bound


@dataclass(frozen=True, kw_only=True)
class BoundedWords(MechanismWords[BoundedCounts, Result]):
    """Text on counts with bounded error.

    Examples
    --------
    >>> from dpppsynth import BoundedErrorSynthesizer, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000)
    >>> plan = BoundedErrorSynthesizer(epsilon=1.0, max_error=28).plan(square, n=400).statistic
    >>> CELLS.errors(plan)[0]
    'No count is off by more than 28: larger noise was drawn again.'
    """

    def errors(self, plan: BoundedCounts, by: str | None = None) -> list[str]:
        most = plan.max_error
        holds = (
            "That holds for the noisy counts, also with zero in place of those below it. The intensity and the "
            "synthetic points have errors of their own."
        )
        cap = plan.relation.user_cap
        counts, few = "count", ""
        if cap is not None:
            counts = f"count of the points that were drawn, at most {cap.most} of each person,"
            few = " Points that were left out for the cap are in no count: of all points a count may lack any number."
        said = [f"No {counts} is off by more than {most:,}: larger noise was drawn again.{few}", holds]
        if by is not None:
            said.append(f"Counts that a filter made smoother over the levels of {by} may be off by up to {2 * most:,}.")
        return said

    def costs(self, plan: BoundedCounts, guarantee: Guarantee) -> list[str]:
        return [cost_of_bound(guarantee)]


CELLS = BoundedWords(
    description="The points in every cell of a public grid were counted, and random noise was added to every count, "
    "none of it beyond a public bound. The synthetic points were drawn from an intensity made of the noisy counts "
    "alone.",
    intensity="from the noisy numbers",
)
