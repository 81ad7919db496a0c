"""Counts of moved points: the statistic, its promise, its refusals, its audit and its files."""

import json
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import shapely
from scipy import stats
from support.command_line import run, spoken
from support.seams import recorded

from dpppsynth import (
    AddRemove,
    AlphaNeighbours,
    InputError,
    LGCPSynthesizer,
    PlanarLaplaceSynthesizer,
    ReplaceOne,
    Window,
    load_release,
)
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import audit_of, target_of
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.moved_counts import node_chances
from dpppsynth.contract.moved_counts import MOST_NODES, MovedCounts
from dpppsynth.contract.rules import planar_rules
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy import verify
from dpppsynth.privacy.truncated.lattice_noise import move
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 1000, 1000)
# A rectangle with a hole, and an island.
PARTS = Window.polygon(
    shapely.union_all(
        [shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)), shapely.box(1200, 100, 1400, 500)]
    )
)
NEAR = AlphaNeighbours(25.0)
ALARM = 1e-6


def counts(epsilon=1.0, relation=NEAR, window=SQUARE, shape=(11, 11), n=200):
    return MovedCounts(regular_triangulation(window, shape=shape), relation, n, epsilon)


def scattered(n=200, window=SQUARE, seed=1):
    rng, (x0, y0, x1, y1) = np.random.default_rng(seed), window.bounds
    found = rng.uniform((x0, y0), (x1, y1), (8 * n, 2))
    return PointPattern(found[window.contains(found)][:n], window)


class TestLattice:
    def test_follows_from_public_numbers(self):
        plan = LGCPSynthesizer(0.5, alpha=20.0, mechanism="moved").plan(PARTS, n=300)
        statistic = plan.statistic
        assert plan.mechanism == "lgcp-moved"
        assert statistic.rate == pytest.approx(0.5 / 20.0)
        # A third of the scale of 40 along the longer side of 1400.
        assert statistic.shape == (106, 61)
        assert max(statistic.spacing) <= 40.0 / 3 * (1 + 1e-9)
        assert statistic.parameters() == {
            "basis": "moved counts",
            "mesh": {"builder": "regular", "kind": "triangle", "shape": [106, 61]},
            "n": 300,
            "expected_n": None,
            "epsilon": 0.5,
            "rate": statistic.rate,
            "extension": statistic.extension,
        }
        again = MovedCounts.from_parameters(statistic.parameters(), statistic.relation, PARTS, mechanism="lgcp-moved")
        assert again.parameters() == statistic.parameters()
        assert again.guarantee == statistic.guarantee

    @pytest.mark.parametrize(("scale", "side"), [(1e-3, 256), (10.0, 256), (15.0, 201), (25.0, 121), (1e9, 32)])
    def test_has_so_many_nodes(self, scale, side):
        assert planar_rules.moved_mesh(SQUARE, scale).recipe["shape"] == [side, side]

    @pytest.mark.parametrize(("width", "shape"), [(2000, [362, 181]), (16_000, [640, 41]), (1e7, [640, 2])])
    def test_is_finer_along_a_long_window(self, width, shape):
        assert planar_rules.moved_mesh(Window.rectangle(0, 0, width, 1000), 1e-3).recipe["shape"] == shape
        assert planar_rules.moved_mesh(Window.rectangle(0, 0, 1000, width), 1e-3).recipe["shape"] == shape[::-1]

    def test_spacing_may_be_given(self):
        plan = LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", mesh=regular_triangulation(SQUARE, spacing=50.0))
        assert plan.plan(SQUARE, n=5).statistic.spacing == (50.0, 50.0)

    def test_ranges_go_from_the_scale_to_the_window(self):
        mesh = planar_rules.moved_mesh(SQUARE, 25.0)
        ranges = planar_rules.moved_ranges(mesh, 25.0)
        assert (ranges[0], ranges[-1]) == pytest.approx((25.0, 1600.0))
        assert len(ranges) == 7
        assert np.divide(ranges[1:], ranges[:-1]) == pytest.approx(2.0)
        assert planar_rules.moved_ranges(mesh, 1e9) == (1600.0,)
        fine = regular_triangulation(Window.rectangle(0, 0, 1000, 100), shape=(601, 61))
        assert len(planar_rules.moved_ranges(fine, 1e-3)) == 8

    def test_is_extended_by_nearly_all_of_the_noise(self):
        plan = counts()
        reach = (plan.extension + 0.5) * 100.0
        assert stats.gamma.sf(reach * plan.rate, 2) < 1e-6
        assert stats.gamma.sf((reach - 100) * plan.rate, 2) > 1e-8
        # But by no more than the window's extent.
        assert counts(epsilon=0.01).extension == 10

    def test_nodes_are_in_c_order_along_x_first(self):
        plan = counts(shape=(11, 6))
        r, (nx, ny) = plan.extension, plan.sides
        assert plan.spacing == (100.0, 200.0)
        assert plan.nodes.reshape(nx, ny, 2)[r + 3, r + 1].tolist() == [300.0, 200.0]
        assert (plan.node_of(plan.nodes) == np.arange(plan.size)).all()
        assert plan.node_of(np.array([[349.0, 299.0], [351.0, 301.0]])).tolist() == [
            (r + 3) * ny + r + 1,
            (r + 4) * ny + r + 2,
        ]
        far = plan.node_of(np.array([[-1e9, 1e9], [1e9, -1e9]]))
        assert far.tolist() == [ny - 1, (nx - 1) * ny]

    def test_vertices_of_the_mesh_are_nodes(self):
        plan = counts(window=PARTS, shape=(15, 9))
        assert len(plan.mesh.vertices) < 15 * 9
        assert np.abs(plan.nodes[plan.node_of(plan.mesh.vertices)] - plan.mesh.vertices).max() < 1e-9


