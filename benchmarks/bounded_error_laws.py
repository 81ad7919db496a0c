"""Noise laws of benchmarks/bounded_error.py, each with its guarantee, its closed forms and a way to draw it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from baselines import (
    GeneralisedGaussian,
    Staircase,
    UniformNoise,
    analytic_gaussian_scale,
    generalised_gaussian_scale,
    optimal_gamma,
)
from baselines.optimal_noise import TruncatedStaircase

from dpppsynth.mechanisms.bounded.numeric_queries import BoundedErrorAnswers
from dpppsynth.spatial.mesh import Floats
from dpppsynth.truncated import (
    PlanarLaplace,
    TruncatedGeometric,
    TruncatedLaplace,
    move,
    planar_laplace_bound,
    planar_laplace_delta,
    truncated_geometric_bound,
    truncated_geometric_delta,
    truncated_laplace_bound,
)

# The delta of every bounded error here; epsilons and the threshold that the publication names.
DELTA = 1e-5
EPSILONS = (0.1, 0.3, 0.5, 0.7, 0.9)
THRESHOLD = 10.0
LAPLACE, TRUNCATED, WHOLE = "Laplace", "truncated Laplace (AE-DP)", "whole numbers, released"
GAUSSIAN, PLANAR_GAUSSIAN = "Gaussian (GGM, p = 2)", "Gaussian per coordinate"
STAIRCASE, UNIFORM, LEAST_DELTA = "staircase", "uniform", "truncated staircase"
PLANAR, TRUNCATED_PLANAR, MOVED = "planar Laplace", "truncated planar (AE-Geo)", "truncated planar, released"
# Side of the lattice of released places, in km.
STEP = 0.01
Draw = Callable[[tuple[int, ...], np.random.Generator], Floats]


@dataclass(frozen=True)
class Noise:
    """Independent additive noise: numbers, or offsets in the plane, whose `variance` is that of one coordinate."""

    name: str
    epsilon: float
    delta: float
    max_error: float
    variance: float
    mean_absolute: float
    tail: Callable[[float], float]
    draw: Draw


def number_noises(epsilon: float) -> list[Noise]:
    """Laws for numbers of which one changes by one; those that need a delta have 1e-5."""
    stairs, edge = Staircase(epsilon, 1.0, optimal_gamma(epsilon)), UniformNoise(1 / (2 * DELTA))
    cube = GeneralisedGaussian(3.0, generalised_gaussian_scale(epsilon, DELTA, 3))
    return [
        *both_laplace(epsilon, 1),
        of_law(GAUSSIAN, epsilon, DELTA, gaussian(analytic_gaussian_scale(epsilon, DELTA))),
        of_law("GGM, p = 3", epsilon, DELTA, cube),
        of_law(STAIRCASE, epsilon, 0.0, stairs),
        of_law(UNIFORM, epsilon, DELTA, edge),
        least_delta(epsilon),
    ]


def replaced_noises(epsilon: float) -> list[Noise]:
    """Laws for a histogram in which two counts change by one: stairs need half of epsilon for each of them."""
    return [
        *both_laplace(epsilon, 2),
        of_law(GAUSSIAN, epsilon, DELTA, gaussian(analytic_gaussian_scale(epsilon, DELTA, math.sqrt(2)))),
        of_law(STAIRCASE, epsilon, 0.0, Staircase(epsilon / 2, 1.0, optimal_gamma(epsilon / 2))),
    ]


def both_laplace(epsilon: float, sensitivity: int) -> list[Noise]:
    """Laplace noise for an L1 sensitivity: plain, truncated, and truncated on whole numbers."""
    scale, bound = sensitivity / epsilon, truncated_laplace_bound(epsilon, DELTA, sensitivity)
    return [
        of_law(LAPLACE, epsilon, 0.0, TruncatedLaplace(scale, math.inf)),
        of_law(TRUNCATED, epsilon, DELTA, TruncatedLaplace(scale, bound)),
        whole_noise(epsilon, sensitivity),
    ]


def gaussian(sigma: float) -> GeneralisedGaussian:
    return GeneralisedGaussian(2.0, math.sqrt(2) * sigma)


def of_law(name: str, epsilon: float, delta: float, law: Any) -> Noise:
    """A law with `variance`, `tail` and `sample`; its bound is the largest error."""
    bound = getattr(law, "bound", math.inf)
    return Noise(name, epsilon, delta, bound, law.variance, law.mean_absolute, lambda t: float(law.tail(t)), law.sample)


def whole_noise(epsilon: float, sensitivity: int) -> Noise:
    """Truncated two-sided geometric noise, drawn by the package's own release of whole answers."""
    bound = truncated_geometric_bound(epsilon, DELTA, sensitivity)
    law = TruncatedGeometric(sensitivity / epsilon, bound)
    plan = BoundedErrorAnswers(epsilon=epsilon, max_error=bound, sensitivity=sensitivity)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        zeros = np.zeros(math.prod(size), dtype=np.int64)
        return np.asarray(plan.release(zeros, rng).raw, dtype=float).reshape(size)

    delta = truncated_geometric_delta(epsilon, bound, sensitivity)
    return Noise(WHOLE, epsilon, delta, bound, law.variance, law.mean_absolute, lambda t: beyond(law, t), draw)


