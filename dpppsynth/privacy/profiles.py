"""Privacy profiles: delta as a function of epsilon, one class for each kind of mechanism.

A profile is quoted in words, and on certificates, at one delta: its attribute `at`. Results are rounded towards less
privacy: delta and epsilon up.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import scipy

from dpppsynth.core.arguments import finite, positive, probability, several
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats

__all__ = [
    "ApproximateDP",
    "GaussianDP",
    "PoissonGaussianDP",
    "Profile",
    "PureDP",
    "delta_gaussian",
    "gaussian_mu",
]

# Probability of the points of a Poisson law that are not looked at; it is added to delta.
TAIL = 1e-30
# Largest rate: beyond it the profile is slow to sum, and useless.
LARGEST_RATE = 1e6


class Profile(ABC):
    """Privacy profile of a mechanism: the smallest delta for every epsilon.

    Attributes
    ----------
    at : float
        The delta at which the profile is stated.
    """

    # Name on certificates, and names of attributes there that differ.
    kind: ClassVar[str]
    stated_as: ClassVar[Mapping[str, str]] = {"at": "delta"}
    if TYPE_CHECKING:

        @property
        def at(self) -> float:
            """The delta at which the profile is stated."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Smallest delta at which (epsilon, delta) holds."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at which (epsilon, delta) holds; infinite where none does."""

    @classmethod
    def keys(cls) -> dict[str, str]:
        """Names on certificates, by those of the attributes."""
        return {each.name: cls.stated_as.get(each.name, each.name) for each in fields(cast(Any, cls))}

    def to_dict(self) -> dict[str, Any]:
        """JSON form with a `kind`, inverse of `profile_from_dict`."""
        quoted = {"kind": self.kind, "epsilon": self.epsilon(self.at), "delta": self.at}
        return quoted | {key: _json(getattr(self, name)) for name, key in self.keys().items()}

    def describe(self) -> str:
        """The promise in words."""
        return _promise(self.epsilon(self.at), self.at)

    def quoted(self, aside: str, otherwise: str = "") -> str:
        """The promise with a remark; only its number, with `otherwise` if given, where epsilon is 0 or infinite."""
        epsilon = self.epsilon(self.at)
        if 0 < epsilon < math.inf:
            return f"{_promise(epsilon, self.at)}{aside}"
        return f"At delta = {self.at:g} epsilon is {epsilon:g}{otherwise or aside}"


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    return value.to_dict() if isinstance(value, Profile) else value


@dataclass(frozen=True)
class PureDP(Profile):
    """Pure differential privacy at level `level`; its profile is that of randomised response.

    Examples
    --------
    >>> PureDP(1.0).delta(1.0), PureDP(1.0).epsilon(0.0)
    (0.0, 1.0)
    """

    level: float
    kind: ClassVar[str] = "pure"
    stated_as: ClassVar[Mapping[str, str]] = {"level": "epsilon"}

    def __post_init__(self) -> None:
        _settle(self, level=positive("epsilon", self.level, rule=RULE))

    @property
    def at(self) -> float:
        """Zero, the delta at which the profile is stated."""
        return 0.0

    def delta(self, epsilon: float) -> float:
        """Delta `(e^level - e^epsilon)_+ / (e^level + 1)`."""
        if epsilon >= self.level:
            return 0.0
        return -math.expm1(epsilon - self.level) / (1 + math.exp(-self.level))

    def epsilon(self, delta: float) -> float:
        """Epsilon `log(e^level - delta (e^level + 1))`, at least zero, rounded up."""
        lost = delta * (1 + math.exp(-self.level))
        if not 0 < lost < 1:
            return 0.0 if lost > 0 else self.level
        return max(0.0, min(self.level, self.level + math.log1p(-lost) + 4 * math.ulp(self.level)))


@dataclass(frozen=True)
class GaussianDP(Profile):
    """Gaussian differential privacy: as hard to tell apart as `N(0, 1)` and `N(mu, 1)`.

    Examples
    --------
    >>> round(GaussianDP(1.0, at=1e-6).epsilon(1e-6), 6)
    4.886554
    """

    mu: float
    at: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _settle(self, mu=positive("mu", self.mu, rule=RULE), at=probability("delta", self.at))

    def delta(self, epsilon: float) -> float:
        """Delta `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`."""
        return gaussian_delta(epsilon, self.mu) if epsilon >= 0 else delta_gaussian(epsilon, self.mu)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite at zero."""
        return (
            smallest_epsilon(self.delta, delta, self.mu * (self.mu / 2 - float(scipy.special.ndtri(delta))))
            if delta > 0
            else math.inf
        )

    def describe(self) -> str:
        return f"{super().describe()}; all of it follows the Gaussian profile of mu = {self.mu:g}"


