"""Gaussian fields with sparse precision: Matern fields on any mesh, and fields given by a precision of one's own.

The precision is made of a mesh's mass C and stiffness G: with `K = kappa^2 C + G` it is `tau^2 K C^-1 K` for the
smoothness 1 in the plane (Lindgren, Rue & Lindstroem 2011) and 3/2 on networks, where the vertices fulfil Kirchhoff's
condition (Bolin, Simas & Wallin 2024).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.finite_elements import Elements, mesh_elements, triangle_elements
from dpppsynth.models.regular_meshes import regular_grid
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.models.trace import around
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

# Smoothness of fields by the dimension of the mesh.
SMOOTHNESS = {1: (0.5, 1.5), 2: (1.0, 3.0)}
# Unknowns of a field, its padding included, beyond which factors take more than about 4 GiB.
MOST_UNKNOWNS = 250_000
# Padding around a window, in ranges. A point on its border has a mirror image twice as far away, which adds 4 % to the
# variance there, 8 % in corners.
PADDING = 0.75
# Padding at most, as a share of each side of the box; where it cuts in, standard deviations are set right one by one.
MOST_PADDING = 0.25


@dataclass(frozen=True, eq=False)
class SparseField:
    """Prior of a field `w = A u` at a mesh's vertices, u of sparse precision.

    Attributes
    ----------
    precision : sparse (N, N)
        Q.
    root : sparse (N, S)
        R with `R R' = Q`.
    log_det : float
        Logarithm of the determinant of Q.
    placement : sparse (V, N)
        A: from the unknowns to the vertices, a factor each.
    intercept : bool
        Whether the last unknown is a constant, added everywhere.
    """

    precision: sp.csc_array
    root: sp.csc_array
    log_det: float
    placement: sp.csr_array
    intercept: bool = False

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.precision.shape[0])

    def with_intercept(self, sd: float) -> "SparseField":
        """The field plus a constant `N(0, sd^2)`, one more unknown."""
        one = sp.csc_array([[1.0]])
        return SparseField(
            sp.block_diag([self.precision, one / sd**2], format="csc"),
            sp.block_diag([self.root, one / sd], format="csc"),
            self.log_det - 2 * float(np.log(sd)),
            sp.hstack([self.placement, np.ones((self.placement.shape[0], 1))], format="csr"),
            intercept=True,
        )

    def unknowns_of(self, field: Floats) -> Floats:
        """(N,) unknowns with the given field (V,) at the vertices, and zero elsewhere."""
        scale = self.placement[:, : self.size - self.intercept]
        entries = np.zeros(self.size)
        entries[scale.indices] = field / scale.data
        return entries

    def covariance(self) -> Floats:
        """(V, V) covariance at the vertices, dense: for small meshes."""
        placed = self.placement.toarray()
        return np.asarray(placed @ SparseFactor(self.precision).solve(placed.T))


@dataclass(frozen=True)
class SparseMatern:
    """Matern covariance with sparse precision.

    Attributes
    ----------
    sigma : float
        Standard deviation, everywhere: borders, dead ends and crossings do not change it.
    range : float
        Distance at which the correlation is about 0.14, in the domain's unit: `sqrt(8 smoothness) / kappa`.
    smoothness : float
        1 or 3 in the plane, 0.5 or 1.5 along networks.

    Raises
    ------
    InputError
    """

    sigma: float
    range: float
    smoothness: float

    def __post_init__(self) -> None:
        for name in ("sigma", "range"):
            positive(name, getattr(self, name))
        self._require_smoothness(*SMOOTHNESS)

    def on(self, mesh: Mesh) -> SparseField:
        """The field at a mesh's vertices.

        Regular meshes are padded, so that borders are far away; on others the standard deviation is set
        right at every vertex.

        Raises
        ------
        InputError
            When the smoothness is not one of the mesh's dimension, or the mesh is too large.
        """
        grid = PaddedGrid.around(mesh, PADDING * self.range)
        elements = mesh_elements(mesh) if grid is None else grid.elements
        self._require_smoothness(elements.dimension)
        require_few_unknowns(len(elements.mass))
        precision, root, log_det = self._matrices(elements)
        if grid is None or grid.cut:
            sd = np.sqrt(SparseFactor(precision).inverse_diagonal)
        else:
            sd = np.full(len(elements.mass), np.sqrt(SparseFactor(precision).solve(grid.unit)[grid.middle]))
        index = np.arange(len(sd)) if grid is None else grid.index
        rows = np.arange(len(index))
        placement = sp.csr_array((self.sigma / sd[index], (rows, index)), shape=(len(index), len(sd)))
        return SparseField(precision, root, log_det, placement)

    def unknowns(self, mesh: Mesh) -> int:
        """Number of unknowns of the field on a mesh, padding included."""
        shape = PaddedGrid.shape_around(mesh, PADDING * self.range)
        return len(mesh.vertices) if shape is None else math.prod(shape[1])

    def _require_smoothness(self, *dimensions: int) -> None:
        if not any(self.smoothness in SMOOTHNESS[each] for each in dimensions):
            msg = f"smoothness: must be 1 or 3 in the plane, 0.5 or 1.5 along a network, got {self.smoothness!r}."
            raise InputError(msg)

    def _matrices(self, elements: Elements) -> tuple[sp.csc_array, sp.csc_array, float]:
        """Precision, a root of it, and the logarithm of its determinant; for about unit variance."""
        nu, d, mass = self.smoothness, elements.dimension, elements.mass
        kappa2 = 8 * nu / self.range**2
        log_tau2 = gammaln(nu) - gammaln(nu + d / 2) - d / 2 * np.log(4 * np.pi) - nu * np.log(kappa2)
        tau = float(np.exp(log_tau2 / 2))
        damped, inverse = sp.diags_array(kappa2 * mass), sp.diags_array(1 / mass)
        operator = (damped + elements.stiffness).tocsc()
        power = round(nu + d / 2)
        log_det = len(mass) * log_tau2 + power * SparseFactor(operator).log_det - (power - 1) * np.log(mass).sum()
        if power == 1:
            root = sp.hstack([sp.diags_array(np.sqrt(kappa2 * mass)), elements.slopes])
        else:
            root = operator @ sp.diags_array(1 / np.sqrt(mass))
            for _ in range(power // 2 - 1):
                root = operator @ inverse @ root
        root = (tau * root).tocsc()
        return (root @ root.T).tocsc(), root, float(log_det)


@dataclass(frozen=True, eq=False)
class PaddedGrid:
    """Regular triangles over a mesh's box and a margin around it.

    Attributes
    ----------
    vertices : (N, 2) array
    corners : (T, 3) array of int
    index : (V,) array of int
        Number of each vertex of the mesh in the grid.
    cut : bool
        Whether the margin is narrower than asked for.
    """

    vertices: Floats
    corners: Ints
    index: Ints
    cut: bool

    @staticmethod
    def shape_around(mesh: Mesh, margin: float) -> "tuple[Ints, tuple[int, int]] | None":
        """Cells of the margin along x and y, and vertices of the grid; None for meshes of other builders."""
        if mesh.recipe.get("builder") not in ("regular", "trace"):
            return None
        low, high = _box(mesh)
        shape = np.array(mesh.recipe["shape"])
        pad = np.ceil(np.minimum(margin, MOST_PADDING * (high - low)) / ((high - low) / (shape - 1))).astype(int)
        nx, ny = (int(side) for side in shape + 2 * pad)
        return pad, (nx, ny)

    @classmethod
    def around(cls, mesh: Mesh, margin: float) -> "PaddedGrid | None":
        """The grid around a regular mesh; None for meshes of other builders."""
        found = cls.shape_around(mesh, margin)
        if found is None:
            return None
        (low, high), (pad, (nx, ny)) = _box(mesh), found
        require_few_unknowns(nx * ny)
        step = (high - low) / (np.array(mesh.recipe["shape"]) - 1)
        vertices, corners = regular_grid((*(low - pad * step), *(high + pad * step)), nx, ny, "triangle")
        place = np.rint((mesh.vertices - low) / step).astype(np.int64) + pad
        return cls(vertices, corners, place[:, 1] * nx + place[:, 0], bool(margin > MOST_PADDING * (high - low).min()))

    @cached_property
    def elements(self) -> Elements:
        """Matrices of the triangles."""
        return triangle_elements(self.vertices, self.corners)

    @property
    def middle(self) -> int:
        """Number of the vertex nearest to the middle of the grid."""
        centre = self.vertices.mean(axis=0)
        return int(np.argmin(((self.vertices - centre) ** 2).sum(axis=1)))

    @property
    def unit(self) -> Floats:
        """(N,) one at the middle, zero elsewhere."""
        return np.asarray(np.arange(len(self.vertices)) == self.middle, dtype=float)


def _box(mesh: Mesh) -> tuple[Floats, Floats]:
    """Lower left and upper right corner of a regular mesh's grid."""
    bounds = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    low, high = np.reshape(bounds, (2, 2))
    return low, high


