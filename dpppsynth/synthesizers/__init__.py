"""Synthesizers: one module for each mechanism, each with `check`, `plan`, `rehearse` and `release`."""

from dpppsynth.synthesizers.base import Plan, PointSynthesizer, Synthesizer
from dpppsynth.synthesizers.bounded import BoundedErrorSynthesizer
from dpppsynth.synthesizers.heatmap import HeatmapSynthesizer
from dpppsynth.synthesizers.kernel import KernelSynthesizer
from dpppsynth.synthesizers.laplace import LaplaceSynthesizer
from dpppsynth.synthesizers.lgcp import LGCPSynthesizer
from dpppsynth.synthesizers.moved import PlanarLaplaceSynthesizer
from dpppsynth.synthesizers.rehearsal import Rehearsal, Run
from dpppsynth.synthesizers.strata import StratifiedPlan

__all__ = [
    "BoundedErrorSynthesizer",
    "HeatmapSynthesizer",
    "KernelSynthesizer",
    "LGCPSynthesizer",
    "LaplaceSynthesizer",
    "Plan",
    "PlanarLaplaceSynthesizer",
    "PointSynthesizer",
    "Rehearsal",
    "Run",
    "StratifiedPlan",
    "Synthesizer",
]
