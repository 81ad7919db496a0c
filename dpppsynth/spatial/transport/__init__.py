"""Transport distances of histograms on one grid: exact and entropic Wasserstein-2, and sliced Wasserstein-1."""

from dpppsynth.spatial.transport.entropic import sinkhorn2
from dpppsynth.spatial.transport.exact_wasserstein import wasserstein2
from dpppsynth.spatial.transport.sliced import sliced_wasserstein, sliced_wasserstein_points

__all__ = ["sinkhorn2", "sliced_wasserstein", "sliced_wasserstein_points", "wasserstein2"]
