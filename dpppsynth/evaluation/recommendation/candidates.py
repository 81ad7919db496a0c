"""Candidate mechanisms of a recommendation, and the study's rows that each is compared by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpppsynth.contract.synthesizer import Synthesizer
from dpppsynth.evaluation.recommendation.evidence import DELTA
from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer
from dpppsynth.mechanisms.laplace.synthesizer import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.privacy.profiles import GaussianDP, gaussian_mu
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation


@dataclass(frozen=True)
class Budget:
    """Available budget and the persons it protects.

    Attributes
    ----------
    epsilon, delta : float
    relation : CappedRelation
    """

    epsilon: float
    delta: float
    relation: CappedRelation

    @property
    def neighbours(self) -> dict[str, Any]:
        """Arguments of a synthesizer that say who is protected, as short as they can be."""
        relation = self.relation
        if isinstance(relation, AlphaNeighbours) and relation.max_points_per_person == 1:
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
    build : callable
        Synthesizer from a `Budget`.
    spends_delta, has_posterior : bool
    gaussian : bool
        Whether its noise depends on the budget through `gaussian_mu` alone.
    """

    mechanism: str
    what: str
    build: Callable[[Budget], Synthesizer]
    spends_delta: bool
    has_posterior: bool
    gaussian: bool = False

    def epsilon(self, budget: Budget) -> float:
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


def _lgcp(mechanism: str) -> Callable[[Budget], Synthesizer]:
    def build(budget: Budget) -> Synthesizer:
        delta = 0.0 if mechanism == "tents" else budget.delta
        return LGCPSynthesizer(budget.epsilon, **budget.neighbours, mechanism=mechanism, delta=delta)

    return build


def _laplace(basis: str) -> Callable[[Budget], Synthesizer]:
    return lambda budget: LaplaceSynthesizer(budget.epsilon, **budget.neighbours, basis=basis)


def _kernel(budget: Budget) -> Synthesizer:
    return KernelSynthesizer(budget.epsilon, budget.delta, **budget.neighbours)


# In the order in which they are preferred where the study cannot tell them apart: a promise without delta and a
# posterior first, then either, then neither.
CANDIDATES = (
    Candidate("lgcp-tents", "noisy tent masses with a posterior behind them", _lgcp("tents"), False, True),
    Candidate("laplace-tents", "noisy tent masses alone", _laplace("tents"), False, False),
    Candidate("laplace-cells", "noisy counts alone", _laplace("cells"), False, False),
    Candidate("lgcp-field", "noisy smooth functionals with a posterior behind them", _lgcp("field"), True, True, True),
    Candidate("lgcp-posterior-draw", "one posterior draw", _lgcp("posterior-draw"), True, False, True),
    Candidate("kernel", "patterns around the points", _kernel, True, False),
)
