"""Counts along streets with a field behind them: plans, releases, files, and what fields of the plane miss."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from support.command_line import run

from dpppsynth import (
    AddRemove,
    AlphaNeighbours,
    InputError,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    Window,
    datasets,
    load_release,
)
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.rules import network_rules
from dpppsynth.inference import LGCPInference, StreetInference
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import trace_mesh
from dpppsynth.models.matern_search import climb_grid
from dpppsynth.privacy import ReplaceOne, verify
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.offset import Offset

DEATHS = datasets.soho_deaths(on="streets")
SOHO = DEATHS.domain
NEAR = AlphaNeighbours(25.0)


def grid(side, seed=0, street=1.0):
    """Streets of 100 m between side x side crossings, shares of the edges, each street with a factor of its own."""
    rng = np.random.default_rng(seed)
    place = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(side**2).reshape(side, side)
    along = [
        np.stack([number[:-1].ravel(), number[1:].ravel()], 1),
        np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1),
    ]
    network = LinearNetwork(100.0 * place + rng.uniform(-20, 20, place.shape), np.concatenate(along))
    own = np.concatenate([np.tile(np.arange(side), side - 1), side + np.repeat(np.arange(side), side - 1)])
    middle = network.vertices[network.edges].mean(axis=1)
    hill = np.exp(-((middle - 40.0 * side) ** 2).sum(axis=1) / (2 * (25.0 * side) ** 2))
    share = network.lengths * (0.05 + hill) * np.exp(street * rng.standard_normal(2 * side))[own]
    return network, share / share.sum()


def points(network, share, n, seed=0):
    rng = np.random.default_rng(seed)
    return network.pattern(rng.choice(len(share), n, p=share), rng.random(n))


def apart(intensity, network, share):
    """Total variation distance on edges."""
    fine = network_mesh(network, 5.0)
    middle = SegmentCells.of(fine).positions
    element = intensity.mesh.locate(middle)
    value = intensity.at(element, np.clip(intensity.mesh.weights(element, middle), 0, None), middle)
    mass = np.bincount(fine.edge, value * fine.element_measure)
    return 0.5 * np.abs(mass / mass.sum() - share).sum()


def plan(domain=SOHO, n=392, **settings):
    return LGCPSynthesizer(1.0, alpha=25.0, **settings).plan(domain, n=n)


def test_small_networks_have_a_field_along_streets_behind_tents():
    for n in (100, 100_000):
        made = plan(n=n, mechanism="tents")
        assert (made.mechanism, type(made.estimator)) == ("lgcp-tents", StreetInference)
        assert made.estimator.even
    for settings in ({"prior": "dense", "mechanism": "tents"}, {"length_scale": 200.0}):
        assert type(plan(n=100, **settings).estimator) is LGCPInference, settings
    assert type(plan(n=100, mechanism="tents", inference="nuts").estimator) is StreetInference
    assert not plan(n=100, prior="sparse", length_scale=200.0).estimator.even


def test_hubs_of_very_many_edges_keep_the_dense_field():
    """All pairs of edges at a crossing are tied, so a field along streets has a limit that the dense one has not."""
    for spokes, kind in ((64, StreetInference), (80, LGCPInference)):
        angle = 2 * np.pi * np.arange(spokes) / spokes
        ends = 500 * np.column_stack([np.cos(angle), np.sin(angle)])
        star = LinearNetwork(np.vstack([[0, 0], ends]), [[0, k + 1] for k in range(spokes)])
        assert type(plan(star, n=100, mechanism="tents").estimator) is kind
        if spokes > 64:
            # Nor are points moved, or counted along the edges.
            assert type(plan(star, n=100).estimator) is type(plan(star, n=10**6).estimator) is kind


@pytest.mark.slow
def test_an_even_original_along_streets_is_released_as_even():
    """An even field among the priors outweighs those that make hills of noise; told not to take it they do."""
    share = SOHO.lengths / SOHO.length
    release = LGCPSynthesizer(1.0, alpha=25.0).release(points(SOHO, share, 400), 4)
    assert apart(release.intensity, SOHO, share) < 0.01
    hills = release.infer(5, even=False)
    assert apart(hills.intensity, SOHO, share) > 0.03


@pytest.fixture
def _small(monkeypatch):
    """As if a dense field took 300 vertices at most, for networks on which tests are fast."""
    monkeypatch.setattr(network_rules, "MOST_FITTED", 300)


@pytest.mark.usefixtures("_small")
class TestChoice:
    """Public numbers alone decide."""

    LARGE = grid(20)[0]

    @pytest.mark.slow
    def test_large_networks_with_points_enough_get_counts(self):
        """Segments of two mean edges at most, each with 0.3 sqrt(2) 2 / epsilon points, or 0.1."""
        count = len(network_mesh(self.LARGE, 2 * self.LARGE.length / 760).elements)
        least = 0.3 * np.sqrt(2) * 2 * count
        for n, mechanism, estimator in (
            (least - 1, "lgcp-tents", LGCPInference),
            (least + 1, "lgcp-cells", StreetInference),
        ):
            made = LGCPSynthesizer(1.0, relation=ReplaceOne()).plan(self.LARGE, n=int(n))
            assert (made.mechanism, type(made.estimator)) == (mechanism, estimator)
        plenty = LGCPSynthesizer(100.0, relation=ReplaceOne())
        for n, mechanism in ((0.1 * count - 1, "lgcp-tents"), (0.1 * count + 1, "lgcp-cells")):
            assert plenty.plan(self.LARGE, n=int(n)).mechanism == mechanism
        halved = LGCPSynthesizer(1.0, relation=AddRemove())
        for n, mechanism in ((least / 2 - 1, "lgcp-tents"), (least / 2 + 1, "lgcp-cells")):
            assert halved.plan(self.LARGE, expected_n=n).mechanism == mechanism

    @pytest.mark.parametrize(
        "settings",
        [{"length_scale": 200.0}, {"mechanism": "tents"}],
    )
    def test_settings_that_ask_for_a_dense_field_get_it(self, settings):
        made = plan(self.LARGE, 5000, **settings)
        assert (made.mechanism, type(made.estimator)) == ("lgcp-tents", LGCPInference)

    def test_a_sparse_prior_is_along_streets(self):
        assert plan(prior="sparse").mechanism == "lgcp-cells"
        behind = plan(prior="sparse", mechanism="tents")
        assert (behind.mechanism, type(behind.estimator)) == ("lgcp-tents", StreetInference)
        given = plan(mechanism="cells", mesh=network_mesh(SOHO, 60.0))
        assert given.statistic.mesh.recipe == given.estimator.mesh.recipe == {"builder": "network", "resolution": 60.0}
        assert plan(mechanism="cells", length_scale=300.0).estimator.ranges == (300.0,)

    def test_segments_hold_points(self):
        """The noise of a count has a standard deviation of 2 sqrt2 points at epsilon 1."""

        def longest(n, epsilon=1.0):
            return network_rules.street_cells(SOHO, n, epsilon, NEAR).recipe["resolution"]

        point, extent, noise = SOHO.length, SOHO.extent, 2 * np.sqrt(2)
        # Noise that no segment stands out from, edges that are not cut for the noise, and edges that are.
        assert longest(100, 0.1) == pytest.approx(0.3 * noise / 0.1 * point / 100)
        assert longest(1000) == pytest.approx(0.1 * extent)
        assert longest(20_000) == pytest.approx(32 * noise * point / 20_000)
        assert longest(10**6) == pytest.approx(0.02 * extent)

    def test_levels_share_a_mechanism(self):
        sizes = {"a": 100, "b": 20_000}
        one = LGCPSynthesizer(1.0, relation=ReplaceOne()).plan_by(self.LARGE, by="kind", levels=["a", "b"], n=sizes)
        assert {each.mechanism for each in one.plans.values()} == {"lgcp-tents"}
        # One would be moved, the other counted.
        one = LGCPSynthesizer(1.0, alpha=25.0).plan_by(self.LARGE, by="kind", levels=["a", "b"], n=sizes)
        assert {each.mechanism for each in one.plans.values()} == {"lgcp-tents"}
        sizes["a"] = 20_000
        one = LGCPSynthesizer(1.0, alpha=25.0).plan_by(self.LARGE, by="kind", levels=["a", "b"], n=sizes)
        assert {each.mechanism for each in one.plans.values()} == {"lgcp-cells"}


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"mechanism": "cells", "prior": "dense"}, "prior: mechanism 'cells' cannot take 'dense'"),
        ({"mechanism": "cells", "delta": 1e-6}, "delta: mechanism 'cells' is purely epsilon-private"),
        ({"mechanism": "cells", "sigma": 1.0}, "sigma: mechanism 'cells' spends nothing"),
        ({"mechanism": "cells", "length_scale": 1e7}, "ranges: needs 1 to 8 numbers"),
        ({"mechanism": "cells", "mesh": trace_mesh(SOHO, shape=(5, 5))}, "mesh: needs segments of a network"),
    ],
)
def test_what_cannot_be_is_refused_by_the_plan(settings, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        plan(**settings)


def test_windows_have_no_streets():
    with pytest.raises(InputError, match=r"^mechanism: 'cells' are counts along the streets of a network"):
        plan(Window.rectangle(0, 0, 1000, 1000), mechanism="cells")


def test_networks_too_large_for_their_factors_are_refused_by_the_plan(monkeypatch):
    monkeypatch.setattr("dpppsynth.models.sparse_fields.MOST_UNKNOWNS", 500)
    with pytest.raises(InputError, match=r"^mesh: a field with \d+ unknowns is more than 500"):
        plan(mechanism="cells")


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"ranges": ()}, "ranges: needs 1 to 8"),
        ({"ranges": (200.0, 100.0)}, "ranges: needs 1 to 8 numbers"),
        ({"ranges": (100.0, 100.0)}, "ranges: needs"),
        ({"street_ranges": (1e9,)}, "street_ranges: needs"),
        ({"street_ranges": (0.0, 1e-9)}, "street_ranges: needs"),
        ({"street_ranges": (-1.0, 10.0)}, "street_ranges: needs"),
        ({"street_sigmas": (0.0,)}, "street_sigmas: needs"),
        ({"detours": (-0.1,)}, "detours: needs 1 to 8 numbers from 0 to"),
        ({"detours": (0.5, 0.5)}, "detours: needs"),
        ({"detours": (True,)}, "detours: needs"),
        ({"sigma": 0.0}, "sigma: needs"),
        ({"inference": "magic"}, "inference: expected"),
    ],
)
def test_settings_that_no_field_has_are_refused(settings, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        replace(plan(mechanism="cells").estimator, **settings)


class TestEdgesOfTheirOwn:
    """Edges that differ from one another, which a field along streets smooths away."""

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls):
        network, share = grid(8, street=0.0)
        share = share * np.exp(1.2 * np.random.default_rng(5).standard_normal(len(share)))
        share /= share.sum()
        made = LGCPSynthesizer(1.0, alpha=25.0, mechanism="cells").plan(network, n=8000)
        return network, share, made, made.release(points(network, share, 8000), rng=2)

    def test_are_kept_as_by_plain_counts(self, drawn):
        """A field along streets alone is farther off, as the second assertion shows."""
        network, share, made, release = drawn
        plain = LaplaceSynthesizer(1.0, alpha=25.0, mesh=made.statistic.mesh, postprocess="plain")
        counts = plain.release(points(network, share, 8000), rng=2)
        found = apart(release.intensity, network, share)
        assert found <= 1.1 * apart(counts.intensity, network, share)
        along = release.infer(rng=2, street_ranges=(2 * network.extent,))
        assert found < 0.95 * apart(along.intensity, network, share)

    def test_turns_count_for_nothing_and_are_not_averaged_over(self, drawn):
        release = drawn[3]
        one, many = (
            release.infer(rng=3, street_ranges=(0.0,), detours=detours, even=False)
            for detours in ((0.0,), (0.0, 100.0, 5000.0))
        )
        assert np.array_equal(one.intensity.log_values, many.intensity.log_values)


class TestReleases:
    """On Soho's streets."""

    @pytest.fixture(scope="class")
    @classmethod
    def release(cls):
        return LGCPSynthesizer(2.0, alpha=25.0, mechanism="cells", mesh=network_mesh(SOHO, 80.0)).release(DEATHS, rng=1)

    @pytest.mark.slow
    def test_intensity_is_constant_along_segments_with_the_public_total(self, release):
        assert isinstance(release.intensity, LogLinear)
        assert release.intensity.total == pytest.approx(392, rel=1e-6)
        mesh, middle = release.mesh, SegmentCells.of(release.mesh).positions
        value = release.intensity(SOHO.coordinates(middle))
        assert value @ mesh.element_measure == pytest.approx(392, rel=1e-6)
        np.testing.assert_allclose(release.intensity.element_bound, value)
        start = middle.copy()
        start[:, 1] = mesh.start + 1e-3 * mesh.element_measure
        assert (release.intensity.at(mesh.locate(start), np.ones((len(start), 1)), start) == value).mean() > 0.99

    def test_points_fall_where_the_intensity_is(self, release):
        pattern = release.sample(1, rng=3, source="released", fixed_n=True)[0]
        assert len(pattern) == 392
        count = np.bincount(release.mesh.locate(pattern.positions), minlength=len(release.mesh.elements))
        mass = (
            release.intensity.values if hasattr(release.intensity, "values") else np.exp(release.intensity.log_values)
        )
        mass = mass * release.mesh.element_measure
        # Sums over tenths of the mass, each binomial: six standard deviations.
        order = np.argsort(mass)
        tenth = np.floor(np.cumsum(mass[order]) / mass.sum() * 10 * (1 - 1e-12)).astype(int)
        seen, wanted = np.bincount(tenth, count[order]), np.bincount(tenth, mass[order])
        assert (np.abs(seen - wanted) <= 6 * np.sqrt(wanted) + 1).all()

    @pytest.mark.slow
    def test_it_verifies_and_comes_back(self, release, tmp_path):
        private = LGCPSynthesizer(2.0, alpha=25.0, mechanism="cells", mesh=network_mesh(SOHO, 80.0)).release(DEATHS)
        folder = private.save(tmp_path / "out")
        assert verify(folder).holds
        again = load_release(folder)
        assert again.mechanism == "lgcp-cells"
        assert again.guarantee.epsilon() <= 2.0
        at = SOHO.coordinates(SegmentCells.of(private.mesh).positions)
        np.testing.assert_allclose(again.intensity(at), private.intensity(at))
        interval = again.interval(at, 0.8)
        assert (interval.lower <= interval.upper).all()
        assert again.infer(0, ranges=(300.0,), detours=(1000.0,)).intensity.total == pytest.approx(392, rel=1e-5)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "change",
        [
            lambda e: e | {"note": 1},
            lambda e: e | {"detours": [1]},
            lambda e: e | {"detours": "1"},
            lambda e: e | {"ranges": [1e9]},
            lambda e: e | {"mesh": {"builder": "network", "resolution": 40.0}},
            lambda e: e | {"plane": [30, 10**6]},
            lambda e: e | {"plane": [30.0, 30]},
            lambda e: e | {"plane": {"builder": "regular", "kind": "triangle", "shape": [5, 5]}},
        ],
    )
    def test_forged_settings_are_refused(self, release, change):
        from dpppsynth.release.rederive import rederive

        stated = copy.deepcopy(release.parameters())
        rederive("lgcp-cells", json.loads(json.dumps(stated)), NEAR, SOHO)
        stated["estimator"] = change(stated["estimator"])
        with pytest.raises(InputError):
            rederive("lgcp-cells", json.loads(json.dumps(stated)), NEAR, SOHO)

    def test_a_secret_total_comes_from_the_counts(self):
        relation = AddRemove()
        release = LGCPSynthesizer(5.0, relation=relation, mechanism="cells", mesh=network_mesh(SOHO, 150.0)).release(
            DEATHS, rng=2, expected_n=50
        )
        noise = release.statistic.noise_scale * np.sqrt(2 * len(release.mesh.elements))
        # Six standard deviations of the counts' noise and of a Poisson total.
        assert abs(release.intensity.total - 392) < 6 * np.hypot(noise, np.sqrt(392))

    def test_an_offset_weighs_the_streets(self):
        offset = Offset.from_grid([[1.0, 3.0]], tuple(SOHO.bounds))
        release = LGCPSynthesizer(
            1e4, alpha=25.0, mechanism="cells", offset=offset, mesh=network_mesh(SOHO, 150.0)
        ).release(DEATHS, rng=2)
        assert release.intensity.total == pytest.approx(392, rel=1e-6)

    def test_shell(self, tmp_path):
        net, source = tmp_path / "streets.geojson", tmp_path / "points.csv"
        net.write_text(json.dumps(SOHO.to_geojson()))
        np.savetxt(source, DEATHS.xy, delimiter=",", header="x,y", comments="")
        words = ["--network", net, "--snap", 1, "--epsilon", 1, "--alpha", 25, "--resolution", 100]
        run("synthesize", source, "--out", tmp_path / "out", "--mechanism", "lgcp-cells", *words)
        assert verify(tmp_path / "out").holds


