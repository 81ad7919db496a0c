"""Counts with bounded error: what the bound costs, what is released, and what it is worth."""

import itertools
import json
import math

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from support.forgery import failed, reseal

from dpppsynth import BoundedErrorRelease, BoundedErrorSynthesizer, load_release
from dpppsynth.contract.additive_noise import cell_counts
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.published_files import plain_text
from dpppsynth.filters import particle_filter
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import regular_squares
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    PureDP,
    ReplaceOne,
    TruncatedLaplaceDP,
    bounded_counts,
    bounded_delta,
    compose,
    guarantee_from_dict,
    laplace_scale,
    profile_from_dict,
    smallest_bounded_epsilon,
    smallest_max_error,
    truncated_laplace_noise,
    verify,
)
from dpppsynth.privacy.composition import parallel
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RING = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)), "EPSG:27700")
RELATIONS = [ReplaceOne(), ReplaceOne(3), AlphaNeighbours(50.0, max_points_per_person=2), AddRemove(), AddRemove(4)]


def pattern(n, seed=1, marks=None):
    return PointPattern(np.random.default_rng(seed).uniform(0, 1000, (n, 2)), WINDOW, marks)


def masses(scale, bound):
    """{k: P(k)} by direct summation."""
    weight = {k: math.exp(-abs(k) / scale) for k in range(-bound, bound + 1)}
    total = math.fsum(weight.values())
    return {k: w / total for k, w in weight.items()}


def divergence(scale, bound, shifts, epsilon):
    """Hockey-stick divergence of shifted vectors by enumeration."""
    law = masses(scale, bound)
    total = []
    for ks in itertools.product(law, repeat=len(shifts)):
        p = math.prod(law[k] for k in ks)
        q = math.prod(law.get(k - t, 0.0) for k, t in zip(ks, shifts, strict=True))
        total.append(max(0.0, p - math.exp(epsilon) * q))
    return math.fsum(total)


class TestProfile:
    @pytest.mark.parametrize(
        ("scale", "bound", "shifts"),
        [(1.0, 5, (1,)), (2.0, 6, (1, 1)), (1.5, 7, (3, 3)), (40.0, 3, (2, 2)), (0.7, 2, (4,)), (3.0, 4, (3, 1))],
    )
    def test_is_the_divergence_by_enumeration(self, scale, bound, shifts):
        profile = TruncatedLaplaceDP(scale, bound, shifts, at=0.5)
        for share in (0.0, 0.1, 0.37, 0.5, 0.83, 1.0, 1.4):
            epsilon = share * sum(shifts) / scale
            assert profile.delta(epsilon) == pytest.approx(divergence(scale, bound, shifts, epsilon), rel=1e-9)

    def test_of_other_ways_to_move_points_lies_below(self):
        """Three points of a person: shifts of counts up and down by three in all."""
        worst = TruncatedLaplaceDP(2.0, 4, (3, 3), at=0.5)
        spread = [(2, 1, 3), (1, 1, 1, 3), (2, 1, 2, 1), (2, 2), (1, 1)]
        for shifts, share in itertools.product(spread, (0.0, 0.3, 0.7, 1.0)):
            epsilon = share * worst.total
            other = TruncatedLaplaceDP(2.0, 4, shifts, at=0.5)
            assert other.delta(epsilon) <= worst.delta(epsilon) * (1 + 1e-9)

    def test_never_falls_below_its_floor(self):
        profile = TruncatedLaplaceDP(2.0, 25, (1, 1), at=1e-5)
        floor = 1 - (1 - masses(2.0, 25)[25]) ** 2
        assert profile.delta(1.0) == pytest.approx(floor, rel=1e-9) == profile.delta(700.0)
        assert profile.epsilon(floor * (1 - 1e-6)) == math.inf
        assert profile.epsilon(floor * (1 + 1e-6)) <= 1.0
        assert profile.epsilon(0.0) == math.inf

    @given(
        scale=st.floats(0.05, 1e4),
        bound=st.integers(1, 10**6),
        k=st.integers(1, 20),
        two=st.booleans(),
        share=st.floats(0, 1.2),
    )
    @settings(max_examples=60)
    def test_falls_and_inverts(self, scale, bound, k, two, share):
        profile = TruncatedLaplaceDP(scale, bound, (k, k) if two else (k,), at=0.5)
        epsilon = share * profile.total
        delta = profile.delta(epsilon)
        assert 0 < delta <= 1 or bound / scale > 600
        assert profile.delta(epsilon * 1.1) <= delta
        if 0 < delta < 1:
            assert profile.epsilon(delta) <= epsilon * (1 + 1e-9) + 1e-12

    def test_survives_json_and_composition(self):
        profile = TruncatedLaplaceDP(2.0, 40, (1, 1), at=1e-6)
        data = json.loads(json.dumps(profile.to_dict()))
        assert profile_from_dict(data) == profile
        both = compose([profile, profile, PureDP(0.5)], 1e-4)
        # Basic composition is the top, and losses without end add up.
        assert both.epsilon(1e-4) <= 2.5
        assert both.delta(2.6) == pytest.approx(1 - (1 - profile.delta(1.0)) ** 2, rel=1e-3)
        assert both.delta(2.6) >= 1 - (1 - profile.delta(1.0)) ** 2
        assert both.epsilon(profile.delta(2.0)) == math.inf

    @pytest.mark.parametrize(
        "wrong",
        [
            {"scale": 0.0},
            {"scale": math.nan},
            {"bound": 0},
            {"bound": 2.5},
            {"shifts": ()},
            {"shifts": (0,)},
            {"shifts": "11"},
            {"at": 0.0},
        ],
        ids=str,
    )
    def test_refuses(self, wrong):
        with pytest.raises(InputError):
            TruncatedLaplaceDP(**{"scale": 1.0, "bound": 5, "shifts": (1, 1), "at": 1e-5} | wrong)


