"""Errors of released answers against the truth: moments, five numbers, and how often they exceed a threshold.

For studies on data that need no protection: what is computed here shows the truth.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, probability
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.grids.rectangles import reals
from dpppsynth.spatial.mesh import Floats

MOST_ERROR = 1e70


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of N answers or positions.

    Attributes
    ----------
    number : int
    delta : float
        Of the release: mechanisms of the same epsilon compare only together with it.
    mean : float
        Of the errors; of both coordinates' errors for positions.
    five : tuple of float
        Smallest error, quartiles with the median, and largest; of distances for positions.
    variance : float
        About the mean, of one coordinate for positions.
    mean_square : float
        Mean squared error; for positions the mean squared distance, which counts both coordinates.
    standard_error : float
        Of `mean_square`, for independent errors; nan for a single one.
    thresholds, beta : tuple of float
        Share of errors, or distances, larger than each threshold.

    Examples
    --------
    >>> found = error_summary([1.0, 4.0, 9.0], [0.0, 4.0, 11.0], delta=0.0)
    >>> found.five, round(found.mean_square, 6)
    ((-2.0, -1.0, 0.0, 0.5, 1.0), 1.666667)
    """

    number: int
    delta: float
    mean: float
    five: tuple[float, ...]
    variance: float
    mean_square: float
    standard_error: float
    thresholds: tuple[float, ...]
    beta: tuple[float, ...]


def error_summary(released: Any, truth: Any, *, delta: float, thresholds: Any = ()) -> ErrorSummary:
    """Summary of the errors of a release.

    Parameters
    ----------
    released, truth : (N,) or (N, 2) array
        Of the same shape, at least one row; up to 1e70.
    delta : float
        Delta of the release, 0 for pure privacy.
    thresholds : sequence of float
        Errors a of (a, beta)-accuracy.

    Raises
    ------
    InputError

    Examples
    --------
    >>> error_summary([1.0, 4.0, 9.0], [0.0, 4.0, 11.0], delta=0.0, thresholds=[1.5]).beta
    (0.3333333333333333,)
    """
    errors = _errors(released, truth)
    delta = float(probability("delta", delta, zero=True))
    limits = reals("thresholds", thresholds, (None,))
    positions = errors.ndim == 2
    sizes = np.hypot(*errors.T) if positions else np.abs(errors)
    squares = sizes**2
    five = np.quantile(sizes if positions else errors, [0, 0.25, 0.5, 0.75, 1])
    spread = float(squares.std(ddof=1)) / np.sqrt(len(sizes)) if len(sizes) > 1 else np.nan
    return ErrorSummary(
        len(sizes),
        delta,
        float(errors.mean()),
        tuple(five.tolist()),
        float(errors.var(axis=0).mean()),
        float(squares.mean()),
        float(spread),
        tuple(limits.tolist()),
        tuple(float((sizes > limit).mean()) for limit in limits),
    )


def _errors(released: Any, truth: Any) -> Floats:
    one, other = _rows("released", released), _rows("truth", truth)
    if one.shape != other.shape:
        msg = f"released, truth: must have the same shape, got {one.shape} and {other.shape}."
        raise InputError(msg)
    return one - other


def _rows(name: str, value: Any) -> Floats:
    array = plain_array(value)
    rows = reals(name, value, (None, 2) if array is not None and array.ndim == 2 else (None,))
    if not len(rows) or not (np.abs(rows) <= MOST_ERROR).all():
        msg = f"{name}: needs at least one row, and none above {MOST_ERROR:g} in size; squares are added."
        raise InputError(msg)
    return rows
