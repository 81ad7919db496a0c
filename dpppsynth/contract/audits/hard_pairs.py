"""Worst-case pairs: two neighbouring patterns that a mechanism hides least well, from public parameters.

One person's points move from x to x' (or are there and not there), and everybody else is as far from both as the domain
allows: what the attacker knows already must not drown the difference.
"""

from collections.abc import Callable

import numpy as np

from dpppsynth.contract.audits.moves import moves, places, uniform_places
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.statistic import Statistic
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.relations import CappedRelation
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
    """(2, 2) positions before and after the move that separates most; parameters and errors as in `moved_pair`."""
    mesh = getattr(plan, "mesh", None)
    start = places(plan.domain, mesh, rng)
    before, after = moves(plan.domain, start, on_map(relation, plan.domain).reach, mesh)
    if not len(before):
        raise InputError(NO_MOVE)
    worst = _worst(separation(before, after), plan.domain, before, after)
    return np.stack([before[worst], after[worst]])


def add_remove_pair(plan: Statistic, relation: CappedRelation, presence: Callable[[Floats], Floats]) -> Pair:
    """Two patterns of which the first, of about `expected_n` points, has those of one person, and the second has not.

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
    """(2,) position at which a point shows most."""
    start = places(plan.domain, getattr(plan, "mesh", None), rng)
    return start[np.argmax(presence(start))]


def made_up_size(plan: Statistic) -> int:
    """Number of points of made-up patterns: the plan's public number, or the guess of it.

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
