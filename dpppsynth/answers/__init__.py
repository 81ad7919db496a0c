"""Whole-number answers computed elsewhere, released with noise that never exceeds a bound."""

from dpppsynth.answers.mechanism import BoundedErrorAnswers
from dpppsynth.answers.result import Answers
from dpppsynth.answers.terms import ErrorTerms

__all__ = ["Answers", "BoundedErrorAnswers", "ErrorTerms"]
