"""Record of points moved by planar Laplace noise."""

from dpppsynth.contract.registry import Mechanism
from dpppsynth.mechanisms.planar_laplace import examples, words
from dpppsynth.mechanisms.planar_laplace.audit import MovedAudit
from dpppsynth.mechanisms.planar_laplace.release import PointRelease
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer

POINTS = Mechanism(
    name="planar-laplace",
    settings=PlanarLaplaceSynthesizer,
    statistic=MovedPoints,
    estimators=(),
    result=PointRelease,
    audit=MovedAudit,
    words=words.POINTS,
    examples=examples.examples,
)
