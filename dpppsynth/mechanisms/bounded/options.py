"""Options of counts with bounded error."""

from dpppsynth.contract.mesh_options import MeshOptions
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer

CELLS = MeshOptions(BoundedErrorSynthesizer, "bounded-error")
