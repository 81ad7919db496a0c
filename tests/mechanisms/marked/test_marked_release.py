"""Points with types and times: what is measured, inferred, drawn, written and read again."""

import functools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from support.cases import SQUARE, STREETS
from support.seams import chance_for_nuts, one_prior

import dpppsynth as dps
from dpppsynth import AddRemove, AlphaNeighbours, MarkedSynthesizer, Marks, PointPattern, Times, Types
from dpppsynth.auditing.targets import target_of
from dpppsynth.contract.rules import planar_rules
from dpppsynth.core.errors import InputError
from dpppsynth.ledger import Ledger
from dpppsynth.mechanisms.marked.audit import MarkedAudit, differing
from dpppsynth.mechanisms.marked.intensity import MarkedIntensity, MarkedMean, MarkedMesh
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.release import load_release

KINDS = Types("offence", ["burglary", "theft"])
MARKS = Marks(KINDS, Times.day("hour", hats=6))
NEAR = AlphaNeighbours(25.0, time=1.0, types="public")
IN_HOURS = AlphaNeighbours(25.0, time=1.0, time_unit="hours", types="public")
STILL = AlphaNeighbours(25.0, time="public", types="public")
N = 600


def original(n=N, seed=3, domain=SQUARE):
    """Burglaries in the west at night, thefts in the east by day."""
    rng = np.random.default_rng(seed)
    theft = rng.random(n) < 0.6
    xy = np.column_stack([np.clip(rng.normal(np.where(theft, 700, 250), 120), 0, 1000), rng.uniform(0, 1000, n)])
    hour = rng.normal(np.where(theft, 14, 2), 2.5) % 24
    marks = {"offence": np.where(theft, "theft", "burglary"), "hour": hour}
    if domain is SQUARE:
        return PointPattern(xy, SQUARE, marks)
    edge = rng.integers(0, len(domain.edges), n)
    return PointPattern.at(np.column_stack([edge, rng.random(n) * domain.lengths[edge]]), domain, marks)


@pytest.fixture(autouse=True, scope="module")
def one_size_of_each_part():
    """Fields are inferred with one prior: what is averaged over changes nothing here."""
    with one_prior():
        yield


@cache
def made(epsilon=4.0, relation=NEAR, seed=1):
    guess = {} if relation.n_is_public else {"expected_n": 500}
    return MarkedSynthesizer(epsilon, marks=MARKS, relation=relation).release(original(), seed, **guess)


