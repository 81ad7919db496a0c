"""Planar triangulations restricted to a network: coarse tent functions that short streets do not make steep.

The length of a path along the network is at least the straight distance between its ends, so the planar tents' slope
bounds what a move along streets changes (docs/theory/network.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import shapely

from dpppsynth.core.arguments import instance
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.regular_meshes import Finder, regular_grid, settle_shape
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.planar_mesh import PlanarMesh

# Straight parts shorter than this share of the diameter are rounding, not street.
SHORTEST = 1e-12


class TraceMesh(PlanarMesh):
    """Triangles of the plane whose integrals run along the edges of a network."""

    domain: LinearNetwork

    def shares(self, tents: Mesh) -> scipy.sparse.csr_array:
        """Sparse (J, V) share of the points near each vertex that each of the J tents takes; columns sum to one."""
        from dpppsynth.linear_network.mesh import basis_shares

        return basis_shares(self, tents)

    def cut(self, polygons: Any, tree: shapely.STRtree) -> tuple[Pieces, Ints]:
        """Pieces of the edges cut by polygons (P,), and the polygon each lies in; `tree` holds the polygons."""
        from dpppsynth.linear_network.mesh import cut

        return cut(self.domain, self.pieces, polygons, tree)


def trace_mesh(
    network: LinearNetwork, *, spacing: float | None = None, shape: tuple[int, int] | None = None
) -> TraceMesh:
    """Right triangles on a regular grid over the network's bounding box; those that no edge runs through are left out.

    Parameters
    ----------
    network : LinearNetwork
        Public domain.
    spacing : float, optional
        Smallest side of a grid cell, in the network's unit.
    shape : (int, int), optional
        Vertices along x and y, at least 2 each; give either `spacing` or `shape`.

    Returns
    -------
    TraceMesh
    """
    instance("network", network, LinearNetwork)
    bounds = around(network)
    nx, ny = settle_shape(bounds, network.unit, spacing, shape)
    vertices, elements = regular_grid(bounds, nx, ny, "triangle")
    finder = Finder(bounds, nx - 1, ny - 1, "triangle", np.arange(len(elements)))
    corners, element, length = _cut(network, bounds, nx - 1, ny - 1, finder)
    kept = np.unique(element)
    renumber = np.full(len(elements), -1)
    renumber[kept] = np.arange(len(kept))
    used, local = np.unique(elements[kept], return_inverse=True)
    return TraceMesh(
        vertices=vertices[used],
        elements=local.reshape(-1, 3),
        kind="triangle",
        domain=network,
        pieces=Pieces(corners, renumber[element], length),
        recipe={"builder": "trace", "shape": [nx, ny]},
        find=Finder(bounds, nx - 1, ny - 1, "triangle", renumber),
    )


def around(network: LinearNetwork) -> tuple[float, float, float, float]:
    """Bounding box whose sides are at least a third of the diameter, lest thin triangles make steep tents."""
    x0, y0, x1, y1 = network.bounds
    least = network.diameter / 3
    dx, dy = (max(0.0, least - side) / 2 for side in (x1 - x0, y1 - y0))
    return x0 - dx, y0 - dy, x1 + dx, y1 + dy


def _cut(
    network: LinearNetwork, bounds: tuple[float, float, float, float], nx: int, ny: int, finder: Finder
) -> tuple[Floats, Ints, Floats]:
    """Pieces of the edges between the grid's lines: their ends (Q, 2, 2) as positions, triangles, and lengths."""
    low, high = np.reshape(bounds, (2, 2))
    corners, element = [], []
    for edge, line in enumerate(network.lines):
        course = shapely.get_coordinates(line)
        along = np.append(0.0, np.cumsum(np.hypot(*np.diff(course, axis=0).T)))
        along *= network.lengths[edge] / along[-1]
        place = (course - low) / (high - low) * (nx, ny)
        lines = np.column_stack([place, place[:, 1] - place[:, 0]])
        for k in range(len(course) - 1):
            share = np.unique(np.concatenate([[0.0, 1.0], *map(_crossings, lines[k], lines[k + 1])]))
            at = along[k] + share * (along[k + 1] - along[k])
            middle = course[k] + (share[:-1] + share[1:])[:, None] / 2 * (course[k + 1] - course[k])
            corners.append(np.column_stack([at[:-1], at[1:]]))
            element.append(np.column_stack([np.full(len(middle), edge), finder(middle)]))
    ends, owner = np.concatenate(corners), np.concatenate(element)
    length = ends[:, 1] - ends[:, 0]
    real = length > SHORTEST * network.diameter
    positions = np.stack([np.repeat(owner[:, :1], 2, axis=1), ends], axis=2)
    return positions[real], owner[real, 1], length[real]


def _crossings(first: float, last: float) -> Floats:
    """Shares of the way from first to last at which whole numbers are passed."""
    if first == last:
        return np.empty(0)
    whole = np.arange(np.ceil(min(first, last)), np.floor(max(first, last)) + 1)
    share = (whole - first) / (last - first)
    return share[(share > 0) & (share < 1)]
