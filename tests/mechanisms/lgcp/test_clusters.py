"""Releases with clusters: budget, files, patterns, and what is refused."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.cases import STREETS
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth import AddRemove, AlphaNeighbours, LGCPSynthesizer, PointPattern, ReplaceOne, Window
from dpppsynth.cli import app
from dpppsynth.contract import rehearsal
from dpppsynth.contract import rules as cluster_rules
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.io import write_pattern
from dpppsynth.mechanisms.lgcp import clusters as clustered_release
from dpppsynth.mechanisms.lgcp.cluster_statistic import MassesAndPairs, cluster_text, read_clusters
from dpppsynth.models import regular_triangulation
from dpppsynth.models.cluster_posterior import ClusterPosterior, ClusterPrior
from dpppsynth.models.cluster_process import LEAST, NO_CLUSTERS, clustered_pattern
from dpppsynth.models.pair_sums import PairStatistic
from dpppsynth.privacy import GaussianDP, Guarantee, PureDP, verify
from dpppsynth.privacy.bounds import tents_sensitivity
from dpppsynth.privacy.composition import together
from dpppsynth.privacy.noise import OpenDPLaplace
from dpppsynth.release import certificate

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
FAST = {"inference": "laplace", "length_scale": 300.0}
RADII = np.array([10.0, 25.0, 50.0])


def thomas(n=400, size=8, spread=10.0, seed=1):
    """Clusters in the square."""
    rng, found = np.random.default_rng(seed), []
    while sum(map(len, found)) < n:
        places = rng.uniform(0, 1000, 2) + spread * rng.standard_normal((rng.poisson(size), 2))
        found.append(places[((places >= 0) & (places <= 1000)).all(axis=1)])
    return PointPattern(np.concatenate(found)[:n], SQUARE)


def pairs_within(pattern, r=RADII):
    """Pairs nearer than each distance."""
    tree = cKDTree(pattern.xy)
    return (tree.count_neighbors(tree, r) - len(pattern)) / 2


@pytest.fixture(scope="module")
def release():
    return LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).release(thomas(), 3)


class TestPlan:
    @pytest.mark.parametrize("relation", [AlphaNeighbours(50.0), ReplaceOne(2), AddRemove(), AddRemove(3)])
    @pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
    def test_masses_and_sums_have_their_shares_and_no_more(self, relation, share):
        """Each number's sensitivity over its scale, from the parts' own formulas, adds up to epsilon."""
        size = {"n": 300} if relation.n_is_public else {"expected_n": 300}
        plan = LGCPSynthesizer(0.7, relation=relation, clusters=share, **FAST).plan(SQUARE, **size).statistic
        masses = tents_sensitivity(plan.mesh, relation, bits=plan.bits) / plan.scale
        cap = relation.max_points_per_person
        sums = [
            2 * cap * theta * 2**plan.pairs.statistic.bits / b
            for theta, b in zip(plan.caps, plan.pairs.scales, strict=True)
        ]
        assert masses == pytest.approx(0.7 * (1 - share), rel=1e-9)
        assert sums == pytest.approx([0.7 * share / len(sums)] * len(sums), rel=1e-9)
        assert plan.guarantee.epsilon() == pytest.approx(masses + sum(sums), rel=1e-12)
        assert plan.guarantee.epsilon() <= 0.7 * (1 + 1e-9)
        groups = [(group.size, group.scale) for group in plan.noise_groups()]
        assert groups == [(len(plan.mesh.vertices), plan.scale), *((1, b) for b in plan.pairs.scales)]

    def test_the_mesh_is_that_of_the_smaller_budget(self):
        plain = LGCPSynthesizer(0.7, alpha=50.0, inference="laplace").plan(SQUARE, n=400).statistic
        clustered = LGCPSynthesizer(1.0, alpha=50.0, inference="laplace", clusters=0.3).plan(SQUARE, n=400).statistic
        assert clustered.mesh.recipe == plain.mesh.recipe
        assert clustered.scale == pytest.approx(plain.scale, rel=1e-12)

    def test_by_distance_the_sums_cost_the_same_at_any(self):
        plan = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).plan(SQUARE, n=400)
        plain = LGCPSynthesizer(0.7, alpha=50.0, **FAST).plan(SQUARE, n=400)
        curves = (np.array(each.guarantee.by_distance) for each in (plan, plain))
        np.testing.assert_allclose(np.subtract(*(curve[:, 1] for curve in curves)), 0.3, rtol=1e-9)

    def test_streets_have_counts_along_them(self):
        plan = LGCPSynthesizer(1.0, alpha=25.0, clusters=0.3, mechanism="cells").plan(STREETS, n=200)
        assert (plan.mechanism, plan.statistic.basis) == ("lgcp-clusters", "cells")
        assert plan.statistic.size == len(plan.statistic.mesh.elements) + 2

    def test_the_exact_vector_is_masses_and_then_sums(self):
        plan, pattern = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).plan(SQUARE, n=400).statistic, thomas()
        exact = plan.exact_numbers(pattern)
        assert plan.masses(exact).sum() == pytest.approx(400)
        sums = PairStatistic(SQUARE, plan.radii, plan.caps, plan.steps).sums(pattern.positions)
        np.testing.assert_array_equal(plan.sums(exact), sums)

    @pytest.mark.slow
    def test_noise_has_the_scales_of_the_plan(self):
        """Mean absolute noise of many runs, within six standard errors; no part repeats another's."""
        small = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, mesh=regular_triangulation(SQUARE, shape=(3, 3)), **FAST)
        plan, pattern, runs = small.plan(SQUARE, n=5).statistic, thomas(n=5), 500
        scale = np.repeat(*zip(*((group.scale, group.size) for group in plan.noise_groups()), strict=True))
        exact = plan.exact_numbers(pattern)
        noise = np.array([plan.measure(pattern, k).lattice - exact for k in range(runs)]) / scale
        assert (np.abs(np.abs(noise).mean(axis=0) - 1) < 6 / np.sqrt(runs)).all()
        # Products of two Laplace variables have heavy tails.
        assert np.abs(np.corrcoef(noise.T) - np.eye(plan.size)).max() < 9 / np.sqrt(runs)


