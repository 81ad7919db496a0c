"""Linear networks, such as streets: geometry, distances, the resistance metric, meshes and network statistics."""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