class TestPlan:
    def plan(self, relation=NEAR, n=N):
        return MarkedSynthesizer(1.0, marks=MARKS, relation=relation, spacing=200.0).plan(SQUARE, n=n).statistic

    def test_every_point_is_one_whole(self):
        plan, pattern = self.plan(), original()
        exact = plan.exact_numbers(pattern).reshape(plan.shape)
        unit = 2**plan.bits
        assert exact.sum() == N * unit
        for kind, value in enumerate(KINDS.values):
            assert exact[kind].sum() == (pattern.marks["offence"] == value).sum() * unit
        # The hats' masses are those of the times, the tents' those of the places.
        hat, value = MARKS.times.values(pattern.marks["hour"])
        times = np.bincount(hat.ravel(), value.ravel(), minlength=6)
        assert np.allclose(exact.sum(axis=(0, 2)) / unit, times, atol=N * 2.0**-14)
        tents = np.asarray(plan.mesh.basis(pattern.positions).sum(axis=0)).ravel()
        assert np.allclose(exact.sum(axis=(0, 1)) / unit, tents, atol=N * 2.0**-19)

    @pytest.mark.parametrize(
        ("mark", "value"), [("offence", "arson"), ("hour", 24.5), ("hour", np.nan), ("raw", 311.25)]
    )
    def test_synthetic_points_have_its_marks_alone(self, mark, value):
        plan, marks = self.plan(), original().marks
        plan.require_marks(marks)
        with pytest.raises(InputError):
            plan.require_marks({**marks, mark: np.full(N, value, dtype=object if mark == "offence" else float)})

    def test_many_points_are_added_up_in_parts(self, monkeypatch):
        plan, pattern = self.plan(), original()
        whole = plan.exact_numbers(pattern)
        monkeypatch.setattr("dpppsynth.mechanisms.marked.statistic.AT_ONCE", 7)
        assert (plan.exact_numbers(pattern) == whole).all()

    def test_noise_has_the_scale_of_the_plan(self):
        """Kolmogorov-Smirnov test of 2 x 6 x 36 numbers and eight runs; false alarms below 1e-6."""
        plan, pattern = self.plan(), original()
        exact = plan.exact_numbers(pattern)
        noise = np.concatenate([plan.measure(pattern, seed).lattice - exact for seed in range(8)])
        assert plan.scale == pytest.approx(plan.sensitivity / plan.epsilon)
        assert stats.kstest(noise / plan.scale, stats.laplace.cdf).pvalue > 1e-6

    def test_too_many_numbers_are_refused_by_the_plan(self):
        hours = Marks(Types("kind", list(map(str, range(40)))), Times.day("hour", hats=48))
        near = AlphaNeighbours(25.0, time=1.0, types="public")
        with pytest.raises(InputError, match=r"^marks: 40 types times 48 hats times .* 100,000 the most"):
            MarkedSynthesizer(1.0, marks=hours, relation=near, spacing=50.0).plan(SQUARE, n=10**6)

    def test_the_rule_follows_n_epsilon_and_the_marks(self):
        def vertices(n, epsilon, marks=MARKS, relation=NEAR):
            plan = MarkedSynthesizer(epsilon, marks=marks, relation=relation).plan(SQUARE, n=n)
            return len(plan.statistic.mesh.vertices)

        assert vertices(10**5, 1.0) > vertices(2000, 1.0) > vertices(2000, 0.2)
        alone = AlphaNeighbours(25.0, types="public")
        assert vertices(2000, 1.0, Marks(KINDS), alone) > vertices(2000, 1.0)

    @pytest.mark.parametrize(
        ("change", "rule", "entries"),
        [
            ({"offence": np.repeat("arson", N)}, r"^offence: a point has a type that is not in the public list", 1),
            ({"hour": np.repeat(25.0, N)}, r"^hour: every time must lie between 0 and 24", 1),
            ({"hour": np.repeat(np.nan, N)}, r"^hour: every point needs a time", 1),
            ({"age": np.zeros(N)}, r"^pattern: needs exactly the marks", 0),
        ],
    )
    def test_names_of_marks_are_refused_before_the_budget_and_values_after(self, change, rule, entries, tmp_path):
        pattern = original()
        wrong = PointPattern(pattern.xy, SQUARE, pattern.marks | change)
        synthesizer = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR)
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=0.0, relation=IN_HOURS)
        with pytest.raises(InputError, match=rule) as caught:
            synthesizer.release(wrong, ledger=ledger)
        assert len(ledger.releases) == entries
        assert "arson" not in str(caught.value)
        assert "25" not in str(caught.value)

    def test_a_measured_mark_is_no_subset(self):
        plan = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR).plan(SQUARE, n=N)
        with pytest.raises(InputError, match=r"^subset: 'hour' is measured"):
            plan.release(original(), subset={"hour": 3.0})

    def test_levels_of_a_mark_are_refused(self):
        synthesizer = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR)
        with pytest.raises(InputError, match=r"^by: types are released together"):
            synthesizer.plan_by(SQUARE, by="weekday", levels=["Monday", "Sunday"], n=10)
        with pytest.raises(InputError, match=r"^by: types are released together"):
            synthesizer.release_by(original(), by="offence", levels=["theft", "burglary"])

    def test_other_mechanisms_refuse_a_relation_that_speaks_of_marks(self):
        """A stratum by a mark that follows from a protected time would not be protected."""
        for kind in (dps.LaplaceSynthesizer, dps.LGCPSynthesizer, dps.PairSums):
            settings = {"radii": [30.0], "cap": 3} if kind is dps.PairSums else {}
            with pytest.raises(InputError, match=r"^relation: times and types are measured by MarkedSynthesizer"):
                kind(1.0, relation=NEAR, **settings)


