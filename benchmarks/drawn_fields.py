"""Values of Matern fields drawn at chosen places, for several benchmarks."""

import numpy as np
from numpy.random import Generator

from dpppsynth.models import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh


def at_vertices(prior: SparseMatern, mesh: Mesh, rng: Generator) -> np.ndarray:
    """Values of a field at the vertices of a mesh."""
    on = prior.on(mesh)
    return on.placement @ SparseFactor(on.precision).solve(on.root @ rng.standard_normal(on.root.shape[1]))


def at_places(prior: SparseMatern, window: Window, side: int, places: np.ndarray, rng: Generator) -> np.ndarray:
    """Values of a field, on a mesh with so many vertices along each side of a window, at places (k, 2)."""
    mesh = regular_triangulation(window, shape=(side, side))
    return mesh.basis(places) @ at_vertices(prior, mesh, rng)
