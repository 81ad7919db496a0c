"""Truncated two-sided geometric (discrete Laplace) noise.

P(k) is proportional to `exp(-|k| / scale)` for whole k from -A to A.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpppsynth.core.arguments import elements, finite, plain_array, positive
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated.error_bounds import least_whole_error, require_bound_delta, require_whole
from dpppsynth.privacy.truncated.shifted_losses import (
    ULP,
    at_least_one,
    exposed_part,
    finite_part,
    power_sums,
    two_sided_sum,
)
from dpppsynth.spatial.mesh import Floats

# Relative safety margin of a stated delta: more than the rounding of exponentials up to e^745.
ROUND_UP = 1e-12
# Scales whose losses are finite, and rates below which noise is uniform within every bound allowed.
SMALLEST_SCALE, LARGEST_RATE, SMALLEST_RATE = 1e-280, 1e280, 1e-280
# Shifted coordinates, and these times the sum of their shifts, for which losses are added up in about a second.
MOST_SHIFTS, MOST_WORK = 64, 2**24


@dataclass(frozen=True)
class TruncatedGeometric:
    """Law of a whole number k with P(k) proportional to `exp(-|k| / scale)` where `|k| <= bound`.

    Attributes
    ----------
    scale : float
        At least 1e-280; infinite is the uniform law.
    bound : int
        A, from 1 to 2^60.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2009), Universally utility-maximizing privacy mechanisms, STOC: without a bound.

    Examples
    --------
    >>> law = TruncatedGeometric(scale=1.0, bound=5)
    >>> law.pmf([0, 5, 6]).round(6).tolist()
    [0.463798, 0.003125, 0.0]
    >>> f"{law.exposed(1):.6g} {law.delta(0.5, (1,)):.6g}"
    '0.00312505 0.289875'
    """

    scale: float
    bound: int

    def __post_init__(self) -> None:
        infinite = isinstance(self.scale, float) and self.scale == math.inf
        scale = math.inf if infinite else float(positive("scale", self.scale))
        if scale < SMALLEST_SCALE:
            msg = f"scale: must be at least {SMALLEST_SCALE:g}, got {scale!r}; such noise is always 0."
            raise InputError(msg)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "bound", require_whole("bound", self.bound, 1))

    @property
    def rate(self) -> float:
        """Decay rate `1 / scale`, where that makes a difference within the bounds allowed."""
        return _rate(1 / self.scale)

    @property
    def total_weight(self) -> float:
        """Sum of `exp(-|k| / scale)` over all k, which is `1 / P(0)`."""
        return two_sided_sum(self.rate, self.bound)

    def pmf(self, k: Any) -> Floats:
        """Probabilities of whole numbers k, an array of any shape; 0 beyond the bound."""
        array = plain_array(k)
        real = array is not None and array.dtype.kind in "iuf"
        if array is None or not real or not (np.isfinite(array) & (array == np.floor(array))).all():
            msg = "k: must be whole numbers."
            raise InputError(msg)
        size = np.abs(array.astype(float))
        inside = size <= self.bound
        return np.where(inside, np.exp(-self.rate * np.where(inside, size, 0.0)) / self.total_weight, 0.0)

    @property
    def mean_absolute(self) -> float:
        """Mean of `|k|`."""
        return 2 * power_sums(self.rate, self.bound)[1] / self.total_weight

    @property
    def variance(self) -> float:
        """Mean of k^2."""
        return 2 * power_sums(self.rate, self.bound)[2] / self.total_weight

    def exposed(self, shift: int) -> float:
        """Probability of answers that are impossible after a shift of the truth, `P(k > bound - shift)`.

        Parameters
        ----------
        shift : int
            At least 0; the law is symmetric. Shifts beyond twice the bound give 1.
        """
        return exposed_part(self.rate, self.bound, require_whole("shift", shift, 0))

    def epsilon_total(self, shifts: Iterable[int]) -> float:
        """Largest finite privacy loss, `sum shifts / scale`, rounded up: from there on delta falls no more."""
        total = sum(_shifts(shifts))
        epsilon = total / self.scale
        return epsilon if self._covers(epsilon, total) else math.nextafter(epsilon, math.inf)

    def delta(self, epsilon: float, shifts: Iterable[int]) -> float:
        """Smallest delta at an epsilon where coordinates with independent noise of this law shift: exact, rounded up.

        Parameters
        ----------
        epsilon : float
            At least 0.
        shifts : iterable of int
            By how much each coordinate shifts, at least 0 as the law is symmetric. At most 64 are not 0, and the sum
            times their number is at most 2^24 unless epsilon is at least `epsilon_total`.

        Returns
        -------
        float
            Hockey-stick divergence of the two product laws: never below the truth, and above it by less than 2e-12 of
            itself plus 1e-15 of the largest finite loss (for sums of shifts up to 1000). From `epsilon_total` on it is
            `1 - prod(1 - exposed(shift))`.
        """
        epsilon, moved = finite("epsilon", epsilon, least=0.0), [shift for shift in _shifts(shifts) if shift]
        if not moved:
            return 0.0
        floor = at_least_one(exposed_part(self.rate, self.bound, shift) for shift in moved)
        if self._covers(epsilon, sum(moved)) or floor == 1:
            return _stated(floor, 0.0)
        if len(moved) > MOST_SHIFTS or len(moved) * sum(moved) > MOST_WORK:
            msg = (
                f"shifts: at most {MOST_SHIFTS} may not be 0, and their number times their sum be at most {MOST_WORK}."
            )
            raise InputError(msg)
        return _stated(floor + finite_part(epsilon, moved, self.rate, self.bound), ULP * sum(moved))

    def _covers(self, epsilon: float, total: int) -> bool:
        """Whether epsilon is at least `total / scale`, in exact arithmetic."""
        if math.inf in (epsilon, self.scale):
            return True
        return Fraction(epsilon) * Fraction(self.scale) >= total


def truncated_geometric_delta(epsilon: float, max_error: int, sensitivity: int = 1) -> float:
    """Delta of whole numbers that are off by at most `max_error`, where one of them shifts by the sensitivity.

    Parameters
    ----------
    epsilon : float
        The scale of the noise is `sensitivity / epsilon`.
    max_error : int
        From 1 to 2^60. Below the sensitivity delta exceeds one half.
    sensitivity : int, optional
        At least 1.

    Returns
    -------
    float
        Never below the truth, and above it by less than 3e-12 of itself; at least 2.2e-308.

    Examples
    --------
    >>> f"{truncated_geometric_delta(1.0, 5):.6g} {truncated_geometric_delta(0.1, 10):.6g}"
    '0.00312505 0.0282532'
    """
    epsilon, sensitivity = positive("epsilon", epsilon), require_whole("sensitivity", sensitivity, 1)
    bound = require_whole("max_error", max_error, 1)
    return _stated(exposed_part(_rate(epsilon / sensitivity), bound, sensitivity), 0.0)


def truncated_geometric_bound(epsilon: float, delta: float, sensitivity: int = 1) -> int:
    """Smallest whole bound on the error that costs no more than delta: the inverse of `truncated_geometric_delta`.

    Parameters
    ----------
    epsilon : float
    delta : float
        Above 0 and at most 0.5; noise with a bound is never purely private.
    sensitivity : int, optional

    Raises
    ------
    InputError
        An argument breaks its rule, or the bound exceeds 2^60.

    Examples
    --------
    >>> truncated_geometric_bound(1.0, 1e-5)
    11
    """
    epsilon, delta = positive("epsilon", epsilon), require_bound_delta(delta)
    shift = require_whole("sensitivity", sensitivity, 1)
    return least_whole_error(
        lambda bound: truncated_geometric_delta(epsilon, bound, shift), epsilon, delta, first=shift
    )


def _shifts(shifts: Any) -> list[int]:
    found = elements(shifts)
    if found is None:
        msg = "shifts: needs a sequence of whole numbers, such as (1, 1)."
        raise InputError(msg)
    return [require_whole("shifts", shift, 0) for shift in found]


def _stated(delta: float, extra: float) -> float:
    """A delta rounded up, also where it is too small for a float."""
    return min(max(delta * (1 + ROUND_UP + extra), sys.float_info.min), 1.0)


def _rate(rate: float) -> float:
    return 0.0 if rate < SMALLEST_RATE else min(rate, LARGEST_RATE)
