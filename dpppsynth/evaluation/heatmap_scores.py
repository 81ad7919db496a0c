"""Metrics of a private heat map against the original's, with a uniform map for reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpppsynth.contract.result import ExactMaps, HeatMapped
from dpppsynth.evaluation.metrics import Metric
from dpppsynth.spatial.map_distances import kl, pearson, similarity
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    import pandas as pd

# Scores of a heat map compared with itself.
BEST = 0.0, 1.0, 1.0, 0.0
NOTE = (
    "heat map: under synthetic the private heat map itself, under uniform that of a uniform distribution; each against "
    "the exact one, in which every person of the original counts once. All are smoothed by 2 % of the window's longer "
    "side."
)
PERSONS_NOTE = (
    "Other rows are about synthetic patterns, which have one point for each person, and about the original's points, "
    "however many a person has: where persons have several, no aim is to come close to these."
)


@dataclass(frozen=True, eq=False, repr=False)
class HeatScores:
    """Values (4,) of the metrics, of a private heat map and of a uniform one; as confidential as the original."""

    metrics: tuple[Metric, ...]
    released: Floats
    uniform: Floats

    def table(self) -> pd.DataFrame:
        """One row a metric, with the columns of `tables.summary`; not a number where there is none."""
        import pandas as pd

        columns = {"original": BEST, "synthetic": self.released, "sd": math.nan, "uniform": self.uniform}
        words = {"unit": [each.unit for each in self.metrics], "better": [each.better for each in self.metrics]}
        names = pd.Index([each.name for each in self.metrics], name="metric")
        return pd.DataFrame(columns | {"resampled": math.nan} | words, index=names)


def score_heat(release: HeatMapped, original: PointPattern) -> HeatScores:
    """Score a release against the pattern it was made from, marked as its plan asks."""
    maps = release.exact_maps(original)
    metrics = (
        Metric(f"heat map, EMD at {maps.side} x {maps.side}", f"share {maps.unit}"),
        Metric("heat map, SIM", "share", "higher"),
        Metric("heat map, CC", "correlation", "higher"),
        Metric("heat map, KL", "nats"),
    )
    return HeatScores(metrics, _scores(maps, maps.released), _scores(maps, maps.uniform))


def _scores(maps: ExactMaps, estimate: Floats) -> Floats:
    exact = maps.exact
    return np.array([maps.moved(estimate), similarity(exact, estimate), pearson(exact, estimate), kl(exact, estimate)])
