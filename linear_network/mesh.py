"""Meshes of networks: segments of edges with linear basis functions, or with one number each, and their overlaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
import shapely
from shapely.ops import substring

from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.single_entry_cache import SingleEntryCache
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.resistance import resistances
from dpppsynth.linear_network.shortest_paths import distances, edge_numbers
from dpppsynth.linear_network.skeleton import links
from dpppsynth.spatial.domains import LARGEST
from dpppsynth.spatial.mesh import Mesh, Pieces

# Vertices beyond which a mesh would fill the memory of a small machine.
MOST_VERTICES = 1_000_000


def network_mesh(network: LinearNetwork, resolution: float) -> NetworkMesh:
    """Mesh whose segments are no longer than `resolution`.

    Parameters
    ----------
    network : LinearNetwork
        Public domain.
    resolution : float
        Longest segment, in the network's unit; every edge is cut into as few equal ones as that allows, a loop into at
        least two.

    Returns
    -------
    NetworkMesh
        Its first vertices are the network's.

    Examples
    --------
    >>> street = LinearNetwork([[0, 0], [100, 0], [100, 30]], [[0, 1], [1, 2]])
    >>> network_mesh(street, 50)
    Mesh(4 vertices, 3 segments)
    """
    instance("network", network, LinearNetwork)
    rule = f"be a positive length ({network.unit})"
    resolution = float(positive("resolution", resolution, rule=rule, most=LARGEST, remedy="for instance 50.0"))
    # The small allowance keeps an edge of 150 at three segments of 50 in spite of rounding.
    loop = network.edges[:, 0] == network.edges[:, 1]
    with np.errstate(over="ignore"):
        count = np.maximum(np.ceil(network.lengths / resolution * (1 - 1e-9)), np.where(loop, 2, 1))
    if count.sum() > MOST_VERTICES:
        msg = f"resolution: {resolution:g} needs more than {MOST_VERTICES} segments; take a larger one."
        raise InputError(msg)
    return NetworkMesh(network, count.astype(np.int64), {"builder": "network", "resolution": resolution})


class StreetMesh(Mesh):
    """A mesh whose integrals run along the edges of a network."""

    domain: LinearNetwork

    def shares(self, tents: Mesh) -> scipy.sparse.csr_array:
        """Sparse (J, V) integrals of products of two meshes' basis functions, over those of this one's alone.

        A tent may lie between two vertices, where its values at the vertices would not see it. Over parts of edges on
        which both are linear, so exact. A vertex that the network does not reach has no column.
        """
        positions, _, weight = common(self.pieces, tents.pieces).quadrature()
        product = tents.basis(positions).T @ scipy.sparse.diags_array(weight) @ self.basis(positions)
        measure = np.where(self.measure > 0, self.measure, np.inf)
        return (product @ scipy.sparse.diags_array(1 / measure)).tocsr()

    def cut(self, polygons: Any, tree: shapely.STRtree) -> tuple[Pieces, Ints]:
        pieces = self.pieces
        first, last = pieces.corners[:, 0], pieces.corners[:, 1]
        ends = zip(self.domain.lines[edge_numbers(first)], first[:, 1], last[:, 1], strict=True)
        course = np.array([substring(line, a, b) for line, a, b in ends], dtype=object)
        piece, polygon = tree.query(course, predicate="intersects")
        parts, owner = shapely.get_parts(shapely.intersection(course[piece], polygons[polygon]), return_index=True)
        lines = shapely.get_type_id(parts) == shapely.GeometryType.LINESTRING
        parts, piece, polygon = parts[lines], piece[owner[lines]], polygon[owner[lines]]
        at = [shapely.line_locate_point(course[piece], shapely.get_point(parts, k)) for k in (0, -1)]
        along = first[piece, 1, None] + np.sort(np.column_stack(at), axis=1)
        corners = np.stack([np.repeat(first[piece, :1], 2, axis=1), along], axis=2)
        return Pieces(corners, pieces.element[piece], along[:, 1] - along[:, 0]), polygon


@dataclass(frozen=True, eq=False, repr=False)
class NetworkMesh(StreetMesh):
    """Segments of a network's edges.

    Attributes
    ----------
    domain : LinearNetwork
    count : (E,) array
        Number of equal segments of each edge.
    recipe : dict
    """

    domain: LinearNetwork
    count: Ints
    recipe: dict[str, Any]
    kind: str = field(default="segment", init=False)
    smoothest_power: ClassVar[float] = 1.0

    @cached_property
    def edge(self) -> Ints:
        """(T,) edge of each segment."""
        return np.repeat(np.arange(len(self.count)), self.count)

    @cached_property
    def _rank(self) -> Ints:
        """(T,) number of each segment on its edge, from 0."""
        return np.arange(len(self.edge)) - self._first[self.edge]

    @cached_property
    def _first(self) -> Ints:
        """(E,) number of each edge's first segment."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def start(self) -> Floats:
        """(T,) distance along its edge at which each segment begins."""
        return self.domain.lengths[self.edge] * self._rank / self.count[self.edge]

    @cached_property
    def end(self) -> Floats:
        """(T,) distance along its edge at which each segment ends."""
        return self.domain.lengths[self.edge] * (self._rank + 1) / self.count[self.edge]

    @cached_property
    def element_parts(self) -> Any:
        ends = [self.domain.coordinates(np.column_stack([self.edge, at])) for at in (self.start, self.end)]
        return shapely.linestrings(np.stack(ends, axis=1))

    @cached_property
    def elements(self) -> Ints:  # type: ignore[override]
        """(T, 2) vertices of each segment, in the direction of its edge."""
        inner = len(self.domain.vertices) + np.cumsum(self._rank > 0) - 1
        last = self._rank + 1 == self.count[self.edge]
        first = np.where(self._rank == 0, self.domain.edges[self.edge, 0], inner)
        return np.column_stack([first, np.where(last, self.domain.edges[self.edge, 1], inner + 1)])

    @cached_property
    def positions(self) -> Floats:
        """(V, 2) positions of the vertices, those of the network on the lowest of their edges."""
        out = np.empty((int(self.elements.max()) + 1, 2))
        # In reverse order, so that the lowest edge is assigned last.
        for vertex, at in ((self.elements[::-1, 1], self.end[::-1]), (self.elements[::-1, 0], self.start[::-1])):
            out[vertex] = np.column_stack([self.edge[::-1], at])
        return out

    @cached_property
    def vertices(self) -> Floats:  # type: ignore[override]
        """(V, 2) coordinates of the vertices."""
        inner = self.domain.coordinates(self.positions[len(self.domain.vertices) :])
        return np.concatenate([self.domain.vertices, inner])

    @cached_property
    def pieces(self) -> Pieces:  # type: ignore[override]
        """The segments themselves."""
        ends = [np.column_stack([self.edge, at]) for at in (self.start, self.end)]
        return Pieces(np.stack(ends, axis=1), np.arange(len(self.edge)), self.end - self.start)

    def dual_cells(self) -> Any:
        """(V,) shapely lines: the halves of the segments at each vertex, which no other is nearer to by path."""
        middle = (self.start + self.end) / 2
        return self._courses([self.start, middle], [middle, self.end])

    def _courses(self, starts: list[Floats], ends: list[Floats]) -> Any:
        """(V,) parts of edges, by the vertex that has them: between distances (k, T) along the edges of segments."""
        lines = self.domain.lines[self.edge]
        parts = [substring(*each) for a, b in zip(starts, ends, strict=True) for each in zip(lines, a, b, strict=True)]
        owner = self.elements.T.ravel()
        order = np.argsort(owner, kind="stable")
        return shapely.multilinestrings(np.array(parts, dtype=object)[order], indices=owner[order])

    @cached_property
    def metric(self) -> Floats:
        return resistances(self.domain, self.positions, self.positions)

    @cached_property
    def path_lengths(self) -> Floats:
        """(V, V) lengths of the shortest paths between the vertices."""
        return distances(self.domain, self.positions, self.positions)

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """(V, V) symmetric lengths of the shortest segment between each two joined vertices."""
        return links(len(self.vertices), self.elements, self.element_measure)

    @cached_property
    def last_diffusion(self) -> SingleEntryCache[TiledMatrix]:
        """The last matrix of heat flow along these segments, by its bandwidth."""
        return SingleEntryCache()

    @property
    def coordinate_size(self) -> float:
        """Length of the longest edge: basis values come from distances along edges."""
        return float(self.domain.lengths.max())

    def locate(self, positions: Floats) -> Ints:
        """(n,) segment holding each position; one on the border of two belongs to the one that begins there."""
        edge = edge_numbers(positions)
        count = self.count[edge]
        rank = np.floor(positions[:, 1] / self.domain.lengths[edge] * count).astype(np.int64)
        return self._first[edge] + np.clip(rank, 0, count - 1)

    def weights(self, element: Ints, positions: Floats) -> Floats:
        share = (positions[:, 1] - self.start[element]) / (self.end - self.start)[element]
        return np.column_stack([1 - share, share])

    @cached_property
    def gradients(self) -> Floats:
        slope = 1 / (self.end - self.start)
        return np.stack([-slope, slope], axis=1)[:, None, :, None]


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


