"""Mode of a field of shares given counts of reports, under the prior of highest evidence.

Range and standard deviation are chosen from public lists by the Laplace approximation of the evidence, on a grid coarse
enough for dense matrices. The mode is found by Newton steps with expected information, whose systems are solved by a
factor there and by conjugate gradients on finer grids.

The field is a Matern field of smoothness 1 with the spectrum of the plane, or of a line, by fast Fourier transforms on
a torus twice as wide as the grid. So neighbours are as alike as they are in the plane, however long the range.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy
from scipy import fft

from dpppsynth.core.errors import QualityError
from dpppsynth.models.channel_likelihood import Multinomial, ReportLikelihood
from dpppsynth.models.spectral_fields import plane_spectrum, torus
from dpppsynth.spatial.mesh import Floats

# Times the torus is as wide as the grid, at least, and cells are apart.
WIDER, ONE = 2.0, (1.0, 1.0)
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
        return torus(self.shape, WIDER)

    @cached_property
    def _root(self) -> Floats:
        """Root of the spectrum, scaled to the standard deviation."""
        return np.asarray(self.sigma * np.sqrt(plane_spectrum(self._torus, ONE, self.range)))

    def _filtered(self, values: Floats) -> Floats:
        return np.asarray(fft.irfft2(fft.rfft2(values) * self._root, self._torus))


class DenseField:
    """Prior of a field by a dense factor of its covariance, `w = L z`."""

    def __init__(self, prior: GridField) -> None:
        covariance = prior.covariance()
        self.factor = np.linalg.cholesky(covariance + JITTER * prior.sigma**2 * np.eye(len(covariance)))
        self.size = len(covariance)

    def whitened(self, w: Floats) -> Floats:
        """(V,) z of a field (V,)."""
        return np.asarray(scipy.linalg.solve_triangular(self.factor, w, lower=True))

    def field(self, z: Floats) -> Floats:
        """(V,) L z."""
        return np.asarray(self.factor @ z)

    def adjoint(self, w: Floats) -> Floats:
        """(V,) L' w."""
        return np.asarray(self.factor.T @ w)


# Ranges, in sides of the grid, and standard deviations that are tried, from those in the middle.
RANGES = (0.075, 0.15, 0.3, 0.6, 1.2, 2.4)
DEVIATIONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# Short ranges and large deviations need good reasons: the logarithm of their prior is -SHORT / range - LARGE deviation.
SHORT, LARGE = 0.6, 1.0
# Cells along a side of grids that priors are chosen on, with dense matrices.
CHOSEN_ON = 20
# Newton decrement at which to stop; steps, halvings, and longest step on the log scale.
TOLERANCE, STEPS, HALVINGS, LONGEST = 0.02, 200, 40, 4.0
# Share of the log-posterior that is lost to rounding.
ROUNDING = 1e-14
# Share of the predicted gain that a step must bring: a full one on a parabola brings half.
ENOUGH = 0.25
# Residual at which conjugate gradients stop, relative to the right-hand side, and their most steps.
RESIDUAL, GRADIENTS = 0.02, 400

Prior = GridField | DenseField


class Hyper(NamedTuple):
    """Range, in sides of the grid, and standard deviation of a field."""

    range: float
    deviation: float

    def on(self, shape: tuple[int, int]) -> GridField:
        """The field on the cells of a grid."""
        return GridField(shape, self.deviation, self.range * max(shape))


@dataclass(frozen=True, eq=False)
class Mode:
    """Mode of a field.

    Attributes
    ----------
    field : (V,) array
    log_evidence : float
        Laplace approximation, up to a constant shared by all priors; nan where systems were solved by iteration.
    """

    field: Floats
    log_evidence: float


def field_shares(likelihood: ReportLikelihood) -> Floats:
    """(V,) shares at the mode of the field, moved by one step of expectation maximisation where reports count once.

    Raises
    ------
    QualityError
        When no mode was found.
    """
    shape = likelihood.channel.shape
    side = math.ceil(max(shape) / CHOSEN_ON)
    hyper, field = chosen_prior(likelihood if side == 1 else likelihood.in_blocks(side))
    if side > 1:
        field = mode(likelihood, hyper.on(shape)).field
    shares = likelihood.shares(field)
    once = isinstance(likelihood.law, Multinomial)
    return likelihood.expectation_step(shares) if once else shares


