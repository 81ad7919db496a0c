"""Random number generators: seeded ones for studies, secret ones for releases, and the operating system's for devices.

Without an explicit `rng` every call gives a fresh ChaCha20 generator keyed with 256 bits from the operating system, so
no two releases, and no two forked workers, share a stream. Additive noise never comes from here: OpenDP draws it from
the operating system itself (`dpppsynth.privacy.noise`). Mechanisms whose privacy is the randomness of a draw take a
generator of their own for it, apart from the one that draws released patterns.
"""

import os
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError

RngLike = int | np.random.Generator | np.random.SeedSequence | np.random.BitGenerator | None


def generator(rng: RngLike = None) -> np.random.Generator:
    """Return a generator for released patterns and post-processing.

    Parameters
    ----------
    rng : None, int, numpy.random.Generator, SeedSequence or BitGenerator
        None asks the operating system for a new key; anything else goes through `numpy.random.default_rng` (SPEC 7).
    """
    if rng is not None:
        try:
            return np.random.default_rng(rng)
        except (TypeError, ValueError):
            msg = f"rng: expected None, a whole number or a numpy Generator, got {rng!r}."
            raise InputError(msg) from None
    from randomgen import ChaCha

    return np.random.Generator(ChaCha(key=int.from_bytes(os.urandom(32), "little")))


class SystemBits(np.random.Generator):
    """A generator every bit of which comes from `os.urandom`; it draws only whole numbers below powers of two.

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
