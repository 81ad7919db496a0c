"""Simulators of point processes in windows and along streets: Poisson, Thomas, log-Gaussian Cox.

For studies, notebooks and tests: nothing here is private.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
