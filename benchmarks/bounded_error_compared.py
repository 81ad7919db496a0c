"""Closed forms of benchmarks/bounded_error.py: laws at equal epsilon and delta, accuracy, the smallest delta of all."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from baselines import GeneralisedGaussian
from baselines.optimal_noise import optimal_delta, smallest_delta
from bounded_error_laws import THRESHOLD, Noise
from bounded_error_runs import SEED
from bounded_error_scores import Figure, share
from scipy.optimize import brentq

from dpppsynth.truncated import (
    PlanarLaplace,
    TruncatedLaplace,
    planar_laplace_delta,
    truncated_geometric_delta,
    truncated_laplace_delta,
)

THRESHOLDS = (1, 2, 3, 5, 10)
RATIOS = (0.75, 1.0, 1.5, 2.0, 2.5, 5.0, 5.5, 10.0)


class Compared(NamedTuple):
    """A law at one epsilon and delta, known without simulation."""

    law: str
    epsilon: float
    delta: float
    max_error: float
    variance: float
    mean_absolute: float
    beta: float


def compared(noises: Callable[[float], list[Noise]], epsilons: tuple[float, ...]) -> list[Compared]:
    """Closed forms of laws at each epsilon."""
    return [
        Compared(
            each.name, epsilon, each.delta, each.max_error, each.variance, each.mean_absolute, each.tail(THRESHOLD)
        )
        for epsilon in epsilons
        for each in noises(epsilon)
    ]


class Accuracy(NamedTuple):
    """Share of errors above a threshold, simulated and known."""

    law: str
    limit: float
    threshold: float
    delta: float
    beta: Figure


def accuracy(draws: int) -> list[Accuracy]:
    """Epsilon 1, as published: numbers and places, with and without bounds."""
    rng = np.random.default_rng([SEED, 10])
    rows = []
    for bound in (math.inf, 5.0, 10.0):
        line, plane = TruncatedLaplace(1.0, bound), PlanarLaplace(1.0, bound)
        named = "" if bound == math.inf else "truncated "
        deltas = truncated_laplace_delta(1.0, bound, allow_large_delta=True), planar_laplace_delta(1.0, bound)
        sizes = np.abs(line.sample(draws, rng)), np.hypot(*plane.sample(draws, rng).T)
        for law, name, delta, size in zip((line, plane), ("Laplace", "planar Laplace"), deltas, sizes, strict=True):
            rows += [
                Accuracy(f"{named}{name}", bound, each, delta, share(size > each, float(law.tail(each))))
                for each in THRESHOLDS
            ]
    return rows


class Optimum(NamedTuple):
    """Smallest delta of any additive noise within the bound, and those of two laws."""

    epsilon: float
    ratio: float
    smallest: float
    closed: float | None
    laplace: float
    excess: float
    geometric: float | None


def optima() -> list[Optimum]:
    """Optima by the bound in units of the sensitivity."""
    rows = []
    for epsilon in (0.1, 1.0):
        for ratio in RATIOS:
            halves = 2 * ratio == int(2 * ratio)
            laplace = truncated_laplace_delta(epsilon, ratio, allow_large_delta=True)
            geometric = truncated_geometric_delta(epsilon, int(ratio)) if ratio == int(ratio) else None
            closed = smallest_delta(epsilon, ratio) if halves else None
            smallest = optimal_delta(epsilon, ratio)
            # Both are rounded: an excess may be a hair below none.
            excess = max(0.0, laplace / smallest - 1)
            rows.append(Optimum(epsilon, ratio, smallest, closed, laplace, excess, geometric))
    return rows


class Implied(NamedTuple):
    """The bound at which a law has a published variance, and the delta that comes with it."""

    law: str
    epsilon: float
    published: float
    max_error: float
    delta: float


def implied() -> list[Implied]:
    """Published variances and mean squared errors at sensitivity 1; for places by both readings of variance."""
    rows = []
    for epsilon, published in ((0.1, 197.0), (0.1, 187.0), (0.9, 1.9), (0.9, 1.7)):
        bound = bound_of(published, partial(line_variance, epsilon))
        delta = truncated_laplace_delta(epsilon, bound, allow_large_delta=True)
        rows.append(Implied("truncated Laplace", epsilon, published, bound, delta))
    for epsilon, published in ((0.1, 258.0), (0.9, 2.8)):
        delta = GeneralisedGaussian(2.0, math.sqrt(2 * published)).delta(epsilon)
        rows.append(Implied("Gaussian", epsilon, published, math.inf, delta))
    for reading, counted in (("one coordinate", 0.5), ("both coordinates", 1.0)):
        for epsilon, published in ((0.1, 201.0), (0.9, 3.0)):
            bound = bound_of(published / counted, partial(plane_square, epsilon))
            delta = planar_laplace_delta(epsilon, bound)
            rows.append(Implied(f"truncated planar Laplace, {reading}", epsilon, published, bound, delta))
    return rows


def bound_of(published: float, spread: Callable[[float], float]) -> float:
    """The bound at which a spread that grows with it is the published one."""
    return float(brentq(lambda bound: spread(bound) - published, 1e-3, 1e4))


def line_variance(epsilon: float, bound: float) -> float:
    return TruncatedLaplace(1 / epsilon, bound).variance


def plane_square(epsilon: float, bound: float) -> float:
    return PlanarLaplace(epsilon, bound).mean_square
