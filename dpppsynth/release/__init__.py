"""Release objects of all mechanisms, estimators of their intensities, and their storage."""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
