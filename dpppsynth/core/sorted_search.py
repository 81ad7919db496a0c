"""Binary search in sorted arrays from compiled loops, started within equal-width buckets, and sums by bins.

Importing this module imports numba, so that it is imported where it is used.
"""

from __future__ import annotations

import numpy as np

from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import compiled

BUCKETS = 1024


@compiled
def table(values: Floats, scale: float, size: int) -> Ints:
    """(size + 2,) numbers of sorted values v whose bucket `int(v scale)` is below 0, 1, ..., size + 1."""
    first = np.zeros(size + 2, dtype=np.int64)
    for v in values:
        # Values beyond the last bucket are never looked up.
        first[min(max(int(v * scale), 0), size) + 1] += 1
    return np.cumsum(first)


@compiled
def number_below(d: float, values: Floats, first: Ints, scale: float) -> int:
    """Number of sorted values below d, by binary search within the bucket of d."""
    bucket = int(d * scale)
    low, high = first[bucket], first[bucket + 1]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < d:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add(out: Floats, d: float, w: float, breaks: Floats, bins: Ints, scale: float) -> None:
    """Add a pair at distance d, weighing w, to the moments (3, b) of d less the upper end of its bin."""
    b = min(number_below(d, breaks, bins, scale), len(breaks) - 1)
    short = d - breaks[b]
    out[0, b] += w
    out[1, b] += w * short
    out[2, b] += w * short * short
