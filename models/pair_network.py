"""Compiled loops of capped sums over pairs: largest sums, edges of a network, a maximum flow and its proof.

A network has a left and a right vertex for each of A owners, with room for flow from the source into left vertices (A,)
and from right ones to the sink (A,). An edge e joins the two nodes `ends[2 e]` and `ends[2 e + 1]`: it is one arc from
the first one's left vertex to the other's right one, and one the other way round, arc `2 e + 1`, each with the edge's
capacity. Nodes belong to owners.

Importing this module imports numba, so that it is imported where it is used.
"""

import numpy as np

from dpppsynth.core.types import Ints
from dpppsynth.core.workers import compiled


@compiled
def largest_sums(first: Ints, second: Ints, share: Ints, same: int, count: Ints) -> Ints:
    """(P,) sums of shares of a point at each place with points (P,) at all places, those at its own included."""
    total = same * count
    for k in range(len(first)):
        a, b = first[k], second[k]
        total[a] += share[k] * count[b]
        total[b] += share[k] * count[a]
    return total


@compiled
def nearest_first(
    first: Ints, second: Ints, share: Ints, same: int, left: np.ndarray, right: np.ndarray
) -> tuple[Ints, Ints, Ints]:
    """Pairs of a left and a right place (P,) by falling shares: every place with itself, then those that share anything."""
    start = np.zeros(same + 2, dtype=np.int64)
    for p in range(len(left)):
        start[1] += left[p] and right[p]
    for k in range(len(share)):
        a, b = first[k], second[k]
        if (left[a] and right[b]) or (left[b] and right[a]):
            start[same - share[k] + 1] += 1
    for at in range(1, same + 1):
        start[at] += start[at - 1]
    total = start[same]
    one, two, each = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    for p in range(len(left)):
        if left[p] and right[p]:
            one[start[0]], two[start[0]], each[start[0]] = p, p, same
            start[0] += 1
    for k in range(len(share)):
        a, b = first[k], second[k]
        if share[k] and ((left[a] and right[b]) or (left[b] and right[a])):
            at = start[same - share[k]]
            one[at], two[at], each[at] = a, b, share[k]
            start[same - share[k]] += 1
    return one, two, each


@compiled
def joins(a: int, b: int, owner: Ints, start: Ints, arcs: Ints, ends: Ints) -> bool:
    """Whether an edge joins two nodes already; arguments as in `saturate`."""
    one, two = owner[a], owner[b]
    if start[one + 1] - start[one] > start[two + 1] - start[two]:
        a, b, one = b, a, two
    for k in range(start[one], start[one + 1]):
        if ends[arcs[k]] == a and ends[arcs[k] ^ 1] == b:
            return True
    return False


@compiled
def limited(share: int, one: int, other: int, most: int) -> int:
    """Product of a share and two numbers of points, at most `most`: beyond that it is not needed, and might overflow."""
    each = share * other
    return most if each > most // one else each * one


