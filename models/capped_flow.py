"""Largest sum of pairwise shares under caps, as a maximum flow through the bipartite double cover.

Points i, j share at most a whole number w_ij, the shares of one person's points add up to at most a cap, and

    2 f = max { sum over i != j of y_ij : 0 <= y_ij <= w_ij,  sum over a person's i of sum_j y_ij <= cap,
                                          sum over a person's j of sum_i y_ij <= cap }.

All numbers are whole, and so is the answer. Three reductions keep the network small and the answer exact
(docs/theory/pair_sums.md): points of one person in one place are one node, as are persons whose points lie alike; pairs
of persons below their caps, and what others may share with such persons, are sums known beforehand; and edges join the
network only while its minimum cut does not cut the whole one in the same weight.
"""

from typing import NamedTuple

import numpy as np
import scipy

from dpppsynth.core.types import Ints
from dpppsynth.spatial.near_pairs import NearPairs, products

# Capacities are 32-bit numbers.
MOST = 2**31 - 1
# Neighbours of a node that enter the network first, at least and at most, by the edges they may make; and the factor
# by which later rounds let more of them in.
NEIGHBOURS, AT_FIRST, MORE = (64, 256), 2**22, 4


class Nodes(NamedTuple):
    """Points of one person in one place.

    Attributes
    ----------
    place, owner, members : (M,) arrays of int
        Number of the place, number of whom the cap holds for, and number of points.
    cap : (A,) array of int
        Caps of the owners.
    """

    place: Ints
    owner: Ints
    members: Ints
    cap: Ints

    @property
    def shared(self) -> bool:
        """Whether an owner has several nodes."""
        return len(self.cap) < len(self.place)

    def part(self, kept: np.ndarray) -> "Nodes":
        """The nodes (M,) that are kept, with their owners numbered anew."""
        owners, owner = np.unique(self.owner[kept], return_inverse=True)
        return Nodes(self.place[kept], owner.astype(np.int64), self.members[kept], self.cap[owners])


