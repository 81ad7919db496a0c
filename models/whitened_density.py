"""The posterior of a sparse field in coordinates in which its Laplace approximation is standard normal."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy

from dpppsynth.core.workers import compiled
from dpppsynth.models.likelihood import MassesInLaplaceNoise, NoisyMasses, counts_score, counts_values
from dpppsynth.models.nuts import DensityAboutMode
from dpppsynth.models.sparse_posterior import SparsePosterior
from dpppsynth.spatial.mesh import Floats, Ints

# Places at which the law of a number is tabulated, and the largest mean: so many times what is observed or expected,
# and so many scales of the noise more. Beyond it the law goes on along its tangent.
PLACES, FAR, FARTHER = 256, 4.0, 100.0
# Root of a mean, in widths of the grid, that passes for zero.
LEAST = 1e-9


# Starts of rows, columns and entries.
Rows = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, eq=False)
class WhitenedDensity(DensityAboutMode):
    """Log-density of z, where unknowns of the field are `mode + S z`, `S S'` the covariance of the approximation."""

    likelihood: NoisyMasses
    fit: SparsePosterior

    @property
    def size(self) -> int:
        return self.fit.prior.size

    def unknowns(self, z: Floats) -> Floats:
        """(..., N) unknowns of the field at z (..., N)."""
        flat = self.fit.precision.from_white(z.reshape(-1, self.size).T)
        return (self.fit.mode + flat.T).reshape(z.shape)

    def absolute(self) -> Callable[[Floats], tuple[float, Floats]]:
        fit, likelihood = self.fit, self.likelihood
        observed, measure, response, n, shift = likelihood.arguments
        table = NumberTable.of(likelihood, response @ likelihood.vertex_masses(fit.field_mode))
        field = (fit.mode, _rows(fit.prior.precision), _rows(fit.prior.placement), float(fit.centre), measure, n)
        told = (_rows(response), observed, table, float(shift))
        return partial(_compiled(), fit.precision.whitening, *field, *told)


class NumberTable(NamedTuple):
    """Log-densities of numbers at means on a grid, between which cubic Hermite splines lie; empty where not needed.

    Attributes
    ----------
    centre, width, first, step : (K,) array
        The grid of number k is even in `arsinh((sqrt(mean) - centre) / width)`: the law is smooth in the root of a
        small mean, and bends where the mean is what is observed, the faster the less noise there is beside it.
    knots : (K, PLACES, 2) array
        Values, and slopes in that inverse hyperbolic sine times the step.
    """

    centre: Floats
    width: Floats
    first: Floats
    step: Floats
    knots: Floats

    @classmethod
    def of(cls, likelihood: NoisyMasses, expected: Floats) -> "NumberTable":
        """The table of counts in Laplace noise, of which about so many (K,) are expected; else an empty one."""
        if not isinstance(likelihood, MassesInLaplaceNoise):
            nothing = np.empty(0)
            return cls(nothing, nothing, nothing, nothing, np.empty((0, PLACES, 2)))
        observed, *_, scale = likelihood.arguments
        centre = np.sqrt(np.maximum(observed, 0.0))
        # Noise and a count's own deviation, in roots.
        width = np.minimum((scale + centre) / (2 * np.maximum(centre, LEAST)), np.sqrt(scale))
        most = FAR * np.maximum(np.maximum(observed, expected), 0.0) + FARTHER * scale
        first = np.arcsinh(-centre / width)
        step = (np.arcsinh((np.sqrt(most) - centre) / width) - first) / (PLACES - 1)
        knots = np.empty((len(centre), PLACES, 2))
        for place in range(PLACES):
            root = np.maximum(centre + width * np.sinh(first + place * step), LEAST * width)
            slope = counts_score(root**2, observed, scale) * 2 * root * np.hypot(root - centre, width)
            knots[:, place] = np.column_stack([counts_values(root**2, observed, scale), slope * step])
        return cls(centre, width, first, step, knots)


def _rows(matrix: Any) -> Rows:
    """A sparse matrix by rows."""
    csr = scipy.sparse.csr_array(matrix)
    return csr.indptr.astype(np.int32), csr.indices.astype(np.int32), csr.data.astype(np.float64)


@cache
def _compiled() -> Callable[..., tuple[float, Floats]]:
    """The density, compiled; the functions that it calls are compiled into it."""
    from numba.extending import register_jitable

    # Sums in any order, but what is no number stays so: a chain that runs away is told by it.
    register_jitable(fastmath={"reassoc", "contract"})(_dot)
    for part in (_times, _times_transposed, _along, _add, _from_white, _to_white, _masses, _spline, _numbers):
        register_jitable(part)
    return compiled(_value_and_gradient)


def _value_and_gradient(
    whitening: tuple[Any, ...],
    mode: Floats,
    precision: Rows,
    placement: Rows,
    centre: float,
    measure: Floats,
    n: float,
    shares: Rows,
    observed: Floats,
    table: NumberTable,
    shift: float,
    z: Floats,
) -> tuple[float, Floats]:
    """Log-posterior and gradient (N,), in loops for Numba, so that chains run beside each other."""
    unknowns = mode + _from_white(whitening, z)
    weighed = _times(precision, unknowns)
    mass = _masses(_times(placement, unknowns) + centre, measure, n)
    value, slope = _numbers(_times(shares, mass), observed, table, shift)
    pull = _times_transposed(shares, slope, len(measure))
    if n > 0:
        pull -= np.dot(pull, mass) / n
    gradient = _times_transposed(placement, mass * pull, len(mode)) - weighed
    return value - np.dot(unknowns, weighed) / 2, _to_white(whitening, gradient)


def _times(matrix: Rows, vector: Floats) -> Floats:
    """Product of a matrix by rows with a vector."""
    starts, columns, entries = matrix
    out = np.empty(len(starts) - 1)
    for i in range(len(out)):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += entries[p] * vector[columns[p]]
        out[i] = total
    return out


def _times_transposed(matrix: Rows, vector: Floats, size: int) -> Floats:
    """Product of the transpose, which has so many rows, with a vector."""
    starts, columns, entries = matrix
    out = np.zeros(size)
    for i in range(len(vector)):
        for p in range(starts[i], starts[i + 1]):
            out[columns[p]] += entries[p] * vector[i]
    return out


def _along(axes: Floats, stretch: Floats, vector: Floats) -> Floats:
    """A vector, stretched along axes (0 or 2, N)."""
    out = vector.copy()
    for k in range(len(stretch)):
        out += axes[k] * (stretch[k] * np.dot(axes[k], vector))
    return out


def _from_white(whitening: tuple[Any, ...], z: Floats) -> Floats:
    """`S z`; see `PosteriorPrecision.from_white`."""
    permutation, pivots, blocks, starts, rows, entries, axes, stretch = whitening
    white = _along(axes, stretch, z) / pivots
    held = np.empty(len(white))
    for block in range(len(blocks) - 2, -1, -1):
        first, end = blocks[block], blocks[block + 1]
        below = rows[starts[end - 1] + 1 : starts[end]]
        seen = held[: len(below)]
        for r in range(len(below)):
            seen[r] = white[below[r]]
        for j in range(end - 1, first - 1, -1):
            column, within = entries[starts[j] + 1 : starts[j + 1]], end - 1 - j
            white[j] -= _dot(column[:within], white[j + 1 : end]) + _dot(column[within:], seen)
    return white[permutation]


def _to_white(whitening: tuple[Any, ...], right: Floats) -> Floats:
    """`S'` times a vector."""
    permutation, pivots, blocks, starts, rows, entries, axes, stretch = whitening
    out, held = np.empty(len(right)), np.empty(len(right))
    out[permutation] = right
    for block in range(len(blocks) - 1):
        first, end = blocks[block], blocks[block + 1]
        below = rows[starts[end - 1] + 1 : starts[end]]
        taken = held[: len(below)]
        taken[:] = 0.0
        for j in range(first, end):
            column, within = entries[starts[j] + 1 : starts[j + 1]], end - 1 - j
            _add(-out[j], column[:within], out[j + 1 : end])
            _add(out[j], column[within:], taken)
        for r in range(len(below)):
            out[below[r]] -= taken[r]
    return _along(axes, stretch, out / pivots)


def _dot(one: Floats, other: Floats) -> float:
    """Inner product, of which Numba may add up the parts in any order; faster than a library's of few numbers."""
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total


