"""Counts of points that were moved off their streets: promise, law, refusals, audit and files.

What each test is there to catch stands in its name or first line.
"""

import json
import math
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from support.command_line import run, spoken
from support.forgery import put, read, reseal
from support.seams import recorded

from dpppsynth import AddRemove, AlphaNeighbours, InputError, LGCPSynthesizer, ReplaceOne, load_release
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import target_of
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.moved_counts import node_chances
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.contract.rules import network_rules
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import trace_mesh
from dpppsynth.models.recipes import around
from dpppsynth.privacy import verify
from dpppsynth.privacy.planar_moves import moved_points, moved_reach, rate
from dpppsynth.privacy.truncated.lattice_noise import move
from dpppsynth.spatial.patterns import PointPattern

# A bent street with a curved way beside it, and a dead end that comes back close to where it began.
BENT = [[0.0, 0.0], [500.0, 40.0], [530.0, 420.0], [20.0, 400.0], [40.0, 60.0]]
NETWORK = LinearNetwork(BENT, [[0, 1], [1, 2], [2, 3], [3, 4], [1, 3]])
NEAR = AlphaNeighbours(25.0)
ALARM = 1e-6


def counts(epsilon=1.0, relation=NEAR, network=NETWORK, shape=(11, 11), n=200):
    return MovedCounts(trace_mesh(network, shape=shape), relation, n, epsilon)


def scattered(n=200, network=NETWORK, seed=1):
    rng = np.random.default_rng(seed)
    edge = rng.choice(len(network.edges), n, p=network.lengths / network.length)
    return network.pattern(edge, rng.random(n))


def nearby_pairs(network, reach, n=400, seed=2):
    """Positions (n, 2) and (n, 2) that are at most so far apart along one edge, many of them exactly."""
    rng = np.random.default_rng(seed)
    edge = rng.integers(0, len(network.edges), n)
    start = rng.uniform(0, 1, n) * np.maximum(network.lengths[edge] - reach, 0)
    end = np.minimum(start + reach, network.lengths[edge])
    return np.column_stack([edge, start]), np.column_stack([edge, end])


def straight(network, first, second):
    return np.hypot(*(network.coordinates(first) - network.coordinates(second)).T)


class TestPromise:
    def test_no_path_along_streets_costs_more_than_its_length(self):
        """A straight line is no longer than a path: loss of a point is at most epsilon d / (k alpha), d the path."""
        relation = AlphaNeighbours(25.0, max_points_per_person=3)
        plan = counts(0.7, relation)
        places = scattered(300).positions
        path = NETWORK.distance(PointPattern.at(places, NETWORK))
        line = np.hypot(*np.moveaxis(NETWORK.coordinates(places)[:, None] - NETWORK.coordinates(places), 2, 0))
        assert (plan.rate * line <= 0.7 * path / (3 * 25.0) + 1e-12).all()
        # Attained along a straight street, so that nothing is given away either.
        assert 3 * plan.rate * straight(NETWORK, *nearby_pairs(NETWORK, 25.0)).max() == pytest.approx(0.7, rel=1e-9)
        assert plan.guarantee.epsilon() == pytest.approx(0.7)
        assert plan.guarantee.epsilon() <= 0.7

    def test_costs_in_proportion_to_the_path(self):
        distance, epsilon = np.array(counts(0.5, AlphaNeighbours(20.0)).guarantee.by_distance).T
        assert epsilon == pytest.approx(0.5 * distance / 20.0)
        assert distance[-1] == pytest.approx(NETWORK.diameter)

    def test_rounding_of_coordinates_along_edges_is_paid_for(self):
        """Far from the origin computed coordinates may lie farther apart than the path between the points."""
        far = LinearNetwork(np.add(BENT, (5e6, 6e6)), NETWORK.edges)
        relation = AlphaNeighbours(1e-6)
        line = straight(far, *nearby_pairs(far, 1e-6, 2000))
        assert line.max() > 1e-6 * (1 + 1e-5)
        assert line.max() <= moved_reach(relation, far)
        assert moved_reach(NEAR, NETWORK) == pytest.approx(25.0, rel=1e-9)
        known = rate(relation, 1.0, far)
        assert known * moved_reach(relation, far) <= 1
        # Also where somebody else states a rate.
        promised = moved_points(relation, rate=known, bound=math.inf, farthest=1.0, domain=far)
        assert known * line.max() <= promised.epsilon() <= 1
        # And distance by distance.
        distance, epsilon = next(each for each in promised.by_distance if each[0] >= 1e-6)
        assert known * straight(far, *nearby_pairs(far, distance, 2000)).max() <= epsilon
        assert moved_points(relation, rate=1e6, bound=math.inf, farthest=1.0, domain=far).epsilon() > 1

    def test_alpha_is_a_length_on_the_ground(self):
        mapped = LinearNetwork(np.add(BENT, (650_000.0, 300_000.0)), NETWORK.edges, "EPSG:27700")
        assert mapped.scale_factor > 1
        assert counts(network=mapped).rate == rate(NEAR, 1.0, mapped)
        assert rate(NEAR, 1.0, mapped) == pytest.approx(1 / (25.0 * mapped.scale_factor), rel=1e-7)

    def test_certificates_name_the_streets(self):
        codes = str(counts().guarantee.assumptions)
        assert "planar-laplace-noise" in codes
        assert "network" in codes


