"""Second-order statistics of point patterns: results and arguments shared by windows and networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import flag, real, real_array, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.patterns import PointPattern

Intensities = npt.ArrayLike | Callable[[Floats], npt.ArrayLike] | None

# Distances that differ by less, relative to coordinates and diameter of the domain, differ by rounding alone: some
# four units in the last place in the plane; along streets rounding adds up over the edges of a path.
ROUNDING, ROUNDING_OF_PATHS = 1e-15, 1e-13
# Widest bandwidth, in extents of the domain: flat by then, and wider ones would lose digits.
WIDEST = 1000


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
            with np.errstate(over="ignore"):
                return np.pi * self.r**2
        return self.r if self.correction == "ang" else None

    @property
    def l(self) -> Floats:  # noqa: E743 - the field calls it L
        """(b,) L-function, linear in r for a Poisson process: sqrt(K / pi) in the plane, K itself on a network."""
        return np.sqrt(self.k / np.pi) if self.planar else self.k

    def __repr__(self) -> str:
        return _words(self)


@dataclass(frozen=True, eq=False, repr=False)
class PairCorrelation:
    """Estimate g (b,) of the pair correlation function at distances r (b,), as confidential as the points."""

    r: Floats
    g: Floats
    bandwidth: float
    correction: str
    inhomogeneous: bool
    normalise: bool
    planar: bool = False

    def __repr__(self) -> str:
        return _words(self, f", bandwidth {self.bandwidth:g}")


@dataclass(frozen=True, eq=False, repr=False)
class Envelope:
    """Observed curve and the band of simulated ones, as confidential as the points behind them.

    Attributes
    ----------
    curve : {"L", "K", "g"}
        Kind of the values: L-functions of K-functions in windows, K-functions along streets, or pair correlation
        functions.
    r : (b,) array
        Distances.
    observed, lower, upper, mean : (b,) arrays
        The observed curve, the band and the mean of the simulated curves.
    level : float
        Probability that a curve of the model leaves the band: at any one r, or anywhere if simultaneous.
    p_value : float or None
        Of the simultaneous test; None for pointwise envelopes, which are no test of the whole curve.
    """

    curve: str
    r: Floats
    observed: Floats
    lower: Floats
    upper: Floats
    mean: Floats
    level: float
    p_value: float | None = None

    @property
    def simultaneous(self) -> bool:
        """Whether the level holds for the curve as a whole."""
        return self.p_value is not None

    @property
    def outside(self) -> npt.NDArray[np.bool_]:
        """(b,) where the observed curve leaves the band."""
        return (self.observed < self.lower) | (self.observed > self.upper)

    def __repr__(self) -> str:
        kind = "simultaneous" if self.simultaneous else "pointwise"
        return f"Envelope({self.curve}, {kind}, level {self.level:g}, r from {self.r[0]:g} to {self.r[-1]:g})"


def require_pairs(pattern: PointPattern) -> None:
    """Refuse a pattern of fewer than two points, with an InputError."""
    if len(pattern) < 2:
        msg = "pattern: pairs of points take at least two points; join patterns, or look at a larger domain."
        raise InputError(msg)


def checked_coordinates(xy: npt.ArrayLike) -> Floats:
    """(n, 2) coordinates; InputError unless finite."""
    at = real_array(xy)
    if at is None or at.shape[-1:] not in ((2,), (0,)) or at.ndim > 2 or not np.isfinite(at).all():
        msg = "xy: needs finite coordinates in an array (n, 2)."
        raise InputError(msg)
    return at.reshape(-1, 2)


def checked_distances(r: npt.ArrayLike) -> Floats:
    """(b,) read-only copy of distances r; InputError unless finite, non-negative and strictly increasing."""
    values = None if isinstance(r, bool | np.bool_) else real_array(r)
    values = np.empty(0) if values is None else np.atleast_1d(values)
    legal = values.ndim == 1 and values.size and np.isfinite(values).all()
    if not legal or not values[0] >= 0 or not (np.diff(values) > 0).all():
        msg = "r: must be finite, non-negative and strictly increasing distances; for instance np.linspace(0, 400, 41)."
        raise InputError(msg)
    return frozen(values)


def require_smoothing(bandwidth: Any, domain: Domain) -> None:
    """Refuse a bandwidth that is no length above rounding, or above a thousand extents of the domain; InputError."""
    least, most = rounding(domain), WIDEST * domain.extent
    number = real(bandwidth)
    if number is None or not least < number <= most:
        msg = (
            f"bandwidth: must be a positive distance ({domain.unit}) above {least:.3g} and up to {most:.6g} in this "
            f"domain, got {shown(bandwidth)}; for instance {domain.extent / 10:.3g}."
        )
        raise InputError(msg)


def rounding(domain: Domain) -> float:
    """Difference below which two distances in a domain are equal."""
    share = ROUNDING if isinstance(domain, Window) else ROUNDING_OF_PATHS
    return share * (float(np.abs(domain.bounds).max()) + domain.diameter)


def longest_distance(domain: Domain) -> float:
    """Upper bound on the distances of points of a domain, rounding included, beyond which nothing need be searched."""
    return domain.diameter * (1 + 1e-9) + 2 * rounding(domain)


def intensity_values(intensity: Any, xy: Floats, name: str, domain: Domain) -> Floats:
    """(n,) values at coordinates (n, 2) of an intensity: a function, or the values themselves.

    InputError where it lives on another domain, or does not give one real number per point. Errors of the function stay
    its own.
    """
    home = getattr(getattr(intensity, "mesh", intensity), "domain", domain)
    if home is not domain and hasattr(home, "fingerprint") and home.fingerprint() != domain.fingerprint():
        msg = f"{name}: this intensity lives on another domain; take one on the domain of the pattern."
        raise InputError(msg)
    function = callable(intensity) and not isinstance(intensity, type)
    values = real_array(intensity(xy) if function else intensity)
    if values is None or values.shape != (len(xy),):
        msg = (
            f"{name}: needs one number per point, in the order of the points, or a function that gives one number "
            "per row of coordinates (n, 2)."
        )
        raise InputError(msg)
    return values


def pair_weights(pattern: PointPattern, intensity: Intensities, normalise: bool) -> tuple[Floats, float]:
    """Weights (n,) of the points, and the divisor of sums over ordered pairs.

    Without intensity `n (n - 1) / |D|`, D the domain; otherwise `sum 1/lambda_i` where normalised and |D| where not.
    InputError where the intensity is not one positive, finite number per point, lives on another domain, or is so small
    or large that products of two are no floating-point numbers.
    """
    flag("normalise", normalise)
    n, size = len(pattern), pattern.domain.size
    if intensity is None:
        return np.ones(n), n * (n - 1) / size
    values = intensity_values(intensity, pattern.xy, "intensity", pattern.domain)
    if not (np.isfinite(values) & (values > 0)).all():
        msg = (
            "intensity: must be positive and finite at every point; at some it is not. Take one that vanishes nowhere "
            "in the domain."
        )
        raise InputError(msg)
    # Sums of products of two, a hundred times each, must not leave the range of floating-point numbers.
    if values.min() < 1e-140 or values.max() > 1e140:
        msg = (
            "intensity: must lie between 1e-140 and 1e140 at every point, as products of two are taken; at some it "
            "does not. Measure in another unit of length."
        )
        raise InputError(msg)
    return 1 / values, float((1 / values).sum()) if normalise else size


def kernel_reach(bandwidth: float) -> float:
    """Half the width of the Epanechnikov kernel with standard deviation `bandwidth`."""
    return float(np.sqrt(5) * bandwidth)


def smoothed_pairs(moments: Callable[[Floats], Floats], r: Floats, bandwidth: float, most: float) -> Floats:
    """(b,) sums at r of the Epanechnikov kernels around the distances of the pairs, reflected at zero.

    What of a kernel would fall below zero is reflected, so that over r > 0 every pair counts once. The bandwidth is the
    kernel's standard deviation, and no pair is farther apart than `most`. Of increasing breaks (c,), `moments` gives
    those (3, c) of the pairs: sums over ordered pairs of their weights, and of these times x and x squared, x being the
    distance less the upper end of its bin. Bin i holds the distances above `breaks[i - 1]` up to `breaks[i]`, others
    are left out.
    """
    reach = kernel_reach(bandwidth)
    breaks = np.unique(np.minimum(np.concatenate([r - reach, r + reach, reach - r]), most))
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
    # In units of the reach, whose square need not be a floating-point number.
    x, zeroth, first_order, second = (breaks[bins] - at) / reach, *moments[:, bins]
    return 0.75 / reach * (zeroth - (x**2 * zeroth + 2 * x * (first_order / reach) + second / reach / reach)).sum()


def _words(result: KFunction | PairCorrelation, end: str = "") -> str:
    kind = "inhomogeneous" if result.inhomogeneous else "homogeneous"
    span = f"r from {result.r[0]:g} to {result.r[-1]:g}"
    return f"{type(result).__name__}({kind}, correction {result.correction!r}, {span}{end})"
