"""Classifiers for audits: a linear discriminant or the best single feature, fitted on the training trials alone.

Directions are by linear discriminant analysis on standardised features, its covariance shrunk towards the identity.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.contract.audits.target import AuditStatistic

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]


class Direction(NamedTuple):
    """Scores `(x - centre) . weights`, of standard deviation about one."""

    centre: Floats
    weights: Floats

    def scores(self, features: Floats) -> Floats:
        """(N,) scores of features (N, k)."""
        return np.asarray((features - self.centre) @ self.weights)


def learn_direction(first: Floats, second: Floats) -> Direction:
    """Direction from features (N, k) of runs on either input.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> learned = learn_direction(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + [1.0, 0.0])
    >>> bool(abs(learned.weights[0]) > 5 * abs(learned.weights[1]))
    True
    """
    means = first.mean(axis=0), second.mean(axis=0)
    residuals = np.concatenate([first - means[0], second - means[1]])
    scale = residuals.std(axis=0)
    # A feature that never varied, as far as was seen, may be the leak.
    scale[scale == 0] = 1.0
    standard = residuals / scale
    count, k = standard.shape
    shrink = (k + 1) / (k + 1 + count)
    covariance = (1 - shrink) * (standard.T @ standard) / count + shrink * np.eye(k)
    weights = np.linalg.solve(covariance, (means[1] - means[0]) / scale) / scale
    length = float(np.std(residuals @ weights)) or 1.0
    return Direction((means[0] + means[1]) / 2, weights / length)


def best_alone(first: Floats, second: Floats) -> int:
    """Index of the feature, of k (N, k), that separates the inputs best: by most standard deviations.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> best_alone(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + [0.0, 0.0, 0.5])
    2
    """
    count = len(first)
    values = np.concatenate([first, second])
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(order < count, axis=0), np.cumsum(order >= count, axis=0)
    # Thresholds do not part equal values.
    last = np.concatenate([ordered[1:] != ordered[:-1], np.ones((1, first.shape[1]), dtype=bool)])
    p, q = ((each + 0.5) / (count + 1) for each in below)
    apart = np.where(last, np.abs(p - q) / np.sqrt(p * (1 - p) + q * (1 - q)), 0.0)
    return int(apart.max(axis=0).argmax())


def training_scores(pair: Pair, statistic: AuditStatistic, *, share: int) -> tuple[Pair, Pair]:
    """Scores of the training trials, and of the others.

    Where a direction is learned, either half of the training trials is scored by that of the other half: scores of
    the trials that a direction was learned from are too good to choose a threshold by.

    Parameters
    ----------
    pair : two (N, k) arrays
    statistic : AuditStatistic
        Where nothing is learned k = 1, and the feature is the score.
    share : int
        The first of so many parts of the trials are training.
    """
    first, second = pair
    cut = len(first) // share
    if not statistic.learned or statistic.alone:
        best = best_alone(first[:cut], second[:cut]) if statistic.learned else 0
        scores = first[:, best], second[:, best]
        return (scores[0][:cut], scores[1][:cut]), (scores[0][cut:], scores[1][cut:])
    whole = learn_direction(first[:cut], second[:cut])
    half = cut // 2
    parts = slice(0, half), slice(half, cut)
    crossed = [learn_direction(first[other], second[other]) for other in reversed(parts)]
    seen = [
        np.concatenate([direction.scores(side[part]) for part, direction in zip(parts, crossed, strict=True)])
        for side in pair
    ]
    return (seen[0], seen[1]), (whole.scores(first[cut:]), whole.scores(second[cut:]))
