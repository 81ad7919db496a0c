"""Two-sided geometric noise within a bound: the whole numbers that counts with bounded error are released with.

P(k) is proportional to `exp(-|k| / scale)` for whole k from -A to A. Where a coordinate shifts by t, its privacy losses
are `(t - 2 y) / scale` for y from 0 to t, and infinite for answers that only one of the two data sets can give; losses
of several coordinates add up. Every sum below is one of positive numbers: nothing cancels.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpppsynth.arguments import elements, finite, plain_array, positive, whole
from dpppsynth.errors import InputError
from dpppsynth.mesh import Floats

# Bounds and shifts stay within 64-bit integers, also once they are added to counts.
LARGEST = 2**60
# What a stated delta exceeds the computed one by, relative: more than the rounding of exponentials up to e^745.
ROUND_UP = 1e-12
ULP = sys.float_info.epsilon
# Scales whose losses are finite, and rates below which noise is uniform within every bound allowed.
SMALLEST_SCALE, LARGEST_RATE, SMALLEST_RATE = 1e-280, 1e280, 1e-280
# Shifted coordinates, and these times the sum of their shifts, for which losses are added up in about a second.
MOST_SHIFTS, MOST_WORK = 64, 2**24
WHY_DELTA = (
    "noise that never exceeds a bound is not purely private, because some answers are possible for one of two "
    "neighbouring data sets alone; 1e-6 is a common choice"
)


@dataclass(frozen=True)
class TruncatedGeometric:
    """Law of a whole number k with P(k) proportional to `exp(-|k| / scale)` where `|k| <= bound`.

    Attributes
    ----------
    scale : float
        At least 1e-280; infinite is the uniform law.
    bound : int
        A, from 1 to 2^60.

    Raises
    ------
    InputError
        An argument breaks its rule.

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
        object.__setattr__(self, "bound", whole("bound", self.bound, 1, most=LARGEST))

    @property
    def rate(self) -> float:
        """`1 / scale`, where that makes a difference within the bounds allowed."""
        return _rate(1 / self.scale)

    @property
    def total_weight(self) -> float:
        """Sum of `exp(-|k| / scale)` over all k, which is `1 / P(0)`."""
        return _total(self.rate, self.bound)

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
        """Mean of |k|."""
        return 2 * _power_sums(self.rate, self.bound)[1] / self.total_weight

    @property
    def variance(self) -> float:
        """Mean of k^2."""
        return 2 * _power_sums(self.rate, self.bound)[2] / self.total_weight

    def exposed(self, shift: int) -> float:
        """Probability of answers that are impossible once the truth shifts, `P(k > bound - shift)`.

        Parameters
        ----------
        shift : int
            At least 0; the law is symmetric. Shifts beyond twice the bound give 1.
        """
        return _exposed(self.rate, self.bound, whole("shift", shift, 0, most=LARGEST))

    def log_exposed(self, shift: int) -> float:
        """Natural logarithm of `exposed(shift)`, also where that is too small for a float; minus infinity for 0."""
        shift, rate = whole("shift", shift, 0, most=LARGEST), self.rate
        if not 0 < shift <= self.bound:
            return math.log(_exposed(rate, self.bound, shift)) if shift else -math.inf
        beyond = -rate * (self.bound - shift + 1)
        return beyond + math.log(_geometric_sum(rate, shift)) - math.log(self.total_weight)

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
        floor = at_least_one(_exposed(self.rate, self.bound, shift) for shift in moved)
        if self._covers(epsilon, sum(moved)) or floor == 1:
            return _stated(floor, 0.0)
        if len(moved) > MOST_SHIFTS or len(moved) * sum(moved) > MOST_WORK:
            msg = (
                f"shifts: at most {MOST_SHIFTS} may not be 0, and their number times their sum be at most {MOST_WORK}."
            )
            raise InputError(msg)
        return _stated(floor + self._finite_part(epsilon, moved), ULP * sum(moved))

    def _covers(self, epsilon: float, total: int) -> bool:
        """Whether epsilon is at least `total / scale`, in exact arithmetic."""
        if math.inf in (epsilon, self.scale):
            return True
        return Fraction(epsilon) * Fraction(self.scale) >= total

    def _finite_part(self, epsilon: float, shifts: list[int]) -> float:
        """Hockey-stick divergence from answers that both data sets can give, none of its terms rounded to below 0."""
        total, rate = sum(shifts), self.rate
        y = np.arange((total + 1) // 2)
        loss = rate * (total - 2 * y)
        excess = loss - epsilon
        excess = np.where(excess > -4 * ULP * loss, excess + 4 * ULP * loss, 0.0)
        return float((self._weights(shifts)[: len(y)] * np.exp(-rate * y) * -np.expm1(-excess)).sum())

    def _weights(self, shifts: list[int]) -> Floats:
        """(sum of shifts + 1,) probabilities of the losses `(sum shifts - 2 y) / scale`, times `exp(y / scale)`.

        Those of one coordinate are P(0) wherever both data sets can give the answer y; the two ends stand for all
        answers beyond them as well.
        """
        rate, bound, height = self.rate, self.bound, 1 / self.total_weight
        weights = np.ones(1)
        for shift in shifts:
            first = max(shift - bound, 0)
            ends = height * math.exp(-rate) * _geometric_sum(rate, bound - shift) if shift < bound else 0.0
            longer = np.zeros(len(weights) + shift)
            longer[first : len(longer) - first] = height * _sliding_sums(weights, shift - 2 * first + 1)
            longer[: len(weights)] += ends * weights
            longer[shift:] += ends * weights
            weights = longer
        return weights


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

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> f"{truncated_geometric_delta(1.0, 5):.6g} {truncated_geometric_delta(0.1, 10):.6g}"
    '0.00312505 0.0282532'
    """
    epsilon, sensitivity = positive("epsilon", epsilon), whole("sensitivity", sensitivity, 1, most=LARGEST)
    bound = whole("max_error", max_error, 1, most=LARGEST)
    return _stated(_exposed(_rate(epsilon / sensitivity), bound, sensitivity), 0.0)


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
    epsilon, delta = positive("epsilon", epsilon), require_delta(delta)
    low, high = 0, whole("sensitivity", sensitivity, 1, most=LARGEST)
    while truncated_geometric_delta(epsilon, high, sensitivity) > delta:
        low, high = high, 2 * high
        if high > LARGEST:
            msg = f"epsilon: {epsilon!r} at delta = {delta!r} needs errors beyond 2^60; take more of one of them."
            raise InputError(msg)
    while high - low > 1:
        middle = (low + high) // 2
        enough = truncated_geometric_delta(epsilon, middle, sensitivity) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def require_delta(delta: Any) -> float:
    """The delta that a bound on the error may cost, or an InputError with the reason why it cannot be 0."""
    return float(positive("delta", delta, rule="lie above 0 and be at most 0.5", remedy=WHY_DELTA, most=0.5))


def at_least_one(probabilities: Iterable[float]) -> float:
    """Probability that one or more of independent events happen: `1 - prod(1 - p)`, to full relative accuracy."""
    left = 0.0
    for probability in probabilities:
        if probability >= 1:
            return 1.0
        left += math.log1p(-probability)
    return -math.expm1(left)


def _shifts(shifts: Any) -> list[int]:
    found = elements(shifts)
    if found is None:
        msg = "shifts: needs a sequence of whole numbers, such as (1, 1)."
        raise InputError(msg)
    return [whole("shifts", shift, 0, most=LARGEST) for shift in found]


def _stated(delta: float, extra: float) -> float:
    """A delta rounded up, also where it is too small for a float."""
    return min(max(delta * (1 + ROUND_UP + extra), sys.float_info.min), 1.0)


def _rate(rate: float) -> float:
    return 0.0 if rate < SMALLEST_RATE else min(rate, LARGEST_RATE)


def _geometric_sum(rate: float, terms: int) -> float:
    """`1 + q + ... + q^(terms - 1)` with `q = exp(-rate)`."""
    return math.expm1(-rate * terms) / math.expm1(-rate) if rate else float(terms)


def _total(rate: float, bound: int) -> float:
    return _geometric_sum(rate, bound + 1) + math.exp(-rate) * _geometric_sum(rate, bound)


def _exposed(rate: float, bound: int, shift: int) -> float:
    """P(k > bound - shift)."""
    if shift > 2 * bound:
        return 1.0
    if shift > bound:
        below = math.exp(-rate) * _geometric_sum(rate, shift - bound - 1)
        return (_geometric_sum(rate, bound + 1) + below) / _total(rate, bound)
    return math.exp(-rate * (bound - shift + 1)) * _geometric_sum(rate, shift) / _total(rate, bound)


def _power_sums(rate: float, last: int) -> tuple[float, float, float]:
    """Sums of `q^k`, `k q^k` and `k^2 q^k` over k from 0 to `last`, by doubling the number of terms."""
    terms, ones, first, second = 0, 0.0, 0.0, 0.0
    for bit in f"{last + 1:b}":
        weight = math.exp(-rate * terms)
        second += weight * (second + 2 * terms * first + float(terms) ** 2 * ones)
        first += weight * (first + terms * ones)
        ones += weight * ones
        terms *= 2
        if bit == "1":
            weight = math.exp(-rate * terms)
            ones, first, second = ones + weight, first + terms * weight, second + float(terms) ** 2 * weight
            terms += 1
    return ones, first, second


def _sliding_sums(values: Floats, width: int) -> Floats:
    """(n + width - 1,) sums of up to `width` neighbours of (n,) values, which are all the windows that meet them.

    Windows are a suffix of one block of `width` values and a prefix of the next: differences of running sums would
    cancel.
    """
    windows = len(values) + width - 1
    blocks = -(-(windows + width - 1) // width)
    padded = np.zeros((blocks, width))
    padded.ravel()[width - 1 : width - 1 + len(values)] = values
    prefix = padded.cumsum(axis=1).ravel()
    suffix = padded[:, ::-1].cumsum(axis=1)[:, ::-1].copy()
    # A window that is one whole block is its prefix.
    suffix[:, 0] = 0.0
    return suffix.ravel()[:windows] + prefix[width - 1 : width - 1 + windows]
