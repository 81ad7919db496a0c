"""One report about a whole trajectory: its start, or its displacement, whichever the client draws."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.core.arguments import whole
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.area import DiskArea
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.oracles import best_oracle
from dpppsynth.mechanisms.local.randomizers.questions import QuestionsLaw
from dpppsynth.mechanisms.local.randomizers.randomizer import known_settings
from dpppsynth.spatial.simplex import norm_sub, possible

# Directions, counted anticlockwise from east, and most cells from start to end.
DIRECTIONS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])
MOST_REACH = 16
# Cells along a side: laws of the displacement from every cell are held.
MOST_CELLS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class DisplacementLaw(QuestionsLaw):
    """Report on a trajectory's first cell, or on its displacement from there.

    The start is reported by the disk area mechanism, the displacement by the frequency oracle with the least total
    variance. A value is `start * displacements + displacement`; displacement 0 is to stay in the cell.

    Attributes
    ----------
    epsilon : float
    cells : int
        Along each side of the grid; cell (i, j) is start `i * cells + j`.
    reach : int
        Cells from start to end, along the longer axis, that are told apart; longer displacements count as these.
    radius : int
        Of the disk around the start.

    Examples
    --------
    >>> law = DisplacementLaw(epsilon=1.0, cells=4, reach=2, radius=1)
    >>> law.displacements, law.inputs, round(law.spent, 6)
    (17, 272, 1.0)
    """

    cells: int
    reach: int
    radius: int
    kind: ClassVar[str] = "displacements"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "cells", whole("cells", self.cells, 1, most=MOST_CELLS, remedy="take fewer, larger cells")
        )
        object.__setattr__(self, "reach", whole("reach", self.reach, 1, most=MOST_REACH))
        super().__post_init__()

    @property
    def displacements(self) -> int:
        """Number of displacements: staying, or one of `reach` distances in one of eight directions."""
        return 1 + len(DIRECTIONS) * self.reach

    @property
    def inputs(self) -> int:
        return self.cells**2 * self.displacements

    @cached_property
    def start(self) -> DiskArea:
        """Law of reports about starts."""
        return DiskArea(epsilon=self.epsilon, cells=self.cells, radius=self.radius, shrink=False)

    @cached_property
    def displacement(self) -> FrequencyOracle:
        """Law of reports about displacements."""
        return best_oracle(self.epsilon, self.displacements)

    @cached_property
    def oracles(self) -> tuple[Any, ...]:
        return self.start, self.displacement

    def answers(self, values: Ints, question: int) -> Ints:
        return np.asarray(np.divmod(values, self.displacements)[question])

    def louder(self, epsilon: float) -> Self:
        """These laws with another epsilon, without a new choice of parameters."""
        made = replace(self, epsilon=epsilon)
        start, displacement = (replace(each, epsilon=epsilon) for each in self.oracles)
        made.__dict__.update(start=start, displacement=displacement, oracles=(start, displacement))
        return made

    def settings(self, **given: Any) -> dict[str, Any]:
        return known_settings(given)

    def parts(self, counts: Ints, n: int, *, inside: Any = None) -> tuple[Floats, Floats]:
        """Estimated shares of the starts (cells**2,), and of the displacements; even shares where there are no reports.

        Parameters
        ----------
        counts : (size,) array of int
        n : int
            Number of reports.
        inside : (cells**2,) array of bool, optional
            Cells where a trajectory can start.
        """
        reports, (starts, displacements) = self.by_question(self.counts_of(counts, n))
        mask = possible(inside, self.cells**2)
        first, second = reports.tolist()
        shares = mask / mask.sum()
        if first:
            shares = self.start.estimate(starts, first, inside=mask, estimator="field")
        moves = np.full(self.displacements, 1 / self.displacements)
        if second:
            moves = norm_sub(self.displacement.frequencies(displacements, second))
        return shares, moves

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        self.settings(**settings)
        mask = possible(inside, self.inputs).reshape(-1, self.displacements)
        shares, moves = self.parts(counts, n, inside=mask.any(axis=1))
        both = np.outer(shares, moves) * mask
        return np.asarray(both / both.sum() if both.any() else mask / mask.sum()).ravel()


def displacement_of(way: Ints, reach: int) -> Ints:
    """(n,) numbers of displacements (n, 2) in cells: the nearest of eight directions, and steps along either axis.

    Examples
    --------
    >>> displacement_of(np.array([[0, 0], [1, 0], [2, 2], [0, -9]]), 3).tolist()
    [0, 1, 5, 21]
    """
    distance = np.minimum(np.abs(way).max(axis=1), reach)
    direction = np.round(np.arctan2(way[:, 1], way[:, 0]) * (len(DIRECTIONS) / 2 / np.pi)).astype(np.int64)
    return np.asarray(np.where(distance > 0, 1 + direction % len(DIRECTIONS) * reach + distance - 1, 0))


def displaced(reach: int) -> tuple[Ints, Ints]:
    """(m, 2) unit steps and (m,) numbers of steps of all displacements, 0 for staying."""
    steps = np.concatenate([[[0, 0]], np.repeat(DIRECTIONS, reach, axis=0)])
    return steps, np.concatenate([[0], np.tile(np.arange(1, reach + 1), len(DIRECTIONS))])
