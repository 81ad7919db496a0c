"""Mass of truncated planar Laplace noise about one point that lies outside the disk about another.

In lengths of `1 / epsilon`, a circle of radius r about the point lies partly outside, for r from the gap
`|bound - distance|` to the bound; the mass is the integral over r of the radial density times that part of the circle.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.error_bounds import require_bound_delta, smallest_number
from dpppsynth.privacy.truncated.truncated_laplace import in_range, numbers
from dpppsynth.spatial.mesh import Floats

# Epsilons and lengths whose products, squared, neither overflow nor vanish.
SMALLEST_LENGTH, LARGEST_LENGTH = 1e-60, 1e60


def bounded(name: str, value: Any) -> float:
    """A positive number, which may be infinite, as a bound; InputError for anything else."""
    infinite = isinstance(value, float) and value == math.inf
    return math.inf if infinite else scaled(name, value)


def scaled(name: str, value: Any) -> float:
    """The number as a float; InputError where products of such numbers may overflow or vanish."""
    return in_range(name, value, SMALLEST_LENGTH, LARGEST_LENGTH, remedy="choose a larger unit of length")


def points_in_plane(name: str, points: Any) -> Floats:
    """An array of shape (n, 2); InputError for another shape, or coordinates too large to square."""
    given = plain_array(points)
    array = None if given is None or given.dtype.kind not in "iuf" else given.astype(float)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not (np.abs(array) <= LARGEST_LENGTH).all():
        msg = f"{name}: must be coordinates of shape (n, 2), none above {LARGEST_LENGTH:g}."
        raise InputError(msg)
    return array


# Relative safety margin of a stated mass: far more than the rounding of the quadrature.
ROUND_UP = 1 + 1e-10
# This far above the gap the exponential has made the rest of the integral nothing.
FAR = 100.0


def _double_exponential() -> tuple[Floats, Floats]:
    """Nodes in (0, 1) and weights of the double exponential rule, to which square roots at an end do no harm."""
    half, last = 220, 3.3
    tau = np.linspace(-last, last, 2 * half + 1)
    nodes = 1 / (1 + np.exp(-np.pi * np.sinh(tau)))
    weights = np.pi * np.cosh(tau) * nodes / (1 + np.exp(np.pi * np.sinh(tau))) * (last / half)
    return nodes, weights


NODES, WEIGHTS = _double_exponential()


def exposed_mass(epsilon: float, bound: float, distance: float) -> float:
    """Probability that noise about a point leaves the disk about another, rounded up by less than 1e-9 of itself.

    The budget is per unit of length, the bound, finite, the radius of both disks, the distance that of their centres.

    Examples
    --------
    >>> f"{exposed_mass(1.0, 10.0, 1.0):.7g}"
    '0.000220342'
    """
    if distance >= 2 * bound:
        return 1.0
    gap = epsilon * abs(bound - distance)
    mass = gammainc(2, epsilon * bound)
    # Radii below the gap are exposed in every direction if the other point is out of reach, and in none if it is not.
    alone = gammainc(2, gap) / mass if distance > bound else 0.0
    length = min(epsilon * min(distance, 2 * bound - distance), FAR)
    above = length * NODES
    radii = gap + above
    density = radii * np.exp(-radii) / mass
    shared = float(WEIGHTS @ (density * exposed_part(epsilon, bound, distance, above))) * length
    return min(max(float(alone + shared) * ROUND_UP, sys.float_info.min), 1.0)


def exposed_part(epsilon: float, bound: float, distance: float, above: Floats) -> Floats:
    """Part of a circle about a point that lies outside the disk about another, for radii `above` the gap.

    The circle of radius r crosses the disk's rim where r, the bound and the distance are the sides of a triangle; the
    half angle formula gives the direction from sums and differences of the sides, and none of them cancels here.
    """
    reach, apart, gap = epsilon * bound, epsilon * distance, epsilon * abs(bound - distance)
    # r + distance - bound and r + bound - distance: one of them is what r has above the gap.
    far = 2 * gap + above
    ratio = far / above if distance > bound else above / far
    short = np.maximum(epsilon * min(distance, 2 * bound - distance) - above, 0.0)
    tangent = np.sqrt(ratio * (gap + above + apart + reach) / (short + apart))
    return 2 / np.pi * np.arctan(tangent)


# Below this product of epsilon and bound the moments are those of a uniform disk and one correction.
TINY = 1e-8
SMALLEST_DELTA = 1e-300
# Relative width at which the search for a bound stops.
CLOSE = 1e-13


@dataclass(frozen=True)
class PlanarLaplace:
    """Law of an offset v in the plane with density proportional to `exp(-epsilon |v|)` where `|v| <= bound`.

    The length of the offset is a Gamma variable with shape 2, redrawn beyond the bound, and its direction uniform.

    Parameters
    ----------
    epsilon : float
        Budget per unit of length, from 1e-60 to 1e60.
    bound : float, optional
        Largest length of an offset, in the same unit and from 1e-60 to 1e60; infinite is plain planar Laplace noise.

    References
    ----------
    Andrés, Bordenabe, Chatzikokolakis & Palamidessi (2013), Geo-indistinguishability, CCS.

    Examples
    --------
    >>> law = PlanarLaplace(epsilon=1.0, bound=5.0)
    >>> round(law.mean_radius, 6), round(float(law.radial_ppf(0.5)), 6)
    (1.824454, 1.614643)
    >>> f"{law.exposed(1.0):.6g}"
    '0.0169059'
    """

    epsilon: float
    bound: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", scaled("epsilon", self.epsilon))
        object.__setattr__(self, "bound", bounded("bound", self.bound))

    @property
    def reach(self) -> float:
        """The bound in lengths of `1 / epsilon`."""
        return self.epsilon * self.bound

    @property
    def mass(self) -> float:
        """Probability that plain planar Laplace noise stays within the bound."""
        return float(gammainc(2, self.reach))

    def pdf(self, offsets: Any) -> Floats:
        """(n,) densities at offsets (n, 2); 0 beyond the bound."""
        return np.exp(self.logpdf(offsets))

    def logpdf(self, offsets: Any) -> Floats:
        """(n,) logarithms of the densities at offsets (n, 2); minus infinity beyond the bound."""
        radii = np.hypot(*points_in_plane("offsets", offsets).T)
        top = 2 * math.log(self.epsilon) - math.log(2 * math.pi * self.mass)
        return np.where(radii <= self.bound, top - self.epsilon * radii, -np.inf)

    def radial_pdf(self, r: Any) -> Floats:
        """Densities of the length of an offset at r, of any shape and not negative."""
        radii = numbers("r", r, 0, LARGEST_LENGTH)
        x = self.epsilon * radii
        return np.where(radii <= self.bound, self.epsilon * x * np.exp(-x) / self.mass, 0.0)

    def radial_cdf(self, r: Any) -> Floats:
        """Probabilities that an offset is no longer than r, of any shape and not negative."""
        return np.minimum(gammainc(2, self.epsilon * numbers("r", r, 0, LARGEST_LENGTH)) / self.mass, 1.0)

    def radial_ppf(self, u: Any) -> Floats:
        """Lengths that offsets exceed with probability 1 - u, of u between 0 and 1 and of any shape."""
        below = numbers("u", u, 0, 1) * self.mass
        # P(2, x) = x^2/2 - x^3/3 + ...; gammaincinv has no digits left where its argument is near the least float.
        small = np.sqrt(2 * below) * (1 + np.sqrt(2 * below) / 3)
        x = np.where(below < TINY**2, small, gammaincinv(2, below))
        return np.minimum(x / self.epsilon, self.bound)

    def tail(self, t: Any) -> Floats:
        """Probabilities that an offset is longer than t, of any shape and not negative, to full relative accuracy."""
        lengths = np.minimum(numbers("t", t, 0, LARGEST_LENGTH), self.bound)
        x = self.epsilon * lengths
        y = self.epsilon * (self.bound - lengths)
        # (1 + x) e^-x - (1 + a) e^-a with a = x + y, as a sum of two parts that are not negative.
        return np.exp(-x) * (x * -np.expm1(-y) + gammainc(2, y)) / self.mass

    @property
    def mean_radius(self) -> float:
        """Mean length of an offset."""
        if self.reach < TINY:
            return 2 / 3 * self.bound * (1 - self.reach / 12)
        return 2 / self.epsilon * float(gammainc(3, self.reach)) / self.mass

    @property
    def mean_square(self) -> float:
        """Mean squared length of an offset: both coordinates together."""
        if self.reach < TINY:
            return self.bound**2 / 2 * (1 - 2 * self.reach / 15)
        return 6 / self.epsilon**2 * float(gammainc(4, self.reach)) / self.mass

    @property
    def variance(self) -> float:
        """Variance of one coordinate of an offset."""
        return self.mean_square / 2

    def sample(self, n: int, rng: RngLike = None) -> Floats:
        """(n, 2) offsets in floating point, for studies and filters.

        Never for a release: low-order bits of floating point noise tell more than the density says.
        `dpppsynth.truncated.move` draws what can be released.
        """
        n, rng = whole("n", n, 0, most=10**9), generator(rng)
        radii = self.radial_ppf(rng.random(n))
        angles = 2 * np.pi * rng.random(n)
        return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])

    def exposed(self, distance: float) -> float:
        """Probability of reports of a point that are impossible for another one at this distance.

        It is the delta at `epsilon distance`, exactly, and rounded up by less than 1e-9 of itself; below 1e-307 it is
        stated as 2.3e-308. Infinite bounds expose nothing.

        Parameters
        ----------
        distance : float
            Above 0, in the unit of the bound.
        """
        distance = scaled("distance", distance)
        if self.bound == math.inf:
            return 0.0
        return exposed_mass(self.epsilon, self.bound, distance)


def planar_laplace_delta(epsilon: float, max_error: float, distance: float = 1.0) -> float:
    """Delta of points moved by at most `max_error`, for two points at a distance: at `epsilon distance`.

    Parameters
    ----------
    epsilon : float
        Budget per unit of length.
    max_error : float
        Bound on the length of the move; infinite gives 0.0.
    distance : float, optional
        Between the points that are to be confused.

    Returns
    -------
    float
        Never below the truth, and above it by less than 1e-9 of itself.

    Examples
    --------
    >>> f"{planar_laplace_delta(0.1, 50.0):.6g}"
    '0.00116256'
    """
    return PlanarLaplace(epsilon, bounded("max_error", max_error)).exposed(distance)


def planar_laplace_bound(epsilon: float, delta: float, distance: float = 1.0) -> float:
    """Smallest bound on the length of the move that costs no more than delta: the inverse of `planar_laplace_delta`.

    Parameters
    ----------
    epsilon, distance : float
        As in `planar_laplace_delta`.
    delta : float
        From 1e-300 to 0.5; noise with a bound is never purely private.

    Returns
    -------
    float
        `planar_laplace_delta` of it is at most `delta`; it exceeds the smallest such bound by about 1e-10 of itself.

    Examples
    --------
    >>> round(planar_laplace_bound(1.0, 1e-5), 5)
    13.38539
    """
    epsilon, distance = scaled("epsilon", epsilon), scaled("distance", distance)
    delta = require_bound_delta(delta, least=SMALLEST_DELTA)
    half = distance / 2
    bound = smallest_number(lambda bound: exposed_mass(epsilon, bound, distance) <= delta, half, 2 * half, close=CLOSE)
    if bound > LARGEST_LENGTH:
        msg = f"distance: no bound up to {LARGEST_LENGTH:g} costs so little, got {distance!r}; choose another unit."
        raise InputError(msg)
    return bound
