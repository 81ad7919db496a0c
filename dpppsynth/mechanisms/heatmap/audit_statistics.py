"""Test statistics of audits of a noised pyramid of counts.

Which cells of a level are looked at follows from the noised levels above, which are released. So given the release
the law of every number is known, and the likelihood ratio over the measured cells in which two inputs differ is exact.
It supposes noise of the stated law, drawn anew for every number; other statistics look for other noise, in the counts
less all other persons' masses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.mechanisms.heatmap.tree import TreeLevel, pyramid
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import persons


@dataclass(frozen=True, eq=False)
class Branch:
    """Cells of one level in which two patterns differ.

    Attributes
    ----------
    cells : (k,) int array
        Codes, rising.
    first, second : (k,) int array
        Their masses in lattice units under either pattern, without noise.
    scale : float
        Of the level's noise, in lattice units.
    """

    cells: Ints
    first: Ints
    second: Ints
    scale: float

    def ratio(self, at: Any, noised: Ints) -> Floats:
        """Log-likelihood ratios of noised masses of the cells at some positions."""
        return np.asarray((np.abs(noised - self.second[at]) - np.abs(noised - self.first[at])) / self.scale)


def branches(plan: HeatmapStatistic, pair: Pair) -> tuple[Branch, ...]:
    """The cells in which a pair differs, for each measured level."""
    found = []
    for first, second, scale in zip(*(level_masses(plan, pattern) for pattern in pair), plan.scales, strict=True):
        cells = np.flatnonzero(first != second)
        found.append(Branch(cells, first[cells], second[cells], scale))
    return tuple(found)


def level_masses(plan: HeatmapStatistic, pattern: PointPattern) -> list[Ints]:
    """(4^i,) masses of each measured level in lattice units, without noise."""
    levels = pyramid(plan.users(pattern).lattice(plan.bits))
    return [levels[number].ravel() for number in plan.budgets.levels]


def own_masses(plan: HeatmapStatistic, pattern: PointPattern) -> list[tuple[Ints, Ints]]:
    """Codes (k,), increasing, of the cells of each measured level that hold points, and their masses in lattice units.

    They are worked out from the points here, and not by the code that is audited.
    """
    places = plan.places[plan.mesh.locate(pattern.positions)]
    who = np.arange(len(places)) if plan.user is None else persons((pattern.marks or {})[plan.user])
    rows, number = np.unique(np.column_stack([who, places]), axis=0, return_counts=True)
    whose = np.unique(rows[:, 0], return_inverse=True)[1].ravel()
    total = np.bincount(whose, weights=number)[whose]
    masses = np.rint(2.0**plan.bits * number / total).astype(np.int64)
    found = []
    for level in plan.budgets.levels:
        u, v = rows[:, 1:].T >> plan.depth - level
        codes, which = np.unique(u * 2**level + v, return_inverse=True)
        sums = np.zeros(len(codes), dtype=np.int64)
        np.add.at(sums, which.ravel(), masses)
        found.append((codes, sums))
    return found


# All statistics look at one release before the next is made.
@lru_cache(maxsize=1)
def looked_at(plan: HeatmapStatistic, released: Any) -> tuple[tuple[TreeLevel, ...], list[Ints]]:
    """Measured levels of a release, and the noised masses (m,) of each in lattice units."""
    return plan.tree(released.lattice).levels, np.split(released.lattice, np.cumsum(plan.layout)[:-1])


def seen(plan: HeatmapStatistic, changing: Sequence[Branch], released: Any) -> list[tuple[Branch, Ints, Ints]]:
    """Branches by level, with the positions of their measured cells and the noised masses there."""
    levels, noised = looked_at(plan, released)
    found = []
    for branch, level, numbers in zip(changing, levels, noised, strict=True):
        _, place, at = np.intersect1d(branch.cells, level.cells, assume_unique=True, return_indices=True)
        found.append((branch, place, numbers[at]))
    return found


def level_ratios(plan: HeatmapStatistic, changing: Sequence[Branch], released: Any) -> Floats:
    """(levels,) log-likelihood ratio of two patterns on each level, given the levels above.

    `sum((|o - T'| - |o - T|) / scale)`; 0 where no cell that differs is measured.
    """
    return np.array([branch.ratio(at, o).sum() for branch, at, o in seen(plan, changing, released)])


def pyramid_ratio(plan: HeatmapStatistic, changing: Sequence[Branch], released: Any) -> float:
    """Log-likelihood ratio of two patterns, given the noised counts of all measured cells."""
    return float(level_ratios(plan, changing, released).sum())


@dataclass(frozen=True, eq=False)
class CellRatio:
    """Log-likelihood ratio of two patterns, given one number: the cell of a level that differs most."""

    plan: HeatmapStatistic
    number: int
    branch: Branch

    @property
    def place(self) -> int:
        """Position of the cell in the branch."""
        return int(np.argmax(np.abs(self.branch.first - self.branch.second)))

    def __call__(self, released: Any) -> float:
        """Log-likelihood ratio of the cell; 0 where it is not measured."""
        levels, noised = looked_at(self.plan, released)
        at = np.flatnonzero(levels[self.number].cells == self.branch.cells[self.place])
        return float(self.branch.ratio(self.place, noised[self.number][at]).sum())


def measured_cells(plan: HeatmapStatistic, changing: Sequence[Branch], released: Any) -> Ints:
    """(levels,) number of measured cells among those in which the patterns differ; selected by the noise."""
    return np.array([len(at) for _, at, _ in seen(plan, changing, released)])


def level_totals(plan: HeatmapStatistic, released: Any) -> Floats:
    """(levels,) sum of all noised masses of each level, in persons; the number of persons is secret."""
    ends = np.cumsum(plan.layout)
    sums = np.add.reduceat(released.lattice, np.concatenate([[0], ends[:-1]]))
    return np.asarray(sums * 2.0**-plan.bits, dtype=np.float64)


def parents_of(cells: Ints, level: int, step: int = 1) -> Ints:
    """(k,) codes of the cells, `step` levels above, that hold cells (k,) of a level."""
    u, v = np.divmod(cells, 2**level)
    return np.asarray((u >> step) * 2 ** max(level - step, 0) + (v >> step))


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

    Bounded noise, even if the bound is rarely met, reveals a person beyond it.
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
