"""Neighbouring patterns and the moves between them, from public parameters alone."""

from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.contract.audits.target import require_two
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import distances, from_positions
from dpppsynth.privacy.guarantee import on_map
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Mesh, Pieces, triangulate
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import labels

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
    """(m, 2) candidate positions of moves: corners, midpoints and centres of pieces, and random places.

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
            # Of each walk (m, E) what remains at the end of an edge, on which it ends where that is long enough.
            left = length - known[:, network.edges[:, side]]
            row, edge = np.nonzero((left >= 0) & (left <= network.lengths))
            along = left[row, edge] if side == 0 else network.lengths[edge] - left[row, edge]
            before.append(start[block[row]])
            after.append(np.column_stack([edge, along]))
    for way in (-length, length):
        there = start + np.array([0.0, way])
        on = network.holds(there)
        before.append(start[on])
        after.append(there[on])
    return np.concatenate(before), np.concatenate(after)


def _inside(domain: Domain, positions: Floats) -> Floats:
    if isinstance(domain, LinearNetwork):
        # Averages of positions on one edge may have lost a rounding error of its number.
        positions = np.column_stack([np.rint(positions[:, 0]), positions[:, 1]])
    return positions[domain.holds(positions)]


Pair = tuple[PointPattern, PointPattern]

# Further points of a person, in multiples of those that count.
BEYOND = 2
# Shown in place of a caller's own pair, which may be of real people.
GIVEN = "a pair of your own; if it is of real people, all that an audit finds is about them, and not for publication"


def changed(pair: Pair) -> tuple[Floats, Floats]:
    """Positions (k, 2) of the points of the first pattern alone, and (l, 2) of the second alone."""
    one, other = _beyond(pair, _same_rows(pair))
    return _positions(one - other), _positions(other - one)


def unchanged(pair: Pair) -> Floats:
    """(m, 2) positions of the points that both patterns have."""
    same = _same_rows(pair)
    one, other = _beyond(pair, same)
    return np.concatenate([pair[0].positions[:same], _positions(one & other)])


def _same_rows(pair: Pair) -> int:
    """Number of leading rows that both patterns share: all but the moved ones, as a rule."""
    count = min(map(len, pair))
    differ = (pair[0].positions[:count] != pair[1].positions[:count]).any(axis=1)
    return int(differ.argmax()) if differ.any() else count


def _beyond(pair: Pair, start: int) -> tuple[Counter[tuple[float, ...]], Counter[tuple[float, ...]]]:
    one, other = (Counter(map(tuple, pattern.positions[start:].tolist())) for pattern in pair)
    return one, other


def _positions(points: Counter[tuple[float, ...]]) -> Floats:
    return np.array([*points.elements()], dtype=np.float64).reshape(-1, 2)


def own_pair(pair: object, relation: Relation) -> Pair:
    """A caller's own pair of patterns, refused unless they are neighbouring under the relation; InputError."""
    one, other = (instance("pair", each, PointPattern, "give two patterns") for each in require_two(pair))
    require_neighbours((one, other), relation)
    return one, other


def require_neighbours(pair: Pair, relation: Relation) -> None:
    """Refuse patterns that are not neighbours under the relation: no claim covers them; InputError.

    On a window that is not convex, moves must be straight and inside it.
    """
    if not isinstance(relation, CappedRelation):
        require_one_person(pair, relation)
        return
    domain = pair[0].domain
    require_capped(relation, *changed(pair), partial(within, domain, reach=on_map(relation, domain).reach))