class TestMeasure:
    def test_counts_the_points_that_planar_laplace_moves(self):
        """One sampler: the same seed moves the same points to the same places."""
        pattern = scattered(window=PARTS)
        plan = counts(window=PARTS, shape=(29, 17))
        points = MovedPoints(PARTS, NEAR, 200, 1.0, 0.0, None)
        moved = points.positions(points.measure(pattern, 5))
        found = plan.measure(pattern, 5)
        assert (found.lattice == np.bincount(plan.node_of(moved), minlength=plan.size)).all()
        assert found.noise == "seeded-planar-laplace"
        assert plan.measure(pattern).noise == "planar-laplace"

    def test_of_a_seed_are_these(self):
        """A change of these numbers is a change of the mechanism."""
        plan = counts(shape=(4, 4), n=24)
        lattice = plan.measure(scattered(24), 5).lattice.reshape(plan.sides)
        assert lattice[2:6, 2:6].tolist() == [[0, 2, 0, 1], [2, 2, 1, 2], [1, 4, 4, 2], [0, 1, 2, 0]]
        assert lattice.sum() == 24

    def test_draws_with_the_rate_of_the_guarantee(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=3)
        plan = counts(0.5, relation)
        with recorded() as seen:
            plan.measure(scattered())
        [(_, draw, exact)] = seen
        assert draw.func is move
        assert draw.keywords["epsilon"] == plan.rate == pytest.approx(0.5 / (3 * 25.0))
        assert draw.keywords["bound"] == math.inf
        assert (exact == scattered().positions).all()

    @pytest.mark.parametrize("relation", [NEAR, AlphaNeighbours(25.0, max_points_per_person=4)], ids=["one", "four"])
    def test_follow_the_law(self, relation):
        """Chi-square, against an integral of the density of its own."""
        plan, n = counts(2.0, relation, shape=(21, 21), n=20_000), 20_000
        place = np.array([430.0, 512.0])
        found = plan.measure(PointPattern(np.tile(place, (n, 1)), SQUARE)).lattice
        chance = density_at_nodes(plan, place)
        common = chance * n > 10
        expected = np.append(chance[common], 1 - chance[common].sum()) * n
        seen = np.append(found[common], n - found[common].sum())
        assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > ALARM

    def test_the_law_of_the_audit_is_that_integral(self):
        plan, place = counts(2.0, shape=(21, 21)), np.array([430.0, 512.0])
        known, chance = density_at_nodes(plan, place), node_chances(plan, place)
        assert chance.sum() == pytest.approx(1)
        assert np.abs(chance - known).max() < 2e-4

    def test_of_many_batches_is_that_of_all(self, monkeypatch):
        plan, pattern = counts(), scattered()
        whole = plan.measure(pattern, 3).lattice
        monkeypatch.setattr("dpppsynth.contract.moved_counts.BATCH", 7)
        assert (plan.measure(pattern, 3).lattice == whole).all()

    def test_the_order_of_rows_is_gone(self):
        """Rows turned round give counts of the same law, and unmoved ones the same counts."""
        pattern = scattered()
        plan, places = counts(), np.rint(pattern.positions / SQUARE.resolution).astype(np.int64)
        assert (plan.counted(places) == plan.counted(places[::-1])).all()


