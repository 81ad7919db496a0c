"""Pairs of patterns that pair sums hide least well, from public parameters alone.

A point adds most where others are near it that have room below their caps. Several such surroundings are made up, with
more partners than a cap allows as well, so that a cap which does not hold shows; the worst is taken.
"""

from collections.abc import Iterator

import numpy as np

from dpppsynth.contract.audits.hard_pairs import SEED, far_from, made_up_size
from dpppsynth.contract.audits.moves import moves, places
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.pairs.plan import PairSumsPlan
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Partners at the place itself in multiples of a cap; and clumps around it, which have more room together: their
# number, distance in radii and points in multiples of a cap.
PARTNERS = (1.0, 0.5, 2.0, 4.0)
CLUMPS, AWAY, IN_CLUMP = 6, 0.55, 0.5
# Radii between a place and what is out of reach of all that is around it.
APART = 2.5
# Points of made-up patterns beyond which nothing shows better; and places that one person's points are spread over.
MOST, PLACES = 5000, 6


def hardest(plan: PairSumsPlan) -> Pair:
    """The pair whose exact sums differ most, in scales of their noise."""
    pairs = list(candidates(plan))
    return pairs[int(np.argmax([differences(plan, pair).sum() for pair in pairs]))]


def differences(plan: PairSumsPlan, pair: Pair) -> Floats:
    """(L,) differences of exact sums in scales of their noise."""
    first, second = (plan.exact(pattern) for pattern in pair)
    return np.abs(first - second) / np.array(plan.scales)


def candidates(plan: PairSumsPlan) -> Iterator[Pair]:
    """Neighbouring patterns with one person here or elsewhere, or not at all, among partners."""
    relation, size = plan.relation, made_up_size(plan)
    own = relation.max_points_per_person if isinstance(relation, CappedRelation) else 1
    known = relation.n_is_public
    own = min(own, size if known else MOST)
    starts, ends = _ends(plan, own)
    here, there = (np.resize(each, (own, 2)) for each in (starts, ends))
    rng = np.random.default_rng(SEED)
    for partners in _surroundings(plan, starts):
        # Where n is public there are no more partners than points; elsewhere a guess of their number binds nobody.
        around = partners[: size - own] if known else partners
        rest = max(0, size - own - len(around)) if known else max(1, min(size, MOST) - len(around))
        others = np.concatenate([around, far_from(plan.domain, np.concatenate([starts, ends]), rest, rng)])
        one = np.concatenate([others, here])
        yield _pattern(plan, one), _pattern(plan, np.concatenate([others, there]) if known else others)


def _pattern(plan: PairSumsPlan, positions: Floats) -> PointPattern:
    mark = plan.counted_by
    return PointPattern.at(positions, plan.domain, None if mark is None else {mark: np.arange(len(positions))})


def _ends(plan: PairSumsPlan, count: int) -> tuple[Floats, Floats]:
    """Moves (k, 2), (k, 2) as long as is allowed and matters, inside the domain, out of reach of each other."""
    relation, rng = plan.relation, np.random.default_rng(SEED)
    reach = on_map(relation, plan.domain).reach if isinstance(relation, CappedRelation) else np.inf
    before, after = moves(plan.domain, places(plan.domain, None, rng), reach)
    if not len(before):
        msg = "pair: no move inside the domain was found within the privacy radius; pass a pair of your own (pair=)."
        raise InputError(msg)
    x0, y0, x1, y1 = plan.domain.bounds
    xy, to = (plan.domain.coordinates(each) for each in (before, after))
    enough, centre = APART * max(plan.radii), np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    score = np.minimum(_length(to - xy), enough) - 1e-3 * _length(xy - centre)
    chosen = [int(np.argmax(score))]
    while len(chosen) < min(count, PLACES):
        away = np.min([np.minimum(_length(xy - xy[k]), _length(to - xy[k])) for k in chosen], axis=0)
        score = np.where(away < enough, -np.inf, score)
        if not np.isfinite(score).any():
            break
        chosen.append(int(np.argmax(score)))
    return before[chosen], after[chosen]


def _length(ways: Floats) -> Floats:
    return np.asarray(np.hypot(*ways.T), dtype=np.float64)


def _surroundings(plan: PairSumsPlan, starts: Floats) -> Iterator[Floats]:
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
