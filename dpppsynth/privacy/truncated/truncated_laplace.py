"""The truncated Laplace distribution, its delta, and the smallest error bound that a delta pays for.

Below, b is the scale, A the bound and `a = A / b`. All forms avoid differences of nearly equal numbers, and their
exponents are never positive. With sensitivity D and scale `D / epsilon`,
`delta = (e^epsilon - 1) / (2 (e^(epsilon A / D) - 1))` for a bound A of at least D. No delta is 0.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpppsynth.core.arguments import elements, finite, flag, plain_array, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.error_bounds import require_bound_delta
from dpppsynth.spatial.mesh import Floats

# Scales and bounds whose squares and ratios neither overflow nor vanish.
SMALLEST, LARGEST = 1e-100, 1e100
# Below this ratio of bound and scale moments are those of uniform noise and one correction.
TINY = 1e-8
MOST_DRAWS = 10**9


@dataclass(frozen=True)
class TruncatedLaplace:
    """Law of a real number z with density proportional to `exp(-|z| / scale)` where `|z| <= bound`.

    Attributes
    ----------
    scale : float
        From 1e-100 to 1e100, in the unit of the answers.
    bound : float
        From 1e-100 to 1e100 in the same unit; infinite is plain Laplace noise.

    References
    ----------
    Geng, Ding, Guo & Kumar (2020), Tight analysis of privacy and utility tradeoff in approximate differential privacy,
    AISTATS.

    Examples
    --------
    >>> law = TruncatedLaplace(scale=1.0, bound=5.0)
    >>> law.pdf([0.0, 5.0, 5.0001]).round(8).tolist()
    [0.50339183, 0.00339183, 0.0]
    >>> f"{law.variance:.10f} {law.exposed(1.0):.6g} {law.delta(0.5, 1.0):.6g}"
    '1.7625720783 0.00582812 0.2249'
    """

    scale: float
    bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", in_range("scale", self.scale))
        infinite = isinstance(self.bound, float) and self.bound == math.inf
        object.__setattr__(self, "bound", math.inf if infinite else in_range("bound", self.bound))

    @property
    def reach(self) -> float:
        """The bound in scales, a."""
        return self.bound / self.scale

    @property
    def mass(self) -> float:
        """Probability that plain Laplace noise stays within the bound, `1 - exp(-a)`."""
        return -math.expm1(-self.reach)

    def pdf(self, z: Any) -> Floats:
        """Densities at z, of any shape; 0 beyond the bound."""
        return np.exp(self.logpdf(z))

    def logpdf(self, z: Any) -> Floats:
        """Logarithms of the densities at z, of any shape; minus infinity beyond the bound."""
        size = np.abs(numbers("z", z))
        top = -math.log(2 * self.scale) - math.log(self.mass)
        return np.where(size <= self.bound, top - size / self.scale, -np.inf)

    def cdf(self, z: Any) -> Floats:
        """Probabilities that noise is at most z, of any shape, to full relative accuracy in the lower tail."""
        values = numbers("z", z)
        half = self.tail(np.abs(values)) / 2
        return np.where(values < 0, half, 1 - half)

    def ppf(self, u: Any) -> Floats:
        """Inverse of `cdf` at u between 0 and 1, of any shape."""
        levels = numbers("u", u, 0, 1)
        side = np.minimum(levels, 1 - levels)
        less = (1 - 2 * side) * self.mass
        with np.errstate(divide="ignore"):
            # The probability beyond |z| on both sides is 1 - less: take the logarithm of whichever has the digits.
            far = np.log(math.exp(-self.reach) + 2 * side * self.mass)
            size = -self.scale * np.where(less < 1 / 2, np.log1p(-less), far)
        return np.copysign(np.minimum(size, self.bound), levels - 1 / 2)

    def tail(self, t: Any) -> Floats:
        """Probabilities that `|z| > t`, for t of any shape and at least 0, to full relative accuracy."""
        size = np.minimum(numbers("t", t, 0), self.bound)
        left = np.inf if self.bound == math.inf else (self.bound - size) / self.scale
        return np.exp(-size / self.scale) * -np.expm1(-left) / self.mass

    @property
    def mean_absolute(self) -> float:
        """Mean of `|z|`."""
        if self.reach < TINY:
            return self.bound * (1 / 2 - self.reach / 12)
        return self.scale * float(scipy.special.gammainc(2, self.reach)) / self.mass

    @property
    def variance(self) -> float:
        """Mean of z^2: below `2 scale^2`, and near `bound^2 / 3` where the scale is large."""
        if self.reach < TINY:
            return self.bound**2 * (1 / 3 - self.reach / 12)
        return 2 * self.scale**2 * float(scipy.special.gammainc(3, self.reach)) / self.mass

    def sample(self, size: Any = (), rng: RngLike = None) -> Floats:
        """Draws in floating point, for studies and filters.

        Never for a release: low-order bits of floating point noise tell more than the density says. Releases draw
        whole numbers with the law of `TruncatedGeometric`.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result, of at most 10^9 numbers.
        rng : optional
            As `numpy.random.default_rng` takes it.
        """
        shape, rng = draws_shape(size), generator(rng)
        return self.ppf(rng.random(shape))

    def exposed(self, shift: float) -> float:
        """Probability of answers that are impossible once the truth shifts: delta at every epsilon from the loss on.

        Parameters
        ----------
        shift : float
            At least 0, in the unit of the scale. From twice the bound on the result is 1.

        Returns
        -------
        float
            To 13 digits; at least 2.2e-308 unless the shift is 0 or the bound infinite (`log_exposed` tells more).
        """
        log = self.log_exposed(shift)
        return 0.0 if log == -math.inf else max(math.exp(log), sys.float_info.min)

    def log_exposed(self, shift: float) -> float:
        """Natural logarithm of `exposed`, also where that is too small for a float."""
        shift = finite("shift", shift, least=0.0)
        if shift == 0 or self.bound == math.inf:
            return -math.inf
        if shift >= 2 * self.bound:
            return 0.0
        if shift > self.bound:
            return math.log1p(-float(self.tail(shift - self.bound)) / 2)
        # (e^(t/b) - 1) / (2 (e^a - 1)), times e^-a above and below.
        edge = -math.expm1(-shift / self.scale) / (2 * self.mass)
        return math.log(max(edge, sys.float_info.min)) - (self.bound - shift) / self.scale

    def delta(self, epsilon: float, shift: float) -> float:
        """Smallest delta at an epsilon where the truth shifts: the whole privacy profile.

        Parameters
        ----------
        epsilon : float
            At least 0; from `shift / scale` on the result is `exposed(shift)`.
        shift : float
            At least 0.
        """
        epsilon, shift = finite("epsilon", epsilon, least=0.0), finite("shift", shift, least=0.0)
        exposed = self.exposed(shift)
        spare = shift / self.scale - epsilon
        if spare <= 0 or exposed == 1:
            return exposed
        # Beyond the exposed edge: losses are shift / b up to the first truth, then fall and reach epsilon at spare / 2.
        flat = max(self.bound - shift, 0.0) / self.scale
        falling = max(spare / 2 - max(shift - self.bound, 0.0) / self.scale, 0.0)
        height = math.exp(-max(shift - self.bound, 0.0) / self.scale)
        part = math.expm1(-spare) * math.expm1(-flat) + height * math.expm1(-falling) ** 2
        return min(exposed + part / (2 * self.mass), 1.0)


def in_range(
    name: str, value: Any, least: float = SMALLEST, most: float = LARGEST, *, remedy: str = "choose another unit"
) -> float:
    """The number as a float; InputError where it is outside the range."""
    rule = f"be a number from {least:g} to {most:g}"
    number = float(positive(name, value, rule=rule, most=most))
    if number < least:
        msg = f"{name}: must {rule}, got {number!r}; {remedy}."
        raise InputError(msg)
    return number


def numbers(name: str, values: Any, least: float = -math.inf, most: float = math.inf) -> Floats:
    """The values as an array of floats; InputError where one is outside the range, or not a number."""
    given = plain_array(values)
    array = None if given is None or given.dtype.kind not in "iuf" else given.astype(float)
    if array is None or not ((array >= least) & (array <= most)).all():
        msg = f"{name}: must be numbers from {least:g} to {most:g}."
        raise InputError(msg)
    return array


def draws_shape(size: Any) -> tuple[int, ...]:
    """Shape of an array of draws for a size; InputError where the size is invalid or too large."""
    found = elements(size)
    shape = tuple(whole("size", side, 0, most=MOST_DRAWS) for side in ([size] if found is None else found))
    if math.prod(shape) > MOST_DRAWS or len(shape) > 32:
        msg = f"size: at most {MOST_DRAWS} draws in at most 32 dimensions; draw in parts."
        raise InputError(msg)
    return shape


# Epsilons, bounds and sensitivities whose ratios are scales that a law may have.
SMALLEST_PART, LARGEST_PART = 1e-50, 1e50
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

    Examples
    --------
    >>> f"{truncated_laplace_delta(1.0, 5.0):.6g}"
    '0.00582812'
    """
    epsilon = in_range("epsilon", epsilon, SMALLEST_PART, LARGEST_PART)
    size = in_range("sensitivity", sensitivity, SMALLEST_PART, LARGEST_PART)
    infinite = isinstance(max_error, float) and max_error == math.inf
    bound = math.inf if infinite else in_range("max_error", max_error, SMALLEST_PART, LARGEST_PART)
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

    Examples
    --------
    >>> round(truncated_laplace_bound(1.0, 1e-6), 5)
    13.66369
    """
    epsilon, delta = (
        in_range("epsilon", epsilon, SMALLEST_PART, LARGEST_PART),
        require_bound_delta(delta, least=SMALLEST_DELTA),
    )
    size = in_range("sensitivity", sensitivity, SMALLEST_PART, LARGEST_PART)
    if epsilon < 1:
        reach = math.log1p(math.expm1(epsilon) / (2 * delta))
    else:
        reach = epsilon + math.log(math.exp(-epsilon) - math.expm1(-epsilon) / (2 * delta))
    bound, step = max(reach * (size / epsilon), size), CLOSE
    while truncated_laplace_delta(epsilon, bound, size) > delta:
        bound, step = bound * (1 + step), 2 * step
    return bound
