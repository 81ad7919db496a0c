"""How smooth a noisy series is: the step under which it is most likely."""

from typing import Any

import numpy as np

from dpppsynth.filters import checks
from dpppsynth.filters.particle import LEAST_STEP
from dpppsynth.mesh import Floats
from dpppsynth.truncated import TruncatedLaplace

# Steps that are tried, evenly spaced in logarithms: being off by half of that spacing hardly matters to a filter.
TRIED = 40


def likely_step(observations: Any, scale: float, bound: float) -> float:
    """Standard deviation of steps under which noisy series, all of those side by side together, are most likely.

    The noise is taken for Gaussian of the same variance, which makes a random walk seen through it the local level
    model, whose likelihood a Kalman filter gives. It sees all correlations of the series, and finds steps that are too
    small for `estimated_step`, which looks at neighbours alone.

    Parameters
    ----------
    observations : (N,) or (N, T) array
        Released numbers.
    scale, bound : float
        Of the noise; the bound may be infinite.

    Returns
    -------
    float
        One of 40 numbers, from 0.001 scales to twice the differences of the noisy series; a single observation gives
        the smallest.

    Raises
    ------
    InputError
        An argument breaks its rule.

    References
    ----------
    Harvey (1989), Forecasting, structural time series models and the Kalman filter, section 4.1.2.

    Examples
    --------
    >>> from dpppsynth.filters import estimated_step
    >>> series = [0, 4, 1, 6, 4, 8, 6, 9, 12, 9]
    >>> round(likely_step(series, 3.0, 20.0), 1), estimated_step(series, 3.0, 20.0)
    (1.0, 0.003)
    """
    noisy, law = checks.series(observations), TruncatedLaplace(scale, bound)
    noisy = noisy[:, None] if noisy.ndim == 1 else noisy
    least = LEAST_STEP * law.scale
    most = 2 * float(np.sqrt(np.mean(np.diff(noisy, axis=0) ** 2))) if len(noisy) > 1 else 0.0
    steps = np.geomspace(least, max(least, most), TRIED)
    return float(steps[np.argmax(_log_likelihoods(noisy, law.variance, steps))])


def _log_likelihoods(noisy: Floats, variance: float, steps: Floats) -> Floats:
    """(S,) logarithms, up to a constant, of the densities of all but the first of noisy series (N, T)."""
    level, spread = np.repeat(noisy[:1], len(steps), axis=0), np.full(len(steps), variance)
    total = np.zeros(len(steps))
    for seen in noisy[1:]:
        spread = spread + steps**2
        predicted = spread + variance
        surprise = seen - level
        total -= len(seen) * np.log(predicted) / 2 + (surprise**2).sum(axis=1) / predicted / 2
        gain = spread / predicted
        level, spread = level + gain[:, None] * surprise, variance * gain
    return total
