"""Record of private heat maps."""

from dpppsynth.contract.registry import Mechanism
from dpppsynth.mechanisms.heatmap import examples, words
from dpppsynth.mechanisms.heatmap.audit import HeatmapAudit
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, Reconstruction
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer

HEATMAP = Mechanism(
    name="heatmap",
    settings=HeatmapSynthesizer,
    statistic=HeatmapStatistic,
    estimators=(Reconstruction,),
    result=HeatmapRelease,
    audit=HeatmapAudit,
    words=words.HEATMAP,
    examples=examples.examples,
)
