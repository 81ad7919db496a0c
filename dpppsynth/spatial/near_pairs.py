"""Pairs of near places, in whole numbers: each pair depends on its two places alone.

Candidates are joined by equal keys of whole numbers, and compared in whole numbers. No tree, no matrix product and no
floating-point distance takes part, whose rounding might depend on what else is in memory.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dpppsynth.core.types import Ints

# Candidates that are looked at together.
BLOCK = 2**22


class NearPairs(NamedTuple):
    """Pairs of different places by their numbers (k,), each once and the smaller first.

    They are so far apart (k,), or the square of that, in whole units.
    """

    first: Ints
    second: Ints
    apart: Ints

    @classmethod
    def joined(cls, parts: list["NearPairs"]) -> "NearPairs":
        """All pairs of several lists."""
        if not parts:
            return cls(*np.empty((3, 0), dtype=np.int64))
        first, second, apart = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(first, second, apart)

    def nearest(self) -> "NearPairs":
        """Each pair at the least of its distances, where pairs were met several times."""
        order = np.lexsort((self.apart, self.second, self.first))
        first, second, apart = (each[order] for each in self)
        new = (np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=-1) != 0)
        return NearPairs(first[new], second[new], apart[new])


def products(start: Ints, count: Ints, other_start: Ints, other_count: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """All pairs of members of corresponding ranges of two lists, block by block.

    Range k of one list is paired with range k of another. Each block tells the numbers of the range, of the member of
    one list and of the member of the other.
    """
    size = count * other_count
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    for low in range(0, total, BLOCK):
        high = min(low + BLOCK, total)
        # Ranges that reach into the block, and how many of their pairs lie in it.
        rows = np.arange(np.searchsorted(ends, low, side="right"), np.searchsorted(ends, high) + 1)
        row = np.repeat(rows, np.minimum(ends[rows], high) - np.maximum(ends[rows] - size[rows], low))
        within = np.arange(low, high) - (ends - size)[row]
        one = within // other_count[row]
        yield row, start[row] + one, other_start[row] + within - one * other_count[row]


def near_lattice_places(places: Ints, reach: int) -> NearPairs:
    """Pairs of different lattice places (k, 2) nearer than `reach` steps, with squared distances, in 32 bits."""
    from dpppsynth.spatial.lattice_pairs import near_in_order

    order = np.lexsort(places.T[::-1])
    x, y = np.ascontiguousarray(places[order].T)
    columns = x, y, np.append(np.flatnonzero(np.diff(x)) + 1, len(x)), reach
    found = np.empty((3, 0), dtype=np.int32)
    found = np.empty((3, near_in_order(*columns, *found)), dtype=np.int32)
    near_in_order(*columns, *found)
    if (np.diff(order) != 1).any():
        found[:2] = np.sort(order[found[:2]], axis=0)
    return NearPairs(*found)
