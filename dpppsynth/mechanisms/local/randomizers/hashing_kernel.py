"""Compiled support counts of hashed reports: a loop over all reports and values.

Importing this module imports numba, so that it is imported where it is used.
"""

import numpy as np

from dpppsynth.core.types import Ints
from dpppsynth.core.workers import compiled
from dpppsynth.mechanisms.local.randomizers import hashing
from dpppsynth.mechanisms.local.randomizers.hashing import STEP, Words

mix = compiled(hashing.mix)


@compiled
def add_supports(states: Words, low: Words, width: Words, counts: Ints) -> None:
    """Add one to counts (domain,) of each value whose hash lies in [low, low + width) of a report (n,)."""
    for report in range(len(states)):
        state, first, size = states[report], low[report], width[report]
        for value in range(len(counts)):
            state += STEP
            # Below the interval the difference wraps around to a large number.
            counts[value] += np.int64(mix(state) - first < size)
