"""Record of marked tents."""

from dpppsynth.contract.registry import Mechanism
from dpppsynth.mechanisms.marked import examples, words
from dpppsynth.mechanisms.marked.audit import MarkedAudit
from dpppsynth.mechanisms.marked.inference import MarkedInference
from dpppsynth.mechanisms.marked.release import MarkedRelease
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.mechanisms.marked.synthesizer import MarkedSynthesizer

TENTS = Mechanism(
    name="marked-tents",
    settings=MarkedSynthesizer,
    statistic=MarkedMasses,
    estimators=(MarkedInference,),
    result=MarkedRelease,
    audit=MarkedAudit,
    words=words.TENTS,
    examples=examples.tents,
)
