"""Who takes part, and who is expected to come closest."""

import math
from dataclasses import dataclass

from dpppsynth.recommendation.candidates import CANDIDATES, Budget, Candidate
from dpppsynth.recommendation.evidence import Answer, Evidence, Question

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
    budget : Budget
    """

    kind: str
    share: float | None
    n: float
    budget: Budget

    def ask(self, evidence: Evidence, candidate: Candidate, budget: Budget | None = None) -> Answer:
        """What to expect of a candidate, with another budget if one is given."""
        felt = candidate.epsilon(budget or self.budget)
        return evidence.expect(candidate.mechanism, Question(self.kind, self.share, self.n, felt))


@dataclass(frozen=True)
class Ranked:
    """A candidate with what the study lets expect of it."""

    candidate: Candidate
    answer: Answer

    @property
    def distance(self) -> float:
        """Expected total variation distance."""
        return self.answer.distance


def rank(evidence: Evidence, case: Case) -> list[Ranked]:
    """Candidates that the budget admits, best first; those that the study has not measured are left out.

    Whoever comes within 10 % of the smallest distance is as good, and among these the order of `CANDIDATES` decides: no
    delta spent first, then a posterior.
    """
    found = []
    for candidate in CANDIDATES:
        if not (candidate.spends_delta and case.budget.delta == 0):
            answer = case.ask(evidence, candidate)
            if math.isfinite(answer.distance):
                found.append(Ranked(candidate, answer))
    found.sort(key=lambda each: each.distance)
    level = [each for each in found if each.distance <= MARGIN * found[0].distance]
    level.sort(key=lambda each: CANDIDATES.index(each.candidate))
    return level + found[len(level) :]