def field_of_precision(precision: Any, mesh: Mesh) -> SparseField:
    """A prior of one's own: any sparse positive definite precision (V, V) at a mesh's vertices.

    Raises
    ------
    InputError
        When it is not a symmetric matrix of finite numbers, one row a vertex.
    QualityError
        When it is not positive definite.
    """
    count = len(mesh.vertices)
    matrix = sp.csc_array(precision, dtype=float)
    require_few_unknowns(count)
    symmetric = matrix.shape == (count, count) and bool(np.isfinite(matrix.data).all())
    symmetric = symmetric and abs(matrix - matrix.T).max() <= 1e-9 * abs(matrix).max()
    if not symmetric:
        msg = f"precision: needs a symmetric matrix ({count}, {count}) of finite numbers, one row for each vertex."
        raise InputError(msg)
    matrix = ((matrix + matrix.T) / 2).tocsc()
    factor = SparseFactor(matrix)
    return SparseField(matrix, factor.root, factor.log_det, sp.eye_array(count, format="csr"))


def require_few_unknowns(count: int) -> None:
    """Refuse fields too large for their factors.

    Raises
    ------
    InputError
    """
    if count > MOST_UNKNOWNS:
        msg = (
            f"mesh: a field with {count} unknowns is more than {MOST_UNKNOWNS}; take a coarser mesh or a shorter range."
        )
        raise InputError(msg)
