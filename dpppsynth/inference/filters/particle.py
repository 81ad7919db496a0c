"""Particle filters: the recursion that all share, and that of series with Laplace noise, truncated or not."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dpppsynth.core.arguments import flag, one_of, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.inference.filters.series import MOST_PARTICLES, Filtered, of_series, positive_size, released_series
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.spatial.mesh import Floats


class StateModel(Protocol):
    """State-space model of a particle filter: T hidden series, their noisy observations, M particles each."""

    def start(self, k: int, rows: np.ndarray, rng: np.random.Generator) -> Floats:
        """(rows, M, ...) particles of the k-th states given their own observations alone."""

    def propose(self, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(T, M, ...) particles of the k-th states, and increments (T, M) of their log weights, up to constants."""

    def estimate(self, k: int, weights: Floats, particles: Floats) -> Floats:
        """(T, ...) means of the k-th states."""

    def alone(self, k: int) -> Floats:
        """(T, ...) means of the k-th states given their own observations alone."""


def follow(model: StateModel, steps: int, *, rng: np.random.Generator, resample: bool) -> tuple[Floats, int]:
    """Estimates (steps, T, ...) of hidden states, and the number of times that a series restarted.

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
    """Weights (T, M) times the exponentials of increments, normalised; and the rows in which no weight is left.

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
    """(T,) effective sample size `1 / sum w^2`: from 1 to M."""
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


# Particles that are moved at once: blocks of series that a processor's cache holds.
BLOCK = 2**18


def particle_filter(
    observations: Any,
    *,
    scale: float,
    bound: float,
    step: Any = "likely",
    particles: int = 1000,
    proposal: str = "bootstrap",
    proposal_sd: float | None = None,
    resample: bool = True,
    rng: RngLike = None,
) -> Filtered:
    """Mean of every answer given the noisy answers up to it, where answers change little from one to the next.

    The hidden series is taken for a random walk with Gaussian steps, the noise is the release's own. Each estimate is
    within `bound` of the released number. It is better than that number where the truth is as smooth as `step` says,
    and worse where it is not: answers that have nothing to do with each other need no filter.

    Parameters
    ----------
    observations : (N,) or (N, T) array
        Released numbers in the order of time: one series, or T independent ones side by side. They must not be cut at
        zero or filtered before.
    scale : float
        Of the noise, as released.
    bound : float
        On the error, as released; infinite for noise without a bound.
    step : {"likely", "differences"}, float or (T,) array
        Standard deviation of the change from one answer to the next: estimated from the released numbers, for every
        series on its own, or public. Where all series change alike, `likely_step(observations, ...)` of all together is
        the better one. It is about as good as to know the step; `estimated_step`, named "differences", is poor where a
        series is smoother than the noise.
    particles : int
        M, for each series.
    proposal : {"bootstrap", "uniform", "gaussian"}
        Where particles are drawn from: around the last ones, within the bound around the observation, or from a
        Gaussian around it.
    proposal_sd : float, optional
        Standard deviation of the proposal "gaussian"; by default that of the noise.
    resample : bool
        Whether particles are drawn again by their weights where few of them carry all the weight.
    rng : None, int or Generator
        Noise is not involved: any seed keeps the release as private as it was.

    References
    ----------
    Gordon, Salmond & Smith (1993), Novel approach to nonlinear/non-Gaussian Bayesian state estimation.

    Examples
    --------
    >>> found = particle_filter([0, 1, 3], scale=1.0, bound=4.0, step=1.0, particles=20_000, rng=1)
    >>> found.estimate.round(), found.bound
    (array([0., 1., 2.]), 8.0)
    """
    noisy, law = released_series(observations), TruncatedLaplace(scale, bound)
    size, chosen = whole("particles", particles, 1, most=MOST_PARTICLES), _chosen(proposal, proposal_sd, law)
    used = of_series(step, noisy, law)
    resample, rng = flag("resample", resample), generator(rng)
    series = noisy[:, None] if noisy.ndim == 1 else noisy
    model = _Walks(series, law, size, chosen, np.broadcast_to(used, series.shape[1:])[:, None])
    found = [follow(part, len(noisy), rng=rng, resample=resample) for part in model.parts()]
    estimate = np.concatenate([part for part, _ in found], axis=1).reshape(noisy.shape)
    restarts = sum(restarts for _, restarts in found)
    return Filtered(estimate, restarts, used, 2 * law.bound)


Proposal = Callable[["_Walks", int, Floats, np.random.Generator], tuple[Floats, Floats]]


@dataclass(frozen=True)
class _Walks:
    """T random walks seen through noise: a `StateModel` whose states are numbers."""

    observations: Floats
    law: TruncatedLaplace
    size: int
    proposal: Proposal
    step: Floats

    def parts(self) -> list["_Walks"]:
        """Blocks of series."""
        width = max(1, BLOCK // self.size)
        blocks = [slice(start, start + width) for start in range(0, len(self.step), width)]
        return [replace(self, observations=self.observations[:, block], step=self.step[block]) for block in blocks]

    def start(self, k: int, rows: np.ndarray, rng: np.random.Generator) -> Floats:
        """Quantiles of the noise, taken off the observation: they stand for its law better than random numbers."""
        levels = (np.arange(self.size) + 0.5) / self.size
        return self.observations[k, rows, None] - self.law.ppf(levels)

    def propose(self, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        return self.proposal(self, k, particles, rng)

    def estimate(self, k: int, weights: Floats, particles: Floats) -> Floats:
        # Relative to the observation, so that no rounding takes the mean beyond the bound.
        seen = self.observations[k]
        return np.asarray(seen + np.einsum("tm,tm->t", weights, particles - seen[:, None]))

    def alone(self, k: int) -> Floats:
        return self.observations[k]

    def likelihood(self, k: int, particles: Floats) -> Floats:
        """(T, M) logarithms of the densities of the k-th observations."""
        return np.asarray(self.law.logpdf(self.observations[k, :, None] - particles))


def _bootstrap(model: _Walks, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    moved = particles + model.step * rng.standard_normal(particles.shape)
    return moved, model.likelihood(k, moved)


def _uniform(model: _Walks, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    moved = model.observations[k, :, None] + model.law.bound * rng.uniform(-1, 1, particles.shape)
    return moved, model.likelihood(k, moved) - ((moved - particles) / model.step) ** 2 / 2


def _gaussian(sd: float) -> Proposal:
    def proposal(model: _Walks, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        normal = rng.standard_normal(particles.shape)
        moved = model.observations[k, :, None] + sd * normal
        return moved, model.likelihood(k, moved) - ((moved - particles) / model.step) ** 2 / 2 + normal**2 / 2

    return proposal


def _chosen(proposal: Any, sd: Any, law: TruncatedLaplace) -> Proposal:
    one_of("proposal", proposal, ("bootstrap", "uniform", "gaussian"))
    if sd is not None and proposal != "gaussian":
        msg = f"proposal_sd: belongs to proposal='gaussian', got it with {proposal!r}; leave it out."
        raise InputError(msg)
    if proposal == "uniform" and law.bound == math.inf:
        msg = "proposal: 'uniform' draws within the bound, which is infinite here; take 'bootstrap' or 'gaussian'."
        raise InputError(msg)
    if proposal == "gaussian":
        return _gaussian(math.sqrt(law.variance) if sd is None else positive_size("proposal_sd", sd))
    return _bootstrap if proposal == "bootstrap" else _uniform