class TestRule:
    def test_radii_follow_the_distance_between_points(self):
        assert cluster_rules.pair_levels(SQUARE, 400, 0.3) == ((20.0, 70.0), (5, 10))
        assert cluster_rules.pair_levels(SQUARE, 1600, 0.3) == ((10.0, 35.0, 100.0), (5, 10, 40))
        radii, _ = cluster_rules.pair_levels(SQUARE, 2, 0.3)
        assert radii == (125.0, 250.0)
        radii, _ = cluster_rules.pair_levels(STREETS, 100, 0.3)
        assert radii == pytest.approx((0.15 * STREETS.length / 100, 1.2 * STREETS.length / 100))

    @pytest.mark.parametrize("domain", [SQUARE, STREETS])
    @pytest.mark.parametrize("size", [5, 400, 6000, 100_000])
    def test_a_secret_number_of_points_is_not_refused(self, domain, size):
        plan = LGCPSynthesizer(1.0, relation=AddRemove(), clusters=0.3, **FAST).plan(domain, expected_n=size).statistic
        assert list(plan.radii) == sorted(set(plan.radii))

    def test_own_radii_and_caps_win(self):
        own = LGCPSynthesizer(
            1.0, alpha=50.0, clusters=0.3, cluster_radii=[15, 40, 90], cluster_caps=[5, 10, 20], **FAST
        )
        plan = own.plan(SQUARE, n=400).statistic
        assert (plan.radii, plan.caps) == ((15.0, 40.0, 90.0), (5, 10, 20))
        one = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, cluster_caps=7, **FAST).plan(SQUARE, n=400).statistic
        assert one.caps == (7, 7)


class TestPower:
    """Clusters that can be told, by public numbers alone."""

    @staticmethod
    def plan(epsilon=1.0, cap=1, n=400, domain=SQUARE, **settings):
        relation = AlphaNeighbours(50.0, max_points_per_person=cap)
        return LGCPSynthesizer(epsilon, relation=relation, clusters=0.3, **FAST, **settings).plan(domain, n=n).statistic

    def test_places_may_be_shared_where_a_person_may_have_several_points(self):
        assert [self.plan(cap=cap).places for cap in (1, 2)] == ["apart", "shared"]
        assert self.plan(cap=2, cluster_places="apart").places == "apart"

    @pytest.mark.parametrize("domain", [SQUARE, STREETS])
    def test_more_budget_tells_smaller_clusters(self, domain):
        found = [self.plan(epsilon, domain=domain).power() for epsilon in (0.1, 1.0, 3.0, 30.0)]
        pairs = [each.pairs for each in found]
        assert pairs == sorted(pairs, reverse=True)
        sizes = [each.size[0] for each in found]
        assert sizes == sorted(sizes, reverse=True)
        assert np.isinf(sizes[0])
        assert "no clusters show" in found[0].words("m")
        assert found[0].to_dict()["visible_cluster_size"] is None

    def test_what_is_stated_is_where_the_probability_of_none_passes_a_half(self):
        power = self.plan().power()
        low = power.even - 1.2815515655446004 * np.sqrt(power._variance[0])
        around = power.none(low + np.array([[0.95 * power.pairs], [power.pairs]]))
        assert around[1] < 0.5 < around[0]
        assert power.none(power.even[None])[0] > 0.8

    def test_no_clusters_are_not_called_none_at_all(self):
        even = np.random.default_rng(4).uniform(0, 1000, (400, 2))
        release = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).release(PointPattern(even, SQUARE), 4)
        (said,) = clustered_release.CLUSTERS.words.remarks(release)
        assert said.startswith("No clusters all over: ")
        assert release.statistic.definition.power(release.sums).unseen()[1:] in said


