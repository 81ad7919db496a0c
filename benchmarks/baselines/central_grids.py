"""Uniform and adaptive grids under central differential privacy, for comparison with the local ones.

The uniform and the adaptive grid of Qardaji, Yang & Li (2013), Differentially private grids for geospatial data, ICDE.
Noise is discrete Laplace on whole counts, and sides come from a public guess of the number of points, so nothing but
the noised counts depends on the points.
"""

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpppsynth.core.arguments import positive, probability, whole
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.grids.cuts import Agreeing, even_cells, pooled_levels
from dpppsynth.mechanisms.local.grids.rectangles import (
    MOST_CELLS,
    Bounds,
    Rectangles,
    checked_bounds,
    reals,
    uniform_grid,
    users,
)
from dpppsynth.mechanisms.local.grids.sides import LARGEST_EPSILON, SMALL, rounded_sides
from dpppsynth.privacy.bounds import DISCRETE, ONE_RELEASE, laplace_scale
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import DiscreteNoise, laplace_noise
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import AddRemove
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints

# Codes of assumptions: bounds, budget, constants and the guess of the number of points were chosen without looking at
# the points; all points lie inside the bounds, since others are refused; each person has one point.
PUBLIC, INSIDE, ONE_POINT = "public-grid-settings", "inside-bounds", "one-point-per-person"
BUDGET = f"be positive and at most {LARGEST_EPSILON}"
GUESS = "guess it from public knowledge, 1000 if need be"
# The second level's cells depend on the points through the noised counts of the first level alone.
TWO_LEVELS = "second-level-by-noised-counts"
# Constants of Qardaji et al.: cells per point and unit of epsilon, of one level and of the finer of two.
CENTRAL_C = 10.0
CENTRAL_C2 = 5.0
LEAST_CENTRAL_SIDE = 10


def central_uniform_side(epsilon: float, n: int, *, c: float = CENTRAL_C) -> int:
    """Side `sqrt(n eps / c)` of a grid of one level under central privacy, rounded up.

    Parameters
    ----------
    epsilon : float
    n : int
        A public guess of the number of points.
    c : float

    References
    ----------
    Qardaji, Yang & Li (2013), Differentially private grids for geospatial data, ICDE.
    """
    return int(rounded_sides([_central(epsilon, users("n", n), c, "c")], "ceil")[0])


def central_first_side(epsilon: float, n: int, *, c: float = CENTRAL_C) -> int:
    """Side `max(10, ceil(sqrt(n eps / c) / 4))` of the first level of two under central privacy."""
    return max(LEAST_CENTRAL_SIDE, int(rounded_sides([_central(epsilon, users("n", n), c, "c") / 4], "ceil")[0]))


def central_second_sides(counts: Any, epsilon: float, *, c2: float = CENTRAL_C2) -> Ints:
    """(K,) sides `ceil(sqrt(count eps / c2))` inside first-level cells, 1 where the noised count is not positive.

    Parameters
    ----------
    counts : (K,) array
        Noised counts of the first level.
    epsilon : float
        Budget of the second level.
    c2 : float
    """
    positive_part = np.maximum(reals("counts", counts, (None,)), 0.0)
    return rounded_sides(_central(epsilon, 1, c2, "c2") * np.sqrt(positive_part), "ceil")


def _central(epsilon: float, n: int, c: float, name: str) -> float:
    epsilon, c = positive("epsilon", epsilon, remedy=SMALL), positive(name, c, remedy="10 and 5 are usual")
    # No grid has so many cells; what is beyond need not be told apart.
    return min(float(MOST_CELLS), math.sqrt(n) * math.sqrt(epsilon) / math.sqrt(c))


def central_consistency(grid: Rectangles, first: Any, second: Any, share: float = 0.5) -> Agreeing:
    """`pooled_levels` of counts whose Laplace noise has the budgets `share * eps` and `(1 - share) * eps`."""
    share = probability("share", share, remedy="0.5 is usual")
    return pooled_levels(grid, first, second, first_weight=share**2, second_weight=(1 - share) ** 2)


@dataclass(frozen=True, eq=False)
class CentralEstimate:
    """Noised masses of a grid's cells; public from then on.

    Attributes
    ----------
    rectangles : Rectangles
    masses : (T,) array
        Estimated numbers of points; may be negative.
    guarantee : Guarantee
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    rectangles: Rectangles
    masses: Floats = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    seeded: bool

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of points in rectangles (R, 4)."""
        return self.rectangles.query(self.masses, rectangles)


