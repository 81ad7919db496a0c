"""`Users`: sparse distributions of persons over a grid, validated, rounded to a lattice, and added up.

Every person's masses are rounded on their own to multiples of `2^-bits` that add up to at most one. Whole numbers add
exactly, so adding or removing a person changes a sum of them by at most `2^bits` units in L1, whatever the others are.
Messages never say which row or person breaks a rule, nor how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import elements, flag, instance, one_of, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Confidential
from dpppsynth.mechanisms.heatmap.bound import DEEPEST, grid_depth
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.spatial.domains import Window, as_reals
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import persons

if TYPE_CHECKING:
    import geopandas


Shape = tuple[int, int]
# Masses of a person may miss one by this much, which floating-point division may make of a distribution.
TOLERANCE = 1e-9
# A person and a cell in one 64-bit number.
CELL_BITS = 2 * DEEPEST
USER_BITS = 62 - CELL_BITS
# Whole numbers below `2^32` times `2^30` stay inside 64-bit integers.
MOST, FINEST = 2**32, 30
Outside = Literal["raise", "drop", "clip"]
# Sentinel for the whole square.
UNSET: Shape = (0, 0)


@dataclass(frozen=True, eq=False, repr=False)
class Users(Confidential):
    """Sparse distributions of persons over the cells of a square grid; as sensitive as their points.

    Build it with `from_arrays`, `from_columns`, `from_points` or `from_geodataframe`. Rows are put in order, those of
    one person in one cell added up, and rows without weight left out. Nobody at all is fine.

    Attributes
    ----------
    depth : int
        The grid has side `2^depth`.
    user : (k,) array of int
        Persons, numbered from 0.
    cell : (k,) array of int
        Cells `(i, j)` as `i * side + j`, i along x and j along y.
    weight : (k,) array
        Real numbers are masses, at most one in all for each person. Whole numbers count rows that weigh alike, and a
        person's are divided by their sum, which must be less than `2^32`.
    shape : (int, int)
        Cells along x and y that may hold mass; the others fill up the square. Whole numbers up to the side; the side
        itself unless given.

    Raises
    ------
    InputError
        A column breaks its rule, or a person's weights add up to too much. Messages never say whose, nor how many
        persons there are.

    Examples
    --------
    >>> users = Users.from_columns(["ann", "ann", "bob"], [0, 1, 1], [0, 0, 1], side=2)
    >>> users.total()
    array([[0.5, 0. ],
           [0.5, 1. ]])
    >>> users.lattice(bits=3)
    array([[4, 0],
           [4, 8]])
    """

    depth: int
    user: Ints
    cell: Ints
    weight: npt.NDArray[Any]
    shape: Shape = UNSET

    def __post_init__(self) -> None:
        depth = whole("depth", self.depth, 0, most=DEEPEST)
        shape = (2**depth, 2**depth) if self.shape is UNSET else grid_shape(self.shape, True, "shape")
        user, cell = whole_column("user", self.user, 2**62), whole_column("cell", self.cell, 4**depth)
        weight = weights(self.weight)
        if grid_depth(shape) > depth or not user.shape == cell.shape == weight.shape:
            msg = "user, cell, weight: must be columns of one length, and the shape must fit into the grid."
            raise InputError(msg)
        user, cell, weight = merged_rows(user, cell, weight)
        if ((cell >> depth) >= shape[0]).any() or (cell % 2**depth >= shape[1]).any():
            msg = "cell: must lie inside the shape; the cells beyond fill up the square, and hold no mass."
            raise InputError(msg)
        if weight.dtype.kind == "f":
            require_totals(sums(user, weight), allow_subprobability=True)
        else:
            require_countable(sums(user, weight))
        for name, value in {"user": user, "cell": cell, "weight": weight}.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "shape", shape)

    def __repr__(self) -> str:
        return f"Users({self.shape[0]} x {self.shape[1]} cells)"

    @classmethod
    def from_arrays(
        cls, distributions: npt.ArrayLike, *, pad: bool = False, allow_subprobability: bool = False
    ) -> Users:
        """Take one array of masses for each person.

        Parameters
        ----------
        distributions : array_like, shape (users, side, side)
            Non-negative; each person's add up to one. `np.zeros((0, side, side))` is nobody.
        pad : bool
            Accept sides that are no powers of two, and rectangles: they fill up a square whose other cells never get
            any mass.
        allow_subprobability : bool
            Accept persons whose masses add up to less than one, or to nothing.

        Raises
        ------
        InputError
            Wrong shape, a mass that is negative or not finite, or a person's masses do not add up to one.
        """
        rule = "distributions: needs masses of shape (users, side, side), one square array for each person"
        array = as_reals(distributions, f"{rule}.")
        if array.ndim != 3:
            msg = f"{rule}; one array alone is array[None], and nobody is np.zeros((0, side, side))."
            raise InputError(msg)
        shape = grid_shape(array.shape[1:], pad)
        require_totals(masses(array).sum(axis=(1, 2)), allow_subprobability=allow_subprobability)
        user, i, j = np.nonzero(array)
        return cls._on(shape, user, i, j, array[user, i, j])

    @classmethod
    def from_columns(
        cls,
        user: Any,
        i: npt.ArrayLike,
        j: npt.ArrayLike,
        mass: npt.ArrayLike | None = None,
        *,
        side: int | Shape,
        pad: bool = False,
        allow_subprobability: bool = False,
    ) -> Users:
        """Take a table with one row for each person and cell; rows may repeat.

        Parameters
        ----------
        user : sequence, length k
            Labels of the persons: texts or whole numbers, none of them missing. The number 7, "7" and "007" are
            three persons. Anything else is refused, since equality might differ between tables.
        i, j : array_like, shape (k,)
            Cells along x and y, numbered from 0.
        mass : array_like, shape (k,), optional
            Those of a person add up to one. None: every row counts alike within its person, in exact arithmetic.
        side : int or (int, int)
            Cells along both axes, or along each.
        pad, allow_subprobability : bool
            As in `from_arrays`.

        Raises
        ------
        InputError
            A column breaks its rule, or a person's masses do not add up to one.
        """
        shape = grid_shape(side, pad)
        number, along_x, along_y = persons(user), whole_column("i", i, shape[0]), whole_column("j", j, shape[1])
        weight = np.ones(len(number), dtype=np.int64) if mass is None else masses(mass)
        if not number.shape == along_x.shape == along_y.shape == weight.shape:
            msg = "user, i, j, mass: must be columns with one entry for each row, and differ in length."
            raise InputError(msg)
        if mass is not None:
            require_totals(sums(number, weight), allow_subprobability=allow_subprobability)
        return cls._on(shape, number, along_x, along_y, weight)

    @classmethod
    def from_points(
        cls, xy: npt.ArrayLike, user: Any, *, side: int | Shape, outside: Outside = "raise", pad: bool = False
    ) -> Users:
        """Take points in the unit square, those of a person weighing alike.

        Parameters
        ----------
        xy : array_like, shape (k, 2)
            Coordinates in [0, 1).
        user : sequence, length k
            Labels of the persons, as in `from_columns`.
        side : int or (int, int)
            Cells along both axes, or along each.
        outside : {"raise", "drop", "clip"}
            Points outside are an error, left out, or moved to the nearest cell, before a person's points are counted.
        pad : bool
            As in `from_arrays`.

        Raises
        ------
        InputError
            A coordinate is not finite or, unless told otherwise, outside [0, 1).
        """
        shape, at, number = grid_shape(side, pad), PointPattern.checked(xy), persons(user)
        one_of("outside", outside, ("raise", "drop", "clip"))
        if len(number) != len(at):
            msg = "user: must have one label for each point."
            raise InputError(msg)
        within = ((at >= 0) & (at < 1)).all(axis=1)
        if outside == "raise" and not within.all():
            msg = 'xy: coordinates must lie in [0, 1); outside="drop" leaves others out, outside="clip" moves them.'
            raise InputError(msg)
        if outside == "drop":
            at, number = at[within], number[within]
        return cls._on(shape, number, *cells_at(at, shape), np.ones(len(at), dtype=np.int64))

    @classmethod
    def from_geodataframe(
        cls, gdf: geopandas.GeoDataFrame, window: Window, *, user: str | None, shape: int | Shape
    ) -> Users:
        """Take points on a grid over the bounding box of a public window, those of a person weighing alike.

        Parameters
        ----------
        gdf : GeoDataFrame
            Points in the window and in its CRS; none at all is nobody.
        window : Window
        user : str or None
            Column of labels of the persons, read as `PointPattern.from_geodataframe` reads it; None: every point is a
            person of its own.
        shape : int or (int, int)
            Cells along x and y, no powers of two needed. The right and upper edges belong to the last cells.

        Raises
        ------
        InputError
            As for `PointPattern.from_geodataframe`, or a label is missing.
        """
        x0, y0, x1, y1 = instance("window", window, Window).bounds
        cells = grid_shape(shape, True, "shape")
        if _is_empty(gdf, user):
            return cls._on(cells, *np.zeros((4, 0), dtype=np.int64))
        pattern = PointPattern.from_geodataframe(gdf, window, user=user)
        number = np.arange(len(pattern)) if user is None else persons((pattern.marks or {})[user])
        at = cells_at((pattern.xy - (x0, y0)) / (x1 - x0, y1 - y0), cells)
        return cls._on(cells, number, *at, np.ones(len(number), dtype=np.int64))

    @classmethod
    def _on(cls, shape: Shape, user: Ints, i: Ints, j: Ints, weight: npt.NDArray[Any]) -> Users:
        depth = grid_depth(shape)
        return cls(depth, user, i * 2**depth + j, weight, shape)

    @property
    def side(self) -> int:
        """Cells along each axis of the square grid."""
        return 1 << self.depth

    @property
    def inside(self) -> npt.NDArray[np.bool_] | None:
        """(side, side) mask of the cells that may hold mass; None where all may."""
        if self.shape == (self.side, self.side):
            return None
        mask = np.zeros((self.side, self.side), dtype=bool)
        mask[: self.shape[0], : self.shape[1]] = True
        return mask

    @property
    def mass(self) -> Floats:
        """(k,) masses; a person's add up to at most one."""
        if self.weight.dtype.kind == "f":
            return self.weight
        return self.weight / sums(self.user, self.weight)[self.user]

    def total(self) -> Floats:
        """(side, side) sum of all persons' masses, without noise."""
        total = np.zeros(self.side**2)
        np.add.at(total, self.cell, self.mass)
        return total.reshape(self.side, self.side)

    def lattice(self, bits: int = LATTICE_BITS) -> Ints:
        """(side, side) sum of all persons' masses in units of `2^-bits`, without noise.

        Each person's masses are rounded on their own and add up to at most `2^bits`, exactly that for a distribution:
        adding or removing a person changes this by at most `2^bits` in L1. Largest remainders go up, lower cells first.

        Parameters
        ----------
        bits : int
            From 0 to 30.
        """
        bits = whole("bits", bits, 0, most=FINEST)
        total = np.zeros(self.side**2, dtype=np.int64)
        np.add.at(total, self.cell, rounded(self.user, self.weight, bits))
        return total.reshape(self.side, self.side)