@pytest.mark.usefixtures("_small")
class TestUse:
    """Against plain counts and fields of the plane."""

    @pytest.mark.slow
    def test_streets_that_differ_are_told_apart(self):
        network, share = grid(20, seed=4)
        pattern = points(network, share, 3000, seed=4)
        plain = apart(
            LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release(pattern, rng=1).intensity, network, share
        )
        plane = LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents", prior="dense", inference="laplace").release(
            pattern, rng=1
        )
        streets = LGCPSynthesizer(1.0, alpha=25.0).release(pattern, rng=1)
        assert streets.mechanism == "lgcp-cells"
        assert apart(streets.intensity, network, share) < 0.7 * min(plain, apart(plane.intensity, network, share))

    @pytest.mark.slow
    def test_streets_that_do_not_differ_are_left_alone(self):
        network, share = grid(20, seed=5, street=0.0)
        pattern = points(network, share, 3000, seed=5)
        plain = apart(
            LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release(pattern, rng=1).intensity, network, share
        )
        streets = LGCPSynthesizer(1.0, alpha=25.0).release(pattern, rng=1)
        assert apart(streets.intensity, network, share) < 0.5 * plain

    def test_tents_along_streets_have_it_behind_them_too(self):
        network, share = grid(12, seed=6)
        pattern = points(network, share, 3000, seed=6)
        tents = network_mesh(network, 60.0)
        release = LGCPSynthesizer(2.0, alpha=5.0, mechanism="tents", prior="sparse", mesh=tents).release(pattern, rng=1)
        assert apart(release.intensity, network, share) < 0.15
        statistic = release.statistic
        likelihood = release.estimator.likelihood(statistic)
        np.testing.assert_allclose(likelihood.tents.sum(axis=0), 1.0)
        assert likelihood.n == 3000


