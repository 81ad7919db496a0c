"""Pictures of patterns, intensities, marks, heat maps, meshes, series and guarantees.

Every function draws into the axes given as `ax=`, or into a figure of its own, and returns the axes; `save_picture`
writes them as PNG. Maps have equal scales, the y axis upwards, and a scale bar in the unit of the domain. No picture
states a number of points. `plot_comparison` shows sensitive points: it is marked CONFIDENTIAL, and `save_picture`
refuses to put it into the folder of a release.
"""

from dpppsynth.plotting.curve import plot_epsilon_curve
from dpppsynth.plotting.maps import colour_scale, plot_comparison, plot_heatmap, plot_intensity, plot_mesh, plot_pattern
from dpppsynth.plotting.mark_pictures import plot_by_time, plot_by_type, plot_marginal
from dpppsynth.plotting.picture_files import refuse_release_folder, save_picture
from dpppsynth.plotting.risk_maps import plot_relative_risk
from dpppsynth.plotting.series import plot_series

__all__ = [
    "colour_scale",
    "plot_by_time",
    "plot_by_type",
    "plot_comparison",
    "plot_epsilon_curve",
    "plot_heatmap",
    "plot_intensity",
    "plot_marginal",
    "plot_mesh",
    "plot_pattern",
    "plot_relative_risk",
    "plot_series",
    "refuse_release_folder",
    "save_picture",
]
