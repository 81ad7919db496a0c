"""Likelihood ratio of a noised pyramid of counts: the measured cells in which two inputs differ, level by level.

Which cells of a level are looked at follows from the noised levels above, which are released. So given the release
the law of every number is known, and the likelihood ratio is exact.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.mechanisms.heatmap.audit_pairs import attention
from dpppsynth.mechanisms.heatmap.bound import layout
from dpppsynth.mechanisms.heatmap.cell_tree import Level
from dpppsynth.mechanisms.heatmap.pyramid import pyramid
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
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
    """The cells in which a pair differs, for each measured level.

    Parameters
    ----------
    plan : HeatmapStatistic
    pair : tuple of PointPattern
    """
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
    """Codes (k,), rising, of the cells of each measured level that hold points, and their masses in lattice units.

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
def looked_at(plan: HeatmapStatistic, released: Any) -> tuple[tuple[Level, ...], list[Ints]]:
    """The levels of a release, and the noised masses (m,) of each in lattice units."""
    return plan.tree(released.lattice).levels, np.split(released.lattice, np.cumsum(lengths(plan))[:-1])


@dataclass(frozen=True, eq=False)
class OfBranch:
    """Base of statistics of the measured cells in which two patterns differ."""

    plan: HeatmapStatistic
    branches: tuple[Branch, ...]

    def seen(self, released: Any) -> list[tuple[Branch, Ints, Ints]]:
        """Branches by level, with the positions of their measured cells and the noised masses there."""
        levels, noised = looked_at(self.plan, released)
        found = []
        for branch, level, numbers in zip(self.branches, levels, noised, strict=True):
            _, place, at = np.intersect1d(branch.cells, level.cells, assume_unique=True, return_indices=True)
            found.append((branch, place, numbers[at]))
        return found


@dataclass(frozen=True, eq=False)
class LevelRatios(OfBranch):
    """Log-likelihood ratio of two patterns on each level, given the levels above."""

    def __call__(self, released: Any) -> Floats:
        """(levels,) numbers `sum((|o - T'| - |o - T|) / scale)`; 0 where no cell that differs is measured."""
        return np.array([branch.ratio(at, o).sum() for branch, at, o in self.seen(released)])


@dataclass(frozen=True, eq=False)
class PyramidRatio(LevelRatios):
    """Log-likelihood ratio of two patterns, given the noised counts of all measured cells."""

    def __call__(self, released: Any) -> float:  # type: ignore[override]
        """Sum over all levels."""
        return float(super().__call__(released).sum())


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


@dataclass(frozen=True, eq=False)
class LookedAt(OfBranch):
    """Number of measured cells on each level among those in which the patterns differ: the noise selects them."""

    def __call__(self, released: Any) -> Ints:
        """(levels,) numbers."""
        return np.array([len(at) for _, at, _ in self.seen(released)])


@dataclass(frozen=True, eq=False)
class LevelTotals:
    """Sum of all noised masses of each level, in persons: how many there are is secret."""

    plan: HeatmapStatistic

    def __call__(self, released: Any) -> Floats:
        """(levels,) numbers."""
        ends = np.cumsum(lengths(self.plan))
        sums = np.add.reduceat(released.lattice, np.concatenate([[0], ends[:-1]]))
        return np.asarray(sums * 2.0**-self.plan.bits, dtype=np.float64)


def lengths(plan: HeatmapStatistic) -> tuple[int, ...]:
    """Number of measured cells on each level."""
    budgets = plan.budgets
    return layout(budgets.first, budgets.depth, plan.kept, budgets.step)


def always_seen(plan: HeatmapStatistic, pair: Pair) -> tuple[Ints, Floats]:
    """Changes (k,) between two patterns in lattice units, and scales (k,) of their noise, of measured cells.

    Left out are cells that are not looked at in some runs, but for one run in a thousand.
    """
    sure = sure_branches(plan, pair)
    change = np.concatenate([branch.first - branch.second for branch in sure])
    return change, np.repeat([branch.scale for branch in sure], [len(branch.cells) for branch in sure])


def sure_branches(plan: HeatmapStatistic, pair: Pair) -> tuple[Branch, ...]:
    """The branches of a pair, restricted to cells that are measured in every run, up to probability `MISSED`."""
    sums = [level_masses(plan, pattern) for pattern in pair]
    found: list[Branch] = []
    parents = None
    for number, branch in enumerate(branches(plan, pair)):
        level = plan.budgets.levels[number]
        above = parents_of(branch.cells, level, plan.budgets.step)
        cells = np.isin(above, parents) if parents is not None else slice(None)
        found.append(Branch(branch.cells[cells], branch.first[cells], branch.second[cells], branch.scale))
        parents = found[-1].cells
        if number:
            sure = [_ahead(each[number], parents, plan) for each in sums]
            parents = parents[sure[0] & sure[1]]
    return tuple(found)


def parents_of(cells: Ints, level: int, step: int = 1) -> Ints:
    """(k,) codes of the cells, `step` levels above, that hold cells (k,) of a level."""
    u, v = np.divmod(cells, 2**level)
    return np.asarray((u >> step) * 2 ** max(level - step, 0) + (v >> step))


def _ahead(masses: Ints, cells: Ints, plan: HeatmapStatistic) -> Any:
    """(k,) whether cells are among the w fullest of a level whatever the noise, by its masses (4^i,) without noise."""
    if len(masses) <= plan.kept:
        return np.full(len(cells), True)
    # The cell itself may be one of the w + 1 fullest.
    rival = np.partition(masses, -plan.kept - 1)[-plan.kept - 1]
    return masses[cells] - rival >= 0.999 * attention(plan) * 2**plan.bits
