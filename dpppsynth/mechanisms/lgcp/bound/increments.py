"""Upper bounds on the standard deviation of increments of a Gaussian field on a mesh.

In the plane both bounds of docs/theory/posterior_draw.md, section 3, whichever is smaller; on networks the supremum
itself (docs/theory/network.md, section 4). Standard deviations are raised by a relative 1e-9, and variances by 1e-14 of
the largest one, for what subtracting covariances loses.
"""

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, cast

import numpy as np
import shapely

from dpppsynth.core.arguments import finite, instance
from dpppsynth.core.errors import InputError
from dpppsynth.models.covariances import square_matrix
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

if TYPE_CHECKING:
    from dpppsynth.linear_network.mesh import NetworkMesh
    from dpppsynth.spatial.planar_mesh import PlanarMesh

RELATIVE, CANCELLED = 1 + 1e-9, 1e-14
# Larger meshes have too many pairs of elements: only the gradient bound then grows with the distance.
MOST_ELEMENTS, MANY_PAIRS = 4000, 500_000
# Pairs of a vertex and a segment held in memory at a time.
BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class PlanarIncrements:
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


@dataclass(frozen=True, eq=False)
class NetworkIncrements:
    """The largest `sd(Y(x) - Y(x'))` over points of a network, for every length of the path from x to x'.

    Along two segments the variance is convex in the distances (s, t) of x and x' from the ends that the path passes,
    and `s + t + path` bounded cuts out a polygon. At each of its corners x or x' is a vertex, and the other point is
    one as well, or as far along its segment as the path can be.

    Attributes
    ----------
    path : (V, V) array
        Lengths of the shortest paths between the vertices.
    variance : (V, V) array
        Variances of the differences between the vertices.
    start, end, length : (2T,) arrays
        Vertices and lengths of the segments, in both directions.
    margin : float
        Largest rounding error of each variance.
    """

    path: Floats
    variance: Floats
    start: Ints
    end: Ints
    length: Floats
    margin: float

    def within(self, reach: float) -> float:
        """Supremum for paths of length at most `reach`, which may be infinite, rounded up."""
        reach *= RELATIVE
        largest = float(np.max(self.variance, initial=0, where=self.path <= reach))
        step = max(1, BLOCK // len(self.path))
        for first in range(0, len(self.start), step):
            part = slice(first, first + step)
            largest = max(largest, self._inside(reach, self.start[part], self.end[part], self.length[part]))
        return float(np.sqrt(largest + self.margin)) * RELATIVE

    def _inside(self, reach: float, start: Ints, end: Ints, length: Floats) -> float:
        """Largest variance between a vertex p and a point of a segment where a path of length `reach` from p ends."""
        left = reach - self.path[:, start]
        p, segment = np.nonzero((left > 0) & (left < length))
        share = left[p, segment] / length[segment]
        a, b = start[segment], end[segment]
        chord = (1 - share) * self.variance[p, a] + share * self.variance[p, b]
        return float(np.max(chord - share * (1 - share) * self.variance[a, b], initial=0))


def increments(mesh: Mesh, covariance_matrix: Floats, farthest: float = np.inf) -> PlanarIncrements | NetworkIncrements:
    """Bounds for paths of length up to `farthest`, for the field with the given covariance (V, V) at the vertices."""
    if mesh.kind == "segment":
        return _on_network(cast("NetworkMesh", mesh), covariance_matrix)
    return _in_the_plane(cast("PlanarMesh", mesh), covariance_matrix, farthest)


def _on_network(mesh: "NetworkMesh", covariance: Floats) -> NetworkIncrements:
    own = np.diag(covariance)
    variance = np.maximum(own[:, None] + own - 2 * covariance, 0)
    both = np.concatenate([mesh.elements, mesh.elements[:, ::-1]])
    length = np.tile(mesh.end - mesh.start, 2)
    return NetworkIncrements(mesh.path_lengths, variance, both[:, 0], both[:, 1], length, CANCELLED * float(own.max()))


def _in_the_plane(mesh: "PlanarMesh", covariance_matrix: Floats, farthest: float) -> PlanarIncrements:
    if len(mesh.elements) > MOST_ELEMENTS:
        # Too many pairs to hold; what bounds any two vertices bounds those of every pair.
        variance = np.diag(covariance_matrix)
        largest = max(float((variance[i] + variance - 2 * covariance_matrix[i]).max()) for i in range(len(variance)))
        top = np.sqrt(largest + CANCELLED * variance.max())
        return PlanarIncrements(_steepest(mesh, covariance_matrix), np.zeros(1), np.array([top]))
    i, j = element_pairs(mesh, farthest * RELATIVE)
    distance = _distances(mesh, i, j)
    order = np.argsort(distance)
    sd = np.sqrt(farthest_corners(mesh.elements, covariance_matrix, i, j))
    return PlanarIncrements(_steepest(mesh, covariance_matrix), distance[order], np.maximum.accumulate(sd[order]))


def _distances(mesh: "PlanarMesh", i: Ints, j: Ints) -> Floats:
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

    Raises
    ------
    InputError
        When the matrix is not one of the mesh's vertices, or the reach is negative.
    """
    instance("mesh", mesh, Mesh, "models.regular_triangulation(window, spacing=100.0) makes one")
    matrix = square_matrix(covariance_matrix)
    if len(matrix) != len(mesh.vertices):
        msg = f"covariance_matrix: needs a row for each of {len(mesh.vertices)} vertices, got {len(matrix)}."
        raise InputError(msg)
    if not (isinstance(reach, Real) and reach == np.inf):
        finite("reach", reach, least=0)
    return increments(mesh, matrix, reach).within(reach)


def point_sd(covariance_matrix: Floats) -> float:
    """Upper bound on `sd(Y(x))`: reached at a vertex, for inside an element Y is an average of vertex values."""
    largest = float(np.max(np.diag(square_matrix(covariance_matrix))))
    if largest < 0:
        msg = "covariance_matrix: variances, on its diagonal, must be at least 0; covariance.matrix(mesh) gives one."
        raise InputError(msg)
    return float(np.sqrt(largest)) * RELATIVE


def _steepest(mesh: Mesh, covariance: Floats) -> float:
    """Square root of the largest eigenvalue of `G Sigma_T G'`, over the gradients G of the basis on every element."""
    local = covariance[mesh.elements[:, :, None], mesh.elements[:, None, :]]
    gradient = mesh.gradients
    spread = np.einsum("tcka,tkl,tclb->tcab", gradient, local, gradient)
    lost = CANCELLED * np.max(np.diag(covariance)) * np.max((gradient**2).sum(axis=(2, 3)))
    return float(np.sqrt(np.linalg.eigvalsh(spread).max() + lost))


def element_pairs(mesh: Mesh, reach: float) -> tuple[Ints, Ints]:
    """Pairs of elements at most `reach` apart, each once, an element with itself included.

    Apart in a straight line on windows, and along the edges on networks.
    """
    if mesh.kind == "segment":
        path = cast("NetworkMesh", mesh).path_lengths
        start, end = mesh.elements.T
        nearest = np.minimum.reduce([path[np.ix_(a, b)] for a in (start, end) for b in (start, end)])
        i, j = np.nonzero(nearest <= reach)
        return i[i <= j], j[i <= j]
    mesh = cast("PlanarMesh", mesh)
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
