"""Record of counts with bounded error."""

from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.bounded import examples, words
from dpppsynth.mechanisms.bounded.audit import BoundedCountsAudit
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.projection import Projection
from dpppsynth.release.street_inference import StreetInference

CELLS = Mechanism(
    name="bounded-cells",
    settings=BoundedErrorSynthesizer,
    plan=BoundedCounts,
    estimators=(Projection, MaternInference, StreetInference),
    result=BoundedErrorRelease,
    audit=BoundedCountsAudit,
    words=words.CELLS,
    examples=examples.examples,
)