def test_masses_that_jump_are_not_measured():
    cells = SegmentCells.of(network_mesh(SOHO, 100.0))
    for basis, rule in (("tents", "mesh: tents need functions that do not jump"),):
        with pytest.raises(InputError, match=f"^{rule}"):
            LaplaceMasses(basis, cells, NEAR, 392, None, 1.0)
    # A caller's own becomes the segments that its recipe names.
    assert not isinstance(
        LaplaceSynthesizer(1.0, relation=ReplaceOne(), mesh=cells, postprocess="plain").plan(SOHO, n=9).statistic.mesh,
        SegmentCells,
    )
    np.testing.assert_allclose(cells.measure, cells.element_measure)
    np.testing.assert_allclose(cells.basis(cells.positions).toarray(), np.eye(len(cells.elements)))


@pytest.mark.parametrize("top", [(0, 0), (3, 1), (1, 2), (2, 2)])
def test_climbing_finds_the_top_and_sees_no_place_twice(top):
    axes, seen = (tuple(range(4)), tuple(range(3))), []

    def height(place):
        seen.append(place)
        return -abs(place[0] - top[0]) - abs(place[1] - top[1])

    climb_grid(height, axes, first=(1, 1))
    assert top in seen
    assert len(seen) == len(set(seen)) < 12
