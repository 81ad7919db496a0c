"""Covariance functions and matrices of Gaussian fields in the plane.

One function builds every covariance matrix; PyMC receives the matrix (or its factor), because its own `ExpQuad` means
`exp(-d^2 / (2 l^2))` where the field's convention, and ours, is `exp(-(d / l)^2)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.mesh import Floats

# Beyond this a covariance matrix and its factors take gigabytes.
MOST_POINTS = 6000
# Share of its trace by which the square of `square_root` may miss a covariance, in spectral norm.
ROOT_ERROR = 1e-12


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
        if len(points) > MOST_POINTS:
            msg = f"mesh: a covariance over {len(points)} vertices is too large; take at most {MOST_POINTS} vertices."
            raise InputError(msg)
        distance = cdist(points, points)
        return self.sigma**2 * np.exp(-((distance / self.length_scale) ** self.power))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `covariance_from_dict`."""
        return {
            "kind": "powered-exponential",
            "sigma": self.sigma,
            "length_scale": self.length_scale,
            "power": self.power,
        }


def covariance_from_dict(data: Mapping[str, Any]) -> PoweredExponential:
    """Covariance from its JSON form; InputError for a kind this version does not know."""
    if data.get("kind") != "powered-exponential":
        msg = f"covariance: kind {data.get('kind')!r} is not known to this version; expected 'powered-exponential'."
        raise InputError(msg)
    return PoweredExponential(data["sigma"], data["length_scale"], data["power"])


def factor(covariance: Floats, lost: float = 1e-3) -> Floats:
    """(V, r) matrix M with `M M'` the covariance but for a share `lost` of its trace, in the smallest eigenvalues.

    Leaving eigenvectors out only lowers the field's variance, and shortens a sampler's state a lot.
    """
    value, vector = np.linalg.eigh(covariance)
    keep = np.cumsum(value) > lost * value.sum()
    return vector[:, keep] * np.sqrt(value[keep])


def square_root(covariance: Floats) -> Floats:
    """(V, V) symmetric root: unlike a matrix of eigenvectors, the same on every machine.

    Raises
    ------
    PrivacyCheckError
        When its square misses the covariance by more than `ROOT_ERROR / 2` of the trace.
    """
    value, vector = np.linalg.eigh(covariance)
    root = (vector * np.sqrt(np.clip(value, 0, None))) @ vector.T
    root = (root + root.T) / 2
    if not np.linalg.norm(root @ root - covariance) <= ROOT_ERROR / 2 * np.trace(covariance):
        msg = "covariance: its square root was not found to working precision; take a coarser mesh."
        raise PrivacyCheckError(msg)
    return root
