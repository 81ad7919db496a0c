"""Intensities from private statistics: posteriors of fields, projections, filters of series. All is post-processing."""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
