"""Moved points with public types and times on streets: statistic, promise, choice, fields, audit and files.

What holds on windows alike is tested in `test_marked_moves.py`. Statistical thresholds have a false-alarm rate below
1e-6; seeds are fixed.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.moved_marks import (
    ALONE,
    KINDS,
    MARKS,
    LessNoise,
    assert_found_by_day_and_night,
    moved_marks,
    p_value_of_thefts,
    stating,
    thefts_by_day,
    typed,
)
from support.seams import one_prior, recorded

from dpppsynth import (
    AlphaNeighbours,
    InputError,
    LinearNetwork,
    MarkedSynthesizer,
    Marks,
    Offset,
    PointPattern,
    Types,
    load_release,
)
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import target_of
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.contract.rules import network_rules
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.mechanisms.marked.synthesizer import MOST_MOVED, moved_cells, moved_mesh
from dpppsynth.models import trace_mesh
from dpppsynth.privacy import verify
from dpppsynth.privacy.truncated.lattice_noise import move

# Three by three blocks of streets.
SIDE, STEP = 4, 250.0
PLACES = STEP * np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1).reshape(-1, 2)
NUMBER = np.arange(SIDE**2).reshape(SIDE, SIDE)
EDGES = np.concatenate([np.stack([m[:-1].ravel(), m[1:].ravel()], axis=1) for m in (NUMBER, NUMBER.T)])
NETWORK = LinearNetwork(PLACES, EDGES)
STILL, TYPES = AlphaNeighbours(20.0, time="public", types="public"), AlphaNeighbours(20.0, types="public")
N, ALARM = 600, 1e-6


def original(n=N, seed=3):
    """Burglaries on western streets at night, thefts on eastern ones by day."""
    rng = np.random.default_rng(seed)
    middle = NETWORK.vertices[NETWORK.edges].mean(axis=1)[:, 0]
    theft = rng.random(n) < 0.6
    west, east = (np.exp(-(((middle - at) / 150) ** 2) / 2) * NETWORK.lengths for at in (100, 650))
    edge = np.where(theft, *(rng.choice(len(middle), n, p=each / each.sum()) for each in (east, west)))
    bare = NETWORK.pattern(edge, rng.random(n))
    return PointPattern.at(bare.positions, NETWORK, thefts_by_day(theft, rng))


def moves(epsilon=1.0, relation=STILL, marks=MARKS, shape=(11, 11), n=N):
    return MarkedMoves(trace_mesh(NETWORK, shape=shape), relation, n, epsilon, marks)


@pytest.fixture(autouse=True, scope="module")
def small_fields():
    with one_prior(), pytest.MonkeyPatch.context() as patch:
        fewer = {"MOVED_RANGES": (0.25,), "MOVED_STREET_RANGES": (0.5,), "DETOURS": (2.0,)}
        coarser = {"STREET_SEGMENT": 0.05, "STREET_PLANE_SIDE": 15}
        for name, kept in (fewer | coarser).items():
            patch.setattr(f"dpppsynth.contract.rules.network_rules.{name}", kept)
        yield


class TestStatistic:
    def test_points_leave_their_streets_and_keep_their_marks(self):
        """The same places as without marks, level by level, of coordinates that follow from positions alone."""
        pattern, plan = original(), moves()
        with recorded() as seen:
            found = plan.measure(pattern, 5).lattice.reshape(2, 4, -1)
        [(_, draw, exact)] = seen
        np.testing.assert_array_equal(exact, NETWORK.coordinates(pattern.positions))
        assert draw.func is move
        plain = MovedCounts(plan.mesh, AlphaNeighbours(20.0), N, 1.0)
        bare = PointPattern.at(pattern.positions, NETWORK)
        assert (found.sum(axis=(0, 1)) == plain.measure(bare, 5).lattice).all()
        kinds, times = MARKS.require(pattern.marks)
        levels = np.bincount(MARKS.levels(kinds, times), minlength=8)
        assert (found.sum(axis=2).ravel() == levels).all()

    def test_of_a_type_follows_the_law(self):
        assert p_value_of_thefts(moves(2.0, TYPES, ALONE, (21, 21), 20_000), [2.0, 100.0]) > ALARM

    def test_promise_is_that_of_points_moved_off_streets(self):
        """Rounding of coordinates along edges included, which a window's rate leaves out."""
        found, plain = moves().guarantee, MovedCounts(moves().mesh, AlphaNeighbours(20.0), N, 1.0).guarantee
        assert found.by_distance == plain.by_distance
        assert found.profile == plain.profile
        assert moves().rate < 1 / 20.0
        assert set(found.assumptions) - set(plain.assumptions) == {"public-marks", "public-types"}