class TestMeasure:
    def test_moves_coordinates_and_not_positions_along_edges(self):
        plan, pattern = counts(0.5), scattered()
        with recorded() as seen:
            plan.measure(pattern)
        [(_, draw, exact)] = seen
        assert draw.func is move
        assert draw.keywords["epsilon"] == plan.rate == pytest.approx(0.5 / 25.0)
        assert draw.keywords["bound"] == math.inf
        assert (exact == NETWORK.coordinates(pattern.positions)).all()

    def test_moves_what_follows_from_positions_alone(self):
        """Coordinates as given may be off their streets by rounding, and say more than positions do."""
        beside = PointPattern(scattered().xy + 1e-7, NETWORK)
        with recorded() as seen:
            counts().measure(beside)
        assert (seen[0][2] == NETWORK.coordinates(beside.positions)).all()
        assert (seen[0][2] != beside.xy).any()

    def test_follows_the_law(self):
        """Chi-square of counts of one place on a slanted street, against the law that the audit integrates."""
        n = 20_000
        plan, place = counts(2.0, shape=(21, 21), n=n), np.array([[1.0, 200.0]])
        pattern = PointPattern.at(np.tile(place, (n, 1)), NETWORK)
        chance = node_chances(plan, NETWORK.coordinates(place)[0])
        found, common = plan.measure(pattern).lattice, chance * n > 10
        expected = np.append(chance[common], 1 - chance[common].sum()) * n
        seen = np.append(found[common], n - found[common].sum())
        assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > ALARM

    def test_lattice_covers_the_box_of_flat_networks(self):
        """The box of a straight street has room to both sides; its nodes are those of the mesh."""
        road = LinearNetwork([[0.0, 0.0], [900.0, 0.0]], [[0, 1]])
        plan = counts(network=road, shape=(10, 4))
        assert plan.box == around(road)
        assert plan.spacing == pytest.approx((100.0, 100.0))
        assert np.abs(plan.nodes[plan.node_of(plan.mesh.vertices)] - plan.mesh.vertices).max() < 1e-9

    def test_persons_have_a_share_each(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=4)
        assert counts(1.0, relation).rate == pytest.approx(1 / 100.0)


