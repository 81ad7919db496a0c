"""Gaussian fields along streets that carry on through crossings: sparse precision over the segments of a network.

The field has one value a segment. Two segments that meet are tied with a conductance, and the precision is
`tau^2 (kappa^2 C + L)` with the segments' lengths C and the Laplacian L of the conductances
(docs/theory/sparse_field.md, section 4).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError, NoFieldError
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.models.sparse_fields import SparseField, require_few_unknowns
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mesh import Floats, Ints

# Largest turn of a street that carries on through a crossing.
STRAIGHT = np.pi / 4
# Most segments at a crossing: all pairs of them are tied.
MOST_MEETING = 64


class Ties(NamedTuple):
    """Pairs of segments that meet at a vertex.

    Attributes
    ----------
    pair : (P, 2) array
        Segments.
    crossing : (P,) array
        Conductance where all segments at the vertex are one (Kirchhoff's condition).
    street : (P,) array
        Conductance where a street meets nothing on its way: zero for pairs that turn.
    """

    pair: Ints
    crossing: Floats
    street: Floats

    def conductance(self, detour: float) -> Floats:
        """(P,) weighted average of both: `crossing` loses weight where a turn counts as a street of length `detour`."""
        weight = 1 / (1 + detour * self.crossing)
        return weight * self.crossing + (1 - weight) * self.street


@dataclass(frozen=True)
class StreetMatern:
    """Matern field of smoothness 1/2 along streets, loosely tied where they cross.

    Attributes
    ----------
    sigma : float
        Standard deviation, on every segment.
    range : float
        Distance along a street at which the correlation is about 0.14, in the network's unit.
    detour : float
        Length of street that a turn at a crossing counts as. With 0 a crossing joins all that meet, and the field is
        the Whittle-Matern field of the network; the longer, the less streets that cross have to do with one another.
    """

    sigma: float
    range: float
    detour: float = 0.0

    def __post_init__(self) -> None:
        for name in ("sigma", "range"):
            positive(name, getattr(self, name))
        if not 0 <= self.detour < np.inf:
            msg = f"detour: must be a length, 0 or more, got {self.detour!r}."
            raise InputError(msg)

    def on(self, mesh: NetworkMesh, ties: Ties | None = None) -> SparseField:
        """The field on the segments of a mesh, whose `ties` need not be found again for another range or detour.

        Raises
        ------
        InputError
            When the mesh is too large.
        """
        length = mesh.element_measure
        require_few_unknowns(len(length))
        ties = street_ties(mesh) if ties is None else ties
        kappa = 2 / self.range
        root = scipy.sparse.hstack(
            [scipy.sparse.diags_array(kappa * np.sqrt(length)), _steps(ties, self.detour, len(length))]
        )
        root = (root / np.sqrt(2 * kappa)).tocsc()
        precision = (root @ root.T).tocsc()
        factor = SparseFactor(precision)
        placement = scipy.sparse.diags_array(self.sigma / np.sqrt(factor.inverse_diagonal)).tocsr()
        return SparseField(precision, root, factor.log_det, placement)


def edge_numbers(mesh: NetworkMesh) -> SparseField:
    """Independent standard normal numbers of the edges, at the segments of a mesh."""
    edges, count = len(mesh.domain.edges), len(mesh.edge)
    require_few_unknowns(edges)
    one = scipy.sparse.eye_array(edges, format="csc")
    placement = scipy.sparse.csr_array((np.ones(count), (np.arange(count), mesh.edge)), shape=(count, edges))
    return SparseField(one, one, 0.0, placement, mixed=True)


def street_ties(mesh: NetworkMesh) -> Ties:
    """Ties between the segments of a mesh: streets carry on where the turn is least, and at most 45 degrees.

    Where two segments meet and no other, they are one street however it bends. Elsewhere two carry on if each makes a
    smaller turn into the other than into any third. Directions are those from the vertex to the segments' middles.
    """
    # The segments' ends by vertex, and where each vertex begins in them.
    ends = mesh.elements.ravel()
    order = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[order], np.arange(len(mesh.vertices) + 1))
    degree = np.diff(start)
    require_few_meeting(mesh.domain)
    half = 2 / mesh.element_measure
    segment, towards = order // 2, _directions(mesh)[order]
    pairs, crossing, street = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)], [np.empty(0)]
    for k in np.unique(degree[degree > 1]):
        rows = start[:-1][degree == k][:, None] + np.arange(k)
        conductance, carries = half[segment[rows]], _carries_on(towards[rows])
        one, other = np.triu_indices(k, 1)
        first, second = conductance[:, one], conductance[:, other]
        pairs.append(np.stack([segment[rows[:, one]], segment[rows[:, other]]], axis=-1).reshape(-1, 2))
        crossing.append((first * second / conductance.sum(axis=1, keepdims=True)).ravel())
        street.append(np.where(carries[:, one, other], first * second / (first + second), 0.0).ravel())
    found = Ties(np.concatenate(pairs), np.concatenate(crossing), np.concatenate(street))
    apart = found.pair[:, 0] != found.pair[:, 1]
    return Ties(*(each[apart] for each in found))


def most_meeting(network: LinearNetwork) -> int:
    """Largest number of edges at one vertex."""
    return int(np.bincount(network.edges.ravel()).max())


def require_few_meeting(network: LinearNetwork) -> None:
    """Refuse a network with too many edges at one vertex, since each pair of them would be a tie."""
    most = most_meeting(network)
    if most > MOST_MEETING:
        msg = (
            f"network: {most} edges meet at one vertex, and a field along streets takes at most {MOST_MEETING}; "
            "take prior='dense'."
        )
        raise NoFieldError(msg)


def _directions(mesh: NetworkMesh) -> Floats:
    """(2T, 2) unit vectors from the segments' ends to their middles."""
    at = [np.column_stack([mesh.edge, along]) for along in (mesh.start, (mesh.start + mesh.end) / 2, mesh.end)]
    first, middle, last = (mesh.domain.coordinates(each) for each in at)
    away = np.stack([middle - first, middle - last], axis=1).reshape(-1, 2)
    length = np.linalg.norm(away, axis=1, keepdims=True)
    # The middle of a street that comes back to where it begins.
    return np.asarray(away / np.where(length > 0, length, 1.0))


def _carries_on(towards: Floats) -> npt.NDArray[np.bool_]:
    """(R, k, k) whether two of k segments are one street, at R vertices with directions (R, k, 2)."""
    k = towards.shape[1]
    if k == 2:
        return np.broadcast_to(~np.eye(2, dtype=bool), (len(towards), 2, 2))
    facing = -np.einsum("ria,rja->rij", towards, towards)
    facing[:, np.arange(k), np.arange(k)] = -np.inf
    best = facing.max(axis=2, keepdims=True)
    chosen = (facing == best) & (best >= np.cos(STRAIGHT))
    return np.asarray(chosen & chosen.transpose(0, 2, 1))


def _steps(ties: Ties, detour: float, count: int) -> "scipy.sparse.csc_array":
    """Sparse (count, P) root of the Laplacian."""
    conductance = ties.conductance(detour)
    tied = conductance > 0
    step = np.sqrt(conductance[tied])[:, None] * (1.0, -1.0)
    columns = np.arange(0, 2 * len(step) + 1, 2)
    return scipy.sparse.csc_array((step.ravel(), ties.pair[tied].ravel(), columns), shape=(count, len(step)))
