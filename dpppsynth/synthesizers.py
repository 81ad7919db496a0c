"""Synthesizers: one module for each mechanism, each with `check`, `plan`, `rehearse` and `release`."""

from dpppsynth.contract.plan import Plan
from dpppsynth.contract.rehearsal import Rehearsal, Run
from dpppsynth.contract.stratified_plan import StratifiedPlan
from dpppsynth.contract.synthesizer import PointSynthesizer, Synthesizer
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer
from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer
from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer
from dpppsynth.mechanisms.laplace.synthesizer import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer

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
