"""Optimal radius of a disk area mechanism, by a bound on the mutual information of value and report.

The mutual information of a value and its report is at most the report's entropy under a uniform law less its entropy
given the value. That bound depends on epsilon and the shape of the domain alone, so its maximiser is public.
"""

import math
from typing import NamedTuple

import numpy as np

from dpppsynth.core.arguments import finite, positive, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.randomizers.footprint import footprint_parts

# Below, differences of exponentials lose digits, and their series are exact.
SMALL = 1e-4
# Tolerance for products that are whole numbers but for rounding.
GUARD = 1e-9
LARGEST_EPSILON = 700.0
# A radius of that many sides, and a side of that length, is beyond any use and short of overflow.
MOST_SIDES = 1e6
LONGEST = 1e300


class InformationBound(NamedTuple):
    """Upper bound of the information in a report, in bits, and its derivative by the radius."""

    bits: float
    slope: float


def optimal_radius(epsilon: float, side: float = 1.0) -> float:
    """Radius of the disk area mechanism on a square that maximises the bound of mutual information.

    Parameters
    ----------
    epsilon : float
    side : float
        Of the square; the radius has the same unit.

    Raises
    ------
    InputError
        An argument is not a positive finite number.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section V.

    Examples
    --------
    >>> round(optimal_radius(3.5), 6)
    0.233247
    """
    epsilon, side = float(positive("epsilon", epsilon)), float(positive("side", side, most=LONGEST))
    # Beyond it the radius is zero in doubles.
    epsilon = min(epsilon, 1000.0)
    first, second = _moments(epsilon)
    shrunk = math.exp(-epsilon)
    root = math.sqrt((2 * second * shrunk) ** 2 + math.pi * shrunk * first * second)
    return (2 * second * shrunk + root) / (math.pi * first) * side


def _moments(epsilon: float) -> tuple[float, float]:
    """The paper's m1 = e^eps - 1 - eps and m2 = 1 - e^eps + eps e^eps over e^eps, up to a common factor.

    Relative to e^eps nothing overflows, and the radius depends on their ratio only.
    """
    if epsilon < SMALL:
        return 1 / 2 - epsilon / 3 + epsilon**2 / 8, 1 / 2 - epsilon / 6 + epsilon**2 / 24
    return -math.expm1(-epsilon) - epsilon * math.exp(-epsilon), epsilon + math.expm1(-epsilon)


def information_bound(radius: float, epsilon: float, side: float = 1.0) -> InformationBound:
    """Bound of the mutual information of a value in a square and its disk area report, and its slope.

    Parameters
    ----------
    radius : float
        At least 0, in the unit of `side`, at most a million times it.
    epsilon : float
        At most 700.
    side : float

    Examples
    --------
    >>> round(information_bound(0.2, 3.5).bits, 6)
    1.894499
    """
    epsilon = float(positive("epsilon", epsilon, most=LARGEST_EPSILON))
    side = float(positive("side", side, most=LONGEST))
    b = float(finite("radius", radius, least=0.0)) / side
    if b > MOST_SIDES:
        msg = f"radius: must be at most {MOST_SIDES:g} sides, got {shown(radius)}."
        raise InputError(msg)
    shrunk, (first, second) = math.exp(-epsilon), _moments(epsilon)
    if epsilon < SMALL:
        first, second = first * epsilon**2, second * epsilon**2
    rim = 4 * b + 1
    disk = math.pi * b**2
    weight = disk + rim * shrunk
    bits = (math.log((disk + rim) / weight) - epsilon + disk * epsilon / weight) / math.log(2)
    quadratic = -math.pi * first * b**2 + shrunk * (4 * second * b + second)
    slope = 2 * math.pi * b * (2 * b + 1) * quadratic / ((disk + rim) * weight**2 * math.log(2))
    return InformationBound(bits, slope / side)


def grid_radius(epsilon: float, cells: int) -> int:
    """Radius in whole cells on a square grid: the optimal radius rounded down.

    Examples
    --------
    >>> [grid_radius(3.5, cells) for cells in (4, 5, 10, 15, 20)]
    [0, 1, 2, 3, 4]
    """
    cells = whole("cells", cells, 1, most=grid_limits.AREA_SIDE)
    return math.floor(optimal_radius(epsilon) * cells + GUARD)


def discrete_radius(epsilon: float, cells: int) -> int:
    """Radius in whole cells that maximises the information bound of the mechanism on the grid itself.

    Whole cells count by their centres, so that a disk on the grid is larger than its radius says; the continuous rule
    does not know that.

    Examples
    --------
    >>> [discrete_radius(3.5, cells) for cells in (5, 15, 20)]
    [0, 3, 5]
    """
    epsilon = float(positive("epsilon", epsilon, most=LARGEST_EPSILON))
    cells = whole("cells", cells, 1, most=grid_limits.AREA_SIDE)
    # Below, the maximiser stays where it is while the bound drowns in rounding.
    bounds = [_grid_bound(radius, max(epsilon, SMALL), cells) for radius in range(2 * cells + 1)]
    return int(np.argmax(bounds))


def _grid_bound(radius: int, epsilon: float, cells: int) -> float:
    """Logarithm of the number of reports less the entropy of one, in nats; the same for every value."""
    parts, shrunk = footprint_parts(radius), math.exp(-epsilon)
    low = cells**2 + 4 * radius * cells - 4 * radius - 1
    shares: Floats = np.append(1.0, parts.mixed)
    times = np.append(parts.pure, parts.times)
    # Weights relative to e^epsilon; those of low cells have logarithm -epsilon and no say in the entropy's sum.
    weights = shrunk + (1 - shrunk) * shares
    total = float(weights @ times) + low * shrunk
    gained = float((weights * (np.log(weights) + epsilon)) @ times) / total
    return math.log(float(times.sum() + low)) - epsilon - math.log(total) + gained
