"""Theorem P: what a point with marks changes at most, searched for violations and for sharpness."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from support.cases import SQUARE, STREETS

from dpppsynth import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.contract.additive_noise import lattice_tents
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.marked import bound
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.privacy import bounds
from dpppsynth.spatial.mark_space import Marks, Times, Types

KINDS = Types("offence", ["burglary", "theft"])
BOTH, DATED = Marks(KINDS, Times.day("hour", hats=6)), Marks(times=Times("day", 0.0, 100.0, hats=5))
MESH = regular_triangulation(SQUARE, shape=(6, 6))
UNIT = 2.0 ** -(bounds.LATTICE_BITS + bound.TIME_BITS)


def changes(marks, relation, tries=1200, seed=1):
    """Largest change of the numbers over random and steepest neighbouring points, in lattice units."""
    rng = np.random.default_rng(seed)
    plan = MarkedMasses(MESH, marks, relation, 10, None, 1.0)
    time, types = relation.marks_reach
    times = marks.times
    # From vertices and instants, where one tent and one hat hold all, and from anywhere.
    half = tries // 2
    start = np.concatenate([MESH.vertices[rng.integers(0, 36, half)], rng.uniform(0, 1000, (half, 2))])
    angle, far = rng.uniform(0, 2 * np.pi, tries), relation.alpha / SQUARE.scale_factor
    end = np.clip(start + far * np.column_stack([np.cos(angle), np.sin(angle)]), 0, 1000)
    instants = times.nodes[rng.integers(0, times.hats, half)], rng.uniform(times.start, times.end, half)
    at = np.concatenate(instants)
    moved = at + min(time, times.farthest) * rng.choice([-1, 1], tries)
    around = times.start + (moved - times.start) % times.length
    later = around if times.periodic else np.clip(moved, times.start, times.end)
    kind = np.zeros(tries, dtype=np.int64)
    other = kind + bool(types)
    found = 0
    for k in range(tries):
        one = plan.exact_at(start[k : k + 1], kind[k : k + 1], at[k : k + 1])
        two = plan.exact_at(end[k : k + 1], other[k : k + 1], later[k : k + 1])
        found = max(found, int(np.abs(one - two).sum()))
    return found, plan.sensitivity


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("marks", "relation"),
    [
        (BOTH, AlphaNeighbours(25.0, time="public", types="public")),
        (BOTH, AlphaNeighbours(25.0, time=0.5, types="public")),
        (BOTH, AlphaNeighbours(1e-3, time=0.01, types="public")),
        (BOTH, AlphaNeighbours(1e-3, time=3.0, types="public")),
        (BOTH, AlphaNeighbours(25.0, time="protected", types="public")),
        (BOTH, AlphaNeighbours(25.0, time="public", types="protected")),
        (DATED, AlphaNeighbours(40.0, time=3.0)),
        (DATED, AlphaNeighbours(5.0, time=24.0)),
    ],
    ids=str,
)
def test_no_point_changes_more_and_some_come_near(marks, relation):
    """Both factors change at once, so the bound is reached as far as one change does not hide in the other."""
    found, most = changes(marks, relation)
    assert found <= most
    tents = bounds.tents_sensitivity(MESH, relation) / 2**bounds.LATTICE_BITS
    hats = bound.times_sensitivity(marks.times, relation.marks_reach[0]) / 2**bound.TIME_BITS
    whole = 2.0 if relation.marks_reach[1] else tents + hats - tents * hats / 2
    assert found * UNIT >= 0.95 * min(whole, 2.0) - 4 * 2.0**-14 - 4 * 2.0**-20


def test_numbers_are_products_of_rounded_factors():
    """Products that are rounded themselves may change by more than the bound of the factors."""
    plan = MarkedMasses(MESH, BOTH, AlphaNeighbours(25.0, time=0.5, types="public"), 10, None, 1.0)
    place, time = np.array([[313.0, 271.0]]), np.array([7.3])
    exact = plan.exact_at(place, np.zeros(1, dtype=np.int64), time).reshape(2, 6, 36)
    vertex, tent = lattice_tents(MESH, place, bounds.LATTICE_BITS)
    hat, share = BOTH.times.lattice(time, bound.TIME_BITS)
    expected = np.zeros((2, 6, 36), dtype=np.int64)
    expected[0, hat[0][:, None], vertex[0]] = np.outer(share[0], tent[0])
    assert (exact == expected).all()
    assert exact.sum() == 2 ** (bounds.LATTICE_BITS + bound.TIME_BITS)


@pytest.mark.parametrize("cap", [1, 3])
def test_bounds_by_relation(cap):
    unit = 2 ** (bounds.LATTICE_BITS + bound.TIME_BITS)
    everything = ReplaceOne(cap, time="protected", types="protected")
    assert bound.marks_sensitivity(MESH, BOTH, everything) == 2 * unit * cap
    assert bound.marks_sensitivity(MESH, BOTH, AddRemove(cap)) == unit * cap
    still = AlphaNeighbours(25.0, time="public", types="public", max_points_per_person=cap)
    tents = bounds.tents_sensitivity(MESH, still)
    assert bound.marks_sensitivity(MESH, BOTH, still) == tents * 2**bound.TIME_BITS
    moving = AlphaNeighbours(25.0, time=0.5, types="public", max_points_per_person=cap)
    hats = 2**bound.TIME_BITS * 2 * 0.5 / 4 + bound.TIME_ROUNDING
    both = tents * 2**bound.TIME_BITS + cap * hats * 2**bounds.LATTICE_BITS
    assert bound.marks_sensitivity(MESH, BOTH, moving) == both


def test_types_alone_have_no_bits_of_hats():
    kinds = Marks(KINDS)
    plan = MarkedMasses(MESH, kinds, AlphaNeighbours(25.0, types="public"), 10, None, 1.0)
    assert plan.bits == bounds.LATTICE_BITS
    assert plan.sensitivity == bounds.tents_sensitivity(MESH, AlphaNeighbours(25.0))


def test_the_curve_by_distance_is_that_of_the_place_alone():
    relation = AlphaNeighbours(25.0, time=0.5, types="public")
    guarantee = bound.marked_tents(MESH, BOTH, relation, scale=2.0**34)
    far, most = guarantee.by_distance[-1]
    assert far <= SQUARE.diameter
    assert most == pytest.approx(2.0)
    assert guarantee.by_distance[0][1] < guarantee.epsilon()


@pytest.mark.parametrize(
    ("relation", "rule"),
    [
        (AlphaNeighbours(25.0), "relation: must say what is protected of the time"),
        (AlphaNeighbours(25.0, time=1.0), "relation: must say what is protected of the types"),
        (AlphaNeighbours(25.0, time=25.0, types="public"), "relation: time must be at most the range's length, 24"),
        (ReplaceOne(), "relation: must say what is protected of the time"),
    ],
)
def test_what_is_protected_must_be_said(relation, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        bound.marks_sensitivity(MESH, BOTH, relation)


def test_what_there_is_not_must_not_be_spoken_of():
    with pytest.raises(InputError, match=r"^relation: speaks of types, which the points do not have"):
        bound.marks_sensitivity(MESH, DATED, AlphaNeighbours(25.0, time=1.0, types="public"))


def test_streets_have_the_same_bound():
    mesh = trace_mesh(STREETS, shape=(6, 6))
    relation = AlphaNeighbours(25.0, time=0.5, types="public")
    tents = bounds.tents_sensitivity(mesh, relation) * 2**bound.TIME_BITS
    hats = bound.times_sensitivity(BOTH.times, 0.5) * 2**bounds.LATTICE_BITS
    assert bound.marks_sensitivity(mesh, BOTH, relation) == tents + hats


class TestClocks:
    """Time that passes, and time on a clock that is put forward and back."""

    ZONE = "Europe/London"
    HOURS = Marks(times=Times.day("hour", zone=ZONE))
    DATES = Marks(times=Times.between("when", "2021-01-01", "2022-01-01", hats=2000, zone=ZONE))

    def test_the_largest_difference_of_offsets(self):
        assert self.HOURS.times.clock_change == 1.0
        assert self.DATES.times.clock_change == pytest.approx(1 / 24)
        assert Times.between("when", "2021-01-01", "2021-03-01", zone=self.ZONE).clock_change == 0.0
        assert Times.week("hour", zone="Pacific/Apia").clock_change == 25.0
        assert Times.day("hour", zone="UTC").clock_change == Times.day("hour").clock_change == 0.0

    @pytest.mark.parametrize("marks", [HOURS, DATES], ids=["a clock", "dates"])
    def test_instants_across_a_change_are_covered(self, marks):
        """Clock readings of instants ten minutes apart, over both changes of a year."""
        minutes = 10 / 60 if marks is self.HOURS else 10 / 60 / 24
        relation = AlphaNeighbours(25.0, time=minutes)
        still, unit = replace(relation, time="public"), 2**bounds.LATTICE_BITS
        claimed, of_place = (bound.marks_sensitivity(MESH, marks, each) for each in (relation, still))
        first = datetime(2021, 3, 28, tzinfo=UTC), datetime(2021, 10, 31, tzinfo=UTC)
        instants = [day + timedelta(minutes=k) for day in first for k in range(180)]
        masses = MarkedMasses(MESH, marks, relation, 1, None, 1.0)

        def exact(instant):
            local = instant.astimezone(ZoneInfo(self.ZONE)).replace(tzinfo=None)
            since = local.replace(hour=0, minute=0) if marks is self.HOURS else local.replace(2021, 1, 1, 0, 0)
            at = (local - since) / timedelta(hours=1 if marks is self.HOURS else 24)
            return masses.exact_at(np.array([[1.0, 2.0]]), np.zeros(1, int), np.array([at]))

        changes = [np.abs(exact(t) - exact(t + timedelta(minutes=10))).sum() for t in instants]
        assert unit * bound.times_sensitivity(marks.times, minutes) < max(changes) <= claimed - of_place

    def test_a_smaller_change_than_the_zones_is_refused(self):
        stated = Times.day("hour", zone=self.ZONE).to_dict()
        assert Times(**stated).to_dict() == stated
        with pytest.raises(InputError, match=r"^clock_change"):
            Times(**stated | {"clock_change": 0.5})