def require_capped(
    relation: CappedRelation, gone: Floats, came: Floats, near: Callable[[Floats, Floats], npt.NDArray[np.bool_]]
) -> None:
    """Refuse rows (k, c) of one pattern alone and (l, c) of the other alone that are more than a person's change.

    Parameters
    ----------
    relation : CappedRelation
    gone, came : arrays
        Where n is public, a one-to-one matching of both must exist.
    near : callable
        From rows (P, c) and (P, c) to whether one may become the other (P,).
    """
    cap, count = relation.max_points_per_person, len(gone)
    if not relation.n_is_public:
        allowed = min(count, len(came)) == 0 and max(count, len(came)) <= cap
    elif allowed := count == len(came) <= cap:
        from scipy.optimize import linear_sum_assignment

        may = near(np.repeat(gone, count, axis=0), np.tile(came, (count, 1))).reshape(count, count)
        allowed = bool(may[linear_sum_assignment(~may)].all())
    if not allowed:
        raise not_neighbouring(relation)


def not_neighbouring(relation: Relation) -> InputError:
    """The error for patterns that the relation does not call neighbouring."""
    said = f"pair: its patterns are not neighbouring, which means that {relation.describe()}; pass such a pair."
    return InputError(said)


def with_user_ids(pair: Pair, relation: Relation) -> Pair:
    """The pair with the mark of persons that the relation names: the differing points are one person's.

    Where that person has as many points as count, all in one place, they get further ones there, which must not count.
    Everybody else has one point.
    """
    user = relation.user if isinstance(relation, CappedRelation) else None
    if user is None:
        return pair
    cap = relation.max_points_per_person if isinstance(relation, CappedRelation) else 1
    first, second = (_with_person(each, own, user, cap) for each, own in zip(pair, changed(pair), strict=True))
    return first, second


def _with_person(pattern: PointPattern, own: Floats, user: str, cap: int) -> PointPattern:
    """The pattern with labels: 0 for points at the positions `own` (k, 2), the last ones there, and others' own."""
    labels, left = np.arange(1, len(pattern) + 1), Counter(map(tuple, own.tolist()))
    for row, at in reversed([*enumerate(map(tuple, pattern.positions.tolist()))]):
        if not left.total():
            break
        if left[at] > 0:
            left[at] -= 1
            labels[row] = 0
    many = len(own) == cap and len(np.unique(own, axis=0)) == 1
    rows = np.concatenate([np.arange(len(pattern)), np.tile(np.flatnonzero(labels == 0), BEYOND if many else 0)])
    marks = {name: values[rows] for name, values in (pattern.marks or {}).items()}
    return PointPattern.at(pattern.positions[rows], pattern.domain, {**marks, user: labels[rows]})


def require_one_person(pair: Pair, relation: Relation) -> None:
    """Refuse patterns of which neither is the other with one person more; InputError."""
    marks = [tuple(pattern.marks or ()) for pattern in pair]
    one, other = (_rows(pattern) for pattern in pair)
    fewer = other if one.total() >= other.total() else one
    came = (one - other) + (other - one)
    persons = {person for person, _ in came.elements()}
    # Where there is no mark, every point is a person.
    alone = len(persons) <= 1 if marks[0] else came.total() <= 1
    known = bool(marks[0]) and not persons.isdisjoint(person for person, _ in fewer)
    if marks[0] != marks[1] or len(marks[0]) > 1 or (fewer - one) or (fewer - other) or not alone or known:
        raise not_neighbouring(relation)


def _rows(pattern: PointPattern) -> Counter[tuple[Hashable, Hashable]]:
    """Numbers of rows of each person at each position."""
    told = labels(next(iter(pattern.marks.values()))) if pattern.marks else [None] * len(pattern)
    return Counter(zip(told, map(tuple, pattern.positions.tolist()), strict=True))


def what_changes(pair: Pair, relation: Relation, *, given: bool) -> str:
    """The difference between the two patterns in words, with places where they are made up from public parameters."""
    if given:
        return GIVEN
    domain = pair[0].domain
    gone, came = changed(pair)
    where = " and ".join(
        f"({', '.join(f'{v:.7g}' for v in domain.coordinates(places)[0])})" for places in (gone, came) if len(places)
    )
    if relation.n_is_public:
        return f"{len(gone)} of {len(pair[0])} made-up points at one or the other of {where}"
    return f"{max(len(gone), len(came))} of {max(map(len, pair))} made-up points at {where}, or not there"
