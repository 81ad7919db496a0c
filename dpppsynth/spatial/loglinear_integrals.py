"""Integrals of the exponential of a field on a mesh: closed form on simplices, Gauss quadrature on squares."""

import numpy as np
import scipy

from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.workers import in_threads
from dpppsynth.spatial.mesh import Mesh, Pieces


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


def gauss_rule(mesh: Mesh, pieces: Pieces, order: int) -> "tuple[scipy.sparse.csr_array, Floats]":
    """Basis functions (P, V) at the points of a Gauss-Legendre rule over the pieces, and the points' weights (P,).

    The rule is that of each segment, or a product rule collapsed onto each triangle.
    """
    points, element, weight = _gauss_points(pieces, order)
    return mesh.gather(element, mesh.weights(element, points)), weight


def gathered_rule(mesh: Mesh, pieces: Pieces, order: int) -> "tuple[scipy.sparse.csr_array, Floats]":
    """A rule as `gauss_rule` gives, whose points are replaced by four in each element of the mesh.

    They keep mass, centre and second moments of those they stand for, so that what an element is cut into, such as the
    cells of a raster, costs nothing later.
    """
    points, of, weight = _gauss_points(pieces, order)
    points, of, weight = points[weight > 0], of[weight > 0], weight[weight > 0]
    _, first, at = np.unique(of, return_index=True, return_inverse=True)
    mass = np.bincount(at, weight)
    # Within elements, not on maps: one that lies over a network holds parts of several of its edges.
    place = _within_element(mesh, mesh.weights(of, points))
    centre = np.column_stack([np.bincount(at, weight * each) for each in place.T]) / mass[:, None]
    x, y = (place - centre[at]).T
    xx, xy, yy = (np.bincount(at, weight * each) / mass for each in (x * x, x * y, y * y))
    a = np.sqrt(xx)
    b = np.divide(xy, a, out=np.zeros_like(a), where=a > 0)
    c = np.sqrt(np.maximum(yy - b**2, 0))
    signs = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    aside = np.stack([np.outer(a, signs[:, 0]), np.outer(b, signs[:, 0]) + np.outer(c, signs[:, 1])], axis=-1)
    four = (centre[:, None] + aside).reshape(-1, 2)
    element = np.repeat(of[first], len(signs))
    return mesh.gather(element, _basis_within(mesh, four)), np.repeat(mass / len(signs), len(signs))


def _within_element(mesh: Mesh, weight: Floats) -> Floats:
    """(n, 2) coordinates within an element, from values of its basis functions; the second is 0 on a segment."""
    if mesh.kind == "square":
        return np.column_stack([weight[:, 1] + weight[:, 2], weight[:, 2] + weight[:, 3]])
    return np.column_stack([weight[:, 1], weight[:, 2] if weight.shape[1] > 2 else np.zeros(len(weight))])


def _basis_within(mesh: Mesh, place: Floats) -> Floats:
    """(n, k) values of an element's basis functions: the inverse of `_within_element`."""
    s, t = place.T
    if mesh.kind == "square":
        return np.column_stack([(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t])
    return np.column_stack([1 - s, s]) if mesh.kind == "segment" else np.column_stack([1 - s - t, s, t])


def _gauss_points(pieces: Pieces, order: int) -> tuple[Floats, Ints, Floats]:
    """Points (P, 2) of a rule over the pieces, their elements (P,) and weights (P,)."""
    x, w = np.polynomial.legendre.leggauss(order)
    x, w = (x + 1) / 2, w / 2
    if pieces.sides == 2:
        rule, bary = w, np.column_stack([1 - x, x])
    else:
        u, v = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
        rule = 2 * np.outer(w * x, w).ravel()
        bary = np.column_stack([1 - u, u * (1 - v), u * v])
    points = np.einsum("pc,qcd->qpd", bary, pieces.corners).reshape(-1, 2)
    return points, np.repeat(pieces.element, len(rule)), np.outer(pieces.weight, rule).ravel()
