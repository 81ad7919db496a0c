"""Log-posterior of a dense log-Gaussian field given a private statistic, with its gradient, as machine code.

Numba compiles it once, for all fields and statistics, and keeps it on disk: a few seconds the first time on a machine,
a fraction of a second afterwards. Nothing of a statistic is in the code; it is handed over with every call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from dpppsynth.models import likelihood as formulas
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False)
class FieldDensity:
    """Log-density of z, up to a constant: `z ~ N(0, I)` and the likelihood of the field `centre + basis z`.

    The posterior of `dpppsynth.models.build_noise_aware`.

    Attributes
    ----------
    likelihood : NoisyMasses or NoisyField
    basis : (V, r) array
        Factor of the prior covariance.
    centre : float
        Prior mean of the field.
    """

    likelihood: MassLikelihood
    basis: Floats
    centre: float = 0.0

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.basis.shape[1]

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        """A function of z (r,) that gives the value and the gradient (r,)."""
        observed, measure, response, n, shift = self.likelihood.arguments
        basis, *rest = map(_contiguous, (self.basis, observed, measure, response))
        code = _compiled(self.likelihood.law.__name__)
        return partial(code, basis, float(self.centre), *rest, float(n), float(shift))


def _contiguous(values: Floats) -> Floats:
    """The one form of arrays that code is compiled for."""
    return np.ascontiguousarray(values, dtype=np.float64)


@cache
def _compiled(law: str) -> Callable[..., Any]:
    """The formula of `likelihood.py` for one law; kept beside that file, or where Numba keeps code of a user."""
    from dpppsynth.core.sorted_search import compiled

    _register()
    return compiled(formulas.LOG_POSTERIORS[law])


@cache
def _register() -> None:
    """Let compiled functions call the others by their names."""
    from numba.extending import register_jitable

    named = formulas.shifted_poisson, formulas.standard_normal, formulas.mass_log_density, formulas.log_posterior
    for function in named:
        register_jitable(function)
