"""Delta of truncated Laplace noise for one answer, for several, and for several releases.

With sensitivity D the scale of the noise is `D / epsilon`, and `delta = (e^epsilon - 1) / (2 (e^(epsilon A / D) - 1))`
for a bound A of at least D. No delta is 0.
"""

import math
from collections.abc import Iterable
from typing import Any

from dpppsynth.core.arguments import elements, finite, flag
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.shifted_losses import at_least_one
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace, in_range

# Epsilons, bounds and sensitivities whose ratios are scales that a law may have.
SMALLEST, LARGEST = 1e-50, 1e50
REFUSED = "below it delta exceeds one half: most answers tell two neighbouring data sets apart"


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

    Parameters
    ----------
    epsilon, max_error, sensitivity, allow_large_delta
        As in `truncated_laplace_delta`.

    Returns
    -------
    float
        Minus infinity where `max_error` is infinite.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> round(truncated_laplace_log_delta(1.0, 1000.0), 4)
    -1000.1518
    """
    law, size = _law(epsilon, max_error, sensitivity, allow_large_delta)
    return law.log_exposed(size)


def delta_of_shifts(shifts: Iterable[float], *, scale: float, bound: float) -> float:
    """Delta of answers with independent noise of one law, of which each shifts: from `sum shifts / scale` on.

    It is exact, and never above that of one answer which shifts by the sum.

    Parameters
    ----------
    shifts : iterable of float
        At least 0.
    scale, bound : float
        As `TruncatedLaplace` takes them.

    Returns
    -------
    float
        0.0 where there are no shifts.

    Raises
    ------
    InputError
        An argument breaks its rule.

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

    Returns
    -------
    (float, float)
        (0.0, 0.0) where there are no releases.

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
        require_reach(bound, size)
    return TruncatedLaplace(size / epsilon, bound), size


def require_reach(bound: float, sensitivity: float) -> None:
    """Refuse a bound below the sensitivity."""
    if bound < sensitivity:
        msg = f"max_error: must not be below the sensitivity, {sensitivity!r}, got {bound!r}; {REFUSED}."
        raise InputError(msg)