@compiled
def new_edges(
    one: Ints,
    two: Ints,
    share: Ints,
    node: Ints,
    owner: Ints,
    members: Ints,
    room: Ints,
    reached: np.ndarray,
    most: int,
    start: Ints,
    arcs: Ints,
    ends: Ints,
    capacity: Ints,
    added: Ints,
) -> tuple[int, bool]:
    """Number of edges that are to join the network, and whether there are more beyond them.

    Edges join nodes of pairs `one`, `two` of places (k,) with `share`, as from `nearest_first`; a place has the nodes from
    `node[p]` to `node[p + 1]`, of so many members (M,). An arc of theirs leads from a vertex that is reached (2 A,) to one
    that is not. A node has about `most` of these edges, where it has so many. Capacities and ends of those that are not
    there yet are written to arrays. Others as in `saturate`.
    """
    owners, places = len(room), len(node) - 1
    held = np.zeros(len(owner), dtype=np.int64)
    lacking = np.zeros(places, dtype=np.int64)
    for p in range(places):
        for a in range(node[p], node[p + 1]):
            lacking[p] += reached[owner[a]] or not reached[owners + owner[a]]
    found, further = 0, False
    for k in range(len(one)):
        p, q = one[k], two[k]
        if not (lacking[p] or lacking[q]):
            further = True
            continue
        # Nodes of the place that has more take turns with those of the other: nobody has all the edges.
        if node[p + 1] - node[p] < node[q + 1] - node[q]:
            p, q = q, p
        many, few = node[p + 1] - node[p], node[q + 1] - node[q]
        for turn in range(many // 2 + 1 if p == q else few):
            if not (lacking[p] or lacking[q]):
                further = True
                break
            for rank in range(many // 2 if p == q and 2 * turn == many else many):
                a, b = node[p] + rank, node[q] + (rank + turn) % few
                u, v = owner[a], owner[b]
                crosses = (reached[u] and not reached[owners + v]) or (reached[v] and not reached[owners + u])
                least = min(room[u], room[v])
                # A point has no share with itself, and both arcs of a node's own edge are half of what it has.
                if a == b:
                    most_flow = limited(share[k], members[a], members[a] - 1, 2 * least) // 2
                else:
                    most_flow = limited(share[k], members[a], members[b], least)
                if not crosses or not most_flow:
                    continue
                if held[a] >= most and held[b] >= most:
                    further = True
                    continue
                for c, place in ((a, p), (b, q)):
                    held[c] += 1
                    lacking[place] -= held[c] == most
                if joins(a, b, owner, start, arcs, ends):
                    continue
                capacity[found], added[2 * found], added[2 * found + 1] = most_flow, a, b
                found += 1
    return found, further


@compiled
def arcs_by_owner(ends: Ints, owner: Ints, owners: int) -> tuple[Ints, Ints]:
    """Where each owner's arcs begin (A + 1,) in a list of arcs (2 E,) by the owner they lead from."""
    start = np.zeros(owners + 2, dtype=np.int64)
    for each in ends:
        start[owner[each] + 2] += 1
    for one in range(1, owners + 2):
        start[one] += start[one - 1]
    arcs = np.empty(len(ends), dtype=np.int64)
    for d in range(len(ends)):
        place = owner[ends[d]] + 1
        arcs[start[place]] = d
        start[place] += 1
    return start[:-1], arcs


@compiled
def fill(
    order: Ints, start: Ints, arcs: Ints, ends: Ints, owner: Ints, capacity: Ints, flow: Ints, into: Ints, out: Ints
) -> None:
    """As much flow as goes through each arc alone, owners in some order (A,); others as in `saturate`."""
    for one in order:
        for k in range(start[one], start[one + 1]):
            if not (into[one] or out[one]):
                break
            for side in range(2):
                d = arcs[k] ^ side
                u, v = owner[ends[d]], owner[ends[d ^ 1]]
                more = min(capacity[d >> 1] - flow[d], into[u], out[v])
                flow[d] += more
                into[u] -= more
                out[v] -= more


@compiled
def saturate(
    start: Ints, arcs: Ints, ends: Ints, owner: Ints, capacity: Ints, flow: Ints, into: Ints, out: Ints
) -> tuple[np.ndarray, int]:
    """Make a flow the largest; the vertices (2 A,) from which no path leads to the sink, and the arcs looked at.

    Paths lead along falling distances from the sink (Ahuja and Orlin 1991), which are mended where they lead nowhere, and
    found anew when that has taken as long.

    Parameters
    ----------
    start, arcs : (A + 1,), (2 E,) arrays of int
        Of `arcs_by_owner`.
    ends, owner : (2 E,), (M,) arrays of int
        Nodes of edges, and owners of nodes.
    capacity : (E,) array of int
    flow : (2 E,) array of int
        By arc; changed.
    into, out : (A,) arrays of int
        What the source and the sink have left for a vertex; changed.
    """
    owners, seen = len(into), 0
    beyond = 2 * owners
    away = np.empty(beyond, dtype=np.int32)
    queue, at, path = np.empty_like(away), np.empty_like(away), np.empty(beyond, dtype=np.int64)
    following = np.empty(beyond, dtype=np.int64)
    while True:
        away[:] = beyond
        tail = 0
        for w in range(owners):
            if out[w]:
                away[owners + w], queue[tail] = 0, owners + w
                tail += 1
        head = 0
        while head < tail:
            w = queue[head]
            head += 1
            right = w >= owners
            for k in range(start[w % owners], start[w % owners + 1]):
                d = arcs[k]
                if (capacity[d >> 1] - flow[d ^ 1] if right else flow[d]) > 0:
                    v = owner[ends[d ^ 1]] + (0 if right else owners)
                    if away[v] == beyond:
                        away[v], queue[tail] = away[w] + 1, v
                        tail += 1
        seen += len(arcs)
        limit = seen + len(arcs)
        for v in range(beyond):
            following[v] = start[v % owners]
        waiting = False
        for source in range(owners):
            depth, at[0] = 0, source
            while into[source] and away[source] < beyond and seen < limit:
                waiting = True
                v = at[depth]
                own, right = v % owners, v >= owners
                if right and out[own]:
                    more = min(into[source], out[own])
                    for k in range(depth):
                        d = path[k]
                        more = min(more, flow[d ^ 1] if k % 2 else capacity[d >> 1] - flow[d])
                    into[source] -= more
                    out[own] -= more
                    for k in range(depth - 1, -1, -1):
                        d = path[k]
                        if k % 2:
                            flow[d ^ 1] -= more
                            full = not flow[d ^ 1]
                        else:
                            flow[d] += more
                            full = flow[d] == capacity[d >> 1]
                        if full:
                            depth = k
                    continue
                while following[v] < start[own + 1]:
                    d = arcs[following[v]]
                    w = owner[ends[d ^ 1]] + (0 if right else owners)
                    if away[w] == away[v] - 1 and (flow[d ^ 1] if right else capacity[d >> 1] - flow[d]) > 0:
                        path[depth] = d
                        depth += 1
                        at[depth] = w
                        break
                    following[v] += 1
                else:
                    away[v], following[v] = beyond, start[own]
                    for k in range(start[own], start[own + 1]):
                        d = arcs[k]
                        if (flow[d ^ 1] if right else capacity[d >> 1] - flow[d]) > 0:
                            w = owner[ends[d ^ 1]] + (0 if right else owners)
                            away[v] = min(away[v], away[w] + 1)
                    seen += start[own + 1] - start[own]
                    depth = max(depth - 1, 0)
        if not waiting:
            return away == beyond, seen


@compiled
def is_largest(ends: Ints, owner: Ints, capacity: Ints, flow: Ints, room: Ints, reached: np.ndarray) -> bool:
    """Whether a flow (2 E,) is one, and the vertices (2 A,) beyond a cut of the same capacity are those not reached."""
    owners = len(room)
    into, out = np.zeros(owners, dtype=np.int64), np.zeros(owners, dtype=np.int64)
    cut, total = 0, 0
    for d in range(len(ends)):
        u, v = owner[ends[d]], owner[ends[d ^ 1]]
        if not 0 <= flow[d] <= capacity[d >> 1]:
            return False
        into[u] += flow[d]
        out[v] += flow[d]
        total += flow[d]
        if reached[u] and not reached[owners + v]:
            cut += capacity[d >> 1]
    for u in range(owners):
        if max(into[u], out[u]) > room[u]:
            return False
        cut += room[u] * (int(not reached[u]) + int(reached[owners + u]))
    return cut == total
