"""Bit vectors packed into 62-bit integer words."""

import numpy as np
import numpy.typing as npt

from dpppsynth.core.types import Ints

WORD = 62
Bits = npt.NDArray[np.bool_]


def pack(bits: Bits) -> Ints:
    """(n, ceil(d / 62)) words of bits (n, d).

    Examples
    --------
    >>> pack(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    n, size = bits.shape
    words = -(-size // WORD)
    filled = np.zeros((n, words * WORD), dtype=bool)
    filled[:, :size] = bits
    places = np.zeros((n, words, 64), dtype=bool)
    places[:, :, :WORD] = filled.reshape(n, words, WORD)
    return np.packbits(places, axis=-1, bitorder="little").view("<i8")[:, :, 0].astype(np.int64)


def unpack(words: Ints, size: int) -> Bits:
    """(n, size) bits of words (n, ceil(size / 62))."""
    n, width = words.shape
    octets = np.ascontiguousarray(words.astype("<i8")).view(np.uint8)
    places = np.unpackbits(octets, axis=-1, bitorder="little").reshape(n, width, 64)
    return places[:, :, :WORD].reshape(n, width * WORD)[:, :size].astype(bool)


def bit(words: Ints, place: int) -> Bits:
    """(n,) one bit of words (n, w)."""
    return (words[:, place // WORD] >> (place % WORD) & 1).astype(bool)