def chosen_prior(likelihood: ReportLikelihood) -> tuple[Hyper, Floats]:
    """Prior of the highest evidence in the lists, found by a climb from their middle, and the mode (V,) under it."""
    shape, found = likelihood.channel.shape, dict[tuple[int, ...], Mode]()
    lists = len(RANGES), len(DEVIATIONS)
    here: tuple[int, ...] = (lists[0] // 2, lists[1] // 2)

    def height(place: tuple[int, ...]) -> float:
        hyper = Hyper(RANGES[place[0]], DEVIATIONS[place[1]])
        if place not in found:
            start = found[here].field if here in found else None
            found[place] = mode(likelihood, DenseField(hyper.on(shape)), start)
        return found[place].log_evidence - SHORT / hyper.range - LARGE * hyper.deviation

    best = height(here)
    while True:
        around = product(*(range(max(k - 1, 0), min(k + 2, most)) for k, most in zip(here, lists, strict=True)))
        heights = [(height(place), place) for place in around if place not in found]
        if not heights or max(heights)[0] <= best:
            return Hyper(RANGES[here[0]], DEVIATIONS[here[1]]), found[here].field
        best, here = max(heights)


def mode(likelihood: ReportLikelihood, prior: Prior, start: Floats | None = None) -> Mode:
    """Mode under a prior.

    Parameters
    ----------
    likelihood : ReportLikelihood
    prior : DenseField or GridField
        Dense ones have a factor made for every step.
    start : (V,) array, optional
        Field from which to search under a dense prior, such as the mode under another one.

    Raises
    ------
    QualityError
        When it was not found.
    """
    z = np.zeros(prior.size)
    if start is not None and isinstance(prior, DenseField):
        z = max(z, prior.whitened(start), key=partial(_height, likelihood, prior))
    value, along, before = _height(likelihood, prior, z), np.zeros(prior.size), (np.zeros(prior.size), math.inf)
    for _ in range(STEPS):
        field = prior.field(z)
        gradient = prior.adjoint(likelihood.gradient(field)) - z
        step, log_det = _newton(likelihood, prior, field, gradient)
        gain = float(gradient @ step)
        if gain <= TOLERANCE + ROUNDING * abs(value):
            return Mode(field, value - log_det / 2)
        # Conjugate directions (Polak & Ribiere), as counts bend otherwise than expected.
        along = step + max(0.0, (gain - float(before[0] @ step)) / before[1]) * along
        along = along if gradient @ along > 0 else step
        before = gradient, gain
        z, value = _line_search(likelihood, prior, z, along, value, float(gradient @ along))
    msg = "estimate: the mode of the field was not found; take the published estimator, which costs no more privacy."
    raise QualityError(msg)


def _height(likelihood: ReportLikelihood, prior: Prior, z: Floats) -> float:
    """Log-posterior."""
    return likelihood.log_density(prior.field(z)) - float(z @ z) / 2


def _newton(likelihood: ReportLikelihood, prior: Prior, field: Floats, gradient: Floats) -> tuple[Floats, float]:
    """Newton step with expected information, and the logarithm of the posterior precision's determinant."""
    if isinstance(prior, DenseField):
        information = prior.factor.T @ likelihood.information_matrix(field) @ prior.factor
        factor = np.linalg.cholesky(np.eye(prior.size) + information)
        return scipy.linalg.cho_solve((factor, True), gradient), 2 * float(np.log(np.diag(factor)).sum())
    from scipy.sparse.linalg import LinearOperator, cg

    product = likelihood.information(field)
    shape = (prior.size, prior.size)
    system = LinearOperator(shape, lambda z: z + prior.adjoint(product(prior.field(z))), dtype=float)
    # To the residual that Newton's method needs.
    return cg(system, gradient, rtol=RESIDUAL, maxiter=GRADIENTS)[0], math.nan


def _line_search(
    likelihood: ReportLikelihood, prior: Prior, z: Floats, along: Floats, value: float, slope: float
) -> tuple[Floats, float]:
    """Unknowns along a direction where the log-posterior is higher, and what it is there."""

    def at(length: float) -> tuple[Floats, float]:
        trial = z + length * along
        return trial, _height(likelihood, prior, trial)

    most = LONGEST / float(np.abs(prior.field(along)).max())
    length = min(1.0, most)
    found = at(length)
    if length == 1 and found[1] >= value + ENOUGH * slope:
        # Valleys are flatter than expected: farther, as long as it rises.
        while 2 * length <= most and (farther := at(2 * length))[1] > found[1]:
            length, found = 2 * length, farther
        return found
    for _ in range(HALVINGS):
        if found[1] >= value + ENOUGH * slope * length:
            break
        length /= 2
        found = at(length)
    return found