class TestWords:
    def test_hills_that_the_map_does_not_see_are_named_beside_clusters(self, release):
        """Tents of 143 m tell nothing of a hill of 30 m, which the sums over pairs show."""
        plan = release.statistic.definition
        x = np.unique(plan.mesh.vertices[:, 0])
        said, hills = clustered_release.CLUSTERS.words.remarks(release)
        assert said.startswith("Clusters (")
        assert f"nothing narrower than {x[1] - x[0]:.4g} m" in hills
        assert x[1] - x[0] > release.clusters.average.spread

    def test_no_hill_is_named_where_the_map_sees_narrower_ones(self, release):
        mesh = regular_triangulation(SQUARE, shape=(101, 101))
        fine = replace(release.statistic, definition=replace(release.statistic.definition, mesh=mesh))
        likely = release.inferred_clusters.prior.table[:, 1] > 10
        seen = ClusterPosterior(release.inferred_clusters.prior, likely / likely.sum())
        told = clustered_release.CLUSTERS.words.remarks(replace(release, statistic=fine, inferred_clusters=seen))
        assert len(told) == 1

    def test_no_report_says_that_clustered_points_are_placed_independently(self, release):
        words = clustered_release.CLUSTERS.words
        assert "clusters" in words.near
        assert "independently" not in words.near
        assert words.pair_remarks(release) == words.remarks(release)

    def test_of_each_level(self, release):
        levels = SimpleNamespace(parts={"a": release, "b": release}, by="kind")
        told = clustered_release.CLUSTERS.words.remarks(levels)
        assert [line.partition(": ")[0] for line in told] == ["kind a", "kind a", "kind b", "kind b"]
        assert clustered_release.CLUSTERS.words.figures(levels) == {}

    def test_how_points_were_counted(self, release):
        describe = clustered_release.CLUSTERS.words.describe
        along = LGCPSynthesizer(1.0, alpha=25.0, mechanism="cells", clusters=0.3, **FAST).plan(STREETS, n=400)
        on_map, on_streets = describe(release.statistic.definition), describe(along.statistic)
        assert ("corners" in on_map, "street" in on_map) == (True, False)
        assert ("corners" in on_streets, "street" in on_streets) == (False, True)


