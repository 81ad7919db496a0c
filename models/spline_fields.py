"""Fields made of quadratic B-splines on a regular lattice: smooth between its nodes, however finely they are drawn."""

import numpy as np
import scipy.sparse as sp

from dpppsynth.models.recipes import around
from dpppsynth.models.regular_meshes import Bounds, regular_triangulation
from dpppsynth.models.sparse_fields import SparseField, SparseMatern, moved
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Mesh


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
        dx, dy = (x1 - x0) / (shape[0] - 1), (y1 - y0) / (shape[1] - 1)
        self._bounds: Bounds = (x0 - dx, y0 - dy, x1 + dx, y1 + dy)
        self.mesh: Mesh = regular_triangulation(Window.rectangle(*self._bounds), shape=(nx, ny))

    def basis(self, xy: Floats) -> sp.csr_array:
        """Sparse (n, nodes) weights of the nodes at coordinates (n, 2) in the box; rows sum to one."""
        (nx, ny), (x0, y0, x1, y1) = self._shape, self._bounds
        i, across = _axis((xy[:, 0] - x0) / (x1 - x0) * (nx - 1), nx)
        j, upwards = _axis((xy[:, 1] - y0) / (y1 - y0) * (ny - 1), ny)
        node = j[:, :, None] * nx + i[:, None, :]
        weight = upwards[:, :, None] * across[:, None, :]
        rows = np.arange(0, 9 * len(xy) + 1, 9)
        return sp.csr_array((weight.ravel(), node.ravel(), rows), shape=(len(xy), nx * ny))

    def field(self, prior: SparseMatern, basis: sp.csr_array) -> SparseField:
        """A Matern field of the nodes, at places with these weights: a little smoother than one of the places."""
        return moved(prior.on(self.mesh), basis)


def _axis(at: Floats, count: int) -> tuple[np.ndarray, Floats]:
    """(n, 3) nodes about places (n,) in units of the spacing, and the values of their splines."""
    middle = np.clip(np.rint(at), 1, count - 2).astype(np.int64)
    t = at - middle
    return middle[:, None] + np.arange(-1, 2), np.stack([(0.5 - t) ** 2 / 2, 0.75 - t**2, (0.5 + t) ** 2 / 2], axis=1)
