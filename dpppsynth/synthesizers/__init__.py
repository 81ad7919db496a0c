"""Synthesizers: one file a mechanism, each with `check`, `plan`, `rehearse` and `release`."""

from dpppsynth.synthesizers.base import Plan, Synthesizer
from dpppsynth.synthesizers.kernel import KernelSynthesizer
from dpppsynth.synthesizers.laplace import LaplaceSynthesizer
from dpppsynth.synthesizers.lgcp import LGCPSynthesizer
from dpppsynth.synthesizers.rehearsal import Rehearsal, Run
from dpppsynth.synthesizers.strata import StratifiedPlan

__all__ = [
    "KernelSynthesizer",
    "LGCPSynthesizer",
    "LaplaceSynthesizer",
    "Plan",
    "Rehearsal",
    "Run",
    "StratifiedPlan",
    "Synthesizer",
]