@dataclass(frozen=True)
class PoissonGaussianDP(Profile):
    """A Poisson number K, of mean `rate` and observed, of independent Gaussian mechanisms of parameter `ratio`.

    Given K they compose to `sqrt(K) ratio`, so the profile is the average of the Gaussian ones (Theorem B).
    """

    ratio: float
    rate: float
    at: float
    kind: ClassVar[str] = "poisson-gaussian"

    def __post_init__(self) -> None:
        ratio = positive("ratio", self.ratio, rule=RULE)
        rate = positive("rate", self.rate, rule=f"be positive and finite, {LARGEST_RATE:g} at most", most=LARGEST_RATE)
        _settle(self, ratio=ratio, rate=rate, at=probability("delta", self.at))

    def delta(self, epsilon: float) -> float:
        """Delta `E[delta_gaussian(epsilon, sqrt(K) ratio)]`, counted as one for each K that is not summed."""
        reach = 12 * math.sqrt(self.rate) + 32
        first, last = max(1, int(self.rate - reach)), int(self.rate + reach)
        k = np.arange(first, last + 1)
        probability = np.exp(k * math.log(self.rate) - self.rate - scipy.special.gammaln(k + 1))
        total = float(probability @ gaussian_deltas(epsilon, np.sqrt(k) * self.ratio))
        # The exponent above is a difference of numbers of size k log k.
        unseen = float(scipy.special.pdtrc(last, self.rate)) + (
            float(scipy.special.pdtr(first - 1, self.rate)) if first > 1 else 0.0
        )
        return min(1.0, total * (1 + ROUNDING + 1e-15 * last * math.log(last)) + unseen)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below the share of the Poisson law that is not summed."""
        return smallest_epsilon(self.delta, delta, self.ratio) if delta > TAIL else math.inf

    def describe(self) -> str:
        how = f"a Poisson number, {self.rate:g} on average, of Gaussian mechanisms of mu = {self.ratio:g}"
        return f"{super().describe()}; all of it follows the profile of {how}"


@dataclass(frozen=True)
class ApproximateDP(Profile):
    """One pair (`level`, `slack`) of epsilon and delta, and what follows from it alone."""

    level: float
    slack: float
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        _settle(self, level=positive("epsilon", self.level, rule=RULE), slack=probability("delta", self.slack))

    @property
    def at(self) -> float:
        """The delta at which the profile is stated."""
        return self.slack

    def delta(self, epsilon: float) -> float:
        """Delta of randomised response that reveals its input with probability `slack`."""
        return self.slack + (1 - self.slack) * PureDP(self.level).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below `slack`."""
        if delta < self.slack:
            return math.inf
        return PureDP(self.level).epsilon((delta - self.slack) / (1 - self.slack))


def profile_parts(profiles: Any) -> tuple[Any, ...]:
    """Profiles as a tuple, at least one."""
    parts = tuple(several("parts", profiles, Profile, "GaussianDP(0.3, 1e-6) is one"))
    if not parts:
        msg = "parts: need one profile at least, got none; what was never released spends nothing."
        raise InputError(msg)
    return parts


def _settle(profile: Profile, **numbers: Any) -> None:
    """Set checked attributes of a frozen profile."""
    for name, value in numbers.items():
        object.__setattr__(profile, name, value)


