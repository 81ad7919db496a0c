"""Projection of unbiased estimates, some of them negative, onto non-negative shares with a known sum.

All are post-processing: they look at estimates only, which are public. Where some values are impossible, `inside` says
which are not, and the others get exactly zero.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import finite, plain_array
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats


def possible(inside: Any, size: int) -> npt.NDArray[np.bool_]:
    """(size,) mask of possible values; None means all. InputError unless it has truth values and one is true."""
    if inside is None:
        return np.ones(size, dtype=bool)
    mask = plain_array(inside)
    if mask is None or mask.shape != (size,) or mask.dtype != bool or not mask.any():
        msg = f"inside: must be {size} truth values, one for each value, and at least one of them true."
        raise InputError(msg)
    return mask


def clip(values: npt.ArrayLike, *, inside: Any = None) -> Floats:
    """Estimates (d,) with the negative ones set to zero: their sum grows."""
    estimates = _finite(values)
    return np.where(possible(inside, len(estimates)), np.maximum(estimates, 0.0), 0.0)


def norm_mul(values: npt.ArrayLike, total: float = 1.0, *, inside: Any = None) -> Floats:
    """Estimates (d,) with the negative ones set to zero and the others scaled to a sum; even shares where none is left.

    Examples
    --------
    >>> norm_mul([0.6, -0.2, 0.2]).round(3).tolist()
    [0.75, 0.0, 0.25]
    """
    total, kept = finite("total", total, least=0.0), clip(values, inside=inside)
    # By the largest first: a sum of large numbers may be none.
    kept = kept / kept.max() if kept.any() else possible(inside, len(kept)).astype(float)
    return total * (kept / kept.sum())


def norm_sub(values: npt.ArrayLike, total: float = 1.0, *, inside: Any = None) -> Floats:
    """Nearest vector (Euclidean) to estimates (d,) with non-negative entries and a given sum.

    It is `max(x + shift, 0)` with the one shift that makes the sum right.

    Parameters
    ----------
    values : (d,) array
    total : float
        Sum, not negative.
    inside : (d,) array of bool, optional
        Entries that are not zero in any case.

    Raises
    ------
    InputError
        For what is no vector of finite numbers, no sum or no mask.

    References
    ----------
    Wang et al. (2020), Locally differentially private frequency estimation with consistency, NDSS: "Norm-Sub".

    Examples
    --------
    >>> norm_sub([0.6, -0.2, 0.5]).round(3).tolist()
    [0.55, 0.0, 0.45]
    """
    total, estimates = finite("total", total, least=0.0), _finite(values)
    mask = possible(inside, len(estimates))
    shares = np.zeros(len(estimates))
    if total > 0:
        shares[mask] = total * _nearest(estimates[mask], total)
    return shares


def _nearest(estimates: Floats, total: float) -> Floats:
    """(k,) nearest shares of a total."""
    # A shift changes nothing, and neither does what is more than the whole total below the largest: digits are kept.
    with np.errstate(over="ignore"):
        below = np.maximum((estimates - estimates.max()) / total, -1.0)
    descending = np.sort(below)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(below) + 1)
    last = np.flatnonzero(descending >= excess)[-1]
    return np.maximum(below - excess[last], 0.0)


def _finite(values: Any) -> Floats:
    array = plain_array(values)
    if array is None or array.ndim != 1 or not len(array) or array.dtype.kind not in "iuf":
        msg = "values: must be a vector of real numbers, at least one."
        raise InputError(msg)
    if not np.isfinite(array).all():
        msg = "values: must be finite numbers; some are not."
        raise InputError(msg)
    return array.astype(np.float64)
