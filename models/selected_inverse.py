"""Selected inversion: the diagonal of the inverse of a sparse matrix from its factor, without the rest."""

import numpy as np
import numpy.typing as npt

from dpppsynth.core.workers import compiled
from dpppsynth.spatial.mesh import Floats


@compiled
def inverse_diagonal(
    starts: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], lower: Floats, pivots: Floats
) -> Floats:
    """Diagonal of `(L D L')^-1` by Takahashi's recursion over the pattern of L (Erisman & Tinney 1975).

    Parameters
    ----------
    starts, rows, lower : arrays
        Unit lower triangle L by columns, rows in order: the first entry of a column is its diagonal.
    pivots : (N,) array
        D.
    """
    size = len(pivots)
    inverse = np.zeros_like(lower)
    coefficient = np.zeros(size)
    total = np.zeros(size)
    for j in range(size - 1, -1, -1):
        first, last = starts[j] + 1, starts[j + 1]
        for p in range(first, last):
            coefficient[rows[p]] = lower[p]
        for p in range(first, last):
            k = rows[p]
            total[k] += inverse[starts[k]] * lower[p]
            for q in range(starts[k] + 1, starts[k + 1]):
                i = rows[q]
                if coefficient[i] != 0.0:
                    total[i] += inverse[q] * lower[p]
                    total[k] += inverse[q] * coefficient[i]
        diagonal = 1.0 / pivots[j]
        for p in range(first, last):
            inverse[p] = -total[rows[p]]
            diagonal -= lower[p] * inverse[p]
        inverse[starts[j]] = diagonal
        for p in range(first, last):
            coefficient[rows[p]] = 0.0
            total[rows[p]] = 0.0
    out = np.empty(size)
    for j in range(size):
        out[j] = inverse[starts[j]]
    return out