def density_at_nodes(plan, place, parts=40):
    """(size,) chances by midpoints of small squares within every cell."""
    hx, hy = plan.spacing
    offsets = (np.arange(parts) + 0.5) / parts - 0.5
    chance = np.zeros(plan.size)
    for dx in offsets:
        for dy in offsets:
            length = np.hypot(*(plan.nodes + np.array([dx * hx, dy * hy]) - place).T)
            chance += np.exp(-plan.rate * length)
    return chance * plan.rate**2 / (2 * np.pi) * hx * hy / parts**2


class TestGuarantee:
    def test_costs_in_proportion_to_the_distance(self):
        """Epsilon d / alpha for every distance, however long."""
        guarantee = counts(0.5, AlphaNeighbours(20.0)).guarantee
        assert guarantee.epsilon() == pytest.approx(0.5)
        distance, epsilon = np.array(guarantee.by_distance).T
        assert epsilon == pytest.approx(0.5 * distance / 20.0)
        assert distance[-1] == pytest.approx(math.hypot(1000, 1000))
        assert guarantee.profile.at == 0

    def test_is_that_of_moved_points(self):
        known = PlanarLaplaceSynthesizer(1.0, alpha=25.0).check(SQUARE, n=200)
        assert counts().guarantee == known

    def test_points_of_a_person_share_it(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=4)
        plan = counts(1.0, relation)
        assert plan.rate == pytest.approx(1 / 100.0)
        assert plan.guarantee.epsilon() == pytest.approx(1.0)

    def test_a_statistic_that_spends_more_is_none(self, monkeypatch):
        monkeypatch.setattr("dpppsynth.privacy.planar_noise.rate", lambda relation, epsilon, _: 1.01 * epsilon / 25.0)
        with pytest.raises(Exception, match="epsilon"):
            counts()


