"""Reasons for a recommendation, in sentences for a custodian; never a number of points."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.evaluation.recommendation.candidates import CANDIDATES, Candidate
from dpppsynth.evaluation.recommendation.evidence import DELTA, Answer, Evidence
from dpppsynth.evaluation.recommendation.ranking import MARGIN, Case, Ranked
from dpppsynth.evaluation.recommendation.recommended import Alternative, figure, is_useful
from dpppsynth.spatial.domains import Domain, Window

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
    """The mechanisms that the budget admits and the study finds no better."""
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
    """The mechanisms that take no part, with what they would be expected to do where they only need a delta."""
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
