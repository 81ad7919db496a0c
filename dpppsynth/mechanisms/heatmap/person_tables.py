"""Validation, sorting and rounding of tables of persons and cells.

Every person's masses are rounded on their own to multiples of `2^-bits` that add up to at most one. Whole numbers add
exactly, so adding or removing a person changes a sum of them by at most `2^bits` units in L1, whatever else is in it.
Messages never tell which row or person breaks a rule, nor how many there are.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import elements, flag, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import DEEPEST
from dpppsynth.spatial.domains import as_reals
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.mesh import Floats, Ints

Shape = tuple[int, int]

# Masses of a person may miss one by this much, which floating-point division may make of a distribution.
TOLERANCE = 1e-9
# A person and a cell in one 64-bit number.
CELL_BITS = 2 * DEEPEST
USER_BITS = 62 - CELL_BITS


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


# Whole numbers below `2^32` times `2^30` stay inside 64-bit integers.
MOST, FINEST = 2**32, 30


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
    # Whatever rounding did to real numbers, a person's units end at 2^bits: no float is trusted with the sensitivity.
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
