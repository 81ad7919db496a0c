"""The posterior of a sparse field in coordinates in which its Laplace approximation is standard normal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.models.nuts import Density
from dpppsynth.models.sparse_posterior import SparsePosterior, log_density
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False)
class WhitenedDensity(Density):
    """Log-density of z, where unknowns of the field are `mode + S z`, `S S'` the covariance of the approximation.

    Attributes
    ----------
    likelihood : MassLikelihood
    fit : SparsePosterior
    """

    likelihood: MassLikelihood
    fit: SparsePosterior

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.fit.prior.size

    def unknowns(self, z: Floats) -> Floats:
        """(..., N) unknowns of the field at z (..., N)."""
        flat = self.fit.precision.from_white(z.reshape(-1, self.size).T)
        return (self.fit.mode + flat.T).reshape(z.shape)

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        """A function of z (N,) that gives the value, compared with that of the mode, and the gradient (N,)."""
        fit, likelihood = self.fit, self.likelihood
        highest = log_density(likelihood, fit.prior, fit.centre, fit.mode)[0]

        def value_and_gradient(z: Floats) -> tuple[float, Floats]:
            unknowns = fit.mode + fit.precision.from_white(z)
            value, gradient, _ = log_density(likelihood, fit.prior, fit.centre, unknowns)
            return value - highest, np.asarray(fit.precision.to_white(gradient))

        return value_and_gradient
