"""Matern fields of smoothness 1 on rectangular lattices, whose unknowns are the Fourier coefficients of white noise.

The field is `w = S u`, with `u ~ N(0, I)`, on a torus that is wider than the lattice by half. There the spectrum is
that of the plane, and so is the covariance of the nodes, but for what wraps around: along a strip fields of ranges
beyond its width are smoother than in the plane. Effects of public covariates are unknowns as well, the last ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from dpppsynth.core.types import Floats

# Range of the details of a field, in its own.
DETAIL = 1 / 8
# Times the torus is as wide as the lattice, at least. Where it is also so many times as wide as a square of a strip's
# area, neighbours differ as in the plane, but scores are no better on the whole, and found in 2.5 times the time.
WIDER = 1.5
# Waves that differ by so many oscillations in a spacing are alike at the nodes; of shorter ones little is left.
ALIASES = np.arange(-2, 3)

# Complex numbers here; those of other fields are real.
Unknowns = npt.NDArray[Any]


class MovedPrior:
    """Base of priors of fields `w = S u` with `u ~ N(0, I)`, as posteriors behind moved points take them.

    Unknowns u may be complex, halves of what real numbers are transformed to: inner products are those of the latter.
    """

    @property
    def number(self) -> type:
        """Type of the unknowns."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of unknowns u."""
        raise NotImplementedError

    @property
    def freedoms(self) -> int:
        """Number of the real numbers that they stand for."""
        raise NotImplementedError

    @property
    def effects(self) -> int:
        """Number p of effects of covariates among them, the last ones."""
        raise NotImplementedError

    def field(self, unknowns: Unknowns) -> Floats:
        """(..., V) `S u` of unknowns (..., size)."""
        raise NotImplementedError

    def adjoint(self, fields: Floats) -> Unknowns:
        """(..., size) transpose of S times fields (..., V)."""
        raise NotImplementedError

    def dot(self, one: Unknowns, other: Unknowns) -> Floats:
        """(...) inner products of unknowns (..., size)."""
        raise NotImplementedError

    def of_real(self, numbers: Floats) -> Unknowns:
        """(..., size) unknowns that stand for real numbers (..., freedoms)."""
        raise NotImplementedError

    def to_real(self, unknowns: Unknowns) -> Floats:
        """(..., freedoms) real numbers that unknowns (..., size) stand for."""
        raise NotImplementedError

    def effects_of(self, unknowns: Unknowns) -> Floats:
        """(..., p) effects, in their prior's standard deviations."""
        raise NotImplementedError

    def like(self, other: Any, unknowns: Unknowns) -> Unknowns:
        """(size,) unknowns with the same field as those of another prior of the same places, as far as possible."""
        raise NotImplementedError

    def near(self, masses: Floats, scale: float, guessed: float) -> Callable[[Unknowns], Unknowns]:
        """Product with the inverse of a matrix near the posterior precision.

        Parameters
        ----------
        masses : (V,) or (J, V) array
            Expected numbers of points; of several the product is one each, for unknowns (..., J, size).
        scale : float
            Of the noise that moved them.
        guessed : float
            Share of the information at places of many points that is taken for granted everywhere.
        """
        raise NotImplementedError

    def white(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(k, size) draws from `N(0, I)`."""
        return self.of_real(rng.standard_normal((k, self.freedoms)))


@dataclass(frozen=True, eq=False)
class SpectralField(MovedPrior):
    """Prior of a field at the nodes of a lattice: a Matern field and one of details, of an eighth of its range, summed.

    Unknowns (..., size) are half of the coefficients of a real field on the torus, whose other half are their
    conjugates, and the effects of covariates, which are real.

    Attributes
    ----------
    shape : (int, int)
        Nodes along both axes; fields (..., V) are in C order.
    spacing : (float, float)
        Of the nodes along both axes.
    sigma : float
        Standard deviation; 0 leaves the effects alone.
    range : float
        Distance at which the correlation is about 0.14.
    detail : float
        Standard deviation of the details.
    columns : (V, p) array, optional
        Covariates, times the standard deviations of their effects.
    """

    shape: tuple[int, int]
    spacing: tuple[float, float]
    sigma: float
    range: float
    detail: float = 0.0
    columns: Floats | None = None

    @property
    def number(self) -> type:
        return complex

    @property
    def effects(self) -> int:
        return 0 if self.columns is None else self.columns.shape[1]

    @property
    def size(self) -> int:
        return self.root.size + self.effects

    def field(self, unknowns: Unknowns) -> Floats:
        (nx, ny), lead = self.shape, unknowns.shape[:-1]
        coefficients = unknowns[..., : self.root.size].reshape(*lead, *self.root.shape)
        torus = fft.irfft2(coefficients * self.root, self._torus, norm="ortho")
        drawn = torus[..., :nx, :ny].reshape(*lead, nx * ny)
        if self.columns is not None:
            drawn = drawn + unknowns[..., self.root.size :].real @ self.columns.T
        return np.asarray(drawn)

    def adjoint(self, fields: Floats) -> Unknowns:
        lead = fields.shape[:-1]
        spectrum = fft.rfft2(fields.reshape(*lead, *self.shape), self._torus, norm="ortho") * self.root
        flat = spectrum.reshape(*lead, -1)
        return flat if self.columns is None else np.concatenate([flat, fields @ self.columns], axis=-1)

    def dot(self, one: Unknowns, other: Unknowns) -> Floats:
        first, second = (np.ascontiguousarray(each, dtype=complex).view(float) for each in (one, other))
        return np.asarray(np.einsum("...i,...i,i->...", first, second, self._times))

    @property
    def freedoms(self) -> int:
        return math.prod(self._torus) + self.effects

    def of_real(self, numbers: Floats) -> Unknowns:
        lead, nodes = numbers.shape[:-1], math.prod(self._torus)
        noise = fft.rfft2(numbers[..., :nodes].reshape(*lead, *self._torus), norm="ortho").reshape(*lead, -1)
        return noise if self.columns is None else np.concatenate([noise, numbers[..., nodes:]], axis=-1)

    def to_real(self, unknowns: Unknowns) -> Floats:
        lead = unknowns.shape[:-1]
        coefficients = unknowns[..., : self.root.size].reshape(*lead, *self.root.shape)
        noise = fft.irfft2(coefficients, self._torus, norm="ortho").reshape(*lead, -1)
        return np.concatenate([noise, self.effects_of(unknowns)], axis=-1)

    def effects_of(self, unknowns: Unknowns) -> Floats:
        return np.asarray(unknowns[..., self.root.size :].real)

    def like(self, other: Any, unknowns: Unknowns) -> Unknowns:
        both = (self.root > 0) & (other.root > 0)
        ratio = np.divide(other.root, self.root, out=np.zeros(both.shape), where=both)
        return unknowns * np.append(ratio.ravel(), np.ones(self.effects))

    def near(self, masses: Floats, scale: float, guessed: float) -> Callable[[Unknowns], Unknowns]:
        """That of a matrix that is diagonal in the coefficients."""
        total = masses.sum(axis=-1, keepdims=True)
        often = np.divide((masses**2).sum(axis=-1, keepdims=True), total, out=np.zeros(total.shape), where=total > 0)
        diagonal = 1 + guessed * often * self.seen(scale)
        return lambda unknowns: unknowns / diagonal

    def seen(self, scale: float) -> Floats:
        """(size,) variances of the coefficients after blurring by planar Laplace noise of a scale; 0 for effects."""
        x, y = (
            2 * np.pi * frequencies(side, step)
            for frequencies, side, step in zip((fft.fftfreq, fft.rfftfreq), self._torus, self.spacing, strict=True)
        )
        left = (1 + scale**2 * (x[:, None] ** 2 + y**2)) ** -3
        return np.append((self.root**2 * left).ravel(), np.zeros(self.effects))

    @cached_property
    def _torus(self) -> tuple[int, int]:
        return torus(self.shape, WIDER)

    @cached_property
    def root(self) -> Floats:
        """Root of the spectrum, scaled to the standard deviations.

        Covariances by distances round the torus have creases halfway, which long ranges show as straight stripes.
        """
        parts = (self.sigma, self.range), (self.detail, DETAIL * self.range)
        spectra = (deviation**2 * plane_spectrum(self._torus, self.spacing, range_) for deviation, range_ in parts)
        return np.asarray(np.sqrt(sum(spectra)))

    @cached_property
    def _times(self) -> Floats:
        """Weight of the squares of each unknown's two parts: 2 where it stands for its conjugate as well, else 1."""
        times = np.full(self.root.shape, 2.0)
        times[:, 0] = 1.0
        if self._torus[1] % 2 == 0:
            times[:, -1] = 1.0
        return np.repeat(np.append(times.ravel(), np.ones(self.effects)), 2)


def torus(shape: tuple[int, int], wider: float) -> tuple[int, int]:
    """Nodes around a torus so many times as wide as a lattice, at least; of a row 1 across it."""
    row = max(shape) > 1
    nx, ny = (1 if row and side == 1 else int(fft.next_fast_len(math.ceil(wider * side), real=True)) for side in shape)
    return nx, ny


def plane_spectrum(torus: tuple[int, int], spacing: tuple[float, float], range_: float) -> Floats:
    """Spectrum of a Matern field of smoothness 1 and variance 1 of the plane, at the frequencies of a torus' `rfft2`.

    Along an axis of one node it is that of the field on a line.
    """
    x, y = (
        2 * np.pi * (frequencies(side) + (ALIASES if side > 1 else np.zeros(1))[:, None]) / step
        for frequencies, side, step in zip((fft.fftfreq, fft.rfftfreq), torus, spacing, strict=True)
    )
    lengths = [side * step for side, step in zip(torus, spacing, strict=True) if side > 1]
    power, rate = 1 + len(lengths) / 2, 8 / range_**2
    waves = (rate + x[:, None, :, None] ** 2 + y[:, None] ** 2) ** -power
    # At frequency 0, where that of long ranges is steep, the mean over its part of the plane (as a disc) or line.
    part = 4 * np.pi / math.prod(lengths) if len(lengths) == 2 else (np.pi / sum(lengths)) ** 2
    waves[len(x) // 2, len(y) // 2, 0, 0] = 1 / (rate * (rate + part) ** (power - 1))
    found = waves.sum(axis=(0, 1))
    return np.asarray(found / fft.irfft2(found, torus)[0, 0])
