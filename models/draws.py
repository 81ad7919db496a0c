"""One NUTS draw of a log-Gaussian Cox posterior of raw masses: the last draw of the first chain, or a refusal.

The draw is what is released; diagnostics, the other draws and the reason of a refusal are the custodian's secret. Every
sensitive array enters the PyMC model as a data container, so that no compiled or cached code depends on it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
import threadpoolctl

from dpppsynth.core.errors import QualityError, ReleaseBlocked
from dpppsynth.models import nuts
from dpppsynth.models.lgcp import log_likelihood
from dpppsynth.models.nuts import Diagnostics, diagnose
from dpppsynth.models.target_posterior import LipschitzSet, PointPosterior
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    import pymc as pm

# Per chain, of which there are four.
DRAWS, TUNE = 2000, 1000
BLOCKED = (
    "sampler: NUTS did not pass its diagnostics. What they showed is secret, nothing is released, and the budget "
    "counts as spent. Rehearse the settings on surrogate patterns before the next release, or take another sampler."
)


@dataclass(frozen=True, eq=False, repr=False)
class NutsDraw:
    """A draw whose chains passed their diagnostics.

    Attributes
    ----------
    field : (V,) array
        Log-intensity at the mesh's vertices.
    diagnostics : Diagnostics
        Secret, like everything about the run but the draw itself.
    """

    field: Floats
    diagnostics: Diagnostics


def nuts_draw(
    posterior: PointPosterior,
    rng: np.random.Generator,
    *,
    support: LipschitzSet | None = None,
    engine: str = "nutpie",
) -> NutsDraw:
    """Draw a field from a posterior of exact masses.

    Parameters
    ----------
    posterior : PointPosterior
    rng : numpy.random.Generator
        Secret randomness: the chains' seed comes from it.
    support : LipschitzSet, optional
        Press the prior into this set; the draw then lies inside.
    engine : {"nutpie", "pymc"}

    Raises
    ------
    ReleaseBlocked
        When the diagnostics fail; the message shows nothing of the data.
    """
    with blocking(), threadpoolctl.threadpool_limits(1):
        mode = posterior.mode()
        root = whitening(posterior.information(mode))

    def fields(y: Floats) -> Floats:
        w = posterior.field(mode + y @ root.T)
        return w if support is None else support.press(w)

    result = gated_draw(build_whitened(posterior, mode, root, support), fields, rng, engine)
    if support is not None and not support(result.field[None])[0]:
        raise ReleaseBlocked(BLOCKED)
    return result


def whitening(information: Floats) -> Floats:
    """(r, r) root A of the inverse information, `A A' = Q^-1`; where `z = mode + A y`, y is about standard normal."""
    upper = scipy.linalg.cholesky(information)
    return np.asarray(scipy.linalg.solve_triangular(upper, np.eye(len(upper))))


def build_whitened(
    posterior: PointPosterior, mode: Floats, root: Floats, support: LipschitzSet | None = None
) -> "pm.Model":
    """Model of a posterior in the coordinates y of `z = mode + root y`.

    Returns
    -------
    pymc.Model
        Variable `z` (holding y); one potential with prior and likelihood.
    """
    import pymc as pm
    import pytensor.tensor as pt

    prior = posterior.prior
    with pm.Model() as model:
        y = pm.Flat("z", shape=len(mode))
        z = pm.Data("mode", mode) + pt.dot(pm.Data("root", root), y)
        w = posterior.field(z)
        w = w if support is None else support.press(w)
        likelihood = log_likelihood(w, pm.Data("masses", posterior.masses), prior.measure)
        pm.Potential("log_posterior", likelihood - pt.dot(np.ones(len(mode)), z**2) / 2)
    return model


def gated_draw(
    model: "pm.Model", fields: Callable[[Floats], Floats], rng: np.random.Generator, engine: str
) -> NutsDraw:
    """Run NUTS, pass the gate, return the last draw of the first chain.

    Parameters
    ----------
    model : pymc.Model
        With a vector variable `z`.
    fields : callable
        Log-intensities (k, V) of values (k, r) of `z`; all of them are monitored.
    rng : numpy.random.Generator
    engine : {"nutpie", "pymc"}
    """
    sampler = nuts.Sampler(model, engine)
    with blocking(), threadpoolctl.threadpool_limits(1):
        chains = sampler.sample(draws=DRAWS, tune=TUNE, seed=int(rng.integers(2**63)))
        values = np.stack([fields(z) for z in chains.z])
        diagnostics = diagnose(values, chains.divergences)
    if diagnostics.complaint() is not None:
        raise ReleaseBlocked(BLOCKED)
    return NutsDraw(values[0, -1], diagnostics)


@contextmanager
def blocking(message: str = BLOCKED) -> Iterator[None]:
    """Replace numerical errors and warnings, which may quote the data, by one refusal."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, RuntimeError, ValueError, QualityError):
        raise ReleaseBlocked(message) from None