def test_a_rehearsal_has_clusters_to_find(monkeypatch):
    """Twice those that check says show are likely; even points are not."""
    every = rehearsal.surrogates
    monkeypatch.setattr(rehearsal, "surrogates", lambda *given: every(*given)[:1])
    even, clusters = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).rehearse(SQUARE, n=300, rng=1).runs
    assert (even.surrogate, clusters.surrogate.partition(" of ")[0]) == ("homogeneous", "clusters")
    assert even.clusters < 0.5
    assert clusters.clusters > 0.9


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"clusters": 0}, "clusters: must lie strictly between 0 and 1"),
            ({"clusters": 1.0}, "clusters: must lie strictly between 0 and 1"),
            ({"clusters": "much"}, "clusters: must lie"),
            ({"cluster_radii": [15.0]}, "cluster_radii: goes with clusters=0.3"),
            ({"cluster_caps": 5}, "cluster_caps: goes with clusters=0.3"),
            ({"clusters": 0.3, "cluster_radii": [-1.0]}, "cluster_radii: must be"),
            ({"clusters": 0.3, "cluster_radii": [40.0, 15.0]}, "cluster_radii: must increase"),
            ({"clusters": 0.3, "cluster_caps": 0}, "cluster_caps: needs"),
            ({"clusters": 0.3, "cluster_caps": "many"}, "cluster_caps: needs"),
            ({"clusters": 0.3, "cluster_places": "both"}, "cluster_places: "),
            ({"cluster_places": "shared"}, "cluster_places: goes with clusters=0.3"),
            ({"clusters": 2.0}, "0.3 is a usual share"),
            ({"clusters": 0.3, "mechanism": "field", "delta": 1e-6}, "clusters: mechanism 'field' measures no pairs"),
            ({"clusters": 0.3, "mechanism": "posterior-draw", "delta": 1e-6}, "clusters: mechanism"),
            ({"clusters": 0.3, "mechanism": "lipschitz"}, "clusters: mechanism"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(InputError, match=message):
            LGCPSynthesizer(1.0, alpha=50.0, **settings)

    @pytest.mark.parametrize(
        ("settings", "n", "message"),
        [
            ({"cluster_radii": [15.0, 5000.0]}, 400, "cluster_radii: each must lie between"),
            ({"cluster_radii": [10.0, 20.0, 30.0, 40.0, 50.0]}, 400, "cluster_radii: at most 4, got 5"),
            ({"cluster_caps": [5, 6, 7]}, 400, "cluster_caps: needs"),
            ({"cluster_caps": 2**21}, 400, "cluster_caps: "),
            ({}, 10**6, r"cluster_radii: so many points could make up to .* take larger radii, or leave clusters= out"),
            ({}, 10**7, "clusters: patterns of all points are simulated, 2,000,000 at most"),
        ],
    )
    def test_public_parameters(self, settings, n, message):
        with pytest.raises(InputError, match=message):
            LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, inference="laplace", **settings).plan(SQUARE, n=n)

    def test_a_plan_by_hand_spends_no_more_than_its_epsilon(self):
        plan = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).plan(SQUARE, n=400).statistic
        same = (plan.basis, plan.mesh, plan.relation, plan.n, None, plan.epsilon)
        assert MassesAndPairs(*same, 0.5, (20.0,), (5,), (8,)).guarantee.epsilon() <= 1 + 1e-9
        for wrong in (
            (0.0, (20.0,), (5,), (8,)),
            (0.5, (), (), ()),
            (0.5, (20.0,), (5, 6), (8,)),
            (-0.5, (20.0,), (5,), (8,)),
        ):
            with pytest.raises((InputError, PrivacyCheckError)):
                MassesAndPairs(*same, *wrong)


class TestTogether:
    def test_only_pure_guarantees_of_one_relation_add_up(self):
        pure = Guarantee(AlphaNeighbours(5.0), PureDP(0.5), "a", ("x", "y"), ((1.0, 0.1),))
        other = Guarantee(AlphaNeighbours(5.0), PureDP(0.25), "b", ("y", "z"))
        both = together(pure, other)
        assert (both.epsilon(), both.assumptions, both.by_distance) == (0.75, ("x", "y", "z"), ((1.0, 0.35),))
        for wrong in (
            Guarantee(AlphaNeighbours(6.0), PureDP(0.25), "b", ()),
            Guarantee(AlphaNeighbours(5.0), GaussianDP(0.3, 1e-6), "b", ()),
        ):
            with pytest.raises(InputError, match="guarantees: only pure ones"):
                together(pure, wrong)


