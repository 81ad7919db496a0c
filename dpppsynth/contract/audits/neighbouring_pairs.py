"""Pairs of neighbouring patterns: what differs in them, what does not, and whether a relation calls them neighbours."""

from collections import Counter
from collections.abc import Hashable

import numpy as np

from dpppsynth.contract.audits.moves import within
from dpppsynth.contract.audits.target import require_two
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import labels

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
    """A caller's own pair of patterns, refused unless they are neighbouring under the relation.

    Raises
    ------
    InputError
    """
    one, other = (instance("pair", each, PointPattern, "give two patterns") for each in require_two(pair))
    require_neighbours((one, other), relation)
    return one, other


def require_neighbours(pair: Pair, relation: Relation) -> None:
    """Refuse patterns that the relation does not call neighbouring: no claim is made about them.

    On a window that is not convex, moves must be straight and inside it.

    Raises
    ------
    InputError
    """
    if not isinstance(relation, CappedRelation):
        require_one_person(pair, relation)
        return
    gone, came = changed(pair)
    cap = relation.max_points_per_person
    if relation.n_is_public:
        reach = on_map(relation, pair[0].domain).reach
        allowed = len(gone) == len(came) <= cap and _matched(pair[0].domain, gone, came, reach)
    else:
        allowed = min(len(gone), len(came)) == 0 and max(len(gone), len(came)) <= cap
    if not allowed:
        msg = f"pair: its patterns are not neighbouring, which means that {relation.describe()}; pass such a pair."
        raise InputError(msg)


def _matched(domain: Domain, gone: Floats, came: Floats, reach: float) -> bool:
    """Whether a one-to-one matching of points to places within reach exists."""
    from scipy.optimize import linear_sum_assignment

    count = len(gone)
    near = within(domain, np.repeat(gone, count, axis=0), np.tile(came, (count, 1)), reach).reshape(count, count)
    rows, columns = linear_sum_assignment(~near)
    return bool(near[rows, columns].all())


def with_user_ids(pair: Pair, relation: Relation) -> Pair:
    """The pair with the mark that tells persons, where the relation names one: all that differs is one person's.

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
    """Refuse patterns of which neither is the other with one person more.

    Raises
    ------
    InputError
    """
    marks = [tuple(pattern.marks or ()) for pattern in pair]
    one, other = (_rows(pattern) for pattern in pair)
    fewer = other if one.total() >= other.total() else one
    came = (one - other) + (other - one)
    persons = {person for person, _ in came.elements()}
    # Where there is no mark, every point is a person.
    alone = len(persons) <= 1 if marks[0] else came.total() <= 1
    known = bool(marks[0]) and not persons.isdisjoint(person for person, _ in fewer)
    if marks[0] != marks[1] or len(marks[0]) > 1 or (fewer - one) or (fewer - other) or not alone or known:
        msg = f"pair: its patterns are not neighbouring, which means that {relation.describe()}; pass such a pair."
        raise InputError(msg)


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