class TestCalibration:
    @pytest.mark.parametrize("relation", RELATIONS, ids=str)
    def test_each_of_three_follows_from_the_others(self, relation):
        most = smallest_max_error(relation, epsilon=0.8, delta=1e-6)
        scale = laplace_scale((1 + relation.n_is_public) * relation.max_points_per_person, 0.8)
        assert bounded_delta(relation, scale=scale, max_error=most) <= 1e-6
        assert bounded_delta(relation, scale=scale, max_error=most - 1) > 1e-6
        epsilon = smallest_bounded_epsilon(relation, delta=1e-6, max_error=most)
        assert 0.7 < epsilon <= 0.8
        bounded_counts(relation, scale=laplace_scale(round(scale * 0.8), epsilon), max_error=most, delta=1e-6)
        less = laplace_scale(round(scale * 0.8), epsilon * (1 - 1e-6))
        with pytest.raises(PrivacyCheckError, match=r"^delta: errors of at most"):
            bounded_counts(relation, scale=less, max_error=most, delta=1e-6)

    def test_known_values(self):
        """Closed form of one count at sensitivity 1: (e - 1) / ((e + 1) e^A - 2)."""
        for epsilon, most, delta in ((1.0, 5, 0.00312505), (1.0, 10, 2.09806e-5), (0.1, 10, 0.0282532)):
            assert bounded_delta(AddRemove(), scale=1 / epsilon, max_error=most) == pytest.approx(delta, rel=3e-6)

    def test_the_bound_costs_twice_where_two_counts_change(self):
        one = masses(2.0, 30)[30]
        assert bounded_delta(ReplaceOne(), scale=2.0, max_error=30) == pytest.approx(1 - (1 - one) ** 2, rel=1e-9)


class TestNoise:
    def test_is_drawn_again_and_not_cut(self):
        """Chi-square of 2e5 seeded draws against the law; cut noise would pile up at the bound. False alarm 1e-9."""
        noise = truncated_laplace_noise(3.0, 6, sensitivity=1, epsilon=0.34, rng=3)
        drawn = noise.add(np.zeros(200_000, dtype=np.int64))
        expected = np.array(list(masses(3.0, 6).values())) * len(drawn)
        seen = np.bincount(drawn + 6, minlength=13)
        assert len(seen) == 13
        assert ((seen - expected) ** 2 / expected).sum() < 66.0

    def test_of_the_operating_system_keeps_to_the_bound(self):
        noise = truncated_laplace_noise(3.0, 2, sensitivity=1, epsilon=0.34)
        drawn = noise.add(np.full(2000, 10**15, dtype=np.int64)) - 10**15
        assert set(drawn) == {-2, -1, 0, 1, 2}
        assert not noise.seeded

    def test_as_wide_as_uniform_is_refused(self):
        with pytest.raises(InputError, match=r"^epsilon: noise of scale 1000 within 5 is as good as uniform"):
            truncated_laplace_noise(1000.0, 5, sensitivity=1, epsilon=0.001)


