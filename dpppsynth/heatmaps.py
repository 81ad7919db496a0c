"""Differentially private heat maps of people who may have many points each: plain arrays in, plain arrays out.

`aggregate` estimates the average of many persons' distributions over a square grid, privately; `HeatmapSynthesizer`
does the same for point patterns in a window, with a certificate. Inside, from data to picture:

============================== ======================================================================================
`Users`, `user_distribution`   sparse distributions, each person's rounded to whole units that add up to one
`pyramid`                      sums over ever smaller squares; `pyramid_norm`
`measure_tree`                 the one step that spends the budget: noised counts of the cells that selection looks at
`grow`, `CellTree`, `Level`    which cells are looked at, and which are kept
`reconstruct`, `solve`         masses that fit the noisy counts in l1; `compact_lp`, `full_lp` and `objective` check it
`least_squares`                masses by weighted least squares on all that was looked at; `fitted` takes either
`aggregate`                    all of it; `sparse_aggregate` keeps what lies between
`gaussian_heatmap`             the picture; `infinite_heatmap` without borders
`emd`, `similarity`, ...       how far a heat map is from the truth: `emd_norm`, `pearson`, `kl`
============================== ======================================================================================

What it is compared with: `laplace_aggregate` (noise on every cell, with or without a threshold), `dense_aggregate`
(nothing sparse assumed), `ShuffleProtocol` (many clients instead of a curator: a simulation). Made with it:
`kmedian_coreset`, `kmedian_cost`, `kmedian`. The bounds that are proved stand in `limits`, `read_checkins` reads
published check-in data, and docs/theory/heatmaps.md has the proofs.

References
----------
Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI.
"""

from dpppsynth.mechanisms.heatmap import error_bounds as limits
from dpppsynth.mechanisms.heatmap.aggregation import Aggregation, Estimate, aggregate, measure_tree, sparse_aggregate
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets, level_budgets, start_level
from dpppsynth.mechanisms.heatmap.cell_tree import CellTree, Level, grow
from dpppsynth.mechanisms.heatmap.checkins import CheckIns, busiest_cells, read_checkins
from dpppsynth.mechanisms.heatmap.dense import dense_aggregate
from dpppsynth.mechanisms.heatmap.dense_laplace import laplace_aggregate, laplace_estimate
from dpppsynth.mechanisms.heatmap.fitting import fitted
from dpppsynth.mechanisms.heatmap.kmedian import kmedian, kmedian_coreset, kmedian_cost
from dpppsynth.mechanisms.heatmap.least_squares import least_squares
from dpppsynth.mechanisms.heatmap.linear_programs import Optimum, compact_lp, full_lp, objective
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.heatmap.pyramid import pyramid, pyramid_norm
from dpppsynth.mechanisms.heatmap.reconstruct import reconstruct, select_cells, solve
from dpppsynth.mechanisms.heatmap.shuffle import ShuffleProtocol, communication_bits
from dpppsynth.mechanisms.heatmap.users import Users, user_distribution
from dpppsynth.spatial.grid_smoothing import InfiniteHeatmap, gaussian_heatmap, gaussian_kernel, infinite_heatmap
from dpppsynth.spatial.map_distances import emd, emd_norm, kl, pearson, similarity

__all__ = [
    "Aggregation",
    "CellTree",
    "CheckIns",
    "Estimate",
    "HeatmapPlan",
    "InfiniteHeatmap",
    "Level",
    "LevelBudgets",
    "Optimum",
    "ShuffleProtocol",
    "Users",
    "aggregate",
    "busiest_cells",
    "communication_bits",
    "compact_lp",
    "dense_aggregate",
    "emd",
    "emd_norm",
    "fitted",
    "full_lp",
    "gaussian_heatmap",
    "gaussian_kernel",
    "grow",
    "infinite_heatmap",
    "kl",
    "kmedian",
    "kmedian_coreset",
    "kmedian_cost",
    "laplace_aggregate",
    "laplace_estimate",
    "least_squares",
    "level_budgets",
    "limits",
    "measure_tree",
    "objective",
    "pearson",
    "pyramid",
    "pyramid_norm",
    "read_checkins",
    "reconstruct",
    "select_cells",
    "similarity",
    "solve",
    "sparse_aggregate",
    "start_level",
    "user_distribution",
]
