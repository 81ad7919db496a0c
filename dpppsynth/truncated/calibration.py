"""From any two of epsilon, delta and the bound on the error to the third, for truncated Laplace noise of one answer.

With sensitivity D the scale of the noise is `D / epsilon`, and `delta = (e^epsilon - 1) / (2 (e^(epsilon A / D) - 1))`
for a bound A of at least D. No delta is 0.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpppsynth.arguments import elements, finite, flag
from dpppsynth.errors import InputError
from dpppsynth.truncated.geometric import at_least_one, require_delta
from dpppsynth.truncated.laplace import TruncatedLaplace, in_range

# Epsilons, bounds and sensitivities whose ratios are scales that a law may have.
SMALLEST, LARGEST = 1e-50, 1e50
SMALLEST_DELTA = 1e-300
# Relative width at which the search for an epsilon stops.
CLOSE = 1e-15
REFUSED = "below it delta exceeds one half: most answers tell two neighbouring data sets apart"


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
    if sum(each is None for each in (epsilon, delta, max_error)) == 1:
        if epsilon is not None and delta is not None:
            bound = truncated_laplace_bound(epsilon, delta, size)
            return Calibration(float(epsilon), float(delta), bound, size)
        if epsilon is not None and max_error is not None:
            cost = truncated_laplace_delta(epsilon, max_error, size)
            return Calibration(float(epsilon), cost, float(max_error), size)
        if delta is not None and max_error is not None:
            spent = truncated_laplace_epsilon(max_error, delta, size)
            return Calibration(spent, float(delta), float(max_error), size)
    msg = "epsilon, delta, max_error: give exactly two of the three; the third follows from them."
    raise InputError(msg)


def truncated_laplace_delta(
    epsilon: float, max_error: float, sensitivity: float = 1.0, *, allow_large_delta: bool = False
) -> float:
    """Delta of an answer with Laplace noise that is drawn again where it exceeds `max_error`.

    Parameters
    ----------
    epsilon : float
        The scale of the noise is `sensitivity / epsilon`.
    max_error : float
        In the unit of the answer; infinite is plain Laplace noise, whose delta is 0.0.
    sensitivity : float, optional
        By how much the answer changes between neighbouring data sets; for several answers with noise of one scale, the
        largest sum of their changes.
    allow_large_delta : bool, optional
        Whether `max_error` may be less than the sensitivity, where delta exceeds one half.

    Returns
    -------
    float
        To 13 digits; at least 2.2e-308 where `max_error` is finite.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> f"{truncated_laplace_delta(1.0, 5.0):.6g}"
    '0.00582812'
    """
    law, size = _law(epsilon, max_error, sensitivity, allow_large_delta)
    return law.exposed(size)


def truncated_laplace_log_delta(
    epsilon: float, max_error: float, sensitivity: float = 1.0, *, allow_large_delta: bool = False
) -> float:
    """Natural logarithm of `truncated_laplace_delta`, also where that is too small for a float.

    Examples
    --------
    >>> round(truncated_laplace_log_delta(1.0, 1000.0), 4)
    -1000.1518
    """
    law, size = _law(epsilon, max_error, sensitivity, allow_large_delta)
    return law.log_exposed(size)


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
    epsilon, delta = in_range("epsilon", epsilon, SMALLEST, LARGEST), _delta(delta)
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
    size, delta = in_range("sensitivity", sensitivity, SMALLEST, LARGEST), _delta(delta)
    bound = in_range("max_error", max_error, SMALLEST, LARGEST)
    _require_reach(bound, size)
    if delta >= size / (2 * bound):
        return 0.0

    low, high = SMALLEST, LARGEST
    if truncated_laplace_delta(high, bound, size) > delta:
        msg = f"max_error: {bound!r} is too near the sensitivity for delta = {delta!r}; take a larger one."
        raise InputError(msg)
    while high > low * (1 + CLOSE):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        enough = truncated_laplace_delta(middle, bound, size) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def delta_of_shifts(shifts: Iterable[float], *, scale: float, bound: float) -> float:
    """Delta of answers with independent noise of one law, of which each shifts: from `sum shifts / scale` on.

    It is exact, and never above that of one answer which shifts by the sum.

    Parameters
    ----------
    shifts : iterable of float
        At least 0.
    scale, bound : float
        As `TruncatedLaplace` takes them.

    Examples
    --------
    >>> round(delta_of_shifts((0.5, 0.5), scale=1.0, bound=2.0), 7)
    0.0989589
    """
    law, found = TruncatedLaplace(scale, bound), elements(shifts)
    if found is None:
        msg = "shifts: needs a sequence of numbers, such as (0.5, 0.5)."
        raise InputError(msg)
    return at_least_one([law.exposed(shift) for shift in found])


def delta_composed(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Epsilon and delta of several releases with bounded error: the sum, and `1 - prod(1 - delta)`.

    Exact at the sum of their epsilons, where the releases are independent and each delta is the smallest one. For a
    series of n releases with one budget: `delta_composed([(epsilon, delta)] * n)`.

    Parameters
    ----------
    parts : iterable of (float, float)
        Epsilon, at least 0, and delta, from 0 to 1, of each release.

    Raises
    ------
    InputError
        A part is no such pair.

    Examples
    --------
    >>> epsilon, delta = delta_composed([(1.0, truncated_laplace_delta(1.0, 5.0))] * 3)
    >>> epsilon, round(delta, 7)
    (3.0, 0.0173826)
    """
    pairs = [elements(part) for part in elements(parts) or ()]
    if elements(parts) is None or any(pair is None or len(pair) != 2 for pair in pairs):
        msg = "parts: needs a sequence of pairs (epsilon, delta)."
        raise InputError(msg)
    both = [(finite("epsilon", each[0], least=0.0), finite("delta", each[1], least=0.0)) for each in pairs if each]
    if any(delta > 1 for _, delta in both):
        msg = "delta: must lie between 0 and 1."
        raise InputError(msg)
    return float(sum(epsilon for epsilon, _ in both)), at_least_one(delta for _, delta in both)


def _law(epsilon: Any, max_error: Any, sensitivity: Any, allow_large_delta: Any) -> tuple[TruncatedLaplace, float]:
    """The law of the noise, and the sensitivity."""
    epsilon = in_range("epsilon", epsilon, SMALLEST, LARGEST)
    size = in_range("sensitivity", sensitivity, SMALLEST, LARGEST)
    infinite = isinstance(max_error, float) and max_error == math.inf
    bound = math.inf if infinite else in_range("max_error", max_error, SMALLEST, LARGEST)
    if not flag("allow_large_delta", allow_large_delta):
        _require_reach(bound, size)
    return TruncatedLaplace(size / epsilon, bound), size


def _require_reach(bound: float, sensitivity: float) -> None:
    if bound < sensitivity:
        msg = f"max_error: must not be below the sensitivity, {sensitivity!r}, got {bound!r}; {REFUSED}."
        raise InputError(msg)


def _delta(value: Any) -> float:
    delta = require_delta(value)
    if delta < SMALLEST_DELTA:
        msg = f"delta: must be at least {SMALLEST_DELTA:g}, got {delta!r}; 1e-6 is a common choice."
        raise InputError(msg)
    return delta