class TestRefusals:
    """Before the points are touched, each with a remedy that works."""

    @pytest.mark.parametrize(
        ("settings", "words", "remedy"),
        [
            ({"relation": ReplaceOne()}, r"^relation: mechanism 'moved' hides .* give alpha=25\.0 instead", NEAR),
            ({"relation": AddRemove()}, r"^relation: mechanism 'moved' hides .* 'tents' for this relation", NEAR),
            ({"delta": 1e-6}, r"^delta: mechanism 'moved' is purely epsilon-private .* leave delta= out", 0.0),
            ({"sigma": 2.0}, r"^sigma: mechanism 'moved' spends nothing on a covariance; leave it out", None),
            (
                {"covariance": PoweredExponential(1.0, 100.0)},
                r"^covariance: mechanism 'moved' spends nothing on a covariance; leave it out",
                None,
            ),
            ({"clusters": 0.3}, r"^clusters: mechanism 'moved' measures no pairs; leave it out, or", None),
            ({"prior": "dense"}, r"^prior: mechanism 'moved' cannot take 'dense'; leave it out, or", "auto"),
            (
                {"inference": "nuts"},
                r"^inference: .* 10000 .* 14641; take inference='laplace', plan with mechanism 'tents', or plan",
                "laplace",
            ),
            ({"length_scale": 1e9}, r"^length_scale: must lie between .* and 2000 in .* leave length_scale= out", None),
            ({"length_scale": 1e-9}, r"^length_scale: must lie between 0\.002 and 2000 in this window", 300.0),
            ({"sampler": "exact"}, r"^sampler: mechanism 'moved' cannot take 'exact'; leave sampler= out", "auto"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_of_settings(self, settings, words, remedy):
        moved = partial(LGCPSynthesizer, 1.0, mechanism="moved")
        alpha = {} if "relation" in settings else {"alpha": 25.0}
        with pytest.raises(InputError, match=words):
            moved(**alpha, **settings).check(SQUARE, n=20)
        mended = moved(**alpha, **dict.fromkeys(settings, remedy))
        assert mended.check(SQUARE, n=20).epsilon() == pytest.approx(1.0)
        if "relation" in settings:
            assert LGCPSynthesizer(1.0, mechanism="tents", **settings).neighbouring() == settings["relation"]

    @pytest.mark.parametrize(
        "mesh",
        [
            regular_squares(SQUARE, shape=(5, 5)),
            Mesh.from_arrays([[0, 0], [1000, 0], [1000, 1000], [0, 1000]], [[0, 1, 2], [0, 2, 3]], SQUARE),
        ],
        ids=["squares", "a mesh of one's own"],
    )
    def test_of_meshes_without_a_lattice(self, mesh):
        with pytest.raises(InputError, match=r"^mesh: moved points are counted at the vertices of regular triangles"):
            LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", mesh=mesh).check(SQUARE, n=20)

    def test_of_too_many_nodes(self):
        fine = LGCPSynthesizer(0.1, alpha=25.0, mechanism="moved", mesh=regular_triangulation(SQUARE, spacing=2.5))
        with pytest.raises(InputError, match=rf"^mesh: 401 x 401 nodes, .* {MOST_NODES}; take a larger"):
            fine.check(SQUARE, n=20)
        coarser = replace(fine, mesh=regular_triangulation(SQUARE, spacing=4.0))
        assert coarser.check(SQUARE, n=20).epsilon() <= 1

    def test_of_windows_and_budgets_without_room(self):
        far = Window.rectangle(2.0**50 * 1e-10 - 0.002, 0, 2.0**50 * 1e-10 + 0.002, 0.004)
        with pytest.raises(InputError, match=r"^window: it lies too far from the origin for its size"):
            LGCPSynthesizer(1.0, alpha=1e-4, mechanism="moved").check(far, n=5)
        with pytest.raises(InputError, match=r"^epsilon: 1e-30 asks for moves far beyond the window"):
            LGCPSynthesizer(1e-30, alpha=1.0, mechanism="moved").check(SQUARE, n=5)

    def test_of_another_number_of_points(self):
        with pytest.raises(InputError, match=r"^n: "):
            counts(n=10).measure(scattered(11))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release of points of a window with a hole and an island, with secret randomness."""
    settings = LGCPSynthesizer(3.0, alpha=25.0, mechanism="moved", mesh=regular_triangulation(PARTS, spacing=50.0))
    return settings.release(scattered(window=PARTS)).save(tmp_path_factory.mktemp("moved") / "public", rng=1)


class TestRelease:
    def test_verifies_and_opens(self, folder):
        assert verify(folder).holds
        again = load_release(folder)
        assert again.mechanism == "lgcp-moved"
        assert again.statistic.lattice.sum() == 200
        assert again.intensity.total == pytest.approx(200, rel=1e-5)
        assert PARTS.contains(again.sample(1, rng=1)[0].xy).all()
        assert "moved" in again.estimator.to_dict()["kind"]

    def test_is_inferred_again_at_no_cost(self, folder):
        release = load_release(folder)
        again = release.infer(rng=1, ranges=(300.0,), sigmas=(1.0,), even=False)
        assert again.inferred
        assert (again.statistic.lattice == release.statistic.lattice).all()
        with pytest.raises(InputError, match="infer: unknown setting"):
            release.infer(spacing=3.0)

    def test_points_are_few_where_there_is_nothing(self, folder):
        """No point in the hole or between the parts, and none of the noise beyond the window."""
        (pattern,) = load_release(folder).sample(1, rng=3, fixed_n=True)
        assert len(pattern) == 200

    @pytest.mark.parametrize("change", ["negative", "more", "round about"])
    def test_impossible_counts_are_refused(self, folder, change):
        statistic = load_release(folder).statistic
        lattice = statistic.lattice.copy()
        match change:
            case "negative":
                lattice[:2] = [-1, lattice[0] + lattice[1] + 1]
            case "more":
                lattice[0] += 1
            case _:
                lattice[:4] += 2**62
                assert lattice.sum() == 200
        with pytest.raises(InputError, match="counts are of n points, none negative"):
            statistic.definition.validate_released(lattice)


@dataclass(frozen=True)
class Broken:
    """Runs that do not keep the claim of `plan`."""

    plan: MovedCounts

    def released(self, moved):
        return PrivateStatistic(self.plan, self.plan.counted(moved), "broken", False)


class HalfTheNoise(Broken):
    def __call__(self, pattern):
        step = self.plan.noise.step
        return self.released(move(pattern.positions, epsilon=2 * self.plan.rate, bound=math.inf, step=step))


class QuarterOfTheNoise(Broken):
    def __call__(self, pattern):
        step = self.plan.noise.step
        return self.released(move(pattern.positions, epsilon=4 * self.plan.rate, bound=math.inf, step=step))


class Unmoved(Broken):
    def __call__(self, pattern):
        return self.released(np.rint(pattern.positions / self.plan.noise.step).astype(np.int64))


def far_target(relation=None, n=20):
    relation = AlphaNeighbours(300.0) if relation is None else relation
    return target_of(LGCPSynthesizer(1.0, relation=relation, mechanism="moved"), SQUARE, n=n)


class TestAudit:
    def test_of_three_points_of_a_person_stays_below_the_claim(self):
        made = far_target(AlphaNeighbours(300.0, max_points_per_person=3))
        result = audit(made, trials=300)
        assert not result.violated
        assert result.claimed == pytest.approx(1.0)

    def test_finds_counts_of_unmoved_points(self):
        made = far_target()
        assert audit(replace(made, run=Unmoved(made.run.plan)), trials=100).violated

    def test_finds_a_quarter_of_the_noise(self):
        made = far_target(n=3)
        assert audit(replace(made, run=QuarterOfTheNoise(made.run.plan)), trials=500).violated

    @pytest.mark.parametrize("k", [1, 3])
    def test_the_ratio_of_a_person_alone_is_exact(self, k):
        relation = AlphaNeighbours(300.0, max_points_per_person=k)
        made = far_target(relation, n=k)
        plan = made.run.plan
        lattice = np.zeros(plan.size, dtype=np.int64)
        nodes = plan.node_of(np.array([[600.0, 800.0], [700.0, 400.0], [100.0, 900.0]][:k]))
        lattice[nodes] = 1
        first, second = (density_at_nodes(plan, pattern.positions[0], 4)[nodes] for pattern in made.pair)
        found = made.statistics[0].features(PrivateStatistic(plan, lattice, "", False))
        assert found == pytest.approx(np.log(first / second).sum(), abs=1e-3 * k)

    def test_the_ratio_among_others_at_one_place_is_exact(self):
        """Two others: whichever of the three counted points is the person's."""
        plan = counts(1.0, AlphaNeighbours(300.0), n=3)
        others, ends = [500.0, 100.0], ([200.0, 500.0], [480.0, 500.0])
        pair = tuple(PointPattern([others, others, end], SQUARE) for end in ends)
        ratio = audit_of(plan).statistics(pair)[0].features
        lattice = np.zeros(plan.size, dtype=np.int64)
        nodes = plan.node_of(np.array([[300.0, 400.0], [500.0, 200.0], [900.0, 0.0]]))
        lattice[nodes] = 1
        law, *own = (node_chances(plan, np.array(place))[nodes] for place in (others, *ends))
        likelihoods = [sum(p[i] * np.prod(np.delete(law, i)) for i in range(3)) for p in own]
        found = ratio(PrivateStatistic(plan, lattice, "", False))
        assert found == pytest.approx(math.log(likelihoods[0] / likelihoods[1]))

    def test_the_law_of_too_little_noise_is_that_of_the_runs(self):
        made = far_target(n=5)
        run, ratio = HalfTheNoise(made.run.plan), made.statistics[0].features
        for pattern, scores in zip(made.pair, made.weakened(2.0), strict=True):
            seen = [ratio(run(pattern)) for _ in range(300)]
            assert stats.ks_2samp(seen, scores).pvalue > ALARM

    def test_repeated_counts_are_noticed(self):
        """Twenty points hardly fall alike twice, and a few on a coarse lattice often do."""
        made = far_target()
        assert made.draws[0].log_likeliest < math.log(1e-12)
        coarse = counts(1.0, AlphaNeighbours(1.0), shape=(3, 3), n=3)
        assert audit_of(coarse).log_likeliest(audit_of(coarse).pair(coarse.relation)) > -0.01


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("shell")
    (place / "window.geojson").write_text(json.dumps(PARTS.to_geojson()))
    np.savetxt(place / "points.csv", scattered(window=PARTS).xy, delimiter=",", header="x,y", comments="")
    return place


class TestShell:
    """The whole way on the command line."""

    def test_synthesize_verify_sample_and_report(self, files):
        place = ["--window-file", files / "window.geojson", "--crs", "EPSG:27700"]
        how = ["--mechanism", "lgcp-moved", "--epsilon", 3, "--alpha", 25]
        said = json.loads(run("check", *how, *place, "--n", 200, "--json").stdout)
        assert said["mechanism"] == "lgcp-moved"
        assert "every point is moved by" in spoken(run("check", *how, *place, "--n", 200))
        run("synthesize", files / "points.csv", *how, "--spacing", 50, *place, "--out", files / "out")
        assert "holds" in spoken(run("verify", files / "out"))
        run("sample", files / "out", "--patterns", 2, "--out", files / "more")
        run("report", files / "out", "--out", files / "report.html")
        page = (files / "report.html").read_text()
        assert "were each moved at random" in page
        assert "counted on a public lattice" in page

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--relation", "replace-one"], "grows with the distance; give --alpha 25.0 instead"),
            (["--alpha", 25, "--delta", 1e-6], "--delta: mechanism 'moved' is purely epsilon-private"),
            (["--alpha", 25, "--sigma", 2], "--sigma: mechanism 'moved' spends nothing on a covariance"),
            (["--alpha", 25, "--clusters", 0.3], "--clusters: mechanism 'moved' measures no pairs"),
            (
                ["--alpha", 25, "--inference", "nuts"],
                "values at most, and this one has 14641; take --inference laplace, plan with --mechanism lgcp-tents,",
            ),
            (["--alpha", 25, "--resolution", 20], "--resolution: cuts the edges of a network"),
            (["--alpha", 25, "--length-scale", 1e9], "--length-scale: must lie between"),
            ([], "--alpha: give the privacy radius, for instance --alpha 25 "),
        ],
    )
    def test_refusals_name_the_option(self, words, said):
        place = ["--window", "0,0,1000,1000", "--n", 50]
        assert said in spoken(run("check", "--mechanism", "lgcp-moved", "--epsilon", 1, *words, *place, code=2))


def test_recipe_of_the_mesh_is_enough():
    plan = counts(window=PARTS, shape=(29, 17))
    again = mesh_from_recipe(plan.mesh.recipe, PARTS)
    assert (again.vertices == plan.mesh.vertices).all()