class TestField:
    def test_empty_numbers_tell_what_laplace_noise_does(self):
        """Twice as much as a normal law of its variance would."""
        release = made()
        likelihood = release.model.likelihood(release.statistic)
        scale = release.statistic.definition.noise_scale
        np.testing.assert_allclose(likelihood.precision(np.zeros(3)), 1 / scale**2)

    @pytest.mark.parametrize("domain", [SQUARE, STREETS])
    def test_it_is_drawn_as_finely_as_that_of_any_release(self, domain):
        plan = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=200.0).plan(domain, n=N)
        (nx, ny), fine = plan.statistic.mesh.recipe["shape"], plan.estimator.grid.space.recipe
        assert fine["shape"] == [3 * (nx - 1) + 1, 3 * (ny - 1) + 1]
        assert plan.estimator.lattice == (nx, ny)
        # Few values of types alone have nodes between those of the tents.
        alone = MarkedSynthesizer(
            1.0, marks=Marks(KINDS), relation=AlphaNeighbours(25.0, types="public"), spacing=200.0
        )
        assert alone.plan(domain, n=N).estimator.lattice == (2 * nx - 1, 2 * ny - 1)

    def test_many_kinds_have_fewer_values(self):
        assert planar_rules.times_finer(regular_triangulation(SQUARE, shape=(20, 20)), 50) == 2

    @pytest.mark.parametrize("lattice", [(1, 4), (4, 4000), (4.0, 4), [4, 4]])
    def test_lattices_are_two_whole_numbers(self, lattice):
        plan = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=200.0).plan(SQUARE, n=N)
        with pytest.raises(InputError, match=r"^lattice: needs two whole numbers"):
            replace(plan.estimator, lattice=lattice)


