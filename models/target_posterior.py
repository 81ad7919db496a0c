"""The target posterior of draws: a log-Gaussian Cox field given exact tent masses.

`w = centre + basis z`, prior `z ~ N(0, diag(precision)^-1)`, density proportional to
`prior(z) exp(masses'w - measure'e^w)`. It sees the points through their tent masses alone.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from dpppsynth.core.errors import QualityError
from dpppsynth.spatial.mesh import Floats

# Newton steps; squared Newton decrements at which the mode is found, and below which full steps converge.
STEPS, PRECISE, SAFE = 200, 1e-12, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class FieldPrior:
    """Gaussian prior of the log-intensity at the mesh's vertices; public.

    Attributes
    ----------
    centre : (V,) array
        Prior mean.
    basis : (V, r) array
        Factor M; its last column is the intercept's.
    precision : (r,) array
        Prior precision of z: 1, or 0 for a flat intercept.
    measure : (V,) array
        Integrals of the basis functions, times any offset.
    """

    centre: Floats
    basis: Floats
    precision: Floats
    measure: Floats

    @classmethod
    def gaussian(cls, root: Floats, measure: Floats, centre: float, sd: float) -> "FieldPrior":
        """Field with covariance `root root'` and an independent intercept `N(centre, sd^2)`."""
        basis = np.column_stack([root, np.full(len(root), sd)])
        return cls(np.full(len(root), centre), basis, np.ones(basis.shape[1]), measure)

    @classmethod
    def flat(cls, root: Floats, measure: Floats) -> "FieldPrior":
        """Field with covariance `root root'` and a flat intercept: proper after at least one point."""
        basis = np.column_stack([root, np.ones(len(root))])
        precision = np.ones(basis.shape[1])
        precision[-1] = 0
        return cls(np.zeros(len(root)), basis, precision, measure)

    def posterior(self, masses: Floats) -> "PointPosterior":
        """Posterior given tent masses (V,)."""
        return PointPosterior(self, masses)


@dataclass(frozen=True, eq=False, repr=False)
class PointPosterior:
    """Posterior given exact tent masses: as secret as they are, and without a telling `repr`."""

    prior: FieldPrior
    masses: Floats

    def field(self, z: Floats) -> Floats:
        """(..., V) log-intensity of z (..., r)."""
        return self.prior.centre + z @ self.prior.basis.T

    def log_density(self, z: Floats) -> tuple[float, Floats]:
        """Log-density at z (r,) up to a constant, and its gradient (r,)."""
        return log_density(self.prior, self._linear, self.prior.precision, z)

    def information(self, z: Floats) -> Floats:
        """(r, r) negative Hessian of the log-density at z."""
        return _information(self.prior, self.prior.precision, z)

    def mode(self) -> Floats:
        """(r,) mode; errors as in `maximise`."""
        return maximise(self.prior, self._linear, self.prior.precision, np.zeros(len(self._linear)))

    @property
    def _linear(self) -> Floats:
        return self.prior.basis.T @ self.masses


def log_density(prior: FieldPrior, linear: Floats, precision: Floats, z: Floats) -> tuple[float, Floats]:
    """`linear'z - z' diag(precision) z / 2 - measure'e^w` at z (r,), and its gradient (r,)."""
    mass = prior.measure * np.exp(prior.centre + prior.basis @ z)
    value = linear @ z - precision @ z**2 / 2 - mass.sum()
    return float(value), linear - precision * z - prior.basis.T @ mass


def maximise(prior: FieldPrior, linear: Floats, precision: Floats, start: Floats) -> Floats:
    """(r,) maximum of `log_density`, by damped Newton steps to solver precision.

    Raises
    ------
    QualityError
        When it is not found; the message shows no figure.
    """

    def value(z: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return log_density(prior, linear, precision, z)[0]

    z = start
    for _ in range(STEPS):
        here, gradient = log_density(prior, linear, precision, z)
        step = scipy.linalg.solve(_information(prior, precision, z), gradient, assume_a="pos")
        rise = gradient @ step
        if rise < PRECISE:
            return z + step
        share = 1.0
        # Close to the maximum full steps converge, and differences of values are lost in rounding.
        while rise > SAFE and share > 0 and not value(z + share * step) > here + share * rise / 4:
            share /= 2
        z = z + share * step
    msg = "sampler: the posterior mode was not found; take a longer length scale or a smaller sigma."
    raise QualityError(msg)


def _information(prior: FieldPrior, precision: Floats, z: Floats) -> Floats:
    mass = prior.measure * np.exp(prior.centre + prior.basis @ z)
    return np.diag(precision) + prior.basis.T @ (mass[:, None] * prior.basis)
