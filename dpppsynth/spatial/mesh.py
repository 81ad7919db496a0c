"""Finite-element meshes: vertices, elements, basis functions and their integrals, and simplices that tile the elements.

Everything downstream (tents, fields, bounds, samplers) is written against this class alone. `PlanarMesh` has triangles
or squares, `dpppsynth.linear_network.NetworkMesh` segments of edges.

An element may stick out of the domain. The basis is defined on the whole element, integrals run over the part inside:
`measure[j] = integral over the domain of phi_j`, from simplices that tile each element's part (`Pieces`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy
import shapely

from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import in_threads
from dpppsynth.spatial.domains import Domain

__all__ = ["NODES", "Floats", "Ints", "Mesh", "Pieces", "triangulate"]

# Nodes per element by kind.
NODES = {"segment": 2, "triangle": 3, "square": 4}


class Weighting(Protocol):
    """A public density by which integrals are weighted, such as an `Offset`."""

    def restrict(self, mesh: Mesh) -> Pieces:
        """Pieces of a mesh, cut and weighted by the density."""


class Mesh:
    """A conforming mesh of linear (bilinear on squares) elements covering a domain.

    Attributes
    ----------
    vertices : (V, 2) array
        Vertex coordinates, in the domain's unit.
    elements : (T, k) array of int
        Vertex numbers of each element.
    kind : {"segment", "triangle", "square"}
    domain : Window or LinearNetwork
        The public domain the mesh covers.
    pieces : Pieces
        Simplices tiling the elements' parts inside the domain.
    recipe : dict
        Public numbers from which `dpppsynth.models.mesh_from_recipe` makes this mesh again.
    """

    vertices: Floats
    elements: Ints
    kind: str
    domain: Domain
    pieces: Pieces
    recipe: dict[str, Any]
    # Largest power of a powered exponential that is a covariance function of `metric`.
    smoothest_power: ClassVar[float]
    # What tells apart the values at one place, such as types and times: (V,) numbers and what they are, by name.
    labels: Mapping[str, tuple[npt.NDArray[Any], str]] = MappingProxyType({})
    _of_arrays: ClassVar[type[Mesh]]

    def __init_subclass__(cls, *, of_arrays: bool = False, **options: Any) -> None:
        """Register the one class of meshes, `PlanarMesh`, that `from_arrays` builds."""
        super().__init_subclass__(**options)
        if of_arrays:
            Mesh._of_arrays = cls

    @classmethod
    def from_arrays(cls, vertices: npt.ArrayLike, elements: npt.ArrayLike, domain: Any) -> Mesh:
        """Mesh of a window from your own triangles or parallelograms; see `PlanarMesh.from_arrays`."""
        return cls._of_arrays.from_arrays(vertices, elements, domain)

    def locate(self, positions: Floats) -> Ints:
        """(n,) element holding each position; one on a border belongs to one element by a fixed rule."""
        raise NotImplementedError

    def weights(self, element: Ints, positions: Floats) -> Floats:
        """(n, k) values at positions of the basis functions of the given elements, in the elements' vertex order."""
        raise NotImplementedError

    @property
    def gradients(self) -> Floats:
        """(T, c, k, dim) basis gradients at c points per element between which they are linear."""
        raise NotImplementedError

    @property
    def element_parts(self) -> Any:
        """(T,) shapely geometries of the elements' parts inside the domain."""
        raise NotImplementedError

    @property
    def positions(self) -> Floats:
        """(V, 2) positions of the vertices in the domain."""
        raise NotImplementedError

    @property
    def metric(self) -> Floats:
        """(V, V) distances between the vertices that covariances are functions of."""
        raise NotImplementedError

    @property
    def coordinate_size(self) -> float:
        """Largest number that enters a basis value, to which the rounding error is relative."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.elements)} {self.kind}s)"

    def basis(self, positions: Floats) -> scipy.sparse.csr_array:
        """Sparse (n, V) matrix of basis values; every row is non-negative and sums to one."""
        return self.gather(*self.values(positions))

    def values(self, positions: Floats) -> tuple[Ints, Floats]:
        """Elements (n,) and their basis values (n, k) at positions, non-negative and with sum one.

        A row depends on its position alone, bit by bit (docs/theory.md, section 4).
        """
        positions = np.asarray(positions, dtype=float).reshape(-1, 2)
        element = self.locate(positions)
        weight = np.clip(self.weights(element, positions), 0, None)
        return element, weight / reduce(np.add, weight.T)[:, None]

    def gather(self, element: Ints, weight: Floats) -> scipy.sparse.csr_array:
        """Sparse (n, V) matrix from elements (n,) and basis values (n, k)."""
        n, k = weight.shape
        rows = np.arange(0, n * k + 1, k)
        return scipy.sparse.csr_array(
            (weight.ravel(), self.elements[element].ravel(), rows), shape=(n, len(self.vertices))
        )

    def weighted_pieces(self, offset: Weighting | None) -> Pieces:
        """Pieces over which an intensity integrates: the mesh's own, or cut and weighted by a public offset."""
        return self.pieces if offset is None else offset.restrict(self)

    def integrate(self, pieces: Pieces) -> Floats:
        """(V,) integrals of the basis functions over the pieces."""
        positions, element, weight = pieces.quadrature()
        mass = np.clip(self.weights(element, positions), 0, None) * weight[:, None]
        total = np.bincount(self.elements[element].ravel(), mass.ravel(), minlength=len(self.vertices))
        return total.astype(np.float64)

    def shares(self, tents: Mesh) -> scipy.sparse.csr_array:
        """Sparse (J, V) share of the points near each vertex that each of the J tents takes; columns sum to one.

        The tents' values at the vertices: exact for the mass of a linear function where the meshes are nested.
        """
        return tents.basis(self.positions).T.tocsr()

    def cell_shares(self, cells: Mesh, pieces: Pieces) -> scipy.sparse.csr_array:
        """Sparse (T, J) share of the points near each vertex that lies in each of T cells; columns sum to one.

        Exact where every cell consists of whole elements: of the integral of phi_j over this mesh's pieces, that over
        the cell. A vertex without any is in no cell.
        """
        positions, element, weight = pieces.quadrature()
        mass = np.clip(self.weights(element, positions), 0, None) * weight[:, None]
        cell = np.repeat(cells.locate(pieces.corners.mean(axis=1)), len(positions) // len(pieces.corners))
        at = np.repeat(cell, mass.shape[1]), self.elements[element].ravel()
        total = scipy.sparse.coo_array((mass.ravel(), at), shape=(len(cells.elements), len(self.vertices))).tocsr()
        whole = total.sum(axis=0)
        return (
            total @ scipy.sparse.diags_array(np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0))
        ).tocsr()

    @cached_property
    def measure(self) -> Floats:
        """(V,) `a_j`, the integral of phi_j over the domain; the sum is the domain's size."""
        return self.integrate(self.pieces)

    @cached_property
    def element_measure(self) -> Floats:
        """(T,) area or length of each element's part inside the domain."""
        return np.bincount(self.pieces.element, self.pieces.weight, minlength=len(self.elements)).astype(np.float64)

    def midpoints(self) -> tuple[Floats, Floats]:
        """Coordinates (Q, 2) and weights (Q,) of the midpoint rule: the mesh's pieces, each with its centre."""
        return self.domain.coordinates(self.pieces.corners.mean(axis=1)), self.pieces.weight

    @cached_property
    def tent_slope(self) -> float:
        """Largest L1 change of the tent masses per unit of length moved: `sup |sum_j s_j grad phi_j|` over signs s.

        `2 / smallest altitude` on triangles, `2 sqrt(2) / side` on squares (docs/theory.md, section 3), `2 / shortest`
        on segments.
        """
        k = self.elements.shape[1]
        signs = np.array([(1, *rest) for rest in product((-1, 1), repeat=k - 1)], dtype=float)
        steepest = np.einsum("sk,tcki->tcsi", signs, self.gradients)
        return float(np.sqrt(np.max((steepest**2).sum(axis=-1))))

    def dual_cells(self) -> Any:
        """(V,) shapely geometries that tile the domain: the part of it that belongs to each vertex."""
        raise NotImplementedError

    @cached_property
    def mean_places_within(self) -> Floats:
        """(T, k, 2) mean places of the basis functions in each element's part of the domain."""
        place = np.arange(self.elements.size).reshape(self.elements.shape)
        corner = self.vertices[self.elements].reshape(-1, 2)
        return self.means(place, place.size, corner).reshape(*place.shape, 2)

    def means(self, number: Ints, size: int, otherwise: Floats) -> Floats:
        """(size, 2) mean places of basis functions, added up by the number (T, k) of each in each element.

        That of phi_j is the integral of `x phi_j(x)`, by that of phi_j.
        """
        positions, element, weight = self.pieces.quadrature()
        mass = np.clip(self.weights(element, positions), 0, None) * weight[:, None]
        owner, place = number[element].ravel(), self.domain.coordinates(positions)
        moments = np.column_stack([np.ones(len(place)), place])
        total, *moment = (np.bincount(owner, (mass * each[:, None]).ravel(), minlength=size) for each in moments.T)
        some = total[:, None] > 0
        return np.divide(np.column_stack(moment), total[:, None], out=otherwise.copy(), where=some)

    def cut(self, polygons: Any, tree: Any) -> tuple[Pieces, Ints]:
        """Pieces of the domain cut by polygons (P,), and the polygon each lies in; `tree` holds the polygons."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Pieces:
    """Triangles that tile the elements' parts inside a window, or segments that tile a network.

    Between corners (Q, 3, 2) or (Q, 2, 2) positions are linear. A weight (Q,) is an area or length, times any public
    offset: the integral of f is the sum of weight * (mean of f over the piece).
    """

    corners: Floats
    element: Ints
    weight: Floats

    @property
    def sides(self) -> int:
        """Corners of each piece: 3 on windows, 2 on networks."""
        return self.corners.shape[1]

    def quadrature(self) -> tuple[Floats, Ints, Floats]:
        """Rule that is exact for quadratics, one node per corner: positions (m, 2), their elements (m,), weights (m,).

        Midpoints of a triangle's edges; the two Gauss points of a segment.
        """
        share = 1 / 2 if self.sides == 3 else (3 + np.sqrt(3)) / 6
        points = share * self.corners + (1 - share) * np.roll(self.corners, -1, axis=1)
        weight = np.repeat(self.weight / self.sides, self.sides)
        return points.reshape(-1, 2), np.repeat(self.element, self.sides), weight


def triangulate(geometry: Any, element: Ints) -> Pieces:
    """Cut polygons (G,), parts of elements (G,), into triangles without new vertices (constrained Delaunay)."""
    triangles, owner = shapely.get_parts(shapely.constrained_delaunay_triangles(geometry), return_index=True)
    corners = shapely.get_coordinates(triangles).reshape(-1, 4, 2)[:, :3]
    area = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 2
    solid = area > 0
    return Pieces(corners[solid], element[owner[solid]], area[solid])


def chunks(n: int, draws: int) -> list[slice]:
    """Slices of range(n) that keep (points x draws) arrays below 4 MB, so that they stay in a cache."""
    step = max(1, 500_000 // max(1, draws))
    return [slice(i, i + step) for i in range(0, n, step)]


def integrate_exp(mesh: Mesh, pieces: Pieces, fields: Floats) -> Floats:
    """(K,) integrals over the pieces of exp of the fields (K, V): exact but for a Gauss rule on squares."""
    if mesh.kind == "square":
        return gauss_exp(mesh, pieces, fields, order=8)
    q, sides = len(pieces.element), pieces.sides
    owner = np.repeat(pieces.element, sides)
    at_corner = mesh.gather(owner, mesh.weights(owner, pieces.corners.reshape(-1, 2)))

    def integral(part: slice) -> Floats:
        corner = (at_corner @ fields[part].T).reshape(q, sides, len(fields[part]))
        return np.asarray(
            pieces.weight @ (mean_exp_segment(corner) if sides == 2 else 2 * exp_divided_difference(corner))
        )

    return np.concatenate([np.empty(0), *in_threads(integral, chunks(len(fields), sides * q))])


def mean_exp_segment(f: Floats) -> Floats:
    """Mean of exp over a segment with end values f along axis 1."""
    return _exp_slope(f[:, 0], f[:, 1])


def exp_divided_difference(f: Floats) -> Floats:
    """Divided difference `exp[f0, f1, f2]` along axis 1: half the mean of exp over a triangle with corner values f.

    Recursion where the values differ, `sum_k h_k(f - mean) / (k + 2)!` (complete symmetric polynomials) where they are
    close: either way to about 1e-14 relative.
    """
    centre = f.mean(axis=1)
    a, b, c = np.moveaxis(f - centre[:, None], 1, 0)
    wide = np.maximum(np.maximum(a, b), c) - np.minimum(np.minimum(a, b), c) > 1
    # h_k = e_1 h_(k-1) - e_2 h_(k-2) + e_3 h_(k-3) with the elementary polynomials e, of which the first vanishes.
    e2, e3 = np.where(wide, 0.0, a * b + c * (a + b)), np.where(wide, 0.0, a * b * c)
    h = [np.ones_like(a), np.zeros_like(a), -e2]
    factorial = 24.0
    series = 0.5 - e2 / factorial
    for k in range(3, 16):
        factorial *= k + 2
        h = [*h[1:], e3 * h[0] - e2 * h[1]]
        series += h[2] / factorial
    out = np.exp(centre) * series
    low, mid, high = np.moveaxis(np.sort(np.moveaxis(f, 1, -1)[wide], axis=-1), -1, 0)
    out[wide] = (_exp_slope(mid, high) - _exp_slope(low, mid)) / (high - low)
    return np.asarray(out)


def _exp_slope(a: Floats, b: Floats) -> Floats:
    """`(e^b - e^a) / (b - a)`, continuous at a = b."""
    gap = b - a
    safe = np.where(gap == 0, 1.0, gap)
    return np.exp(b) * np.where(gap == 0, 1.0, -np.expm1(-safe) / safe)


def gauss_exp(mesh: Mesh, pieces: Pieces, fields: Floats, order: int) -> Floats:
    """(K,) integrals over the pieces of exp of the fields (K, V), by a Gauss rule."""
    basis, weight = gauss_rule(mesh, pieces, order)
    out = np.empty(len(fields))
    for part in chunks(len(fields), len(weight)):
        out[part] = weight @ np.exp(basis @ fields[part].T)
    return out


def gauss_rule(mesh: Mesh, pieces: Pieces, order: int) -> tuple[scipy.sparse.csr_array, Floats]:
    """Basis functions (P, V) at the points of a Gauss-Legendre rule over the pieces, and the points' weights (P,).

    The rule is that of each segment, or a product rule collapsed onto each triangle.
    """
    points, element, weight = _gauss_points(pieces, order)
    return mesh.gather(element, mesh.weights(element, points)), weight


def gathered_rule(mesh: Mesh, pieces: Pieces, order: int) -> tuple[scipy.sparse.csr_array, Floats]:
    """A rule as `gauss_rule` gives, whose points are replaced by four in each element of the mesh.

    They keep mass, centre and second moments of those they stand for, so that what an element is cut into, such as the
    cells of a raster, costs nothing later.
    """
    points, of, weight = _gauss_points(pieces, order)
    points, of, weight = points[weight > 0], of[weight > 0], weight[weight > 0]
    _, first, at = np.unique(of, return_index=True, return_inverse=True)
    mass = np.bincount(at, weight)
    # Within elements, not on maps: one that lies over a network holds parts of several of its edges.
    place = within_element(mesh, mesh.weights(of, points))
    centre = np.column_stack([np.bincount(at, weight * each) for each in place.T]) / mass[:, None]
    x, y = (place - centre[at]).T
    xx, xy, yy = (np.bincount(at, weight * each) / mass for each in (x * x, x * y, y * y))
    a = np.sqrt(xx)
    b = np.divide(xy, a, out=np.zeros_like(a), where=a > 0)
    c = np.sqrt(np.maximum(yy - b**2, 0))
    signs = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    aside = np.stack([np.outer(a, signs[:, 0]), np.outer(b, signs[:, 0]) + np.outer(c, signs[:, 1])], axis=-1)
    four = (centre[:, None] + aside).reshape(-1, 2)
    element = np.repeat(of[first], len(signs))
    return mesh.gather(element, basis_within(mesh, four)), np.repeat(mass / len(signs), len(signs))


def within_element(mesh: Mesh, weight: Floats) -> Floats:
    """(n, 2) coordinates within an element, from values of its basis functions; the second is 0 on a segment."""
    if mesh.kind == "square":
        return np.column_stack([weight[:, 1] + weight[:, 2], weight[:, 2] + weight[:, 3]])
    return np.column_stack([weight[:, 1], weight[:, 2] if weight.shape[1] > 2 else np.zeros(len(weight))])


def basis_within(mesh: Mesh, place: Floats) -> Floats:
    """(n, k) values of an element's basis functions: the inverse of `within_element`."""
    s, t = place.T
    if mesh.kind == "square":
        return np.column_stack([(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t])
    return np.column_stack([1 - s, s]) if mesh.kind == "segment" else np.column_stack([1 - s - t, s, t])


def _gauss_points(pieces: Pieces, order: int) -> tuple[Floats, Ints, Floats]:
    """Points (P, 2) of a rule over the pieces, their elements (P,) and weights (P,)."""
    x, w = np.polynomial.legendre.leggauss(order)
    x, w = (x + 1) / 2, w / 2
    if pieces.sides == 2:
        rule, bary = w, np.column_stack([1 - x, x])
    else:
        u, v = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
        rule = 2 * np.outer(w * x, w).ravel()
        bary = np.column_stack([1 - u, u * (1 - v), u * v])
    points = np.einsum("pc,qcd->qpd", bary, pieces.corners).reshape(-1, 2)
    return points, np.repeat(pieces.element, len(rule)), np.outer(pieces.weight, rule).ravel()
