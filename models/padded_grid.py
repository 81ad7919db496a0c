"""Regular grids of triangles with a margin, on which fields of sparse precision have closed forms.

The elements of right triangles are tensor products, but for the mass of four corners, which is taken as that of
the trapezoidal rule. So their eigenvectors are products of cosines: variances and determinants need no factor.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.finite_elements import Elements
from dpppsynth.models.trace import around
from dpppsynth.spatial.mesh import Floats, Ints, Mesh


@dataclass(frozen=True, eq=False)
class GridLine:
    """One axis of a grid: linear elements on points a step apart, free at both ends.

    Attributes
    ----------
    count : int
    step : float
    """

    count: int
    step: float

    @property
    def mass(self) -> Floats:
        """(count,) integral of each basis function."""
        out = np.full(self.count, self.step)
        out[[0, -1]] /= 2
        return out

    @property
    def slopes(self) -> "scipy.sparse.csc_array":
        """Sparse (count, count - 1) root of the stiffness matrix."""
        ones = np.ones(self.count - 1)
        shape = (self.count, self.count - 1)
        return scipy.sparse.diags_array([-ones, ones], offsets=[0, -1], shape=shape, format="csc") / math.sqrt(
            self.step
        )

    @property
    def eigenvalues(self) -> Floats:
        """(count,) of the stiffness against the mass."""
        return np.asarray(2 * (1 - np.cos(self._angles)) / self.step**2)

    @property
    def squares(self) -> Floats:
        """(count, count) squares of the eigenvectors, the columns, which the mass makes orthonormal."""
        squares = np.cos(np.outer(np.arange(self.count), self._angles)) ** 2
        return np.asarray(squares / (self.mass @ squares))

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
        x, y = self.x, self.y
        across = (
            scipy.sparse.kron(scipy.sparse.diags_array(np.sqrt(y.mass)), x.slopes),
            scipy.sparse.kron(y.slopes, scipy.sparse.diags_array(np.sqrt(x.mass))),
        )
        return Elements(np.outer(y.mass, x.mass).ravel(), scipy.sparse.hstack(across, format="csc"), 2)

    def variances(self, kappa2: float, power: int) -> Floats:
        """(N,) diagonal of the inverse of `K C^-1 K ... K`, the operator `K = kappa^2 C + G` so many times."""
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
