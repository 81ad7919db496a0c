"""Fields made of quadratic B-splines on a regular lattice: smooth between its nodes, however finely they are drawn."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
import scipy.sparse as sp

from dpppsynth.models.recipes import around
from dpppsynth.models.regular_meshes import Bounds, regular_triangulation
from dpppsynth.models.sparse_fields import SparseField, SparseMatern, moved, scaled
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Mesh

# Averages of products of two splines so many nodes apart: a spline of the fifth degree at whole numbers.
OVERLAP = np.array([1, 26, 66, 26, 1]) / 120
# Share of a Matern field's variance, smoothness 1, that is finer than a lattice, times the squared range in spacings:
# .76 to .89 for ranges from 2 to 6 spacings. At most it is taken to be a half.
UNSEEN, MOST_UNSEEN = 0.8, 0.5
# Share of a Matern field's variance, smoothness 1, that it has about a place beside splines and draws of `unseen`,
# linear between vertices, times the squared range in spacings of nodes; by vertices in a spacing. Splines damp the
# finest waves that they have. From ranges of two to four tents, as differences from averages over a tent's square.
VERTICES, BETWEEN = (1.0, 1.5, 2.0, 3.0), (0.5, 1.2, 0.31, 0.23)
# Added to the diagonal of normal equations, whose entries are some units.
LITTLE = 1e-10


class SplineLattice:
    """Lattice of B-splines over the box of a domain, which reaches one node beyond on each side.

    At a place the field is the average of three by three nodes, with weights that change smoothly with the place. So
    it has no kinks where a mesh of the same spacing has them, and needs no more unknowns.

    Parameters
    ----------
    domain : Window or LinearNetwork
    shape : (int, int)
        Nodes along x and y of the box.
    """

    def __init__(self, domain: Domain, shape: tuple[int, int]) -> None:
        x0, y0, x1, y1 = domain.bounds if isinstance(domain, Window) else around(domain)  # type: ignore[arg-type]
        self._shape = nx, ny = shape[0] + 2, shape[1] + 2
        self.cells = max(shape) - 1
        dx, dy = (x1 - x0) / (shape[0] - 1), (y1 - y0) / (shape[1] - 1)
        self.spacing = dx, dy
        self._bounds: Bounds = (x0 - dx, y0 - dy, x1 + dx, y1 + dy)
        self.mesh: Mesh = regular_triangulation(Window.rectangle(*self._bounds), shape=(nx, ny))

    def averaged(self, range_: float) -> float:
        """Share of a Matern field's variance at the nodes, smoothness 1, that splines leave on average."""
        apart = np.hypot(*(np.meshgrid(*(np.arange(-2, 3) * each for each in self.spacing))))
        scaled_by = np.maximum(math.sqrt(8) / range_ * apart, 1e-9)
        return float(OVERLAP @ (scaled_by * scipy.special.k1(scaled_by)) @ OVERLAP)

    def basis(self, xy: Floats) -> sp.csr_array:
        """Sparse (n, nodes) weights of the nodes at coordinates (n, 2) in the box; rows sum to one."""
        (nx, ny), (x0, y0, x1, y1) = self._shape, self._bounds
        i, across = _axis((xy[:, 0] - x0) / (x1 - x0) * (nx - 1), nx)
        j, upwards = _axis((xy[:, 1] - y0) / (y1 - y0) * (ny - 1), ny)
        node = j[:, :, None] * nx + i[:, None, :]
        weight = upwards[:, :, None] * across[:, None, :]
        rows = np.arange(0, 9 * len(xy) + 1, 9)
        return sp.csr_array((weight.ravel(), node.ravel(), rows), shape=(len(xy), nx * ny))


@dataclass(frozen=True, eq=False)
class SplinePlaces:
    """Vertices of a mesh beside the nodes of a lattice of B-splines.

    Attributes
    ----------
    lattice : SplineLattice
    mesh : Mesh
        Of values, finer than the lattice.
    """

    lattice: SplineLattice
    mesh: Mesh

    @cached_property
    def basis(self) -> sp.csr_array:
        """(V, nodes) weights of the nodes at the vertices."""
        return self.lattice.basis(self.mesh.vertices)

    def field(self, prior: SparseMatern) -> SparseField:
        """A Matern field of the nodes, smoothness 1, at the vertices: one of these without what is finer than nodes.

        It is made larger by as much as splines average away of it, so that with the rest the variance is the prior's.
        """
        finer = min(UNSEEN * math.prod(self.lattice.spacing) / prior.range**2, MOST_UNSEEN)
        kept = math.sqrt((1 - finer) / self.lattice.averaged(prior.range))
        return scaled(moved(prior.on(self.lattice.mesh), self.basis), kept)

    def smooth(self, fields: Floats) -> Floats:
        """(..., V) nearest fields of B-splines, by least squares."""
        flat = fields.reshape(-1, fields.shape[-1])
        return np.asarray((self.basis @ self._normal.solve(self.basis.T @ flat.T)).T.reshape(fields.shape))

    def unseen(self, prior: SparseMatern, k: int, rng: np.random.Generator) -> Floats:
        """(k, V) draws of a Matern field of the vertices, less the smooth part that nodes have."""
        field = prior.on(self.mesh)
        white = field.root @ rng.standard_normal((field.root.shape[1], k))
        drawn = (field.placement @ SparseFactor(field.precision).solve(white)).T
        return np.asarray(drawn - self.smooth(drawn))

    @property
    def between(self) -> float:
        """Variance about a place that neither splines nor `unseen` have, of a field of variance 1 and range 1."""
        vertices = (max(self.mesh.recipe["shape"]) - 1) / self.lattice.cells
        return float(np.interp(vertices, VERTICES, BETWEEN)) * math.prod(self.lattice.spacing)

    @cached_property
    def _normal(self) -> SparseFactor:
        """Factor of the normal equations, with a little on the diagonal for nodes that no vertex is near."""
        return SparseFactor(self.basis.T @ self.basis + LITTLE * sp.eye_array(self.basis.shape[1]))


def _axis(at: Floats, count: int) -> tuple[np.ndarray, Floats]:
    """(n, 3) nodes about places (n,) in units of the spacing, and the values of their splines."""
    middle = np.clip(np.rint(at), 1, count - 2).astype(np.int64)
    t = at - middle
    return middle[:, None] + np.arange(-1, 2), np.stack([(0.5 - t) ** 2 / 2, 0.75 - t**2, (0.5 + t) ** 2 / 2], axis=1)
