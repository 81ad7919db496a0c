"""Shortest paths between any points of a linear network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.skeleton import Skeleton

# Numbers held in memory at a time.
BLOCK = 2**23


def vertex_distances(adjacency: scipy.sparse.csr_array, sources: Ints, limit: float = np.inf) -> Floats:
    """(k, V) lengths of the shortest paths from vertices (k,) to all, along edges; infinite beyond the limit."""
    from scipy.sparse.csgraph import dijkstra

    # The matrix is symmetric: taken for that of a directed graph it is searched once, not twice.
    return np.asarray(dijkstra(adjacency, directed=True, indices=sources, limit=limit), dtype=np.float64)


def edge_numbers(positions: Floats) -> Ints:
    """(n,) edges of positions (n, 2); averages of positions on one edge may have lost a rounding error."""
    return np.rint(positions[:, 0]).astype(np.int64)


def to_ends(network: Skeleton, positions: Floats) -> tuple[Ints, Floats]:
    """Vertices (n, 2) at the ends of each position's edge, and the distances (n, 2) to them along it."""
    edge = edge_numbers(positions)
    along = positions[:, 1]
    return network.edges[edge], np.column_stack([along, network.lengths[edge] - along])


def distances(network: Skeleton, a: Floats, b: Floats) -> Floats:
    """(n, m) lengths of the shortest paths between positions (n, 2) and (m, 2)."""
    ends, left = to_ends(network, b)
    out = np.empty((len(a), len(b)))
    for block, to_vertices in from_positions(network, a):
        for rows in np.array_split(np.arange(len(block)), -(-len(block) * len(b) // BLOCK) or 1):
            part, known = block[rows], to_vertices[rows]
            path = np.minimum(known[:, ends[:, 0]] + left[:, 0], known[:, ends[:, 1]] + left[:, 1])
            same = a[part, None, 0] == b[None, :, 0]
            direct = np.where(same, np.abs(a[part, None, 1] - b[None, :, 1]), np.inf)
            out[part] = np.minimum(path, direct)
    return np.minimum(out, out.T) if a is b else out


def from_positions(network: Skeleton, positions: Floats, limit: float = np.inf) -> Iterator[tuple[Ints, Floats]]:
    """Blocks of positions: their numbers (k,), and the lengths (k, V) of the shortest paths to all vertices.

    Of paths longer than the limit only that is known: their lengths come out too large, or infinite.
    """
    ends, left = to_ends(network, positions)
    # Positions on one edge share its ends, so they come together.
    order = np.argsort(positions[:, 0], kind="stable")
    for part in np.array_split(order, max(1, -(-len(order) * len(network.vertices) // BLOCK))):
        vertex, place = np.unique(ends[part], return_inverse=True)
        known = vertex_distances(network.adjacency, vertex, limit)
        place = place.reshape(-1, 2)
        yield part, np.minimum(known[place[:, 0]] + left[part, :1], known[place[:, 1]] + left[part, 1:])


def diameter(network: Skeleton) -> float:
    """Length that no shortest path between two points of the network exceeds.

    The shortest of the four paths through the ends of two edges is at most their average: for points on edges of
    lengths e, f that is `(e + f) / 2` plus the average distance between their ends. Equal to the diameter on trees.
    """
    u, v = network.edges.T
    length, centre = network.lengths, _from_centre(network)
    # Two edges are no farther apart than through the centre, so that the search may end on its way inwards.
    reach = (centre[u] + centre[v] + length) / 2
    order = np.argsort(-reach, kind="stable")
    worst, step = 0.0, max(1, min(64, BLOCK // len(u)))
    for start in range(0, len(u), step):
        part = order[start : start + step]
        if 2 * reach[part[0]] <= worst:
            break
        near, place = np.unique(network.edges[part], return_inverse=True)
        known, place = vertex_distances(network.adjacency, near), place.reshape(-1, 2)
        ends = known[place[:, 0]] + known[place[:, 1]]
        other = (ends[:, u] + ends[:, v]) / 4 + (length[part, None] + length) / 2
        # Two points of one edge are joined along it, or around through its ends.
        rows = np.arange(len(part))
        other[rows, part] = (length[part] + ends[rows, v[part]]) / 2
        worst = max(worst, float(other.max()))
    return worst


def _from_centre(network: Skeleton) -> Floats:
    """(V,) distances from a vertex that is far from none: nearest to all of the farthest ones met so far."""
    far = vertex_distances(network.adjacency, np.array([0]))
    for _ in range(8):
        centre = vertex_distances(network.adjacency, np.array([np.argmin(far.max(axis=0))]))
        far = np.concatenate([far, vertex_distances(network.adjacency, np.array([np.argmax(centre)]))])
    return np.asarray(centre[0])
