"""Integrals of the exponential of a field on a mesh: closed form on simplices, Gauss quadrature on squares."""

import numpy as np
import scipy.sparse as sp

from dpppsynth.core.threads import in_threads
from dpppsynth.spatial.mesh import Floats, Mesh, Pieces


def chunks(n: int, draws: int) -> list[slice]:
    """Slices of range(n) that keep (points x draws) arrays below 4 MB, so that they stay in a cache."""
    step = max(1, 500_000 // max(1, draws))
    return [slice(i, i + step) for i in range(0, n, step)]


def integrate_exp(mesh: Mesh, pieces: Pieces, fields: Floats) -> Floats:
    """(K,) integrals over the pieces of exp of the fields (K, V): exact but for a Gauss rule on squares."""
    if mesh.kind == "square":
        return gauss_exp(mesh, pieces, fields, order=8)
    q, sides = len(pieces.element), pieces.sides
    owner = np.repeat(pieces.element, sides)
    at_corner = mesh.gather(owner, mesh.weights(owner, pieces.corners.reshape(-1, 2)))
    mean = mean_exp_segment if sides == 2 else mean_exp_triangle

    def integral(part: slice) -> Floats:
        corner = (at_corner @ fields[part].T).reshape(q, sides, len(fields[part]))
        return np.asarray(pieces.weight @ mean(corner))

    return np.concatenate([np.empty(0), *in_threads(integral, chunks(len(fields), sides * q))])


def mean_exp_segment(f: Floats) -> Floats:
    """Mean of exp over a segment with end values f along axis 1."""
    return _exp_slope(f[:, 0], f[:, 1])


def mean_exp_triangle(f: Floats) -> Floats:
    """Mean of exp over a triangle with corner values f along axis 1."""
    return 2 * exp_divided_difference(f)


def exp_divided_difference(f: Floats) -> Floats:
    """`exp[f0, f1, f2]` along axis 1: half the mean of exp over a triangle with corner values f.

    Recursion where the values differ, `sum_k h_k(f - mean) / (k + 2)!` (complete symmetric polynomials) where they are
    close: either way to about 1e-14 relative.
    """
    centre = f.mean(axis=1)
    a, b, c = np.moveaxis(f - centre[:, None], 1, 0)
    wide = np.maximum(np.maximum(a, b), c) - np.minimum(np.minimum(a, b), c) > 1
    # h_k = e_1 h_(k-1) - e_2 h_(k-2) + e_3 h_(k-3) with the elementary polynomials e, of which the first vanishes.
    e2, e3 = np.where(wide, 0.0, a * b + c * (a + b)), np.where(wide, 0.0, a * b * c)
    h = [np.ones_like(a), np.zeros_like(a), -e2]
    factorial = 24.0
    series = 0.5 - e2 / factorial
    for k in range(3, 16):
        factorial *= k + 2
        h = [*h[1:], e3 * h[0] - e2 * h[1]]
        series += h[2] / factorial
    out = np.exp(centre) * series
    low, mid, high = np.moveaxis(np.sort(np.moveaxis(f, 1, -1)[wide], axis=-1), -1, 0)
    out[wide] = (_exp_slope(mid, high) - _exp_slope(low, mid)) / (high - low)
    return np.asarray(out)


def _exp_slope(a: Floats, b: Floats) -> Floats:
    """`(e^b - e^a) / (b - a)`, continuous at a = b."""
    gap = b - a
    safe = np.where(gap == 0, 1.0, gap)
    return np.exp(b) * np.where(gap == 0, 1.0, -np.expm1(-safe) / safe)


def gauss_exp(mesh: Mesh, pieces: Pieces, fields: Floats, order: int) -> Floats:
    """(K,) integrals over the pieces of exp of the fields (K, V), by a Gauss rule."""
    basis, weight = gauss_rule(mesh, pieces, order)
    out = np.empty(len(fields))
    for part in chunks(len(fields), len(weight)):
        out[part] = weight @ np.exp(basis @ fields[part].T)
    return out


def gauss_rule(mesh: Mesh, pieces: Pieces, order: int) -> tuple[sp.csr_array, Floats]:
    """Basis functions (P, V) at the points of a Gauss-Legendre rule over the pieces, and the points' weights (P,).

    The rule is that of each segment, or a product rule collapsed onto each triangle.
    """
    x, w = np.polynomial.legendre.leggauss(order)
    x, w = (x + 1) / 2, w / 2
    if pieces.sides == 2:
        rule, bary = w, np.column_stack([1 - x, x])
    else:
        u, v = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
        rule = 2 * np.outer(w * x, w).ravel()
        bary = np.column_stack([1 - u, u * (1 - v), u * v])
    points = np.einsum("pc,qcd->qpd", bary, pieces.corners).reshape(-1, 2)
    element = np.repeat(pieces.element, len(rule))
    return mesh.gather(element, mesh.weights(element, points)), np.outer(pieces.weight, rule).ravel()
