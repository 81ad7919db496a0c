"""Worst-case pairs: two neighbouring patterns that a mechanism hides least well, from public parameters.

One person's points move from x to x' (or are there and not there), and everybody else is as far from both as the domain
allows: what the attacker knows already must not drown the difference.
"""

from collections import Counter
from typing import Any

import numpy as np

from dpppsynth.auditing.persons import person_pair, require_one_person
from dpppsynth.auditing.separation import presence, separation
from dpppsynth.auditing.steps import moves, places, uniform_places, within
from dpppsynth.auditing.target import require_two
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Candidates are the same in every run, so that an audit can be repeated.
SEED = 20261121
# The others are spread over this share of candidates, the farthest ones.
FAR = 4
# Shown in place of a caller's own pair, which may be of real people.
GIVEN = "a pair of your own; if it is of real people, all that an audit finds is about them, and not for publication"
# Points of the others where no size is known.
UNKNOWN = 10
# Places that the others are spread over, which some share where there are more of them; and most points of a pattern.
PLACES, MOST_POINTS = 4000, 10**7


def hard_pair(plan: Any, relation: Relation) -> tuple[PointPattern, PointPattern]:
    """Two neighbouring patterns that the plan's mechanism hides least well.

    Parameters
    ----------
    plan : StatisticPlan, FieldStatisticPlan, DrawPlan, PatternPlan or HeatmapPlan
        Or any object with a `domain` and a number of points `n`, or a guess of it `expected_n`.
    relation : Relation

    Returns
    -------
    tuple of PointPattern
        With exactly `n` points each; under add/remove the first has those of one person, the second has not, and the
        first has about `expected_n` points. The moved points come last; where points are released one by one, they come
        first in the second pattern, all of whose rows are turned round. Of a heat map, the pair of `person_pair`.

    Raises
    ------
    InputError
        When the number of points is none that can be made up, or no move is possible.

    Examples
    --------
    >>> from dpppsynth import AlphaNeighbours, LaplaceSynthesizer, Window
    >>> plan = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents").plan(Window.rectangle(0, 0, 500, 500), n=40)
    >>> one, other = hard_pair(plan.statistic, AlphaNeighbours(25.0))
    >>> float(abs(one.xy - other.xy).max()) <= 25.0
    True
    """
    _require_size(plan)
    if isinstance(plan, HeatmapPlan) or not isinstance(relation, CappedRelation):
        return person_pair(plan)
    rng = np.random.default_rng(SEED)
    mesh = getattr(plan, "mesh", None)
    start = places(plan.domain, mesh, rng)
    if not relation.n_is_public:
        return _there_and_not(plan, relation, start[np.argmax(presence(plan, start))], rng)
    before, after = moves(plan.domain, start, on_map(relation, plan.domain).reach, mesh)
    if not len(before):
        msg = "pair: no move inside the domain was found within the privacy radius; pass a pair of your own (pair=)."
        raise InputError(msg)
    worst = _worst(separation(plan, before, after), plan.domain, before, after)
    ends = np.stack([before[worst], after[worst]])
    count = min(relation.max_points_per_person, plan.n)
    others = far_from(plan.domain, ends, plan.n - count, rng)
    one, other = (np.concatenate([others, np.tile(end, (count, 1))]) for end in ends)
    if isinstance(plan, MovedPlan) and not plan.track:
        # The order of the rows is not protected, so it must not differ between the patterns.
        other = other[::-1]
    return PointPattern.at(one, plan.domain), PointPattern.at(other, plan.domain)


def _require_size(plan: Any) -> None:
    for name in ("n", "expected_n"):
        size = getattr(plan, name, None)
        if size is not None and (not 1 <= size <= MOST_POINTS or (name == "n" and size != int(size))):
            msg = f"{name}: patterns of {size!r} points are not made up to audit; needs 1 to {MOST_POINTS}."
            raise InputError(msg)


def _worst(apart: Floats, domain: Domain, before: Floats, after: Floats) -> int:
    """The move that separates most; of several the longest, which is the plainest to see."""
    length = np.hypot(*(domain.coordinates(after) - domain.coordinates(before)).T)
    return int(np.argmax(np.where(apart >= apart.max() * (1 - 1e-9), length, -1.0)))


def far_from(domain: Domain, ends: Floats, count: int, rng: np.random.Generator) -> Floats:
    """(count, 2) positions spread over the part of the domain that is farthest from positions (k, 2)."""
    anywhere = uniform_places(domain, 2 * FAR * min(count, PLACES) + 400, rng)
    apart = domain.coordinates(anywhere)[:, None] - domain.coordinates(ends)
    away = np.hypot(apart[..., 0], apart[..., 1]).min(axis=1)
    farthest = np.argsort(-away, kind="stable")[: len(anywhere) // FAR]
    return anywhere[np.resize(rng.permutation(farthest), count)]


def changed(pair: tuple[PointPattern, PointPattern]) -> tuple[Floats, Floats]:
    """Positions (k, 2) of the points of the first pattern alone, and (l, 2) of the second alone."""
    one, other = _beyond(pair, _same_rows(pair))
    return _positions(one - other), _positions(other - one)


def unchanged(pair: tuple[PointPattern, PointPattern]) -> Floats:
    """(m, 2) positions of the points that both patterns have."""
    same = _same_rows(pair)
    one, other = _beyond(pair, same)
    return np.concatenate([pair[0].positions[:same], _positions(one & other)])


def _same_rows(pair: tuple[PointPattern, PointPattern]) -> int:
    """Number of leading rows that both patterns share: all but the moved ones, as a rule."""
    count = min(map(len, pair))
    differ = (pair[0].positions[:count] != pair[1].positions[:count]).any(axis=1)
    return int(differ.argmax()) if differ.any() else count


def _beyond(pair: tuple[PointPattern, PointPattern], start: int) -> tuple[Counter[Any], Counter[Any]]:
    one, other = (Counter(map(tuple, pattern.positions[start:].tolist())) for pattern in pair)
    return one, other


def _positions(points: Counter[Any]) -> Floats:
    return np.array([*points.elements()], dtype=np.float64).reshape(-1, 2)


def neighbours(plan: Any, relation: Relation, pair: Any = None) -> tuple[PointPattern, PointPattern]:
    """The pair given, if it is neighbouring under the relation, or else the hard pair.

    Raises
    ------
    InputError
    """
    if pair is None:
        return hard_pair(plan, relation)
    require_two(pair)
    one, other = (instance("pair", each, PointPattern, "give two patterns") for each in pair)
    require_neighbours((one, other), relation)
    return one, other


def require_neighbours(pair: tuple[PointPattern, PointPattern], relation: Relation) -> None:
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


def _there_and_not(
    plan: Any, relation: CappedRelation, place: Floats, rng: np.random.Generator
) -> tuple[PointPattern, PointPattern]:
    count = relation.max_points_per_person
    size = UNKNOWN if plan.expected_n is None else round(plan.expected_n)
    # A pattern must not be empty.
    others = far_from(plan.domain, place[None], max(1, size - count), rng)
    there = np.concatenate([others, np.tile(place, (count, 1))])
    return PointPattern.at(there, plan.domain), PointPattern.at(others, plan.domain)


def what_changes(pair: tuple[PointPattern, PointPattern], relation: Relation, *, given: bool) -> str:
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