class TestRelease:
    @pytest.mark.slow
    def test_learns_who_is_where_when(self):
        release = made()
        west, east = np.array([[250.0, 500.0]]), np.array([[700.0, 500.0]])
        for place, kind, hour in ((west, "burglary", 2.0), (east, "theft", 14.0)):
            here = release.intensity(place, time=hour, type=kind)
            other = "theft" if kind == "burglary" else "burglary"
            assert here > 5 * release.intensity(place, time=(hour + 12) % 24, type=kind)
            assert here > 5 * release.intensity(place, time=hour, type=other)

    @pytest.mark.slow
    def test_intensities_add_up(self):
        intensity = made().intensity
        xy = np.random.default_rng(1).uniform(0, 1000, (40, 2))
        by_type = [intensity(xy, type=kind) for kind in KINDS.values]
        assert np.allclose(sum(by_type), intensity(xy))
        hours = np.linspace(0, 24, 2401)
        one = np.array([intensity(xy, time=hour) for hour in hours[:-1]])
        assert np.allclose(one.sum(axis=0) * 0.01, intensity(xy), rtol=2e-3)
        assert intensity.total == pytest.approx(N, rel=1e-6)
        fine = (np.arange(200) + 0.5) * 5
        grid = np.array(np.meshgrid(fine, fine)).reshape(2, -1).T
        assert intensity(grid).sum() * 25 == pytest.approx(N, rel=5e-3)

    def test_points_follow_the_intensity(self):
        """Types, times and halves of the square by chi-square; false alarms below 1e-6."""
        intensity = made().intensity
        positions, kinds, times = intensity.draw_points(40_000, np.random.default_rng(5))
        cell = kinds * 12 + (times // 4).astype(int) * 2 + (positions[:, 0] > 500)
        found = np.bincount(cell, minlength=24)
        fine = (np.arange(50) + 0.5) * 20
        grid = np.array(np.meshgrid(fine, fine)).reshape(2, -1).T
        expected = np.zeros(24)
        for kind, value in enumerate(KINDS.values):
            for part in range(6):
                at = np.mean([intensity(grid, time=t, type=value) for t in 4 * part + (np.arange(8) + 0.5) / 2], axis=0)
                for side in (0, 1):
                    expected[kind * 12 + part * 2 + side] = at[(grid[:, 0] > 500) == side].sum()
        kept = expected > 1e-4 * expected.sum()
        assert found[~kept].sum() < 40
        scaled = expected[kept] * found[kept].sum() / expected[kept].sum()
        # The grid's sums are good to a few thousandths, far below chance for so few points in a cell.
        assert stats.chisquare(found[kept], scaled).pvalue > 1e-6

    @pytest.mark.slow
    def test_marginals_hold_the_numbers_and_their_intervals(self):
        release = made()
        types, hours = release.marginal("types"), release.marginal("hour")
        assert types["points"].sum() == pytest.approx(N, rel=1e-6)
        assert hours["points"].sum() == pytest.approx(N, rel=1e-6)
        assert ((types["lower"] < types["points"]) & (types["points"] < types["upper"])).all()
        assert types.index.tolist() == list(KINDS.values)
        assert types.loc["theft", "points"] == pytest.approx(0.6 * N, rel=0.15)
        assert hours.loc[12.0, "points"] > hours.loc[20.0, "points"]
        with pytest.raises(InputError, match=r"^mark: expected one of"):
            release.marginal("age")

    def test_intervals_are_about_the_intensity(self):
        release, xy = made(), np.array([[250.0, 500.0], [700.0, 500.0]])
        found = release.interval(xy, time=2.0, type="burglary")
        at = release.intensity(xy, time=2.0, type="burglary")
        assert (found.lower <= at).all()
        assert (at <= found.upper).all()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("options", "rule"),
        [
            ({"time": 25.0}, "^hour: every time"),
            ({"time": [1.0, 2.0, 3.0]}, "^time: must be one number"),
            ({"type": "arson"}, "^type: expected one of"),
        ],
    )
    def test_questions_outside_the_marks_are_refused(self, options, rule):
        with pytest.raises(InputError, match=rule):
            made().intensity(np.zeros((2, 2)), **options)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("source", ["released", "mean", "draws"])
    def test_patterns_have_marks_and_the_number_asked_for(self, source):
        patterns = made().sample(8, 1, source=source, fixed_n=True)
        assert [len(each) for each in patterns] == [N] * 8
        kinds, times = MARKS.require(patterns[1].marks)
        assert set(kinds.tolist()) == {0, 1}
        night = np.concatenate([each.marks["offence"] for each in patterns]) == "burglary"
        times, x = (
            np.concatenate(each) for each in ([p.marks["hour"] for p in patterns], [p.xy[:, 0] for p in patterns])
        )
        # Times of single draws of the posterior vary by .06.
        assert np.cos((times[night] - 2) * np.pi / 12).mean() > 0.4
        assert x[night].mean() < 400 < 600 < x[~night].mean()

    @pytest.mark.slow
    def test_a_secret_number_is_estimated(self):
        release = made(relation=AddRemove())
        assert release.statistic.definition.n is None
        assert release.intensity.total == pytest.approx(N, rel=0.15)

    def test_streets(self):
        pattern = original(domain=STREETS)
        release = MarkedSynthesizer(4.0, marks=MARKS, relation=NEAR).release(pattern, 1)
        assert release.intensity.total == pytest.approx(N, rel=1e-6)
        drawn = release.sample(1, 1)[0]
        assert STREETS.holds(drawn.positions).all()
        night = drawn.marks["offence"] == "burglary"
        assert np.cos((drawn.marks["hour"][night] - 2) * np.pi / 12).mean() > 0.2

    @pytest.mark.slow
    def test_shared_strength_beats_a_release_of_each_type(self):
        """On originals whose types differ little, at equal epsilon; each type's own release has the noise of all."""

        def distance(intensities):
            fine = (np.arange(25) + 0.5) * 40
            grid = np.array(np.meshgrid(fine, fine)).reshape(2, -1).T
            spots, found = np.array([[300.0, 300], [700, 600], [500, 850]]), []
            for k, each in enumerate(intensities):
                weight = np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3]])[k]
                truth = (weight * np.exp(-((grid[:, None] - spots) ** 2).sum(axis=2) / 2 / 80**2)).sum(axis=1)
                at = each(grid)
                found.append(np.abs(at / at.sum() - truth / truth.sum()).sum() / 2)
            return np.mean(found)

        kinds, near = Types("kind", ["a", "b", "c"]), AlphaNeighbours(25.0, types="public")
        ratios = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            spots, parts = np.array([[300.0, 300], [700, 600], [500, 850]]), []
            for weight in ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3]):
                at = spots[rng.choice(3, 120, p=weight)] + rng.normal(size=(120, 2)) * 80
                parts.append(np.clip(at, 0, 1000))
            pattern = PointPattern(np.concatenate(parts), SQUARE, {"kind": np.repeat(list("abc"), 120)})
            both = MarkedSynthesizer(0.5, marks=Marks(kinds), relation=near).release(pattern, seed).intensity
            apart = [
                dps.LGCPSynthesizer(0.5, alpha=25.0, mechanism="tents", prior="sparse")
                .release(PointPattern(part, SQUARE), seed)
                .intensity
                for part in parts
            ]
            together = [functools.partial(both, type=kind) for kind in "abc"]
            ratios.append(distance(together) / distance(apart))
        assert np.mean(ratios) < 0.9


