"""Mass of truncated planar Laplace noise about one point that lies outside the disk about another.

In lengths of `1 / epsilon`, a circle of radius r about the point lies partly outside, for r from the gap
`|bound - distance|` to the bound; the mass is the integral over r of the radial density times that part of the circle.
"""

import sys

import numpy as np
from scipy.special import gammainc

from dpppsynth.spatial.mesh import Floats

# Relative safety margin of a stated mass: far more than the rounding of the quadrature.
ROUND_UP = 1 + 1e-10
# This far above the gap the exponential has made the rest of the integral nothing.
FAR = 100.0


def _double_exponential(half: int = 220, last: float = 3.3) -> tuple[Floats, Floats]:
    """Nodes in (0, 1) and weights of the double exponential rule, to which square roots at an end do no harm."""
    tau = np.linspace(-last, last, 2 * half + 1)
    nodes = 1 / (1 + np.exp(-np.pi * np.sinh(tau)))
    weights = np.pi * np.cosh(tau) * nodes / (1 + np.exp(np.pi * np.sinh(tau))) * (last / half)
    return nodes, weights


NODES, WEIGHTS = _double_exponential()


def exposed_mass(epsilon: float, bound: float, distance: float) -> float:
    """Probability that noise about a point leaves the disk about another, rounded up by less than 1e-9 of itself.

    Parameters
    ----------
    epsilon : float
        Budget per unit of length.
    bound : float
        Radius of both disks, finite.
    distance : float
        Between their centres.

    Returns
    -------
    float
        At least 2.2e-308, at most 1.

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
