"""Courses (polylines) of parts of edges: clipping by polygons, and overlaps of two meshes along them."""

from typing import Any

import numpy as np
import scipy
import shapely
from shapely.ops import substring

from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import edge_numbers
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces


def courses(network: LinearNetwork, first: Floats, last: Floats) -> Any:
    """(n,) LineStrings along edges, from the first positions (n, 2) to the last."""
    edges = network.lines[edge_numbers(first)]
    ends = zip(edges, first[:, 1], last[:, 1], strict=True)
    return np.array([substring(line, a, b) for line, a, b in ends], dtype=object)


def cut(network: LinearNetwork, pieces: Pieces, polygons: Any, tree: shapely.STRtree) -> tuple[Pieces, Ints]:
    """Pieces of edges cut by polygons (P,), and the polygon each lies in; `tree` holds the polygons."""
    first, last = pieces.corners[:, 0], pieces.corners[:, 1]
    course = courses(network, first, last)
    piece, polygon = tree.query(course, predicate="intersects")
    parts, owner = shapely.get_parts(shapely.intersection(course[piece], polygons[polygon]), return_index=True)
    lines = shapely.get_type_id(parts) == shapely.GeometryType.LINESTRING
    parts, piece, polygon = parts[lines], piece[owner[lines]], polygon[owner[lines]]
    ends = [shapely.line_locate_point(course[piece], shapely.get_point(parts, k)) for k in (0, -1)]
    along = first[piece, 1, None] + np.sort(np.column_stack(ends), axis=1)
    corners = np.stack([np.repeat(first[piece, :1], 2, axis=1), along], axis=2)
    return Pieces(corners, pieces.element[piece], along[:, 1] - along[:, 0]), polygon


def common(one: Pieces, other: Pieces) -> Pieces:
    """Parts of edges between all ends of pieces of either mesh, with the elements of `one`; both tile the network."""
    ends = np.concatenate([one.corners.reshape(-1, 2), other.corners.reshape(-1, 2)])
    ends = ends[np.lexsort(ends.T[::-1])]
    inside = (ends[1:, 0] == ends[:-1, 0]) & (ends[1:, 1] > ends[:-1, 1])
    corners = np.stack([ends[:-1][inside], ends[1:][inside]], axis=1)
    order = np.lexsort(one.corners[:, 0].T[::-1])
    starts = one.corners[order, 0]
    # Positions in order, as numbers that can be searched.
    scale = 1 + ends[:, 1].max()
    middle = corners.mean(axis=1)
    found = np.searchsorted(starts @ (scale, 1.0), middle @ (scale, 1.0), side="right") - 1
    return Pieces(corners, one.element[order[found]], corners[:, 1, 1] - corners[:, 0, 1])


def basis_shares(field: Mesh, tents: Mesh) -> "scipy.sparse.csr_array":
    """Sparse (J, V) integrals of products of two meshes' basis functions, over those of the field's alone.

    Over parts of edges on which both are linear, so exact. A vertex that the network does not reach has no column.
    """
    positions, _, weight = common(field.pieces, tents.pieces).quadrature()
    product = tents.basis(positions).T @ scipy.sparse.diags_array(weight) @ field.basis(positions)
    measure = np.where(field.measure > 0, field.measure, np.inf)
    return (product @ scipy.sparse.diags_array(1 / measure)).tocsr()
