"""Counts of moved points with public types and times: the statistic, its promise, refusals, fields, audit and files.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import json
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats
from support.cases import SQUARE
from support.command_line import run, spoken
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
    AddRemove,
    AlphaNeighbours,
    InputError,
    MarkedSynthesizer,
    Marks,
    PointPattern,
    ReplaceOne,
    Times,
    Types,
    Window,
    load_release,
)
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import audit_of, target_of
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.moved_counts import node_chances
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.core.progress import silent
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.mechanisms.marked.synthesizer import MOST_MOVED, moved_mesh
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.privacy.truncated.lattice_noise import move
from dpppsynth.spatial.offset import Offset

STILL = AlphaNeighbours(25.0, time="public", types="public")
TYPES = AlphaNeighbours(25.0, types="public")
N = 600
ALARM = 1e-6


def original(n=N, seed=3):
    """Burglaries in the west at night, thefts in the east by day."""
    rng = np.random.default_rng(seed)
    theft = rng.random(n) < 0.6
    xy = np.column_stack([np.clip(rng.normal(np.where(theft, 700, 250), 100), 0, 1000), rng.uniform(0, 1000, n)])
    return PointPattern(xy, SQUARE, thefts_by_day(theft, rng))


def moves(epsilon=1.0, relation=STILL, marks=MARKS, shape=(11, 11), n=N):
    return MarkedMoves(regular_triangulation(SQUARE, shape=shape), relation, n, epsilon, marks)


@pytest.fixture(autouse=True, scope="module")
def one_size_of_each_part():
    with one_prior():
        yield


class TestMeasure:
    def test_every_point_counts_for_its_type_and_the_nearest_instant(self):
        """Place by place where the same seed puts it without marks; instants are at 0, 6, 12 and 18 o'clock."""
        pattern, plan = original(), moves()
        found = plan.measure(pattern, 5).lattice.reshape(2, 4, -1)
        plain = MovedCounts(plan.mesh, AlphaNeighbours(25.0), N, 1.0)
        with recorded() as seen:
            together = plain.measure(PointPattern(pattern.xy, SQUARE), 5).lattice
        assert (found.sum(axis=(0, 1)) == together).all()
        [(_, _, exact)] = seen
        assert (exact == pattern.positions).all()
        hour = pattern.marks["hour"]
        near = np.abs((hour[:, None] - np.array([0.0, 6.0, 12.0, 18.0]) + 12) % 24 - 12).argmin(axis=1)
        for kind, value in enumerate(KINDS.values):
            for k in range(4):
                some = (pattern.marks["offence"] == value) & (near == k)
                assert found[kind, k].sum() == some.sum()
                # Each point where it is moved to: with next to no noise, at its own node.
        sharp = moves(1e6).measure(pattern, 1).lattice.reshape(2, 4, -1)
        for kind, value in enumerate(KINDS.values):
            for k in range(4):
                some = (pattern.marks["offence"] == value) & (near == k)
                at = moves(1e6).node_of(pattern.positions[some])
                assert (sharp[kind, k] == np.bincount(at, minlength=sharp.shape[2])).all()

    def test_instants_of_a_line_keep_both_ends(self):
        times = Times("year", 2010.0, 2020.0, hats=6, unit="years")
        assert times.nearest(np.array([2010.0, 2010.9, 2011.1, 2015.1, 2018.9, 2019.1, 2020.0])).tolist() == [
            0, 0, 1, 3, 4, 5, 5,
        ]  # fmt: skip
        assert Times.day("hour", hats=4).nearest(np.array([0.0, 2.9, 3.1, 20.9, 21.1, 24.0])).tolist() == [
            0, 0, 1, 3, 0, 0,
        ]  # fmt: skip

    def test_draws_with_the_rate_of_the_guarantee(self):
        plan = moves(0.5, replace(STILL, max_points_per_person=3))
        with recorded() as seen:
            plan.measure(original())
        [(_, draw, _)] = seen
        assert draw.func is move
        assert draw.keywords["epsilon"] == plan.rate == pytest.approx(0.5 / (3 * 25.0 * SQUARE.scale_factor))
        assert draw.keywords["bound"] == math.inf

    def test_of_a_type_follows_the_law(self):
        assert p_value_of_thefts(moves(2.0, TYPES, ALONE, (21, 21), 20_000), [430.0, 512.0]) > ALARM

    def test_of_many_batches_is_that_of_all(self, monkeypatch):
        plan, pattern = moves(), original()
        whole = plan.measure(pattern, 3).lattice
        monkeypatch.setattr("dpppsynth.contract.moved_counts.BATCH", 7)
        assert (plan.measure(pattern, 3).lattice == whole).all()

    def test_points_of_a_person_are_drawn_and_keep_their_own_marks(self):
        """Two of three points of each; persons' labels go with the others."""
        pattern = original()
        labelled = PointPattern(pattern.xy, SQUARE, {**pattern.marks, "who": np.arange(N) // 3})
        relation = replace(STILL, max_points_per_person=2, user="who")
        plan = MarkedSynthesizer(1e6, marks=MARKS, relation=relation, mechanism="moved", spacing=100.0)
        found = plan.plan(SQUARE, n=400).statistic.measure(labelled, 1).lattice
        whole = moves(1e6, n=N).measure(pattern, 1).lattice
        assert found.sum() == 400
        assert (found <= whole).all()


class TestGuarantee:
    def test_is_that_of_moved_points_whose_marks_stay(self):
        found, plain = moves().guarantee, MovedCounts(moves().mesh, AlphaNeighbours(25.0), N, 1.0).guarantee
        assert found.by_distance == plain.by_distance
        assert found.profile == plain.profile
        assert found.relation == STILL
        assert set(found.assumptions) - set(plain.assumptions) == {"public-marks", "public-types"}
        years = Marks(times=Times("year", 2010.0, 2020.0, hats=3))
        assert (
            "public-types"
            not in moves(marks=years, relation=AlphaNeighbours(25.0, time="public")).guarantee.assumptions
        )

    def test_follows_from_public_parameters(self):
        plan = moves(0.5, replace(STILL, max_points_per_person=2))
        stated = plan.parameters()
        assert stated["marks"] == MARKS.to_dict()
        again = MarkedMoves.from_parameters(stated, plan.relation, SQUARE, mechanism="marked-moved")
        assert again.parameters() == stated
        assert again.guarantee == plan.guarantee

    def test_a_statistic_that_spends_more_is_none(self, monkeypatch):
        monkeypatch.setattr("dpppsynth.privacy.planar_noise.rate", lambda relation, epsilon, _: 1.01 * epsilon / 25.0)
        with pytest.raises(Exception, match="epsilon"):
            moves()


class TestRefusals:
    """Before the points are touched, each with a remedy that works."""

    @pytest.mark.parametrize(
        ("relation", "words"),
        [
            (replace(STILL, time=1.0), r"keeps its time, which must be public; take mechanism='tents' to protect it"),
            (replace(STILL, time="protected"), r"keeps its time, which must be public"),
            (replace(STILL, types="protected"), r"keeps its types, which must be public"),
            (ReplaceOne(), r"grows with the distance; .* or take mechanism='tents' for this relation"),
            (AddRemove(), r"grows with the distance"),
        ],
    )
    def test_of_relations(self, relation, words):
        build = partial(MarkedSynthesizer, 1.0, marks=MARKS, relation=relation)
        size = {"n": 50} if relation.n_is_public else {"expected_n": 50}
        with pytest.raises(InputError, match=rf"^relation: .*{words}"):
            build(mechanism="moved").check(SQUARE, **size)
        assert build(mechanism="tents").plan(SQUARE, **size).mechanism == "marked-tents"

    def test_of_statistics_that_nothing_planned(self):
        """A certificate with another relation is refused as the settings are."""
        stated = moves().parameters()
        for relation in (replace(STILL, types="protected"), replace(STILL, time=2.0), AlphaNeighbours(25.0)):
            with pytest.raises(InputError, match=r"^relation: "):
                MarkedMoves.from_parameters(stated, relation, SQUARE, mechanism="marked-moved")

    def test_of_too_many_numbers(self):
        hours = Marks(Types("kind", list(map(str, range(30)))), Times.day("hour", hats=24))
        build = partial(MarkedSynthesizer, 1.0, marks=hours, relation=STILL, mechanism="moved")
        with pytest.raises(
            InputError, match=r"^mesh: 101 x 101 nodes, .* times 720 kinds of points, .* a larger spacing"
        ):
            build(spacing=10.0).check(SQUARE, n=20)
        assert build(spacing=100.0).check(SQUARE, n=20).epsilon() <= 1

    def test_of_more_kinds_than_can_be_inferred(self):
        """On a lattice of few nodes their numbers fit, but not their covariances: 30 000 squared are 7 gigabytes."""
        kinds = list(map(str, range(1000)))
        for hats, fits in ((30, False), (None, True)):
            times = None if hats is None else Times.day("hour", hats=hats)
            relation = AlphaNeighbours(25.0, types="public", time=None if times is None else "public")
            build = partial(MarkedSynthesizer, 1.0, marks=Marks(Types("kind", kinds), times), relation=relation)
            plan = partial(build(mechanism="moved", spacing=1000.0).plan, SQUARE, n=20)
            if fits:
                assert plan().statistic.levels == 1000
                continue
            with pytest.raises(InputError, match=r"^marks: .* are 30000 kinds of points, and 1000 the most"):
                plan()

    def test_of_points_without_the_marks(self):
        with pytest.raises(InputError, match=r"^pattern: needs exactly the marks"):
            moves().measure(typed(original()))
        with pytest.raises(InputError, match=r"^n: "):
            moves(n=10).measure(original(11))


class TestChoice:
    """Mechanism and lattice by the public rule."""

    def chosen(self, n=2000, epsilon=3.0, relation=TYPES, marks=ALONE, **settings):
        plan = MarkedSynthesizer(epsilon, marks=marks, relation=relation, **settings).plan(SQUARE, n=n)
        return plan.mechanism, plan.reason

    def test_is_moved_points_where_noise_is_short(self):
        name, reason = self.chosen()
        assert name == "marked-moved"
        assert "is short beside the mean distance" in reason
        assert self.chosen(relation=STILL, marks=MARKS)[0] == "marked-moved"

    @pytest.mark.parametrize(("hats", "n", "name"), [(8, 2200, "moved"), (7, 2200, "tents"), (8, 2600, "tents")])
    def test_is_moved_points_of_longer_noise_where_kinds_are_many(self, hats, n, name):
        """Sixteen kinds of points, of which at most three in two squares of the noise's scale; not fourteen."""
        marks = Marks(MARKS.types, Times.day("hour", hats=hats))
        assert self.chosen(n, 1.0, STILL, marks)[0] == f"marked-{name}"

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"n": 999}, "fewer than 1000 points"),
            ({"epsilon": 1.0}, "is long beside"),
            # Which the rule without marks would take.
            ({"n": 1000, "epsilon": 1.0}, "is long beside"),
            ({"relation": AlphaNeighbours(25.0, types="protected")}, "would keep the types"),
            ({"relation": replace(STILL, time=1.0), "marks": MARKS}, "would keep the types and times"),
            ({"relation": ReplaceOne()}, "hides more than where nearby"),
            ({"spacing": 100.0}, "a mesh is asked for"),
        ],
    )
    def test_is_tents_otherwise(self, settings, reason):
        name, said = self.chosen(**settings)
        assert name == "marked-tents"
        assert reason in said

    def test_needs_no_guess_of_a_secret_number_on_a_mesh_of_ones_own(self):
        secret = MarkedSynthesizer(1.0, marks=ALONE, relation=AddRemove(), spacing=200.0)
        assert secret.plan(SQUARE).mechanism == "marked-tents"

    @pytest.mark.parametrize(("kinds", "width"), [(150, 10**6), (200, 1000), (156, 1000)])
    def test_is_never_refused_where_tents_are_not(self, kinds, width):
        """Many types, and a window a thousand times as long as wide."""
        marks = Marks(Types("kind", list(map(str, range(kinds)))))
        settings = MarkedSynthesizer(1.0, marks=marks, relation=AlphaNeighbours(0.4 * width**0.5, types="public"))
        plan = settings.plan(Window.rectangle(0, 0, width, 1000), n=1000)
        assert plan.mechanism == ("marked-tents" if kinds == 200 else "marked-moved")

    def test_plan_says_how_long_inference_takes(self):
        """Some five and one more for every thousand values: 2 x 121 x 121, and of 8 kinds 40 000 at most."""
        for marks, relation, seconds in ((ALONE, TYPES, 30), (MARKS, STILL, 40)):
            settings = MarkedSynthesizer(1.0, marks=marks, relation=relation, mechanism="moved")
            rows = dict(settings.plan(SQUARE, n=2000).estimator.table_rows())
            assert rows["takes"] == f"some {seconds} s of processor time"

    def test_lattice_is_as_fine_as_all_levels_allow(self):
        assert moved_mesh(SQUARE, ALONE, 25.0).recipe["shape"] == [121, 121]
        many = Marks(Types("kind", list(map(str, range(20)))), Times.day("hour", hats=6))
        shape = moved_mesh(SQUARE, many, 25.0).recipe["shape"]
        assert 0.9 * MOST_MOVED < 120 * math.prod(shape) <= MOST_MOVED


