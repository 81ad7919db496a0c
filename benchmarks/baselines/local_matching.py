"""Local privacy as the expected error of a Bayesian adversary, and budgets matched by it across mechanisms.

An adversary who knows that all cells are alike likely, and sees a report, draws a cell from its posterior law. Local
privacy is how far that cell lies from the client's on average, in cell sides. It says nothing of the worst case: a
subset exponential mechanism matched to a disk area mechanism is not locally differentially private with its epsilon.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import flag, instance, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.area import DiskArea, grid_radius
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential
from dpppsynth.mechanisms.local.randomizers.subset_law import MOST_SIDE, all_subsets, mean_distance, ratios, shells

# Subsets that a brute force looks at, and probabilities held in memory at once.
MOST_SUBSETS, BATCH = 10**6, 2**21
# Budgets between which a match is looked for, and how close to a jump its two sides are.
LEAST, LARGEST, BESIDE = 1e-6, 50.0, 1e-12
# Relative precision of a root.
NEAR = 1e-12


@dataclass(frozen=True, eq=False)
class Match:
    """Budget of a subset exponential mechanism with the local privacy of another mechanism.

    Attributes
    ----------
    epsilon : float
        Per cell side.
    subset : int
        Cells in a report.
    local_privacy, target : float
        Local privacy of the budget, and that asked for, in cell sides.
    jump : bool
        Whether the target lies between the two sides of a jump, where the subset's size changes; the budget is then
        the one on the side nearer to the target.
    bracket : (float, float)
        Budgets on either side of the target, next to each other but for rounding.
    """

    epsilon: float
    subset: int
    local_privacy: float
    target: float
    jump: bool
    bracket: tuple[float, float]


def local_privacy(randomizer: Randomizer, *, empty: bool = False, most: int = MOST_SUBSETS) -> float:
    """Mean distance in cell sides between a client's cell and one drawn from an adversary's posterior, prior uniform.

    By brute force over all reports.

    Parameters
    ----------
    randomizer : Randomizer
        Its values are the cells of a square grid of at most 64 x 64 cells.
    empty : bool
        Count the empty report of a subset exponential mechanism like any other. The paper leaves it out, as if the
        adversary then hit the client's cell, although the report tells next to nothing.
    most : int
        Subsets that the brute force may look at.

    Raises
    ------
    InputError
        The values are no such grid, or the reports are too many to list.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism).

    Examples
    --------
    >>> round(local_privacy(SubsetExponential(epsilon=1.0, cells=2, subset=1)), 6)
    0.740483
    """
    instance("randomizer", randomizer, Randomizer, "DiskArea(...) or SubsetExponential(...) make one")
    empty, most = flag("empty", empty), whole("most", most, 1)
    cells = math.isqrt(randomizer.inputs)
    most_cells = MOST_SIDE
    if cells**2 != randomizer.inputs or cells > most_cells:
        msg = (
            f"randomizer: its values must be the cells of a square grid of at most {most_cells} x {most_cells} cells, "
            f"got {shown(randomizer.inputs)} values."
        )
        raise InputError(msg)
    if isinstance(randomizer, SubsetExponential):
        chances = _subsets(randomizer, empty, most)
    else:
        chances = iter([(randomizer.matrix(), np.ones(1, dtype=np.int64))])
    table = shells(cells)
    distances = table.distances[table.rank]
    return math.fsum(float((times * _errors(part, distances)).sum()) for part, times in chances) / randomizer.inputs


def _errors(chances: Floats, distances: Floats) -> Floats:
    """(n,) for reports, their probabilities (n, m) given each cell: how far off the adversary is, times their sum."""
    total = chances.sum(axis=1)
    return ((chances @ distances) * chances).sum(axis=1) / np.where(total > 0, total, 1.0)


def _subsets(randomizer: SubsetExponential, empty: bool, most: int) -> Iterator[tuple[Floats, Ints]]:
    """Probabilities (n, m) of subsets, and how many (n,) each stands for: its images by turns and reflections."""
    subsets, times = _essential(randomizer.cells, randomizer.subset, most)
    chances = ratios(randomizer.law.weights, randomizer.law.total)
    batch = BATCH // randomizer.inputs + 1
    for start in range(0, len(subsets), batch):
        part = slice(start, start + batch)
        yield chances[randomizer.shells.places(subsets[part])], times[part]
    if empty:
        yield randomizer.empty[None], np.ones(1, dtype=np.int64)


@lru_cache(maxsize=8)
def symmetries_of(cells: int) -> Ints:
    """(8, m) where the turns and reflections of a grid carry each cell."""
    grid = np.arange(cells**2).reshape(cells, cells)
    turned = [np.rot90(grid, turns) for turns in range(4)]
    return np.array([each.ravel() for square in turned for each in (square, square.T)])


def _essential(cells: int, subset: int, most: int) -> tuple[npt.NDArray[np.int16], Ints]:
    """(n, subset) subsets of which none is another's image under the grid's symmetries, and (n,) sizes of their orbits.

    They are told apart by their number in the combinatorial number system.
    """
    subsets = all_subsets(cells**2, subset, most)
    symmetries, numbers = symmetries_of(cells).astype(np.int16), np.empty(len(subsets), dtype=np.int64)
    # Larger numbers belong to no subset: there are only so many.
    ways = [[min(math.comb(cell, k), len(subsets)) for k in range(1, subset + 1)] for cell in range(cells**2)]
    table, order = np.array(ways), np.arange(subset)
    batch = BATCH // subset + 1
    for start in range(0, len(subsets), batch):
        part = slice(start, start + batch)
        images = (np.sort(image[subsets[part]], axis=1) for image in symmetries)
        numbers[part] = np.min([table[image, order].sum(axis=1) for image in images], axis=0)
    _, first, times = np.unique(numbers, return_index=True, return_counts=True)
    return subsets[first], times


def matched_epsilon(epsilon: float, cells: int, *, empty: bool = False, most: int = MOST_SUBSETS) -> Match:
    """Budget per cell side at which the subset exponential mechanism has a disk area mechanism's local privacy.

    The size of subsets follows the budget (`subset_size`), and local privacy jumps where it changes. Sizes are gone
    through from 1 on, that is, from large budgets to small ones, until the target lies within what one of them reaches,
    where a root is found, or in the jump to the next.

    Parameters
    ----------
    epsilon : float
        Of the disk area mechanism, at its usual radius.
    cells : int
        Along each axis of the square grid.
    empty, most
        As `local_privacy` takes them.

    Raises
    ------
    InputError
        The budget is so small that subsets would be more than a brute force may look at, or that none is small enough:
        with the empty report left out, local privacy stays below some value however small the budget.

    Examples
    --------
    >>> found = matched_epsilon(3.5, 3)
    >>> round(found.epsilon, 3), found.subset, found.jump
    (1.984, 1, False)
    """
    rival = DiskArea(epsilon=epsilon, cells=cells, radius=grid_radius(epsilon, cells), shrink=True)
    target, before = local_privacy(rival), None
    for rate, subset in _ladder(rival.cells):
        found = _side(rate, subset, rival.cells, empty, most)
        if found.local_privacy >= target:
            return _matched(target, found, before or found, lambda rate, k: _side(rate, k, rival.cells, empty, most))
        before = found
    msg = (
        f"epsilon: {rival.epsilon:g} gives more local privacy than any subset exponential mechanism on {cells} x "
        f"{cells} cells whose empty report is left out; take a larger epsilon, or empty=True."
    )
    raise InputError(msg)


class _Side(NamedTuple):
    """A budget, the size of subsets there and the local privacy of both."""

    epsilon: float
    subset: int
    local_privacy: float


def _side(rate: float, subset: int, cells: int, empty: bool, most: int) -> _Side:
    law = SubsetExponential(epsilon=rate, cells=cells, subset=subset)
    return _Side(rate, subset, local_privacy(law, empty=empty, most=most))


def _ladder(cells: int) -> Iterator[tuple[float, int]]:
    """Budgets from large to small with their sizes of subsets: both ends of each interval of budgets with one size."""
    yield LARGEST, 1
    largest = (cells**2 + 1) // 2
    for subset in range(1, largest):
        # Where `subset_size` has this very number before it is rounded up.
        edge = math.log(cells**2 / subset - 1) / mean_distance(cells)
        yield edge * (1 + BESIDE), subset
        yield edge * (1 - BESIDE), subset + 1
    yield LEAST, largest


def _matched(target: float, low: _Side, high: _Side, side: Callable[[float, int], _Side]) -> Match:
    """Match between two sides: a root where the size of subsets is the same, else the side nearer to the target."""
    if low.subset != high.subset:
        nearer = min(low, high, key=lambda each: abs(each.local_privacy - target))
        return Match(*nearer, target, True, (low.epsilon, high.epsilon))
    if low == high:
        return Match(*low, target, False, (low.epsilon, low.epsilon))
    from scipy.optimize import brentq

    def excess(rate: float) -> float:
        return side(rate, low.subset).local_privacy - target

    root = brentq(excess, low.epsilon, high.epsilon, xtol=NEAR / 2)
    found = side(root, low.subset)
    return Match(*found, target, False, (root - NEAR, root + NEAR))
