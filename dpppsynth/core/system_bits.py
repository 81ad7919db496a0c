"""Random integers straight from the operating system, for devices that carry no other cryptographic generator."""

import os
from typing import Any

import numpy as np


class SystemBits(np.random.Generator):
    """A generator every bit of which comes from `os.urandom`; it draws whole numbers below powers of two, and no more.

    Client mechanisms ask for nothing else. Its base class is there for its type alone: whatever else is asked of it is
    refused, so no bit comes from the unused stream below it.

    Examples
    --------
    >>> draws = SystemBits().integers(0, 2**62, size=1000, dtype=np.int64)
    >>> bool((draws >= 0).all()), len(set(draws.tolist()))
    (True, 1000)
    """

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def __getattribute__(self, name: str) -> Any:
        if name != "integers" and not name.startswith("__"):
            msg = f"the operating system's bits give whole numbers alone, not {name}"
            raise AttributeError(msg)
        return super().__getattribute__(name)

    def integers(  # type: ignore[override]
        self, low: int, high: int, size: int, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """(size,) independent uniform integers from 0 up to `high`, without it, or with it where `endpoint`."""
        most = high - 1 + endpoint
        bits = most.bit_length()
        if low != 0 or most != 2**bits - 1 or bits > 63:
            msg = f"bounds: must be 0 and a power of two up to 2^63, got {low} and {high}"
            raise ValueError(msg)
        words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        return (words & np.uint64(most)).astype(dtype)
