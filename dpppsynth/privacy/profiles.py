"""Privacy profiles: delta as a function of epsilon, for every kind of mechanism the package has.

A profile is quoted in words, and on certificates, at one delta: its attribute `at`. Results are rounded towards less
privacy: delta and epsilon up, the budget `gaussian_mu` down.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, gammaln, ndtr, ndtri, pdtrc

from dpppsynth.errors import InputError

Floats = npt.NDArray[np.float64]

# Three-point Gauss-Legendre rule on [-1, 1].
NODES, WEIGHTS = np.array([-math.sqrt(0.6), 0.0, math.sqrt(0.6)]), np.array([5.0, 8.0, 5.0]) / 9
# Relative error of computed deltas is below this, and they are raised by as much.
ROUNDING = 1e-12
# Probability of the points of a Poisson law that are not looked at; it is added to delta.
TAIL = 1e-30


class Profile(Protocol):
    """Privacy profile of a mechanism: the smallest delta for every epsilon."""

    @property
    def at(self) -> float:
        """The delta at which the profile is quoted."""

    def delta(self, epsilon: float) -> float:
        """Smallest delta at which (epsilon, delta) holds."""

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at which (epsilon, delta) holds; infinite where none does."""

    def to_dict(self) -> dict[str, Any]:
        """JSON form with a `kind`, inverse of `profile_from_dict`."""

    def describe(self) -> str:
        """The promise in words."""


@dataclass(frozen=True)
class PureDP:
    """Pure differential privacy at level `level`; its profile is that of randomised response.

    Examples
    --------
    >>> PureDP(1.0).delta(1.0), PureDP(1.0).epsilon(0.0)
    (0.0, 1.0)
    """

    level: float

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.level)

    @property
    def at(self) -> float:
        """Zero."""
        return 0.0

    def delta(self, epsilon: float) -> float:
        """`(e^level - e^epsilon)_+ / (e^level + 1)`."""
        if epsilon >= self.level:
            return 0.0
        return -math.expm1(epsilon - self.level) / (1 + math.exp(-self.level))

    def epsilon(self, delta: float) -> float:
        """`log(e^level - delta (e^level + 1))`, at least zero."""
        inside = 1 - delta * (1 + math.exp(-self.level))
        return max(0.0, self.level + math.log(inside)) if inside > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"kind": "pure", "epsilon": self.level, "delta": 0.0}

    def describe(self) -> str:
        """The promise in words."""
        return _promise(self.level)


@dataclass(frozen=True)
class GaussianDP:
    """Gaussian differential privacy: as hard to tell apart as `N(0, 1)` and `N(mu, 1)`.

    Examples
    --------
    >>> round(GaussianDP(1.0, at=1e-6).epsilon(1e-6), 6)
    4.886554
    """

    mu: float
    at: float

    def __post_init__(self) -> None:
        _require_positive("mu", self.mu)
        _require_delta(self.at)

    def delta(self, epsilon: float) -> float:
        """`Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`."""
        return delta_gaussian(epsilon, self.mu)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite at zero."""
        return _inverse(self.delta, delta, self.mu * (self.mu / 2 - float(ndtri(delta)))) if delta > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"kind": "gaussian", "epsilon": self.epsilon(self.at), "delta": self.at, "mu": self.mu}

    def describe(self) -> str:
        """The promise in words."""
        return f"{_promise(self.epsilon(self.at), self.at)}; all of it follows the Gaussian profile of mu = {self.mu:g}"


@dataclass(frozen=True)
class PoissonGaussianDP:
    """A Poisson number K of mean `rate`, seen by all, of independent Gaussian mechanisms of parameter `ratio` each.

    Given K they compose to `sqrt(K) ratio`, so the profile is the average of the Gaussian ones (Theorem B).
    """

    ratio: float
    rate: float
    at: float

    def __post_init__(self) -> None:
        _require_positive("ratio", self.ratio)
        _require_positive("rate", self.rate)
        _require_delta(self.at)

    def delta(self, epsilon: float) -> float:
        """`E[delta_gaussian(epsilon, sqrt(K) ratio)]`, what is not summed counted as one."""
        last = int(self.rate + 12 * math.sqrt(self.rate) + 32)
        k = np.arange(1, last + 1)
        probability = np.exp(k * math.log(self.rate) - self.rate - gammaln(k + 1))
        total = float(probability @ _delta_gaussian(epsilon, np.sqrt(k) * self.ratio))
        # The exponent above is a difference of numbers of size k log k.
        return min(1.0, total * (1 + ROUNDING + 1e-15 * last * math.log(last)) + float(pdtrc(last, self.rate)))

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below the share of the Poisson law that is not summed."""
        return _inverse(self.delta, delta, self.ratio) if delta > TAIL else math.inf

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        quoted = {"epsilon": self.epsilon(self.at), "delta": self.at}
        return {"kind": "poisson-gaussian", **quoted, "ratio": self.ratio, "rate": self.rate}

    def describe(self) -> str:
        """The promise in words."""
        how = f"a Poisson number, {self.rate:g} on average, of Gaussian mechanisms of mu = {self.ratio:g}"
        return f"{_promise(self.epsilon(self.at), self.at)}; all of it follows the profile of {how}"


