"""Quadratures of the integral of an intensity: dual mesh, integrals of the basis functions, Gauss points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.arguments import instance, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, gauss_rule

MESH = "regular_triangulation(window, spacing=100.0) makes one"
# Points of the Gauss rule along a segment, or along each of the two directions in a triangle.
ORDER = 8
# Smallest cell of a Voronoi dual mesh, as a share of the integral of its vertex's basis function.
LEAST = 0.01


def dual_mesh(domain: Domain, mesh: Mesh) -> Any:
    """Voronoi dual mesh: the part of a domain that belongs to each vertex of a mesh.

    In the plane each element is shared among its vertices by which is nearest. On triangles without obtuse angles, and
    away from borders, these are the places nearer to a vertex than to any other. Cells are clipped by borders and holes
    and tile the domain. A vertex outside, whose cell would be less than a tenth of its basis function's integral, has
    its cell around the mean place of that function in the domain (docs/theory.md, section 8). Along streets a cell is
    the half of each segment at its vertex.

    Parameters
    ----------
    domain : Window or LinearNetwork
        Domain of the mesh.
    mesh : Mesh

    Returns
    -------
    (V,) array of shapely geometries
        Polygons, or lines on a network. One may be empty or next to it, which `build_lgcp` refuses.

    Raises
    ------
    InputError
        When the mesh is one of another domain.

    Examples
    --------
    >>> from dpppsynth.models import regular_triangulation
    >>> square = Window.rectangle(0, 0, 2, 2)
    >>> cells = dual_mesh(square, regular_triangulation(square, shape=(3, 3)))
    >>> shapely.area(cells).tolist()
    [0.25, 0.5, 0.25, 0.5, 1.0, 0.5, 0.25, 0.5, 0.25]
    """
    instance("domain", domain, Domain)
    instance("mesh", mesh, Mesh, MESH)
    if mesh.domain.fingerprint() != domain.fingerprint():
        msg = "domain: must be the one that the mesh covers; give mesh.domain."
        raise InputError(msg)
    return mesh.dual_cells()


def dual_measure(mesh: Mesh, quadrature: str = "voronoi") -> Floats:
    """(V,) areas or lengths of the cells of a dual mesh, which add up to the domain's size.

    Those of the Voronoi dual mesh ("voronoi"), or integrals of the basis functions ("basis"). The latter are the areas
    of the barycentric dual mesh, which joins the middles of edges and of triangles, wherever no element is cut.

    Raises
    ------
    InputError
        When a Voronoi cell has less than a hundredth of the integral of the vertex's basis function: a likelihood would
        reward mass there, and charge next to nothing for it.
    """
    instance("mesh", mesh, Mesh, MESH)
    if one_of("quadrature", quadrature, ("voronoi", "basis")) == "basis":
        return mesh.measure
    cells = mesh.dual_cells()
    size = shapely.area(cells) if isinstance(mesh.domain, Window) else shapely.length(cells)
    if np.any(size < LEAST * mesh.measure):
        msg = (
            "mesh: its Voronoi dual mesh leaves a vertex next to nothing, though its function reaches the domain; "
            'take another spacing, or in build_lgcp quadrature="exact".'
        )
        raise InputError(msg)
    return np.asarray(size)


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Rule for integrals of `exp(w)` over a domain: `sum_q weight_q exp(sum_k share_qk w_(vertex_qk))`.

    Attributes
    ----------
    vertex : (Q, k) array of int
    share : (Q, k) array
        Values of the vertices' basis functions at the node.
    weight : (Q,) array
        Area or length.
    """

    vertex: Ints
    share: Floats
    weight: Floats

    @classmethod
    def of(cls, mesh: Mesh, kind: str) -> "Quadrature":
        """Rule with a node at each vertex ("voronoi", "basis"), or at Gauss points in each piece ("exact")."""
        instance("mesh", mesh, Mesh, MESH)
        if one_of("quadrature", kind, ("voronoi", "basis", "exact")) != "exact":
            own = np.arange(len(mesh.vertices))[:, None]
            return cls(own, np.ones(own.shape), dual_measure(mesh, kind))
        basis, weight = gauss_rule(mesh, mesh.pieces, ORDER)
        shape = len(weight), -1
        return cls(basis.indices.reshape(shape).astype(np.int64), basis.data.reshape(shape), weight)

    def integral(self, w: Any, xp: Any = np) -> Any:
        """Integral of `exp(w)` for a log-intensity w (V,) at the vertices, in NumPy or (`xp`) PyTensor."""
        return xp.dot(self.weight, xp.exp((w[self.vertex] * self.share).sum(axis=1)))
