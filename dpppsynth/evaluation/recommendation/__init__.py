"""Recommendation of a mechanism for a budget, from public parameters and a simulation study."""

from dpppsynth.evaluation.recommendation.choice import recommend
from dpppsynth.evaluation.recommendation.recommended import Alternative, Recommendation

__all__ = ["Alternative", "Recommendation", "recommend"]