def nodes(place: Ints, cap: int, person: Ints | None = None) -> Nodes:
    """Nodes of points (n,) in numbered places, under a cap for every point, or for every person (n,).

    Points with a cap of their own are alike where they share a place, and persons where their points do: together they
    have a multiple of the cap. Nodes are small enough for their capacities.
    """
    if person is None:
        places, count = np.unique(place, return_counts=True)
        most = MOST // cap
        parts = -(-count // most)
        filled = np.full(int(parts.sum()), most, dtype=np.int64)
        filled[np.cumsum(parts) - 1] = count - (parts - 1) * most
        return Nodes(np.repeat(places, parts), np.arange(len(filled)), filled, filled * cap)
    pairs, count = np.unique(np.column_stack([person, place]), axis=0, return_counts=True)
    start = np.flatnonzero(np.diff(pairs[:, 0], prepend=pairs[0, 0] - 1))
    length = np.diff(np.append(start, len(pairs)))
    example, alike = _alike(np.column_stack([pairs[:, 1], count]), start, length)
    parts = -(-alike // (MOST // cap))
    example, size = np.repeat(example, parts), np.repeat(alike // parts, parts)
    # What a division leaves over goes to the first parts of its group.
    size += np.arange(len(size)) - np.repeat(np.cumsum(parts) - parts, parts) < np.repeat(alike % parts, parts)
    length = length[example]
    row = np.repeat(start[example] - (np.cumsum(length) - length), length) + np.arange(length.sum())
    owner = np.repeat(np.arange(len(example)), length)
    return Nodes(pairs[row, 1], owner, count[row] * size[owner], size * cap)


def _alike(points: Ints, start: Ints, length: Ints) -> tuple[Ints, Ints]:
    """The first of all persons whose points (k, 2) lie alike, and their numbers, by kind."""
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(points[a : a + k].tobytes(), len(kinds)) for a, k in zip(start, length, strict=True)]
    _, first, number = np.unique(kind, return_index=True, return_counts=True)
    return first.astype(np.int64), number.astype(np.int64)


def capped_total(points: Nodes, pairs: NearPairs, weight: Ints, same: int) -> int:
    """Largest sum of shares over ordered pairs of points, `2 f` in the module's formula.

    Parameters
    ----------
    points : Nodes
    pairs : NearPairs
        Of places.
    weight : (k,) array of int
        Share of two points of the places of each pair.
    same : int
        Share of two points of one place.
    """
    number = int(points.place.max()) + 1
    both = (np.concatenate(pairs[:2]), np.concatenate([pairs.second, pairs.first]))
    shares = scipy.sparse.csr_array((np.tile(weight, 2), both), shape=(number, number), dtype=np.int64)
    alike = np.arange(number)
    shares = shares + scipy.sparse.csr_array(
        (np.full(number, same, dtype=np.int64), (alike, alike)), shape=(number, number)
    )

    def near(chosen: np.ndarray) -> Ints:
        """(M,) largest sum of a node's point with all chosen nodes' points, itself included."""
        count = np.zeros(number, dtype=np.int64)
        np.add.at(count, points.place[chosen], points.members[chosen])
        return np.asarray(shares @ count, dtype=np.int64)[points.place]

    free = _free(points, near(np.full(len(points.place), True)) - same)
    pool = near(free)
    settled = int((points.members * (pool - same))[free].sum())
    if free.all():
        return settled
    tight = points.part(~free)
    most = tight.cap[tight.owner]
    # Twice: from a node to those below their caps, and from them to the node.
    return settled + _flow(tight, np.minimum(_times(tight.members, pool[~free], most), most), shares, same)


def _free(points: Nodes, reach: Ints) -> np.ndarray:
    """(M,) whether a node's owner cannot meet the cap, where a node's point shares `reach` (M,) at most."""
    largest = points.cap[points.owner]
    total = np.zeros(len(points.cap), dtype=np.int64)
    np.add.at(total, points.owner, _times(points.members, reach, largest))
    return (total <= points.cap)[points.owner]


def _times(count: Ints, each: Ints, most: Ints) -> Ints:
    """Products, or one more than `most` where they exceed it: beyond that they are not needed, and might overflow."""
    fits = each <= most // np.maximum(count, 1)
    return np.where(fits, count * np.where(fits, each, 0), most + 1)


class _Network:
    """The network of nodes with caps, to which edges between nodes are added."""

    def __init__(self, points: Nodes, pool: Ints, shares: "scipy.sparse.csr_array", same: int) -> None:
        self.points, self.same, self.count = points, same, len(points.place)
        owners = len(points.cap) if points.shared else 0
        self.size = 2 + 2 * (self.count + owners)
        self.fixed = self._fixed(pool)
        self.order = np.argsort(points.place, kind="stable")
        self.row, self.column, self.value = self._nearest_first(shares)
        # Edges between nodes, each as one number.
        self.edges: Ints = np.empty(0, dtype=np.int64)
        self.shares: Ints = np.empty(0, dtype=np.int64)

    def _fixed(self, pool: Ints) -> tuple[Ints, Ints, Ints]:
        """Tails, heads and capacities of edges from the source and to the sink, which are numbered 0 and 1."""
        points, count = self.points, self.count
        left, right = 2 + np.arange(count), 2 + count + np.arange(count)
        most = points.cap[points.owner]
        fixed = [(np.zeros_like(right), right, pool), (left, np.ones_like(left), pool)]
        if points.shared:
            first, last = np.split(np.arange(2 + 2 * count, self.size), 2)
            fixed += [(np.zeros_like(first), first, points.cap), (last, np.ones_like(last), points.cap)]
            fixed += [(first[points.owner], left, most), (right, last[points.owner], most)]
        else:
            fixed += [(np.zeros_like(left), left, most), (right, np.ones_like(right), most)]
        tail, head, capacity = (np.concatenate(each) for each in zip(*fixed, strict=True))
        return tail, head, capacity

    def _nearest_first(self, shares: "scipy.sparse.csr_array") -> tuple[Ints, Ints, Ints]:
        """Pairs of places that have nodes, with their shares: by the first place, and nearest seconds first."""
        entries = shares.tocoo()
        held = np.zeros(shares.shape[0], dtype=bool)
        held[self.points.place] = True
        kept = held[entries.row] & held[entries.col]
        row, column, value = entries.row[kept], entries.col[kept], entries.data[kept]
        # One key of both: a share is at most that of one place.
        sort = np.argsort(row.astype(np.int64) * (self.same + 1) - value, kind="stable")
        return row[sort], column[sort], value[sort]

    def _members(self, chosen: np.ndarray) -> tuple[Ints, Ints, Ints]:
        """Chosen nodes in the order of their places, and for every place where its own begin and how many there are."""
        members = self.order[chosen[self.order]]
        place = self.points.place[members]
        size = int(self.points.place.max()) + 1
        count = np.bincount(place, minlength=size)
        return members, np.cumsum(count) - count, count

    def add(self, left: np.ndarray, right: np.ndarray, most: int) -> bool:
        """Add edges between chosen nodes (M,) and (M,), about `most` from each; False where all are there."""
        members, start, count = self._members(left)
        others, other_start, other_count = self._members(right)
        used = (count[self.row] > 0) & (other_count[self.column] > 0)
        row, column, value = self.row[used], self.column[used], self.value[used]
        wanted = int((count[row] * other_count[column]).sum())
        one, two = np.divmod(self.edges, self.count)
        known = left[one] & right[two]
        if wanted == int(known.sum()):
            return False
        ahead = np.cumsum(other_count[column])
        new = np.diff(row, prepend=-1) > 0
        ahead -= other_count[column]
        ahead -= np.repeat(ahead[new], np.diff(np.append(np.flatnonzero(new), len(row))))
        taken = np.clip(most - ahead, 0, other_count[column])
        edges, values = [self.edges], [self.shares]
        for k, a, b in products(start[row], count[row], np.zeros_like(row), taken):
            turn = (b + a - start[row[k]]) % other_count[column[k]]
            edges.append(members[a] * self.count + others[other_start[column[k]] + turn])
            values.append(value[k])
        self.edges, first = np.unique(np.concatenate(edges), return_index=True)
        self.shares = np.concatenate(values)[first]
        return True

    def solve(self) -> tuple[int, np.ndarray, np.ndarray]:
        """The maximum flow, and which nodes (M,), (M,) of both sides are on the source's side of its cut."""
        points = self.points
        (one, two), value = np.divmod(self.edges, self.count), self.shares
        most = np.minimum(points.cap[points.owner[one]], points.cap[points.owner[two]])
        # A point has no share with itself.
        partners = points.members[two] - (one == two)
        between = np.minimum(_times(points.members[one], np.minimum(_times(partners, value, most), most), most), most)
        tail, head, capacity = (
            np.concatenate(each) for each in zip(self.fixed, (2 + one, 2 + self.count + two, between), strict=True)
        )
        graph = scipy.sparse.csr_array((capacity.astype(np.int32), (tail, head)), shape=(self.size, self.size))
        total, reached = _saturated(graph)
        return total, reached[2 : 2 + self.count], reached[2 + self.count : 2 + 2 * self.count]


def _saturated(graph: "scipy.sparse.csr_array") -> tuple[int, np.ndarray]:
    """Value of a maximum flow from node 0 to 1, and which nodes are on the source's side of its cut."""
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    total, left = 0, graph
    reached = np.full(graph.shape[0], True)
    while reached[1]:
        flow = scipy.sparse.csr_array(maximum_flow(left, 0, 1).flow)
        # Edge by edge a flow has 32 bits, and all of it may have more.
        total += int(flow.data[flow.indptr[0] : flow.indptr[1]].astype(np.int64).sum())
        left = scipy.sparse.csr_array(left - flow)
        left.eliminate_zeros()
        reached = np.zeros(graph.shape[0], dtype=bool)
        reached[breadth_first_order(left, 0, return_predecessors=False)] = True
    return total, reached


def _flow(points: Nodes, pool: Ints, shares: "scipy.sparse.csr_array", same: int) -> int:
    """Maximum flow of the whole network, found in parts of it."""
    network = _Network(points, pool, shares, same)
    left, right = np.full(len(points.place), True), np.full(len(points.place), True)
    most = int(np.clip(AT_FIRST // len(points.place), *NEIGHBOURS))
    total = 0
    while network.add(left, right, most):
        total, left, reached = network.solve()
        right, most = ~reached, most * MORE
    return total
