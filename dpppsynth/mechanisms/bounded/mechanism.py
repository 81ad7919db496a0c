"""Record of counts with bounded error, with its words and examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.mechanisms.bounded.audit import BoundedCountsAudit
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer
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
    >>> CELLS.words.errors(plan)[0]
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


def examples() -> Iterator[Example]:
    """Examples of a given delta and of a given bound."""
    for relation in RELATIONS:
        settings = partial(BoundedErrorSynthesizer, epsilon=1.0, delta=1e-6, relation=relation)
        yield Example(str(relation), settings, square())
    bound = partial(BoundedErrorSynthesizer, epsilon=1.0, max_error=40)
    for domain in (ring(), streets()):
        settings = partial(bound, spacing=200.0, postprocess="keep-n")
        yield Example(f"keep-n, {type(domain).__name__}", settings, domain)
    for domain in (ring(), streets()):
        settings = partial(bound, spacing=200.0, postprocess="field")
        yield Example(f"field, {type(domain).__name__}", settings, domain)
    yield Example("field, levels", partial(bound, spacing=300.0, postprocess="field"), square(), levels=True)
    yield Example("bounded counts", partial(bound, spacing=300.0), square(), levels=True)


CELLS = Mechanism(
    name="bounded-cells",
    settings=BoundedErrorSynthesizer,
    statistic=BoundedCounts,
    estimators=(Projection, MaternInference, StreetInference),
    result=BoundedErrorRelease,
    audit=BoundedCountsAudit,
    words=BoundedWords(
        description="The points in every cell of a public grid were counted, and random noise was added to every "
        "count, none of it beyond a public bound. The synthetic points were drawn from an intensity made of the noisy "
        "counts alone.",
        intensity="from the noisy numbers",
    ),
    examples=examples,
)
