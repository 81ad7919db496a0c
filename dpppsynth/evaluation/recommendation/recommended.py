"""`Recommendation`: the recommended mechanism, its expected distance, its alternatives and the reasons."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import AnySynthesizer
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.core.html_card import html_text
from dpppsynth.evaluation.recommendation.evidence import (
    CANDIDATES,
    DELTA,
    DOCUMENT,
    MARGIN,
    Answer,
    Candidate,
    Case,
    Evidence,
    Ranked,
    Reading,
)
from dpppsynth.spatial.domains import Domain, Window

# Largest useful ratio of an expected distance to a uniform intensity's.
USELESS = 0.95


@dataclass(frozen=True)
class Alternative:
    """A mechanism that is not recommended.

    Attributes
    ----------
    mechanism : str
    expected : float or None
        Total variation distance that the study lets expect; None where it has measured none.
    why_not : str
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`, as in `Recommendation`.
    """

    mechanism: str
    expected: float | None
    why_not: str
    reading: Reading = "about"

    def __str__(self) -> str:
        shown = "" if self.expected is None else f" (expected {figure(self.expected, self.reading)})"
        return f"{self.mechanism}{shown}: {self.why_not}"


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """A mechanism for a budget, from public parameters alone.

    Attributes
    ----------
    synthesizer : Synthesizer
        Ready to use: `synthesizer.release(pattern)`; where the number of points is secret, with `**sizes`.
    plan : ReleasePlan
        ReleasePlan by the synthesizer's rules; its guarantee was checked against the budget.
    sizes : dict
        Public size, as `check` and `plan` of the synthesizer take it: `{"n": ...}`, or `{"expected_n": ...}`.
    settings : dict
        Length scales, mesh, spacing, bandwidth, sigma: see `dpppsynth.evaluation.recommendation.choice`.
    expected : float
        Total variation distance between the true normalised intensity and the released one, between 0 and 1, that the
        study lets expect, to about 10 to 20 %. With a posterior the study took its mean, and released is its median,
        which came a little closer; single posterior draws, `sample(source="draws")`, lie farther off.
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`: an estimate within the study; a lower bound beyond its bad side; unknown, the
        nearest row's, where the release lies beyond good and bad sides.
    uniform : float
        The same distance of a uniform intensity, which needs no data, on the study's intensities.
    alternatives : tuple of Alternative
        The other mechanisms, and why they are not recommended.
    reasons : tuple of str
        Why this one, and what the figure rests on.
    """

    _: KW_ONLY
    synthesizer: AnySynthesizer
    plan: ReleasePlan
    sizes: dict[str, Any]
    settings: dict[str, Any]
    expected: float
    reading: Reading
    uniform: float
    alternatives: tuple[Alternative, ...]
    reasons: tuple[str, ...]
    evidence: str = DOCUMENT

    @property
    def mechanism(self) -> str:
        """Name of the mechanism on certificates."""
        return self.plan.mechanism

    @property
    def useful(self) -> bool | None:
        """Whether a smaller distance than a uniform intensity's is expected; None where it is not known."""
        return is_useful(self.expected, self.reading, self.uniform)

    @property
    def headline(self) -> str:
        """The mechanism and its rating, in a line."""
        heads = {True: "Recommended", False: "Least bad, and of no use", None: "Outside the study, perhaps the best"}
        return f"{heads[self.useful]}: {self.mechanism}."

    def __repr__(self) -> str:
        expected = figure(self.expected, self.reading)
        return f"Recommendation({self.mechanism}, expected {expected}, uniform {figure(self.uniform)})"

    def _repr_html_(self) -> str:
        return html_text("Recommendation", self)

    def __str__(self) -> str:
        unit = self.plan.domain.unit
        lines = [self.headline, f"Guarantee: {self.plan.guarantee}", "Because:"]
        lines += [f"  - {reason}" for reason in self.reasons]
        lines += [f"Settled by public rules (lengths in {unit}):"]
        lines += [f"  {name}: {in_words(value)}" for name, value in self.settings.items()]
        lines += ["Not recommended:", *(f"  {each}" for each in self.alternatives)]
        return "\n".join([*lines, f"Evidence: {self.evidence}"])


def is_useful(expected: float, reading: Reading, uniform: float) -> bool | None:
    """Whether a distance is clearly below that of a uniform intensity; None where the study cannot tell."""
    if reading == "unknown":
        return None
    if expected >= USELESS * uniform:
        return False
    return True if reading == "about" else None


def figure(distance: float, reading: Reading = "about") -> str:
    """A distance in the digits that the study supports, with its qualification.

    Examples
    --------
    >>> figure(0.1234), figure(0.1234, "at least"), figure(0.1234, "unknown")
    ('0.12', 'at least 0.12', 'unknown; nearest row 0.12')
    """
    before = {"about": "", "at least": "at least ", "unknown": "unknown; nearest row "}
    return f"{before[reading]}{distance:.2f}"


