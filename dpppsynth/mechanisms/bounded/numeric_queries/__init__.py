"""Whole-number answers to numeric queries, released with truncated noise that never exceeds a bound."""

from dpppsynth.mechanisms.bounded.numeric_queries.mechanism import BoundedErrorAnswers
from dpppsynth.mechanisms.bounded.numeric_queries.result import Answers
from dpppsynth.mechanisms.bounded.numeric_queries.terms import ErrorTerms

__all__ = ["Answers", "BoundedErrorAnswers", "ErrorTerms"]
