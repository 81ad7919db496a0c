"""Laws of additive noise that published experiments compare with: generalised Gaussian, staircase, and uniform.

`GeneralisedGaussian` has densities in proportion to `exp(-|z / scale|^power)`, cut off at a bound or not. Power 1 is
Laplace noise, 2 Gaussian. Above power 1 no scale is purely private, and a bound on the noise exposes its edge as it
does for every noise: delta is the exact hockey-stick divergence, not the probability of a tail. `Staircase` is the
additive noise of smallest expected error among all that keep one answer epsilon-private. `UniformNoise` on an
interval is (0, delta) private. For comparisons: the noise is floating-point, so nothing drawn here may be released.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln

from baselines.baseline_arguments import bound, budgets, checked_epsilon, real_numbers, uniforms
from dpppsynth.core.arguments import finite, one_of, real, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.privacy.truncated.truncated_laplace import LARGEST, SMALLEST, in_range
from dpppsynth.spatial.mesh import Floats

LARGEST_POWER = 100.0
# Where `(z / b)^p` is below it, the density is flat to the last digit.
FLAT = 1e-17
# Steps of the bisection for a scale: they halve a factor of 2 down to rounding.
STEPS = 55


# Below it, squares of `1 - e^-epsilon` are lost in rounding.
LEAST_EPSILON = 1e-8


@dataclass(frozen=True)
class GeneralisedGaussian:
    """Law of noise with density in proportion to `exp(-(|z| / scale)^power)` for `|z| <= bound`.

    Parameters
    ----------
    power : float
        p, from 1 to 100.
    scale : float
        b, in the unit of the noise; `sqrt(2) sigma` for p = 2.
    bound : float
        Noise beyond is redrawn; infinite for none.

    Raises
    ------
    InputError

    Examples
    --------
    >>> law = GeneralisedGaussian(2.0, 2.0)
    >>> round(law.variance, 6), round(float(law.tail(2.0)), 6)
    (2.0, 0.157299)
    """

    power: float
    scale: float
    bound: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", convex_power(self.power))
        object.__setattr__(self, "scale", in_range("scale", self.scale))
        object.__setattr__(self, "bound", bound("bound", self.bound))

    def pdf(self, z: Any) -> Floats:
        """Density at each z; zero beyond the bound."""
        size = np.abs(real_numbers("z", z))
        density = np.exp(-_reach(size, self.power, self.scale)) / (2 * self._half)
        return np.where(size <= self.bound, density, 0.0)

    def cdf(self, z: Any) -> Floats:
        """Probability up to each z, with all digits in the lower tail."""
        z = real_numbers("z", z)
        beyond = self._beyond(np.abs(z)) / 2
        return np.where(z < 0, beyond, 1 - beyond)

    def tail(self, t: Any) -> Floats:
        """Probability that the noise is larger than each t in absolute value: the beta of (t, beta)-accuracy."""
        t = real_numbers("t", t)
        return np.where(t < 0, 1.0, self._beyond(np.abs(t)))

    @property
    def mean_absolute(self) -> float:
        """Mean of the absolute value."""
        return self._moment(1)

    @property
    def variance(self) -> float:
        """Mean square; the mean is zero."""
        return self._moment(2)

    def sample(self, size: Any, rng: RngLike = None) -> Floats:
        """Floating-point noise of a shape, for studies: never for a release."""
        u, source = uniforms(size, rng)
        if math.isinf(self.bound):
            sizes = self.scale * source.standard_gamma(1 / self.power, u.shape) ** (1 / self.power)
            return np.asarray(np.sign(u) * sizes)
        sizes = np.minimum(half_length(np.abs(u) * self._half, self.power, self.scale), self.bound)
        return np.asarray(np.sign(u) * sizes)

    def delta(self, epsilon: float, sensitivity: float = 1.0) -> float:
        """Exact smallest delta, at this epsilon, of one answer that changes by at most `sensitivity`.

        The privacy loss falls as the noise grows, so the worst event is all noise below one point s: delta is
        `F(s) - e^epsilon F(s - D)`, with s where the loss is epsilon, yet never below `D - bound`, the edge that only
        one of the two answers reaches.
        """
        epsilon = finite("epsilon", epsilon, least=0)
        if epsilon > 0:
            checked_epsilon(epsilon)
        shift = in_range("sensitivity", sensitivity)
        s = max(shift * _loss_root(self.power, self.scale / shift, epsilon), shift - self.bound)
        first, second = float(self.cdf(s)), float(self.cdf(s - shift))
        return min(max(first - math.exp(epsilon) * second, 0.0), 1.0)

    @cached_property
    def _half(self) -> float:
        return float(half_mass(self.bound, self.power, self.scale))

    def _beyond(self, size: Floats) -> Floats:
        """Probability of noise beyond each size, as the difference that keeps its digits."""
        size = np.minimum(size, self.bound)
        reach, end = _reach(size, self.power, self.scale), _reach(self.bound, self.power, self.scale)
        inner = (self._half - half_mass(size, self.power, self.scale)) / self._half
        with np.errstate(divide="ignore", invalid="ignore"):
            outer = (gammaincc(1 / self.power, reach) - gammaincc(1 / self.power, end)) / gammainc(1 / self.power, end)
        return np.where(reach < 1, inner, outer)

    def _moment(self, k: int) -> float:
        """Mean of `|z|^k`."""
        end, top, low = float(_reach(self.bound, self.power, self.scale)), (k + 1) / self.power, 1 / self.power
        if end < FLAT:
            return self.bound**k / (k + 1)
        within = float(gammainc(top, end) / gammainc(low, end))
        return self.scale**k * math.exp(gammaln(top) - gammaln(low)) * within


def generalised_gaussian_scale(epsilon: float, delta: float, power: float, sensitivity: float = 1.0) -> float:
    """Smallest scale b whose unbounded noise is (epsilon, delta)-private for one answer, rounded up.

    Parameters
    ----------
    epsilon, delta : float
    power : float
        Above 1; Laplace noise of scale `sensitivity / epsilon` is purely private.
    sensitivity : float
        Largest change of the answer.

    Raises
    ------
    InputError
        Also where only a scale that is no ordinary float would do.

    Examples
    --------
    >>> round(generalised_gaussian_scale(1.0, 1e-5, 2), 6)
    5.27591
    """
    epsilon, delta = budgets(epsilon, delta)
    power, shift = convex_power(power), in_range("sensitivity", sensitivity)
    if power == 1:
        msg = "power: must be above 1 here; Laplace noise of scale sensitivity / epsilon is purely private, delta = 0."
        raise InputError(msg)
    high = 1.0
    while LARGEST > high > SMALLEST and GeneralisedGaussian(power, high).delta(epsilon) > delta:
        high *= 2
    while LARGEST > high > SMALLEST and GeneralisedGaussian(power, high / 2).delta(epsilon) <= delta:
        high /= 2
    low = high / 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = GeneralisedGaussian(power, middle).delta(epsilon) <= delta
        low, high = (low, middle) if enough else (middle, high)
    if not SMALLEST < high * shift < LARGEST:
        msg = "epsilon, delta: need a scale that is beyond floating-point numbers; take larger ones."
        raise InputError(msg)
    return high * shift


def convex_power(value: Any) -> float:
    """The power p as a float, 1 to 100; below 1 the privacy loss is not monotone, and no formula here holds."""
    number = real(value)
    if number is None or not 1 <= number <= LARGEST_POWER:
        msg = f"power: must be from 1 (Laplace) to {LARGEST_POWER:g}, got {shown(value)}; 2 is Gaussian noise."
        raise InputError(msg)
    return float(number)


def half_mass(length: Any, power: float, scale: float) -> Floats:
    """Integral of `exp(-(z / scale)^power)` from 0 to each length, accurate for short and for infinite ones."""
    reach = _reach(length, power, scale)
    return np.where(reach < FLAT, length, scale * math.exp(gammaln(1 + 1 / power)) * gammainc(1 / power, reach))


def half_length(mass: Any, power: float, scale: float) -> Floats:
    """Inverse of `half_mass`."""
    share = np.minimum(np.asarray(mass) / (scale * math.exp(gammaln(1 + 1 / power))), 1.0)
    curved = scale * gammaincinv(1 / power, share) ** (1 / power)
    return np.where(_reach(mass, power, scale) < FLAT, mass, curved)


def _reach(length: Any, power: float, scale: float) -> Floats:
    """`(length / scale)^power`, infinite beyond floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray((np.asarray(length, dtype=np.float64) / scale) ** power)


