"""Rounding of persons' masses to whole units, which makes the sensitivity of a heat map exact.

Every person's masses are rounded on their own to multiples of `2^-bits` that add up to at most one. Whole numbers add
exactly, so adding or removing a person changes a sum of them by at most `2^bits` units in L1, whatever else is in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.spatial.mesh import Ints

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
