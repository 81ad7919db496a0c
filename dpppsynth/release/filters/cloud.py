"""Sequential Monte Carlo: the recursion that all particle filters share, whatever the state is.

The recursion is the same on a line, in the plane and on a circle: propose, weigh, begin anew where every weight
vanished, estimate, resample where few particles carry all the weight.
"""

from typing import Protocol

import numpy as np

from dpppsynth.spatial.mesh import Floats


class StateModel(Protocol):
    """State-space model of a particle filter: T hidden series, their noisy observations, M particles each."""

    def start(self, k: int, rows: np.ndarray, rng: np.random.Generator) -> Floats:
        """(rows, M, ...) particles of the k-th states given their own observations alone."""

    def propose(self, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(T, M, ...) particles of the k-th states, and what (T, M) their log weights gain, up to constants."""

    def estimate(self, k: int, weights: Floats, particles: Floats) -> Floats:
        """(T, ...) means of the k-th states."""

    def alone(self, k: int) -> Floats:
        """(T, ...) means of the k-th states given their own observations alone."""


def follow(model: StateModel, steps: int, *, rng: np.random.Generator, resample: bool) -> tuple[Floats, int]:
    """Estimates (steps, T, ...) of hidden states, and how often the particles of a series began anew.

    A series begins, and begins anew, with the observation itself: its mean where nothing else is known.
    """
    estimates = [model.alone(0)]
    particles = model.start(0, np.ones(len(estimates[0]), dtype=bool), rng)
    equal = 1 / particles.shape[1]
    weights: Floats = np.full(particles.shape[:2], equal)
    restarts = 0
    for k in range(1, steps):
        # Steps of many standard deviations overflow to no weight at all, as they should.
        with np.errstate(over="ignore", invalid="ignore"):
            particles, gained = model.propose(k, particles, rng)
            weights, lost = updated(weights, gained)
        estimate = model.estimate(k, weights, particles)
        if lost.any():
            restarts += int(lost.sum())
            particles[lost] = model.start(k, lost, rng)
            estimate[lost] = model.alone(k)[lost]
        estimates.append(estimate)
        if resample:
            few = 2 * effective_size(weights) < weights.shape[1]
            particles[few] = resampled(particles[few], weights[few], rng)
            weights[few] = equal
    return np.array(estimates), restarts


def updated(weights: Floats, gained: Floats) -> tuple[Floats, np.ndarray]:
    """Weights (T, M) times exponentials of what their logarithms gain, normalised; and the rows where none is left.

    A gain that is no number counts as minus infinity. Rows where none is left get equal weights: no particle that had
    any weight comes near the observation, or others do so e^700 times better.

    Examples
    --------
    >>> updated(np.array([[0.5, 0.5]]), np.log([[3.0, 1.0]]))[0]
    array([[0.75, 0.25]])
    """
    gained = np.where(np.isfinite(gained), gained, -np.inf)
    top = gained.max(axis=1, keepdims=True)
    weights = weights * np.exp(gained - np.where(np.isneginf(top), 0.0, top))
    total = weights.sum(axis=1, keepdims=True)
    lost = total[:, 0] == 0
    weights[lost], total[lost] = 1.0, weights.shape[1]
    return weights / total, lost


def effective_size(weights: Floats) -> Floats:
    """(T,) how many particles of equal weights would be as good, `1 / sum w^2`: from 1 to M."""
    return np.asarray(1 / np.einsum("tm,tm->t", weights, weights))


def resampled(particles: Floats, weights: Floats, rng: np.random.Generator) -> Floats:
    """Particles (T, M, ...) of equal weights: systematic resampling, one uniform number for each series.

    A particle of weight w has `M w` copies, rounded up or down.
    """
    rows, m = weights.shape
    edges = np.cumsum(weights, axis=1)
    edges = np.concatenate([np.zeros((rows, 1)), edges / edges[:, -1:]], axis=1)
    copies = np.diff(np.ceil(m * edges - rng.random((rows, 1))), axis=1).astype(np.intp)
    flat = particles.reshape(rows * m, *particles.shape[2:])
    return np.repeat(flat, copies.ravel(), axis=0).reshape(particles.shape)
