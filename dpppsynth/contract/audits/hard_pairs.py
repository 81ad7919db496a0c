"""Neighbouring patterns with the largest privacy loss, from public parameters alone."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dpppsynth.contract.audits.neighbouring_pairs import Pair, moves, places, uniform_places
from dpppsynth.contract.pairs_statistic import PairsStatistic
from dpppsynth.contract.statistic import Statistic
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.guarantee import on_map
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Candidates are the same in every run, so that an audit can be repeated.
SEED = 20261121
# The others are spread over this share of candidates, the farthest ones.
FAR = 4
# Points of the others where no size is known.
UNKNOWN = 10
# Places that the others are spread over, which some share where there are more of them; and most points of a pattern.
PLACES, MOST_POINTS = 4000, 10**7
NO_MOVE = "pair: no move inside the domain was found within the privacy radius; pass a pair of your own (pair=)."


def moved_pair(plan: Statistic, relation: CappedRelation, separation: Callable[[Floats, Floats], Floats]) -> Pair:
    """Two patterns with `n` points each, in which one person's points move.

    Parameters
    ----------
    plan : Statistic
    relation : CappedRelation
        Under which the number of points is public.
    separation : callable
        From places (P, 2) and (P, 2) to how well the mechanism tells them apart (P,).

    Returns
    -------
    tuple of PointPattern
        The moved points come last.

    Raises
    ------
    InputError
        When the number of points is none that can be made up, or no move is possible.
    """
    size, rng = made_up_size(plan), np.random.default_rng(SEED)
    ends = worst_case_move(plan, relation, separation, rng)
    count = min(relation.max_points_per_person, size)
    others = far_from(plan.domain, ends, size - count, rng)
    one, other = (np.concatenate([others, np.tile(end, (count, 1))]) for end in ends)
    return PointPattern.at(one, plan.domain), PointPattern.at(other, plan.domain)


def worst_case_move(
    plan: Statistic,
    relation: CappedRelation,
    separation: Callable[[Floats, Floats], Floats],
    rng: np.random.Generator,
) -> Floats:
    """(2, 2) positions before and after the move of largest privacy loss; parameters and errors as in `moved_pair`."""
    mesh = getattr(plan, "mesh", None)
    start = places(plan.domain, mesh, rng)
    before, after = moves(plan.domain, start, on_map(relation, plan.domain).reach, mesh)
    if not len(before):
        raise InputError(NO_MOVE)
    worst = _worst(separation(before, after), plan.domain, before, after)
    return np.stack([before[worst], after[worst]])


def add_remove_pair(plan: Statistic, relation: CappedRelation, presence: Callable[[Floats], Floats]) -> Pair:
    """Two patterns, one with a person's points and one without; the first has about `expected_n` points.

    Parameters
    ----------
    plan : Statistic
    relation : CappedRelation
        Under which the number of points is secret.
    presence : callable
        From places (P, 2) to how well the mechanism tells that a point is there (P,).

    Raises
    ------
    InputError
        When the number of points is none that can be made up.
    """
    size, rng = made_up_size(plan), np.random.default_rng(SEED)
    place = worst_location(plan, presence, rng)
    count = relation.max_points_per_person
    # A pattern must not be empty.
    others = far_from(plan.domain, place[None], max(1, size - count), rng)
    there = np.concatenate([others, np.tile(place, (count, 1))])
    return PointPattern.at(there, plan.domain), PointPattern.at(others, plan.domain)


def worst_location(plan: Statistic, presence: Callable[[Floats], Floats], rng: np.random.Generator) -> Floats:
    """(2,) location of largest privacy loss under addition of a point."""
    start = places(plan.domain, getattr(plan, "mesh", None), rng)
    return start[np.argmax(presence(start))]


def made_up_size(plan: Statistic) -> int:
    """Number of points of made-up patterns: the public n, or the public guess of it.

    Raises
    ------
    InputError
        When no pattern is made up of so many.
    """
    for name, size in (("n", plan.n), ("expected_n", plan.expected_n)):
        if size is None:
            continue
        if not 1 <= size <= MOST_POINTS or (name == "n" and size != int(size)):
            msg = f"{name}: patterns of {size!r} points are not made up to audit; needs 1 to {MOST_POINTS}."
            raise InputError(msg)
        return round(size)
    return UNKNOWN


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


# Partners at the place itself in multiples of a cap; and clumps around it, which have more room together: their
# number, distance in radii and points in multiples of a cap.
PARTNERS = (1.0, 0.5, 2.0, 4.0)
CLUMPS, AWAY, IN_CLUMP = 6, 0.55, 0.5
# Radii between a place and what is out of reach of all that is around it.
APART = 2.5
# Points of made-up patterns beyond which nothing shows better; and places that one person's points are spread over.
MOST, SURROUNDINGS = 5000, 6

# Places (k, 2) of one person's points, and where they move to (k, 2).
Ends = tuple[Floats, Floats]


def hardest(plan: PairsStatistic, relation: Relation, ends: Sequence[Ends] = ()) -> Pair:
    """The pair whose exact numbers differ most, in scales of their noise.

    Parameters
    ----------
    plan : PairsStatistic
    relation : Relation
    ends : sequence of (places, places)
        Tried first, beside moves out of reach of all that is near.
    """
    pairs = list(candidates(plan, relation, ends))
    return pairs[int(np.argmax([differences(plan, pair).sum() for pair in pairs]))]


def differences(plan: PairsStatistic, pair: Pair) -> Floats:
    """(size,) differences of exact numbers in scales of their noise."""
    first, second = (plan.exact_numbers(pattern) for pattern in pair)
    return np.abs(first - second) / scales(plan)


def scales(plan: PairsStatistic) -> Floats:
    """(size,) scale of each number's noise."""
    groups = plan.noise_groups()
    return np.repeat([group.scale for group in groups], [group.size for group in groups])


