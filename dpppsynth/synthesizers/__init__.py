"""Synthesizers: one file a mechanism, each with `check`, `plan` and `release`."""

from dpppsynth.synthesizers.base import Plan, Synthesizer
from dpppsynth.synthesizers.laplace import LaplaceSynthesizer
from dpppsynth.synthesizers.lgcp import LGCPSynthesizer

__all__ = ["LGCPSynthesizer", "LaplaceSynthesizer", "Plan", "Synthesizer"]
