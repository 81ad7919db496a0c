"""Doubt about a plan whose release is expected to lie no nearer to the truth than a uniform pattern."""

from typing import Any

from dpppsynth.evaluation.recommendation.candidates import CANDIDATES, PrivacyTerms
from dpppsynth.evaluation.recommendation.evidence import kind_of, shape_of, share_of, study
from dpppsynth.evaluation.recommendation.ranking import Case
from dpppsynth.evaluation.recommendation.recommended import figure, is_useful
from dpppsynth.privacy.relations import CappedRelation


def no_better_than_uniform(plan: Any) -> str | None:
    """A sentence where the simulation study says so of a plan's mechanism, number of points and budget, else None.

    Parameters
    ----------
    plan : ReleasePlan
        Of a mechanism of the study, under a relation with a cap; of others nothing is known.

    Examples
    --------
    >>> from dpppsynth import LGCPSynthesizer, ReplaceOne, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000)
    >>> made = [LGCPSynthesizer(epsilon=epsilon, relation=ReplaceOne()) for epsilon in (0.1, 2.0)]
    >>> [no_better_than_uniform(each.plan(square, n=50)) is None for each in made]
    [False, True]
    """
    guarantee, domain = plan.guarantee, plan.domain
    n = plan.statistic.expected_n if plan.n is None else plan.n
    candidate = next((each for each in CANDIDATES if each.mechanism == plan.mechanism), None)
    if candidate is None or n is None or not isinstance(guarantee.relation, CappedRelation):
        return None
    terms = PrivacyTerms(guarantee.epsilon(), guarantee.profile.at, guarantee.relation)
    if candidate.gaussian and not terms.delta:
        return None
    evidence = study()
    case = Case(kind_of(domain), share_of(domain, terms.relation), float(n), terms, shape_of(domain))
    answer, uniform = case.ask(evidence, candidate), evidence.uniform[case.kind]
    if is_useful(answer.distance, answer.reading, uniform) is not False:
        return None
    return (
        f"epsilon: with this budget and number of points nothing better than a uniform pattern, which needs no data, "
        f"is to be expected of {plan.mechanism}: {figure(answer.distance, answer.reading)} from the truth, against "
        f"{figure(uniform)}, in the simulation study that `dpppsynth recommend` reads."
    )
