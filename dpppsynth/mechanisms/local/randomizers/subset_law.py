"""Integer weights of the subset exponential mechanism, and the epsilon that they certify.

Every subset of k cells has a whole-number weight that depends on the client's cell through their distance alone, and
every law of a client has one common total; what the subsets leave of it is the weight of the empty report. The numbers
have as many digits as it takes, so that rounding changes no probability by more than some 2^-64 of itself, however far
apart the likeliest and the rarest report are.

A shell of a cell are all cells at one distance from it. Cells that a turn or reflection of the grid carries into each
other form an orbit: they have shells of the same sizes, so whatever depends on these sizes is needed once an orbit.
"""

import decimal
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import LOST

# Cells along a side: tables of shells have side^4 entries.
MOST_SIDE = 64


@dataclass(frozen=True, eq=False)
class Shells:
    """Shells around every cell of a grid of `cells` by `cells` cells; cell (i, j) has number `i*cells + j`.

    Attributes
    ----------
    cells : int
        Cells along a side, at least 1.
    squares : (A,) array of int
        Squared distances that occur between any two cells, in cell sides, ascending from 0.
    rank : (m, m) array of int
        Of the distance between two of the `m = cells^2` cells: its place among `squares`.
    orbit : (m,) array of int
        Orbit of each cell.
    first : (B,) array of int
        A cell of each orbit.
    """

    cells: int
    squares: Ints
    rank: Ints
    orbit: Ints
    first: Ints

    @property
    def size(self) -> int:
        """Number m of cells."""
        return self.cells**2

    @cached_property
    def distances(self) -> Floats:
        """(A,) distances in cell sides."""
        return np.sqrt(self.squares)

    @cached_property
    def beyond(self) -> Ints:
        """(B, A + 1) numbers of cells at least as far as each distance from a cell of each orbit; 0 at the end."""
        width = len(self.squares)
        shell = np.arange(len(self.first))[:, None] * width + self.rank[self.first]
        sizes = np.bincount(shell.ravel(), minlength=len(self.first) * width).reshape(-1, width)
        return np.pad(np.cumsum(sizes[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    @cached_property
    def nearest(self) -> Ints:
        """(B, B) indices in `squares` of the least distance between cells of two orbits."""
        order = np.argsort(self.orbit, kind="stable")
        starts = np.searchsorted(self.orbit[order], np.arange(len(self.first)))
        return np.minimum.reduceat(self.rank[self.first][:, order], starts, axis=1)

    @cached_property
    def order(self) -> Ints:
        """(m, m) cells from the nearest to the farthest of each cell; its shells are runs of its row."""
        return np.argsort(self.rank, axis=1, kind="stable")

    def places(self, subsets: npt.NDArray[np.integer]) -> Ints:
        """(n, m) indices in the list of distances, for the distances between subsets and cells."""
        found = self.rank[subsets[:, 0]]
        for column in subsets.T[1:]:
            found = np.minimum(found, self.rank[column])
        return found


def shells(cells: int) -> Shells:
    """Shells of a grid with `cells` cells along a side, 1 to 64.

    Examples
    --------
    >>> shells(2).squares.tolist(), shells(2).beyond.tolist()
    ([0, 1, 2], [[4, 3, 1, 0]])
    """
    return _shells(whole("cells", cells, 1, most=MOST_SIDE))


@lru_cache(maxsize=4)
def _shells(cells: int) -> Shells:
    line = np.arange(cells)
    i, j = np.divmod(np.arange(cells**2), cells)
    squares = np.unique(np.add.outer(line**2, line**2))
    places = np.zeros(squares[-1] + 1, dtype=np.int32)
    places[squares] = np.arange(len(squares))
    rank = places[np.subtract.outer(i, i) ** 2 + np.subtract.outer(j, j) ** 2]
    near = np.sort([np.minimum(i, cells - 1 - i), np.minimum(j, cells - 1 - j)], axis=0)
    _, first, orbit = np.unique(near[0] * cells + near[1], return_index=True, return_inverse=True)
    return Shells(cells, squares, rank, orbit, first)


def mean_distance(cells: int) -> float:
    """Mean distance in cell sides between two distinct cells; 0 where there is only one.

    Examples
    --------
    >>> round(mean_distance(5), 6)
    2.653714
    """
    whole("cells", cells, 1, most=MOST_SIDE)
    # Number of occurrences of each offset along one axis.
    often = cells - np.arange(cells)
    often[1:] *= 2
    total = np.outer(often, often) * np.hypot.outer(np.arange(cells), np.arange(cells))
    return math.fsum(total.ravel()) / max(1, cells**2 * (cells**2 - 1))


def all_subsets(m: int, k: int, most: int) -> npt.NDArray[np.int16]:
    """(C(m, k), k) all subsets of k of m cells in lexicographic order; InputError where there are more than `most`."""
    number = math.comb(m, k)
    if number > most:
        msg = (
            f"subset: {k} of {m} cells have C({m}, {k}) = {shown(number)} subsets, and at most {most} can be listed; "
            "take a larger epsilon, a smaller subset, or fewer cells."
        )
        raise InputError(msg)
    flat = itertools.chain.from_iterable(itertools.combinations(range(m), k))
    return np.fromiter(flat, dtype=np.int16, count=number * k).reshape(number, k)


# Share of the budget reserved for rounding.
MARGIN = Decimal(2) ** -40
# Bits of the smallest weight, and of the largest allowed.
ACCURACY, MOST_BITS = 160, 2**13
# Decimal digits of logarithms and exponentials; with epsilon any smaller, differences of these would lose too many.
DIGITS, LEAST_EPSILON = 80, 1e-12


@dataclass(frozen=True, eq=False)
class SubsetLaw:
    """Weights of all reports given a client's cell, as whole numbers out of one total.

    Attributes
    ----------
    rate : Decimal
        Weights fall like `e^(-rate distance)`.
    unit : int
        Weight of a subset that holds the client's own cell.
    weights : tuple of int
        Weight of one subset at each of the (A,) distances of `Shells`.
    numbers : tuple of tuple of int
        Numbers of subsets at each distance, for a cell of each of the (B,) orbits.
    total : int
    empty : tuple of int
        Weight of the empty report, for a cell of each orbit.
    """

    rate: Decimal
    unit: int
    weights: tuple[int, ...]
    numbers: tuple[tuple[int, ...], ...]
    total: int
    empty: tuple[int, ...]
    shells: Shells

    @cached_property
    def log_weights(self) -> tuple[Decimal, ...]:
        """Logarithms of the weights of subsets, relative to the unit."""
        return _logarithms(self.weights, self.unit)

    @cached_property
    def log_empty(self) -> tuple[Decimal, ...]:
        """Logarithms of the weights of the empty report relative to the total; () where it is never sent."""
        return _logarithms(self.empty, self.total) if any(self.empty) else ()

    @cached_property
    def spent(self) -> float:
        """Epsilon per cell side that the integers certify, rounded up.

        With s the spread of `log w_a + rate D_a` over all distances D_a, two cells at distance t and a subset at
        distances D_a and D_b from them, `log(w_a / w_b) <= rate (D_b - D_a) + s <= (rate + s) t`: the distances differ
        by at most t, and t is at least 1. For the empty report the largest slope is taken over all pairs of orbits.
        """
        if not all(self.weights) or (any(self.empty) and not all(self.empty)):
            return math.inf
        with decimal.localcontext(prec=DIGITS):
            roots = [Decimal(int(square)).sqrt() for square in self.shells.squares]
            above = [log + self.rate * root for log, root in zip(self.log_weights, roots, strict=True)]
            slopes = [self.rate + max(above) - min(above)]
            for orbit, one in enumerate(self.log_empty):
                pairs = zip(self.log_empty, self.shells.nearest[orbit].tolist(), strict=True)
                slopes += [(one - other) / roots[a] for other, a in pairs if one > other]
            found = float(max(slopes))
            return found if Decimal(found) >= max(slopes) else math.nextafter(found, math.inf)


def subset_law(epsilon: float, shells: Shells, subset: int) -> SubsetLaw:
    """Whole-number law for subsets of `subset` cells, geo-indistinguishable with epsilon per cell side."""
    bits = ACCURACY + epsilon * float(shells.distances[-1]) / math.log(2)
    if bits > MOST_BITS or epsilon < LEAST_EPSILON:
        raise InputError(_beyond(epsilon, shells.cells))
    ways = [math.comb(n, subset) for n in range(shells.size + 1)]
    numbers = tuple(tuple(ways[a] - ways[b] for a, b in itertools.pairwise(row)) for row in shells.beyond.tolist())
    unit = 2 ** math.ceil(bits)
    with decimal.localcontext(prec=DIGITS):
        rate = Decimal(epsilon) * (1 - MARGIN)
        decay = [(-rate * Decimal(int(square)).sqrt()).exp() for square in shells.squares]
        weights = tuple(int(unit * each) for each in decay)
        masses = [sum(map(operator.mul, row, weights)) for row in numbers]
        total = _total(masses, [1 / each - 1 for each in decay], shells.nearest.tolist())
    empty = tuple(total - mass for mass in masses)
    law = SubsetLaw(rate, unit, weights, numbers, total, empty, shells)
    if not epsilon * (1 - LOST) <= law.spent <= epsilon:
        raise InputError(_beyond(epsilon, shells.cells))
    return law


def _total(masses: Sequence[int], growth: Sequence[Decimal], nearest: Sequence[Sequence[int]]) -> int:
    """Least total for which the empty reports of any two cells are as close as their subsets; the paper's Omega.

    Weights `total - mass` keep the bound `e^x` of two cells if `total >= mass + (mass - other) / (e^x - 1)`. The right
    side is largest, for cells of two orbits, where they are nearest.
    """
    total = max(masses)
    for mass, places in zip(masses, nearest, strict=True):
        for other, a in zip(masses, places, strict=True):
            if mass > other:
                total = max(total, mass + int((mass - other) / growth[a]) + 1)
    return total


def _logarithms(weights: Sequence[int], unit: int) -> tuple[Decimal, ...]:
    with decimal.localcontext(prec=DIGITS):
        return tuple((Decimal(weight) / unit).ln() for weight in weights)


def ratios(weights: Sequence[int], total: int) -> Floats:
    """Whole numbers over a total, each rounded once; both may be far beyond the range of floats."""
    return np.array([weight / total for weight in weights])


def _beyond(epsilon: float, cells: int) -> str:
    return (
        f"epsilon: {epsilon:g} per cell side is beyond what whole-number weights of {MOST_BITS} bits can express for a "
        f"grid of {cells} x {cells} cells; take one between 1e-6 and 50."
    )
