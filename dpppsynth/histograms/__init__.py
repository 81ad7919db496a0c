"""Distances between two histograms on one grid: exact and entropic Wasserstein-2, and sliced Wasserstein-1."""

from dpppsynth.histograms.entropic import sinkhorn2
from dpppsynth.histograms.exact import wasserstein2
from dpppsynth.histograms.sliced import sliced_wasserstein, sliced_wasserstein_points

__all__ = ["sinkhorn2", "sliced_wasserstein", "sliced_wasserstein_points", "wasserstein2"]
