"""Audits of noised pyramids of counts, and the worst-case pairs that they run on.

A pair has the same points with and without all points of one person. Many other persons are in the same place: their
masses only add up, and they make the cells of that place measured on every level for any noise, so that the whole
budget is spent there. One more point of the person is far away, in one of two equally full cells of which one is kept:
if cells were chosen by their true counts, that point would decide which.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpppsynth.contract.audits.hard_pairs import made_up_size
from dpppsynth.contract.audits.neighbouring_pairs import Pair, changed, uniform_places
from dpppsynth.contract.audits.noise_laws import (
    MOST_SHIFTS,
    AsStated,
    DiscreteLaplace,
    less_laplace,
    log_laplace,
    stated_laws,
)
from dpppsynth.contract.audits.statistic_audit import UNKNOWN, StatisticAudit
from dpppsynth.contract.audits.statistics import one_by_one
from dpppsynth.contract.audits.target import AuditStatistic, StatedLaw, Weakened
from dpppsynth.mechanisms.heatmap.audit_statistics import (
    AddedToPyramid,
    Branch,
    CellRatio,
    Extremes,
    SharedNoise,
    branches,
    level_masses,
    level_ratios,
    level_totals,
    measured_cells,
    parents_of,
    pyramid_ratio,
)
from dpppsynth.mechanisms.heatmap.bound import PUBLISHED, start_level
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.mechanisms.heatmap.tree import pyramid
from dpppsynth.privacy.profiles import Profile, PureDP
from dpppsynth.privacy.relations import Relation
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


@dataclass(frozen=True, eq=False)
class HeatmapAudit(StatisticAudit):
    """Counts of the fullest cells of each level, with discrete Laplace noise."""

    plan: HeatmapStatistic

    def pair(self, relation: Relation) -> Pair:
        """Worst-case pair under adding or removing a person (`person_pair`)."""
        made_up_size(self.plan)
        return person_pair(self.plan)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Likelihood ratios of all levels and of each, and statistics that look for other noise than is stated."""
        plan, changing = self.plan, (self.plan, branches(self.plan, pair))
        return (
            AuditStatistic("likelihood ratio", partial(pyramid_ratio, *changing)),
            AuditStatistic("levels", partial(level_ratios, *changing), learned=True),
            AuditStatistic("looked at", partial(measured_cells, *changing), learned=True, alone=True),
            *self._of_levels(pair),
            AuditStatistic("shared noise", SharedNoise.at(plan, pair), learned=True, alone=True),
            AuditStatistic("extremes", Extremes.at(plan, pair), learned=True, alone=True),
            AuditStatistic("total", partial(level_totals, plan), learned=True, alone=True),
            *one_by_one(sum(plan.layout)),
        )

    def _of_levels(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """One number of each level, held to the claim of that level's noise alone."""
        found = []
        for number, branch in enumerate(sure_branches(self.plan, pair)):
            if len(branch.cells):
                name, ratio = f"level {self.plan.budgets.levels[number]}", CellRatio(self.plan, number, branch)
                found.append(AuditStatistic(name, ratio, claimed=self.of_number(branch.scale)))
        return tuple(found)

    def of_number(self, scale: float) -> AsStated:
        """Privacy profile of one noised number of a person, at a cell that is measured almost surely."""
        shift = np.array([(2.0**self.plan.bits + 1) / scale])
        return AsStated(self.plan.guarantee.profile, shift, unsure=2 * MISSED)

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """The claim, tightened by the person's shares of the cells, computed independently of the statistic."""
        shifts = self._shifts(pair)
        return AsStated(claim, shifts) if 0 < len(shifts) <= MOST_SHIFTS else claim

    def _shifts(self, pair: Pair) -> Floats:
        """(k,) most by which the masses of cells differ, in scales of their noise, of all levels."""
        plan, points = self.plan, np.concatenate(changed(pair))
        cells, number = np.unique(plan.places[plan.mesh.locate(points)], axis=0, return_counts=True)
        persons = 1 if plan.user is not None else len(points)
        # Rounding to the lattice changes each of the person's masses by one unit at most.
        masses = 2.0**plan.bits * persons * number / max(1, len(points)) + 1
        found = [
            _sums(cells >> plan.depth - level, masses) / scale
            for level, scale in zip(plan.budgets.levels, plan.scales, strict=True)
        ]
        return np.concatenate(found)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Epsilon: the L1 distances of the levels' masses in scales, if all cells were measured."""
        if not isinstance(claim, PureDP):
            return UNKNOWN
        each = zip(branches(self.plan, pair), self.plan.scales, strict=True)
        return sum(float(np.abs(branch.first - branch.second).sum()) / scale for branch, scale in each), claim.level

    def weakened(self, pair: Pair) -> Weakened:
        """Simulated law of the likelihood ratio, from cells that are measured whatever the noise."""
        return partial(less_laplace, *always_seen(self.plan, pair))

    def alike(self, pair: Pair) -> bool:
        return not any(len(branch.cells) for branch in branches(self.plan, pair))

    def noise(self, pair: Pair) -> AddedToPyramid:
        return AddedToPyramid(self.plan, pair)

    @property
    def numbers(self) -> int:
        """One, the least possible: the number of measured cells in the window is random."""
        return 1

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Upper bound on the log-probability that all noise is zero."""
        plan = self.plan
        # All cells of the first level that lie in the window are measured, and one or more of each further one.
        inside = int(np.count_nonzero(pyramid(plan.inside)[plan.budgets.first]))
        return float(np.dot([inside] + [1] * (len(plan.scales) - 1), [log_laplace(each) for each in plan.scales]))

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Size and sum of the noise of each level.

        Of a kept cell with a part in the window, one of those within it has one.
        """
        plan, noise, start, found = self.plan, self.noise(pair), 0, list[StatedLaw]()
        whole = bool((plan.inside > 0).all())
        for level, count, scale in zip(plan.budgets.levels, plan.layout, plan.scales, strict=True):
            least = count if whole else max(1, count // 4**plan.budgets.step)
            law = DiscreteLaplace(scale)
            found += stated_laws(noise, law, count=count, start=start, least=least, of=f" of level {level}")
            start += count
        return tuple(found)


def _sums(cells: Ints, masses: Floats) -> Floats:
    """Sums of masses (k,) that are in the same one of cells (k, 2)."""
    _, which = np.unique(cells, axis=0, return_inverse=True)
    return np.asarray(np.bincount(which.ravel(), weights=masses), dtype=np.float64)


def always_seen(plan: HeatmapStatistic, pair: Pair) -> tuple[Ints, Floats]:
    """Changes (k,) between two patterns in lattice units, and scales (k,) of their noise, for cells surely measured.

    Left out are cells that are not looked at in some runs, but for one run in a thousand.
    """
    sure = sure_branches(plan, pair)
    change = np.concatenate([branch.first - branch.second for branch in sure])
    return change, np.repeat([branch.scale for branch in sure], [len(branch.cells) for branch in sure])


def sure_branches(plan: HeatmapStatistic, pair: Pair) -> tuple[Branch, ...]:
    """The branches of a pair, restricted to cells that are measured in every run, up to probability `MISSED`."""
    sums = [level_masses(plan, pattern) for pattern in pair]
    found: list[Branch] = []
    parents = None
    for number, branch in enumerate(branches(plan, pair)):
        level = plan.budgets.levels[number]
        above = parents_of(branch.cells, level, plan.budgets.step)
        cells = np.isin(above, parents) if parents is not None else slice(None)
        found.append(Branch(branch.cells[cells], branch.first[cells], branch.second[cells], branch.scale))
        parents = found[-1].cells
        if number:
            sure = [_ahead(each[number], parents, plan) for each in sums]
            parents = parents[sure[0] & sure[1]]
    return tuple(found)


def _ahead(masses: Ints, cells: Ints, plan: HeatmapStatistic) -> Any:
    """(k,) whether cells are among the w fullest of a level for any noise, by its masses (4^i,) without noise."""
    if len(masses) <= plan.kept:
        return np.full(len(cells), True)
    # The cell itself may be one of the w + 1 fullest.
    rival = np.partition(masses, -plan.kept - 1)[-plan.kept - 1]
    return masses[cells] - rival >= 0.999 * attention(plan) * 2**plan.bits


def person_pair(plan: HeatmapStatistic) -> Pair:
    """Two patterns of which the first has one person more than the second, with that person's points last.

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
    """Excess of persons at which a cell is kept on all levels, except with probability `MISSED`."""
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
