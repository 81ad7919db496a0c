"""The posterior that draws are taken from: a log-Gaussian Cox field given exact tent masses.

`w = centre + basis z`, prior `z ~ N(0, diag(precision)^-1)`, density proportional to
`prior(z) exp(masses'w - measure'e^w)`. It sees the points through their tent masses alone.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dpppsynth.errors import QualityError
from dpppsynth.mesh import Floats

# Newton steps, and halvings of one step.
STEPS, HALVINGS = 200, 60


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
        prior, w = self.prior, self.field(z)
        mass = prior.measure * np.exp(w)
        value = self.masses @ w - mass.sum() - prior.precision @ z**2 / 2
        return float(value), prior.basis.T @ (self.masses - mass) - prior.precision * z

    def information(self, z: Floats) -> Floats:
        """(r, r) negative Hessian of the log-density at z."""
        mass = self.prior.measure * np.exp(self.field(z))
        return np.diag(self.prior.precision) + self.prior.basis.T @ (mass[:, None] * self.prior.basis)

    def mode(self) -> Floats:
        """(r,) mode, by damped Newton steps until they no longer help.

        Raises
        ------
        QualityError
            When it is not found; the message shows no figure.
        """
        z = np.zeros(len(self.prior.precision))
        here, gradient = self.log_density(z)
        for _ in range(STEPS):
            step = scipy.linalg.solve(self.information(z), gradient, assume_a="pos")
            slope = gradient @ step
            size = 1.0
            with np.errstate(over="ignore"):
                for _ in range(HALVINGS):
                    there, gradient_there = self.log_density(z + size * step)
                    if there >= here + 0.25 * size * slope:
                        break
                    size /= 2
            if slope < 1e-20 * (1 + abs(here)) or there < here:
                return z
            z, here, gradient = z + size * step, there, gradient_there
            if slope < 1e-16:
                return z
        msg = "sampler: the posterior mode was not found; take a longer length scale or a smaller sigma."
        raise QualityError(msg)
