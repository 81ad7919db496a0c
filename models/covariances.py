"""Covariance functions and matrices of Gaussian fields in the plane.

One function builds every covariance matrix; PyMC receives the matrix (or its factor), because its own `ExpQuad` means
`exp(-d^2 / (2 l^2))` where the field's convention, and ours, is `exp(-(d / l)^2)`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpppsynth.errors import InputError
from dpppsynth.mesh import Floats


class Covariance(Protocol):
    """A stationary covariance: anything with a matrix over points."""

    def matrix(self, points: Floats) -> Floats:
        """(V, V) covariance matrix over points (V, 2)."""


@dataclass(frozen=True)
class PoweredExponential:
    """`sigma^2 exp(-(d / length_scale)^power)`, 0 < power <= 2; squared exponential at 2.

    Attributes
    ----------
    sigma : float
        Standard deviation of the field.
    length_scale : float
        In the domain's unit of length.
    power : float
    """

    sigma: float
    length_scale: float
    power: float = 2.0

    def __post_init__(self) -> None:
        for name in ("sigma", "length_scale"):
            value = getattr(self, name)
            if not 0 < value < np.inf:
                msg = f"{name}: must be positive and finite, got {value!r}."
                raise InputError(msg)
        if not 0 < self.power <= 2:
            msg = f"power: must lie in (0, 2] for a valid covariance, got {self.power!r}; 2 is the squared exponential."
            raise InputError(msg)

    def matrix(self, points: Floats) -> Floats:
        """(V, V) covariance matrix over points (V, 2)."""
        distance = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1))
        return self.sigma**2 * np.exp(-((distance / self.length_scale) ** self.power))


def factor(covariance: Floats, lost: float = 1e-3) -> Floats:
    """(V, r) matrix M with `M M'` the covariance but for a share `lost` of its trace, in the smallest eigenvalues.

    Leaving eigenvectors out only lowers the field's variance, and shortens a sampler's state a lot.
    """
    value, vector = np.linalg.eigh(covariance)
    keep = np.cumsum(value) > lost * value.sum()
    return vector[:, keep] * np.sqrt(value[keep])