class TestPatterns:
    @pytest.mark.slow
    def test_clusters_are_found_and_made(self, release):
        """Pairs of the original at three distances, where the intensity alone has a few hundredths of them."""
        assert release.clusters.none < 0.05
        original, rng = pairs_within(thomas()), np.random.default_rng(5)
        made = np.mean([pairs_within(p) for p in release.sample(30, rng, fixed_n=True)], axis=0)
        plain = LGCPSynthesizer(0.7, alpha=50.0, **FAST).release(thomas(), 3)
        alone = np.mean([pairs_within(p) for p in plain.sample(30, rng, fixed_n=True)], axis=0)
        assert (np.abs(np.log(made / original)) < np.log(1.6)).all()
        assert (alone[:2] < 0.3 * original[:2]).all()

    @pytest.mark.slow
    def test_clusters_that_the_intensity_shows_count_once(self):
        """Pairs within 100, where independent clusters over the hills of the same intensity are too many."""
        found = LGCPSynthesizer(3.0, alpha=50.0, clusters=0.3, inference="laplace").release(thomas(), 3)
        law, rng = found.clusters.central, np.random.default_rng(5)
        assert LEAST <= found.parents(found.intensity).variance(law) < 0.6
        original = pairs_within(thomas(), 100.0)
        made = np.mean([pairs_within(p, 100.0) for p in found.sample(30, rng, fixed_n=True)])
        anew = np.mean([pairs_within(clustered_pattern(found.intensity, law, 400, rng), 100.0) for _ in range(30)])
        assert 0.85 < made / original < 1.2
        assert (anew - made) / original > 0.1

    @pytest.mark.slow
    def test_an_even_original_stays_even(self):
        even = PointPattern(np.random.default_rng(6).uniform(0, 1000, (400, 2)), SQUARE)
        released = LGCPSynthesizer(3.0, alpha=50.0, clusters=0.3, **FAST).release(even, 7)
        assert not released.clusters.likely
        made = np.mean([pairs_within(p) for p in released.sample(20, 8, fixed_n=True)], axis=0)
        expected = 400**2 / 2 * np.pi * RADII**2 / 1e6
        assert (np.abs(made / expected - 1) < 0.2).all()

    @pytest.mark.slow
    def test_numbers_of_points(self, release):
        assert [len(p) for p in release.sample(3, 1, fixed_n=True)] == [400] * 3
        counts = [len(p) for p in release.sample(200, 2)]
        assert abs(np.mean(counts) - 400) < 6 * np.sqrt(400 / 200)
        assert 0.5 < np.var(counts) / 400 < 2

    @pytest.mark.slow
    def test_draws_are_of_the_whole_posterior(self, release):
        """Half of the draws of a posterior that says 'none' with probability one half have no clusters."""
        from dataclasses import replace

        table = release.clusters.prior.table
        even = np.zeros(len(table))
        even[0], even[int(np.argmax((table[:, 0] > 20) & (table[:, 1] < 8)))] = 0.51, 0.49
        unsure = replace(release, inferred_clusters=ClusterPosterior(release.clusters.prior, even))
        near = [pairs_within(p)[0] for p in unsure.sample(60, 3, source="draws", fixed_n=True)]
        assert 10 <= np.sum(np.array(near) < 500) <= 50
        assert max(pairs_within(p)[0] for p in unsure.sample(10, 3, fixed_n=True)) < 500

    @pytest.mark.slow
    def test_a_secret_number_of_points_stays_one(self):
        secret = LGCPSynthesizer(1.0, relation=AddRemove(), clusters=0.3, **FAST)
        released = secret.release(thomas(), 3, expected_n=500)
        assert released.statistic.definition.n is None
        assert released.clusters.none < 0.2
        with pytest.raises(InputError, match="fixed_n"):
            released.sample(1, 1, fixed_n=True)

    @pytest.mark.slow
    def test_a_guess_far_too_low_makes_no_clusters(self, monkeypatch, tmp_path):
        """Simulated patterns with fewer points than the release tells of would make uniform points look clustered."""
        uniform = PointPattern(np.random.default_rng(4).uniform(0, 1000, (2000, 2)), SQUARE)
        secret = LGCPSynthesizer(1.0, relation=AddRemove(), clusters=0.3, inference="laplace")
        assert secret.release(uniform, 3, expected_n=150).clusters.none > 0.5
        monkeypatch.setattr(clustered_release, "MANY", 1000)
        with pytest.warns(InformationWarning, match=r"^expected_n: the release tells of far more points"):
            found = secret.release(uniform, 3, expected_n=150)
        assert found.clusters.none == 1.0
        assert dps.load_release(found.save(tmp_path / "out", patterns=1, rng=1)).clusters.none == 1.0


