"""Truncated noise laws: noise that never exceeds a bound, and its delta (docs/theory/bounded_error.md).

No additive noise with a bound is purely private: some answers are possible for one of two neighbouring data sets alone,
and their probability is the smallest delta. `TruncatedGeometric` is the law of whole numbers that releases draw,
`TruncatedLaplace` its continuous counterpart, and `PlanarLaplace` that of offsets in the plane, which `move` draws.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
