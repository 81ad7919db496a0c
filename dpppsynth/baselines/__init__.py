"""What published experiments compare with, and nobody may release with: they say so.

* `PaperLaplaceSynthesizer`: Kim & Lim's Laplace synthesizer, with noise on densities.
* `LiteralHybridUniformExponential`: the hybrid area mechanism as printed, which spends 1 whatever epsilon is.
* `best_uniform_grid`: a uniform grid whose side is chosen by the truth.
* `pivot_trace`: trajectories whose points of interest are the private points.
"""

from dpppsynth.baselines.laplace import BaselineRelease, PaperLaplaceSynthesizer
from dpppsynth.baselines.local import BestUniformGrid, LiteralHybridUniformExponential, best_uniform_grid
from dpppsynth.baselines.pivot_trace import PivotTrace, pivot_trace

__all__ = [
    "BaselineRelease",
    "BestUniformGrid",
    "LiteralHybridUniformExponential",
    "PaperLaplaceSynthesizer",
    "PivotTrace",
    "best_uniform_grid",
    "pivot_trace",
]
