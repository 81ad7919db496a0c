"""Exact sampling from laws with integer weights of any size, vectorised over clients, without floating point.

Weights out of 2^62 do not suffice where a report is one of very many subsets. A uniform number from [0, 1) is then made
62 bits at a time and compared with exact fractions: the first bits decide but for some 2^-62 of all draws, and where
they do not, further ones do.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Ints
from dpppsynth.mechanisms.local.randomizers.weights import BITS, TOTAL, draws


@dataclass(frozen=True, eq=False)
class Choice:
    """A law of outcomes 0, 1, ..., each with its whole-number weight out of the sum of all, however large.

    Attributes
    ----------
    weights : sequence of int
        Not negative; not all zero.

    Examples
    --------
    >>> Choice((1, 0, 2)).pick(np.array([0, 2**61]), np.random.default_rng(1)).tolist()
    [0, 2]
    """

    weights: Sequence[int]

    def __post_init__(self) -> None:
        if not len(self.weights) or min(self.weights) < 0 or not self.total:
            msg = "weights: must be whole numbers that are not negative, and not all zero."
            raise InputError(msg)

    @cached_property
    def _ends(self) -> list[int]:
        return list(itertools.accumulate(self.weights))

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self._ends[-1]

    @cached_property
    def _floors(self) -> Ints:
        return np.array([(end << BITS) // self.total for end in self._ends], dtype=np.int64)

    def pick(self, first: Ints, rng: np.random.Generator) -> Ints:
        """(n,) outcomes, given the first 62 bits (n,) of each uniform number; more come from `rng` where needed."""
        found = np.searchsorted(self._floors, first, side="left")
        for k in np.flatnonzero(found < np.searchsorted(self._floors, first, side="right")):
            found[k] = self._settled(int(first[k]), rng)
        return found

    def _settled(self, digits: int, rng: np.random.Generator) -> int:
        """Outcome of a uniform number that starts with 62 such bits: bits are added until its place is certain."""
        unit = TOTAL
        while True:
            # The number lies in [digits, digits + 1) / unit; outcomes end at fractions of the total.
            least = bisect_right(self._ends, digits * self.total // unit)
            most = bisect_left(self._ends, -(-(digits + 1) * self.total // unit))
            if least == most:
                return least
            unit *= TOTAL
            digits = digits * TOTAL + int(draws(rng, 1)[0])


def uniform_below(bounds: Ints, rng: np.random.Generator) -> Ints:
    """(n,) integers, each uniform from 0 up to, without, its positive bound (n,)."""
    found = draws(rng, len(bounds))
    fair = TOTAL - TOTAL % bounds
    while len(again := np.flatnonzero(found >= fair)):
        found[again] = draws(rng, len(again))
    return found % bounds


def distinct(sizes: Ints, taken: Ints, rng: np.random.Generator) -> Ints:
    """(n, k) distinct positions: uniform subsets of two runs of positions, by Floyd's method, in no order.

    Parameters
    ----------
    sizes : (n, 2) array of int
        Lengths of the runs: the first one's positions start at 0, the second one's follow.
    taken : (n, 2) array of int
        Number of positions from each run; k in all, the same in every row.
    rng : numpy.random.Generator

    References
    ----------
    Bentley and Floyd (1987), A sample of brilliance, Communications of the ACM 30(9).
    """
    chosen = np.full((len(sizes), int(taken[0].sum()) if len(taken) else 0), -1, dtype=np.int64)
    for k in range(chosen.shape[1]):
        second = k >= taken[:, 0]
        run = second.astype(np.int64)[:, None]
        size, number = (np.take_along_axis(each, run, axis=1)[:, 0] for each in (sizes, taken))
        start, done = np.where(second, sizes[:, 0], 0), np.where(second, k - taken[:, 0], k)
        last = size - number + done
        position = start + uniform_below(last + 1, rng)
        double = (chosen[:, :k] == position[:, None]).any(axis=1)
        chosen[:, k] = np.where(double, start + last, position)
    return chosen


def meeting(at: Ints, far: Ints, k: int, rng: np.random.Generator) -> Ints:
    """(n, k) positions, in no order, of uniform subsets of `at + far` positions that meet the first `at` of them.

    Parameters
    ----------
    at, far : (n,) arrays of int
        At least one, and k in all.
    k : int
    rng : numpy.random.Generator
    """
    if not len(at):
        return np.empty((0, k), dtype=np.int64)
    if k == 1:
        return uniform_below(at, rng)[:, None]
    taken, base = draws(rng, len(at)), int(far.max(initial=0)) + 1
    for code, rows in groups(at * base + far):
        taken[rows] = _shared(*divmod(code, base), k).pick(taken[rows], rng)
    return distinct(np.stack([at, far], axis=1), np.stack([taken, k - taken], axis=1), rng)


@lru_cache(maxsize=4096)
def _shared(at: int, far: int, k: int) -> Choice:
    """Choice of how many of the k positions are among the first `at`; not none."""
    return Choice([0] + [math.comb(at, taken) * math.comb(far, k - taken) for taken in range(1, min(at, k) + 1)])


def groups(keys: Ints) -> list[tuple[int, Ints]]:
    """Keys that occur among (n,), each with the places where it does.

    Examples
    --------
    >>> [(key, places.tolist()) for key, places in groups(np.array([7, 3, 7]))]
    [(3, [1]), (7, [0, 2])]
    """
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(keys) else []