class TestFiles:
    def test_nuts_is_asked_for_afterwards(self, tmp_path, monkeypatch):
        """Chains are of pure chance here: between nodes their draws are as rough as those of the approximation."""
        few = {"marks": Marks(KINDS), "relation": AlphaNeighbours(25.0, types="public"), "mechanism": "tents"}
        mesh = regular_triangulation(SQUARE, shape=(4, 4))
        points = original()
        points = PointPattern(points.xy, SQUARE, {"offence": points.marks["offence"]})
        release = MarkedSynthesizer(4.0, mesh=mesh, **few).release(points, 1)
        monkeypatch.setattr("dpppsynth.inference.sparse_inference.NUTS_DRAWS", 250)
        with chance_for_nuts():
            again = release.infer(1, inference="nuts")
        assert again.statistic is release.statistic
        nodes, draws = again.estimator._nodes, [each.draws.flat.astype(float) for each in (release, again)]
        usual, sampled = (np.std(each.reshape(-1, 2, 100) - nodes.smooth(each.reshape(-1, 2, 100))) for each in draws)
        assert sampled == pytest.approx(usual, rel=0.1)
        folder = again.save(tmp_path / "again")
        assert {check.name for check in verify(folder).checks if not check.holds} <= {"randomness"}
        assert load_release(folder).estimator.inference == "nuts"

    @pytest.mark.slow
    def test_what_is_saved_is_verified_and_loaded(self, tmp_path):
        release = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR).release(original())
        folder = release.save(tmp_path / "public", patterns=2, rng=1)
        outcome = verify(folder)
        outcome.require()
        assert outcome.guarantee.to_dict() == release.guarantee.to_dict()
        again = load_release(folder)
        xy = np.array([[250.0, 500.0]])
        assert again.intensity(xy, time=3.0, type="theft") == release.intensity(xy, time=3.0, type="theft")
        assert again.marks == MARKS
        pattern = dps.io.read_synthetic(folder / "synthetic_001.geojson", SQUARE, marks=MARKS.names)
        MARKS.require(pattern.marks)


