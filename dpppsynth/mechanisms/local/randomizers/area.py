"""Area mechanisms on a grid: cells in a disk, or in nested disks, around the value are reported more often.

At radius 0 all of them are randomised response over the cells, and at radius 1 the disk and the nested disks agree.

All are a footprint of weights around the value's cell over a base weight of 1, on an output domain so large that the
footprint of every value lies in it. The sum of weights is then the same for every value, and no ratio of two of them
exceeds e^epsilon. Radius 0 is randomised response over the cells.

A cell is named by its index, so the offset of two cells is a pair of whole numbers and the cell side is the unit. A
cell is high when its centre lies in the disk, mixed when the disk only reaches into it, and low otherwise. The share of
a mixed cell that counts as high is the area of the cell after its centre is drawn onto the circle while its borders
nearest to the middle stay where they are.

The mutual information of a value and its report is at most the report's entropy under a uniform law less its entropy
given the value. That bound depends on epsilon and the shape of the domain alone, so its maximiser is public.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from dpppsynth.core.arguments import finite, flag, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.em import (
    Fit,
    em_settings,
    expectation_maximisation,
    neighbour_smoothing,
)
from dpppsynth.mechanisms.local.randomizers.exact_sampling import TOTAL, ExcessLaw, draws, excess_law
from dpppsynth.mechanisms.local.randomizers.randomizer import CellRandomizer
from dpppsynth.models.channel_likelihood import FootprintChannel
from dpppsynth.spatial.simplex import possible

# Cells along a side of the grid of values and of the box of reports: arrays of the latter are kept.
MOST_SIDE, MOST_BOX = 1024, 4096


def offsets(radius: int) -> tuple[Ints, Ints]:
    """Offsets -radius .. radius along x as a column and along y as a row."""
    steps = np.arange(-radius, radius + 1)
    return steps[:, None], steps[None, :]


def high(x: Any, y: Any, radius: Any) -> np.ndarray:
    """Whether the centres of cells at these offsets lie in or on a circle of whole radius."""
    return np.asarray(np.square(x) + np.square(y) <= np.square(radius))


def reached(x: Any, y: Any, radius: Any) -> np.ndarray:
    """Whether a disk of whole radius holds the centre of a cell or has some of its inside."""
    # Twice the distances to the nearest borders, so that everything is compared as whole numbers.
    near = [np.maximum(2 * np.abs(each) - 1, 0) for each in (x, y)]
    inside = np.square(near[0]) + np.square(near[1]) < 4 * np.square(radius)
    return np.asarray(inside | high(x, y, radius))


def high_shares(x: Any, y: Any, radius: Any) -> Floats:
    """Shares, from 0 to 1, of cells at these offsets that count as high for a circle of whole radius.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), theorem VI.1, whose
    area is negative for some mixed cells, (3, 2) of radius 3 the first: here it is 0 there.

    Examples
    --------
    >>> high_shares([0, 1, 2], [0, 1, 1], 1).round(6).tolist()
    [1.0, 0.171573, 0.0]
    """
    x, y = np.asarray(x), np.asarray(y)
    centre = np.sqrt(np.maximum(np.square(x) + np.square(y), 1))
    drawn = radius / centre - 1
    sides = [np.maximum(drawn * np.abs(each) + 0.5, 0.0) for each in (x, y)]
    mixed = np.where(reached(x, y, radius), 4 * sides[0] * sides[1], 0.0)
    return np.where(high(x, y, radius), 1.0, mixed)


def output_mask(member: np.ndarray, cells: int) -> np.ndarray:
    """Cells of the box around the grid that belong to the footprint of some value."""
    radius = len(member) // 2
    box = np.arange(-radius, cells + radius)
    # For such a footprint the nearest value decides.
    rim = box - np.clip(box, 0, cells - 1) + radius
    return np.asarray(member[np.ix_(rim, rim)])


# Below, differences of exponentials lose digits, and their series are exact.
SMALL = 1e-4
# Tolerance for products that are whole numbers but for rounding.
GUARD = 1e-9
# A side of that length is beyond any use and short of overflow.
LONGEST = 1e300


def optimal_radius(epsilon: float, side: float = 1.0) -> float:
    """Radius of the disk area mechanism on a square that maximises the bound of mutual information.

    Parameters
    ----------
    epsilon : float
    side : float
        Of the square; the radius has the same unit.

    Raises
    ------
    InputError
        An argument is not a positive finite number.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section V.

    Examples
    --------
    >>> round(optimal_radius(3.5), 6)
    0.233247
    """
    epsilon, side = float(positive("epsilon", epsilon)), float(positive("side", side, most=LONGEST))
    # Beyond it the radius is zero in doubles.
    epsilon = min(epsilon, 1000.0)
    first, second = moments(epsilon)
    shrunk = math.exp(-epsilon)
    root = math.sqrt((2 * second * shrunk) ** 2 + math.pi * shrunk * first * second)
    return (2 * second * shrunk + root) / (math.pi * first) * side


def moments(epsilon: float) -> tuple[float, float]:
    """The paper's m1 = e^eps - 1 - eps and m2 = 1 - e^eps + eps e^eps over e^eps, up to a common factor.

    Relative to e^eps nothing overflows, and the radius depends on their ratio only.
    """
    if epsilon < SMALL:
        return 1 / 2 - epsilon / 3 + epsilon**2 / 8, 1 / 2 - epsilon / 6 + epsilon**2 / 24
    return -math.expm1(-epsilon) - epsilon * math.exp(-epsilon), epsilon + math.expm1(-epsilon)


def grid_radius(epsilon: float, cells: int) -> int:
    """Radius in whole cells on a square grid: the optimal radius rounded down.

    Examples
    --------
    >>> [grid_radius(3.5, cells) for cells in (4, 5, 10, 15, 20)]
    [0, 1, 2, 3, 4]
    """
    cells = whole("cells", cells, 1, most=MOST_SIDE)
    return math.floor(optimal_radius(epsilon) * cells + GUARD)


LARGEST_MATRIX = 100_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaRandomizer(CellRandomizer):
    """Base of the area mechanisms on a square grid: a cell in, a cell of the grid or of a rim around it out.

    Attributes
    ----------
    epsilon : float
    cells : int
        Along each axis of the grid; cell (i, j) is value `i * cells + j`.
    radius : int
        Of the disk and of the rim, in cells, at least 0; `grid_radius(epsilon, cells)` is a good one.
    """

    radius: int
    columns: ClassVar[tuple[str, ...]] = ("i", "j")

    def __post_init__(self) -> None:
        fewer = "take fewer, larger cells"
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_SIDE, remedy=fewer))
        most = (MOST_BOX - self.cells) // 2
        object.__setattr__(self, "radius", whole("radius", self.radius, 0, most=most, remedy="it is counted in cells"))
        super().__post_init__()

    @property
    def weights(self) -> Floats:
        """(2 radius + 1, 2 radius + 1) weights of offsets from the value, from 1 to e^epsilon."""
        raise NotImplementedError

    @property
    def member(self) -> np.ndarray:
        """(2 radius + 1, 2 radius + 1) mask of the offsets whose cells are outputs, whatever the value."""
        return reached(*offsets(self.radius), self.radius)

    @property
    def exponent(self) -> float:
        """Logarithm of the largest weight: epsilon, except in mechanisms that are not private."""
        return self.epsilon

    @property
    def clones(self) -> float:
        # Devices draw reports without it.
        from dpppsynth.privacy.shuffling import lone_clone_probability

        return super().clones if self.radius else lone_clone_probability(self.spent)

    @property
    def size(self) -> int:
        """Number of cells that are reported, those of the rim included."""
        return len(self.outputs)

    @property
    def spent(self) -> float:
        return self.law.spent

    @cached_property
    def box(self) -> np.ndarray:
        """(cells + 2 radius, cells + 2 radius) truth values: cells from -radius on that are reported."""
        return output_mask(self.member, self.cells)

    @cached_property
    def outputs(self) -> Ints:
        """(size, 2) indices (i, j) of the cells that are reported, in the order of counts: lexicographic."""
        return np.argwhere(self.box) - self.radius

    @cached_property
    def near(self) -> Ints:
        """(F, 2) offsets of the cells near a value that weigh more than 1, the heaviest first."""
        weights = self.weights
        order = np.argsort(-weights, axis=None, kind="stable")[: int((weights > 1).sum())]
        return np.column_stack(np.unravel_index(order, weights.shape)) - self.radius

    @cached_property
    def law(self) -> ExcessLaw:
        """Integer weights that reports are drawn with."""
        heaviest_first = self.weights[tuple((self.near + self.radius).T)]
        return excess_law(heaviest_first, self.size, self.exponent)

    @cached_property
    def _excess(self) -> Ints:
        table = np.zeros((2 * self.radius + 1,) * 2, dtype=np.int64)
        table[tuple((self.near + self.radius).T)] = self.law.excess
        return table

    @cached_property
    def _position(self) -> Ints:
        """Place in the order of counts of every cell of the box, -1 where none is reported."""
        return np.where(self.box, np.cumsum(self.box).reshape(self.box.shape) - 1, -1)

    def column(self, value: int) -> Ints:
        i, j = divmod(whole("value", value, 0, most=self.inputs - 1), self.cells)
        box = np.zeros(self.box.shape, dtype=np.int64)
        box[i : i + 2 * self.radius + 1, j : j + 2 * self.radius + 1] = self._excess
        return box[self.box] + self.law.base

    def matrix(self) -> Floats:
        """(size, inputs) probabilities of the reports given each value; columns sum to one.

        Raises
        ------
        InputError
            It has more than a hundred million entries; estimates and `column` need no matrix.
        """
        if self.size * self.inputs > LARGEST_MATRIX:
            msg = f"cells: a matrix of {self.size} x {self.inputs} entries is too large; `column(value)` gives parts."
            raise InputError(msg)
        matrix = np.empty((self.size, self.inputs))
        for value in range(self.inputs):
            matrix[:, value] = self.column(value) / TOTAL
        return matrix

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        split = self.law.split(draws(rng, len(values)))
        around = np.column_stack(np.divmod(values, self.cells)) + self.near[split.near]
        return np.where((split.output < 0)[:, None], around, self.outputs[split.output])

    def places(self, reports: Ints) -> Ints:
        if reports.size and not (-self.radius <= reports.min() and reports.max() < self.cells + self.radius):
            raise InputError(self._foreign())
        places = self._position[tuple((reports + self.radius).T)]
        if (places < 0).any():
            raise InputError(self._foreign())
        return places

    def _foreign(self) -> str:
        return (
            f"reports: some cell is none that a client with {self.cells} cells a side and radius {self.radius} sends; "
            "aggregate reports by the mechanism they were made with."
        )

    def published_settings(self, **given: Any) -> dict[str, Any]:
        """Settings `tolerance`, `max_iter` and `smoothing`, defaults filled in.

        Expectation maximisation stops when the log-likelihood changes by less than `tolerance`, by default
        `0.001 e^epsilon`. `smoothing` is the weight of each of four neighbours relative to the cell, by default 0.
        """
        smoothing = float(finite("smoothing", given.pop("smoothing", 0.0), least=0.0))
        return em_settings(given, tolerance=1e-3 * math.exp(self.epsilon)) | {"smoothing": smoothing}

    @cached_property
    def channel(self) -> FootprintChannel:
        return FootprintChannel((self.cells, self.cells), self._excess / TOTAL, self.law.base / TOTAL, self.box)

    def fit(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Fit:
        """Shares of the cells by expectation maximisation, with how the iteration ended."""
        counts, settings = self.counts_of(counts, n), self.published_settings(**settings)
        grid, weight, kept = (self.cells, self.cells), settings.pop("smoothing"), possible(inside, self.inputs)

        def smooth(theta: Floats) -> Floats:
            return neighbour_smoothing(theta.reshape(grid), weight, inside=kept.reshape(grid)).ravel()

        return expectation_maximisation(
            partial(self.channel.forward, least=0.0),
            partial(self.channel.backward, least=0.0),
            counts,
            start=kept.astype(float),
            smooth=smooth if weight else None,
            **settings,
        )

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        return self.fit(counts, n, inside=inside, **settings).warned().shares


# Integers out of 2^62 express no larger epsilon, and far beyond it exponentials overflow.
BEYOND = 50.0


@dataclass(frozen=True, kw_only=True, eq=False)
class DiskArea(AreaRandomizer):
    """Disk area mechanism: cells in the disk weigh e^epsilon, cells on its border in between, all others 1.

    Attributes
    ----------
    epsilon, cells, radius
        As of every area mechanism.
    shrink : bool
        Whether cells that the disk only reaches into count with their shrunken area, and not at all otherwise.
    tight : bool
        Whether only cells are reported whose centre lies in the disk of some value; not with `shrink`.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section VI.

    Examples
    --------
    >>> law = DiskArea(epsilon=1.0, cells=5, radius=1)
    >>> law.matrix().shape, round(float(law.matrix().max()), 6), round(law.spent, 6)
    ((49, 25), 0.046252, 1.0)
    >>> reports = law.draw(np.zeros(1000, dtype=int), np.random.default_rng(1))
    >>> law.reported(law.count(reports))
    1000
    """

    shrink: bool = True
    tight: bool = False
    kind: ClassVar[str] = "disk-area"

    def __post_init__(self) -> None:
        for name in ("shrink", "tight"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        if self.tight and self.shrink:
            msg = "tight: goes without shrunken border cells, which reach beyond the tight domain; give shrink=False."
            raise InputError(msg)
        super().__post_init__()

    @property
    def weights(self) -> Floats:
        at = offsets(self.radius)
        share = high_shares(*at, self.radius) if self.shrink else high(*at, self.radius)
        return 1 + math.expm1(min(self.exponent, BEYOND)) * share

    @property
    def member(self) -> np.ndarray:
        return (high if self.tight else reached)(*offsets(self.radius), self.radius)


@dataclass(frozen=True, kw_only=True, eq=False)
class HybridArea(AreaRandomizer):
    """Hybrid uniform-exponential mechanism: weights fall from e^epsilon by rings of one cell, to 1 outside the disk.

    Cells that a circle between two rings cuts are split by their shrunken area, so that the law is a mixture of nested
    disks. Radius 1 is the disk area mechanism.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), appendix; the main
    text lacks epsilon in the exponent.

    Examples
    --------
    >>> law = HybridArea(epsilon=1.0, cells=5, radius=2)
    >>> law.weights[2:, 2].round(6).tolist()
    [2.718282, 2.718282, 1.648721]
    """

    kind: ClassVar[str] = "hybrid-area"

    @property
    def weights(self) -> Floats:
        x, y = offsets(self.radius)
        ring = np.maximum(np.ceil(np.sqrt(x**2 + y**2)).astype(np.int64), 1)
        # A cell's nearest point is less than a cell nearer than its centre: only the ring's inner circle can cut it.
        cut = np.where(ring > 1, high_shares(x, y, np.minimum(ring - 1, self.radius)), 0.0)
        levels = self._levels()
        outer = np.minimum(ring, len(levels) - 1)
        return np.where(self.member, levels[outer] + cut * (levels[outer - 1] - levels[outer]), 1.0)

    def _levels(self) -> Floats:
        """Weights of ring 1 to radius and of everything outside; the first belongs to no ring."""
        steps = np.arange(max(self.radius, 1)) / max(self.radius, 1)
        levels = np.exp((1 - steps) * min(self.exponent, BEYOND))
        return np.concatenate([levels[:1], levels, [1.0]])