@dataclass(frozen=True)
class ApproximateDP:
    """One pair (`level`, `slack`) of epsilon and delta, and what follows from it alone."""

    level: float
    slack: float

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.level)
        _require_delta(self.slack)

    @property
    def at(self) -> float:
        """`slack`."""
        return self.slack

    def delta(self, epsilon: float) -> float:
        """Randomised response that lies open with probability `slack`."""
        return self.slack + (1 - self.slack) * PureDP(self.level).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below `slack`."""
        if delta < self.slack:
            return math.inf
        return PureDP(self.level).epsilon((delta - self.slack) / (1 - self.slack))

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        quoted = {"epsilon": self.level, "delta": self.slack}
        return {"kind": "approximate", **quoted, "level": self.level, "slack": self.slack}

    def describe(self) -> str:
        """The promise in words."""
        return _promise(self.level, self.slack)


@dataclass(frozen=True)
class SmallestOf:
    """A mechanism with several proofs: at every epsilon the best of them holds."""

    parts: tuple[Profile, ...]
    at: float

    def delta(self, epsilon: float) -> float:
        """Smallest delta of the parts."""
        return min(part.delta(epsilon) for part in self.parts)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon of the parts."""
        return min(part.epsilon(delta) for part in self.parts)

    @property
    def mu(self) -> float | None:
        """Gaussian parameter of the part that has one."""
        return next((part.mu for part in self.parts if isinstance(part, GaussianDP)), None)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        quoted = {"epsilon": self.epsilon(self.at), "delta": self.at}
        return {"kind": "smallest", **quoted, "parts": [part.to_dict() for part in self.parts]}

    def describe(self) -> str:
        """The promise in words: every part's, for all of them hold."""
        return ". Moreover: ".join(part.describe() for part in self.parts)


def profile_from_dict(data: dict[str, Any]) -> Profile:
    """Profile from its JSON form; InputError for a kind this version does not know."""
    makers: dict[Any, Callable[[], Profile]] = {
        "pure": lambda: PureDP(data["epsilon"]),
        "gaussian": lambda: GaussianDP(data["mu"], data["delta"]),
        "poisson-gaussian": lambda: PoissonGaussianDP(data["ratio"], data["rate"], data["delta"]),
        "approximate": lambda: ApproximateDP(data["level"], data["slack"]),
        "smallest": lambda: SmallestOf(tuple(map(profile_from_dict, data["parts"])), data["delta"]),
    }
    if data.get("kind") not in makers:
        known = ", ".join(map(repr, makers))
        msg = f"profile: kind {data.get('kind')!r} is not known to this version; expected one of {known}."
        raise InputError(msg)
    return makers[data["kind"]]()


