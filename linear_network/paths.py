"""Shortest paths on a linear network, between any points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

if TYPE_CHECKING:
    from dpppsynth.linear_network.network import LinearNetwork

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Numbers held in memory at a time.
BLOCK = 2**23


def vertex_distances(network: LinearNetwork, sources: Ints, limit: float = np.inf) -> Floats:
    """(k, V) lengths of the shortest paths from vertices (k,) to all; infinite beyond the limit."""
    return np.asarray(dijkstra(network.adjacency, directed=False, indices=sources, limit=limit), dtype=np.float64)


def to_ends(network: LinearNetwork, positions: Floats) -> tuple[Ints, Floats]:
    """Vertices (n, 2) at the ends of each position's edge, and the distances (n, 2) to them along it."""
    edge = positions[:, 0].astype(np.int64)
    along = positions[:, 1]
    return network.edges[edge], np.column_stack([along, network.lengths[edge] - along])


def distances(network: LinearNetwork, a: Floats, b: Floats) -> Floats:
    """(n, m) lengths of the shortest paths between positions (n, 2) and (m, 2)."""
    ends, left = to_ends(network, b)
    out = np.empty((len(a), len(b)))
    for part, to_vertices in from_positions(network, a):
        path = np.minimum(to_vertices[:, ends[:, 0]] + left[:, 0], to_vertices[:, ends[:, 1]] + left[:, 1])
        same = a[part, None, 0] == b[None, :, 0]
        direct = np.where(same, np.abs(a[part, None, 1] - b[None, :, 1]), np.inf)
        out[part] = np.minimum(path, direct)
    return out


def from_positions(network: LinearNetwork, positions: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Blocks of positions: their numbers (k,), and the lengths (k, V) of the shortest paths to all vertices."""
    ends, left = to_ends(network, positions)
    # Positions on one edge share its ends, so they come together.
    order = np.argsort(positions[:, 0], kind="stable")
    for part in np.array_split(order, max(1, -(-len(order) * len(network.vertices) // BLOCK))):
        vertex, place = np.unique(ends[part], return_inverse=True)
        known = vertex_distances(network, vertex)
        place = place.reshape(-1, 2)
        yield part, np.minimum(known[place[:, 0]] + left[part, :1], known[place[:, 1]] + left[part, 1:])


def diameter(network: LinearNetwork) -> float:
    """Length that no shortest path between two points of the network exceeds.

    The shortest of the four paths through the ends of two edges is at most their average: for points on edges of
    lengths e, f that is `(e + f) / 2` plus the average distance between their ends. Equal to the diameter on trees.
    """
    u, v = network.edges.T
    length, vertex = network.lengths, np.arange(len(network.vertices))
    worst, step = 0.0, max(1, BLOCK // len(vertex))
    for start in range(0, len(u), step):
        part = slice(start, start + step)
        ends = vertex_distances(network, u[part]) + vertex_distances(network, v[part])
        other = (ends[:, u] + ends[:, v]) / 4 + (length[part, None] + length) / 2
        # Two points of one edge are joined along it, or around through its ends.
        within = (length[part] + np.take_along_axis(ends, v[part, None], axis=1)[:, 0]) / 2
        rows = np.arange(len(within))
        other[rows, start + rows] = within
        worst = max(worst, float(other.max()))
    return worst
