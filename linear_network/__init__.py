"""Linear networks, such as streets: geometry, distances, the resistance metric, meshes and network statistics."""

from dpppsynth.linear_network.mesh import NetworkMesh, network_mesh
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.network_kfunction import k_function, pair_correlation
from dpppsynth.spatial.second_order import KFunction, PairCorrelation

__all__ = [
    "KFunction",
    "LinearNetwork",
    "NetworkMesh",
    "PairCorrelation",
    "k_function",
    "network_mesh",
    "pair_correlation",
]
