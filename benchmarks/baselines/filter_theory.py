"""Gain of resampling in a particle filter, by theory."""

import math

from dpppsynth.core.arguments import flag, positive, whole
from dpppsynth.core.errors import InputError

MOST = 10**15


def relative_variance(s2: float, dimension: int, particles: int, *, resampled: bool = False) -> float:
    """Relative variance of the normalising constant that importance sampling estimates.

    The target is `N(0, 1)` in every coordinate, particles are drawn from `N(0, s2)`. With `r = s2^2 / (2 s2 - 1)` it
    is `(r^(m/2) - 1) / M` for one importance sample of all m coordinates, and asymptotically `m (r^(1/2) - 1) / M`
    where particles are resampled after each: exponential in the length of a series against linear in it. That is the
    reason to resample. It says nothing about the error of filtered answers.

    Parameters
    ----------
    s2 : float
        Variance of the proposal, in units of the target's; above 1/2, or the variance is infinite.
    dimension : int
        m, the number of coordinates, or of steps of a series.
    particles : int
        M.
    resampled : bool
        Whether particles are resampled after each step.

    Returns
    -------
    float
        Zero at `s2 = 1`, positive elsewhere; infinite where it exceeds the range of floats.

    Raises
    ------
    InputError
        `s2` is 1/2 or less.

    Examples
    --------
    >>> round(relative_variance(1.44, 10, 1), 6)
    0.632434
    >>> round(relative_variance(1.44, 10, 1, resampled=True), 6)
    0.502279
    """
    s2 = positive("s2", s2, most=1e100, rule="be a positive number, 1e100 at most")
    dimension, particles = whole("dimension", dimension, 1, most=MOST), whole("particles", particles, 1, most=MOST)
    if s2 <= 0.5:
        msg = f"s2: must be above 1/2, got {s2!r}; a narrower proposal leaves the variance infinite."
        raise InputError(msg)
    # The logarithm of r, without cancellation around s2 = 1.
    log_ratio = math.log1p((s2 - 1) ** 2 / (2 * s2 - 1))
    if flag("resampled", resampled):
        return dimension * math.expm1(log_ratio / 2) / particles
    exponent = dimension * log_ratio / 2
    return math.expm1(exponent) / particles if exponent < 700 else math.inf
