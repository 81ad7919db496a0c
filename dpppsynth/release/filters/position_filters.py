"""Particle filter of positions with planar Laplace noise, truncated or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import flag, whole
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace
from dpppsynth.release.filters import filter_arguments
from dpppsynth.release.filters.cloud import follow
from dpppsynth.release.filters.filtered_series import Filtered
from dpppsynth.release.filters.step_sizes import settled
from dpppsynth.spatial.mesh import Floats


def cartesian_filter(
    points: Any,
    *,
    epsilon: float,
    bound: float,
    step: Any = "likely",
    particles: int = 1000,
    resample: bool = True,
    rng: RngLike = None,
) -> Filtered:
    """Mean of every position given the reported ones up to it, where positions change little from one to the next.

    The hidden track is taken for a random walk with Gaussian steps in both coordinates. Each estimate is within
    `bound` of the report, and hence within twice the bound of the truth.

    Parameters
    ----------
    points : (N, 2) array
        Reported positions of one person in the order of time. In another order the result is as private and useless.
    epsilon : float
        Of the noise, per unit of length.
    bound : float
        On how far a point was moved; infinite for noise without a bound.
    step : {"likely", "differences"} or float
        Standard deviation of the change of each coordinate per step: estimated from the reports, by the rules of
        `likely_step` and `estimated_step`, or public. The second is poor where steps are small beside the noise.
    particles, resample, rng
        As in `particle_filter`.

    Returns
    -------
    Filtered
        With estimates (N, 2).

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> found = cartesian_filter([[0, 0], [2, 0], [0, 2]], epsilon=1.0, bound=5.0, step=0.5, rng=1)
    >>> found.estimate.shape, found.bound
    ((3, 2), 10.0)
    """
    reports, law = filter_arguments.positions(points), PlanarLaplace(epsilon, bound)
    used = settled("step", step, reports, law.variance, 1 / law.epsilon)
    model = _Track(reports, law, whole("particles", particles, 1, most=filter_arguments.MOST_PARTICLES), used)
    found, restarts = follow(model, len(reports), rng=generator(rng), resample=flag("resample", resample))
    return Filtered(found[:, 0], restarts, used, 2 * law.bound)


@dataclass(frozen=True)
class _Track:
    """A random walk in the plane seen through noise: a `StateModel` of one series, whose states are points."""

    reports: Floats
    law: PlanarLaplace
    size: int
    step: float

    def start(self, k: int, rows: np.ndarray, rng: np.random.Generator) -> Floats:
        return np.asarray(self.reports[k] - self.law.sample(self.size, rng))[None]

    def propose(self, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        moved = particles + self.step * rng.standard_normal(particles.shape)
        return moved, np.asarray(self.law.logpdf(self.reports[k] - moved[0]))[None]

    def estimate(self, k: int, weights: Floats, particles: Floats) -> Floats:
        return self.reports[k] + np.einsum("tm,tmd->td", weights, particles - self.reports[k])

    def alone(self, k: int) -> Floats:
        return self.reports[None, k]
