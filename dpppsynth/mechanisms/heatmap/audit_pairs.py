"""Worst-case pairs under adding or removing a person: the same points with and without all points of one person.

Masses add up, so others in the same place drown nothing; and many of them draw the mechanism's attention to that place
whatever the noise, so that all of the budget is spent there. Most of the person is there as well. One more point is far
away, in a cell as full as another one of which only one is kept: were cells chosen by their true counts, it would be
that point which decides whose neighbourhood is looked at.
"""

import math
from typing import Any

import numpy as np

from dpppsynth.contract.audits.moves import uniform_places
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.mechanisms.heatmap.bound import PUBLISHED, start_level
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Candidates are the same in every run, so that an audit can be repeated.
SEED, CANDIDATES = 20261125, 2000
# Points of the person, where persons have several: the last one is far away. And those of everybody else.
POINTS, EACH = 16, 2
# Largest probability that noise deselects the cells where everybody is.
MISSED = 1e-3
# Persons in cells of which one is left out, in units of the noise on the cells below; and most persons of a pattern.
PLAIN, MOST_OTHERS = 6.0, 100_000


def person_pair(plan: HeatmapStatistic) -> Pair:
    """Two patterns of which the first has one person more than the second, all of whose points come last.

    How many others there are follows from the noise, not from `expected_n`.

    Examples
    --------
    >>> from dpppsynth import HeatmapSynthesizer, Window
    >>> plan = HeatmapSynthesizer(1.0, shape=(16, 16), user="user").plan(Window.rectangle(0, 0, 800, 800)).statistic
    >>> there, gone = person_pair(plan)
    >>> len(there) - len(gone), len(set(there.marks["user"])) - len(set(gone.marks["user"]))
    (16, 1)
    """
    others = _others(plan)
    own = np.tile(others[0], (1 if plan.user is None else POINTS, 1))
    if len(own) > 1:
        own[-1] = others[-1]
    each = 1 if plan.user is None else EACH
    persons = np.repeat(np.arange(len(others) + 1), [each] * len(others) + [len(own)])
    places = np.concatenate([np.repeat(others, each, axis=0), own])
    rest = each * len(others)
    return _pattern(plan, places, persons), _pattern(plan, places[:rest], persons[:rest])


def attention(plan: HeatmapStatistic) -> float:
    """Persons by which a cell must exceed the others of its level to be kept on all levels, but for `MISSED`."""
    choosing = plan.scales[:-1]
    if not choosing or plan.variant not in PUBLISHED:
        return 0.0
    # The cell's own noise is half as negative, or that of one of the others, at most 4 w of them, half as positive.
    chances = len(choosing) * (2 * plan.kept + 1)
    return 2 * _persons(plan, max(choosing)) * math.log(chances / MISSED)


def _persons(plan: HeatmapStatistic, masses: float) -> float:
    return masses / 2.0**plan.bits


def _others(plan: HeatmapStatistic) -> Floats:
    """(m, 2) places of everybody else: the crowd's first, the far one's last."""
    candidates = uniform_places(plan.domain, CANDIDATES, np.random.default_rng(SEED))
    # On this level, the first one where not all are, cells are chosen; on the next one that shows.
    depth = plan.budgets.depth
    level = start_level(plan.kept, depth) + 1
    rank = _rank(plan, candidates, min(level + 1, depth))
    order = np.argsort(rank, kind="stable")
    candidates, (_, start) = candidates[order], np.unique(rank[order] // 4, return_index=True)
    # Beside the one who may be far, and a part of the person.
    crowd, alone = math.ceil(attention(plan)) + 2, candidates[[0, -1]]
    if level < depth and 1 < plan.w < len(start):
        few = math.ceil(PLAIN * _persons(plan, plan.scales[level + 1 - plan.budgets.first]))
        places = np.concatenate([candidates[start[: plan.w]], alone[1:]])
        # One cell is as full as the far one, all the others are fuller: one too many to keep.
        counts = np.array([crowd + few + 1, few, *[few + 1] * (plan.w - 2), few])
        if counts.sum() <= MOST_OTHERS:
            return np.repeat(places, counts, axis=0)
    return np.concatenate([np.tile(alone[0], (min(crowd, MOST_OTHERS), 1)), alone[1:]])


def _rank(plan: HeatmapStatistic, places: Floats, level: int) -> Ints:
    """(k,) rank of the cell that holds each place, among all cells of a level in the order of selection."""
    i, j = plan.places[plan.mesh.locate(places)].T
    first, depth = plan.budgets.first, plan.depth
    rank: Ints = (i >> depth - first) * 2**first + (j >> depth - first)
    for k in range(first + 1, level + 1):
        rank = 4 * rank + 2 * (i >> depth - k & 1) + (j >> depth - k & 1)
    return rank


def _pattern(plan: HeatmapStatistic, places: Floats, persons: Any) -> PointPattern:
    return PointPattern(places, plan.domain, None if plan.user is None else {plan.user: persons})
