"""Bounded-output noise: answers redrawn until they lie in a public domain, at the cost of a varying normaliser.

The normaliser depends on the true answer and has to be paid for. For comparisons: the noise is floating-point, so
nothing drawn here may be released.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.baseline_arguments import checked_epsilon, real_numbers, uniforms
from baselines.noise_laws import convex_power, half_length, half_mass
from dpppsynth.core.arguments import finite
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.local.grids.rectangles import reals
from dpppsynth.privacy.truncated.truncated_laplace import LARGEST, SMALLEST, in_range
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True)
class BoundedOutput:
    """Law of an output y in a public interval, with density in proportion to `exp(-(|y - answer| / scale)^power)`.

    Parameters
    ----------
    power, scale : float
        As in `GeneralisedGaussian`; `bounded_output_scale` tells a scale that is private.
    low, high : float
        Ends of the interval in which all answers lie.

    Raises
    ------
    InputError

    Examples
    --------
    >>> law = BoundedOutput(2.0, 3.0, low=0.0, high=10.0)
    >>> bool(law.sample([0.0, 5.0, 10.0], rng=1).max() <= 10)
    True
    """

    power: float
    scale: float
    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", convex_power(self.power))
        object.__setattr__(self, "scale", in_range("scale", self.scale))
        low, high = _interval(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def pdf(self, outputs: Any, answer: float) -> Floats:
        """Density at each output where this is the true answer; zero outside the interval."""
        outputs, centre = real_numbers("outputs", outputs), self._inside("answer", np.asarray(finite("answer", answer)))
        sides = self._half(centre - self.low) + self._half(self.high - centre)
        with np.errstate(over="ignore", under="ignore"):
            density = np.exp(-((np.abs(outputs - centre) / self.scale) ** self.power)) / sides
        return np.where((self.low <= outputs) & (outputs <= self.high), density, 0.0)

    def sample(self, answers: Any, rng: RngLike = None) -> Floats:
        """(N,) one floating-point output for each of the answers (N,), for studies: never for a release."""
        centres = self._inside("answers", reals("answers", answers, (None,)))
        left, right = self._half(centres - self.low), self._half(self.high - centres)
        u = (1 - uniforms(centres.shape, rng)[0]) / 2
        place = u * right - (1 - u) * left
        offsets = np.sign(place) * half_length(np.abs(place), self.power, self.scale)
        return np.clip(centres + offsets, self.low, self.high)

    def _half(self, length: Any) -> Floats:
        return half_mass(length, self.power, self.scale)

    def _inside(self, name: str, values: Floats) -> Floats:
        if not ((values >= self.low) & (values <= self.high)).all():
            msg = f"{name}: must lie from {self.low:g} to {self.high:g}, the public domain; clip beforehand."
            raise InputError(msg)
        return values


def bounded_output_scale(
    epsilon: float, *, low: float, high: float, power: float = 2.0, sensitivity: float = 1.0
) -> float:
    """Scale b for which `BoundedOutput` is purely private: `b^p = (2 / eps) (W^p - (W - D)^p)`; enough, not tight.

    The density alone pays half of it, the normaliser the other.

    Parameters
    ----------
    epsilon : float
    low, high : float
        Ends of the public domain, W apart.
    power : float
        p, from 1 to 100.
    sensitivity : float
        Largest change D of the answer, at most W.

    Examples
    --------
    >>> round(bounded_output_scale(1.0, low=0.0, high=10.0), 6)
    6.164414
    """
    epsilon, power = checked_epsilon(epsilon), convex_power(power)
    low, high = _interval(low, high)
    width, shift = high - low, in_range("sensitivity", sensitivity)
    if shift > width:
        msg = f"sensitivity: must be at most the width {width:g} of the domain, got {shift!r}; answers lie inside."
        raise InputError(msg)
    share = 1.0 if shift == width else -math.expm1(power * math.log1p(-shift / width))
    scale = width * (2 * share / epsilon) ** (1 / power) if share else 0.0
    if not SMALLEST < scale < LARGEST:
        msg = "epsilon, sensitivity: need a scale that is beyond floating-point numbers; change the unit."
        raise InputError(msg)
    return scale


def _interval(low: Any, high: Any) -> tuple[float, float]:
    ends = finite("low", low, least=-LARGEST), finite("high", high, least=-LARGEST)
    if not ends[0] < ends[1] < LARGEST or not ends[1] - ends[0] > SMALLEST:
        msg = f"low, high: must be ends of an interval below {LARGEST:g}, the lower one first; check the order."
        raise InputError(msg)
    return float(ends[0]), float(ends[1])
