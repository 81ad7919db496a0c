"""`dpppsynth recommend`: recommended mechanism for a budget, from public parameters and a simulation study."""

import shlex
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import doubts, show_cautions, show_json, show_line, show_promise, show_table, show_text
from dpppsynth.cli.input_options import DomainOptions
from dpppsynth.cli.method import Method
from dpppsynth.contract.settings import declared_as

if TYPE_CHECKING:
    from dpppsynth.evaluation.recommendation import Recommendation


@dataclass(frozen=True, kw_only=True)
class Promise(o.PromiseOptions):
    """Options of the guarantee, the protected persons and the approximate number of points."""

    n: int | None = declared_as(o.N)
    expected_n: float | None = declared_as(o.EXPECTED)

    def recommend(self, place: DomainOptions) -> "Recommendation":
        """The recommendation for a domain."""
        from dpppsynth.contract.synthesizer import need_size, public_size
        from dpppsynth.evaluation.recommendation import recommend

        given = {"alpha": self.alpha, "relation": self.relation, "user": self.user}
        given |= {"max_points_per_person": self.max_points_per_person}
        # Any mechanism's relation; lgcp asks for one to be given.
        relation: Any = Method({"method": "lgcp", "epsilon": self.epsilon} | given).neighbours()
        size = need_size(public_size(relation, self.n, self.expected_n))
        return recommend(place.domain(), size, self.epsilon, self.delta, relation=relation)

    def words(self, advice: "Recommendation") -> list[str]:
        """Command-line options of the recommendation for `check`, `rehearse` and `synthesize`, but domain and size."""
        # All digits: rounded, they would ask for another promise.
        words = ["--mechanism", advice.mechanism, "--epsilon", f"{self.epsilon!r}"]
        words += ["--delta", f"{self.delta!r}"] if getattr(advice.synthesizer, "delta", 0) else []
        words += ["--alpha", f"{self.alpha!r}"] if self.alpha is not None else ["--relation", f"{self.relation}"]
        # What was measured, where the default of the mechanism is another.
        words += ["--postprocess", estimate] if (estimate := getattr(advice.synthesizer, "postprocess", None)) else []
        words += ["--user", self.user] if self.user is not None else []
        cap = self.max_points_per_person
        return words + (["--max-points-per-person", f"{cap}"] if cap > 1 or self.user is not None else [])

    @property
    def size(self) -> list[str]:
        """Options of the number of points."""
        return ["--n", f"{self.n}"] if self.n is not None else ["--expected-n", f"{self.expected_n!r}"]


def recommend(
    promise: Promise, place: DomainOptions, verbose: o.VerboseOption = False, json: o.JsonOption = False
) -> None:
    """Recommend a mechanism for a budget from public parameters alone; no data file is opened.

    Reads a simulation study that comes with the program: how close every mechanism came to known intensities.
    """
    advice = promise.recommend(place)
    show_cautions(doubts(advice.plan))
    if json:
        show_json(_as_json(advice, promise, place))
    else:
        _show(advice, promise, place, verbose=verbose)


def _next(advice: "Recommendation", promise: Promise, place: DomainOptions) -> str:
    """The command that goes on, complete and quoted for a shell."""
    return shlex.join(["dpppsynth", "rehearse", *promise.words(advice), *place.words(), *promise.size])


def _show(advice: "Recommendation", promise: Promise, place: DomainOptions, *, verbose: bool) -> None:
    from dpppsynth.evaluation.recommendation.recommended import figure, in_words

    expected = figure(advice.expected, advice.reading)
    show_text(
        f"{advice.headline} Expected distance from the truth {expected}, where a uniform pattern has "
        f"{figure(advice.uniform)} (total variation, between 0 and 1)."
    )
    show_text("Rehearse it next, at no cost:")
    show_line(f"{_next(advice, promise, place)}\n")
    for reason in advice.reasons:
        show_text(f"- {reason}")
    unit = advice.plan.domain.unit
    rows = [(name.replace("_", " "), in_words(value)) for name, value in advice.settings.items()]
    show_table(f"Settled by public rules (lengths in {unit})", rows)
    others = [
        (each.mechanism, "" if each.expected is None else figure(each.expected, each.reading), each.why_not)
        for each in advice.alternatives
    ]
    show_table("Not recommended", others, ("mechanism", "expected distance", "why not"))
    start = "The guarantee of what is recommended holds. "
    show_promise(advice.plan.guarantee, advice.plan.domain, verbose=verbose, start=start)
    show_text(f"Evidence: {advice.evidence}.")


def _as_json(advice: "Recommendation", promise: Promise, place: DomainOptions) -> dict[str, Any]:
    return {
        "mechanism": advice.mechanism,
        "options": promise.words(advice),
        "next": _next(advice, promise, place),
        "expected": advice.expected,
        "reading": advice.reading,
        "uniform": advice.uniform,
        "gentle": advice.gentle if isfinite(advice.gentle) else None,
        "gentle_uniform": advice.gentle_uniform if isfinite(advice.gentle_uniform) else None,
        "useful": advice.useful,
        "settings": advice.settings,
        "reasons": advice.reasons,
        "alternatives": [asdict(each) for each in advice.alternatives],
        "guarantee": advice.plan.guarantee.to_dict(),
        "evidence": advice.evidence,
    }
