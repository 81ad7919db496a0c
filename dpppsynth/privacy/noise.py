"""Discrete Laplace and Gaussian noise: the exact integer samplers that guarantees rest on.

The discrete Laplace and Gaussian laws come from OpenDP, which samples them exactly with entropy of the operating
system; its `contrib` switch is turned on here and nowhere else. A given `rng` swaps in a floating-point sampler for
tests and reproducible studies: such a run is not private and its certificate says so.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.error_bounds import LARGEST, WIDEST
from dpppsynth.spatial.mesh import Ints

# Beginning of the codes of truncated noise.
TRUNCATED = "redrawn-"


class DiscreteNoise(Protocol):
    """Additive noise on integers."""

    @property
    def name(self) -> str:
        """Code of the sampler in the catalogue."""

    @property
    def seeded(self) -> bool:
        """True when the noise can be reproduced: then nothing is private."""

    def add(self, values: Ints) -> Ints:
        """Values plus independent noise."""


@contextmanager
def _confirming() -> Iterator[None]:
    """Say in words of our own that OpenDP has no noise of this scale, or cannot tell what it spends."""
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException:
        raise _no_noise() from None


def _integers(metric: Any) -> tuple[Any, Any]:
    """OpenDP's vectors of whole numbers with a metric; turns its `contrib` switch on."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), metric


def _no_noise() -> PrivacyCheckError:
    return PrivacyCheckError("noise: OpenDP confirms none of this scale; take a less extreme epsilon.")


class OpenDPLaplace:
    """Discrete Laplace noise, P(k) proportional to exp(-|k| / scale), from OpenDP; all in lattice units.

    What it spends, `sensitivity / scale` in L1, is compared exactly with epsilon when the noise is made, which needs
    public parameters alone: PrivacyCheckError where it is more. OpenDP is loaded for the first draw, and its own
    privacy map must confirm the same before it draws.
    """

    name = "discrete-laplace"
    seeded = False

    def __init__(self, scale: float, *, sensitivity: int, epsilon: float) -> None:
        self.scale, self.sensitivity, self.epsilon = float(scale), int(sensitivity), float(epsilon)
        if not (math.isfinite(self.scale) and self.scale > 0 and self.sensitivity >= 0):
            raise _no_noise()
        spent = Fraction(self.sensitivity) / Fraction(self.scale)
        self._require(self.sensitivity / self.scale, holds=spent <= self.epsilon)

    def _require(self, spent: float, *, holds: bool) -> None:
        if not holds:
            msg = (
                f"noise: scale {self.scale!r} spends epsilon {spent!r} on sensitivity {self.sensitivity}, more than "
                f"{self.epsilon!r}."
            )
            raise PrivacyCheckError(msg)

    @cached_property
    def _measurement(self) -> Any:
        """OpenDP's measurement, confirmed by its map."""
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        with _confirming():
            made = make_laplace(*_integers(l1_distance(T="i64")), scale=self.scale)
            spent = made.map(self.sensitivity)
        self._require(spent, holds=spent <= self.epsilon)
        return made

    def add(self, values: Ints) -> Ints:
        return np.array(self._measurement([int(v) for v in values]), dtype=np.int64)


class SeededLaplace:
    """Discrete Laplace noise from a numpy generator: for tests and studies, never for a release."""

    name = "seeded-discrete-laplace"
    seeded = True

    def __init__(self, scale: float, rng: RngLike) -> None:
        self._scale, self._rng = scale, generator(rng)

    def add(self, values: Ints) -> Ints:
        p = -math.expm1(-1 / self._scale)
        up, down = self._rng.geometric(p, (2, len(values)))
        return values + up - down


class TruncatedNoise:
    """Discrete Laplace noise of at most `bound` in absolute value: what is larger is drawn again, never cut to it.

    How often noise is drawn again depends on the noise alone, not on the values.
    """

    def __init__(self, noise: "OpenDPLaplace | SeededLaplace", bound: int) -> None:
        self.noise, self.bound = noise, bound
        self.name, self.seeded = f"{TRUNCATED}{noise.name}", noise.seeded

    def add(self, values: Ints) -> Ints:
        noise, missing = np.zeros(len(values), dtype=np.int64), np.arange(len(values))
        while len(missing):
            noise[missing] = self.noise.add(np.zeros(len(missing), dtype=np.int64))
            missing = missing[np.abs(noise[missing]) > self.bound]
        return values + noise


