"""What an audit of a noised pyramid of counts looks at: the cells in which the two inputs differ, level by level.

Which cells of a level are looked at follows from the noised levels above, which are released. So given the release
the law of every number is known, and the likelihood ratio is exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.auditing.persons import Pair, attention
from dpppsynth.heatmaps.plan import HeatmapPlan
from dpppsynth.heatmaps.pyramid import pyramid
from dpppsynth.mesh import Floats, Ints
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy.pyramids import layout


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


def branches(plan: HeatmapPlan, pair: Pair) -> tuple[Branch, ...]:
    """The cells in which a pair differs, for each measured level.

    Parameters
    ----------
    plan : HeatmapPlan
    pair : tuple of PointPattern
    """
    found = []
    for first, second, scale in zip(*(_levels(plan, pattern) for pattern in pair), plan.scales, strict=True):
        cells = np.flatnonzero(first != second)
        found.append(Branch(cells, first[cells], second[cells], scale))
    return tuple(found)


def _levels(plan: HeatmapPlan, pattern: PointPattern) -> list[Ints]:
    """(4^i,) masses of each measured level in lattice units, without noise."""
    levels = pyramid(plan.users(pattern).lattice(plan.bits))
    return [level.ravel() for level in levels[plan.budgets.first :]]


@dataclass(frozen=True, eq=False)
class OfBranch:
    """Base of statistics of the cells in which two patterns differ, as far as they were looked at."""

    plan: HeatmapPlan
    branches: tuple[Branch, ...]

    def seen(self, released: Any) -> list[tuple[Branch, Ints, Ints]]:
        """For each level the branch, positions of its cells that were looked at, and their noised masses."""
        levels = self.plan.tree(released.lattice).levels
        noised = np.split(released.lattice, np.cumsum(lengths(self.plan))[:-1])
        found = []
        for branch, level, numbers in zip(self.branches, levels, noised, strict=True):
            _, place, at = np.intersect1d(branch.cells, level.cells, assume_unique=True, return_indices=True)
            found.append((branch, place, numbers[at]))
        return found


@dataclass(frozen=True, eq=False)
class PyramidRatio(OfBranch):
    """Log-likelihood ratio of two patterns, given the noised cells that were looked at."""

    def __call__(self, released: Any) -> float:
        """`sum((|o - T'| - |o - T|) / scale)` over all levels."""
        return float(
            sum(
                (np.abs(o - branch.second[at]) - np.abs(o - branch.first[at])).sum() / branch.scale
                for branch, at, o in self.seen(released)
            )
        )


@dataclass(frozen=True, eq=False)
class Excess(OfBranch):
    """By how much the cells of each level exceed what they hold without the change, in persons."""

    def __call__(self, released: Any) -> Floats:
        """(levels,) numbers; 0 where none is looked at."""
        unit = 2.0**-self.plan.bits
        return np.array([(o - branch.second[at]).sum() * unit for branch, at, o in self.seen(released)])


@dataclass(frozen=True, eq=False)
class LookedAt(OfBranch):
    """How many cells of each level are looked at of those in which the patterns differ: they are chosen by noise."""

    def __call__(self, released: Any) -> Ints:
        """(levels,) numbers."""
        return np.array([len(at) for _, at, _ in self.seen(released)])


@dataclass(frozen=True, eq=False)
class LevelTotals:
    """Sum of all noised masses of each level, in persons: how many there are is secret."""

    plan: HeatmapPlan

    def __call__(self, released: Any) -> Floats:
        """(levels,) numbers."""
        ends = np.cumsum(lengths(self.plan))
        sums = np.add.reduceat(released.lattice, np.concatenate([[0], ends[:-1]]))
        return np.asarray(sums * 2.0**-self.plan.bits, dtype=np.float64)


def lengths(plan: HeatmapPlan) -> tuple[int, ...]:
    """How many cells are looked at on each level."""
    return layout(plan.budgets.first, plan.depth, plan.w)


def always_seen(plan: HeatmapPlan, pair: Pair) -> tuple[Ints, Floats]:
    """Changes (k,) between two patterns in lattice units and scales (k,) of their noise, of cells that are looked at.

    Left out are cells that are not looked at in some runs, but for one run in a thousand.
    """
    sums = [_levels(plan, pattern) for pattern in pair]
    change: list[Ints] = []
    scale: list[Floats] = []
    watched, parents = branches(plan, pair), None
    for number, branch in enumerate(watched):
        level = plan.budgets.first + number
        cells = np.isin(_parents(branch.cells, level), parents) if parents is not None else slice(None)
        change.append((branch.first - branch.second)[cells])
        scale.append(np.full(len(change[-1]), branch.scale))
        kept = branch.cells[cells]
        if number:
            sure = [_ahead(each[number], kept, plan) for each in sums]
            kept = kept[sure[0] & sure[1]]
        parents = kept
    return np.concatenate(change), np.concatenate(scale)


def _parents(cells: Ints, level: int) -> Ints:
    u, v = np.divmod(cells, 2**level)
    return np.asarray(u // 2 * 2 ** (level - 1) + v // 2)


def _ahead(masses: Ints, cells: Ints, plan: HeatmapPlan) -> Any:
    """(k,) whether cells are among the w fullest of a level whatever the noise, by its masses (4^i,) without noise."""
    if len(masses) <= plan.w:
        return np.full(len(cells), True)
    # Of w + 1 fullest cells one may be the cell itself.
    rival = np.partition(masses, -plan.w - 1)[-plan.w - 1]
    return masses[cells] - rival >= 0.999 * attention(plan) * 2**plan.bits
