"""Maximum likelihood shares from counts of reports by expectation maximisation, with optional smoothing.

A client law with probabilities M (reports, values) makes the counts multinomial with probabilities `M shares`. Every
step of expectation maximisation raises their likelihood and keeps the shares non-negative with sum one, and needs M
only in the products `M shares` and `M^T ratios`. On a grid these are convolutions with the footprint of the law.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import finite, function, plain_array, whole
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local.randomizers.randomizer import known_settings

MOST_STEPS = 10_000
Product = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Fit:
    """Shares that expectation maximisation stopped at.

    Attributes
    ----------
    shares : (inputs,) array
        Non-negative, with sum one.
    iterations : int
        Steps taken.
    change : float
        Of the log-likelihood in the last step, absolute; 0 where no step was needed.
    converged : bool
        Whether `change` fell below the tolerance within the steps allowed.
    log_likelihood : float
        Of the counts, by natural logarithms and without the multinomial coefficient, which is the same for all shares.
    """

    shares: Floats
    iterations: int
    change: float
    converged: bool
    log_likelihood: float

    def warned(self) -> "Fit":
        """Warn of iterations that did not converge, by an InformationWarning; returns the fit."""
        if not self.converged:
            msg = (
                f"estimate: expectation maximisation was not done after max_iter = {self.iterations} steps; "
                "allow more, or a larger tolerance."
            )
            warnings.warn(msg, InformationWarning, stacklevel=3)
        return self


def expectation_maximisation(
    forward: Product,
    backward: Product,
    counts: Any,
    *,
    start: Any,
    tolerance: float,
    max_iter: int = MOST_STEPS,
    smooth: Product | None = None,
) -> Fit:
    """Shares of values that make counts of reports as likely as they can be.

    Parameters
    ----------
    forward : function
        From shares (inputs,) to probabilities of the reports (outputs,): the product with the client's matrix M.
    backward : function
        From numbers (outputs,) to (inputs,): the product with the transpose of M.
    counts : (outputs,) array
        Numbers of reports, not negative and not all zero; need not be whole.
    start : (inputs,) array
        Shares to begin with, not negative; what is zero stays zero.
    tolerance : float
        Stop when a step changes the log-likelihood by less; 0 takes all the steps.
    max_iter : int
        Most steps; `Fit.converged` tells whether they were enough.
    smooth : function, optional
        From shares to shares, after every step; the shares are divided by their sum again. The likelihood may then
        fall, and the result is no maximum of it.

    Raises
    ------
    InputError
        Arguments break their rules, or `start` rules out a report that was counted.

    References
    ----------
    Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39; Li et al.
    (2020), Estimating numerical distributions under local differential privacy, SIGMOD, for the smoothing.

    Examples
    --------
    >>> law = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> fit = expectation_maximisation(law.__matmul__, law.T.__matmul__, [65, 35], start=[0.5, 0.5], tolerance=1e-9)
    >>> fit.shares.round(3).tolist(), fit.converged
    ([0.8, 0.2], True)
    """
    function("forward", forward, "shares"), function("backward", backward, "ratios")
    if smooth is not None:
        function("smooth", smooth, "shares")
    seen, shares = _masses("counts", counts), _masses("start", start)
    shares = shares / shares.sum()
    tolerance = finite("tolerance", tolerance, least=0.0)
    max_iter = whole("max_iter", max_iter, 1)
    likely = _likely(_shaped("forward", forward, shares, seen), seen)
    steps, change = 0, np.inf
    while steps < max_iter and not change < tolerance:
        ratios = np.divide(seen, likely, out=np.zeros_like(seen), where=seen > 0)
        shares = shares * _shaped("backward", backward, ratios, shares)
        if smooth is not None:
            shares = _shaped("smooth", smooth, shares, shares)
        shares = shares / shares.sum()
        before, likely = likely, _likely(_shaped("forward", forward, shares, seen), seen)
        # A sum of small logarithms; the difference of two likelihoods has fewer digits.
        change = abs(_weighted_logs(seen, likely, before))
        steps += 1
    ends = _weighted_logs(seen, likely, np.ones_like(likely))
    return Fit(shares, steps, float(change), bool(change < tolerance), ends)


def em_settings(given: Mapping[str, Any], *, tolerance: float) -> dict[str, Any]:
    """Settings `tolerance` and `max_iter` in JSON form from those given, with this default of the first."""
    settings = known_settings(given, tolerance=tolerance, max_iter=MOST_STEPS)
    return {
        "tolerance": float(finite("tolerance", settings["tolerance"], least=0.0)),
        "max_iter": whole("max_iter", settings["max_iter"], 1),
    }


def binomial_smoothing(shares: Floats, *, inside: npt.NDArray[np.bool_]) -> Floats:
    """Shares (d,) in a row averaged over neighbours with weights 1, 2, 1; at the two ends with 2, 1 alone.

    Their sum may change a little. A single share stays as it is.

    Examples
    --------
    >>> binomial_smoothing(np.array([0.0, 0.0, 12.0, 0.0]), inside=np.full(4, True)).tolist()
    [0.0, 3.0, 6.0, 4.0]
    """
    summed, weights = (np.convolve(np.where(inside, each, 0.0), [1.0, 2.0, 1.0])[1:-1] for each in (shares, 1.0))
    return np.where(inside, summed / np.maximum(weights, 1.0), 0.0)


def neighbour_smoothing(shares: Floats, weight: float, *, inside: npt.NDArray[np.bool_]) -> Floats:
    """Shares (nx, ny) averaged with their four neighbours, each with `weight` relative to the cell itself.

    The weight of a neighbour that does not exist goes to the cell itself, so that the sum stays the same.

    Examples
    --------
    >>> neighbour_smoothing(np.array([[8.0, 0.0], [0.0, 0.0]]), 0.25, inside=np.full((2, 2), True)).tolist()
    [[6.0, 1.0], [1.0, 0.0]]
    """
    around, there = np.pad(shares, 1), np.pad(inside, 1)
    middle = np.s_[1:-1]
    sides = ((np.s_[:-2], middle), (np.s_[2:], middle), (middle, np.s_[:-2]), (middle, np.s_[2:]))
    gained = sum(np.where(there[side] & inside, around[side] - shares, 0.0) for side in sides)
    return np.asarray(shares + weight / (1 + 4 * weight) * gained)


def _masses(name: str, value: Any) -> Floats:
    array = plain_array(value)
    real = array is not None and array.ndim == 1 and array.size and array.dtype.kind in "iuf"
    if array is None or not real or not np.isfinite(array).all():
        msg = f"{name}: must be finite numbers in an array of 1 dimension."
        raise InputError(msg)
    array = array.astype(float)
    with np.errstate(over="ignore"):
        total = array.sum()
    if (array < 0).any() or not 0 < total < np.inf:
        msg = f"{name}: must not be negative, not all zero, and have a finite sum."
        raise InputError(msg)
    return array


def _shaped(name: str, product: Product, values: Floats, like: Floats) -> Floats:
    """Result of a given function of values, which must have the shape of `like`."""
    try:
        made = np.asarray(product(values), dtype=float)
    except (TypeError, ValueError):
        made = np.empty(0)
    if made.shape != like.shape:
        msg = f"{name}: must give an array of shape {like.shape} for one of {values.shape}; check start and counts."
        raise InputError(msg)
    return made


def _likely(probabilities: Floats, seen: Floats) -> Floats:
    """Probabilities of the reports, checked: none that was counted is impossible."""
    likely = np.asarray(probabilities, dtype=float)
    if likely.shape != seen.shape:
        msg = f"counts: must be {likely.size} numbers, one for each output of `forward`, got {seen.size}."
        raise InputError(msg)
    if not (likely[seen > 0] > 0).all():
        msg = "start: rules out reports that were counted; give every possible value a share."
        raise InputError(msg)
    return likely


def _weighted_logs(seen: Floats, likely: Floats, before: Floats) -> float:
    some = seen > 0
    return float(seen[some] @ np.log(likely[some] / before[some]))
