"""Simulators of point processes in windows and along streets: Poisson, Thomas, log-Gaussian Cox.

For studies, notebooks and tests: nothing here is private. Patterns may be empty.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.street_walks import StreetWalks
from dpppsynth.models.covariances import Covariance
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.spatial.domains import Domain, require_domain
from dpppsynth.spatial.intensity import LogLinear, PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern

# Standard deviations beyond a window from which parents still send points into it: 2e-9 of them come from farther away.
MARGIN = 6.0
# Points expected at most, and vertices of the meshes that fields are drawn on unless one is given.
MOST, VERTICES = 2e7, 2500


def poisson(
    domain: Domain,
    intensity: float | Callable[[Floats], Any],
    *,
    largest: float | None = None,
    rng: RngLike = None,
) -> PointPattern:
    """Draw a Poisson pattern.

    Parameters
    ----------
    domain : Window or LinearNetwork
    intensity : float or callable
        Points per unit of area or length, or a function of coordinates (n, 2) that gives (n,) of them.
    largest : float, optional
        Upper bound of a function; a value above it is refused.
    rng : None, int or numpy.random.Generator

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> poisson(Window.rectangle(0, 0, 10, 10), 0.5, rng=1)
    PointPattern(Window(rectangle [0, 10] x [0, 10], no CRS, unit))
    """
    require_domain(domain)
    rng = generator(rng)
    if not callable(intensity):
        return _pattern(_uniform(domain, positive("intensity", intensity), rng), domain)
    if largest is None:
        msg = "largest: a function needs its upper bound, for instance largest=0.01"
        raise InputError(msg)
    bound = positive("largest", largest)
    positions = _uniform(domain, bound, rng)
    value = np.asarray(intensity(domain.coordinates(positions)), dtype=np.float64)
    if value.shape != (len(positions),) or not ((value >= 0) & (value <= bound * (1 + 1e-9))).all():
        msg = "intensity: must give (n,) values between 0 and largest for coordinates (n, 2)"
        raise InputError(msg)
    return _pattern(positions[bound * rng.random(len(positions)) < value], domain)


def thomas(domain: Domain, parents: float, size: float, spread: float, *, rng: RngLike = None) -> PointPattern:
    """Draw a Thomas pattern: Poisson numbers of points about the places of a Poisson process, normally displaced.

    In a window `K(r) = pi r^2 + (1 - exp(-r^2 / (4 spread^2))) / parents`. Along streets points are displaced by
    Brownian motion, which dead ends send back, so that their intensity is `parents * size` everywhere.

    Parameters
    ----------
    domain : Window or LinearNetwork
    parents : float
        Parents per unit of area or length; those outside a window count as well.
    size : float
        Mean number of points of a parent.
    spread : float
        Standard deviation along an axis, or along a street without crossings, in the domain's unit.
    rng : None, int or numpy.random.Generator
    """
    spread = positive("spread", spread)
    places, rng = _offspring(domain, parents, size, MARGIN * spread, rng)
    if isinstance(domain, LinearNetwork):
        return _pattern(StreetWalks(domain).displaced(places, spread, rng), domain)
    xy = places + spread * rng.standard_normal(places.shape)
    return _pattern(xy[domain.contains(xy)], domain)


def lgcp(
    domain: Domain, intensity: float, covariance: Covariance, *, mesh: Mesh | None = None, rng: RngLike = None
) -> PointPattern:
    """Draw a log-Gaussian Cox pattern.

    The logarithm of the intensity is a Gaussian field at the vertices of a mesh and linear between them; points are
    exact given that.

    Parameters
    ----------
    domain : Window or LinearNetwork
    intensity : float
        Expected points per unit of area or length, at the vertices; between them up to a few percent fewer, where the
        mesh is coarse for the field.
    covariance : Covariance
        Of the logarithm, for instance `models.PoweredExponential(1.0, 100.0)`; on a network in the resistance metric.
    mesh : Mesh, optional
        Unless given: triangles or segments of a quarter of the length scale, with at most some 2500 vertices.
    rng : None, int or numpy.random.Generator

    Raises
    ------
    InputError
        When the covariance needs a finer mesh than that; give one.
    """
    require_domain(domain)
    instance("covariance", covariance, Covariance)
    level = np.log(positive("intensity", intensity))
    rng = generator(rng)
    mesh = _mesh(domain, covariance.length_scale / 4) if mesh is None else mesh
    matrix = covariance.matrix(mesh)
    value, vector = np.linalg.eigh(matrix)
    field = vector @ (np.sqrt(np.clip(value, 0.0, None)) * rng.standard_normal(len(value)))
    return poisson_pattern(LogLinear(mesh, level - np.diag(matrix) / 2 + field), rng)


def _mesh(domain: Any, spacing: float) -> Mesh:
    streets = isinstance(domain, LinearNetwork)
    if domain.size / (spacing if streets else spacing**2) > VERTICES:
        msg = (
            "mesh: the length scale is short beside the domain; give a mesh, such as models.regular_triangulation(...)"
        )
        raise InputError(msg)
    return network_mesh(domain, spacing) if streets else regular_triangulation(domain, spacing=spacing)


def _offspring(
    domain: Domain, parents: float, size: float, margin: float, rng: RngLike
) -> tuple[Floats, np.random.Generator]:
    """The parent's place (n, 2) of each point: coordinates, some outside a window, or positions on a network."""
    require_domain(domain)
    rng = generator(rng)
    density, size = positive("parents", parents), positive("size", size)
    if isinstance(domain, LinearNetwork):
        _require_few(density * size * domain.size)
        places = _uniform(domain, density, rng)
    else:
        west, south, east, north = domain.bounds
        low, high = np.array([west, south]) - margin, np.array([east, north]) + margin
        area = float(np.prod(high - low))
        _require_few(density * size * area)
        places = low + (high - low) * rng.random((rng.poisson(density * area), 2))
    return np.repeat(places, rng.poisson(size, len(places)), axis=0), rng


def _require_few(expected: float) -> None:
    if expected > MOST:
        msg = f"intensity: more than {MOST:g} points are expected; take a smaller one"
        raise InputError(msg)


def _uniform(domain: Domain, intensity: float, rng: np.random.Generator) -> Floats:
    """Positions of a homogeneous Poisson process."""
    _require_few(intensity * domain.size)
    return poisson_pattern(homogeneous(domain, intensity), rng).positions


def _pattern(positions: Floats, domain: Domain) -> PointPattern:
    return PointPattern.at(positions, domain, synthetic=True)


def homogeneous(domain: Domain, value: float) -> PiecewiseConstant:
    """The constant intensity of `value` points per unit of area or length."""
    whole: Any = domain
    streets = isinstance(domain, LinearNetwork)
    mesh = network_mesh(whole, whole.diameter) if streets else regular_triangulation(whole, shape=(2, 2))
    return PiecewiseConstant(mesh, np.full(len(mesh.elements), value))