def least_delta(epsilon: float) -> Noise:
    """The law with the smallest delta of all within its bound, a half more than a whole number: blocks of width 1."""
    steps = truncated_geometric_bound(epsilon, DELTA)
    law = TruncatedStaircase(epsilon, steps)
    blocks = law.blocks

    def tail(threshold: float) -> float:
        block = math.floor(threshold + 0.5)
        share = (1 - 2 * threshold) if block == 0 else 2 * (block + 0.5 - threshold)
        return float(blocks.pmf(block)) * share + beyond(blocks, block) if block <= steps else 0.0

    # Within a block numbers are uniform, so only those of the middle one have another mean than its number.
    absolute = blocks.mean_absolute + float(blocks.pmf(0)) / 4
    return Noise(LEAST_DELTA, epsilon, law.exposed(1.0), law.bound, law.variance, absolute, tail, law.sample)


def beyond(law: TruncatedGeometric, threshold: float) -> float:
    """Probability of an absolute whole number above the threshold."""
    first = math.floor(threshold) + 1
    return 2 * float(law.pmf(np.arange(first, law.bound + 1)).sum()) if first <= law.bound else 0.0


def place_noises(epsilon: float) -> list[Noise]:
    """Laws for places; delta is that of two places one unit apart."""
    bound = planar_laplace_bound(epsilon, DELTA)
    sigma = analytic_gaussian_scale(epsilon, DELTA)
    delta = planar_laplace_delta(epsilon, bound)
    return [
        of_planar(PLANAR, 0.0, PlanarLaplace(epsilon)),
        of_planar(TRUNCATED_PLANAR, delta, PlanarLaplace(epsilon, bound)),
        Noise(
            PLANAR_GAUSSIAN,
            epsilon,
            DELTA,
            math.inf,
            sigma**2,
            sigma * math.sqrt(math.pi / 2),
            lambda t: math.exp(-((t / sigma) ** 2) / 2),
            lambda size, rng: sigma * rng.standard_normal((*size, 2)),
        ),
        moved(epsilon, bound),
    ]


def of_planar(name: str, delta: float, law: PlanarLaplace) -> Noise:
    """A planar law, plain or truncated."""

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return law.sample(math.prod(size), rng).reshape(*size, 2)

    numbers = law.variance, law.mean_radius
    return Noise(name, law.epsilon, delta, law.bound, *numbers, lambda t: float(law.tail(t)), draw)


def moved(epsilon: float, bound: float) -> Noise:
    """Truncated planar noise as the package releases it: exact, rounded to a lattice of `STEP`."""
    law = PlanarLaplace(epsilon, bound)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        origin = np.zeros((math.prod(size), 2))
        return STEP * move(origin, epsilon=epsilon, bound=bound, step=STEP, rng=rng).reshape(*size, 2)

    # Rounding adds the variance of a uniform number of width STEP.
    variance, most = law.variance + STEP**2 / 12, bound + STEP / math.sqrt(2)
    delta = planar_laplace_delta(epsilon, bound)
    numbers = variance, law.mean_radius
    return Noise(MOVED, epsilon, delta, most, *numbers, lambda t: float(law.tail(t)), draw)
