"""Finite-element meshes: vertices, elements, basis functions and their integrals over the domain.

`Mesh` is what everything downstream is written against, `PlanarMesh` the triangles and squares. Builders live in
`dpppsynth.models` and `dpppsynth.linear_network`.
"""

from dpppsynth.core.arrays import Floats, Ints
from dpppsynth.spatial.mesh.abstract_mesh import Mesh
from dpppsynth.spatial.mesh.pieces import Pieces, triangulate
from dpppsynth.spatial.mesh.planar_mesh import PlanarMesh, cut_to_window

__all__ = ["Floats", "Ints", "Mesh", "Pieces", "PlanarMesh", "cut_to_window", "triangulate"]