class TestChoice:
    def plan(self, n=1500, epsilon=3.0, relation=TYPES, marks=ALONE, network=NETWORK, **settings):
        return MarkedSynthesizer(epsilon, marks=marks, relation=relation, **settings).plan(network, n=n)

    def test_is_moved_points_where_noise_is_short(self):
        plan = self.plan()
        assert plan.mechanism == "marked-moved"
        assert "tell streets apart" in plan.reason
        assert self.plan(relation=STILL, marks=MARKS).mechanism == "marked-moved"
        # More points than the rules for windows, and without marks, would move.
        assert self.plan(n=25_000).mechanism == "marked-moved"

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            # Noise of one and a half times the extent over sqrt(n), longer than streets of a type are told apart by.
            ({"n": 40_000}, "is long beside"),
            ({"relation": AlphaNeighbours(20.0, types="protected")}, "would keep the types"),
            ({"relation": replace(STILL, time=1.0), "marks": MARKS}, "would keep the types and times"),
            ({"spacing": 100.0}, "a mesh is asked for"),
            ({"marks": Marks(Types("kind", list(map(str, range(990)))), None)}, "too many types and instants"),
        ],
    )
    def test_is_tents_otherwise(self, settings, reason):
        assert reason in self.plan(**settings).reason

    def test_field_and_lattice_are_as_fine_as_all_levels_allow(self):
        few, many = Marks(KINDS), Marks(Types("kind", list(map(str, range(60)))), None)
        assert moved_cells(NETWORK, few, 20.0).recipe == network_rules.moved_cells(NETWORK, 20.0).recipe
        assert len(EDGES) <= len(moved_cells(NETWORK, many, 2.0).elements) <= MOST_MOVED / 60
        assert moved_mesh(NETWORK, few, 20.0).recipe == network_rules.moved_mesh(NETWORK, 20.0).recipe
        assert 0.8 * MOST_MOVED < 60 * math.prod(moved_mesh(NETWORK, many, 2.0).recipe["shape"]) <= MOST_MOVED


@cache
def made(epsilon=6.0, marks=MARKS, relation=STILL, **settings):
    pattern = original(1500) if marks is MARKS else typed(original(1500))
    return moved_marks(epsilon, relation, marks, **{"spacing": 25.0} | settings).release(pattern, 1)


