"""The posterior of a field behind moved points in coordinates in which its Laplace approximation is nearly standard.

Points moved far tell of few directions of white noise `x ~ N(0, I)`, from which the field is made by fast transforms.
Along the eigenvectors U of the information on x at the mode m, with eigenvalues k, the approximation's standard
deviations are `d = (1 + k)^(-1/2)`, and 1 across them. So `x = m + z + U (d - 1) U' z`, with the directions of which
most is known; value and gradient take four products with these few, beside the transforms.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpppsynth.models.moved_posterior import LatticePosterior, MovedLikelihood
from dpppsynth.models.nuts import DensityAboutMode
from dpppsynth.models.spectral_fields import MovedPrior
from dpppsynth.spatial.mesh import Floats

# Information, in precisions of the prior, from which a direction is told apart; how many are looked for at first, and
# at most, twice as many each time.
KNOWN, FIRST, MOST = 0.2, 64, 512
# Real numbers up to which all directions are found, without iteration; error of eigenvalues that are found with it.
FEW, ROUGH = 256, 1e-3
# Differences between places that are rounding alone.
EVEN = 1e-9


@dataclass(frozen=True, eq=False)
class MovedDensity(DensityAboutMode):
    """Log-density of z (R,), where white noise of the prior is `mode + z + axes less axes' z`.

    Attributes
    ----------
    likelihood : MovedLikelihood
    prior : MovedPrior
    mode : (R,) array
    axes : (R, q) array
        Orthonormal directions of which the points tell most.
    less : (q,) array
        Standard deviations along them, less 1.
    """

    likelihood: MovedLikelihood
    prior: MovedPrior
    mode: Floats
    axes: Floats
    less: Floats

    @classmethod
    def about(cls, fit: LatticePosterior) -> "MovedDensity":
        """The density about a mode that was found."""
        values, axes = _directions(fit)
        return cls(fit.likelihood, fit.prior, fit.prior.to_real(fit.mode), axes, 1 / np.sqrt(1 + values) - 1)

    @property
    def size(self) -> int:
        return len(self.mode)

    @property
    def is_even(self) -> bool:
        """Whether all fields are the same everywhere, and z is standard normal as no count tells of it."""
        moved = self.prior.field(self.prior.white(1, np.random.default_rng(0)))
        return bool(np.ptp(moved) < EVEN)

    def fields(self, z: Floats) -> Floats:
        """(..., V) fields at z (..., R)."""
        return self.prior.field(self.prior.of_real(self.noise(z)))

    def effects(self, z: Floats) -> Floats:
        """(..., p) effects of covariates at z (..., R), in their prior's standard deviations."""
        return self.noise(z)[..., self.size - self.prior.effects :]

    def absolute(self) -> Callable[[Floats], tuple[float, Floats]]:
        return self._value_and_gradient

    def noise(self, z: Floats) -> Floats:
        """(..., R) white noise at z (..., R)."""
        return np.asarray(self.mode + self._scaled(z))

    def _scaled(self, z: Floats) -> Floats:
        """(..., R) products of z with the root of the approximation's covariance, which is symmetric."""
        return np.asarray(z + (z @ self.axes * self.less) @ self.axes.T)

    def _value_and_gradient(self, z: Floats) -> tuple[float, Floats]:
        noise, prior = self.noise(z), self.prior
        value, slope = self.likelihood.value_and_gradient(prior.field(prior.of_real(noise)))
        gradient = self._scaled(prior.to_real(prior.adjoint(slope)) - noise)
        return value - float(noise @ noise) / 2, gradient


def _directions(fit: LatticePosterior) -> tuple[Floats, Floats]:
    """(q,) information at the mode on real numbers of the prior, the largest, and (R, q) its directions."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    prior, product = fit.prior, fit.likelihood.information(fit.field)

    def told(numbers: Floats) -> Floats:
        return prior.to_real(prior.adjoint(product(prior.field(prior.of_real(numbers)))))

    size, count = prior.freedoms, FIRST
    start = np.random.default_rng(0).standard_normal(size)
    if np.abs(told(start)).max() < EVEN:
        return np.empty(0), np.empty((size, 0))
    while True:
        whole = size <= max(FEW, 2 * count)
        if whole:
            values, axes = np.linalg.eigh(told(np.eye(size)))
        else:
            values, axes = eigsh(LinearOperator((size, size), told, dtype=np.float64), count, v0=start, tol=ROUGH)
        if whole or count >= MOST or values.min() < KNOWN:
            known = values > KNOWN
            return values[known], np.ascontiguousarray(axes[:, known])
        count *= 2
