"""Matrices of linear finite elements, and grids padded beyond a domain."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.models.recipes import around
from dpppsynth.spatial.mesh import Floats, Ints, Mesh


class Elements(NamedTuple):
    """Matrices of linear elements with N vertices.

    Attributes
    ----------
    mass : (N,) array
        Lumped mass: the integral of each basis function.
    slopes : sparse (N, S)
        A root of the stiffness matrix: `slopes @ slopes.T` is the integral of products of gradients.
    dimension : {1, 2}
    """

    mass: Floats
    slopes: "scipy.sparse.csc_array"
    dimension: int

    @property
    def stiffness(self) -> "scipy.sparse.csc_array":
        """Sparse (N, N) stiffness matrix."""
        return (self.slopes @ self.slopes.T).tocsc()


def mesh_elements(mesh: Mesh) -> Elements:
    """Matrices of a mesh: segments with Kirchhoff's condition at their ends, or triangles, squares being halved."""
    if isinstance(mesh, NetworkMesh):
        return segment_elements(mesh.elements, mesh.end - mesh.start, len(mesh.vertices))
    corners = mesh.elements
    halves = corners if corners.shape[1] == 3 else np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    return triangle_elements(mesh.vertices, halves)


def segment_elements(ends: Ints, lengths: Floats, vertices: int) -> Elements:
    """Matrices of segments with ends (T, 2) and lengths (T,)."""
    mass = _sums(ends, lengths / 2, vertices)
    step = np.column_stack([-np.ones(len(ends)), np.ones(len(ends))]) / np.sqrt(lengths)[:, None]
    return Elements(mass, _columns(ends, step, vertices), 1)


def triangle_elements(vertices: Floats, corners: Ints) -> Elements:
    """Matrices of triangles with corners (T, 3), numbers of vertices (V, 2)."""
    place = vertices[corners]
    away = place[:, 1:] - place[:, :1]
    area = np.abs(np.linalg.det(away)) / 2
    local = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    gradients = np.einsum("ka,tia->tki", local, np.linalg.inv(away)) * np.sqrt(area)[:, None, None]
    mass = _sums(corners, area / 3, len(vertices))
    both = [_columns(corners, gradients[:, :, axis], len(vertices)) for axis in (0, 1)]
    return Elements(mass, scipy.sparse.hstack(both, format="csc"), 2)


def _sums(rows: Ints, values: Floats, height: int) -> Floats:
    """(height,) sums of the values (T,), each in all of its rows (T, k)."""
    return np.asarray(np.bincount(rows.ravel(), np.repeat(values, rows.shape[1]), minlength=height), dtype=np.float64)


def _columns(rows: Ints, values: Floats, height: int) -> "scipy.sparse.csc_array":
    """Sparse (height, T) matrix with the values (T, k) of each column in the given rows (T, k)."""
    count, k = rows.shape
    return scipy.sparse.csc_array((values.ravel(), rows.ravel(), np.arange(0, count * k + 1, k)), shape=(height, count))


@dataclass(frozen=True, eq=False)
class GridLine:
    """One axis of a grid: linear elements on points a step apart, free at both ends."""

    count: int
    step: float

    @cached_property
    def elements(self) -> Elements:
        """Matrices of its segments."""
        sooner = np.arange(self.count - 1)
        return segment_elements(np.column_stack([sooner, sooner + 1]), np.full(len(sooner), self.step), self.count)

    @property
    def eigenvalues(self) -> Floats:
        """(count,) generalised eigenvalues of the stiffness and mass matrices."""
        return np.asarray(2 * (1 - np.cos(self._angles)) / self.step**2)

    @property
    def squares(self) -> Floats:
        """(count, count) squares of the eigenvectors, as columns, which are orthonormal under the mass matrix."""
        squares = np.cos(np.outer(np.arange(self.count), self._angles)) ** 2
        return np.asarray(squares / (self.elements.mass @ squares))

    @property
    def _angles(self) -> Floats:
        return np.pi * np.arange(self.count) / (self.count - 1)


@dataclass(frozen=True, eq=False)
class PaddedGrid:
    """Grid over a regular mesh's box and a margin around it; its vertices are numbered along x first.

    Attributes
    ----------
    x, y : GridLine
    index : (V,) array of int
        Number of each vertex of the mesh in the grid.
    """

    x: GridLine
    y: GridLine
    index: Ints

    @staticmethod
    def sides(mesh: Mesh, margin: float, most: float) -> "tuple[Ints, Ints] | None":
        """Cells of the margin, and vertices of the grid, along x and y; None for meshes of other builders.

        Parameters
        ----------
        mesh : Mesh
        margin : float
            Width of the margin.
        most : float
            Width at most, as a share of each side of the box.
        """
        if mesh.recipe.get("builder") not in ("regular", "trace"):
            return None
        low, high = _box(mesh)
        shape = np.array(mesh.recipe["shape"])
        pad = np.ceil(np.minimum(margin, most * (high - low)) / ((high - low) / (shape - 1))).astype(np.int64)
        return pad, shape + 2 * pad

    @classmethod
    def around(cls, mesh: Mesh, margin: float, most: float) -> "PaddedGrid | None":
        """The grid around a regular mesh, with arguments as `sides` has them."""
        found = cls.sides(mesh, margin, most)
        if found is None:
            return None
        (low, high), (pad, (nx, ny)) = _box(mesh), found
        step = (high - low) / (np.array(mesh.recipe["shape"]) - 1)
        place = np.rint((mesh.vertices - low) / step).astype(np.int64) + pad
        x, y = (GridLine(int(count), float(width)) for count, width in zip((nx, ny), step, strict=True))
        return cls(x, y, place[:, 1] * nx + place[:, 0])

    @cached_property
    def elements(self) -> Elements:
        """Matrices of the grid's triangles."""
        x, y = self.x.elements, self.y.elements
        across = (
            scipy.sparse.kron(scipy.sparse.diags_array(np.sqrt(y.mass)), x.slopes),
            scipy.sparse.kron(y.slopes, scipy.sparse.diags_array(np.sqrt(x.mass))),
        )
        return Elements(np.outer(y.mass, x.mass).ravel(), scipy.sparse.hstack(across, format="csc"), 2)

    def variances(self, kappa2: float, power: int) -> Floats:
        """(N,) diagonal of the inverse of `K C^-1 K ... K` with `power` factors `K = kappa^2 C + G`."""
        inverse = self._eigenvalues(kappa2) ** -float(power)
        return np.asarray(self.y.squares @ inverse @ self.x.squares.T).ravel()

    def log_det(self, kappa2: float) -> float:
        """Logarithm of the determinant of `kappa^2 C + G`."""
        return float(np.log(self._eigenvalues(kappa2)).sum() + np.log(self.elements.mass).sum())

    def _eigenvalues(self, kappa2: float) -> Floats:
        """(ny, nx) eigenvalues of `kappa^2 C + G` against C."""
        return kappa2 + self.y.eigenvalues[:, None] + self.x.eigenvalues


def _box(mesh: Mesh) -> tuple[Floats, Floats]:
    """Lower left and upper right corner of a regular mesh's grid."""
    bounds = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    low, high = np.reshape(bounds, (2, 2))
    return low, high
