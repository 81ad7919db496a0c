"""The resistance metric of a linear network (docs/theory/network.md, section 1).

`d_R(u, v) = Var(Z(u) - Z(v))` of the Gaussian field with covariance `(Laplacian + k e_o e_o')^-1` at the vertices,
linear along edges, plus an independent Brownian bridge on every edge (Anderes, Moeller and Rasmussen, 2020).
"""

from __future__ import annotations

import numpy as np
import scipy

from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.shortest_paths import to_ends
from dpppsynth.linear_network.skeleton import Skeleton

# Columns solved for at a time: many more would no longer fit the processor's cache.
COLUMNS = 32


def resistances(network: Skeleton, a: Floats, b: Floats, anchor: int = 0) -> Floats:
    """(n, m) resistance metric between positions (n, 2) and (m, 2), whatever the vertex `anchor`.

    Points that coincide on an edge are at distance zero. Relative errors between vertices are about 1e-16 times the
    ratio of the longest edge to the shortest; positions add 1e-16 of the distance from the anchor.
    """
    if len(a) > len(b):
        return resistances(network, b, a, anchor).T
    if not len(a):
        return np.empty((0, len(b)))
    ends_a, ends_b = (to_ends(network, p)[0] for p in (a, b))
    rows, row = np.unique(ends_b, return_inverse=True)
    columns, column = np.unique(ends_a, return_inverse=True)
    covariance, edge_covariance = _covariances(network, rows, columns, np.unique(np.concatenate([a, b])[:, 0]), anchor)
    at_a, at_b = _linear(network, a, column, len(columns)), _linear(network, b, row, len(rows))
    cross = at_a @ (at_b @ covariance).T
    same = a[:, None, 0] == b[None, :, 0]
    i, j = np.nonzero(same)
    length = network.lengths[a[i, 0].astype(np.int64)]
    cross[i, j] += np.minimum(a[i, 1], b[j, 1]) - a[i, 1] * b[j, 1] / length
    cross *= -2
    cross += _variance(network, a, edge_covariance)[:, None]
    cross += _variance(network, b, edge_covariance)
    # The same point is at distance zero, and rounding makes no distance negative.
    cross[i, j] *= a[i, 1] != b[j, 1]
    out = np.maximum(cross, 0, out=cross)
    return np.asarray((out + out.T) / 2 if a is b else out)


def _covariances(network: Skeleton, rows: Ints, columns: Ints, edges: Floats, anchor: int) -> tuple[Floats, Floats]:
    """(r, c) covariance of the field between vertices, and (E, 3) of the two ends of the given edges.

    The three numbers are the variances of the first and of the second end, and their covariance. Nothing else of the
    inverse is kept.
    """
    from scipy.sparse.linalg import splu

    used = edges.astype(np.int64)
    first, second = network.edges[used].T
    block, ends = np.empty((len(rows), len(columns))), np.full((len(network.edges), 3), np.nan)
    size, vertices = len(network.vertices), np.unique(np.concatenate([first, second]))
    solve = splu(_precision(network, anchor), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve
    for part in np.array_split(vertices, -(-len(vertices) // COLUMNS)):
        unit = np.zeros((size, len(part)))
        unit[part, np.arange(len(part))] = 1
        known = np.asarray(solve(unit))
        # Vertices of this part come in increasing order, as do the columns.
        here = np.isin(columns, part)
        block[:, here] = known[np.ix_(rows, np.searchsorted(part, columns[here]))]
        for vertex, place in ((first, 0), (second, 1)):
            here = np.isin(vertex, part)
            column = np.searchsorted(part, vertex[here])
            ends[used[here], place] = known[vertex[here], column]
            ends[used[here], 2] = known[np.where(place, first, second)[here], column]
    return block, ends


def _precision(network: Skeleton, anchor: int) -> scipy.sparse.csc_array:
    """Laplacian with conductances 1 / length, which add up over parallel edges, plus a conductance at the anchor."""
    proper = network.edges[:, 0] != network.edges[:, 1]
    u, v = network.edges[proper].T
    conductance = 1 / network.lengths[proper]
    size = len(network.vertices)
    weights = scipy.sparse.coo_array((conductance, (u, v)), shape=(size, size))
    laplacian = scipy.sparse.csgraph.laplacian(scipy.sparse.csr_array(weights + weights.T))
    # Any positive number gives the same metric; the largest keeps the common variance, which cancels, small.
    ground = conductance.max(initial=1 / network.length)
    return scipy.sparse.csc_array(
        laplacian + scipy.sparse.coo_array(([ground], ([anchor], [anchor])), shape=(size, size))
    )


def _linear(network: Skeleton, positions: Floats, ends: Ints, size: int) -> scipy.sparse.csr_array:
    """(n, size) sparse weights of the two ends of each position's edge."""
    n = len(positions)
    share = positions[:, 1] / network.lengths[positions[:, 0].astype(np.int64)]
    data = np.column_stack([1 - share, share]).ravel()
    return scipy.sparse.csr_array(
        scipy.sparse.coo_array((data, (np.repeat(np.arange(n), 2), ends.ravel())), shape=(n, size))
    )


def _variance(network: Skeleton, positions: Floats, edge_covariance: Floats) -> Floats:
    """(n,) variance of the field at positions, bridge included."""
    edge, along = positions[:, 0].astype(np.int64), positions[:, 1]
    share = along / network.lengths[edge]
    first, second, both = edge_covariance[edge].T
    linear = (1 - share) ** 2 * first + share**2 * second + 2 * share * (1 - share) * both
    return np.asarray(linear + along * (1 - share))