def _loss_root(power: float, scale: float, epsilon: float) -> float:
    """Point at which the loss `(|s - 1|^p - |s|^p) / scale^p` of a unit shift is epsilon: at most 1/2, or -inf."""
    if epsilon == 0:
        return 0.5
    target = math.log(epsilon) + power * math.log(scale)
    if target <= 0:
        # The loss falls from 1 to 0 between the answers.
        goal = math.exp(target)
        return float(brentq(lambda s: (1 - s) ** power - s**power - goal, 0.0, 0.5, xtol=1e-16, maxiter=1000))
    if power == 1:
        return -math.inf

    def log_loss(log_distance: float) -> float:
        steps = power * math.log1p(math.exp(-log_distance))
        return power * log_distance + steps + math.log(-math.expm1(-steps)) - target

    # Left of both, (1 + v)^p - v^p grows without limit, but for p near 1 beyond every float.
    if log_loss(700.0) < 0:
        return -math.inf
    return -math.exp(float(brentq(log_loss, -700.0, 700.0, xtol=1e-14, maxiter=1000)))


@dataclass(frozen=True)
class Staircase:
    """Law whose density falls by `e^-epsilon` once in every `sensitivity`, after a share `gamma` of the first stair.

    It protects one answer that changes by at most `sensitivity`. Several answers spend epsilon each even where their
    changes add up to no more than that: a stair may lie between two answers however near they are.

    Parameters
    ----------
    epsilon : float
        From 1e-8 to 500.
    sensitivity : float
    gamma : float
        From 0 to 1; `optimal_gamma` tells the best.

    Raises
    ------
    InputError

    References
    ----------
    Geng & Viswanath (2014), The optimal mechanism in differential privacy, ISIT.

    Examples
    --------
    >>> law = Staircase(1.0, 1.0, optimal_gamma(1.0))
    >>> round(law.variance, 6)
    1.918104
    """

    epsilon: float
    sensitivity: float
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _budget(self.epsilon))
        object.__setattr__(self, "sensitivity", in_range("sensitivity", self.sensitivity))
        gamma = finite("gamma", self.gamma, least=0)
        if gamma > 1:
            msg = f"gamma: must lie in [0, 1], got {gamma!r}; optimal_gamma() tells the best."
            raise InputError(msg)
        object.__setattr__(self, "gamma", float(gamma))

    def pdf(self, z: Any) -> Floats:
        """Density at each z."""
        stair, rest = self._stairs(real_numbers("z", z))
        height = np.exp(-self.epsilon * (stair + (rest >= self.gamma)))
        return height * -math.expm1(-self.epsilon) / (2 * self.sensitivity * self._first)

    def tail(self, t: Any) -> Floats:
        """Probability that the noise is larger than each t in absolute value: the beta of (t, beta)-accuracy."""
        t = real_numbers("t", t)
        stair, rest = self._stairs(np.maximum(t, 0))
        inside = np.minimum(rest, self.gamma) + self._fall * np.maximum(rest - self.gamma, 0)
        return np.exp(-self.epsilon * stair) * (1 + math.expm1(-self.epsilon) * inside / self._first)

    @property
    def mean_absolute(self) -> float:
        """Mean of the absolute value."""
        return self.sensitivity * (self._mean_stair + self._mean_rest)

    @property
    def variance(self) -> float:
        """Mean square; the mean is zero."""
        q = -math.expm1(-self.epsilon)
        stairs = self._fall * (1 + self._fall) / q**2
        cube = self.gamma**3
        rest = (cube + self._fall * (1 - cube)) / (3 * self._first)
        return self.sensitivity**2 * (stairs + 2 * self._mean_stair * self._mean_rest + rest)

    def sample(self, size: Any, rng: RngLike = None) -> Floats:
        """Floating-point noise of a shape, for studies: never for a release."""
        u, source = uniforms(size, rng)
        stair = np.floor(source.standard_exponential(u.shape) / self.epsilon)
        high = source.random(u.shape) * self._first < self.gamma
        v = source.random(u.shape)
        rest = np.where(high, self.gamma * v, self.gamma + (1 - self.gamma) * v)
        return np.asarray(np.sign(u) * self.sensitivity * (stair + rest))

    @property
    def _fall(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _first(self) -> float:
        """Mass of one stair's two parts in units of its higher one."""
        return self.gamma + self._fall * (1 - self.gamma)

    @property
    def _mean_stair(self) -> float:
        return self._fall / -math.expm1(-self.epsilon)

    @property
    def _mean_rest(self) -> float:
        square = self.gamma**2
        return (square + self._fall * (1 - square)) / (2 * self._first)

    def _stairs(self, z: Floats) -> tuple[Floats, Floats]:
        """Number of the stair of each z, and how far along it z lies, in [0, 1)."""
        ratio = np.minimum(np.abs(z) / self.sensitivity, 1e300)
        stair = np.floor(ratio)
        return stair, ratio - stair


def optimal_gamma(epsilon: float, *, error: str = "square") -> float:
    """Share of the first stair that makes the mean error smallest.

    Parameters
    ----------
    epsilon : float
    error : {"square", "absolute"}
        Error whose mean is to be smallest: the squared noise (its variance) or its absolute value.

    Examples
    --------
    >>> round(optimal_gamma(1.0), 6), round(optimal_gamma(1.0, error="absolute"), 6)
    (0.416737, 0.377541)
    """
    epsilon = _budget(epsilon)
    if one_of("error", error, ("square", "absolute")) == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    # ((b (1 + b) / 2)^(1/3) - b) / (1 - b) with b = e^-epsilon, without its cancellation for small epsilon.
    q = -math.expm1(-epsilon)
    x = (math.log1p(-q / 2) + 2 * epsilon) / 3
    return math.exp(x - epsilon) * -math.expm1(-x) / q


def _budget(value: Any) -> float:
    epsilon = checked_epsilon(value)
    if epsilon < LEAST_EPSILON:
        msg = f"epsilon: must be at least {LEAST_EPSILON:g}, got {epsilon!r}; nothing is left of an answer below it."
        raise InputError(msg)
    return epsilon


@dataclass(frozen=True)
class UniformNoise:
    """Law of noise that is uniform from -bound to bound.

    Examples
    --------
    >>> round(UniformNoise(3.0).variance, 6)
    3.0
    """

    bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", in_range("bound", self.bound))

    def pdf(self, z: Any) -> Floats:
        """Density at each z."""
        return np.where(np.abs(real_numbers("z", z)) <= self.bound, 0.5 / self.bound, 0.0)

    def tail(self, t: Any) -> Floats:
        """Probability that the noise is larger than each t in absolute value."""
        return 1 - np.clip(real_numbers("t", t) / self.bound, 0, 1)

    @property
    def mean_absolute(self) -> float:
        """Mean of the absolute value."""
        return self.bound / 2

    @property
    def variance(self) -> float:
        """Mean square; the mean is zero."""
        return self.bound**2 / 3

    def sample(self, size: Any, rng: RngLike = None) -> Floats:
        """Floating-point noise of a shape, for studies: never for a release."""
        return self.bound * uniforms(size, rng)[0]

    def delta(self, sensitivity: float = 1.0) -> float:
        """Smallest delta, the same at every epsilon: the share of outputs that only one of two answers gives."""
        return min(1.0, in_range("sensitivity", sensitivity) / (2 * self.bound))
