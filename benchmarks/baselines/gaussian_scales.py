"""Standard deviations of Gaussian noise for an (epsilon, delta): analytic minimum, and from a tail bound on the loss.

For comparisons: noise drawn with them in floating point may not be released.
"""

import math

from scipy.special import ndtri

from baselines.baseline_arguments import budgets, noise_scale
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.truncated.truncated_laplace import in_range


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of Gaussian noise that is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        L2 sensitivity.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML.

    Examples
    --------
    >>> round(analytic_gaussian_scale(1.0, 1e-5) ** 2, 4)
    13.9176
    """
    epsilon, delta = budgets(epsilon, delta)
    return noise_scale(in_range("sensitivity", sensitivity) / gaussian_mu(epsilon, delta))


def probabilistic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation with which the privacy loss exceeds epsilon with probability at most delta: enough, not tight.

    `sigma = D (-x + sqrt(x^2 + 2 epsilon)) / (2 epsilon)` with x the quantile of `delta / 2`.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        L2 sensitivity.

    Examples
    --------
    >>> round(probabilistic_gaussian_scale(1.0, 1e-5), 6)
    4.527607
    """
    epsilon, delta = budgets(epsilon, delta)
    x = float(ndtri(delta / 2))
    return noise_scale(in_range("sensitivity", sensitivity) * (math.sqrt(x * x + 2 * epsilon) - x) / (2 * epsilon))
