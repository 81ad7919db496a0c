"""`MovedStreetInference`: a field along streets behind counts of points that were moved off them."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.inference.field_inference import INTERCEPT_SD
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models.moved_posterior import MovedLikelihood, Place, street_likelihood
from dpppsynth.models.sparse_fields import constant
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.mesh import Floats


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
        on_lattice(cells, plan),
        rate=plan.rate,
        spacing=plan.spacing,
        extension=plan.extension,
        side=side,
    )


def on_lattice(cells: SegmentCells, plan: LatticeStatistic) -> "scipy.sparse.csr_array":
    """(nodes, V) shares of the segments at the nodes of the lattice without its extension, in C order."""
    moved = cast(Any, plan)
    i, j = np.rint((moved.mesh.vertices - moved.box[:2]) / moved.spacing).astype(np.int64).T
    nx, ny = moved.shape
    where = (np.ones(len(i)), (i * ny + j, np.arange(len(i))))
    return (scipy.sparse.csr_array(where, shape=(nx * ny, len(i))) @ cells.shares(moved.mesh)).tocsr()