def _add(times: float, vector: Floats, to: Floats) -> None:
    """Add a multiple of a vector to another in place."""
    for i in range(len(vector)):
        to[i] += times * vector[i]


def _masses(field: Floats, measure: Floats, n: float) -> Floats:
    """Expected masses at the vertices."""
    if n == 0:
        return measure * np.exp(field)
    mass = measure * np.exp(field - field.max())
    return mass * (n / mass.sum())


def _numbers(means: Floats, observed: Floats, table: NumberTable, shift: float) -> tuple[float, Floats]:
    """Log-density of numbers given their means (K,), and its slopes (K,); of shifted Poisson ones without a table."""
    centre, width, first, step, knots = table
    if len(centre) == 0:
        return np.dot(observed, np.log(means + shift)) - means.sum(), observed / (means + shift) - 1.0
    value, slope, last = 0.0, np.empty(len(means)), knots.shape[1] - 1
    for k in range(len(means)):
        root = max(np.sqrt(means[k]), LEAST * width[k])
        off = (root - centre[k]) / width[k]
        bend = np.sqrt(1 + off * off)
        # The inverse hyperbolic sine, three times faster than a library's.
        along = (np.copysign(np.log(abs(off) + bend), off) - first[k]) / step[k]
        beyond = along > last
        if beyond:
            along, root = last, centre[k] + width[k] * np.sinh(first[k] + last * step[k])
            bend = np.hypot((root - centre[k]) / width[k], 1.0)
        cell = min(max(int(along), 0), last - 1)
        low, high = knots[k, cell], knots[k, cell + 1]
        there, rise = _spline(along - cell, low[0], high[0], low[1], high[1])
        slope[k] = rise / (step[k] * 2 * root * bend * width[k])
        value += there
        if beyond:
            value += slope[k] * (means[k] - root**2)
    return value, slope


def _spline(t: float, low: float, high: float, left: float, right: float) -> tuple[float, float]:
    """Cubic with these values and slopes at 0 and 1, and its slope, at t."""
    square, cube = 3 * (high - low) - 2 * left - right, 2 * (low - high) + left + right
    return low + t * (left + t * (square + t * cube)), left + t * (2 * square + 3 * t * cube)
