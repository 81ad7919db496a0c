"""Synthesizers: one module for each mechanism, each with `check`, `plan`, `rehearse` and `release`."""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
