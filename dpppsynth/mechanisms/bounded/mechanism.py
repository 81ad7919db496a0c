"""Record of counts with bounded error."""

from dpppsynth.contract.registry import Mechanism
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.mechanisms.bounded import examples, words
from dpppsynth.mechanisms.bounded.audit import BoundedCountsAudit
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer

CELLS = Mechanism(
    name="bounded-cells",
    settings=BoundedErrorSynthesizer,
    statistic=BoundedCounts,
    estimators=(Projection, MaternInference, StreetInference),
    result=BoundedErrorRelease,
    audit=BoundedCountsAudit,
    words=words.CELLS,
    examples=examples.examples,
)
