"""Gaussian fields with sparse precision: Matern fields on any mesh, and fields given by a precision, and their sums.

The precision is made of a mesh's mass C and stiffness G: with `K = kappa^2 C + G` it is in proportion to `K C^-1 K`
for the smoothness 1 in the plane (Lindgren, Rue & Lindstroem 2011) and 3/2 on networks, where the vertices fulfil
Kirchhoff's condition (Bolin, Simas & Wallin 2024).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError, NoFieldError
from dpppsynth.models.finite_elements import Elements, PaddedGrid, mesh_elements
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mesh import Floats, Mesh

# Smoothness of fields by the dimension of the mesh.
SMOOTHNESS = {1: (0.5, 1.5), 2: (1.0, 3.0)}
# Unknowns of a field, its padding included, beyond which factors take more than about 4 GiB.
MOST_UNKNOWNS = 250_000
# Margin around a window, in ranges, and at most as a share of each side of the box. Without it the covariance between
# points near the border would be half as large again, as if the field were mirrored there.
PADDING, MOST_PADDING = 0.4, 0.15
# Standard deviation on the log scale within which a field is split into its parts.
CLOSE = 0.1


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
    effects : int
        Number of effects of covariates, which are the last unknowns.
    mixed : bool
        Whether a value is made of several unknowns, an intercept aside.
    """

    precision: "scipy.sparse.csc_array"
    root: "scipy.sparse.csc_array"
    log_det: float
    placement: "scipy.sparse.csr_array"
    intercept: bool = False
    effects: int = 0
    mixed: bool = False

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.precision.shape[0])

    def with_intercept(self, sd: float) -> "SparseField":
        """The field plus a constant `N(0, sd^2)`, one more unknown."""
        one = with_effects(self, np.ones((self.placement.shape[0], 1)), sd)
        return replace(one, intercept=True, effects=0, mixed=self.mixed)

    def unknowns_of(self, field: Floats) -> Floats:
        """(N,) unknowns of a field (V,) given at the vertices, approximate where it is mixed, and zero elsewhere."""
        if self.mixed:
            weighed = self.placement.T / CLOSE**2
            return SparseFactor(self.precision + weighed @ self.placement).solve(weighed @ field)
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

        Regular meshes get a margin, which keeps correlations near borders right; standard deviations are set right
        at every vertex of any mesh.

        Raises
        ------
        InputError
            When the smoothness is not one of the mesh's dimension, or the mesh is too large.
        """
        require_few_unknowns(self.unknowns(mesh))
        grid = PaddedGrid.around(mesh, PADDING * self.range, MOST_PADDING)
        elements = mesh_elements(mesh) if grid is None else grid.elements
        self._require_smoothness(elements.dimension)
        operator = (scipy.sparse.diags_array(self._kappa2 * elements.mass) + elements.stiffness).tocsc()
        power = round(self.smoothness + elements.dimension / 2)
        root = self._root(elements, operator, power)
        precision = (root @ root.T).tocsc()
        if grid is None:
            log_det, variances = SparseFactor(operator).log_det, SparseFactor(precision).inverse_diagonal
        else:
            log_det, variances = grid.log_det(self._kappa2), grid.variances(self._kappa2, power)
        log_det = power * log_det - (power - 1) * float(np.log(elements.mass).sum())
        index = np.arange(len(variances)) if grid is None else grid.index
        placed = (self.sigma / np.sqrt(variances[index]), (np.arange(len(index)), index))
        placement = scipy.sparse.csr_array(placed, shape=(len(index), len(variances)))
        return SparseField(precision, root, log_det, placement)

    def unknowns(self, mesh: Mesh) -> int:
        """Number of unknowns of the field on a mesh, its margin included."""
        found = PaddedGrid.sides(mesh, PADDING * self.range, MOST_PADDING)
        return len(mesh.vertices) if found is None else math.prod(map(int, found[1]))

    @property
    def _kappa2(self) -> float:
        return 8 * self.smoothness / self.range**2

    def _require_smoothness(self, *dimensions: int) -> None:
        if not any(self.smoothness in SMOOTHNESS[each] for each in dimensions):
            msg = f"smoothness: must be 1 or 3 in the plane, 0.5 or 1.5 along a network, got {self.smoothness!r}."
            raise InputError(msg)

    def _root(self, elements: Elements, operator: "scipy.sparse.csc_array", power: int) -> "scipy.sparse.csc_array":
        """Root of the precision `K C^-1 K ... K`, the operator K so many times."""
        if power == 1:
            return scipy.sparse.hstack(
                [scipy.sparse.diags_array(np.sqrt(self._kappa2 * elements.mass)), elements.slopes], format="csc"
            )
        root = operator @ scipy.sparse.diags_array(1 / np.sqrt(elements.mass))
        for _ in range(power // 2 - 1):
            root = operator @ scipy.sparse.diags_array(1 / elements.mass) @ root
        return root.tocsc()


def field_of_precision(precision: Any, mesh: Mesh) -> SparseField:
    """A user's own prior: any sparse positive definite precision (V, V) at a mesh's vertices.

    Raises
    ------
    InputError
        When it is not a symmetric matrix of finite numbers, one row a vertex.
    QualityError
        When it is not positive definite.
    """
    count = len(mesh.vertices)
    matrix = scipy.sparse.csc_array(precision, dtype=float)
    require_few_unknowns(count)
    symmetric = matrix.shape == (count, count) and bool(np.isfinite(matrix.data).all())
    symmetric = symmetric and abs(matrix - matrix.T).max() <= 1e-9 * abs(matrix).max()
    if not symmetric:
        msg = (
            f"covariance: a precision needs to be a symmetric matrix ({count}, {count}) of finite numbers, one row for "
            "each vertex."
        )
        raise InputError(msg)
    matrix = ((matrix + matrix.T) / 2).tocsc()
    factor = SparseFactor(matrix)
    return SparseField(matrix, factor.root, factor.log_det, scipy.sparse.eye_array(count, format="csr"))


def require_few_unknowns(count: int) -> None:
    """Refuse fields too large for their factors."""
    if count > MOST_UNKNOWNS:
        msg = (
            f"mesh: a field with {count} unknowns is more than {MOST_UNKNOWNS}; take a coarser mesh or a shorter range."
        )
        raise NoFieldError(msg)


def summed(*parts: SparseField) -> SparseField:
    """Sum of independent fields at the same V places."""
    return SparseField(
        scipy.sparse.block_diag([part.precision for part in parts], format="csc"),
        scipy.sparse.block_diag([part.root for part in parts], format="csc"),
        sum(part.log_det for part in parts),
        scipy.sparse.hstack([part.placement for part in parts], format="csr"),
        mixed=True,
    )


def moved(field: SparseField, basis: "scipy.sparse.csr_array") -> SparseField:
    """The field at other places, from its values at its own by a sparse matrix (places, V)."""
    return replace(field, placement=(basis @ field.placement).tocsr(), mixed=True)


def with_effects(field: SparseField, columns: Floats, sd: float) -> SparseField:
    """The field plus covariates (V, p) times effects `N(0, sd^2)`, one more unknown each, the last ones."""
    one = scipy.sparse.eye_array(columns.shape[1], format="csc")
    return SparseField(
        scipy.sparse.block_diag([field.precision, one / sd**2], format="csc"),
        scipy.sparse.block_diag([field.root, one / sd], format="csc"),
        field.log_det - 2 * columns.shape[1] * float(np.log(sd)),
        scipy.sparse.hstack([field.placement, scipy.sparse.csr_array(columns)], format="csr"),
        effects=columns.shape[1],
        mixed=True,
    )


def scaled(field: SparseField, factor: float) -> SparseField:
    """The field times a number."""
    return replace(field, placement=factor * field.placement)


def constant(places: int, sd: float) -> SparseField:
    """One number `N(0, sd^2)` everywhere."""
    one = scipy.sparse.csc_array([[1.0]])
    return SparseField(one / sd**2, one / sd, -2 * float(np.log(sd)), scipy.sparse.csr_array(np.ones((places, 1))))
