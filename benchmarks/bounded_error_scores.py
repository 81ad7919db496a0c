"""Scores of benchmarks/bounded_error.py: of every repetition, their means with standard errors, and known values."""

import math
from typing import NamedTuple

import numpy as np

from dpppsynth.spatial.mesh import Floats

# Simulated numbers further than this many standard errors from a closed form end the run.
FARTHEST = 5.0


class Figure(NamedTuple):
    """A simulated number, its standard error, and the closed form where there is one."""

    value: float
    error: float
    known: float | None = None

    @property
    def z(self) -> float:
        """Standard errors between number and closed form; 0 where there is none."""
        if self.known is None or self.value == self.known:
            return 0.0
        return (self.value - self.known) / self.error if self.error else math.inf

    def below(self, other: "Figure") -> "Figure":
        """Relative difference by which this number is below another one; independent errors."""
        ratio = self.value / other.value
        return Figure(1 - ratio, abs(ratio) * math.hypot(self.error / self.value, other.error / other.value))


class Scores(NamedTuple):
    """Errors of a mechanism: mean, variance (per coordinate), mean square (in the plane: squared distance), tail.

    `means` are the smallest, quartiles and largest of the means of repetitions.
    """

    mean: Figure
    variance: Figure
    mse: Figure
    beta: Figure
    largest: float
    means: tuple[float, ...]


class Known(NamedTuple):
    """Closed forms of a law: variance (per coordinate) and probability of an error above the threshold."""

    variance: float
    beta: float


def figure(values: Floats, known: float | None = None, *, least_error: float = 0.0) -> Figure:
    """Mean over repetitions (R,) and its standard error."""
    return Figure(float(values.mean()), max(float(values.std(ddof=1)) / math.sqrt(len(values)), least_error), known)


def share(event: np.ndarray, known: float) -> Figure:
    """Observed share of an event, with the standard error of its known probability."""
    return Figure(float(event.mean()), math.sqrt(known * (1 - known) / event.size), known)


def of_numbers(errors: Floats, threshold: float) -> Floats:
    """(R, 5) mean, variance, mean square, share beyond the threshold, largest, of errors (R, N) of each repetition."""
    size = np.abs(errors)
    columns = [errors.mean(axis=1), errors.var(axis=1, ddof=1), (errors**2).mean(axis=1)]
    return np.column_stack([*columns, (size > threshold).mean(axis=1), size.max(axis=1)])


def of_places(errors: Floats, threshold: float) -> Floats:
    """(R, 5) the same of offsets (R, N, 2): mean of x, variance per coordinate, and distances for the rest."""
    square = (errors**2).sum(axis=2)
    distance = np.sqrt(square)
    columns = [errors[:, :, 0].mean(axis=1), errors.var(axis=1, ddof=1).mean(axis=1), square.mean(axis=1)]
    return np.column_stack([*columns, (distance > threshold).mean(axis=1), distance.max(axis=1)])


def summary(scores: Floats, numbers: int, known: Known | None = None, *, dimension: int = 1) -> Scores:
    """Means over repetitions; closed forms are those of `numbers` independent errors a repetition."""
    if known is None:
        mean, variance, mse, beta = (figure(scores[:, k]) for k in range(4))
    else:
        chance = math.sqrt(known.beta * (1 - known.beta) / (len(scores) * numbers))
        mean, variance = figure(scores[:, 0], 0.0), figure(scores[:, 1], known.variance)
        mse = figure(scores[:, 2], dimension * known.variance)
        beta = Figure(float(scores[:, 3].mean()), chance, known.beta)
    means = tuple(float(each) for each in np.quantile(scores[:, 0], (0, 0.25, 0.5, 0.75, 1)))
    return Scores(mean, variance, mse, beta, float(scores[:, 4].max()), means)
