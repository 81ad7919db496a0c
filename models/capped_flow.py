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

from dpppsynth.core.types import Ints
from dpppsynth.spatial.near_pairs import NearPairs

# Edges of a node that enter the network first, about; and the factor by which later rounds let more of them in.
EDGES, MORE = 96, 4


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

    def part(self, kept: np.ndarray) -> "Nodes":
        """The nodes (M,) that are kept, by their places, with their owners numbered anew."""
        chosen = np.flatnonzero(kept)
        chosen = chosen[np.argsort(self.place[chosen], kind="stable")]
        owners, owner = np.unique(self.owner[chosen], return_inverse=True)
        return Nodes(self.place[chosen], owner.astype(np.int64), self.members[chosen], self.cap[owners])


def nodes(place: Ints, cap: int, person: Ints | None = None) -> Nodes:
    """Nodes of points (n,) in numbered places, under a cap for every point, or for every person (n,).

    Points with a cap of their own are alike where they share a place, and persons where their points do: together they
    have a multiple of the cap.
    """
    if person is None:
        places, count = np.unique(place, return_counts=True)
        return Nodes(places, np.arange(len(places)), count, count * cap)
    pairs, count = np.unique(np.column_stack([person, place]), axis=0, return_counts=True)
    start = np.flatnonzero(np.diff(pairs[:, 0], prepend=pairs[0, 0] - 1))
    length = np.diff(np.append(start, len(pairs)))
    example, alike = _alike(np.column_stack([pairs[:, 1], count]), start, length)
    length = length[example]
    row = np.repeat(start[example] - (np.cumsum(length) - length), length) + np.arange(length.sum())
    owner = np.repeat(np.arange(len(example)), length)
    return Nodes(pairs[row, 1], owner, count[row] * alike[owner], alike * cap)


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
        Share of two points of the places of each pair, at most that of two points of one place.
    same : int
        Share of two points of one place.
    """
    from dpppsynth.models.pair_network import largest_sums

    number = int(points.place.max()) + 1
    if not 0 <= weight.min(initial=0) <= weight.max(initial=0) <= same:
        msg = "weight: shares are from 0 to that of two points in one place."
        raise ValueError(msg)
    first, second, share = (np.ascontiguousarray(each, dtype=np.int32) for each in (*pairs[:2], weight))

    def near(chosen: np.ndarray) -> Ints:
        """(M,) largest sum of a node's point with all chosen nodes' points, itself included."""
        count = np.zeros(number, dtype=np.int64)
        np.add.at(count, points.place[chosen], points.members[chosen])
        return np.asarray(largest_sums(first, second, share, same, count)[points.place])

    free = _total(points, near(np.full(len(points.place), True)) - same) <= points.cap
    below = free[points.owner]
    pool = near(below)
    settled = int((points.members * (pool - same))[below].sum())
    # What caps leave room for when those below theirs have had all they can; twice: from a node to them and from them.
    room = np.where(free, 0, np.maximum(points.cap - _total(points, pool), 0))
    settled += 2 * int((points.cap - room)[~free].sum())
    if not room.any():
        return settled
    tight = points._replace(cap=room).part(room[points.owner] > 0)
    return settled + _flow(tight, (first, second, share), same, number)


def _total(points: Nodes, each: Ints) -> Ints:
    """(A,) sums of numbers (M,) over all points of an owner, or more than the cap where they exceed it."""
    most = points.cap[points.owner]
    # Beyond the cap products are not needed, and might overflow.
    fits = each <= most // points.members
    total = np.zeros(len(points.cap), dtype=np.int64)
    np.add.at(total, points.owner, np.where(fits, points.members * np.where(fits, each, 0), most + 1))
    return total


def _flow(points: Nodes, pairs: tuple[np.ndarray, np.ndarray, np.ndarray], same: int, places: int) -> int:
    """Maximum flow of a network of nodes in the order of their places, which gets edges as long as they may matter."""
    from dpppsynth.models import pair_network as network

    owners, owner, room = len(points.cap), points.owner, points.cap
    node = np.searchsorted(points.place, np.arange(places + 1))
    size = np.diff(node)
    # Vertices that the source reaches, on the left and on the right: of no network at all, only left ones.
    reached, most = np.arange(2 * owners) < owners, EDGES
    ends, capacity, flow = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    into, out = room.copy(), room.copy()
    start, arcs = network.arcs_by_owner(ends, owner, owners)
    while into.any():
        left, right = np.full((2, places), False)
        left[points.place[reached[owner]]] = right[points.place[~reached[owners + owner]]] = True
        chosen = network.nearest_first(*pairs, same, left, right)
        # Every edge is one of the first for a node; what is not written to takes no memory.
        count = min(most * len(owner), int(size[chosen[0]] @ size[chosen[1]]))
        more, added = np.empty(count, dtype=np.int64), np.empty(2 * count, dtype=np.int32)
        known = *chosen, node, owner, points.members, room, reached, most, start, arcs, ends
        count, further = network.new_edges(*known, more, added)
        if count:
            ends, capacity = np.concatenate([ends, added[: 2 * count]]), np.concatenate([capacity, more[:count]])
            flow = np.concatenate([flow, np.zeros(2 * count, dtype=np.int64)])
            start, arcs = network.arcs_by_owner(ends, owner, owners)
            edges = start, arcs, ends, owner, capacity, flow, into, out
            # First those that have the fewest to choose from: others find what they lack on short ways.
            choice = np.bincount(owner[ends], weights=np.repeat(capacity, 2), minlength=owners) / room
            network.fill(np.argsort(choice), *edges)
            reached, _ = network.saturate(*edges)
        elif not further:
            break
        most *= MORE
    if not network.is_largest(ends, owner, capacity, flow, room, reached):
        msg = "a maximum flow is not one; this is an error of this package, please report it."
        raise RuntimeError(msg)
    return int(flow.sum())
