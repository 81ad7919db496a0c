"""The resistance metric of a linear network: every edge a resistor of its length (docs/theory/network.md).

`d_R(u, v) = Var(Z(u) - Z(v))` of the Gaussian field with covariance `(Laplacian + e_o e_o')^-1` at the vertices, linear
along edges, plus an independent Brownian bridge on every edge (Anderes, Moeller and Rasmussen, 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from dpppsynth.linear_network.paths import BLOCK, to_ends

if TYPE_CHECKING:
    from dpppsynth.linear_network.network import LinearNetwork

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def resistances(network: LinearNetwork, a: Floats, b: Floats, anchor: int = 0) -> Floats:
    """(n, m) resistance metric between positions (n, 2) and (m, 2); the anchor does not matter."""
    vertex, column = np.unique(np.concatenate([to_ends(network, p)[0] for p in (a, b)]), return_inverse=True)
    covariance = vertex_covariance(network, vertex, anchor)
    first, second = column.reshape(-1, 2)[: len(a)], column.reshape(-1, 2)[len(a) :]
    at_a, at_b = _linear(network, a, first, len(vertex)), _linear(network, b, second, len(vertex))
    variance_a, variance_b = (_variance(network, p, m, covariance) for p, m in ((a, at_a), (b, at_b)))
    cross = at_a @ (at_b @ covariance).T
    same = a[:, None, 0] == b[None, :, 0]
    if same.any():
        i, j = np.nonzero(same)
        length = network.lengths[a[i, 0].astype(np.int64)]
        cross[i, j] += np.minimum(a[i, 1], b[j, 1]) - a[i, 1] * b[j, 1] / length
    out = variance_a[:, None] + variance_b[None, :] - 2 * cross
    # The same point is at distance zero, and rounding makes no distance negative.
    out[same & (a[:, None, 1] == b[None, :, 1])] = 0
    return np.asarray(np.maximum(out, 0))


def vertex_covariance(network: LinearNetwork, vertices: Ints, anchor: int = 0) -> Floats:
    """(k, k) covariance of the anchored field at vertices (k,): only their columns of the inverse are computed."""
    size = len(network.vertices)
    solve = splu(_precision(network, anchor), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve
    out = np.empty((len(vertices), len(vertices)))
    step = max(1, BLOCK // size)
    for start in range(0, len(vertices), step):
        part = vertices[start : start + step]
        unit = np.zeros((size, len(part)))
        unit[part, np.arange(len(part))] = 1
        out[:, start : start + step] = solve(unit)[vertices]
    return np.asarray((out + out.T) / 2)


def _precision(network: LinearNetwork, anchor: int) -> sp.csc_array:
    """Laplacian with conductances 1 / length, which add up over parallel edges, plus one at the anchor."""
    u, v = network.edges[network.edges[:, 0] != network.edges[:, 1]].T
    conductance = 1 / network.lengths[network.edges[:, 0] != network.edges[:, 1]]
    size = len(network.vertices)
    weights = sp.coo_array((conductance, (u, v)), shape=(size, size))
    laplacian = sp.csgraph.laplacian(sp.csr_array(weights + weights.T))
    return sp.csc_array(laplacian + sp.coo_array(([1.0], ([anchor], [anchor])), shape=(size, size)))


def _linear(network: LinearNetwork, positions: Floats, ends: Ints, size: int) -> sp.csr_array:
    """(n, size) sparse weights of the two ends of each position's edge."""
    n = len(positions)
    share = positions[:, 1] / network.lengths[positions[:, 0].astype(np.int64)]
    data = np.column_stack([1 - share, share]).ravel()
    return sp.csr_array(sp.coo_array((data, (np.repeat(np.arange(n), 2), ends.ravel())), shape=(n, size)))


def _variance(network: LinearNetwork, positions: Floats, linear: sp.csr_array, covariance: Floats) -> Floats:
    """(n,) variance of the field at positions, bridge included."""
    along = positions[:, 1]
    bridge = along * (1 - along / network.lengths[positions[:, 0].astype(np.int64)])
    return np.asarray((linear @ covariance * linear.toarray()).sum(axis=1) + bridge)
