"""Lumped mass and stiffness matrices of linear finite elements, from which sparse fields are made.

They belong to whole elements: the field lives on the mesh, whether or not the domain fills it.
"""

from typing import NamedTuple

import numpy as np
import scipy

from dpppsynth.linear_network.mesh import NetworkMesh
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
