"""Released series that are filtered: validation, step sizes, results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import one_of, plain_array, positive, shown
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.spatial.mesh import Floats

# Numbers whose squares, and quotients of squares, stay in the range of floats.
LARGEST, SMALLEST = 1e100, 1e-100
MOST_PARTICLES = 1_000_000
PUBLIC = "it must be public; 'likely' and 'differences' estimate it from the released numbers"


def released_series(observations: Any) -> Floats:
    """Released series of shape (N,) or (N, T) as floats, or InputError."""
    return _numbers("observations", observations, "one series (N,) or several side by side (N, T)", (1, 2))


def released_positions(points: Any) -> Floats:
    """Released positions (N, 2) as floats, or InputError."""
    array = _numbers("points", points, "coordinates (N, 2)", (2,))
    if array.shape[1] != 2:
        msg = f"points: must be coordinates (N, 2), got {array.shape[1]} columns."
        raise InputError(msg)
    return array


def positive_size(name: str, value: Any, *, remedy: str = "") -> float:
    """A positive number neither tiny nor huge, or InputError."""
    number = float(positive(name, value, most=LARGEST, rule=f"be positive, {LARGEST:g} at most", remedy=remedy))
    if number < SMALLEST:
        msg = f"{name}: must be {SMALLEST:g} at least, got {number!r}; choose another unit."
        raise InputError(msg)
    return number


def _numbers(name: str, value: Any, what: str, dimensions: tuple[int, ...]) -> Floats:
    array = plain_array(value)
    if array is None or array.dtype.kind not in "iuf" or array.ndim not in dimensions:
        got = f"an array of {array.dtype}, shape {array.shape}" if array is not None and array.ndim else shown(value)
        msg = f"{name}: must be numbers, {what}, got {got}."
        raise InputError(msg)
    if not array.size:
        msg = f"{name}: must have one entry at least, got shape {array.shape}; nothing was released."
        raise InputError(msg)
    array = array.astype(float)
    if not (np.abs(array) <= LARGEST).all():
        msg = f"{name}: must be finite and at most {LARGEST:g} in absolute value."
        raise InputError(msg)
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """A filtered series: post-processing of what was released, and as private.

    Attributes
    ----------
    estimate : (N,), (N, T) or (N, 2) array
        As the observations: one series, T of them side by side, or points.
    restarts : int
        How often, in all series together, the particles lost the series and began anew at an observation. Many
        restarts say that the series is not as smooth as its `step`. The proposals "uniform" and "gaussian" do not begin
        anew at a jump that no walk makes: their estimate ends near the edge of the bound. Always 0 for a smoother,
        to which jumps are part of the series.
    step : float, (T,) array or tuple of float
        Standard deviation of what the hidden series was taken to change by per step; of distance and angle in polar
        coordinates.
    bound : float
        No estimate is further from the truth: twice the bound of the release, infinite without one.

    Examples
    --------
    >>> from dpppsynth.filters import particle_filter
    >>> found = particle_filter([0, 0, 1000, 1000], scale=1.0, bound=5.0, step=1.0, rng=1)
    >>> found, float(found.estimate[2])
    (Filtered(shape=(4,), restarts=1, bound=10), 1000.0)
    """

    estimate: Floats
    restarts: int
    step: Any
    bound: float

    def __repr__(self) -> str:
        return f"Filtered(shape={self.estimate.shape}, restarts={self.restarts}, bound={self.bound:g})"


# Smallest estimate of a step, in scales of the noise: below it a series is practically constant.
LEAST = 1e-3
# Steps that are tried, evenly spaced in logarithms: being off by half of that spacing hardly matters to a filter.
TRIED = 40


def estimated_step(observations: Any, scale: float, bound: float) -> float:
    """Standard deviation of steps, estimated from neighbours in noisy series, pooled over all series.

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
    noisy, law = released_series(observations), TruncatedLaplace(scale, bound)
    return float(_differences(noisy, law.variance, law.scale, together=True)[0])


