"""Bayesian filters and smoothers for series of released answers or positions with bounded noise.

A filter sees released numbers and public parameters, never true answers, and therefore costs no privacy. It assumes
that the hidden series changes little from one step to the next; where that is wrong it makes matters worse
(docs/bounded_error.md has numbers). Its estimates stay within the bound of the released numbers, and hence within
twice the bound of the truth: the bound of the release itself is lost.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
