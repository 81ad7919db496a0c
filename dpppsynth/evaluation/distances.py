"""Total variation distances between intensities, and between the quadrat shares of two patterns.

Both lie between 0 (the same) and 1 (nothing in common), and read as the share of points that are somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import Floats, intensity_values

Density = Callable[[Floats], npt.ArrayLike]

# Cells along the side of a square as large as the window, and segments on a network: what the errors below rest on.
SIDE, SEGMENTS = 150, 16384
# Squares along a domain beyond which coordinates do not tell neighbours apart.
MOST_SQUARES = 2**53
# Squares that are counted without looking which of them hold points.
FEW_SQUARES = 2**22


def total_variation(one: Density, other: Density, domain: Domain) -> float:
    """Total variation distance between two intensities, each divided by its integral over the domain.

    `(1/2) integral of |one / integral(one) - other / integral(other)|`: the share of points that would have to move.

    Parameters
    ----------
    one, other : callable
        Non-negative functions of coordinates (n, 2), such as an `Intensity` or a `KernelIntensity`.
    domain : Window or LinearNetwork
        Where to integrate.

    Returns
    -------
    float
        From 0 to 1. Midpoint rule on cells whose side is 1/150 of a window's extent, or at least 16384 segments of a
        network. On a square the error is below 1e-4 for Gaussian bumps whose standard deviation is a fiftieth of its
        side or more, and some 1e-3 for intensities that jump: at most the share of mass in cells with a jump.

    Raises
    ------
    InputError
        An intensity is negative, infinite or zero everywhere, does not give one value per point or lives on another
        domain.

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 1, 1)
    >>> round(total_variation(lambda xy: xy[:, 0], lambda xy: np.ones(len(xy)), window), 4)
    0.25
    """
    xy, weight = quadrature(domain)
    masses = [values(each, xy, name, domain) * weight for each, name in ((one, "one"), (other, "other"))]
    for mass, name in zip(masses, ("one", "other"), strict=True):
        require_mass(float(mass.sum()), name)
    return mass_distance(*masses)


def misplaced_share(original: PointPattern, synthetic: PointPattern, side: float) -> float:
    """Total variation distance between the shares of points in squares laid over the domain's bounding box.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same domain. Where one of them is empty and the other is not the distance is 1.
    side : float
        Side of the squares, in the domain's unit: misplacements within a square do not count. The squares start at the
        lower left corner; those at the upper borders may stick out.

    Returns
    -------
    float
        From 0 to 1. Two patterns from one intensity do not score 0: their counts differ by chance.

    Raises
    ------
    InputError
        The domains differ or the side is not a positive length.

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 100, 100)
    >>> ours, theirs = PointPattern([[10, 10], [60, 60]], window), PointPattern([[20, 20], [60, 10]], window)
    >>> misplaced_share(ours, theirs, 50)
    0.5
    """
    domain = common_domain(original, synthetic, ("original", "synthetic"))
    remedy = f"for instance {domain.extent / 10:.3g}"
    side = float(positive("side", side, rule=f"be a positive length ({domain.unit})", remedy=remedy))
    if side < domain.extent / MOST_SQUARES:
        msg = f"side: squares of {side:g} {domain.unit} are smaller than rounding in this domain; {remedy}."
        raise InputError(msg)
    if not len(original) or not len(synthetic):
        return float(len(original) != len(synthetic))
    place = _numbered(np.concatenate([_squares(pattern.xy, domain, side) for pattern in (original, synthetic)]))
    counts = [np.bincount(part, minlength=place.max() + 1) for part in np.split(place, [len(original)])]
    return mass_distance(*(count.astype(np.float64) for count in counts))


def _squares(xy: Floats, domain: Domain, side: float) -> Ints:
    """(n, 2) column and row of the square that holds each point; the upper borders belong to the last ones."""
    x0, y0, x1, y1 = domain.bounds
    last = np.maximum(np.ceil(np.array([x1 - x0, y1 - y0]) / side * (1 - 1e-12)) - 1, 0)
    return np.clip(np.floor((xy - (x0, y0)) / side), 0, last).astype(np.int64)


def _numbered(squares: Ints) -> Ints:
    """(n,) small whole numbers of columns and rows (n, 2): one for each square."""
    column, row = squares.T
    many = (int(column.max()) + 1) * (int(row.max()) + 1) > FEW_SQUARES
    if many:
        column, row = (np.unique(each, return_inverse=True)[1] for each in (column, row))
    number = column * (row.max() + 1) + row
    return np.unique(number, return_inverse=True)[1] if many else number


def quadrature(domain: Domain) -> tuple[Floats, Floats]:
    """Coordinates (m, 2) and weights (m,) of a fine midpoint rule; the weights add up to the domain's size."""
    if not isinstance(domain, Window | LinearNetwork):
        msg = f"domain: must be a Window or a LinearNetwork; got {type(domain).__name__}"
        raise InputError(msg)
    return _midpoints(domain)


def quadrature_cell(domain: Domain) -> float:
    """Side of a cell of the quadrature, or longest of its segments, in the domain's unit."""
    return domain.size / SEGMENTS if isinstance(domain, LinearNetwork) else domain.extent / SIDE


@lru_cache(maxsize=4)
def _midpoints(domain: Window | LinearNetwork) -> tuple[Floats, Floats]:
    if isinstance(domain, LinearNetwork):
        rule = network_mesh(domain, quadrature_cell(domain)).midpoints()
    else:
        rule = regular_squares(domain, spacing=quadrature_cell(domain)).midpoints()
    # Shared by all calls.
    for array in rule:
        array.flags.writeable = False
    return rule


def integral(intensity: Any, domain: Domain, name: str) -> float:
    """Integral over the domain: the intensity's own `total` where it has one, else by quadrature."""
    total = getattr(intensity, "total", None)
    if total is None:
        xy, weight = quadrature(domain)
        total = values(intensity, xy, name, domain) @ weight
    return require_mass(float(total), name)


def values(intensity: Any, xy: Floats, name: str, domain: Domain) -> Floats:
    """(n,) values of an intensity at coordinates (n, 2), checked.

    Raises
    ------
    InputError
        It lives on another domain, is negative or infinite, or does not give one value per point.
    """
    if not callable(intensity):
        msg = f"{name}: must be a function of coordinates (n, 2), such as an Intensity; got {type(intensity).__name__}."
        raise InputError(msg)
    found = intensity_values(intensity, xy, name, domain)
    if not (np.isfinite(found) & (found >= 0)).all():
        msg = f"{name}: an intensity must be finite and non-negative everywhere; somewhere it is not."
        raise InputError(msg)
    return found


def require_mass(total: float, name: str) -> float:
    """Refuse an intensity without mass."""
    if not 0 < total < np.inf:
        msg = f"{name}: its integral over the domain must be positive and finite; an intensity of 0 has no shape."
        raise InputError(msg)
    return total


def common_domain(one: Any, other: Any, names: tuple[str, str]) -> Domain:
    """Domain that two patterns share; InputError where they are not patterns or do not share one."""
    for pattern, name in zip((one, other), names, strict=True):
        if not isinstance(pattern, PointPattern):
            msg = f"{name}: needs a PointPattern, got {type(pattern).__name__}."
            raise InputError(msg)
    if one.domain is not other.domain and one.domain.fingerprint() != other.domain.fingerprint():
        msg = f"{names[1]}: lies in another domain than {names[0]}; patterns are compared in one domain."
        raise InputError(msg)
    domain: Domain = one.domain
    return domain