def likely_step(observations: Any, scale: float, bound: float) -> float:
    """Maximum likelihood standard deviation of the steps of noisy series, pooled over all series.

    The noise is taken for Gaussian of the same variance, which makes a random walk seen through it the local level
    model, whose likelihood a Kalman filter gives. It sees all correlations of the series, and finds steps too small for
    `estimated_step`, which looks at neighbours alone.

    Parameters
    ----------
    observations, scale, bound
        As of `estimated_step`.

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
    noisy, law = released_series(observations), TruncatedLaplace(scale, bound)
    return float(_likely(noisy, law.variance, law.scale, together=True)[0])


def settled(name: str, step: Any, noisy: Floats, variance: float, scale: float) -> float:
    """A step that was given, or else estimated by the rule named from noisy series (N,) or (N, T)."""
    if not isinstance(step, str):
        return positive_size(name, step, remedy=PUBLIC)
    return float(RULES[one_of(name, step, RULES, " or a positive number")](noisy, variance, scale, True)[0])


def of_series(step: Any, noisy: Floats, law: TruncatedLaplace) -> Any:
    """Step of a noisy series as a float, or (T,) steps of series side by side; InputError otherwise.

    Series side by side may be as different as a village and a town: each is estimated on its own.
    """
    if isinstance(step, str) and noisy.ndim == 2:
        rule = RULES[one_of("step", step, RULES, " or a positive number")]
        return rule(noisy, law.variance, law.scale, False)
    array = plain_array(step)
    if step is None or array is None or array.ndim == 0:
        return settled("step", step, noisy, law.variance, law.scale)
    right = noisy.ndim == 2 and array.shape == noisy.shape[1:] and array.dtype.kind in "iuf"
    if not right or not ((array >= SMALLEST) & (array <= LARGEST)).all():
        msg = f"step: must be one positive number, or one for each series side by side (N, T); {PUBLIC}."
        raise InputError(msg)
    return array.astype(float)


def _differences(noisy: Floats, variance: float, scale: float, together: bool) -> Floats:
    return np.sqrt(np.maximum((LEAST * scale) ** 2, _mean_squares(noisy, together) - 2 * variance))


def _likely(noisy: Floats, variance: float, scale: float, together: bool) -> Floats:
    least = LEAST * scale
    tried = np.geomspace(least, np.maximum(least, 2 * np.sqrt(_mean_squares(noisy, together))), TRIED)
    log = _log_likelihoods(noisy.reshape(len(noisy), -1), variance, tried)
    best = np.argmax(log.sum(axis=1, keepdims=True) if together else log, axis=0)
    return np.asarray(tried[best, np.arange(len(best))])


# (T,) steps of series, or (1,) that of all together.
RULES: dict[str, Callable[[Floats, float, float, bool], Floats]] = {"likely": _likely, "differences": _differences}


def _mean_squares(noisy: Floats, together: bool) -> Floats:
    """(T,) mean squared changes from one noisy answer to the next, 0 of a single one; or (1,) that of all series."""
    changes = np.diff(noisy.reshape(len(noisy), -1), axis=0)
    squares = np.asarray((changes**2).sum(axis=0) / max(1, len(changes)))
    return squares.mean(keepdims=True) if together else squares


def _log_likelihoods(noisy: Floats, variance: float, steps: Floats) -> Floats:
    """(S, T) logarithms, up to a constant, of the densities of all but the first of each of the noisy series (N, T)."""
    level, spread = np.repeat(noisy[:1], len(steps), axis=0), np.full(steps.shape, variance)
    total = np.zeros((len(steps), noisy.shape[1]))
    for seen in noisy[1:]:
        spread = spread + steps**2
        predicted = spread + variance
        surprise = seen - level
        # Steps far too small for the series overflow to no likelihood at all, as they should.
        with np.errstate(over="ignore"):
            total -= np.log(predicted) / 2 + surprise**2 / predicted / 2
        gain = spread / predicted
        level, spread = level + gain * surprise, variance * gain
    return total
