"""`MovedStreetInference`: a field along streets behind counts of points that were moved off them."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.inference.field_inference import INTERCEPT_SD
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models.moved_channels import StreetPoints
from dpppsynth.models.moved_posterior import MovedLikelihood, Place, street_likelihood
from dpppsynth.models.sparse_fields import constant
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.mesh import Floats

# Parts of a segment in a scale of the noise, and between two nodes where these are farther apart.
PARTS, MOST_PARTS = 2.0, 8.0


@dataclass(frozen=True, eq=False, repr=False)
class MovedStreetInference(JudgedInference, StreetInference):
    """Priors of `StreetInference`, chosen by how well one half of the moved points foretells the other."""

    kind: ClassVar[str] = "moved-streets"

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {name: getattr(self, name) for name in self.averaged}

    @property
    def first(self) -> Place:
        return tuple((len(values) - 1) // 2 for values in self.lists.values())

    def likelihood(  # type: ignore[override]
        self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1
    ) -> MovedLikelihood:
        return likelihood_of(statistic, self.mesh, self.measure, self.leading, side)

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> WhitenedField:
        if number == len(self.combined):
            return WhitenedField(self.explained(constant(len(self.measure), INTERCEPT_SD)))
        return WhitenedField(self.field_with(self.combined[number]))


def likelihood_of(
    statistic: PrivateStatistic[LatticeStatistic],
    cells: SegmentCells,
    measure: Floats,
    leading: tuple[int, ...],
    side: int,
) -> MovedLikelihood:
    """Likelihood of a field on segments of streets, or of one of each level.

    Parameters
    ----------
    statistic : PrivateStatistic
        Counts of points that were moved off the streets.
    cells : SegmentCells
    measure : (V,) or (L V,) array
        Of the segments.
    leading : () or (L,)
    side : int
        Nodes along either side of the blocks that are told apart.
    """
    plan = cast(Any, statistic.definition)
    return street_likelihood(
        statistic.lattice.reshape(*leading, *plan.sides),
        measure.reshape(*leading, -1),
        street_points(cells, plan),
        rate=plan.rate,
        spacing=plan.spacing,
        extension=plan.extension,
        side=side,
    )


def street_points(cells: SegmentCells, plan: LatticeStatistic) -> StreetPoints:
    """Middles of equal parts of all segments, half a scale of the noise long, or an eighth of a wider spacing."""
    moved = cast(Any, plan)
    length = cells.end - cells.start
    longest = max(1 / (PARTS * moved.rate), min(moved.spacing) / MOST_PARTS)
    parts = np.maximum(1, np.ceil(length / longest)).astype(np.int64)
    segment = np.repeat(np.arange(len(length)), parts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)
    along = cells.start[segment] + (number + 0.5) / parts[segment] * length[segment]
    at = cells.domain.coordinates(np.column_stack([cells.edge[segment], along])) - moved.box[:2]
    return StreetPoints(at, segment, 1 / parts[segment])
