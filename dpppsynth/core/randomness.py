"""Random number generators: seeded ones for studies, and secret ones for releases.

Without an explicit `rng` every call gives a fresh ChaCha20 generator keyed with 256 bits from the operating system, so
no two releases, and no two forked workers, share a stream. Additive noise never comes from here: OpenDP draws it from
the operating system itself (`dpppsynth.privacy.noise`). Mechanisms whose privacy is the randomness of a draw take a
generator of their own for it, apart from the one that draws released patterns, and `source` names it on certificates.
"""

import os

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


CHILDREN = "Poisson patterns around the points"


def drawn_by(sampler: str) -> str:
    """Description of a drawn field's randomness; NUTS has a generator of its own, seeded with 63 of our bits."""
    seed = ", chains seeded with 63 secret bits" if sampler == "nuts" else ""
    return f"one posterior draw by the {sampler} sampler{seed}"


def source(what: str, *, seeded: bool = False) -> str:
    """Name of a draw's source of randomness on certificates."""
    if seeded:
        return f"{what} from a seeded generator: reproducible, not private"
    return f"{what}, floating point, ChaCha20 keyed with 256 bits of the operating system"
