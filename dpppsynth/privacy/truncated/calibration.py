"""Calibration of truncated Laplace noise: any one of epsilon, delta and the error bound from the other two."""

from dataclasses import dataclass

from dpppsynth.privacy.truncated.costs import LARGEST, SMALLEST, truncated_laplace_delta
from dpppsynth.privacy.truncated.inverses import truncated_laplace_bound, truncated_laplace_epsilon
from dpppsynth.privacy.truncated.searches import with_third
from dpppsynth.privacy.truncated.truncated_laplace import in_range


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
