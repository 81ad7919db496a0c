"""Bayesian filters and smoothers for series of released answers or positions with bounded noise.

A filter sees released numbers and public parameters, never true answers, and therefore costs no privacy. It assumes
that the hidden series changes little from one step to the next; where that is wrong it makes matters worse
(docs/bounded_error.md has numbers). Its estimates stay within the bound of the released numbers, and hence within
twice the bound of the truth: the bound of the release itself is lost.
"""

from dpppsynth.release.filters.filtered_series import Filtered
from dpppsynth.release.filters.grid_filters import grid_filter, grid_smoother
from dpppsynth.release.filters.particle import particle_filter
from dpppsynth.release.filters.polar import polar_filter
from dpppsynth.release.filters.position_filters import cartesian_filter
from dpppsynth.release.filters.step_sizes import estimated_step, likely_step
from dpppsynth.release.filters.variance import relative_variance

__all__ = [
    "Filtered",
    "cartesian_filter",
    "estimated_step",
    "grid_filter",
    "grid_smoother",
    "likely_step",
    "particle_filter",
    "polar_filter",
    "relative_variance",
]
