"""Options of noised counts and tent masses."""

from dpppsynth.contract.mesh_options import MeshOptions
from dpppsynth.mechanisms.lgcp.laplace import LaplaceSynthesizer

CELLS = MeshOptions(LaplaceSynthesizer, "laplace", {"basis": "cells"})
TENTS = MeshOptions(LaplaceSynthesizer, "laplace", {"basis": "tents"})
