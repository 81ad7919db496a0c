"""How far apart a Gaussian field on a mesh can be at two points: upper bounds on standard deviations of increments.

Both bounds of docs/theory/posterior_draw.md, section 3, whichever is smaller. Standard deviations are raised by a
relative 1e-9, and variances by 1e-14 of the largest one, for what subtracting covariances loses.
"""

from dataclasses import dataclass

import numpy as np
import shapely

from dpppsynth.mesh import Floats, Ints, Mesh

RELATIVE, CANCELLED = 1 + 1e-9, 1e-14
# Larger meshes have too many pairs of elements: only the gradient bound then grows with the distance.
MOST_ELEMENTS, MANY_PAIRS = 4000, 500_000


@dataclass(frozen=True, eq=False)
class Increments:
    """Bounds on `sd(Y(x) - Y(x'))` for every length of the path from x to x'.

    Attributes
    ----------
    slope : float
        Largest standard deviation of a directional derivative of the field.
    distance : (P,) array
        Distances between pairs of elements, increasing from 0.
    sd : (P,) array
        Largest standard deviation between points of elements up to that far apart.
    """

    slope: float
    distance: Floats
    sd: Floats

    def within(self, reach: float) -> float:
        """Bound for paths of length at most `reach`, which may be infinite."""
        last = np.searchsorted(self.distance, reach * RELATIVE, side="right") - 1
        return min(self.slope * reach, float(self.sd[last])) * RELATIVE


def increments(mesh: Mesh, covariance_matrix: Floats, farthest: float = np.inf) -> Increments:
    """Bounds for paths of length up to `farthest`, for the field with the given covariance (V, V) at the vertices."""
    if len(mesh.elements) > MOST_ELEMENTS:
        # Too many pairs to hold; what bounds any two vertices bounds those of every pair.
        variance = np.diag(covariance_matrix)
        largest = max(float((variance[i] + variance - 2 * covariance_matrix[i]).max()) for i in range(len(variance)))
        top = np.sqrt(largest + CANCELLED * variance.max())
        return Increments(_steepest(mesh, covariance_matrix), np.zeros(1), np.array([top]))
    i, j = element_pairs(mesh, farthest * RELATIVE)
    distance = _distances(mesh, i, j)
    order = np.argsort(distance)
    sd = np.sqrt(farthest_corners(mesh.elements, covariance_matrix, i, j))
    return Increments(_steepest(mesh, covariance_matrix), distance[order], np.maximum.accumulate(sd[order]))


def _distances(mesh: Mesh, i: Ints, j: Ints) -> Floats:
    """(P,) distances between elements i and j; among very many pairs a lower bound, between circles around them."""
    if len(i) <= MANY_PAIRS:
        return np.asarray(shapely.distance(mesh.element_polygons[i], mesh.element_polygons[j]))
    corner = mesh.vertices[mesh.elements]
    centre = corner.mean(axis=1)
    radius = np.sqrt(((corner - centre[:, None]) ** 2).sum(axis=2).max(axis=1))
    return np.maximum(np.sqrt(((centre[i] - centre[j]) ** 2).sum(axis=1)) - radius[i] - radius[j], 0)


def increment_sd(mesh: Mesh, covariance_matrix: Floats, reach: float) -> float:
    """Upper bound on `sd(Y(x) - Y(x'))` over points of the domain joined by a path inside it of length `reach` or less.

    Parameters
    ----------
    mesh : Mesh
    covariance_matrix : (V, V) array
        Covariance of the field's values at the vertices; singular is fine.
    reach : float
        In the domain's unit of length; may be infinite.
    """
    return increments(mesh, covariance_matrix, reach).within(reach)


def point_sd(covariance_matrix: Floats) -> float:
    """Upper bound on `sd(Y(x))`: reached at a vertex, for inside an element Y is an average of vertex values."""
    return float(np.sqrt(np.max(np.diag(covariance_matrix)))) * RELATIVE


def _steepest(mesh: Mesh, covariance: Floats) -> float:
    """Square root of the largest eigenvalue of `G Sigma_T G'`, over the gradients G of the basis on every element."""
    local = covariance[mesh.elements[:, :, None], mesh.elements[:, None, :]]
    gradient = mesh.gradients
    spread = np.einsum("tcka,tkl,tclb->tcab", gradient, local, gradient)
    lost = CANCELLED * np.max(np.diag(covariance)) * np.max((gradient**2).sum(axis=(2, 3)))
    return float(np.sqrt(np.linalg.eigvalsh(spread).max() + lost))


def element_pairs(mesh: Mesh, reach: float) -> tuple[Ints, Ints]:
    """Pairs of elements at most `reach` apart, each once, an element with itself included."""
    if reach >= np.linalg.norm(np.ptp(mesh.vertices, axis=0)):
        i, j = np.triu_indices(len(mesh.elements))
        return i, j
    polygons = mesh.element_polygons
    i, j = shapely.STRtree(polygons).query(polygons, predicate="dwithin", distance=reach)
    once = i <= j
    return i[once], j[once]


def farthest_corners(elements: Ints, covariance: Floats, i: Ints, j: Ints) -> Floats:
    """(P,) largest variance of a difference between a vertex of element i and one of element j."""
    variance = np.diag(covariance)
    difference = variance[:, None] + variance[None, :] - 2 * covariance + CANCELLED * variance.max()
    largest = np.zeros(len(i))
    for a in elements.T:
        for b in elements.T:
            np.maximum(largest, difference[a[i], b[j]], out=largest)
    return largest