class TestSynthesizer:
    @pytest.mark.parametrize(
        "given",
        [
            {"epsilon": 1.0, "delta": 1e-6},
            {"epsilon": 1.0, "max_error": 30},
            {"delta": 1e-6, "max_error": 20},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("post", ["clip", "keep-n"])
    def test_no_count_is_off_by_more(self, given, post, tmp_path):
        points, mesh = pattern(800), regular_squares(WINDOW, shape=(9, 9))
        release = BoundedErrorSynthesizer(**given, mesh=mesh, postprocess=post).release(points)
        truth = cell_counts(release.statistic.definition.mesh, points.positions)
        assert isinstance(release, BoundedErrorRelease)
        assert 0 < np.abs(release.raw - truth).max() <= release.max_error
        assert np.abs(release.counts - truth).max() <= release.max_error
        assert release.counts.min() >= 0
        made = release.intensity.values * mesh.element_measure
        assert np.abs(made - truth).max() <= release.max_error * (1 if post == "clip" else 2) + 1e-9
        if post == "clip":
            assert made == pytest.approx(release.counts)
        else:
            assert made.sum() == pytest.approx(800)
        again = load_release(release.save(tmp_path / "public"))
        assert isinstance(again, BoundedErrorRelease)
        assert (again.raw == release.raw).all()
        assert again.max_error == release.max_error

    def test_noise_as_good_as_uniform_is_refused_before_the_data(self):
        with pytest.raises(InputError, match=r"^epsilon: noise of scale 2e\+09 within \d+ is as good as uniform"):
            BoundedErrorSynthesizer(epsilon=1e-9, delta=1e-6, spacing=250.0).check(WINDOW, n=100)

    def test_states_the_bound_it_solves_for(self):
        counts = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6)
        assert counts.budget.max_error == smallest_max_error(ReplaceOne(), epsilon=1.0, delta=1e-6)
        bound = counts.check(WINDOW, n=500)
        assert bound.profile.bound == counts.budget.max_error
        assert bound.epsilon() <= 1.0
        assert guarantee_from_dict(json.loads(json.dumps(bound.to_dict()))) == bound
        assert "only one of the two patterns can give" in str(bound)

    def test_series_of_months_have_one_bound(self, tmp_path):
        month = np.arange(900) % 6
        points = pattern(900, marks={"month": month})
        counts = BoundedErrorSynthesizer(epsilon=1.0, max_error=35, spacing=250.0, alpha=100.0)
        series = counts.release_by(points, by="month", levels=list(range(6)))
        mesh = series.releases["0"].statistic.definition.mesh
        truth = np.array([cell_counts(mesh, points.positions[month == m]) for m in range(6)])
        assert series.raw.shape == series.filtered.shape == (6, 16)
        assert np.abs(series.raw - truth).max() <= series.max_error == 35
        assert np.abs(series.counts - truth).max() <= 35
        assert np.abs(series.filtered - truth).max() <= series.filter(rng=0).bound == 70
        assert (series.filtered == series.filter(rng=0).estimate).all()
        again = load_release(series.save(tmp_path / "public"))
        assert (again.filtered == series.filtered).all()
        assert series.guarantee.profile == counts.check(WINDOW, n=100).profile
        assert verify(tmp_path / "public").holds

    def test_filtered_is_the_filter_of_what_was_drawn(self):
        """Not of counts that were cut at zero, and with the law of their own noise."""
        points = pattern(60, marks={"month": np.arange(60) % 3})
        series = BoundedErrorSynthesizer(epsilon=0.5, delta=1e-6, spacing=250.0).release_by(
            points, by="month", levels=[0, 1, 2]
        )
        assert (series.raw < 0).any()
        assert (series.counts == np.maximum(series.raw, 0)).all()
        scale = series.releases["0"].statistic.definition.scale
        assert scale == pytest.approx(4.0, rel=1e-12)
        law = {"scale": scale, "bound": series.max_error}
        found = particle_filter(series.raw, **law, rng=3)
        assert (series.filter(rng=3).estimate == found.estimate).all()
        settings = {"step": 2.0, "particles": 50, "proposal": "uniform", "resample": False, "rng": 4}
        again = particle_filter(series.raw, **law, **settings)
        assert (series.filter(**settings).estimate == again.estimate).all()
        table = series.to_geodataframe()
        assert table["count"].tolist() == series.counts.ravel().tolist()
        assert table["month"].tolist() == [0] * 16 + [1] * 16 + [2] * 16

    def test_series_have_the_same_cells_in_all_levels(self):
        """The rule for the spacing asks for n, and levels have different ones."""
        month = np.where(np.arange(600) < 20, "a", "b")
        counts = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6)
        series = counts.release_by(pattern(600, marks={"month": month}), by="month", levels=["a", "b"])
        assert series.raw.shape == series.filtered.shape
        assert len(series.raw) == 2

    def test_a_level_with_counts_that_no_run_gives_does_not_verify(self, tmp_path):
        points = pattern(80, marks={"month": np.arange(80) % 2})
        counts = BoundedErrorSynthesizer(epsilon=1.0, max_error=28, spacing=500.0)
        folder = counts.release_by(points, by="month", levels=[0, 1]).save(tmp_path / "public")
        name = "month=1_statistic.json"
        statistic = json.loads((folder / name).read_text())
        statistic["lattice"][0] = -29
        (folder / name).write_text(plain_text(statistic))
        reseal(folder, certificate.read(folder), name)
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]

    def test_a_bound_that_costs_too_much_is_refused_before_the_points_are_read(self):
        with pytest.raises(InputError, match=r"^max_error: an error of at most 10 costs delta = 0.00331"):
            BoundedErrorSynthesizer(epsilon=1.0, max_error=10).ceiling(WINDOW)

    def test_levels_of_persons_with_several_points_add_up(self):
        bounds = [BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, relation=ReplaceOne(3)).check(WINDOW, n=99)] * 2
        assert parallel(bounds, "year").profile == bounds[0].profile

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"epsilon": 1.0, "delta": 0.0}, r"^delta: .*cannot be 0: an error that never exceeds a bound excludes"),
            ({"max_error": 20, "delta": 0}, r"^delta: .*cannot be 0"),
            ({}, r"^epsilon, delta, max_error: give two of them, .* got none of them"),
            ({"epsilon": 1.0}, r"^epsilon, delta, max_error: give two of them, .* got epsilon"),
            ({"epsilon": 1.0, "delta": 1e-6, "max_error": 30}, r"^epsilon, delta, max_error: give two of them"),
            ({"epsilon": -1.0, "delta": 1e-6}, r"^epsilon: must be a positive finite number"),
            ({"epsilon": True, "delta": 1e-6}, r"^epsilon: must be a positive finite number"),
            ({"epsilon": 1.0, "max_error": 0}, r"^max_error: needs a whole number of at least 1"),
            ({"epsilon": 1.0, "max_error": 2.5}, r"^max_error: needs a whole number"),
            ({"epsilon": 1.0, "max_error": 2, "relation": ReplaceOne(3)}, r"^max_error: .*at least 3.*tells its"),
            ({"delta": 0.3, "max_error": 3}, r"^max_error: noise that is as good as uniform within 3"),
            ({"epsilon": 1.0, "delta": 1e-6, "postprocess": "round"}, r"^postprocess: expected"),
            ({"epsilon": 1.0, "delta": 1e-6, "postprocess": "keep-n", "relation": AddRemove()}, r"^postprocess: 'keep"),
            ({"epsilon": 1.0, "delta": 1e-6, "spacing": 0}, r"^spacing: must"),
        ],
        ids=str,
    )
    def test_refuses(self, given, message):
        with pytest.raises(InputError, match=message):
            BoundedErrorSynthesizer(**given)

    def test_a_bound_that_costs_too_much_is_refused_with_one_that_does_not(self):
        with pytest.raises(InputError, match=r"^max_error: an error of at most 5 costs .* such as 27 for delta = 1e-6"):
            BoundedErrorSynthesizer(epsilon=1.0, max_error=5).check(WINDOW, n=100)
        with pytest.raises(InputError, match=r"^max_error: .* must be below 1e-05"):
            BoundedErrorSynthesizer(epsilon=1.0, max_error=10, relation=AddRemove()).check(WINDOW, expected_n=100)
        with pytest.raises(InputError, match=r"^delta: must be below 1/n"):
            BoundedErrorSynthesizer(epsilon=1.0, delta=0.01).check(WINDOW, n=100)

    @pytest.mark.parametrize("change", [{"max_error": 29}, {"delta": 1e-7}, {"scale": 1.9}, {"epsilon": 0.9}], ids=str)
    def test_certificates_that_promise_more_do_not_verify(self, change, tmp_path):
        """Edited and signed again, as a forger would: the bound does not follow."""
        release = BoundedErrorSynthesizer(epsilon=1.0, max_error=28, spacing=250.0).release(pattern(300))
        folder = release.save(tmp_path / "public")
        cert = certificate.read(folder)
        cert["parameters"] |= change
        reseal(folder, cert)
        assert "bound" in failed(folder)

    def test_counts_that_no_run_gives_do_not_verify(self, tmp_path):
        release = BoundedErrorSynthesizer(epsilon=1.0, max_error=28, spacing=250.0).release(pattern(300))
        folder = release.save(tmp_path / "public")
        statistic = json.loads((folder / "statistic.json").read_text())
        statistic["lattice"][0] = -29
        (folder / "statistic.json").write_text(plain_text(statistic))
        reseal(folder, certificate.read(folder), "statistic.json")
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]

    def test_a_table_with_other_counts_does_not_verify(self, tmp_path):
        counts = BoundedErrorSynthesizer(epsilon=1.0, max_error=28, spacing=250.0)
        folder = counts.release(pattern(300)).save(tmp_path / "public")
        table = json.loads((folder / "counts.geojson").read_text())
        table["features"][3]["properties"]["count"] += 1
        (folder / "counts.geojson").write_text(plain_text(table))
        reseal(folder, certificate.read(folder), "counts.geojson")
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]


