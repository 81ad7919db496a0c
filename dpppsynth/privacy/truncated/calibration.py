"""Inverses of delta under truncated Laplace noise: the error bound from a budget, epsilon from a bound and a delta."""

import math
from dataclasses import dataclass

from dpppsynth.privacy.truncated.arguments import require_bound_delta
from dpppsynth.privacy.truncated.costs import LARGEST, SMALLEST, require_reach, truncated_laplace_delta
from dpppsynth.privacy.truncated.searches import least_epsilon, with_third
from dpppsynth.privacy.truncated.truncated_laplace import in_range

SMALLEST_DELTA = 1e-300
# Relative width at which the search for an epsilon stops.
CLOSE = 1e-15


def truncated_laplace_bound(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest bound on the error that costs no more than delta: the inverse of `truncated_laplace_delta`.

    Parameters
    ----------
    epsilon : float
    delta : float
        From 1e-300 to 0.5; noise with a bound is never purely private.
    sensitivity : float, optional

    Returns
    -------
    float
        At least the sensitivity, and `truncated_laplace_delta` of it is at most `delta`.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> round(truncated_laplace_bound(1.0, 1e-6), 5)
    13.66369
    """
    epsilon, delta = in_range("epsilon", epsilon, SMALLEST, LARGEST), require_bound_delta(delta, least=SMALLEST_DELTA)
    size = in_range("sensitivity", sensitivity, SMALLEST, LARGEST)
    if epsilon < 1:
        reach = math.log1p(math.expm1(epsilon) / (2 * delta))
    else:
        reach = epsilon + math.log(math.exp(-epsilon) - math.expm1(-epsilon) / (2 * delta))
    bound, step = max(reach * (size / epsilon), size), CLOSE
    while truncated_laplace_delta(epsilon, bound, size) > delta:
        bound, step = bound * (1 + step), 2 * step
    return bound


def truncated_laplace_epsilon(max_error: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest epsilon at which errors never exceed `max_error` and delta suffices.

    Parameters
    ----------
    max_error : float
        Finite and at least the sensitivity.
    delta : float
        From 1e-300 to 0.5; noise with a bound is never purely private.
    sensitivity : float, optional

    Returns
    -------
    float
        0.0 where uniform noise does, which costs `sensitivity / (2 max_error)`; else `truncated_laplace_delta` of it
        is at most `delta`.

    Raises
    ------
    InputError
        An argument breaks its rule, or `max_error` is so near the sensitivity that epsilon would exceed 1e50.

    Examples
    --------
    >>> round(truncated_laplace_epsilon(10.0, 1e-3), 7)
    0.6027163
    """
    size, delta = (
        in_range("sensitivity", sensitivity, SMALLEST, LARGEST),
        require_bound_delta(delta, least=SMALLEST_DELTA),
    )
    bound = in_range("max_error", max_error, SMALLEST, LARGEST)
    require_reach(bound, size)
    if delta >= size / (2 * bound):
        return 0.0

    def cost(epsilon: float) -> float:
        return truncated_laplace_delta(epsilon, bound, size)

    return least_epsilon(cost, delta, bound, low=SMALLEST, first=LARGEST, most=LARGEST, close=CLOSE)


@dataclass(frozen=True)
class Calibration:
    """Budget and bound of truncated Laplace noise that belong together.

    Attributes
    ----------
    epsilon, delta : float
    max_error : float
        Bound on the error of one answer.
    sensitivity : float
        By how much neighbouring data sets may differ: in L1 where several answers are noised together.

    Examples
    --------
    >>> found = calibrate(epsilon=1.0, max_error=10.0, sensitivity=2.0)
    >>> round(found.delta, 6), found.max_error / found.sensitivity
    (0.005828, 5.0)
    """

    epsilon: float
    delta: float
    max_error: float
    sensitivity: float


def calibrate(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    max_error: float | None = None,
    sensitivity: float = 1.0,
) -> Calibration:
    """The one of epsilon, delta and max_error that is missing, where two of them are given.

    Parameters
    ----------
    epsilon : float, optional
        From 1e-50 to 1e50; the scale of the noise is `sensitivity / epsilon`.
    delta : float, optional
        From 1e-300 to 0.5.
    max_error : float, optional
        At least the sensitivity, in the unit of the answer; infinite only with epsilon.
    sensitivity : float, optional
        By how much the answer changes between neighbouring data sets.

    Returns
    -------
    Calibration
        The smallest third that goes with the two given.

    Raises
    ------
    InputError
        Unless exactly two are given, or where an argument breaks the rule of the function that finds the third.

    Examples
    --------
    >>> round(calibrate(epsilon=1.0, delta=1e-5).max_error, 5)
    11.36111
    >>> round(calibrate(max_error=10.0, delta=1e-3).epsilon, 7)
    0.6027163
    """
    size = in_range("sensitivity", sensitivity, SMALLEST, LARGEST)
    found = with_third(
        epsilon,
        delta,
        max_error,
        cost=lambda budget, most: truncated_laplace_delta(budget, most, size),
        least_error=lambda budget, slack: truncated_laplace_bound(budget, slack, size),
        smallest_epsilon=lambda slack, most: truncated_laplace_epsilon(most, slack, size),
    )
    return Calibration(float(found.epsilon), float(found.delta), float(found.max_error), size)
