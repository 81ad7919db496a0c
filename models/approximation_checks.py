"""Checks of a Gaussian approximation of a posterior: importance weights, and the posterior along lines.

Weights of draws of a whole field tell whether they could correct the approximation. With hundreds of informed
directions they cannot, however good it is at each place: small errors of all directions add up in the logarithm. The
second check looks at single places. It follows the posterior along the line in which the approximation moves with the
field there, and asks for the probability of the interval that should hold 90 %. Less says that the interval is too
narrow; more, that it is too wide, or that the posterior bends away from straight lines: a fine field behind many points
keeps the masses of coarse tents, and not their linear approximation.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy

from dpppsynth.spatial.mesh import Floats, Ints

# Places that are looked at.
PLACES = 8
NOMINAL = 0.9
# Standard deviations from the mode at which the posterior is looked at, and ends of the interval of 90 %.
STEPS = np.linspace(-4.0, 4.0, 9)
END = 1.6448536269514722
# Logarithms of weights that differ by less are the same but for rounding.
ALIKE = 1e-6
FINE = np.linspace(-4.0, 4.0, 1601)


class Approximation(Protocol):
    """Gaussian approximation of the posterior of some unknowns, about its mode."""

    def deviations(self, k: int, rng: np.random.Generator) -> Floats:
        """(r, k) draws less the mode."""

    def directions(self, vertices: Ints) -> Floats:
        """(r, m) unknowns that move with the field at vertices (m,), by its standard deviation there."""

    def log_ratios(self, likelihood: Any, deviations: Floats) -> Floats:
        """(k,) log posterior over approximation at deviations (r, k) from the mode, up to a constant."""


@dataclass(frozen=True)
class ApproximationCheck:
    """`pareto_k` of weights of whole fields; `profile`, the worst probability of a nominal 90 % interval at a place."""

    pareto_k: float
    profile: float


def check_approximation(
    fit: Approximation, likelihood: Any, vertices: int, draws: int, rng: np.random.Generator
) -> ApproximationCheck:
    """Check an approximation by some draws, and at some of so many vertices.

    Few draws say little about large weights: the shape comes out too small rather than too large.
    """
    weights = fit.log_ratios(likelihood, fit.deviations(draws, rng))
    along = fit.directions(rng.choice(vertices, min(PLACES, vertices), replace=False))
    ratios = fit.log_ratios(likelihood, np.einsum("rm,s->rms", along, STEPS).reshape(len(along), -1))
    inside = held(ratios.reshape(-1, len(STEPS)))
    return ApproximationCheck(pareto_k(weights), float(inside[np.argmax(np.abs(inside - NOMINAL))]))


def held(log_ratios: Floats) -> Floats:
    """(m,) probability of the nominal 90 % interval under densities whose ratios (m, 9) to the normal are given."""
    curve = scipy.interpolate.CubicSpline(STEPS, log_ratios, axis=1)(FINE) - FINE**2 / 2
    density = np.exp(curve - curve.max(axis=1, keepdims=True))
    return np.asarray(density[:, np.abs(FINE) <= END].sum(axis=1) / density.sum(axis=1))


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto law of the largest importance weights (k,); above 0.7 they are of no use.

    The estimator of Zhang & Stephens (2009) with the prior of Vehtari et al. (2024). ArviZ has it in other places in
    every version, and takes two seconds to load. Laws that rise to their end have shapes of -1 and below, which are all
    told as -1, as is that of weights which differ by rounding alone.
    """
    ordered = np.sort(log_weights)
    ordered = ordered - ordered[-1]
    if ordered[0] > -ALIKE:
        return -1.0
    tail = int(np.ceil(min(0.2 * len(ordered), 3 * np.sqrt(len(ordered)))))
    above = np.exp(ordered[-tail:]) - np.exp(ordered[-tail - 1])
    above = above[above > 0]
    if len(above) < 5:
        return float("inf")
    size, quarter = len(above), above[int(len(above) / 4 + 0.5) - 1]
    count = 30 + int(np.sqrt(size))
    theta = (1 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))) / (3 * quarter) + 1 / above[-1]
    shape = np.log1p(-theta[:, None] * above).mean(axis=1)
    profile = size * (np.log(-theta / shape) - shape - 1)
    weight = np.exp(profile - profile.max())
    best = float((theta * weight).sum() / weight.sum())
    k = float(np.log1p(-best * above).mean())
    return max((size * k + 5) / (size + 10), -1.0)
