"""Heat maps of plain arrays, for benchmarks and tests: persons' distributions in, an average distribution out.

The measurement and the fits are those of `HeatmapSynthesizer`, here on the unit square, without a window, a certificate
or a ledger.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import elements, flag, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.heatmap import persons
from dpppsynth.mechanisms.heatmap.aggregation import measure_tree, require_exact
from dpppsynth.mechanisms.heatmap.bound import (
    DEEPEST,
    PUBLISHED,
    LevelBudgets,
    grid_depth,
    level_budgets,
    level_scales,
    require_measure,
)
from dpppsynth.mechanisms.heatmap.fitting import fitted, require_fit
from dpppsynth.mechanisms.heatmap.tree import CellTree, grow, pyramid
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import persons as numbers_of

Shape = tuple[int, int]
# Units of a person's masses in an array.
UNITS = 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Users(persons.Users):
    """Persons on the unit square, whose cells beyond `shape` fill up the square and hold nobody."""

    shape: Shape = (0, 0)

    def __post_init__(self) -> None:
        if self.shape == (0, 0):
            object.__setattr__(self, "shape", (self.side, self.side))

    @classmethod
    def from_arrays(cls, distributions: npt.ArrayLike) -> "Users":
        """Persons of masses (users, side, side), each person's of which add up to one; rounded to `2^-30`."""
        array = np.asarray(distributions, dtype=float)
        if array.ndim != 3 or not np.allclose(array.sum(axis=(1, 2)), 1):
            msg = "distributions: needs masses of shape (users, side, side) that add up to one for each person."
            raise InputError(msg)
        shape = grid_shape(array.shape[1:], True)
        depth = grid_depth(shape)
        units = np.rint(array * UNITS).astype(np.int64)
        user, i, j = units.nonzero()
        return cls(depth, user, i * 2**depth + j, units[user, i, j], shape)

    @classmethod
    def from_points(cls, xy: npt.ArrayLike, user: Any, *, side: int | Shape, pad: bool = False) -> "Users":
        """Persons of points (k, 2) in the unit square."""
        shape, at = grid_shape(side, pad), PointPattern.checked(xy)
        if not ((at >= 0) & (at < 1)).all():
            msg = "xy: coordinates must lie in [0, 1)."
            raise InputError(msg)
        i, j = np.floor(at * shape).astype(np.int64).T
        depth = grid_depth(shape)
        found = persons.Users.from_columns(numbers_of(user), i, j, side=2**depth)
        return cls(depth, found.user, found.cell, found.points, shape)

    @property
    def inside(self) -> np.ndarray | None:
        """(side, side) mask of the cells that may hold mass; None where all may."""
        if self.shape == (self.side, self.side):
            return None
        mask = np.zeros((self.side, self.side), dtype=bool)
        mask[: self.shape[0], : self.shape[1]] = True
        return mask

    @property
    def mass(self) -> Floats:
        """(k,) masses of the persons in the cells."""
        return self.points / persons.sums(self.user, self.points)[self.user]


def grid_shape(side: Any, pad: bool, name: str = "side") -> Shape:
    """Cells along x and y: of a square with a power of two, or of any rectangle with `pad`; InputError otherwise."""
    pad = flag("pad", pad)
    sides = [side, side] if isinstance(side, Integral) else elements(side) or []
    if len(sides) != 2:
        msg = f"{name}: needs a whole number, or one for each axis, got {shown(side)}."
        raise InputError(msg)
    nx, ny = (whole(name, each, 1, most=2**DEEPEST) for each in sides)
    if not pad and (nx != ny or nx.bit_count() > 1):
        msg = f"{name}: must be a power of two, the same along both axes, got {nx} x {ny}; pad=True takes any sides."
        raise InputError(msg)
    return nx, ny


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of the sum of all persons' distributions: masses (nx, ny), in persons."""

    masses: Floats

    @property
    def empty(self) -> bool:
        """Whether no mass was found, which makes the distribution uniform."""
        return not self.masses.any()

    @property
    def distribution(self) -> Floats:
        """(nx, ny) estimate of the average distribution; adds up to one."""
        return normalised(self.masses)


@dataclass(frozen=True, eq=False)
class Aggregation(Estimate):
    """Estimate by sparse aggregation, with the cells looked at and their noised counts."""

    budgets: LevelBudgets
    tree: CellTree


def as_users(distributions: npt.ArrayLike | Users) -> Users:
    """The persons, of whom arrays may tell."""
    return distributions if isinstance(distributions, Users) else Users.from_arrays(distributions)


def aggregate(distributions: npt.ArrayLike | Users, **settings: Any) -> Floats:
    """(nx, ny) private average of persons' distributions; settings as of `sparse_aggregate`."""
    return sparse_aggregate(distributions, **settings).distribution


def sparse_aggregate(
    distributions: npt.ArrayLike | Users,
    *,
    epsilon: float,
    w: int = 20,
    measure: int | None = None,
    variant: str = "practical",
    decay: float | None = None,
    fit: str = "l1",
    rng: RngLike = None,
) -> Aggregation:
    """Private average of persons' distributions with all measured counts.

    Parameters
    ----------
    distributions : array_like, shape (users, side, side), or Users
    epsilon, w, measure, variant, decay, fit
        As of `HeatmapSynthesizer`; `measure` is by default the grid.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, Algorithm 1.

    Examples
    --------
    >>> found = sparse_aggregate(np.zeros((0, 8, 8)), epsilon=1.0, w=3, rng=3)
    >>> found.empty, float(found.distribution.sum()), len(found.tree.levels)
    (True, 1.0, 4)
    """
    users = as_users(distributions)
    depth = users.depth if measure is None else require_measure(measure, users.depth)
    budgets = level_budgets(epsilon, depth, w, variant=variant, decay=decay)
    require_exact(level_scales(budgets))
    require_fit(fit, budgets)
    grid = np.ones((users.side, users.side)) if users.inside is None else users.inside.astype(float)
    inside = None if users.inside is None else pyramid(grid)[depth]
    kept = w if variant in PUBLISHED else 4**depth
    tree = measure_tree(pyramid(users.lattice()), budgets, w=kept, rng=rng, inside=inside)
    masses = fitted(tree, budgets, fit, inside=grid)[: users.shape[0], : users.shape[1]]
    return Aggregation(masses, budgets, tree)


def normalised(masses: Floats) -> Floats:
    """Masses divided by their sum; uniform where there are none, since another measurement would spend again."""
    total = masses.sum()
    return masses / total if total > 0 else np.full(masses.shape, 1 / masses.size)


def select_cells(levels: Any, w: int, inside: np.ndarray | None = None) -> CellTree:
    """Tree of the fullest cells of each level, from counts of all of them.

    Parameters
    ----------
    levels : sequence of array
        Noisy counts of the cells, one square array for each level from the first measured one, whose side names it, to
        the grid.
    w : int
        Cells to keep per level, among the children of those kept above.
    inside : (side, side) array of bool or float, optional
        As of `grow`.

    Examples
    --------
    >>> select_cells([[[10]], [[4, 3], [2, 1]]], w=2).levels[1].kept.tolist()
    [0, 1]
    """
    arrays = [np.asarray(level, dtype=float) for level in levels]
    first, depth = (len(array).bit_length() - 1 for array in (arrays[0], arrays[-1]))
    return grow(first, depth, w, lambda level, cells: arrays[level - first].ravel()[cells], inside)
