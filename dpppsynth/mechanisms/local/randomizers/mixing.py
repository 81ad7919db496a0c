"""Mixing of 64-bit numbers, from which hash functions are made."""

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
THIRTY, TWENTY_SEVEN, THIRTY_ONE = np.uint64(30), np.uint64(27), np.uint64(31)


def mix(z: Any) -> Any:
    """Mix 64-bit numbers: arrays, or single numbers in compiled loops."""
    z = (z ^ (z >> THIRTY)) * FIRST
    z = (z ^ (z >> TWENTY_SEVEN)) * SECOND
    return z ^ (z >> THIRTY_ONE)
