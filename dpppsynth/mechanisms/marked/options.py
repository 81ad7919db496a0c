"""Options of marked tents."""

from dpppsynth.contract.mechanism_options import PointOptions
from dpppsynth.mechanisms.marked.synthesizer import MarkedSynthesizer

TENTS = PointOptions(MarkedSynthesizer, "marked")
