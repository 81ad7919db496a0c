"""Correlations of fields in closed form, against which fields on meshes and lattices are checked."""

import numpy as np
from scipy.special import gamma, kv


def matern(distance, range_, nu=1.0):
    """Matern correlation, about 0.14 at the range."""
    x = np.maximum(np.sqrt(8 * nu) / range_ * distance, 1e-9)
    return 2 ** (1 - nu) / gamma(nu) * x**nu * kv(nu, x)


def distances(shape, spacing=(1.0, 1.0)):
    """(V, V) distances of the nodes of a lattice in C order."""
    x, y = np.indices(shape).reshape(2, -1) * np.reshape(spacing, (2, 1))
    return np.hypot(x[:, None] - x, y[:, None] - y)
