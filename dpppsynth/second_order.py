"""Second-order statistics of point patterns: results and arguments that the plane and networks have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.domains import Domain
from dpppsynth.errors import InputError
from dpppsynth.patterns import PointPattern

Floats = npt.NDArray[np.float64]
Intensities = npt.ArrayLike | Callable[[Floats], npt.ArrayLike] | None

# Distances that differ by less, relative to coordinates and diameter of the domain, differ by rounding alone.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class KFunction:
    """Estimate k (b,) of the K-function at distances r (b,), as confidential as the points it was made from.

    `planar` tells a window from a network.
    """

    r: Floats
    k: Floats
    correction: str
    inhomogeneous: bool
    normalise: bool
    planar: bool = False

    @property
    def theory(self) -> Floats | None:
        """(b,) K-function of a Poisson process: pi r^2 in the plane, r on a network under the correction "ang".

        On a network that holds where r stays below the distance from every point to the one farthest from it. Without
        the correction K depends on the network, and there is None.
        """
        if self.planar:
            return np.pi * self.r**2
        return self.r if self.correction == "ang" else None

    @property
    def l(self) -> Floats:  # noqa: E743 - the field calls it L
        """(b,) L-function, linear in r for a Poisson process: sqrt(K / pi) in the plane, K itself on a network."""
        return np.sqrt(self.k / np.pi) if self.planar else self.k

    def __repr__(self) -> str:
        return f"KFunction({_kind(self)}, correction {self.correction!r}, {_span(self.r)})"


@dataclass(frozen=True, eq=False, repr=False)
class PairCorrelation:
    """Estimate g (b,) of the pair correlation function at distances r (b,), as confidential as the points."""

    r: Floats
    g: Floats
    bandwidth: float
    correction: str
    inhomogeneous: bool
    normalise: bool

    def __repr__(self) -> str:
        end = f"{_span(self.r)}, bandwidth {self.bandwidth:g}"
        return f"PairCorrelation({_kind(self)}, correction {self.correction!r}, {end})"


def require_pairs(pattern: PointPattern) -> None:
    """InputError for a pattern of fewer than two points."""
    if len(pattern) < 2:
        msg = "pattern: pairs of points take at least two points; join patterns, or look at a larger domain."
        raise InputError(msg)


def checked_distances(r: npt.ArrayLike) -> Floats:
    """(b,) read-only copy of distances r; InputError unless finite, non-negative and strictly increasing."""
    try:
        values = np.atleast_1d(np.array(r, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    legal = values.ndim == 1 and values.size and np.isfinite(values).all()
    if not legal or not values[0] >= 0 or not (np.diff(values) > 0).all():
        msg = "r: must be finite, non-negative and strictly increasing distances; for instance np.linspace(0, 400, 41)."
        raise InputError(msg)
    return frozen(values)


def require_smoothing(bandwidth: Any, unit: str) -> None:
    """InputError unless the bandwidth is a positive distance."""
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or not 0 < bandwidth < np.inf:
        msg = f"bandwidth: must be a positive distance ({unit}), got {bandwidth!r}; for instance 20.0."
        raise InputError(msg)


def rounding(domain: Domain) -> float:
    """Difference below which two distances in a domain are equal."""
    return ROUNDING * (float(np.abs(domain.bounds).max()) + domain.diameter)


def pair_weights(pattern: PointPattern, intensity: Intensities, normalise: bool) -> tuple[Floats, float]:
    """Weights (n,) of the points, and what sums over ordered pairs are divided by.

    Without intensity `n (n - 1) / |D|`, D the domain; otherwise `sum 1/lambda_i` where normalised and |D| where not.

    Raises
    ------
    InputError
        When the intensity is not one positive, finite number per point.
    """
    n, size = len(pattern), pattern.domain.size
    if intensity is None:
        return np.ones(n), n * (n - 1) / size
    try:
        values = np.asarray(intensity(pattern.xy) if callable(intensity) else intensity, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape != (n,):
        msg = "intensity: needs one number per point, in the order of the points, or a function of coordinates (n, 2)."
        raise InputError(msg)
    if not (np.isfinite(values) & (values > 0)).all():
        msg = (
            "intensity: must be positive and finite at every point; at some it is not. Take one that vanishes nowhere "
            "in the domain."
        )
        raise InputError(msg)
    return 1 / values, float((1 / values).sum()) if normalise else size


def kernel_reach(bandwidth: float) -> float:
    """Half the width of the Epanechnikov kernel with standard deviation `bandwidth`."""
    return float(np.sqrt(5) * bandwidth)


def smoothed_pairs(moments: Callable[[Floats], Floats], r: Floats, bandwidth: float) -> Floats:
    """(b,) sums at r of the Epanechnikov kernels around the distances of the pairs, reflected at zero.

    What of a kernel would fall below zero is reflected, so that over r > 0 every pair counts once.

    Parameters
    ----------
    moments : callable
        Given increasing breaks (c,), the moments (3, c): sums over ordered pairs of their weights, and of these times x
        and x squared, x being the distance less the upper end of its bin. Bin i holds the distances above `breaks[i -
        1]` up to `breaks[i]`, others are left out.
    r : ndarray, shape (b,)
    bandwidth : float
        Standard deviation of the kernel.
    """
    reach = kernel_reach(bandwidth)
    breaks = np.concatenate([r - reach, r + reach, reach - r])
    breaks = np.unique(breaks[breaks > 0])
    sums = moments(breaks)
    return np.array([_smoothed(sums, breaks, at, reach) + _smoothed(sums, breaks, -at, reach) for at in r])


def frozen(array: Floats) -> Floats:
    """Make an array read-only."""
    array.flags.writeable = False
    return array


def _smoothed(moments: Floats, breaks: Floats, at: float, reach: float) -> Any:
    """Sum of Epanechnikov kernels around the distances of the pairs, at one place: bins lie within reach or beyond."""
    first, last = np.searchsorted(breaks, [at - reach, at + reach], side="right")
    bins = slice(first, last)
    x, (zeroth, first_order, second) = breaks[bins] - at, moments[:, bins]
    return 0.75 / reach * (zeroth - (x**2 * zeroth + 2 * x * first_order + second) / reach**2).sum()


def _kind(result: KFunction | PairCorrelation) -> str:
    return "inhomogeneous" if result.inhomogeneous else "homogeneous"


def _span(r: Floats) -> str:
    return f"r from {r[0]:g} to {r[-1]:g}"
