"""Linear networks, such as streets: geometry, distances, the resistance metric, meshes and network statistics."""

from dpppsynth.linear_network.network import LinearNetwork

__all__ = ["LinearNetwork"]