class TestRules:
    def test_follow_from_public_numbers(self):
        plan = LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved").plan(NETWORK, n=300)
        assert plan.mechanism == "lgcp-moved"
        x0, _, x1, _ = plan.statistic.box
        # Two nodes in a scale of the noise, which is 25 here.
        assert plan.statistic.shape[0] == 1 + math.ceil((x1 - x0) / 12.5)
        assert max(plan.estimator.mesh.element_measure) <= network_rules.STREET_SEGMENT * NETWORK.extent
        again = MovedCounts.from_parameters(
            plan.statistic.parameters(), plan.statistic.relation, NETWORK, mechanism="lgcp-moved"
        )
        assert again.parameters() == plan.statistic.parameters()
        assert again.guarantee == plan.statistic.guarantee

    @pytest.mark.parametrize(("scale", "longer"), [(1e-6, 400), (1e9, 32)])
    def test_bound_the_lattice_and_the_segments(self, scale, longer):
        assert max(network_rules.moved_mesh(NETWORK, scale).recipe["shape"]) == longer
        cells = network_rules.moved_cells(NETWORK, scale)
        assert len(cells.elements) <= network_rules.MOST_SEGMENTS + len(NETWORK.edges)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "words", "remedy"),
        [
            ({"relation": ReplaceOne()}, r"^relation: mechanism 'moved' hides .* give alpha=25\.0 instead", NEAR),
            ({"relation": AddRemove()}, r"^relation: mechanism 'moved' hides .* 'tents' for this relation", NEAR),
            (
                {"mesh": network_mesh(NETWORK, 50.0)},
                r"^mesh: moved points are counted .* trace_mesh\(network, spacing=100\.0\)",
                trace_mesh(NETWORK, spacing=100.0),
            ),
            (
                {"length_scale": 1e9},
                r"^length_scale: must lie between .* in this network, .* leave length_scale= out",
                None,
            ),
            ({"clusters": 0.3}, r"^clusters: mechanism 'moved' measures no pairs; leave it out, or", None),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_have_remedies_that_work(self, settings, words, remedy):
        moved = partial(LGCPSynthesizer, 1.0, mechanism="moved")
        alpha = {} if "relation" in settings else {"alpha": 25.0}
        with pytest.raises(InputError, match=words):
            moved(**alpha, **settings).check(NETWORK, n=20)
        mended = moved(**alpha, **dict.fromkeys(settings, remedy))
        assert mended.check(NETWORK, n=20).epsilon() == pytest.approx(1.0)

    def test_of_lattices_with_too_many_nodes(self):
        fine = LGCPSynthesizer(0.1, alpha=25.0, mechanism="moved", mesh=trace_mesh(NETWORK, spacing=1.2))
        with pytest.raises(InputError, match=r"^mesh: .* take a larger spacing"):
            fine.check(NETWORK, n=20)
        assert replace(fine, mesh=trace_mesh(NETWORK, spacing=4.0)).check(NETWORK, n=20).epsilon() <= 1

    def test_of_networks_too_far_away(self):
        far = LinearNetwork([[2.0**50 * 1e-10, 0.0], [2.0**50 * 1e-10 + 0.004, 0.0]], [[0, 1]])
        with pytest.raises(InputError, match=r"^network: it lies too far from the origin for its size"):
            LGCPSynthesizer(1.0, alpha=1e-4, mechanism="moved").check(far, n=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release with secret randomness."""
    settings = LGCPSynthesizer(3.0, alpha=25.0, mechanism="moved", length_scale=200.0)
    return settings.release(scattered()).save(tmp_path_factory.mktemp("moved") / "public", rng=1)


class TestRelease:
    def test_verifies_opens_and_draws_along_the_streets(self, folder):
        assert verify(folder).holds
        again = load_release(folder)
        assert again.mechanism == "lgcp-moved"
        assert again.statistic.lattice.sum() == 200
        assert again.intensity.total == pytest.approx(200, rel=1e-5)
        assert NETWORK.contains(again.sample(1, rng=1)[0].xy).all()
        assert again.infer(rng=1, street_sigmas=(0.4,), ranges=(300.0,), even=False).inferred

    @pytest.mark.parametrize(("name", "factor"), [("rate", 0.5), ("rate", 1 + 1e-8), ("extension", 2), ("n", 2)])
    def test_other_parameters_do_not_verify(self, folder, tmp_path, name, factor):
        """Noise that is stated larger than it was, another lattice, other points."""
        changed = shutil.copytree(folder, tmp_path / "changed")
        value = read(changed)["parameters"][name]
        reseal(changed, put(read(changed), ("parameters", name), type(value)(value * factor)))
        try:
            held = verify(changed).holds
        except InputError:
            held = False
        assert not held


class TestAudit:
    def target(self, n=3):
        relation = AlphaNeighbours(300.0)
        return target_of(LGCPSynthesizer(1.0, relation=relation, mechanism="moved"), NETWORK, n=n)

    def test_stays_below_the_claim(self):
        result = audit(self.target(20), trials=300)
        assert not result.violated
        assert result.claimed == pytest.approx(1.0)

    def test_finds_a_quarter_of_the_noise(self):
        made = self.target()
        plan = made.run.plan

        def weak(pattern):
            at = NETWORK.coordinates(pattern.positions)
            moved = move(at, epsilon=4 * plan.rate, bound=math.inf, step=plan.noise.step)
            return PrivateStatistic(plan, plan.counted(moved), "broken", False)

        weak.plan = plan
        assert audit(replace(made, run=weak), trials=500).violated

    def test_tries_a_straight_move_by_alpha(self):
        """The straightest of all moves costs most; positions along edges are no coordinates."""
        first, second = self.target().pair
        away = NETWORK.coordinates(first.positions[-1:]) - NETWORK.coordinates(second.positions[-1:])
        assert np.hypot(*away[0]) == pytest.approx(300.0, rel=1e-6)


def test_the_whole_way_on_the_command_line(tmp_path):
    (tmp_path / "streets.geojson").write_text(json.dumps(NETWORK.to_geojson()))
    np.savetxt(tmp_path / "points.csv", scattered().xy, delimiter=",", header="x,y", comments="")
    place = ["--network", tmp_path / "streets.geojson"]
    how = ["--mechanism", "lgcp-moved", "--epsilon", 3, "--alpha", 25]
    said = json.loads(run("check", *how, *place, "--n", 200, "--json").stdout)
    assert said["mechanism"] == "lgcp-moved"
    assert "every point is moved by" in spoken(run("check", *how, *place, "--n", 200))
    out = tmp_path / "out"
    run("synthesize", tmp_path / "points.csv", *how, "--length-scale", 200, *place, "--snap", 1, "--out", out)
    assert "holds" in spoken(run("verify", out))
    run("report", out, "--out", tmp_path / "report.html")
    assert "were each moved at random" in (tmp_path / "report.html").read_text()
