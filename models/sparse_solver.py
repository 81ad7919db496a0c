"""Factors of sparse symmetric positive definite matrices: solutions, determinants, diagonals of inverses."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from dpppsynth.core.errors import QualityError
from dpppsynth.core.workers import compiled, in_threads
from dpppsynth.spatial.mesh import Floats

# Right-hand sides that are solved at once: their rounding depends on the number, so that is the same on any machine.
TOGETHER = 8


class SparseFactor:
    """Factors `L D L'` of a symmetric positive definite matrix, by SuperLU without pivoting.

    Parameters
    ----------
    matrix : sparse (N, N)

    Raises
    ------
    QualityError
        When the matrix is not positive definite to rounding.
    """

    def __init__(self, matrix: Any) -> None:
        from scipy.sparse.linalg import splu

        try:
            self._lu = splu(
                scipy.sparse.csc_matrix(matrix),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            raise QualityError(_INDEFINITE) from None
        self._pivots = self._lu.U.diagonal()
        whole = np.isfinite(self._pivots).all() and (self._pivots > 0).all()
        # Rows were exchanged only where a pivot would have vanished.
        if not (whole and np.array_equal(self._lu.perm_r, self._lu.perm_c)):
            raise QualityError(_INDEFINITE)

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant."""
        return float(np.log(self._pivots).sum())

    def solve(self, right: Floats) -> Floats:
        """Solution (N,) or (N, k) for right-hand sides of that shape; many are shared among the processor's cores."""
        if right.ndim == 1:
            return np.asarray(self._lu.solve(right))
        blocks = [np.asfortranarray(right[:, start : start + TOGETHER]) for start in range(0, right.shape[1], TOGETHER)]
        return np.concatenate([right[:, :0], *in_threads(self._lu.solve, blocks)], axis=1)

    def from_white(self, white: Floats) -> Floats:
        """(N,) or (N, k) vectors whose covariance is the inverse of the matrix, from white noise of that shape.

        That is `P' L'^-1 D^-1/2 z`, where the matrix with its rows and columns permuted by P is `L D L'`.
        """
        starts, places, entries = self._columns
        out = np.ascontiguousarray((white.T / np.sqrt(self._pivots)).T, dtype=float)
        _triangular()[1](starts, places, entries, out.reshape(len(out), -1))
        return out[self._lu.perm_c]

    def to_white(self, right: Floats) -> Floats:
        """(N,) or (N, k) the transpose of `from_white` times vectors."""
        starts, places, entries = self._columns
        out = np.empty(right.shape)
        out[self._lu.perm_c] = right
        _triangular()[0](starts, places, entries, out.reshape(len(out), -1))
        return np.asarray((out.T / np.sqrt(self._pivots)).T)

    @property
    def triangle(self) -> tuple[Any, ...]:
        """Permutation, roots of the pivots, first columns of blocks, and L by columns: starts, rows and entries.

        Columns of a block have the same rows below it, and all rows within it (supernodes); the last block ends at N.
        """
        starts, rows, entries = self._columns
        count = np.diff(starts)
        below = np.where(count > 1, rows[np.minimum(starts[:-1] + 1, len(rows) - 1)], -1)
        goes_on = (below[:-1] == np.arange(1, len(count))) & (count[:-1] == count[1:] + 1)
        first = np.flatnonzero(np.concatenate([[True], ~goes_on, [True]]))
        # Of numbers without a sign Numba need not ask whether they count from the end.
        return self._lu.perm_c, np.sqrt(self._pivots), first, starts, rows.astype(np.uint32), entries

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
        """L by columns."""
        lower = scipy.sparse.csc_matrix(self._lu.L)
        lower.sort_indices()
        return lower.indptr, lower.indices, lower.data

    @property
    def root(self) -> "scipy.sparse.csc_array":
        """Sparse (N, N) root R of the matrix, `R R'`."""
        lower = scipy.sparse.csr_array(self._lu.L) @ scipy.sparse.diags_array(np.sqrt(self._pivots))
        return lower.tocsr()[self._lu.perm_c].tocsc()

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """(N,) diagonal of the inverse."""
        permuted = _compiled()(*self._columns, self._pivots)
        # Row i of the given matrix is row perm_c[i] of the permuted one.
        return np.asarray(permuted[self._lu.perm_c])


_INDEFINITE = (
    "precision: a matrix of the field is not positive definite to rounding; take a shorter range, or a coarser mesh."
)


@cache
def _compiled() -> Callable[..., Floats]:
    """The recursion, compiled where it is first needed: Numba takes its time to load."""
    return compiled(_takahashi)


@cache
def _triangular() -> tuple[Callable[..., None], Callable[..., None]]:
    return compiled(_solve_lower), compiled(_solve_upper)


def _solve_lower(starts: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], lower: Floats, right: Floats) -> None:
    """Solve with a unit lower triangle L, given by columns, in place of `right` (N, k)."""
    for j in range(len(right)):
        for p in range(starts[j] + 1, starts[j + 1]):
            for c in range(right.shape[1]):
                right[rows[p], c] -= lower[p] * right[j, c]


def _solve_upper(starts: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], lower: Floats, right: Floats) -> None:
    """Solve with the transpose of a unit lower triangle L, given by columns, in place of `right` (N, k)."""
    for j in range(len(right) - 1, -1, -1):
        for p in range(starts[j] + 1, starts[j + 1]):
            for c in range(right.shape[1]):
                right[j, c] -= lower[p] * right[rows[p], c]


def _takahashi(starts: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], lower: Floats, pivots: Floats) -> Floats:
    """Diagonal of `(L D L')^-1` by Takahashi's recursion over the pattern of L (Erisman & Tinney 1975).

    The unit lower triangle L is given by columns, rows in order: the first entry of a column is its diagonal. `pivots`
    (N,) are D.
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