class TestIntensity:
    def test_closed_form_of_a_plane(self):
        """Between two instants the logarithm is linear: its integral over time is known."""
        grid = MarkedMesh(regular_triangulation(SQUARE, shape=(3, 3)), Marks(times=Times("t", 0.0, 2.0, hats=3)))
        intensity = MarkedIntensity(grid, np.repeat(np.array([0.0, 1.0, 3.0])[None, :, None], 9, axis=2))
        expected = (np.e - 1) + (np.e**3 - np.e) / 2
        assert intensity(np.array([[100.0, 900.0]])) == pytest.approx(expected)
        assert intensity(np.array([[100.0, 900.0]]), time=1.5) == pytest.approx(np.exp(2.0))

    def test_the_mean_is_the_average_of_draws(self):
        grid = MarkedMesh(regular_triangulation(SQUARE, shape=(3, 3)), Marks(KINDS))
        fields = np.random.default_rng(1).normal(size=(5, 18)).astype(np.float32)
        mean, xy = MarkedMean(grid, fields), np.array([[10.0, 20.0], [600.0, 300.0]])
        each = [MarkedIntensity(grid, field.astype(float).reshape(2, 1, 9))(xy, type="theft") for field in fields]
        assert np.allclose(mean(xy, type="theft"), np.mean(each, axis=0))
        positions, kinds, _ = mean.draw_points(100, np.random.default_rng(2))
        assert positions.shape == (100, 2)
        assert set(kinds.tolist()) <= {0, 1}

    def test_quantiles_have_what_lies_between_vertices_and_averages_have_not(self):
        """Factors exp(N(-s²/2, s²)) of draws that are all 1."""
        grid = MarkedMesh(regular_triangulation(SQUARE, shape=(3, 3)), Marks(KINDS))
        mean = MarkedMean(grid, np.zeros((40, 18), dtype=np.float32), np.full(40, 0.5))
        xy = np.array([[10.0, 20.0]])
        wanted = np.exp(0.5 * stats.norm.ppf([0.05, 0.5, 0.95]) - 0.125)
        found = mean.quantiles(xy, np.array([0.05, 0.5, 0.95]), type="theft")[:, 0]
        np.testing.assert_allclose(found, wanted, rtol=0.08)
        assert mean(xy, type="theft") == pytest.approx(1)

    def test_no_points_are_drawn_of_none(self):
        intensity = made().intensity
        positions, kinds, times = intensity.draw_points(0, np.random.default_rng(1))
        assert positions.shape == (0, 2)
        assert len(kinds) == len(times) == 0


def statistic(relation, epsilon=1.0):
    return MarkedSynthesizer(epsilon, marks=MARKS, relation=relation, spacing=250.0).plan(SQUARE, n=40).statistic


class TestAudit:
    @pytest.mark.parametrize(
        "relation",
        [
            NEAR,
            AlphaNeighbours(25.0, time="public", types="protected"),
            AlphaNeighbours(25.0, time="protected", types="public", max_points_per_person=2),
        ],
        ids=str,
    )
    def test_the_hard_pair_is_neighbouring_and_spends_nearly_all(self, relation):
        plan = statistic(relation)
        audit = MarkedAudit(plan)
        pair = audit.pair(relation)
        assert audit.neighbours(relation, pair) == pair
        gone, came = differing(pair, MARKS)
        assert len(gone) == len(came) == relation.max_points_per_person
        spent, allowed = audit.spent(pair, plan.guarantee.profile)
        assert 0.85 * allowed <= spent <= allowed
        assert not audit.excess(pair, plan.guarantee.profile)

    def test_a_pair_whose_time_moves_too_far_is_not_neighbouring(self):
        audit = MarkedAudit(statistic(NEAR))
        one, other = audit.pair(NEAR)
        for change in ({"hour": 1.5}, {"offence": "theft"}):
            marks = {name: values.copy() for name, values in one.marks.items()}
            for name, value in change.items():
                marks[name][-1] = value
            far = PointPattern(one.xy, SQUARE, marks)
            with pytest.raises(InputError, match="not neighbouring"):
                audit.neighbours(NEAR, (one, far))
        assert audit.neighbours(NEAR, (one, other))

    @pytest.mark.parametrize(
        ("relation", "weaker"),
        [
            (NEAR, AlphaNeighbours(25.0, time="public", types="public")),
            (
                AlphaNeighbours(25.0, time="public", types="protected"),
                STILL,
            ),
            (AlphaNeighbours(25.0, time=1.0, types="public", max_points_per_person=3), NEAR),
        ],
        ids=["time", "types", "cap"],
    )
    def test_noise_for_a_weaker_promise_is_found(self, relation, weaker):
        """A plan calibrated to another relation than it claims shows in its stated noise."""
        honest, planted = statistic(relation), statistic(weaker)
        audit = MarkedAudit(planted)
        pair = MarkedAudit(honest).pair(relation)
        assert audit.excess(pair, honest.guarantee.profile)

    @pytest.mark.slow
    def test_an_auditor_finds_nothing_wrong(self):
        target = target_of(MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=250.0), SQUARE, n=40)
        outcome = dps.audit(target, trials=200)
        assert not outcome.violated
