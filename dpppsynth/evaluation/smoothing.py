"""Kernel estimates of intensity in windows and on networks. Not private: they are functions of the points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpppsynth.core.arguments import instance, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, heat_kernels, network_mesh
from dpppsynth.linear_network.heat_kernels import spread
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.gaussian_kernel import gaussian_sum, mass
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import checked_coordinates, require_smoothing

CORRECTIONS = ("diggle", "uniform", "none")
# Segments of a network for each bandwidth of street, and in all (edges are never joined).
PER_BANDWIDTH, MOST_SEGMENTS = 4, 1000
# Squares of a quadrature for each bandwidth along an axis, and along the longer side at most.
SQUARES, MOST_SQUARES = 4, 200


@dataclass(frozen=True, eq=False, repr=False)
class KernelIntensity:
    """Sum of kernels around the points of a pattern, as an intensity; as confidential as the points.

    A function of coordinates (n, 2) in the domain; values (n,) are points per unit of area or length.
    """

    pattern: PointPattern
    bandwidth: float

    @property
    def domain(self) -> Any:
        """Domain of the pattern."""
        return self.pattern.domain

    @property
    def total(self) -> float:
        """Integral over the domain."""
        raise NotImplementedError

    def __call__(self, xy: npt.ArrayLike) -> Floats:
        """(n,) values at coordinates (n, 2)."""
        raise NotImplementedError

    @cached_property
    def mesh(self) -> Mesh:
        """Mesh of the domain, for pictures."""
        return regular_triangulation(self.domain, spacing=self.domain.extent / SQUARES)

    def at(self, _element: Ints, _weight: Floats, positions: Floats) -> Floats:
        """(n,) values at positions (n, 2), for pictures."""
        return self(self.domain.coordinates(positions))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, bandwidth {self.bandwidth:g})"


@dataclass(frozen=True, eq=False, repr=False)
class GaussianIntensity(KernelIntensity):
    """Gaussian kernels in a window."""

    correction: str

    @cached_property
    def total(self) -> float:
        """Integral over the window: the number of points under "diggle"; by quadrature under "uniform"."""
        if self.correction != "uniform":
            return float(self._weight @ self._inside)
        x0, y0, x1, y1 = self.domain.bounds
        longer = max(x1 - x0, y1 - y0)
        spacing = min(max(self.bandwidth, SQUARES * longer / MOST_SQUARES), longer) / SQUARES
        nodes, _, area = regular_triangulation(self.domain, spacing=spacing).pieces.quadrature()
        return float(self(nodes) @ area)

    def __call__(self, xy: npt.ArrayLike) -> Floats:
        at = checked_coordinates(xy)
        value = gaussian_sum(self.pattern.xy, self._weight, self.bandwidth, at)
        return value / mass(at, self.domain, self.bandwidth) if self.correction == "uniform" else value

    @cached_property
    def _inside(self) -> Floats:
        return mass(self.pattern.xy, self.domain, self.bandwidth)

    @cached_property
    def _weight(self) -> Floats:
        return 1 / self._inside if self.correction == "diggle" else np.ones(len(self.pattern))


@dataclass(frozen=True, eq=False, repr=False)
class HeatIntensity(KernelIntensity):
    """Heat that flows from the points along a network; linear between the middles of a mesh's segments."""

    @property
    def total(self) -> float:
        return float(len(self.pattern))

    def __call__(self, xy: npt.ArrayLike) -> Floats:
        positions = self.domain.positions(checked_coordinates(xy))
        return np.asarray(_tents(self.mesh, positions) @ self._density)

    @cached_property
    def mesh(self) -> NetworkMesh:
        """Mesh of the network, on whose segments the heat flows."""
        return _heat(self.domain, self.bandwidth)[0]

    @cached_property
    def _density(self) -> Floats:
        """(T,) values at the middles of the segments."""
        mesh, flow = _heat(self.domain, self.bandwidth)
        masses = _tents(mesh, self.pattern.positions).sum(axis=0)
        spread_out = spread(mesh, self.bandwidth, masses) if flow is None else masses @ flow
        value = spread_out / mesh.element_measure
        # The integral of the linear interpolant: a quarter of each segment goes to the star around either end.
        star, shared = _stars(mesh), np.zeros(len(mesh.vertices))
        np.add.at(shared, mesh.elements, mesh.element_measure[:, None] / 4)
        integral = (mesh.element_measure / 2 + shared @ star) @ value
        return np.asarray(value * (self.total / integral if integral > 0 else 1.0))


