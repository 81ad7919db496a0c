"""Delta of truncated Laplace noise, and the smallest error bound that a delta pays for.

With sensitivity D the scale of the noise is `D / epsilon`, and `delta = (e^epsilon - 1) / (2 (e^(epsilon A / D) - 1))`
for a bound A of at least D. No delta is 0.
"""

import math

from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.arguments import require_bound_delta
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace, in_range

# Epsilons, bounds and sensitivities whose ratios are scales that a law may have.
SMALLEST, LARGEST = 1e-50, 1e50
SMALLEST_DELTA = 1e-300
# Relative step by which a bound grows until rounding no longer leaves its delta too large.
CLOSE = 1e-15
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
    epsilon = in_range("epsilon", epsilon, SMALLEST, LARGEST)
    size = in_range("sensitivity", sensitivity, SMALLEST, LARGEST)
    infinite = isinstance(max_error, float) and max_error == math.inf
    bound = math.inf if infinite else in_range("max_error", max_error, SMALLEST, LARGEST)
    if not flag("allow_large_delta", allow_large_delta) and bound < size:
        msg = f"max_error: must not be below the sensitivity, {size!r}, got {bound!r}; {REFUSED}."
        raise InputError(msg)
    return TruncatedLaplace(size / epsilon, bound).exposed(size)


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
