"""Particle filters of positions with planar Laplace noise: Cartesian, or distance and angle about an origin."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import flag, plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.inference.filters.particle import follow, particle_filter
from dpppsynth.inference.filters.series import LARGEST, MOST_PARTICLES, Filtered, released_positions, settled
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace
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

    Examples
    --------
    >>> found = cartesian_filter([[0, 0], [2, 0], [0, 2]], epsilon=1.0, bound=5.0, step=0.5, rng=1)
    >>> found.estimate.shape, found.bound
    ((3, 2), 10.0)
    """
    reports, law = released_positions(points), PlanarLaplace(epsilon, bound)
    used = settled("step", step, reports, law.variance, 1 / law.epsilon)
    model = _Track(reports, law, whole("particles", particles, 1, most=MOST_PARTICLES), used)
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


# Distances, in lengths of 1 / epsilon, that count as zero.
AT_ORIGIN = 1e-50


def polar_filter(
    points: Any,
    *,
    origin: Any,
    epsilon: float,
    bound: float,
    radial_step: Any = "likely",
    angular_step: Any = "likely",
    particles: int = 1000,
    resample: bool = True,
    rng: RngLike = None,
) -> Filtered:
    """Positions filtered in polar coordinates: two particle filters, one of distances to the origin, one of angles.

    Coordinates are those of the reports about a public origin. Filtering the length and the direction of the noise
    instead would take the true points, which a filter must never see: it is no post-processing, and there is no
    argument for it. Both likelihoods are approximations, for distance and angle of a moved point are neither
    independent nor Laplace; `cartesian_filter` has the right one and is better.

    Parameters
    ----------
    points : (N, 2) array
        Reported positions of one person in the order of time.
    origin : (2,) array
        Public, in the units of the points.
    epsilon, bound : float
        Of the noise, as in `cartesian_filter`.
    radial_step, angular_step : {"likely", "differences"} or float
        Standard deviations of the change of the distance, in units of length, and of the angle, in radians, per step:
        estimated from the reports as in `cartesian_filter`, or public.
    particles, resample, rng
        As in `particle_filter`, of each of the two.

    Returns
    -------
    Filtered
        With estimates (N, 2), x and y. Where distance and angle together led further than `bound` from the report the
        estimate is moved back towards it, on to the circle of that radius: the truth lies within. `restarts` are those
        of both filters, `step` is the pair of steps.

    Examples
    --------
    >>> found = polar_filter([[9, 0], [0, 9]], origin=[0, 0], epsilon=1.0, bound=5.0, angular_step=0.1, rng=1)
    >>> found.estimate.shape, found.bound
    ((2, 2), 10.0)
    """
    reports, centre, rng = released_positions(points), _origin(origin), generator(rng)
    offsets, noise = reports - centre, PlanarLaplace(epsilon, bound)
    step, turn = _steps(offsets, noise, radial_step, angular_step)
    settings: dict[str, Any] = {"particles": particles, "resample": resample, "rng": rng}
    radial = particle_filter(np.hypot(*offsets.T), scale=1 / noise.epsilon, bound=noise.bound, step=step, **settings)
    angles, restarts = _angles(offsets, noise, turn, **settings)
    radii = np.maximum(radial.estimate, 0.0)
    estimate = centre + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return Filtered(_within(estimate, reports, noise.bound), radial.restarts + restarts, (step, turn), 2 * noise.bound)


def _angles(
    offsets: Floats, noise: PlanarLaplace, step: float, *, particles: Any, resample: Any, rng: Any
) -> tuple[Floats, int]:
    """Filtered angles (N,), and restarts."""
    laws = [_law(float(distance), noise.epsilon, noise.bound) for distance in np.hypot(*offsets.T)]
    size = whole("particles", particles, 1, most=MOST_PARTICLES)
    model = _Turns(np.arctan2(offsets[:, 1], offsets[:, 0]), laws, size, step)
    found, restarts = follow(model, len(offsets), rng=rng, resample=flag("resample", resample))
    return found[:, 0], restarts


def _law(distance: float, epsilon: float, bound: float) -> TruncatedLaplace | None:
    """Law of the angle's error at a distance from the origin; None, uniform, where the noise may reach around it."""
    if distance <= bound < math.inf or epsilon * distance < AT_ORIGIN:
        return None
    return TruncatedLaplace(1 / (epsilon * distance), math.pi if bound == math.inf else math.asin(bound / distance))


def _steps(offsets: Floats, noise: PlanarLaplace, radial: Any, angular: Any) -> tuple[float, float]:
    """Steps of distance and angle, given or estimated; their noise has about the variance of a coordinate's."""
    distances, angles = np.hypot(*offsets.T), np.unwrap(np.arctan2(offsets[:, 1], offsets[:, 0]))
    # Where the noise is as large as the distance an angle is anything: variance pi^2 / 3.
    nearest = math.sqrt(3 * noise.variance) / math.pi
    turned = float(np.mean(noise.variance / np.maximum(distances, nearest) ** 2))
    step = settled("radial_step", radial, distances, noise.variance, 1 / noise.epsilon)
    return step, settled("angular_step", angular, angles, turned, math.sqrt(turned))


@dataclass(frozen=True)
class _Turns:
    """A random walk on the circle seen through noise: a `StateModel` of one series, whose states are angles."""

    angles: Floats
    laws: list[TruncatedLaplace | None]
    size: int
    step: float

    def start(self, k: int, rows: np.ndarray, rng: np.random.Generator) -> Floats:
        levels, law = (np.arange(self.size) + 0.5) / self.size, self.laws[k]
        errors = math.pi * (2 * levels - 1) if law is None else law.ppf(levels)
        return np.asarray(self.angles[k] - errors)[None]

    def propose(self, k: int, particles: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        moved = particles + self.step * rng.standard_normal(particles.shape)
        law = self.laws[k]
        return moved, np.zeros(moved.shape) if law is None else law.logpdf(wrapped(self.angles[k] - moved))

    def estimate(self, k: int, weights: Floats, particles: Floats) -> Floats:
        return circular_mean(particles, weights)

    def alone(self, k: int) -> Floats:
        return self.angles[None, k]


def wrapped(angles: Floats) -> Floats:
    """Angles in [-pi, pi) that differ from those given by full turns."""
    return np.asarray((angles + math.pi) % (2 * math.pi) - math.pi)


def circular_mean(angles: Floats, weights: Floats) -> Floats:
    """Direction of the weighted mean of unit vectors, along the last axis, in [-pi, pi].

    Examples
    --------
    >>> abs(float(circular_mean(np.array([0.1, 2 * np.pi - 0.1]), np.array([0.5, 0.5])))) < 1e-12
    True
    """
    return np.asarray(np.arctan2((weights * np.sin(angles)).sum(axis=-1), (weights * np.cos(angles)).sum(axis=-1)))


def _within(estimate: Floats, reports: Floats, bound: float) -> Floats:
    """Estimates further than the bound from their reports moved towards them, as near as the truth must be."""
    offsets = estimate - reports
    distances = np.hypot(*offsets.T)
    far = distances > bound
    estimate[far] = reports[far] + (bound / distances[far])[:, None] * offsets[far]
    return estimate


def _origin(origin: Any) -> Floats:
    array = plain_array(origin)
    right = array is not None and array.shape == (2,) and array.dtype.kind in "iuf"
    if array is None or not right or not (np.abs(array.astype(float)) <= LARGEST).all():
        msg = "origin: must be the two finite coordinates of a public point."
        raise InputError(msg)
    return array.astype(float)
