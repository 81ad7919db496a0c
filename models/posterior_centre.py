"""Centre of a normal approximation of a posterior of noisy masses: its mean, where the mode is off the middle.

The posterior of a logarithm leans to one side where masses are small, so its mode is not where half of it lies, and
sums over many places are off by many times the same. The normal law with the covariance of the Laplace approximation
that is nearest to the posterior (least Kullback-Leibler divergence of it from the posterior) has the centre at which
the gradient of the log-posterior is zero on average over that law (van Niekerk & Rue 2024, J. Mach. Learn. Res. 25).
"""

from dataclasses import replace

import numpy as np

from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.sparse_posterior import SparsePosterior
from dpppsynth.spatial.mesh import Floats

# Pairs of opposite draws over which gradients are averaged, and most steps.
PAIRS, STEPS = 32, 12
# Squared length of the last step, in standard deviations over all unknowns: at most, or for each of many unknowns.
TOLERANCE, OF_EACH = 0.1, 1e-4
# Times that a step is halved at most, and most that it changes the field, on the log scale.
HALVINGS, LONGEST = 4, 1.0


def mean_centred(fit: SparsePosterior, likelihood: NoisyMasses, rng: np.random.Generator) -> SparsePosterior | None:
    """The approximation with the centre of the nearest normal law of its covariance in place of the mode.

    The centre is approached by steps with the precision at the mode, which are halved where they go too far. None where
    they do not come near, as behind fields of which so little is known that a normal law has no mean of their exp.
    """
    deviations = fit.deviations(PAIRS, rng)
    both = np.hstack([deviations, -deviations])
    centre = fit.mode
    step, length = _step(fit, likelihood, centre, both)
    enough = max(TOLERANCE, OF_EACH * fit.prior.size)
    for _ in range(STEPS):
        if length <= enough:
            return replace(fit, mode=centre)
        step = step * min(1.0, LONGEST / float(np.abs(fit.prior.placement @ step).max()))
        for halving in range(HALVINGS):
            trial = centre + step * 0.5**halving
            there = _step(fit, likelihood, trial, both)
            if there[1] < length:
                break
        else:
            break
        centre, (step, length) = trial, there
    return None


def _step(fit: SparsePosterior, likelihood: NoisyMasses, centre: Floats, deviations: Floats) -> tuple[Floats, float]:
    """Step (N,) from a centre, and its squared length in standard deviations."""
    gradient = mean_gradient(fit, likelihood, centre[:, None] + deviations)
    step = fit.precision.solve(gradient)
    return step, float(gradient @ step)


def mean_gradient(fit: SparsePosterior, likelihood: NoisyMasses, unknowns: Floats) -> Floats:
    """(N,) gradient of the log-posterior, averaged over unknowns (N, k)."""
    prior, response = fit.prior, likelihood.tents
    mass = likelihood.vertex_masses(fit.field_of(unknowns.T))
    pull = (response.T @ likelihood.slopes((response @ mass.T).T).T).T
    if likelihood.n is not None:
        pull = pull - ((pull * mass).sum(axis=1) / likelihood.n)[:, None]
    return np.asarray(prior.placement.T @ (mass * pull).mean(axis=0) - prior.precision @ unknowns.mean(axis=1))