class TestFiles:
    @pytest.mark.slow
    def test_a_saved_release_is_the_same(self, release, tmp_path):
        saved = release.save(tmp_path / "out", patterns=2, rng=1)
        checks = {check.name: check.holds for check in verify(saved).checks}
        assert checks == {"content": True, "files": True, "randomness": False, "statistic": True, "bound": True}
        again = dps.load_release(saved)
        np.testing.assert_allclose(again.clusters.probabilities, release.clusters.probabilities, atol=2e-6)
        np.testing.assert_array_equal(again.sums, release.sums)
        assert again.sample(1, 4, fixed_n=True)[0].xy.shape == (400, 2)
        laws = (each.parents(each.intensity).variance(release.clusters.central) for each in (release, again))
        assert next(laws) == pytest.approx(next(laws), rel=1e-3)

    @pytest.mark.parametrize(
        "change",
        [
            lambda laws: laws.append({"size": 1.0, "spread": 0.123, "coincident": 0.0, "millionths": 0}),
            lambda laws: laws[0].update(millionths=laws[0]["millionths"] + 1),
            lambda laws: laws[0].update(millionths=0.5),
            lambda laws: laws[0].update(millionths=-1),
            lambda laws: laws[0].update(note="Mr X, 12 High Street"),
            lambda laws: laws.append(dict(laws[-1])),
            lambda laws: laws.clear(),
            lambda laws: laws.append(7),
        ],
    )
    def test_a_file_of_clusters_has_no_room_for_anything_else(self, change):
        prior = ClusterPrior((10.0, 40.0), streets=False)
        weight = np.zeros(len(prior.table))
        weight[[0, 3, 90]] = 0.25, 0.25, 0.5
        text = cluster_text(ClusterPosterior(prior, weight))
        read_clusters(text.encode(), prior)
        document = json.loads(text)
        change(document["laws"])
        with pytest.raises(InputError):
            read_clusters((json.dumps(document, sort_keys=True) + "\n").encode(), prior)
        with pytest.raises(InputError):
            read_clusters(b" " + text.encode(), prior)

    def test_probabilities_are_kept_to_a_millionth(self):
        prior = ClusterPrior((10.0, 40.0), streets=False)
        weight = np.random.default_rng(1).dirichlet(np.full(len(prior.table), 0.02))
        again = read_clusters(cluster_text(ClusterPosterior(prior, weight)).encode(), prior)
        np.testing.assert_allclose(again.probabilities, weight, atol=1e-3)
        assert again.probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert cluster_text(again) == cluster_text(ClusterPosterior(prior, again.probabilities))

    def test_a_forged_share_is_refused(self, release, tmp_path):
        saved = release.save(tmp_path / "out", patterns=0)
        for change in ({"clusters": 0.01}, {"caps": [1, 1]}, {"pair_scales": [1.0, 1.0]}, {"scale": 1.0}):
            stated = json.loads((saved / "certificate.json").read_text())
            stated["parameters"] |= change
            stated["content_hash"] = certificate.content_hash(stated)
            (tmp_path / "forged").mkdir(exist_ok=True)
            for file in saved.iterdir():
                (tmp_path / "forged" / file.name).write_bytes(file.read_bytes())
            (tmp_path / "forged" / "certificate.json").write_text(certificate.plain_text(stated))
            assert not {check.name: check.holds for check in verify(tmp_path / "forged").checks}["bound"], change

    @pytest.mark.slow
    def test_levels_have_clusters_of_their_own(self, tmp_path):
        pattern = thomas()
        marked = PointPattern(pattern.xy, SQUARE, {"kind": np.where(np.arange(400) < 250, "a", "b")})
        released = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).release_by(
            marked, 1, by="kind", levels=["a", "b"]
        )
        again = dps.load_release(released.save(tmp_path / "levels", patterns=1, rng=2))
        for name in ("a", "b"):
            mine, theirs = (each.releases[name].clusters.none for each in (released, again))
            assert mine == pytest.approx(theirs, abs=2e-6)


class TestCommandLine:
    @pytest.mark.slow
    def test_clusters_are_an_option(self, tmp_path):
        write_pattern(thomas(), tmp_path / "points.csv")
        where = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
        options = ["--method", "lgcp", "--epsilon", "1", "--alpha", "50", "--inference", "laplace"]
        options += ["--clusters", "0.3"]
        checked = CliRunner().invoke(app, ["check", *where, *options, "--n", "400"])
        assert checked.exit_code == 0, checked.output
        assert "for 0.3 of" in " ".join(checked.output.split())
        out = tmp_path / "out"
        made = CliRunner().invoke(
            app, ["synthesize", str(tmp_path / "points.csv"), "--out", str(out), *where, *options]
        )
        assert made.exit_code == 0, made.output
        assert (out / "clusters.json").exists()
        assert "lusters" in made.output
        more = CliRunner().invoke(app, ["sample", str(out), "--out", str(tmp_path / "more"), "--patterns", "2"])
        assert more.exit_code == 0, more.output

    def test_noise_is_drawn_by_a_vetted_sampler(self):
        plan = LGCPSynthesizer(1.0, alpha=50.0, clusters=0.3, **FAST).plan(SQUARE, n=400)
        assert plan.statistic.noise_name() == OpenDPLaplace.name
        assert plan.statistic.measure(thomas()).seeded is False


def test_no_clusters_is_no_displacement():
    assert (NO_CLUSTERS.size, NO_CLUSTERS.coincident) == (0.0, 0.0)
