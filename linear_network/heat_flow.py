"""Heat flow along networks of any size: what reaches each segment, without the matrix of all pairs.

`diffusion` has the matrix, each entry right to a relative error, as privacy losses ask for. Here sums of masses alone
are wanted: `exp(-t L)` is the contour integral of `e^z / (z + t L)`, by the trapezoidal rule on a parabola a sum of
sparse solutions (Weideman & Trefethen 2007), whatever the shortest segment.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network.diffusion import conductances
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.spatial.mesh import Floats

# Segments beyond which factors take more than about 4 GiB.
MOST_SPREAD = 250_000
# Nodes on the parabola: its error falls like 2.85^-NODES, to rounding.
NODES = 24


def spread(mesh: NetworkMesh, bandwidth: float, masses: Floats) -> Floats:
    """(T,) masses on the segments once those given (T,) have spread as heat does, `masses @ diffusion_matrix`.

    The error is below 1e-9 of the largest density.

    Raises
    ------
    InputError
        When the mesh has too many segments.
    """
    if len(mesh.elements) > MOST_SPREAD:
        msg = (
            f"mesh: heat flow takes at most {MOST_SPREAD} segments, got {len(mesh.elements)}; take longer ones, or a "
            "part of the network."
        )
        raise InputError(msg)
    flow, root = conductances(mesh), np.sqrt(mesh.element_measure)
    laplacian = sp.diags_array(flow.sum(axis=1)) - flow
    # Scaled by the roots of the lengths it is symmetric.
    symmetric = (sp.diags_array(bandwidth**2 / 2 / root) @ laplacian @ sp.diags_array(1 / root)).tocsc()
    angle = np.pi * (2 * np.arange(NODES // 2) + 1) / NODES
    node = NODES * (0.1309 - 0.1194 * angle**2 + 0.2500j * angle)
    slope = NODES * (-2 * 0.1194 * angle + 0.2500j)
    out = np.zeros(len(root))
    for z, weight in zip(node, np.exp(node) * slope, strict=True):
        shifted = sp.csc_matrix(symmetric + z * sp.eye_array(len(root)))
        solved = splu(shifted, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(masses / root + 0j)
        # Nodes below the real axis give the conjugate.
        out += 2 * np.imag(weight * solved) / NODES
    return np.asarray(np.maximum(out * root, 0.0))