@lru_cache(maxsize=4)
def _heat(network: LinearNetwork, bandwidth: float) -> tuple[NetworkMesh, Floats | None]:
    """Mesh of a network, and where heat goes from its segments, unless they are too many; kept for the next pattern."""
    mesh = network_mesh(network, max(bandwidth / PER_BANDWIDTH, network.length / MOST_SEGMENTS))
    few = len(mesh.elements) <= heat_kernels.MOST_SEGMENTS
    return mesh, heat_kernels.diffusion_matrix(mesh, bandwidth) if few else None


def _stars(mesh: NetworkMesh) -> sp.csr_array:
    """(V, T) shares of the segments around each vertex, as heat flows: short ones have more."""
    short = np.repeat(1 / mesh.element_measure, 2)
    around = sp.csr_array(
        (short, (mesh.elements.ravel(), np.repeat(np.arange(len(mesh.elements)), 2))),
        shape=(len(mesh.vertices), len(mesh.elements)),
    )
    whole = around.sum(axis=1)
    return sp.csr_array(sp.diags_array(1 / np.where(whole > 0, whole, 1)) @ around)


def _tents(mesh: NetworkMesh, positions: Floats) -> sp.csr_array:
    """(n, T) shares of the segments at positions (n, 2): the own one's at its middle, its star's at a vertex."""
    element, rows = mesh.locate(positions), np.arange(len(positions))
    toward = np.subtract(*mesh.weights(element, positions).T)
    vertex = mesh.elements[element, np.where(toward > 0, 0, 1)]
    shape = (len(positions), len(mesh.elements))
    own = sp.csr_array((1 - np.abs(toward), (rows, element)), shape=shape)
    return sp.csr_array(own + sp.diags_array(np.abs(toward)) @ _stars(mesh)[vertex])


def kernel_intensity(pattern: PointPattern, bandwidth: float, correction: str | None = None) -> KernelIntensity:
    """Estimate the intensity of a pattern with a Gaussian kernel. NOT private: it is a function of the points.

    At a point of the pattern its own kernel counts as well.

    Parameters
    ----------
    pattern : PointPattern
    bandwidth : float
        Standard deviation of the kernel along each axis, in the domain's unit. On a network heat flow along the streets
        takes the place of the Gaussian, which it is on a long street, on segments no longer than a quarter of the
        bandwidth, or than a thousandth of the network where that is more. At most 1000 times the domain's `extent`:
        estimates are flat long before, and masses in the window would lose their digits.
    correction : {"diggle", "uniform", "none"}, optional
        On windows: each point's kernel is divided by its mass in the window (default, keeps the number of points); the
        sum is divided by the mass of a kernel at the location (unbiased where the intensity is constant); or neither.
        On networks nothing is lost and there is nothing to choose.

    Raises
    ------
    InputError
        When an argument breaks these rules; on networks also when the bandwidth is too wide for the shortest segment,
        see `diffusion_matrix`.

    References
    ----------
    Diggle (1985), A kernel method for smoothing point process data, Applied Statistics 34, 138-147; McSwiggan, Baddeley
    and Nair (2017), Kernel density estimation on a linear network, Scandinavian Journal of Statistics 44, 324-345.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> one = PointPattern([[0.0, 0.5]], Window.rectangle(0, 0, 1, 1))
    >>> f = kernel_intensity(one, 0.1)
    >>> f(one.xy).round(2)  # half of the kernel is outside: twice 1 / (2 pi 0.1^2)
    array([31.83])
    >>> f.total
    1.0
    """
    domain: Any = instance("pattern", pattern, PointPattern).domain
    require_smoothing(bandwidth, domain)
    if isinstance(domain, LinearNetwork):
        if correction is not None:
            msg = f"correction: heat does not leave a network, so that there is none; got {correction!r}, leave it out."
            raise InputError(msg)
        return HeatIntensity(pattern, float(bandwidth))
    correction = CORRECTIONS[0] if correction is None else correction
    one_of("correction", correction, CORRECTIONS, " in a window")
    return GaussianIntensity(pattern, float(bandwidth), correction)