@dataclass(frozen=True)
class CentralGrid:
    """Base of both grids: checked public numbers, and noised counts that are released once.

    Attributes
    ----------
    bounds : (float, float, float, float)
    epsilon : float
    expected_n : int
    c : float
    """

    bounds: Bounds
    _: KW_ONLY
    epsilon: float
    expected_n: int
    c: float = CENTRAL_C
    # Theorem of the guarantee, and assumptions beyond those of both grids.
    basis: ClassVar[str] = "counts"
    assumed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        bounds = self.bounds.bounds if isinstance(self.bounds, Window) else checked_bounds(self.bounds)
        epsilon = positive("epsilon", self.epsilon, rule=BUDGET, remedy="1.0 is usual", most=LARGEST_EPSILON)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "epsilon", float(epsilon))
        object.__setattr__(self, "expected_n", whole("expected_n", self.expected_n, 1, most=2**53, remedy=GUESS))
        object.__setattr__(self, "c", float(positive("c", self.c, remedy="10 is usual")))
        for budget in self._budgets():
            _noise(budget, None)

    @property
    def guarantee(self) -> Guarantee:
        """Pure differential privacy when a point is added or removed: one count of a level changes, by one."""
        assumed = (DISCRETE, ONE_RELEASE, PUBLIC, INSIDE, ONE_POINT, *self.assumed)
        return Guarantee(AddRemove(), PureDP(self.epsilon), self.basis, assumed)

    def release_counts(self, xy: Any, rng: RngLike = None) -> CentralEstimate:
        """Cells and their masses, from noised counts of points (n, 2).

        Parameters
        ----------
        xy : (n, 2) array
            In the bounds; may be empty.
        rng : optional
            Makes the noise reproducible, for studies: then nothing is private.

        Raises
        ------
        InputError
            When a point lies outside the bounds.
        """
        noise = None if rng is None else generator(rng)
        cells, masses = self._masses(xy, noise)
        return CentralEstimate(cells, masses, self.guarantee, noise is not None)

    def _budgets(self) -> tuple[float, ...]:
        """Epsilons of the levels, which add up to no more than `epsilon`."""
        raise NotImplementedError

    def _masses(self, xy: Any, rng: RngLike) -> tuple[Rectangles, Floats]:
        """Cells (T) and their masses (T,), from noised counts alone."""
        raise NotImplementedError


@dataclass(frozen=True)
class CentralUniformGrid(CentralGrid):
    """Counts of equal cells, `sqrt(n eps / c)` along each axis, with Laplace noise.

    Parameters
    ----------
    bounds : (float, float, float, float) or Window
        x0, y0, x1, y1; a window stands for its bounding box.
    epsilon : float
        At most 50.
    expected_n : int
        A public guess of the number of points, which is secret; it decides the number of cells.
    c : float

    Examples
    --------
    >>> grid = CentralUniformGrid((0, 0, 1, 1), epsilon=1.0, expected_n=40)
    >>> estimate = grid.release_counts([[0.1, 0.2], [0.7, 0.7]], rng=1)
    >>> len(estimate.rectangles), estimate.guarantee.epsilon(), estimate.query([[0, 0, 1, 1]]).shape
    (4, 1.0, (1,))
    """

    @property
    def rectangles(self) -> Rectangles:
        """The cells, known before anybody looks at points."""
        side = central_uniform_side(self.epsilon, self.expected_n, c=self.c)
        return uniform_grid(self.bounds, side, side)

    def _budgets(self) -> tuple[float, ...]:
        return (self.epsilon,)

    def _masses(self, xy: Any, rng: RngLike) -> tuple[Rectangles, Floats]:
        cells = self.rectangles
        return cells, _noise(self.epsilon, rng).add(cells.count(xy)).astype(float)


@dataclass(frozen=True)
class CentralAdaptiveGrid(CentralGrid):
    """A coarse grid of noised counts, each cell cut evenly into as many as its count deserves, and both levels agreed.

    Parameters
    ----------
    bounds : (float, float, float, float) or Window
        x0, y0, x1, y1; a window stands for its bounding box.
    epsilon : float
        At most 50.
    expected_n : int
        A public guess of the number of points, which is secret; it decides the first level.
    share : float
        Share of the budget for the first level.
    c, c2 : float
        Constants of both levels' sides.

    Examples
    --------
    >>> grid = CentralAdaptiveGrid((0, 0, 1, 1), epsilon=1.0, expected_n=1000)
    >>> estimate = grid.release_counts([(0.55, 0.55)] * 1000, rng=1)
    >>> len(grid.first), bool(estimate.rectangles.pieces.max() > 50)
    (100, True)
    """

    _: KW_ONLY
    share: float = 0.5
    c2: float = CENTRAL_C2
    basis: ClassVar[str] = "counts-of-two-levels"
    assumed: ClassVar[tuple[str, ...]] = (TWO_LEVELS,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", float(probability("share", self.share, remedy="0.5 is usual")))
        object.__setattr__(self, "c2", float(positive("c2", self.c2, remedy="5 is usual")))
        super().__post_init__()

    @property
    def budgets(self) -> tuple[float, float]:
        """Epsilons of both levels, which add up to no more than `epsilon`, exactly."""
        first = self.share * self.epsilon
        second = self.epsilon - first
        while Fraction(first) + Fraction(second) > Fraction(self.epsilon):
            second = math.nextafter(second, 0.0)
        return first, second

    @property
    def first(self) -> Rectangles:
        """The first level, known before anybody looks at points."""
        side = central_first_side(self.epsilon, self.expected_n, c=self.c)
        return uniform_grid(self.bounds, side, side)

    def _budgets(self) -> tuple[float, ...]:
        return self.budgets

    def _masses(self, xy: Any, rng: RngLike) -> tuple[Rectangles, Floats]:
        above, below = self.budgets
        coarse = _noise(above, rng).add(self.first.count(xy))
        cells = even_cells(self.first, central_second_sides(coarse, below, c2=self.c2))
        fine = _noise(below, rng).add(cells.count(xy))
        return cells, central_consistency(cells, coarse, fine, above / self.epsilon).second


def _noise(epsilon: float, rng: RngLike) -> DiscreteNoise:
    """Noise on counts of which one point changes one, by one; InputError where it would not fit into integers."""
    return laplace_noise(laplace_scale(1, epsilon), sensitivity=1, epsilon=epsilon, rng=rng)