@pytest.mark.parametrize("streets", [False, True], ids=["window", "network"])
def test_a_table_of_the_cells_is_saved(streets, tmp_path):
    """Every cell once, with its count, and together they are the domain."""
    domain = LinearNetwork([[0, 0], [400, 0], [400, 300]], [[0, 1], [1, 2]], "EPSG:27700") if streets else RING
    xy = np.random.default_rng(2).uniform(0, 1000, (300, 2))
    edge = np.arange(60) % 2
    points = domain.pattern(edge, xy[:60, 0] / 1000) if streets else PointPattern(xy[RING.contains(xy)], RING)
    release = BoundedErrorSynthesizer(epsilon=2.0, delta=1e-6, spacing=130.0).release(points)
    folder = release.save(tmp_path / "public")
    table = geopandas.read_file(folder / "counts.geojson")
    assert table["count"].tolist() == release.counts.tolist()
    assert table.crs == "EPSG:27700"
    size = table.length if streets else table.area
    assert size.to_numpy() == pytest.approx(release.statistic.definition.mesh.element_measure)
    frame = release.to_geodataframe()
    assert frame["raw"].tolist() == release.raw.tolist()
    assert frame.geometry.geom_equals_exact(table.geometry, 1e-6).all()
    # Cells hold the points that were counted in them.
    places = shapely.points(points.xy)
    held = shapely.intersects(frame.geometry.buffer(1e-6).to_numpy()[:, None], places).sum(axis=1)
    assert (held >= cell_counts(release.statistic.definition.mesh, points.positions)).all()
    (folder / "counts.geojson").write_text("{}")
    assert not verify(folder).holds


def test_a_polygon_has_slivers_that_keep_to_the_bound():
    """Cells of which a corner alone lies in the window are counted as well."""
    triangle = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (0, 1000)]))
    xy = np.random.default_rng(1).uniform(0, 1000, (1200, 2))
    points = PointPattern(xy[triangle.contains(xy)], triangle)
    release = BoundedErrorSynthesizer(epsilon=2.0, delta=1e-6, spacing=90.0).release(points)
    truth = cell_counts(release.statistic.definition.mesh, points.positions)
    assert np.abs(release.counts - truth).max() <= release.max_error
