"""Places at whole steps along the edges of a network, and pairs of them that are near along streets.

Lengths are whole numbers of a unit that is a small part of a step: an edge's is rounded once, from the public network,
and a point's offset once, from that point alone. Paths are sums of whole numbers below 2^53, which floating-point
numbers add exactly in any order, so the distance of two places depends on these two and the network alone.
"""

import numpy as np

from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import BLOCK, edge_numbers
from dpppsynth.linear_network.skeleton import links
from dpppsynth.spatial.near_pairs import NearPairs, products

# Units of a step.
UNITS = 2**16


class StreetPlaces:
    """Places on a network at whole steps of each edge; `step` is the length between two of them."""

    def __init__(self, network: LinearNetwork, step: float) -> None:
        self.step, self.edges = step, network.edges
        # No edge is without length: the graph would lose it.
        self.lengths: Ints = np.maximum(np.rint(network.lengths / step * UNITS), 1).astype(np.int64)
        self.graph = links(len(network.vertices), network.edges, self.lengths.astype(np.float64))

    def places(self, positions: Floats) -> Ints:
        """(n, 2) edge and offset in units of positions (n, 2), each rounded on its own to a whole step."""
        edge = edge_numbers(positions)
        offset = np.rint(positions[:, 1] / self.step).astype(np.int64) * UNITS
        return np.column_stack([edge, np.clip(offset, 0, self.lengths[edge])])

    def near(self, places: Ints, reach: int) -> NearPairs:
        """Pairs of different places (k, 2) nearer than `reach` steps along streets, with distances in units."""
        limit = reach * UNITS
        found = [*self._along(places, limit), *self._through(places, limit)]
        return NearPairs.joined(found).nearest()

    def _along(self, places: Ints, limit: int) -> list[NearPairs]:
        """Pairs on one edge, along it."""
        order = np.lexsort((places[:, 1], places[:, 0]))
        edge, offset = places[order].T
        # One increasing number, so that places of other edges are out of reach.
        line = edge * (int(self.lengths.max()) + limit) + offset
        start = np.arange(1, len(line) + 1)
        count = np.searchsorted(line, line + limit, side="left") - start
        here = np.arange(len(line))
        found = []
        for row, _, b in products(here, np.ones_like(here), start, count):
            one, two = order[row], order[b]
            found.append(NearPairs(np.minimum(one, two), np.maximum(one, two), line[b] - line[row]))
        return found

    def _through(self, places: Ints, limit: int) -> list[NearPairs]:
        """Pairs joined through the ends of their edges."""
        edge, offset = places.T
        vertex = self.edges[edge].T.ravel()
        left = np.concatenate([offset, self.lengths[edge] - offset])
        member = np.tile(np.arange(len(places)), 2)
        close = np.flatnonzero(left < limit)
        close = close[np.argsort(vertex[close], kind="stable")]
        left, member = left[close], member[close]
        known, start, count = np.unique(vertex[close], return_index=True, return_counts=True)
        found = []
        for one, two, between in self._between(known, limit):
            for row, a, b in products(start[one], count[one], start[two], count[two]):
                apart = left[a] + between[row] + left[b]
                near = (apart < limit) & (member[a] != member[b])
                first, second = member[a][near], member[b][near]
                found.append(NearPairs(np.minimum(first, second), np.maximum(first, second), apart[near]))
        return found

    def _between(self, vertices: Ints, limit: int) -> list[tuple[Ints, Ints, Ints]]:
        """Pairs of vertices (k,) nearer than a limit, by their places in the list, with distances; each pair once."""
        from scipy.sparse.csgraph import dijkstra

        found = []
        for part in np.array_split(np.arange(len(vertices)), max(1, -(-len(vertices) * self.graph.shape[0] // BLOCK))):
            paths = dijkstra(self.graph, directed=True, indices=vertices[part], limit=float(limit))
            row, column = np.nonzero(paths[:, vertices] < limit)
            once = part[row] <= column
            row, column = row[once], column[once]
            found.append((part[row], column, paths[row, vertices[column]].astype(np.int64)))
        return found