def delta_gaussian(epsilon: float, mu: float) -> float:
    """Privacy profile of the Gaussian mechanism: largest `P(A) - e^epsilon P'(A)` for P, P' = N(mu, 1), N(0, 1).

    Relative error below 2e-12, upwards, as long as the value can be represented.
    """
    return min(1.0, float(_delta_gaussian(epsilon, np.array([mu]))[0]) * (1 + ROUNDING))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian profile passes below (epsilon, delta), rounded down.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-6), 6)
    0.236704
    """
    from scipy.optimize import brentq

    if not epsilon >= 0 or not epsilon < math.inf:
        msg = f"epsilon: must be finite and at least 0, got {epsilon!r}."
        raise InputError(msg)
    _require_delta(delta)
    high = 1.0
    while delta_gaussian(epsilon, high) <= delta:
        high *= 2

    def excess(log_mu: float) -> float:
        return math.log(max(delta_gaussian(epsilon, math.exp(log_mu)), 5e-324) / delta)

    # The profile at 0 is below mu / sqrt(2 pi), so mu = delta is always allowed.
    mu = math.exp(brentq(excess, math.log(delta), math.log(high), xtol=1e-15, maxiter=1000))
    while delta_gaussian(epsilon, mu) > delta:
        mu *= 1 - 1e-14
    return mu


def _delta_gaussian(epsilon: float, mu: Floats) -> Floats:
    """(m,) profiles without the rounding up, from Mills' ratio `R`: `phi(u) (R(u) - R(u + mu))`, `u = eps/mu - mu/2`.

    Subtracting loses no digits where mu > .05; below, `-R' = 1 - u R` is integrated over the interval instead.
    """
    with np.errstate(over="ignore"):
        u = np.minimum(epsilon / mu - mu / 2, 40.0)
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    small = np.minimum(mu, 0.05)
    x = np.maximum(u, -small / 2)[:, None] + small[:, None] * (1 + NODES) / 2
    gentle = density * small * ((1 - x * _mills(x)) @ WEIGHTS) / 2
    upper = np.where(u < 0, ndtr(-u), density * _mills(np.maximum(u, 0)))
    return np.where(mu < 0.05, gentle, upper - density * _mills(u + mu))


def _mills(x: Floats) -> Floats:
    """Mills' ratio `(1 - Phi(x)) / phi(x)`."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2)))


def _inverse(profile: Callable[[float], float], delta: float, guess: float) -> float:
    """Smallest epsilon whose delta is at most the one given, rounded up."""
    from scipy.optimize import brentq

    if profile(0.0) <= delta:
        return 0.0
    high = max(guess, 1e-300)
    while profile(high) > delta:
        high *= 2
    epsilon = float(
        brentq(lambda e: math.log(max(profile(e), 5e-324) / delta), 0.0, high, xtol=1e-15 * high, maxiter=1000)
    )
    step = 1e-15 * high
    while profile(epsilon) > delta:
        epsilon, step = epsilon + step, 2 * step
    return epsilon


def _promise(epsilon: float, delta: float = 0.0) -> str:
    factor = f"{math.exp(epsilon):.2f} times (e^{epsilon:g})" if epsilon < 9 else f"e^{epsilon:g} times"
    aside = f", give or take a probability of {delta:g}" if delta else ""
    return (
        f"Whatever an attacker sees in the release is at most {factor} as likely for one "
        f"of two neighbouring patterns as for the other{aside}"
    )


def _require_positive(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        msg = f"{name}: must be positive and finite, got {value!r}."
        raise InputError(msg)


def _require_delta(value: Any) -> None:
    if not isinstance(value, int | float) or not 0 < value < 1:
        msg = f"delta: must lie strictly between 0 and 1, got {value!r}; 1e-6 is a common choice."
        raise InputError(msg)
