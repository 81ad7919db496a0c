"""Grids for range queries: one or two levels of cells, their sides and cuts.

Geometry and numbers alone: no window, no reports, no noise. What is decided from data here is decided from estimates
that are private already.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