class TestRelease:
    def test_learns_who_is_where_when(self):
        assert_found_by_day_and_night(made(), west=(0.0, 400.0), east=(750.0, 400.0))

    def test_draws_points_of_types_and_hours_along_the_streets(self):
        pattern = made().sample(1, 1, fixed_n=True)[0]
        assert len(pattern) == 1500
        assert NETWORK.contains(pattern.xy).all()
        kinds, times = MARKS.require(pattern.marks)
        assert np.cos((times[kinds == 0] - 2) * np.pi / 12).mean() > 0.4
        assert pattern.xy[kinds == 0, 0].mean() < 300 < 450 < pattern.xy[kinds == 1, 0].mean()

    def test_numbers_of_types_are_nearly_those_counted(self):
        """Types are counted exactly: what the field adds is less than two standard deviations of a binomial number."""
        found, kinds = made().marginal("types"), original(1500).marks["offence"]
        assert found["points"].sum() == pytest.approx(1500, rel=1e-6)
        assert found.loc["theft", "points"] == pytest.approx((kinds == "theft").sum(), abs=40)

    def test_offsets_multiply_and_effects_are_found(self):
        """Nobody lives in the north; a covariate's effect is that of the simulation, within five of its deviations."""
        south = Offset.from_grid([[0.0], [1.0]], (0.0, 0.0, 750.0, 750.0))
        rng = np.random.default_rng(8)
        xy = NETWORK.pattern(rng.integers(0, len(EDGES), 60_000), rng.random(60_000))
        lived = xy.xy[:, 1] < 374
        high = (xy.xy[:, 0] - 375) / 250
        kept = np.flatnonzero(lived & (rng.random(len(high)) < np.exp(0.8 * high - 1.3)))[:4000]
        kinds = {"offence": np.where(np.arange(len(kept)) % 3 == 0, "burglary", "theft")}
        pattern = PointPattern.at(xy.positions[kept], NETWORK, kinds)
        east = {"east": lambda at: np.asarray(at)[:, 0]}
        release = moved_marks(5.0, TYPES, ALONE, spacing=15.0, offset=south, covariates=east).release(pattern, 2)
        assert release.intensity([[250.0, 700.0]], type="theft") == 0
        drawn = 250 * release.effects.per_unit("east")
        assert abs(drawn.mean() - 0.8) < 5 * drawn.std()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release with secret randomness, of points around one block: a field of few cells."""
    rng, block = np.random.default_rng(3), LinearNetwork(PLACES[[0, 1, 4, 5]], [[0, 1], [1, 3], [3, 2], [2, 0]])
    bare = block.pattern(rng.integers(0, 4, N), rng.random(N))
    pattern = PointPattern.at(bare.positions, block, thefts_by_day(rng.random(N) < 0.6, rng))
    release = moved_marks(3.0, STILL, spacing=50.0).release(pattern)
    return release.save(tmp_path_factory.mktemp("moves") / "public", patterns=1, rng=1)


class TestFiles:
    def test_verifies_opens_and_is_inferred_again(self, folder):
        assert verify(folder).holds
        again = load_release(folder)
        assert again.mechanism == "marked-moved"
        assert again.marks == MARKS
        assert again.statistic.lattice.sum() == N
        assert again.intensity.total == pytest.approx(N, rel=1e-5)
        one = again.infer(rng=1, ranges=(300.0,), street_sigmas=(0.4,), owns=(1.0,), detours=(0.0,), even=False)
        assert one.inferred
        with pytest.raises(InputError, match=r"^togethers: needs 1 to"):
            again.infer(togethers=(0.5, 1.5))

    @pytest.mark.parametrize(
        ("path", "value"),
        [(("marks", "types", "values"), ["burglary", "theft", "arson"]), (("rate",), 3 / 20 + 1e-9), (("n",), N + 1)],
        ids=str,
    )
    def test_other_parameters_do_not_verify(self, folder, tmp_path, path, value):
        """A rate that is larger than what budget and radius allow shows from its eighth digit on."""
        assert not verify(stating(folder, tmp_path / "out", path, value)).holds


class TestAudit:
    def target(self, n):
        relation = AlphaNeighbours(200.0, time="public", types="public")
        return target_of(moved_marks(1.0, relation, spacing=100.0), NETWORK, n=n)

    def test_stays_below_the_claim(self):
        result = audit(self.target(20), trials=300)
        assert not result.violated
        assert result.claimed == pytest.approx(1.0)

    def test_finds_too_little_noise(self):
        made = self.target(3)
        assert audit(replace(made, run=LessNoise(made.run.plan, 4.0)), trials=500).violated
