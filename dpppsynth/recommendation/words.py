"""Why one mechanism and not the others, in sentences for a custodian; never a number of points."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpppsynth.domains import Domain, Window
from dpppsynth.errors import DpppsynthError
from dpppsynth.recommendation.candidates import CANDIDATES, Candidate
from dpppsynth.recommendation.evidence import DELTA, Evidence
from dpppsynth.recommendation.ranking import MARGIN, Case, Ranked
from dpppsynth.recommendation.result import USELESS, Alternative


def reasons(chosen: Ranked, others: Sequence[Ranked], uniform: float, domain: Domain, case: Case) -> tuple[str, ...]:
    """Why the chosen mechanism, and what the figure rests on."""
    return (
        _verdict(chosen.distance, uniform),
        *_compared(chosen, others),
        *(f"Outside the study: {each}; the nearest row was used." for each in chosen.answer.outside),
        *_approximations(chosen.candidate, domain, case),
    )


def passed_over(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[Alternative]:
    """The mechanisms that the budget admits and the study finds no better."""
    for each in others:
        ratio = each.distance / chosen.distance
        if ratio <= MARGIN:
            why = f"level with it, but {_lacks(each.candidate, chosen.candidate)}"
        else:
            why = f"expected to be {ratio:.2g} times as far from the truth"
        yield Alternative(each.candidate.mechanism, each.distance, why)


def left_out(evidence: Evidence, case: Case) -> Iterator[Alternative]:
    """The mechanisms that take no part, with what they would be expected to do where they only need a delta."""
    for candidate in CANDIDATES:
        needs_delta = candidate.spends_delta and case.budget.delta == 0
        budget = replace(case.budget, delta=DELTA) if needs_delta else case.budget
        expected = case.ask(evidence, candidate, budget).distance
        if not needs_delta and math.isfinite(expected):
            continue
        try:
            candidate.build(budget)
        except DpppsynthError as error:
            yield Alternative(candidate.mechanism, None, f"refused: {error}")
        else:
            known = math.isfinite(expected)
            why = f"needs a delta; the figure is for delta = {DELTA:g}" if needs_delta and known else "not in the study"
            yield Alternative(candidate.mechanism, expected if known else None, why)


def _verdict(expected: float, uniform: float) -> str:
    figures = f"total variation distance {expected:.2g} is expected; a uniform intensity has {uniform:.2g}"
    if expected >= USELESS * uniform:
        return (
            f"No mechanism beats a uniform pattern here: {figures}, without any data. Spend more, protect a smaller "
            "radius, or publish no points."
        )
    return f"It is expected to keep the geography: {figures}."


def _compared(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[str]:
    better = [each for each in others if each.distance < chosen.distance]
    if better:
        best = min(better, key=lambda each: each.distance)
        yield (
            f"{best.candidate.mechanism} is expected to come closer by less than {MARGIN - 1:.0%}, which the study "
            f"cannot tell apart, but {_lacks(best.candidate, chosen.candidate)}."
        )
    elif others:
        yield "No other mechanism that the budget admits is expected to come closer."


def _lacks(other: Candidate, chosen: Candidate) -> str:
    """Why the chosen one goes before another that is level with it."""
    if other.spends_delta and not chosen.spends_delta:
        return "it spends a delta"
    if chosen.has_posterior and not other.has_posterior:
        return "it has no posterior behind it"
    return f"{chosen.what} are preferred"


def _approximations(candidate: Candidate, domain: Domain, case: Case) -> Iterator[str]:
    if candidate.has_posterior:
        yield (
            "The study infers by Laplace approximation (inference='laplace'); by NUTS, the default, distances were no "
            "larger (docs/results/utility_nuts.md)."
        )
    if isinstance(domain, Window) and not domain.is_rectangle:
        yield "The study's windows are squares; this one is compared by the square root of its area."
    k = case.budget.relation.max_points_per_person
    if k > 1:
        yield f"The study has one point per person; a cap of {k} is read as a budget {k} times as small."
    if candidate.spends_delta and not candidate.gaussian and case.budget.delta != DELTA:
        yield f"Outside the study: the kernel was measured at delta = {DELTA:g} alone; that row was used."
