"""Test statistics for the noise of a noised pyramid of counts, with all other persons' masses subtracted.

A likelihood ratio supposes noise of the stated law, drawn anew for every number; here it is looked for other noise.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.mechanisms.heatmap.audit_branches import (
    Branch,
    branches,
    level_masses,
    looked_at,
    own_masses,
    parents_of,
)
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.spatial.mesh import Floats, Ints


class Noise(NamedTuple):
    """Noise of one level, in scales: residuals (m,), flags of the person's cells, flags of those beside them."""

    residuals: Floats
    own: npt.NDArray[np.bool_]
    near: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Residuals:
    """Base of statistics of the noise: the measured counts less the masses without the change."""

    plan: HeatmapStatistic
    branches: tuple[Branch, ...]
    others: tuple[tuple[Ints, Ints], ...]

    @classmethod
    def at(cls, plan: HeatmapStatistic, pair: Pair) -> Self:
        """Test statistic with the cells and the masses of the second pattern, level by level, where there are any."""
        filled = [(np.flatnonzero(masses), masses[masses != 0]) for masses in level_masses(plan, pair[1])]
        return cls(plan, branches(plan, pair), tuple(filled))

    def noise(self, released: Any) -> list[Noise]:
        """Noise of each level."""
        found = []
        levels, noised = looked_at(self.plan, released)
        measured = self.plan.budgets
        each = zip(measured.levels, self.branches, levels, noised, self.others, strict=True)
        for depth, branch, level, numbers, (cells, masses) in each:
            less = numbers.copy()
            _, place, at = np.intersect1d(cells, level.cells, assume_unique=True, return_indices=True)
            less[at] -= masses[place]
            own = np.isin(level.cells, branch.cells)
            beside = parents_of(branch.cells, depth, measured.step)
            near = np.isin(parents_of(level.cells, depth, measured.step), beside) & ~own
            found.append(Noise(less / branch.scale, own, near))
        return found


@dataclass(frozen=True, eq=False)
class SharedNoise(Residuals):
    """The noise of the person's fullest cell on each level, less other noise that might be the same, in scales.

    Noise must be drawn anew for every number. Where it was not, one of these differences is free of it: to the cell
    that comes equally late on another level, as with one seed for all; to the person's cell on another level; to the
    next cell beside it; and between the cell's mass and those of its four children.
    """

    def __call__(self, released: Any) -> Floats:
        """(levels (levels - 1) 3 / 2 + 2 levels - 1,) numbers; 0 for cells that are not measured."""
        noise = self.noise(released)
        places = [int(each.own.argmax()) for each in noise]
        mine = [each.residuals[place] if each.own.any() else 0.0 for place, each in zip(places, noise, strict=True)]
        late = [
            mine[level] - other.residuals[place] if place < len(other.residuals) else 0.0
            for level, place in enumerate(places)
            for number, other in enumerate(noise)
            if number != level
        ]
        branch = [one - other for number, one in enumerate(mine) for other in mine[:number]]
        # The four children of a cell come one after the other.
        beside = [
            one - n.residuals[(place ^ 1) % len(n.residuals)] for one, place, n in zip(mine, places, noise, strict=True)
        ]
        return np.concatenate([late, branch, beside, self._of_children(noise)])

    def _of_children(self, noise: list[Noise]) -> list[float]:
        """The noise of the person's cells of each level, less that of the children of their parents, in persons."""
        sums = [
            (each.residuals[each.own].sum() * scale, each.residuals[each.own | each.near].sum() * scale)
            for each, scale in zip(noise, self.plan.scales, strict=True)
        ]
        unit = 2.0**-self.plan.bits
        return [float(own - below) * unit for (own, _), (_, below) in pairwise(sums)]


@dataclass(frozen=True, eq=False)
class Extremes(Residuals):
    """The largest and the smallest noise of the person's cells on all levels, and the largest of those beside them.

    Noise that has a bound, even a rare one, tells who exceeds it.
    """

    def __call__(self, released: Any) -> Floats:
        """(3,) numbers, in scales."""
        noise = self.noise(released)
        own = np.concatenate([each.residuals[each.own] for each in noise])
        near = np.concatenate([each.residuals[each.near] for each in noise])
        return np.array([own.max(initial=0.0), own.min(initial=0.0), np.abs(near).max(initial=0.0)])


@dataclass(frozen=True, eq=False)
class AddedToPyramid:
    """Noise added to the masses of the measured cells, level by level."""

    plan: HeatmapStatistic
    pair: Pair

    @cached_property
    def _masses(self) -> list[list[tuple[Ints, Ints]]]:
        return [own_masses(self.plan, pattern) for pattern in self.pair]

    def __call__(self, side: int, released: Any) -> Floats:
        """(m,) noise; not a number in cells without any part in the window, which get none."""
        levels, noised = looked_at(self.plan, released)
        found = []
        for level, released_numbers, (cells, masses) in zip(levels, noised, self._masses[side], strict=True):
            at = np.minimum(np.searchsorted(cells, level.cells), len(cells) - 1)
            noise = released_numbers - np.where(cells[at] == level.cells, masses[at], 0)
            found.append(np.where(level.alive, noise, np.nan))
        return np.concatenate(found)
