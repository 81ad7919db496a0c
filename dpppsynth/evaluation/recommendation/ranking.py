"""Ranking of the eligible mechanisms by expected distance to the truth."""

import math
from dataclasses import dataclass

from dpppsynth.evaluation.recommendation.candidates import CANDIDATES, Candidate, PrivacyTerms
from dpppsynth.evaluation.recommendation.evidence import DELTA, Answer, Evidence, Outside, Question

# Expected distances within this ratio of the smallest count as equal: the study's own error is about as large, and a
# smaller margin follows its noise (docs/results/recommend.md).
MARGIN = 1.1


@dataclass(frozen=True)
class Case:
    """The public facts of a release that the study is asked about.

    Attributes
    ----------
    kind : {"window", "network"}
    share : float or None
        Privacy radius as a share of the extent; None where points come and go.
    n : float
    budget : PrivacyTerms
    shape : tuple of Outside
        Respects in which the domain's shape lies outside the study, whatever the mechanism.
    """

    kind: str
    share: float | None
    n: float
    budget: PrivacyTerms
    shape: tuple[Outside, ...] = ()

    def ask(self, evidence: Evidence, candidate: Candidate, budget: PrivacyTerms | None = None) -> Answer:
        """Expected distance of a candidate, with another budget if one is given."""
        budget = budget or self.budget
        question = Question(self.kind, self.share, self.n, candidate.epsilon(budget))
        answer = evidence.expect(candidate.mechanism, question)
        return Answer(answer.distance, (*self.shape, *answer.outside, *_other_delta(candidate, budget)))


@dataclass(frozen=True)
class Ranked:
    """A candidate with what the study lets expect of it."""

    candidate: Candidate
    answer: Answer

    @property
    def distance(self) -> float:
        """Expected total variation distance."""
        return self.answer.distance


def rank(evidence: Evidence, case: Case, margin: float = MARGIN) -> list[Ranked]:
    """Candidates that the budget admits, best first; those that the study has not measured are left out.

    Whoever comes within the margin of the smallest distance is as good, and among these the order of `CANDIDATES`
    decides: no delta spent first, then a posterior.
    """
    found = []
    for candidate in CANDIDATES:
        if not (candidate.spends_delta and case.budget.delta == 0):
            answer = case.ask(evidence, candidate)
            if math.isfinite(answer.distance):
                found.append(Ranked(candidate, answer))
    found.sort(key=lambda each: each.distance)
    level = [each for each in found if each.distance <= margin * found[0].distance]
    level.sort(key=lambda each: CANDIDATES.index(each.candidate))
    return level + found[len(level) :]


def _other_delta(candidate: Candidate, budget: PrivacyTerms) -> tuple[Outside, ...]:
    """Note that the kernel was measured at another delta, which the study cannot convert."""
    if candidate.gaussian or not candidate.spends_delta or budget.delta in (0, DELTA):
        return ()
    return (Outside(f"the kernel was measured at delta = {DELTA:g} alone", worse=budget.delta < DELTA),)
