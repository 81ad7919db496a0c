"""Uniform noise on an interval: (0, delta) differential privacy.

For comparisons: the noise is floating-point, so nothing drawn here may be released.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.baseline_arguments import real_numbers, uniforms
from dpppsynth.core.randomness import RngLike
from dpppsynth.privacy.truncated.truncated_laplace import in_range
from dpppsynth.spatial.mesh import Floats


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
