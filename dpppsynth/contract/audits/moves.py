"""Places in a domain, and moves between them no longer than a privacy radius, from public parameters alone."""

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import distances, from_positions
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces, triangulate

# Moves are by this share of the radius, less what rounding of large coordinates may add, so none is longer.
SHORT = 1 - 1e-9
# Directions of moves in the plane, beside those in which some tent is steepest.
DIRECTIONS = 16
# Places looked at on a mesh: of its smallest pieces, of others, and anywhere; and those tried as pairs.
SMALLEST, OTHERS, ANYWHERE, PAIRED = 120, 120, 60, 500
# Distance of two points by rounding alone, as a share of the size of their coordinates.
ROUNDING = 1e-14


def tiles(domain: Domain) -> Pieces:
    """Triangles that tile a window, or the edges of a network."""
    if isinstance(domain, LinearNetwork):
        edge = np.arange(len(domain.edges))
        start = np.column_stack([edge, np.zeros(len(edge))])
        ends = np.stack([start, np.column_stack([edge, domain.lengths])], axis=1)
        return Pieces(ends, edge, domain.lengths)
    return triangulate(np.array([domain.geometry]), np.zeros(1, dtype=np.int64))


def uniform_places(domain: Domain, count: int, rng: np.random.Generator) -> Floats:
    """(count, 2) positions spread evenly over the domain."""
    pieces = tiles(domain)
    chosen = rng.choice(len(pieces.weight), count, p=pieces.weight / pieces.weight.sum())
    share = rng.dirichlet(np.ones(pieces.sides), count)
    return _inside(domain, np.einsum("qk,qkc->qc", share, pieces.corners[chosen]))


def places(domain: Domain, mesh: Mesh | None, rng: np.random.Generator) -> Floats:
    """(m, 2) positions where a move may show most: corners, midpoints and centres of pieces, and places anywhere.

    Small elements come first: there a basis function is steepest.
    """
    pieces = tiles(domain) if mesh is None else mesh.pieces
    order = np.argsort(pieces.weight if mesh is None else mesh.element_measure[pieces.element], kind="stable")
    rest = rng.permutation(order[SMALLEST:])[:OTHERS]
    corners = pieces.corners[np.concatenate([order[:SMALLEST], rest])]
    middles = (corners + np.roll(corners, -1, axis=1)) / 2
    special = np.concatenate([corners, middles, corners.mean(axis=1, keepdims=True)], axis=1).reshape(-1, 2)
    found = np.concatenate([special, uniform_places(domain, ANYWHERE, rng)])
    _, first = np.unique(found, axis=0, return_index=True)
    return _inside(domain, found[np.sort(first)])


def moves(domain: Domain, start: Floats, reach: float, mesh: Mesh | None = None) -> tuple[Floats, Floats]:
    """Moves by paths inside the domain of length at most `reach`.

    Parameters
    ----------
    domain : Window or LinearNetwork
    start : (m, 2) array
        Positions to move from.
    reach : float
        In the domain's unit; may be infinite.
    mesh : Mesh, optional
        Its steepest directions are tried as well.

    Returns
    -------
    tuple of (P, 2) arrays
        Positions before and after each move: by almost exactly `reach`, and between the places themselves.
    """
    length = SHORT * reach - 2 * _rounding(domain) if np.isfinite(reach) else reach
    if length <= 0:
        return np.empty((0, 2)), np.empty((0, 2))
    few = start[np.linspace(0, len(start) - 1, min(PAIRED, len(start))).astype(np.int64)]
    i, j = np.triu_indices(len(few), 1)
    near = within(domain, few[i], few[j], length)
    pairs = [(few[i[near]], few[j[near]])]
    if np.isfinite(reach) and isinstance(domain, LinearNetwork):
        pairs.append(_walks(domain, start, length))
    elif np.isfinite(reach):
        pairs.append(_flights(domain, start, length, mesh))
    before, after = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return before, after


def within(domain: Domain, first: Floats, second: Floats, reach: float) -> npt.NDArray[np.bool_]:
    """(P,) whether positions (P, 2) are joined by a path inside the domain known to be no longer than `reach`.

    On windows that are not convex only straight paths are known.
    """
    if not np.isfinite(reach):
        return np.full(len(first), True)
    if isinstance(domain, LinearNetwork):
        return _along(domain, first, second) <= reach + _rounding(domain)
    near = np.hypot(*(second - first).T) <= reach + _rounding(domain)
    near[near] = straight(domain, first[near], second[near])
    return near


def _rounding(domain: Domain) -> float:
    return ROUNDING * max(abs(v) for v in domain.bounds)


def straight(domain: Domain, first: Floats, second: Floats) -> npt.NDArray[np.bool_]:
    """(P,) whether the segment between two points (P, 2) of a window stays inside it."""
    if isinstance(domain, Window) and domain.is_convex:
        return np.full(len(first), True)
    shapely.prepare(domain.geometry)
    return np.asarray(shapely.covers(domain.geometry, shapely.linestrings(np.stack([first, second], axis=1))))


def _along(network: LinearNetwork, first: Floats, second: Floats) -> Floats:
    """(P,) lengths of the shortest paths between positions (P, 2), few of which differ."""
    a, i = np.unique(first, axis=0, return_inverse=True)
    b, j = np.unique(second, axis=0, return_inverse=True)
    return np.asarray(distances(network, a, b)[i.ravel(), j.ravel()], dtype=np.float64)


def _flights(window: Domain, start: Floats, length: float, mesh: Mesh | None) -> tuple[Floats, Floats]:
    """Straight moves of the given length in many directions, as far as they stay inside."""
    angle = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
    toward = np.column_stack([np.cos(angle), np.sin(angle)])
    if mesh is not None:
        slope = mesh.gradients.reshape(-1, 2)
        size = np.hypot(*slope.T)
        steepest = np.argsort(-size, kind="stable")[:DIRECTIONS]
        # At the corners of squares some basis functions are flat.
        steepest = steepest[size[steepest] > 0]
        toward = np.concatenate([toward, slope[steepest] / size[steepest, None]])
    before = np.repeat(start, len(toward), axis=0)
    after = before + length * np.tile(toward, (len(start), 1))
    held = window.holds(after)
    held[held] = straight(window, before[held], after[held])
    return before[held], after[held]


def _walks(network: LinearNetwork, start: Floats, length: float) -> tuple[Floats, Floats]:
    """All places where a walk of the given length along the edges ends."""
    before, after = [], []
    for block, known in from_positions(network, start, length):
        for side in (0, 1):
            row, edge, left = _last_steps(network, length - known[:, network.edges[:, side]])
            along = left if side == 0 else network.lengths[edge] - left
            before.append(start[block[row]])
            after.append(np.column_stack([edge, along]))
    for way in (-length, length):
        there = start + np.array([0.0, way])
        on = network.holds(there)
        before.append(start[on])
        after.append(there[on])
    return np.concatenate(before), np.concatenate(after)


def _last_steps(network: LinearNetwork, left: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows, edges and distances along them of walks that end on an edge; left (m, E) is what remains at its end."""
    row, edge = np.nonzero((left >= 0) & (left <= network.lengths))
    return row, edge, left[row, edge]


def _inside(domain: Domain, positions: Floats) -> Floats:
    if isinstance(domain, LinearNetwork):
        # Averages of positions on one edge may have lost a rounding error of its number.
        positions = np.column_stack([np.rint(positions[:, 0]), positions[:, 1]])
    return positions[domain.holds(positions)]