def _is_empty(gdf: Any, user: str | None) -> bool:
    """Whether a GeoDataFrame with a column of persons, unless none is named, has no rows; a pattern is never empty."""
    import geopandas

    return isinstance(gdf, geopandas.GeoDataFrame) and not len(gdf) and (user is None or user in gdf.columns)


def user_distribution(points: npt.ArrayLike, side: int, *, outside: Outside = "raise") -> Floats:
    """Distribution of one person's points in the unit square, each of the same weight; all zero without points.

    Parameters
    ----------
    points : array_like, shape (k, 2)
        Coordinates in [0, 1).
    side : int
        Cells along each axis, a power of two.
    outside : {"raise", "drop", "clip"}
        As in `Users.from_points`.

    Returns
    -------
    (side, side) array

    Examples
    --------
    >>> user_distribution([[0.1, 0.2], [0.3, 0.9]], 2)
    array([[0.5, 0.5],
           [0. , 0. ]])
    """
    at = PointPattern.checked(points)
    return Users.from_points(at, np.zeros(len(at), dtype=np.int64), side=side, outside=outside).total()


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


def cells_at(xy: Floats, shape: Shape) -> tuple[Ints, Ints]:
    """(k,) cells along x and y of points (k, 2) in the unit square; what lies beyond it goes to the nearest cell."""
    at = np.clip(np.floor(xy * shape), 0, np.array(shape) - 1).astype(np.int64)
    return at[:, 0], at[:, 1]