def in_words(value: Any) -> str:
    """A setting with four digits."""
    if isinstance(value, tuple):
        return ", ".join(map(in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# Budget times points from which on sums over pairs are larger than their noise.
CLUSTERS_FROM = 100
# Mechanisms whose field is dense on windows with few points.
NUTS_ON_WINDOWS = ("lgcp-tents", "lgcp-field")


def reasons(chosen: Ranked, others: Sequence[Ranked], uniform: float, domain: Domain, case: Case) -> tuple[str, ...]:
    """Reasons for the chosen mechanism, and the basis of the figure."""
    return (
        _verdict(chosen.answer, uniform),
        *_compared(chosen, others),
        *(f"Outside the study: {each}; the nearest row was used." for each in chosen.answer.outside),
        *_approximations(chosen.candidate, domain, case),
        *_clusters(chosen.candidate, case),
        "The study has one repeat on four intensities of each kind: inside it, figures are good to about 10 to 20 %.",
    )


def passed_over(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[Alternative]:
    """Admissible mechanisms that the study finds no better."""
    for each in others:
        ratio = each.distance / chosen.distance
        if ratio <= MARGIN:
            why = f"level with it{_in_nearest_row(chosen, each)}, but {_lacks(each.candidate, chosen.candidate)}"
        elif _in_nearest_row(chosen, each):
            why = f"{ratio:.2g} times as far from the truth{_in_nearest_row(chosen, each)}"
        else:
            why = f"expected to be {ratio:.2g} times as far from the truth"
        yield Alternative(each.candidate.mechanism, each.distance, why + _own(each.answer, chosen), each.answer.reading)


def left_out(evidence: Evidence, case: Case) -> Iterator[Alternative]:
    """Excluded mechanisms, with the expected result of those that lack a delta alone."""
    for candidate in CANDIDATES:
        needs_delta = candidate.spends_delta and case.budget.delta == 0
        budget = replace(case.budget, delta=DELTA) if needs_delta else case.budget
        answer = case.ask(evidence, candidate, budget)
        known = math.isfinite(answer.distance)
        if not needs_delta and known:
            continue
        try:
            candidate.build(budget)
        except DpppsynthError as error:
            yield Alternative(candidate.mechanism, None, f"refused: {error}")
        else:
            why = f"needs a delta; the figure is for delta = {DELTA:g}" if needs_delta and known else "not in the study"
            yield Alternative(candidate.mechanism, answer.distance if known else None, why, answer.reading)


def _verdict(answer: Answer, uniform: float) -> str:
    useful, shown = is_useful(answer.distance, answer.reading, uniform), figure(answer.distance, answer.reading)
    figures = (
        f"total variation distance of the released intensity {shown}; a uniform one has {figure(uniform)} on the "
        "study's intensities"
    )
    if useful is None:
        return f"The study says nothing here; rehearse it before you rely on it: {figures}."
    if not useful:
        return (
            f"No mechanism beats a uniform pattern here: {figures}, without any data. Spend more, protect a smaller "
            "radius, or publish no points."
        )
    return f"It is expected to keep the geography: {figures}. On a flat pattern nothing beats a uniform one."


def _compared(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[str]:
    better = [each for each in others if each.distance < chosen.distance]
    if better:
        best = min(better, key=lambda each: each.distance)
        near = _in_nearest_row(chosen, best)
        yield (
            f"{best.candidate.mechanism} {'came' if near else 'is expected to come'} closer by less than "
            f"{MARGIN - 1:.0%}{near}, which the study cannot tell apart, but "
            f"{_lacks(best.candidate, chosen.candidate)}."
        )
    elif others:
        near = _in_nearest_row(chosen, *others)
        yield f"No other mechanism that the budget admits {'came' if near else 'is expected to come'} closer{near}."


def _in_nearest_row(*compared: Ranked) -> str:
    """Basis of a comparison where one of the distances is not to be read as it is."""
    return "" if all(each.answer.reading == "about" for each in compared) else " in the study's nearest row"


def _own(answer: Answer, chosen: Ranked) -> str:
    """Properties that put an alternative outside the study, but not the recommended mechanism."""
    return "".join(f"; outside the study: {each}" for each in answer.outside if each not in chosen.answer.outside)


def _lacks(other: Candidate, chosen: Candidate) -> str:
    """Reason for the choice between two mechanisms of equal distance."""
    if other.spends_delta and not chosen.spends_delta:
        return "it spends a delta"
    if chosen.has_posterior and not other.has_posterior:
        return "it has no posterior behind it"
    return f"{chosen.what} are preferred"


def _approximations(candidate: Candidate, domain: Domain, case: Case) -> Iterator[str]:
    if candidate.has_posterior:
        yield (
            "The study's figures are those of the released intensity, the posterior's median. Single posterior draws "
            "lie 1.3 to 1.5 times as far off, because they carry the release's uncertainty; sample() draws patterns "
            "from them with source='draws' (on the command line --source draws)."
        )
    if candidate.mechanism in NUTS_ON_WINDOWS and isinstance(domain, Window):
        yield (
            "The study infers by Laplace approximation (inference='laplace'); on windows NUTS is the default below "
            "1000 points. In two rows NUTS came as close (docs/results/utility_nuts.md)."
        )
    if isinstance(domain, Window) and not domain.is_rectangle:
        yield "The study's windows are squares; this one is compared by the square root of its area."
    k = case.budget.relation.max_points_per_person
    if k > 1:
        yield f"The study has one point per person; a cap of {k} is read as a budget {k} times as small."


def _clusters(candidate: Candidate, case: Case) -> Iterator[str]:
    """Advice on a share of the budget for how points huddle, which the study did not measure."""
    if candidate.mechanism != "lgcp-tents":
        return
    if case.n * candidate.epsilon(case.budget) < CLUSTERS_FROM:
        yield "Patterns repeat the intensity alone; for a share for clusters (clusters=0.3) the budget is too small."
        return
    yield (
        "Patterns repeat the intensity alone. Who studies near pairs (K-functions, near-repeats, outbreaks) adds "
        "clusters=0.3 (on the command line --clusters 0.3), which costs the intensity that share of epsilon "
        "(docs/results/clusters.md)."
    )