class OpenDPGaussian:
    """Discrete Gaussian noise, P(k) proportional to exp(-k^2 / (2 scale^2)), from OpenDP; all in lattice units.

    OpenDP's own privacy map, in L2 and zero-concentrated terms, must confirm `mu^2 / 2`: else PrivacyCheckError.
    """

    name = "discrete-gaussian"
    seeded = False

    def __init__(self, scale: float, *, sensitivity: float, mu: float) -> None:
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        self.scale, self.sensitivity, self.mu = scale, sensitivity, mu
        with _confirming():
            self._measurement = make_gaussian(*_integers(l2_distance(T="f64")), scale=scale)
            spent = math.sqrt(2 * self._measurement.map(sensitivity))
        if not spent <= mu:
            msg = f"noise: scale {scale!r} spends mu {spent!r} on sensitivity {sensitivity!r}, more than {mu!r}."
            raise PrivacyCheckError(msg)

    def add(self, values: Ints) -> Ints:
        return np.array(self._measurement([int(v) for v in values]), dtype=np.int64)


class SeededGaussian:
    """Discrete Gaussian noise from a numpy generator: for tests and studies, never for a release."""

    name = "seeded-discrete-gaussian"
    seeded = True

    def __init__(self, scale: float, rng: RngLike) -> None:
        self._scale, self._rng = scale, generator(rng)

    def add(self, values: Ints) -> Ints:
        """Laplace variables of scale t, kept with odds `exp(-(|k| / scale - scale / t)^2 / 2)`.

        Canonne, Kamath & Steinke (2020), Algorithm 3.
        """
        t = math.floor(self._scale) + 1
        laplace, noise = SeededLaplace(t, self._rng), np.zeros(len(values), dtype=np.int64)
        missing = np.arange(len(values))
        while len(missing):
            noise[missing] = laplace.add(np.zeros(len(missing), dtype=np.int64))
            distance = np.abs(noise[missing]) / self._scale - self._scale / t
            missing = missing[self._rng.random(len(missing)) >= np.exp(-(distance**2) / 2)]
        return values + noise


def gaussian_noise(scale: float, *, sensitivity: float, mu: float, rng: RngLike = None) -> DiscreteNoise:
    """The discrete Gaussian noise of a release: OpenDP's, or the seeded one when `rng` is given."""
    if rng is not None:
        return SeededGaussian(scale, rng)
    return OpenDPGaussian(scale, sensitivity=sensitivity, mu=mu)


def laplace_noise(
    scale: float, *, sensitivity: int, epsilon: float, rng: RngLike = None
) -> OpenDPLaplace | SeededLaplace:
    """The discrete Laplace noise of a release: OpenDP's, or the seeded one when `rng` is given."""
    sensitivity, epsilon = whole("sensitivity", sensitivity, 1), positive("epsilon", epsilon)
    # An infinite one is that of a tiny epsilon, and refused below.
    if not (isinstance(scale, float) and scale == math.inf):
        scale = positive("scale", scale, remedy="laplace_scale(sensitivity, epsilon) gives one")
    require_room(scale, sensitivity, epsilon)
    if rng is not None:
        return SeededLaplace(scale, rng)
    return OpenDPLaplace(scale, sensitivity=sensitivity, epsilon=epsilon)


def truncated_laplace_noise(
    scale: float, bound: int, *, sensitivity: int, epsilon: float, rng: RngLike = None
) -> TruncatedNoise:
    """Discrete Laplace noise within -bound .. bound; parameters as in `laplace_noise`.

    Where both of two neighbouring answers are possible their odds are those of the noise without a bound; how likely an
    answer is that only one of them can give, delta, depends on the bound (`privacy.bounded_counts`).
    """
    bound = whole("bound", bound, 1, most=LARGEST)
    noise = laplace_noise(scale, sensitivity=sensitivity, epsilon=epsilon, rng=rng)
    require_narrow(scale, bound)
    return TruncatedNoise(noise, bound)


def require_narrow(scale: float, bound: int) -> None:
    """Refuse noise within a bound that hardly any draw keeps to."""
    if not scale <= WIDEST * bound:
        msg = (
            f"epsilon: noise of scale {scale:.6g} within {bound} is as good as uniform, and epsilon promises nothing; "
            "take a larger epsilon, or a larger bound."
        )
        raise InputError(msg)


def require_room(scale: float, sensitivity: int, epsilon: float) -> None:
    """Refuse noise that would not fit into 64-bit integers."""
    if not scale * 100 + sensitivity < LARGEST:
        msg = f"epsilon: {epsilon!r} asks for noise beyond 64-bit integers; take a larger epsilon."
        raise InputError(msg)