def whole_column(name: str, values: Any, end: int) -> Ints:
    """(k,) whole numbers from 0 to end - 1; InputError otherwise."""
    rule = f"{name}: needs a column of whole numbers from 0 to {end - 1}."
    found = values if hasattr(values, "dtype") else column(elements(values) or [])
    numbers: npt.NDArray[Any] = found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)
    # Real numbers cannot tell large whole ones apart.
    kinds = "iuf" if end <= 2**53 else "iu"
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in kinds):
        raise InputError(rule)
    if not ((numbers >= 0) & (numbers < end) & (numbers == np.floor(numbers))).all():
        raise InputError(rule)
    return numbers.astype(np.int64)


def masses(values: Any) -> Floats:
    """Array of masses; InputError unless they are finite, non-negative real numbers."""
    rule = "mass: every mass must be a finite, non-negative number; some are not. Repair or leave out these rows."
    array = as_reals(values, rule)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(rule)
    return array


def weights(values: Any) -> npt.NDArray[Any]:
    """Array of masses or, from one of whole numbers, of numbers that may be added up; InputError otherwise."""
    array = masses(values)
    if getattr(values, "dtype", array.dtype).kind not in "iu":
        return array
    require_countable(np.asarray(values))
    return np.asarray(values).astype(np.int64)