@dataclass(frozen=True, eq=False, repr=False)
class SegmentCells(NetworkMesh):
    """A network mesh whose T segments have one number each, in place of two ends.

    For fields alone: a street need not hold what the one that crosses it does. Nothing is measured on it, since masses
    that jump have no slope; its recipe is that of the segments.
    """

    @classmethod
    def of(cls, mesh: NetworkMesh) -> SegmentCells:
        """The segments of a network mesh."""
        return cls(mesh.domain, mesh.count, mesh.recipe)

    @cached_property
    def segments(self) -> NetworkMesh:
        """The segments with their ends, by which they are joined."""
        return NetworkMesh(self.domain, self.count, self.recipe)

    @cached_property
    def elements(self) -> Ints:  # type: ignore[override]
        """(T, 1) the segments' own numbers."""
        return np.arange(len(self.edge))[:, None]

    @cached_property
    def positions(self) -> Floats:
        return np.column_stack([self.edge, (self.start + self.end) / 2])

    @cached_property
    def vertices(self) -> Floats:  # type: ignore[override]
        """(T, 2) coordinates of the segments' middles."""
        return self.domain.coordinates(self.positions)

    def dual_cells(self) -> Any:
        """(T,) shapely lines: the segments themselves."""
        return self._courses([self.start], [self.end])

    def weights(self, element: Ints, positions: Floats) -> Floats:
        return np.ones((len(element), 1))

    @property
    def gradients(self) -> Floats:
        """Refused: there is no slope between segments."""
        msg = "mesh: tents need functions that do not jump; take a network_mesh or a trace_mesh."
        raise InputError(msg)