def candidates(plan: PairsStatistic, relation: Relation, ends: Sequence[Ends] = ()) -> Iterator[Pair]:
    """Neighbouring patterns in which one person moves, comes or goes among points near theirs."""
    own = relation.max_points_per_person if isinstance(relation, CappedRelation) else 1
    own = min(own, made_up_size(plan) if relation.n_is_public else MOST)
    for moved in (*ends, _ends(plan, relation, own)):
        yield from _among_partners(plan, own, moved, known=relation.n_is_public)


def _among_partners(plan: PairsStatistic, own: int, ends: Ends, *, known: bool) -> Iterator[Pair]:
    """Patterns with `own` points of one person at either end; at the first or nowhere unless n is known."""
    size, rng = made_up_size(plan), np.random.default_rng(SEED)
    here, there = (np.resize(each, (own, 2)) for each in ends)
    for partners in _surroundings(plan, ends[0]):
        # Where n is public there are no more partners than points; elsewhere a guess of their number binds nobody.
        around = partners[: size - own] if known else partners
        rest = max(0, size - own - len(around)) if known else max(1, min(size, MOST) - len(around))
        others = np.concatenate([around, far_from(plan.domain, np.concatenate(ends), rest, rng)])
        one = np.concatenate([others, here])
        yield _pattern(plan, one), _pattern(plan, np.concatenate([others, there]) if known else others)


def _pattern(plan: PairsStatistic, positions: Floats) -> PointPattern:
    mark = plan.count_unit
    return PointPattern.at(positions, plan.domain, None if mark is None else {mark: np.arange(len(positions))})


def _ends(plan: PairsStatistic, relation: Relation, count: int) -> Ends:
    """Maximal moves (k, 2), (k, 2) inside the domain that share no pair."""
    rng = np.random.default_rng(SEED)
    reach = on_map(relation, plan.domain).reach if isinstance(relation, CappedRelation) else np.inf
    before, after = moves(plan.domain, places(plan.domain, None, rng), reach)
    if not len(before):
        raise InputError(NO_MOVE)
    x0, y0, x1, y1 = plan.domain.bounds
    xy, to = (plan.domain.coordinates(each) for each in (before, after))
    enough, centre = APART * max(plan.radii), np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    score = np.minimum(_length(to - xy), enough) - 1e-3 * _length(xy - centre)
    chosen = [int(np.argmax(score))]
    while len(chosen) < min(count, SURROUNDINGS):
        away = np.min([np.minimum(_length(xy - xy[k]), _length(to - xy[k])) for k in chosen], axis=0)
        score = np.where(away < enough, -np.inf, score)
        if not np.isfinite(score).any():
            break
        chosen.append(int(np.argmax(score)))
    return before[chosen], after[chosen]


def _length(ways: Floats) -> Floats:
    return np.asarray(np.hypot(*ways.T), dtype=np.float64)


def _surroundings(plan: PairsStatistic, starts: Floats) -> Iterator[Floats]:
    """(m, 2) partners of points at some places (k, 2)."""
    for cap in dict.fromkeys(plan.caps):
        for times in PARTNERS:
            yield np.tile(starts, (min(MOST, max(1, round(times * cap))), 1))
    if isinstance(plan.domain, LinearNetwork):
        return
    turn = 2 * np.pi * np.arange(CLUMPS) / CLUMPS
    for radius, cap in zip(plan.radii, plan.caps, strict=True):
        ring = AWAY * radius * np.column_stack([np.cos(turn), np.sin(turn)])
        clumps = (starts[:, None] + ring).reshape(-1, 2)
        inside = clumps[plan.domain.contains(clumps)]
        yield np.repeat(inside, min(MOST, max(1, round(IN_CLUMP * cap))), axis=0)
