"""Rivals from published experiments, and other code that only tables need: none of it may be used for a release.

* `PaperLaplaceSynthesizer`: Kim & Lim's Laplace synthesizer, with noise on densities.
* `LiteralHybridUniformExponential`: the hybrid area mechanism as printed, which spends 1 whatever epsilon is.
* `best_uniform_grid`: a uniform grid whose side is chosen by the truth.
* `pivot_trace`: trajectories whose points of interest are the private points.

Beside release with bounded error stand, all with floating-point noise:

* `laplace_answers`, `gaussian_answers`, `generalised_gaussian_answers`, `staircase_answers`, `uniform_answers` and
  `planar_laplace`: noisy answers by the laws `GeneralisedGaussian`, `Staircase` and `UniformNoise`, and their scales.
* `optimal_noise`: the smallest delta of any noise with a bound, and `TruncatedStaircase`, which attains it.
* `BoundedOutput`: outputs, and not errors, in a public interval.
* `blum_intervals`, `hay_tree`, `hay_degree`: one-dimensional data as intervals of equal mass, consistent trees of
  counts and sorted sequences.
* `error_summary`: how far a release is off, with its standard error.

Beside heat maps stand `flat_heatmaps` (noise on every cell of one grid), `heatmap_programs` (the fit in l1 as linear
programs), `heatmap_error_bounds` (what is proved of errors), `kmedian` (clusters from a heat map) and
`shuffled_heatmap` (clients and a shuffler instead of a curator).

Beside the default stand private histograms (`histograms`, `histogram_trees`, `histogram_partitions` and
`histogram_marginals`) and `deconvolution` of moved points.
"""

from baselines.accuracy import ErrorSummary, error_summary
from baselines.bounded_output import BoundedOutput, bounded_output_scale
from baselines.central_grids import CentralAdaptiveGrid, CentralUniformGrid
from baselines.hierarchical_counts import NoisyDegrees, NoisyTree, hay_degree, hay_tree, tree_consistency
from baselines.interval import Intervals, blum_intervals
from baselines.local_baselines import BestUniformGrid, LiteralHybridUniformExponential, best_uniform_grid
from baselines.noise_laws import GeneralisedGaussian, Staircase, UniformNoise, generalised_gaussian_scale, optimal_gamma
from baselines.noisy_answers import (
    NoisyAnswers,
    analytic_gaussian_scale,
    gaussian_answers,
    generalised_gaussian_answers,
    laplace_answers,
    planar_laplace,
    probabilistic_gaussian_scale,
    staircase_answers,
    uniform_answers,
)
from baselines.paper_laplace import BaselineRelease, PaperLaplaceSynthesizer
from baselines.pivot_trace import PivotTrace, pivot_trace

__all__ = [
    "BaselineRelease",
    "BestUniformGrid",
    "BoundedOutput",
    "CentralAdaptiveGrid",
    "CentralUniformGrid",
    "ErrorSummary",
    "GeneralisedGaussian",
    "Intervals",
    "LiteralHybridUniformExponential",
    "NoisyAnswers",
    "NoisyDegrees",
    "NoisyTree",
    "PaperLaplaceSynthesizer",
    "PivotTrace",
    "Staircase",
    "UniformNoise",
    "analytic_gaussian_scale",
    "best_uniform_grid",
    "blum_intervals",
    "bounded_output_scale",
    "error_summary",
    "gaussian_answers",
    "generalised_gaussian_answers",
    "generalised_gaussian_scale",
    "hay_degree",
    "hay_tree",
    "laplace_answers",
    "optimal_gamma",
    "pivot_trace",
    "planar_laplace",
    "probabilistic_gaussian_scale",
    "staircase_answers",
    "tree_consistency",
    "uniform_answers",
]
