"""Pictures of patterns, intensities, marks, heat maps, meshes, series and guarantees.

Every function draws into the axes given as `ax=`, or into a figure of its own, and returns the axes; `save_picture`
writes them as PNG. Maps have equal scales, the y axis upwards, a scale bar in the unit of the domain and, where one is
given, a `Background` of public roads and districts. No picture states a number of points that is not public.
`plot_comparison` shows sensitive points: it is marked CONFIDENTIAL, and `save_picture` refuses to put it into the
folder of a release.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
