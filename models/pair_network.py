"""Compiled loops of capped sums over pairs: largest sums, edges of a network, a maximum flow and its proof.

A network has a left and a right vertex for each of A owners, with room for flow from the source into left vertices (A,)
and from right ones to the sink (A,). An edge e joins the two nodes `ends[2 e]` and `ends[2 e + 1]`: it is one arc from
the first one's left vertex to the other's right one, and one the other way round, arc `2 e + 1`, each with the edge's
capacity. Nodes belong to owners.

Importing this module imports numba, so that it is imported where it is used.
"""

import numpy as np

from dpppsynth.core.workers import compiled


@compiled
def largest_sums(first: np.ndarray, second: np.ndarray, share: np.ndarray, same: int, count: np.ndarray) -> np.ndarray:
    """(P,) sums of shares of a point at each place with points (P,) at all places, those at its own included."""
    total = same * count
    for k in range(len(first)):
        a, b = first[k], second[k]
        total[a] += share[k] * count[b]
        total[b] += share[k] * count[a]
    return total


@compiled
def nearest_first(
    first: np.ndarray, second: np.ndarray, share: np.ndarray, same: int, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of a left and a right place (P,): each with itself, then those that share anything by falling shares."""
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
def joins(a: int, b: int, owner: np.ndarray, start: np.ndarray, arcs: np.ndarray, ends: np.ndarray) -> bool:
    """Whether an edge joins two nodes already; arguments as in `saturate`."""
    one, two = owner[a], owner[b]
    if start[one + 1] - start[one] > start[two + 1] - start[two]:
        a, b, one = b, a, two
    found = False
    for k in range(start[one], start[one + 1]):
        found |= ends[arcs[k]] == a and ends[arcs[k] ^ 1] == b
    return found


@compiled
def limited(share: int, one: int, other: int, most: int) -> int:
    """Product of a share and two numbers of points, at most `most`: more is not needed, and might overflow."""
    each = share * other
    return most if each > most // one else each * one


@compiled
def crosses(u: int, v: int, reached: np.ndarray) -> bool:
    """Whether an arc between two owners leads from a vertex that is reached (2 A,) to one that is not."""
    owners = len(reached) // 2
    return (reached[u] and not reached[owners + v]) or (reached[v] and not reached[owners + u])


@compiled
def largest_flow(a: int, b: int, share: int, members: np.ndarray, most: int) -> int:
    """Most that an arc between two nodes may take, of nodes with so many members (M,)."""
    # A point has no share with itself, and both arcs of a node's own edge are half of what it has.
    if a == b:
        return limited(share, members[a], members[a] - 1, 2 * most) // 2
    return limited(share, members[a], members[b], most)


@compiled
def lacking_edges(node: np.ndarray, owner: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """(P,) numbers of nodes of each place that arcs out of what is reached (2 A,) may lead from or to."""
    lacking = np.zeros(len(node) - 1, dtype=np.int64)
    for p in range(len(lacking)):
        for a in range(node[p], node[p + 1]):
            lacking[p] += reached[owner[a]] or not reached[len(reached) // 2 + owner[a]]
    return lacking


@compiled
def new_edges(
    one: np.ndarray,
    two: np.ndarray,
    share: np.ndarray,
    node: np.ndarray,
    owner: np.ndarray,
    members: np.ndarray,
    room: np.ndarray,
    reached: np.ndarray,
    most: int,
    start: np.ndarray,
    arcs: np.ndarray,
    ends: np.ndarray,
    capacity: np.ndarray,
    added: np.ndarray,
) -> tuple[int, bool]:
    """Number of edges that are to join the network, and whether there are more beyond them.

    Edges join nodes of pairs `one`, `two` of places (k,) with `share`, as from `nearest_first`; a place has the nodes
    from `node[p]` to `node[p + 1]`, of so many members (M,). An arc of theirs leads from a vertex that is
    reached (2 A,) to one that is not. A node has about `most` of these edges, where it has so many. Capacities and
    ends of those that are not there yet are written to arrays. Others as in `saturate`.
    """
    held = np.zeros(len(owner), dtype=np.int64)
    lacking = lacking_edges(node, owner, reached)
    found, further = 0, False
    for k in range(len(one)):
        p, q = one[k], two[k]
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
                takes = largest_flow(a, b, share[k], members, min(room[owner[a]], room[owner[b]]))
                if not takes or not crosses(owner[a], owner[b], reached):
                    continue
                if held[a] >= most and held[b] >= most:
                    further = True
                    continue
                for c, place in ((a, p), (b, q)):
                    held[c] += 1
                    lacking[place] -= held[c] == most
                if not joins(a, b, owner, start, arcs, ends):
                    capacity[found], added[2 * found], added[2 * found + 1] = takes, a, b
                    found += 1
    return found, further


@compiled
def arcs_by_owner(ends: np.ndarray, owner: np.ndarray, owners: int) -> tuple[np.ndarray, np.ndarray]:
    """Beginnings (A + 1,) of each owner's part of a list of arcs (2 E,), by the owner they lead from."""
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
    order: np.ndarray,
    start: np.ndarray,
    arcs: np.ndarray,
    ends: np.ndarray,
    owner: np.ndarray,
    capacity: np.ndarray,
    flow: np.ndarray,
    into: np.ndarray,
    out: np.ndarray,
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
def left_in(d: int, right: bool, capacity: np.ndarray, flow: np.ndarray) -> int:
    """Room for a path along an arc from a left vertex, or back along the other arc from a right one."""
    return flow[d ^ 1] if right else capacity[d >> 1] - flow[d]


@compiled
def distances(
    away: np.ndarray,
    start: np.ndarray,
    arcs: np.ndarray,
    ends: np.ndarray,
    owner: np.ndarray,
    capacity: np.ndarray,
    flow: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write how far vertices (2 A,) are from right ones with room, 2 A if there is no path; others as in `saturate`."""
    owners = len(out)
    queue, tail = np.empty_like(away), 0
    away[:] = 2 * owners
    for w in range(owners):
        if out[w]:
            away[owners + w], queue[tail] = 0, owners + w
            tail += 1
    head = 0
    while head < tail:
        w = queue[head]
        head += 1
        for k in range(start[w % owners], start[w % owners + 1]):
            d = arcs[k] ^ 1
            v = owner[ends[d]] + (0 if w >= owners else owners)
            if away[v] == 2 * owners and left_in(d, w < owners, capacity, flow) > 0:
                away[v], queue[tail] = away[w] + 1, v
                tail += 1


@compiled
def push(path: np.ndarray, depth: int, most: int, capacity: np.ndarray, flow: np.ndarray) -> tuple[int, int]:
    """Add to the flow along a path what all arcs take, at most so much; how much, and the first arc that is full."""
    more, first = most, depth
    for k in range(depth):
        more = min(more, left_in(path[k], k % 2 == 1, capacity, flow))
    for k in range(depth - 1, -1, -1):
        if k % 2:
            flow[path[k] ^ 1] -= more
        else:
            flow[path[k]] += more
        if not left_in(path[k], k % 2 == 1, capacity, flow):
            first = k
    return more, first


@compiled
def saturate(
    start: np.ndarray,
    arcs: np.ndarray,
    ends: np.ndarray,
    owner: np.ndarray,
    capacity: np.ndarray,
    flow: np.ndarray,
    into: np.ndarray,
    out: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Make a flow the largest; the vertices (2 A,) from which no path leads to the sink, and the arcs looked at.

    Paths lead along falling distances from the sink (Ahuja and Orlin 1991), which are mended where they lead nowhere,
    and found anew when that has taken as long.

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
    owners, seen, waiting = len(into), 0, True
    away, at = np.empty(2 * owners, dtype=np.int32), np.empty(2 * owners, dtype=np.int32)
    path, following = np.empty(2 * owners, dtype=np.int64), np.empty(2 * owners, dtype=np.int64)
    while waiting:
        distances(away, start, arcs, ends, owner, capacity, flow, out)
        following[:owners] = following[owners:] = start[:owners]
        seen, waiting = seen + len(arcs), False
        limit = seen + len(arcs)
        for source in range(owners):
            depth, at[0] = 0, source
            while into[source] and away[source] < 2 * owners and seen < limit:
                waiting = True
                v = at[depth]
                own, right = v % owners, v >= owners
                if right and out[own]:
                    more, depth = push(path, depth, min(into[source], out[own]), capacity, flow)
                    into[source] -= more
                    out[own] -= more
                    continue
                nearest = 2 * owners
                while following[v] < start[own + 1]:
                    d = arcs[following[v]]
                    w = owner[ends[d ^ 1]] + (0 if right else owners)
                    if away[w] == away[v] - 1 and left_in(d, right, capacity, flow) > 0:
                        path[depth], at[depth + 1], nearest = d, w, away[w]
                        depth += 1
                        break
                    following[v] += 1
                if nearest < 2 * owners:
                    continue
                for k in range(start[own], start[own + 1]):
                    d = arcs[k]
                    if left_in(d, right, capacity, flow) > 0:
                        nearest = min(nearest, away[owner[ends[d ^ 1]] + (0 if right else owners)] + 1)
                away[v], following[v] = nearest, start[own]
                seen += start[own + 1] - start[own]
                depth = max(depth - 1, 0)
    return away == 2 * owners, seen


@compiled
def is_largest(
    ends: np.ndarray, owner: np.ndarray, capacity: np.ndarray, flow: np.ndarray, room: np.ndarray, reached: np.ndarray
) -> bool:
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
