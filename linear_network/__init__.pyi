from dpppsynth.linear_network.mesh import NetworkMesh as NetworkMesh
from dpppsynth.linear_network.mesh import network_mesh as network_mesh
from dpppsynth.linear_network.network import LinearNetwork as LinearNetwork
from dpppsynth.linear_network.network_kfunction import k_function as k_function
from dpppsynth.linear_network.network_kfunction import pair_correlation as pair_correlation
from dpppsynth.spatial.second_order import KFunction as KFunction
from dpppsynth.spatial.second_order import PairCorrelation as PairCorrelation
