"""How much a hidden series changes per step, as its noisy observations tell.

Both rules see what was released alone. The likely step is the default of every filter. Differences of neighbours are
the plain rule that other work compares with, and a matter of chance where steps are small beside the noise.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpppsynth.arguments import one_of, plain_array
from dpppsynth.errors import InputError
from dpppsynth.filters import checks
from dpppsynth.mesh import Floats
from dpppsynth.truncated import TruncatedLaplace

# Smallest estimate of a step, in scales of the noise: below it a series is as good as constant.
LEAST = 1e-3
# Steps that are tried, evenly spaced in logarithms: being off by half of that spacing hardly matters to a filter.
TRIED = 40


def estimated_step(observations: Any, scale: float, bound: float) -> float:
    """Standard deviation of steps that neighbours in noisy series suggest, all of those side by side together.

    The rule that filters call "differences": squared ones of noisy answers have the mean `step^2 + 2 Var(noise)`. The
    estimate is 0.001 scales at least, which takes the series for constant: where steps are small beside the noise that
    is a matter of chance, and `likely_step` is better.

    Parameters
    ----------
    observations : (N,) or (N, T) array
        Released numbers.
    scale, bound : float
        Of the noise; the bound may be infinite.

    Examples
    --------
    >>> round(estimated_step([0, 30, 0, 30], 2.0, 10.0), 2)
    29.76
    """
    noisy, law = checks.series(observations), TruncatedLaplace(scale, bound)
    return _differences(noisy, law.variance, law.scale)


def likely_step(observations: Any, scale: float, bound: float) -> float:
    """Standard deviation of steps under which noisy series, all of those side by side together, are most likely.

    The noise is taken for Gaussian of the same variance, which makes a random walk seen through it the local level
    model, whose likelihood a Kalman filter gives. It sees all correlations of the series, and finds steps too small for
    `estimated_step`, which looks at neighbours alone.

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

    References
    ----------
    Harvey (1989), Forecasting, structural time series models and the Kalman filter, section 4.1.2.

    Examples
    --------
    >>> series = [0, 4, 1, 6, 4, 8, 6, 9, 12, 9]
    >>> round(likely_step(series, 3.0, 20.0), 1), estimated_step(series, 3.0, 20.0)
    (1.7, 0.003)
    """
    noisy, law = checks.series(observations), TruncatedLaplace(scale, bound)
    return _likely(noisy, law.variance, law.scale)


def settled(name: str, step: Any, noisy: Floats, variance: float, scale: float) -> float:
    """A step that was given, or else estimated by the rule named from noisy series (N,) or (N, T)."""
    if not isinstance(step, str):
        return checks.size(name, step, remedy=checks.PUBLIC)
    return RULES[one_of(name, step, RULES, " or a positive number")](noisy, variance, scale)


def of_series(step: Any, noisy: Floats, law: TruncatedLaplace) -> Any:
    """The step of noisy series as a float, or (T,) one for each of those side by side, or InputError."""
    array = plain_array(step)
    if step is None or array is None or array.ndim == 0:
        return settled("step", step, noisy, law.variance, law.scale)
    right = noisy.ndim == 2 and array.shape == noisy.shape[1:] and array.dtype.kind in "iuf"
    if not right or not ((array >= checks.SMALLEST) & (array <= checks.LARGEST)).all():
        msg = f"step: must be one positive number, or one for each series side by side (N, T); {checks.PUBLIC}."
        raise InputError(msg)
    return array.astype(float)


def _differences(noisy: Floats, variance: float, scale: float) -> float:
    return math.sqrt(max((LEAST * scale) ** 2, _mean_square(noisy) - 2 * variance))


def _likely(noisy: Floats, variance: float, scale: float) -> float:
    least = LEAST * scale
    tried = np.geomspace(least, max(least, 2 * math.sqrt(_mean_square(noisy))), TRIED)
    return float(tried[np.argmax(_log_likelihoods(noisy.reshape(len(noisy), -1), variance, tried))])


RULES: dict[str, Callable[[Floats, float, float], float]] = {"likely": _likely, "differences": _differences}


def _mean_square(noisy: Floats) -> float:
    """Mean squared change from one noisy answer to the next; 0 of a single one."""
    changes = np.diff(noisy, axis=0)
    return float(np.mean(changes**2)) if changes.size else 0.0


def _log_likelihoods(noisy: Floats, variance: float, steps: Floats) -> Floats:
    """(S,) logarithms, up to a constant, of the densities of all but the first of noisy series (N, T)."""
    level, spread = np.repeat(noisy[:1], len(steps), axis=0), np.full(len(steps), variance)
    total = np.zeros(len(steps))
    for seen in noisy[1:]:
        spread = spread + steps**2
        predicted = spread + variance
        surprise = seen - level
        # Steps far too small for the series overflow to no likelihood at all, as they should.
        with np.errstate(over="ignore"):
            total -= len(seen) * np.log(predicted) / 2 + (surprise**2).sum(axis=1) / predicted / 2
        gain = spread / predicted
        level, spread = level + gain[:, None] * surprise, variance * gain
    return total
