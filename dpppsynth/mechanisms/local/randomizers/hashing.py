"""Family of hash functions of local hashing, in arithmetic that is alike on all machines.

The hash of a value is a 64-bit mix of seed and value, and its class the one of `hash_range` equal intervals of the
64-bit numbers that it falls into: whole-number arithmetic, alike on all machines. Privacy needs nothing of the family,
as seeds are drawn independently of values; that estimates are unbiased needs two values to collide for one seed in
`hash_range`, and estimates are uncorrelated if any three values are as good as independent.

Reference
---------
Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators, OOPSLA.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.types import Ints

Words = npt.NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
THIRTY, TWENTY_SEVEN, THIRTY_ONE = np.uint64(30), np.uint64(27), np.uint64(31)
HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)


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
