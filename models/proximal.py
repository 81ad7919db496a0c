"""Noisy proximal steps: posterior sampling that is private before convergence (Theorem E, docs/theory/sampling.md)."""

import math

import numpy as np

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.models.target_posterior import PointPosterior, maximise
from dpppsynth.spatial.mesh import Floats

# Step size and number of steps: mu grows by a factor 1.004.
ETA, STEPS = 0.1, 41


def proximal_draw(
    posterior: PointPosterior, rng: np.random.Generator, *, eta: float = ETA, steps: int = STEPS
) -> Floats:
    """(r,) last state z of `z <- prox(z + eta M' masses + sqrt(2 eta) N(0, I))`, from z = 0.

    The proximal map is that of `eta V`, `V(z) = |z|^2 / 2 + measure'e^w`: a contraction by `1 / (1 + eta)`. The masses
    enter as a constant shift.

    Parameters
    ----------
    posterior : PointPosterior
        With prior precision 1 in every coordinate.
    rng : numpy.random.Generator
        Secret randomness.

    Raises
    ------
    InputError
        For a flat intercept or another precision than 1, and for a step size or number of steps out of range.
    QualityError
        When a proximal step is not solved.
    """
    prior = posterior.prior
    if not np.array_equal(prior.precision, np.ones_like(prior.precision)):
        msg = "prior: the proximal sampler needs precision 1 in every coordinate; give the intercept a Gaussian prior."
        raise InputError(msg)
    _require(eta, steps)
    shift = eta * prior.basis.T @ posterior.masses
    z = np.zeros(len(shift))
    for _ in range(steps):
        y = z + shift + math.sqrt(2 * eta) * rng.standard_normal(len(z))
        z = maximise(prior, y / eta, prior.precision + 1 / eta, z)
    return z


def proximal_factor(eta: float = ETA, steps: int = STEPS) -> float:
    """Ratio of Theorem E's mu to Theorem A's: `sqrt((1 + eta/2) (1 - c^T) / (1 + c^T))`, `c = 1 / (1 + eta)`."""
    _require(eta, steps)
    kept = (1 + eta) ** -steps
    return math.sqrt((1 + eta / 2) * (1 - kept) / (1 + kept))


def _require(eta: float, steps: int) -> None:
    for name, value, default in (("eta", eta, ETA), ("steps", steps, STEPS)):
        positive(name, value, rule="be positive and finite", remedy=f"the default is {default}")
