"""`MovedLattice`: the nodes of a window's lattice at which moved points are counted, for fields behind such counts."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import scipy

from dpppsynth.models.moved_posterior import in_blocks
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

# Sides of the tents whose masses are kept, in scales of the noise, and in nodes at least.
WIDE_SCALES, WIDE_NODES = 6.0, 2.0
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class MovedLattice:
    """Nodes over the bounding box of a window, at some of which a mesh has its vertices.

    Attributes
    ----------
    mesh : Mesh
        Regular triangulation of the window.
    """

    mesh: Mesh

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes along both axes."""
        nx, ny = self.mesh.recipe["shape"]
        return nx, ny

    @property
    def spacing(self) -> tuple[float, float]:
        """Distances of the nodes along both axes."""
        x0, y0, x1, y1 = self.mesh.domain.bounds
        nx, ny = self.shape
        return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)

    @cached_property
    def nodes(self) -> Ints:
        """(V,) nodes, in C order, at which the vertices are."""
        i, j = np.rint((self.mesh.vertices - self.mesh.domain.bounds[:2]) / self.spacing).astype(np.int64).T
        return np.asarray(i * self.shape[1] + j)

    def filled(self, values: Floats) -> Floats:
        """(..., nx, ny) values (..., V) of the vertices at their nodes, and 0 at nodes without one."""
        lattice = np.zeros((*values.shape[:-1], self.shape[0] * self.shape[1]))
        lattice[..., self.nodes] = values
        return lattice.reshape(*values.shape[:-1], *self.shape)

    def averages(self, columns: Floats, measure: Floats, spacing: tuple[float, float]) -> Floats:
        """(B, p) means of columns (V, p) over blocks of nodes that are `spacing` apart, weighted by a measure (V,)."""
        side = round(spacing[0] / self.spacing[0])
        nx, ny = (-(-nodes // side) for nodes in self.shape)

        def summed(values: Floats) -> Floats:
            return in_blocks(self.filled(values), (0, 0), (nx, ny), side).ravel()

        weight = np.maximum(summed(measure), TINY)
        return np.column_stack([summed(measure * column) / weight for column in columns.T])


def wide_tents(mesh: Mesh, rate: float, spacing: tuple[float, float]) -> "scipy.sparse.csr_array":
    """(K, V) shares of a window's vertices in tents several scales of the noise wide."""
    side = max(WIDE_SCALES / rate, WIDE_NODES * max(spacing))
    window = cast(Window, mesh.domain)
    x0, y0, x1, y1 = window.bounds
    tents = regular_triangulation(window, spacing=min(side, x1 - x0, y1 - y0))
    return scipy.sparse.csr_array(tents.basis(mesh.vertices).T)
