"""A family of hash functions from values to a few classes, indexed by a public seed.

The hash of a value is a 64-bit mix of seed and value, and its class the one of `hash_range` equal intervals of the
64-bit numbers that it falls into: whole-number arithmetic, alike on all machines. Privacy needs nothing of the family,
as seeds are drawn independently of values; that estimates are unbiased needs two values to collide for one seed in
`hash_range`, and estimates are uncorrelated if any three values are as good as independent.
"""

import numpy as np

from dpppsynth.core.types import Ints
from dpppsynth.mechanisms.local.randomizers.splitmix import STEP, Words, mix

# Seeds are drawn from [0, 2^SEED_BITS): far more than there are clients.
SEED_BITS = 63
# Classes of hashes are computed by 32-bit factors.
LARGEST_RANGE = 2**31
CHUNK = 2**20
HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)


def draw_seeds(rng: np.random.Generator, n: int) -> Ints:
    """(n,) independent uniform seeds."""
    return rng.integers(0, 2**SEED_BITS - 1, size=n, dtype=np.int64, endpoint=True)


def hash_classes(seeds: Ints, values: Ints | int, hash_range: int) -> Ints:
    """(n,) classes of values (n,), or of one value, under the hash functions of seeds (n,)."""
    steps = (np.atleast_1d(values).astype(np.uint64) + np.uint64(1)) * STEP
    numbers, size = mix(_states(seeds) + steps), np.uint64(hash_range)
    # The product with the range has 96 bits: its highest ones, half by half.
    scaled = ((numbers >> HALF) * size + (((numbers & LOW_HALF) * size) >> HALF)) >> HALF
    return scaled.astype(np.int64)


def supports(seeds: Ints, values: Ints, domain: int, hash_range: int) -> Ints:
    """(domain,) number of reports (seed, class) that support each value: those whose hash function gives the class.

    Parameters
    ----------
    seeds : (n,) array of int
    values : (n,) array of int
        Reported classes, from 0 to hash_range - 1.
    domain : int
        Values are 0, 1, ..., domain - 1.
    hash_range : int
        Number of classes, from 2 to 2^31.
    """
    from dpppsynth.mechanisms.local.randomizers.hashing_kernel import add_supports

    counts = np.zeros(domain, dtype=np.int64)
    for start in range(0, len(seeds), CHUNK):
        part = slice(start, start + CHUNK)
        low = _interval(values[part], hash_range)
        # The end of the last interval is 2^64, which is 0 here, and its width is right nevertheless.
        add_supports(_states(seeds[part]), low, _interval(values[part] + 1, hash_range) - low, counts)
    return counts


def _states(seeds: Ints) -> Words:
    """(n,) numbers that hash functions start from."""
    return mix(seeds.astype(np.uint64) + STEP)


def _interval(values: Ints, hash_range: int) -> Words:
    """(n,) smallest 64-bit numbers of classes: `values 2^64 / hash_range`, rounded up, by long division."""
    size = np.uint64(hash_range)
    high, rest = np.divmod(values.astype(np.uint64) << HALF, size)
    low, rest = np.divmod(rest << HALF, size)
    return (high << HALF) + low + (rest > 0)
