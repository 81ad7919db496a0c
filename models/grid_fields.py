"""Matern fields of smoothness 1 on a regular grid, by fast Fourier transforms on a torus twice as wide.

There the covariance of the cells is that of the plane, but for what wraps around or would be negative in the spectrum:
where the range is about the width of the grid, correlations are cut off far away.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft
from scipy.special import kv

from dpppsynth.spatial.mesh import Floats

# Added to the variances of the dense covariance, relative to them, so that it has a factor.
JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class GridField:
    """Prior of a field at the cells of a grid, `w = S z` with `z ~ N(0, I)`.

    Attributes
    ----------
    shape : (int, int)
        Cells along both axes; the field is in C order.
    sigma : float
        Standard deviation.
    range : float
        Distance at which the correlation is about 0.14, in cells.
    """

    shape: tuple[int, int]
    sigma: float
    range: float

    @property
    def size(self) -> int:
        """Length of z."""
        return self._torus[0] * self._torus[1]

    def field(self, z: Floats) -> Floats:
        """(V,) S z."""
        nx, ny = self.shape
        return np.asarray(self._filtered(z.reshape(self._torus))[:nx, :ny].ravel())

    def adjoint(self, w: Floats) -> Floats:
        """(size,) transpose of S times w (V,)."""
        nx, ny = self.shape
        padded = np.zeros(self._torus)
        padded[:nx, :ny] = w.reshape(self.shape)
        return np.asarray(self._filtered(padded).ravel())

    def covariance(self) -> Floats:
        """(V, V) S S', dense: for small grids."""
        first = fft.irfft2(self._root**2, self._torus)
        (nx, ny), (i, j) = self.shape, (np.arange(side) for side in self.shape)
        rows, columns = abs(i[:, None] - i), abs(j[:, None] - j)
        return np.asarray(first[rows[:, None, :, None], columns[None, :, None, :]].reshape(nx * ny, nx * ny))

    @cached_property
    def _torus(self) -> tuple[int, int]:
        nx, ny = (int(fft.next_fast_len(2 * side, real=True)) for side in self.shape)
        return nx, ny

    @cached_property
    def _root(self) -> Floats:
        """Root of the spectrum, scaled to the standard deviation."""
        x, y = (np.minimum(np.arange(side), side - np.arange(side)) for side in self._torus)
        spectrum = np.maximum(fft.rfft2(matern(np.hypot(x[:, None], y) / self.range)).real, 0.0)
        variance = fft.irfft2(spectrum, self._torus)[0, 0]
        return np.asarray(np.sqrt(spectrum * (self.sigma**2 / variance)))

    def _filtered(self, values: Floats) -> Floats:
        return np.asarray(fft.irfft2(fft.rfft2(values) * self._root, self._torus))


class DenseField:
    """The same prior by a factor of its covariance, `w = L z`.

    Parameters
    ----------
    prior : GridField
    """

    def __init__(self, prior: GridField) -> None:
        covariance = prior.covariance()
        self.factor = np.linalg.cholesky(covariance + JITTER * prior.sigma**2 * np.eye(len(covariance)))
        self.size = len(covariance)

    def field(self, z: Floats) -> Floats:
        """(V,) L z."""
        return np.asarray(self.factor @ z)

    def adjoint(self, w: Floats) -> Floats:
        """(V,) L' w."""
        return np.asarray(self.factor.T @ w)


def matern(distance: Floats) -> Floats:
    """Correlations of smoothness 1 at distances in ranges."""
    scaled = np.sqrt(8.0) * np.asarray(distance, dtype=float)
    near = scaled < 1e-9
    return np.where(near, 1.0, np.where(near, 1.0, scaled) * kv(1, np.where(near, 1.0, scaled)))
