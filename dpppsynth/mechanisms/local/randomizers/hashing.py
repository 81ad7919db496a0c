"""Hash functions of values into classes, one for each seed: mixed 64-bit numbers, scaled to the range."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.types import Ints

Words = npt.NDArray[np.uint64]

HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
# Constants of the mixing of 64-bit numbers.
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
THIRTY, TWENTY_SEVEN, THIRTY_ONE = np.uint64(30), np.uint64(27), np.uint64(31)


def mix(z: Any) -> Any:
    """Mix 64-bit numbers: arrays, or single numbers in compiled loops."""
    z = (z ^ (z >> THIRTY)) * FIRST
    z = (z ^ (z >> TWENTY_SEVEN)) * SECOND
    return z ^ (z >> THIRTY_ONE)


def hash_classes(seeds: Ints, values: Ints | int, hash_range: int) -> Ints:
    """(n,) classes of values (n,), or of one value, under the hash functions of seeds (n,)."""
    steps = (np.atleast_1d(values).astype(np.uint64) + np.uint64(1)) * STEP
    numbers, size = mix(states(seeds) + steps), np.uint64(hash_range)
    # The product with the range has 96 bits: its highest ones, half by half.
    scaled = ((numbers >> HALF) * size + (((numbers & LOW_HALF) * size) >> HALF)) >> HALF
    return scaled.astype(np.int64)


def states(seeds: Ints) -> Words:
    """(n,) numbers that hash functions start from."""
    return mix(seeds.astype(np.uint64) + STEP)


def interval(values: Ints, hash_range: int) -> Words:
    """(n,) smallest 64-bit numbers of classes: `values 2^64 / hash_range`, rounded up, by long division."""
    size = np.uint64(hash_range)
    high, rest = np.divmod(values.astype(np.uint64) << HALF, size)
    low, rest = np.divmod(rest << HALF, size)
    return (high << HALF) + low + (rest > 0)
