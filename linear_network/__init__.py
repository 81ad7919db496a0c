"""Linear networks, such as streets: geometry, distances, the resistance metric, meshes and network statistics."""

from dpppsynth.linear_network.kfunction import KFunction, PairCorrelation, k_function, pair_correlation
from dpppsynth.linear_network.mesh import NetworkMesh, network_mesh
from dpppsynth.linear_network.network import LinearNetwork

__all__ = [
    "KFunction",
    "LinearNetwork",
    "NetworkMesh",
    "PairCorrelation",
    "k_function",
    "network_mesh",
    "pair_correlation",
]
