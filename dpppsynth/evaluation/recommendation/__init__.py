"""Recommendation of a mechanism for a budget, from public parameters and a simulation study."""

from dpppsynth.evaluation.recommendation.recommended import Alternative, Recommendation, recommend

__all__ = ["Alternative", "Recommendation", "recommend"]