@cache
def made(epsilon=6.0, marks=MARKS, relation=STILL, **settings):
    pattern = original(2500) if marks is MARKS else typed(original(2500))
    return moved_marks(epsilon, relation, marks, **{"spacing": 40.0} | settings).release(pattern, 1)


class TestRelease:
    def test_learns_who_is_where_when(self):
        assert_found_by_day_and_night(made(), west=(250.0, 500.0), east=(700.0, 500.0))

    def test_marginals_hold_the_public_numbers(self):
        """Types are counted exactly; half a standard deviation of a binomial number is 12."""
        release, kinds = made(), original(2500).marks["offence"]
        found = release.marginal("types")
        assert found["points"].sum() == pytest.approx(2500, rel=1e-6)
        assert found.loc["theft", "points"] == pytest.approx((kinds == "theft").sum(), abs=40)
        assert found.loc["theft", "lower"] < (kinds == "theft").sum() < found.loc["theft", "upper"]

    def test_points_have_marks_and_the_number_asked_for(self):
        pattern = made().sample(1, 1, fixed_n=True)[0]
        assert len(pattern) == 2500
        kinds, times = MARKS.require(pattern.marks)
        night = kinds == 0
        assert np.cos((times[night] - 2) * np.pi / 12).mean() > 0.4
        assert pattern.xy[night, 0].mean() < 400 < 600 < pattern.xy[~night, 0].mean()

    def test_moves_are_taken_back(self):
        """The strips are 100 wide and moves 50 long on average: moved points alone spread by 60 more."""
        release = made(1.0, ALONE, TYPES, spacing=25.0)
        ticks = np.arange(12.5, 1000, 25)
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        found = release.intensity(grid, type="burglary")
        mean = (found * grid[:, 0]).sum() / found.sum()
        width = math.sqrt((found * (grid[:, 0] - mean) ** 2).sum() / found.sum())
        xy = original(2500).xy[original(2500).marks["offence"] == "burglary"]
        assert mean == pytest.approx(xy[:, 0].mean(), abs=15)
        assert width == pytest.approx(xy[:, 0].std(), rel=0.12)

    @pytest.mark.parametrize(("kept", "sign"), [("west and east", -1), ("mixed", 1)])
    def test_pairs_of_types_have_correlations_of_their_own(self, kept, sign):
        """Types on sides of their own repel, and types with the same places attract; half as much half-way."""
        pattern = original()
        theft = np.arange(N) % 2 == 0 if kept == "mixed" else pattern.marks["offence"] == "theft"
        pattern = PointPattern(pattern.xy, SQUARE, {"offence": np.where(theft, "theft", "burglary")})
        statistic = moves(3.0, TYPES, ALONE).measure(pattern, 1)
        plan = moved_marks(3.0, TYPES, ALONE, spacing=100.0).plan(SQUARE, n=N)
        model = replace(plan.estimator, ranges=(400.0,), sigmas=(1.5,), details=(0.0,), owns=(1.0, 1.5, 2.0))
        likelihood = model.likelihood(statistic)
        mixings = [model.prior_at(likelihood, number).mixing for number in range(3)]
        apart, half, whole = (each @ each.T for each in mixings)
        for each in (apart, half, whole):
            np.testing.assert_allclose(np.diag(each), 1.0)
        assert apart[0, 1] == pytest.approx(0.0, abs=1e-9)
        assert sign * whole[0, 1] > 0.4
        assert half[0, 1] == pytest.approx(whole[0, 1] / 2)

    def test_correlations_of_many_types_are_not_found_in_the_half_that_is_foretold(self):
        """Twelve independent types: from both halves they would foretell the noise, and seem e^20 times likelier."""
        rng = np.random.default_rng(1)
        kinds = Types("offence", list("abcdefghijkl"))
        middles = rng.uniform(100, 900, (12, 4, 2))[np.arange(1200) % 12, rng.integers(4, size=1200)]
        xy = np.where(rng.random((1200, 1)) < 0.6, rng.normal(middles, 70), rng.uniform(0, 1000, (1200, 2)))
        pattern = PointPattern(xy.clip(1, 999), SQUARE, {"offence": np.array(kinds.values)[np.arange(1200) % 12]})
        plan = moved_marks(2.0, TYPES, Marks(kinds), spacing=50.0).plan(SQUARE, n=1200)
        model = replace(plan.estimator, ranges=(300.0,), sigmas=(1.5,), details=(0.0,), owns=(1.0, 2.0), even=False)
        scores = model._scores(model.likelihood(plan.statistic.measure(pattern, 1)), rng, silent)
        assert scores[1] - scores[0] < 8

    def test_offsets_multiply_and_effects_are_found(self):
        """Nobody lives in the east, and a covariate's effect is that of a regression, within five of its deviations."""
        west = Offset.from_grid([[1.0, 0.0]], SQUARE.bounds)
        rng = np.random.default_rng(8)
        xy = rng.uniform(0, 1, (40_000, 2)) * (500, 1000)
        slope = (xy[:, 1] - 500) / np.std(np.linspace(0, 1000, 41))
        xy = xy[rng.random(len(xy)) < np.exp(0.5 * slope - 1)][:3000]
        marked = PointPattern(xy, SQUARE, {"offence": np.where(np.arange(3000) % 3 == 0, "burglary", "theft")})
        north = {"north": lambda at: np.asarray(at)[:, 1]}
        release = moved_marks(5.0, TYPES, ALONE, spacing=40.0, offset=west, covariates=north).release(marked, 2)
        assert release.intensity([[900.0, 500.0]], type="theft") == 0
        drawn = release.effects.per_unit("north") * np.std(np.linspace(0, 1000, 41))
        assert abs(drawn.mean() - 0.5) < 5 * drawn.std()
        assert drawn.std() < 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release with secret randomness."""
    release = moved_marks(3.0, STILL, spacing=100.0).release(original())
    return release.save(tmp_path_factory.mktemp("moves") / "public", patterns=1, rng=1)


class TestFiles:
    def test_verifies_and_opens(self, folder):
        assert verify(folder).holds
        again = load_release(folder)
        assert again.mechanism == "marked-moved"
        assert again.marks == MARKS
        assert again.statistic.lattice.sum() == N
        assert again.intensity.total == pytest.approx(N, rel=1e-5)

    def test_is_inferred_again_at_no_cost(self, folder):
        release = load_release(folder)
        again = release.infer(rng=1, ranges=(300.0,), sigmas=(1.0,), owns=(1.0,), even=False)
        assert again.inferred
        assert (again.statistic.lattice == release.statistic.lattice).all()
        with pytest.raises(InputError, match=r"^owns: needs 1 to"):
            release.infer(owns=(0.5, 2.5))
        with pytest.raises(InputError, match="infer: unknown setting"):
            release.infer(spacing=3.0)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("marks", "types", "values"), ["burglary", "theft", "arson"]),
            (("marks", "times", "hats"), 5),
            (("marks", "times", "hats"), 10**9),
            (("rate",), 1.0),
            (("extension",), 3),
            (("n",), N + 1),
        ],
        ids=str,
    )
    def test_other_parameters_do_not_verify(self, folder, tmp_path, path, value):
        assert not verify(stating(folder, tmp_path / "out", path, value)).holds


def far_target(n=20, k=1):
    relation = AlphaNeighbours(300.0, time="public", types="public", max_points_per_person=k)
    return target_of(moved_marks(1.0, relation, spacing=100.0), SQUARE, n=n)


class TestAudit:
    @pytest.mark.parametrize("k", [1, 3])
    def test_stays_below_the_claim(self, k):
        result = audit(far_target(k=k), trials=300)
        assert not result.violated
        assert result.claimed == pytest.approx(1.0)

    @pytest.mark.parametrize(("factor", "trials"), [(4.0, 500), (1e9, 100)], ids=["a quarter of the noise", "none"])
    def test_finds_too_little_noise(self, factor, trials):
        made = far_target(n=3)
        assert audit(replace(made, run=LessNoise(made.run.plan, factor)), trials=trials).violated

    def test_the_law_of_too_little_noise_is_that_of_the_runs(self):
        made = far_target(n=5)
        run, ratio = LessNoise(made.run.plan, 2.0), made.statistics[0].features
        for pattern, scores in zip(made.pair, made.weakened(2.0), strict=True):
            seen = [ratio(run(pattern)) for _ in range(300)]
            assert stats.ks_2samp(seen, scores).pvalue > ALARM

    def test_points_of_another_type_do_not_hide_a_person(self):
        """The ratio is that of the person's own type alone, exactly, whatever the others' counts are."""
        plan = moves(1.0, AlphaNeighbours(300.0, types="public"), ALONE, n=3)
        ends = ([200.0, 500.0], [480.0, 500.0])
        kinds = np.array(["theft", "theft", "burglary"])
        pair = tuple(PointPattern([[500, 100], [500, 100], end], SQUARE, {"offence": kinds}) for end in ends)
        ratio = audit_of(plan).statistics(pair)[0].features
        lattice = np.zeros((2, plan.size // 2), dtype=np.int64)
        nodes = plan.node_of(np.array([[300.0, 400.0], [500.0, 200.0], [900.0, 0.0]]))
        lattice[0, nodes[0]] = 1
        lattice[1, nodes[1:]] = 1
        own = [node_chances(plan, np.array(end)).reshape(2, -1)[0, nodes[0]] for end in ends]
        found = ratio(PrivateStatistic(plan, lattice.ravel(), "", False))
        assert found == pytest.approx(math.log(own[0] / own[1]))

    def test_a_pair_whose_marks_change_is_none(self):
        one = original(20)
        near, relation = moves(n=20), STILL
        kinds = one.marks["offence"].copy()
        kinds[-1] = "theft" if kinds[-1] == "burglary" else "burglary"
        for change in ({"offence": kinds}, {"hour": np.append(one.marks["hour"][:-1], 3.21)}):
            other = PointPattern(one.xy, SQUARE, {**one.marks, **change})
            with pytest.raises(InputError, match=r"^pair: its patterns are not neighbouring"):
                audit_of(near).neighbours(relation, (one, other))
        moved = PointPattern(one.xy + np.array([[0, 0]] * 19 + [[3.0, 4.0]]), SQUARE, one.marks)
        assert audit_of(near).neighbours(relation, (one, moved)) == (one, moved)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place, pattern = tmp_path_factory.mktemp("shell"), original()
    rows = zip(*pattern.xy.T, pattern.marks["offence"], pattern.marks["hour"], strict=True)
    text = "\n".join(f"{x:.3f},{y:.3f},{kind},{hour:.3f}" for x, y, kind, hour in rows)
    (place / "points.csv").write_text(f"x,y,offence,hour\n{text}\n")
    return place


PLACE = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
DESCRIBED = ["--types", "offence=burglary,theft", "--time", "hour", "--period", "day", "--hats", 4]


class TestShell:
    """The whole way on the command line."""

    def test_synthesize_verify_and_report(self, files):
        how = ["--mechanism", "marked-moved", "--epsilon", 3, "--alpha", 25, *DESCRIBED]
        how += ["--protect-time", "none", "--no-protect-types"]
        said = json.loads(run("check", *how, *PLACE, "--n", N, "--json").stdout)
        assert said["mechanism"] == "marked-moved"
        assert "every point is moved by" in spoken(run("check", *how, *PLACE, "--n", N))
        run("synthesize", files / "points.csv", *how, "--spacing", 100, *PLACE, "--out", files / "out")
        assert "holds" in spoken(run("verify", files / "out"))
        run("sample", files / "out", "--patterns", 2, "--out", files / "more")
        run("report", files / "out", "--out", files / "report.html")
        assert "were each moved at random" in (files / "report.html").read_text()

    def test_the_method_alone_takes_what_the_rule_takes(self):
        how = ["--epsilon", 3, "--alpha", 25, "--types", "offence=burglary,theft", "--no-protect-types"]
        for name, found in (("--method", "marked-moved"), ("--mechanism", "marked-tents")):
            word = "marked" if name == "--method" else "marked-tents"
            said = json.loads(run("check", name, word, *how, *PLACE, "--n", 2000, "--json").stdout)
            assert said["mechanism"] == found

    def test_refusals_name_the_option(self):
        how = ["--mechanism", "marked-moved", "--epsilon", 1, "--alpha", 25, *DESCRIBED, "--protect-types"]
        said = spoken(run("check", *how, "--protect-time", "none", *PLACE, "--n", 50, code=2))
        assert "keeps its types, which must be public; take --mechanism marked-tents" in said


def test_windows_that_are_not_convex_have_no_points_in_their_holes():
    import shapely

    ring = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)))
    rng = np.random.default_rng(2)
    xy = rng.uniform(0, 1, (3000, 2)) * (1000, 800)
    xy = xy[ring.contains(xy)][:1200]
    pattern = PointPattern(xy, ring, {"offence": np.where(np.arange(1200) % 2 == 0, "burglary", "theft")})
    release = moved_marks(1.0, TYPES, ALONE, spacing=50.0).release(pattern, 1)
    assert ring.contains(release.sample(1, 1)[0].xy).all()
    near = np.array([[280.0, 400.0], [520.0, 400.0], [400.0, 280.0], [400.0, 520.0]])
    assert release.intensity(near).mean() * ring.area / 1200 == pytest.approx(1.0, abs=0.3)
