"""Candidate mechanisms of a recommendation, and their ranking by expected distance to the truth."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpppsynth.contract import registry
from dpppsynth.contract.synthesizer import AnySynthesizer, Synthesizer
from dpppsynth.core.arguments import instance
from dpppsynth.evaluation.recommendation.evidence import DELTA, Answer, Evidence, Outside, kind_of, shape_of, share_of
from dpppsynth.privacy.profiles import GaussianDP, gaussian_mu
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation
from dpppsynth.spatial.domains import Domain


@dataclass(frozen=True)
class PrivacyTerms:
    """Available budget and the persons it protects."""

    epsilon: float
    delta: float
    relation: CappedRelation

    @property
    def neighbours(self) -> dict[str, Any]:
        """Arguments of a synthesizer that say who is protected, as short as they can be."""
        relation = self.relation
        if isinstance(relation, AlphaNeighbours) and relation == AlphaNeighbours(relation.alpha):
            return {"alpha": relation.alpha}
        return {"relation": relation}


@dataclass(frozen=True)
class Candidate:
    """A mechanism, as certificates call it on a window, with the settings of its synthesizer beside the budget.

    `gaussian` tells whether its noise depends on the budget through `gaussian_mu` alone.
    """

    mechanism: str
    what: str
    settings: Mapping[str, str]
    spends_delta: bool
    has_posterior: bool
    gaussian: bool = False

    def build(self, budget: PrivacyTerms) -> AnySynthesizer:
        """Synthesizer of a budget."""
        delta = {"delta": budget.delta} if self.spends_delta else {}
        given = {"epsilon": budget.epsilon, **delta, **budget.neighbours, **self.settings}
        synthesizer: AnySynthesizer = instance(
            "mechanism", registry.mechanism(self.mechanism).settings(**given), Synthesizer
        )
        return synthesizer

    def epsilon(self, budget: PrivacyTerms) -> float:
        """Equivalent budget of this mechanism at the study's delta and with one point per person.

        Laplace noise has scale `k Delta / epsilon`, so a cap of k points divides epsilon. Gaussian mechanisms feel
        `mu / k` with the mu of (epsilon, delta); it is stated as its epsilon at the study's delta. The kernel
        is treated like the former, which is rough.
        """
        k = budget.relation.max_points_per_person
        if not self.gaussian:
            return budget.epsilon / k
        mu = gaussian_mu(budget.epsilon, budget.delta) / k
        return GaussianDP(mu, at=DELTA).epsilon(DELTA)


# Those of the study whose table comes with the package; others would need a study of their own.
# In the order in which they are preferred where the study cannot tell them apart: a promise without delta and a
# posterior first, then either, then neither.
CANDIDATES = (
    Candidate("lgcp-tents", "noisy tent masses with a posterior behind them", {"mechanism": "tents"}, False, True),
    Candidate("laplace-tents", "noisy tent masses with a field behind them", {"basis": "tents"}, False, True),
    Candidate("laplace-cells", "noisy counts with a field behind them", {"basis": "cells"}, False, True),
    Candidate(
        "lgcp-field", "noisy smooth functionals with a posterior behind them", {"mechanism": "field"}, True, True, True
    ),
    Candidate("lgcp-posterior-draw", "one posterior draw", {"mechanism": "posterior-draw"}, True, False, True),
    Candidate("kernel", "patterns around the points", {}, True, False),
)


# Expected distances within this ratio of the smallest count as equal: the study's own error is about as large, and a
# smaller margin follows its noise (docs/results/recommend.md).
MARGIN = 1.1


@dataclass(frozen=True)
class Case:
    """The public facts of a release that the study is asked about.

    `share` is the privacy radius as a share of the extent, None where points come and go; `shape` the respects in which
    the domain's shape lies outside the study, whatever the mechanism.
    """

    kind: str
    share: float | None
    n: float
    budget: PrivacyTerms
    shape: tuple[Outside, ...] = ()

    @classmethod
    def of(cls, domain: Domain, n: float, budget: PrivacyTerms) -> "Case":
        """The case of a release in a domain."""
        return cls(kind_of(domain), share_of(domain, budget.relation), float(n), budget, shape_of(domain))

    def ask(self, evidence: Evidence, candidate: Candidate, budget: PrivacyTerms | None = None) -> Answer:
        """Expected distance of a candidate, with another budget if one is given."""
        budget = budget or self.budget
        answer = evidence.expect(candidate.mechanism, self.kind, self.share, self.n, candidate.epsilon(budget))
        return Answer(answer.distance, (*self.shape, *answer.outside, *_other_delta(candidate, budget)))


@dataclass(frozen=True)
class Ranked:
    """A candidate with what the study lets expect of it."""

    candidate: Candidate
    answer: Answer

    @property
    def distance(self) -> float:
        return self.answer.distance


def rank(evidence: Evidence, case: Case, margin: float = MARGIN) -> list[Ranked]:
    """Candidates that the budget admits, best first; those that the study has not measured are left out.

    Candidates within the margin of the smallest distance are as good, and among these the order of `CANDIDATES`
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
