"""Order of points along Hilbert's curve, which visits each quarter of a square before it goes on to the next."""

import numpy as np

from dpppsynth.spatial.mesh import Floats, Ints

# The curve visits 4^BITS squares.
BITS = 16


def hilbert_order(xy: Floats) -> Ints:
    """(n,) numbers of points (n, 2) in the order in which the curve through their box meets them.

    Examples
    --------
    >>> hilbert_order(np.array([[0, 0], [0, 3.0], [3.0, 3.0], [3.0, 0]])).tolist()
    [0, 1, 2, 3]
    """
    low = xy.min(axis=0, initial=np.inf)
    side = (xy - low).max(initial=0.0) or 1.0
    x, y = np.minimum((xy - low) / side * 2**BITS, 2**BITS - 1).astype(np.int64).T
    met = np.zeros(len(xy), dtype=np.int64)
    for bit in 2 ** np.arange(BITS)[::-1]:
        right, upper = (x & bit) > 0, (y & bit) > 0
        met = 4 * met + ((3 * right) ^ upper)
        # The first and the last quarter hold the curve turned over.
        turned = right & ~upper
        x, y = (np.where(turned, 2**BITS - 1 - each, each) for each in (x, y))
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.argsort(met, kind="stable")
