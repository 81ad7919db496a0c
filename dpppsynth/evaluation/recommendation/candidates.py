"""Candidate mechanisms of a recommendation, and the study's rows that each is compared by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpppsynth.contract import registry
from dpppsynth.contract.synthesizer import AnySynthesizer, Synthesizer
from dpppsynth.core.arguments import instance
from dpppsynth.evaluation.recommendation.evidence import DELTA
from dpppsynth.privacy.profiles import GaussianDP, gaussian_mu
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation


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
    """A mechanism with its default rules.

    Attributes
    ----------
    mechanism : str
        As certificates call it on a window.
    what : str
        In words.
    settings : mapping
        Of its synthesizer, beside the budget.
    spends_delta, has_posterior : bool
    gaussian : bool
        Whether its noise depends on the budget through `gaussian_mu` alone.
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
        `mu / k` with the mu of (epsilon, delta); it is told as the epsilon that belongs to it at the study's delta. The
        kernel is treated like the former, which is rough.
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