def require_countable(total: npt.NDArray[Any]) -> None:
    """Refuse whole numbers whose products with the lattice's units would not fit into 64 bits."""
    if (total >= MOST).any():
        msg = "weight: a person's whole numbers must add up to less than 2^32; divide them by their sum, as masses."
        raise InputError(msg)


def require_totals(total: Floats, *, allow_subprobability: bool) -> None:
    """Refuse persons whose masses add up to a total (persons,) above one or, unless allowed, below."""
    if (total > 1 + TOLERANCE).any():
        msg = "mass: a person's masses must add up to at most one; divide each person's by their sum."
        raise InputError(msg)
    if not flag("allow_subprobability", allow_subprobability) and (total < 1 - TOLERANCE).any():
        msg = (
            "mass: each person's masses must add up to one; divide each person's by their sum, or pass "
            "allow_subprobability=True, which lets persons weigh less."
        )
        raise InputError(msg)


def merged_rows(user: Ints, cell: Ints, weight: npt.NDArray[Any]) -> tuple[Ints, Ints, npt.NDArray[Any]]:
    """Rows by person and cell, persons numbered from 0, equal cells of one added up, and rows without weight left out.

    The result does not depend on the order of the rows.
    """
    keep = weight > 0
    user, cell, weight = user[keep], cell[keep], weight[keep]
    if user.max(initial=0) >> USER_BITS:
        user = np.unique(user, return_inverse=True)[1]
    # One number to sort by is quicker than two.
    key = (user << CELL_BITS) | cell
    order = _order(key, weight)
    key, weight = key[order], weight[order]
    new = np.diff(key, prepend=-1) > 0
    total = np.zeros(int(new.sum()), dtype=weight.dtype)
    np.add.at(total, np.cumsum(new) - 1, weight)
    key = key[new]
    another = np.diff(key >> CELL_BITS, prepend=-1) > 0
    return np.cumsum(another) - 1, key & ((1 << CELL_BITS) - 1), total


def _order(key: Ints, weight: npt.NDArray[Any]) -> Ints:
    """(k,) places of the rows by key and, where a sum of equal ones depends on their order, by weight."""
    order = np.argsort(key)
    if weight.dtype.kind == "f":
        tied = np.flatnonzero(np.diff(key[order]) == 0)
        tied = np.union1d(tied, tied + 1)
        rows = order[tied]
        order[tied] = rows[np.lexsort([weight[rows], key[rows]])]
    return order


def rounded(user: Ints, weight: npt.NDArray[Any], bits: int) -> Ints:
    """Weights in units of `2^-bits`, largest remainders up, and a person's together at most `2^bits`.

    Of equal remainders the first goes up. A person's result depends on that person's rows alone.

    Parameters
    ----------
    user : (k,) array of int
        Persons, numbered from 0, their rows together and in order.
    weight : (k,) array
        Real numbers are masses. Whole numbers, which add up to less than `MOST`, are divided by their sum over the
        person, in exact arithmetic.
    bits : int
        At most `FINEST`.

    Returns
    -------
    (k,) array of int
        A person's add up to `2^bits` where the masses add up to one, and to the nearest whole number where to less.

    Examples
    --------
    >>> rounded(np.array([0, 0, 0, 1]), np.array([1, 1, 1, 7]), bits=3)
    array([3, 3, 2, 8])
    """
    low, rest, target = _parts(user, weight, bits)
    start = np.searchsorted(user, np.arange(len(target)))
    missing = target - sums(user, low)
    # Sorting within persons leaves the column of persons as it is.
    order = np.lexsort([-rest, user])
    low[order] += np.arange(len(low)) - start[user] < missing[user]
    # Cut each person off at 2^bits units: the sensitivity does not rest on floating-point sums.
    low = np.clip(low, 0, 2**bits)
    before = np.cumsum(low) - low
    room = 2**bits - (before - before[start][user])
    return np.minimum(low, np.maximum(room, 0))


def sums(user: Ints, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(persons,) sums of persons' weights, exact for whole numbers, and for others taken in the order of their rows."""
    total = np.zeros(int(user.max(initial=-1)) + 1, dtype=weight.dtype)
    np.add.at(total, user, weight)
    return total


def _parts(user: Ints, weight: npt.NDArray[Any], bits: int) -> tuple[Ints, npt.NDArray[Any], Ints]:
    """(k,) weights rounded down, (k,) remainders, and (persons,) what each person's units shall add up to."""
    total = sums(user, weight)
    if weight.dtype.kind == "i":
        low, rest = np.divmod(weight << bits, total[user])
        return low, rest, np.full(len(total), 2**bits)
    scaled = weight * 2.0**bits
    low = np.floor(scaled).astype(np.int64)
    return low, scaled - low, np.minimum(np.rint(total * 2.0**bits), 2**bits).astype(np.int64)