def _promise(epsilon: float, delta: float = 0.0) -> str:
    factor = f"{math.exp(epsilon):.2f} times (e^{epsilon:g})" if epsilon < 9 else f"e^{epsilon:g} times"
    aside = f", give or take a probability of {delta:g}" if delta else ""
    return (
        f"Whatever an attacker sees in the release is at most {factor} as likely for one "
        f"of two neighbouring patterns as for the other{aside}"
    )


# Three-point Gauss-Legendre rule on [-1, 1].
NODES, WEIGHTS = np.array([-math.sqrt(0.6), 0.0, math.sqrt(0.6)]), np.array([5.0, 8.0, 5.0]) / 9
# Relative error of computed deltas is below this, and they are raised by as much.
ROUNDING = 1e-12
# Sums of larger ones would leave the range of floats.
LARGEST_EPSILON = 1e300
RULE = "be positive and finite"


def delta_gaussian(epsilon: float, mu: float) -> float:
    """Privacy profile of the Gaussian mechanism: largest `P(A) - e^epsilon P'(A)` for P, P' = N(mu, 1), N(0, 1).

    Relative error below 2e-12, upwards, as long as the value can be represented.

    Parameters
    ----------
    epsilon : float
        Finite; below zero it is that of the other direction.
    mu : float
        Positive.
    """
    epsilon, mu = finite("epsilon", epsilon), positive("mu", mu, rule=RULE)
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(-epsilon, mu)
    return gaussian_delta(epsilon, mu)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """`delta_gaussian` for epsilon of at least zero, which may be infinite, and without its checks."""
    return min(1.0, float(gaussian_deltas(epsilon, np.array([mu], dtype=np.float64))[0]) * (1 + ROUNDING))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian profile passes below (epsilon, delta), rounded down.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-6), 6)
    0.236704
    """
    from scipy.optimize import brentq

    epsilon, delta = finite("epsilon", epsilon, least=0), probability("delta", delta)
    high = 1.0
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2

    def excess(log_mu: float) -> float:
        return math.log(max(gaussian_delta(epsilon, math.exp(log_mu)), 5e-324) / delta)

    # The profile at 0 is below mu / sqrt(2 pi), so mu = delta is always allowed.
    mu = math.exp(brentq(excess, math.log(delta), math.log(high), xtol=1e-15, maxiter=1000))
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-14
    return mu


def gaussian_deltas(epsilon: float, mu: Floats) -> Floats:
    """(m,) profiles without the rounding up, from Mills' ratio `R`: `phi(u) (R(u) - R(u + mu))`, `u = eps/mu - mu/2`.

    Subtracting loses no digits where mu > .05; below, `-R' = 1 - u R` is integrated over the interval instead.
    """
    with np.errstate(over="ignore"):
        u = np.clip(epsilon / mu - mu / 2, -1e150, 40.0)
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    small = np.minimum(mu, 0.05)
    x = np.maximum(u, -small / 2)[:, None] + small[:, None] * (1 + NODES) / 2
    gentle = density * small * ((1 - x * _mills(x)) @ WEIGHTS) / 2
    upper = np.where(u < 0, scipy.special.ndtr(-u), density * _mills(np.maximum(u, 0)))
    return np.where(mu < 0.05, gentle, upper - density * _mills(u + mu))


def _mills(x: Floats) -> Floats:
    """Mills' ratio `(1 - Phi(x)) / phi(x)`."""
    return np.asarray(math.sqrt(math.pi / 2) * scipy.special.erfcx(x / math.sqrt(2)))


def smallest_epsilon(profile: Callable[[float], float], delta: float, guess: float) -> float:
    """Smallest epsilon whose delta is at most the one given, rounded up; infinite beyond 1e300."""
    from scipy.optimize import brentq

    if profile(0.0) <= delta:
        return 0.0
    high = max(guess, 1e-300)
    while high < LARGEST_EPSILON and profile(high) > delta:
        high *= 2
    if not high < LARGEST_EPSILON:
        return math.inf
    epsilon = float(
        brentq(lambda e: math.log(max(profile(e), 5e-324) / delta), 0.0, high, xtol=1e-15 * high, maxiter=1000)
    )
    step = 1e-15 * high
    while profile(epsilon) > delta:
        epsilon, step = epsilon + step, 2 * step
    return epsilon
