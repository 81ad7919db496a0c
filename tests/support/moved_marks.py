"""Fixtures and checks of moved points with public types and hours, in windows and on streets."""

import math
import shutil
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpppsynth import MarkedSynthesizer, Marks, PointPattern, Times, Types
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.moved_counts import node_chances
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.privacy.truncated.lattice_noise import move
from support.forgery import put, read, reseal

KINDS = Types("offence", ["burglary", "theft"])
MARKS, ALONE = Marks(KINDS, Times.day("hour", hats=4)), Marks(KINDS)


def thefts_by_day(theft, rng):
    """Marks of burglaries at night and of thefts by day."""
    hour = rng.normal(np.where(theft, 14, 2), 2.5) % 24
    return {"offence": np.where(theft, "theft", "burglary"), "hour": hour}


def typed(pattern):
    """The pattern without its hours."""
    return PointPattern.at(pattern.positions, pattern.domain, {"offence": pattern.marks["offence"]})


def moved_marks(epsilon, relation, marks=MARKS, **settings):
    return MarkedSynthesizer(epsilon, marks=marks, relation=relation, mechanism="moved", **settings)


def p_value_of_thefts(plan, position):
    """Chi-square test of the second type's counts, of 20 000 points at one position, by the audit's own chances."""
    n, place = 20_000, np.atleast_2d(position)
    kinds = np.where(np.arange(n) % 2 == 0, "burglary", "theft")
    pattern = PointPattern.at(np.repeat(place, n, axis=0), plan.domain, {"offence": kinds})
    counts = plan.measure(pattern).lattice.reshape(2, -1)[1]
    chance = node_chances(plan, plan.domain.coordinates(place)[0], 1).reshape(2, -1)
    assert (chance[0] == 0).all()
    common = chance[1] * n / 2 > 10
    expected = np.append(chance[1][common], 1 - chance[1][common].sum()) * n / 2
    seen = np.append(counts[common], n / 2 - counts[common].sum())
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1)


def assert_found_by_day_and_night(release, *, west, east):
    """Burglaries in the west at night and thefts in the east by day, each five times as many as anything else there."""
    for place, kind, hour in ((west, "burglary", 2.0), (east, "theft", 14.0)):
        here = release.intensity([place], time=hour, type=kind)
        other = "theft" if kind == "burglary" else "burglary"
        assert here > 5 * release.intensity([place], time=(hour + 12) % 24, type=kind)
        assert here > 5 * release.intensity([place], time=hour, type=other)


def stating(folder, out, path, value):
    """A copy of a release whose certificate states another parameter, hashed again, and is otherwise as it was."""
    changed = shutil.copytree(folder, out)
    reseal(changed, put(read(changed), ("parameters", *path), value))
    return changed


@dataclass(frozen=True)
class LessNoise:
    """Runs of `plan` that move points at `factor` times the rate which it claims."""

    plan: MarkedMoves
    factor: float

    def __call__(self, pattern):
        plan = self.plan
        at = plan.domain.coordinates(pattern.positions)
        moved = move(at, epsilon=self.factor * plan.rate, bound=math.inf, step=plan.noise.step)
        return PrivateStatistic(plan, plan.counted(moved, plan.levels_of(pattern)), "broken", False)
