"""Whole-number answers to numeric queries, released with truncated noise that never exceeds a bound."""

from dpppsynth.mechanisms.bounded.numeric_queries.bounded_error_answers import BoundedErrorAnswers
from dpppsynth.mechanisms.bounded.numeric_queries.released_answers import Answers
from dpppsynth.mechanisms.bounded.numeric_queries.terms import ErrorTerms

__all__ = ["Answers", "BoundedErrorAnswers", "ErrorTerms"]
