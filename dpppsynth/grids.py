"""Grids for range queries: one or two levels of cells, their sides and cuts, and the errors of their answers.

Geometry and numbers alone: no window, no reports, no noise. What is decided from data here is decided from estimates
that are private already.
"""

from dpppsynth.mechanisms.local.grids.consistency import Agreeing, central_consistency, local_consistency, pooled_levels
from dpppsynth.mechanisms.local.grids.cuts import PIECES, Ratios, adaptive_cells, even_cells, split_ratios
from dpppsynth.mechanisms.local.grids.error_formulas import (
    noise_variance,
    non_uniformity_bound,
    report_variance,
    sampling_variance,
    side_objective,
)
from dpppsynth.mechanisms.local.grids.groups import group_sizes, split_users
from dpppsynth.mechanisms.local.grids.queries import (
    average_query_error,
    constant_density_answers,
    query_workload,
    true_answers,
    zero_answers_error,
)
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, nested, uniform_grid
from dpppsynth.mechanisms.local.grids.sides import (
    AAG,
    PRIVAG,
    ROUNDINGS,
    UNIFORM_ALPHA,
    Constants,
    central_first_side,
    central_second_sides,
    central_uniform_side,
    clipped_frequencies,
    first_side,
    ideal_side,
    ideal_sides,
    rounded_sides,
    second_sides,
    uniform_side,
)

__all__ = [
    "AAG",
    "PIECES",
    "PRIVAG",
    "ROUNDINGS",
    "UNIFORM_ALPHA",
    "Agreeing",
    "Constants",
    "Ratios",
    "Rectangles",
    "adaptive_cells",
    "average_query_error",
    "central_consistency",
    "central_first_side",
    "central_second_sides",
    "central_uniform_side",
    "clipped_frequencies",
    "constant_density_answers",
    "even_cells",
    "first_side",
    "group_sizes",
    "ideal_side",
    "ideal_sides",
    "local_consistency",
    "nested",
    "noise_variance",
    "non_uniformity_bound",
    "pooled_levels",
    "query_workload",
    "report_variance",
    "rounded_sides",
    "sampling_variance",
    "second_sides",
    "side_objective",
    "split_ratios",
    "split_users",
    "true_answers",
    "uniform_grid",
    "uniform_side",
    "zero_answers_error",
]
