"""The field behind noised counts and tents: plans, releases, hard statistics, truncated noise, forged certificates."""

import copy
import json

import numpy as np
import pytest
import shapely
from support.command_line import run

from dpppsynth import (
    AddRemove,
    AlphaNeighbours,
    BoundedErrorSynthesizer,
    InputError,
    LaplaceSynthesizer,
    Ledger,
    LGCPSynthesizer,
    PointPattern,
    ReplaceOne,
    Window,
    datasets,
    load_release,
)
from dpppsynth.contract.additive_noise import LaplaceMasses, PrivateStatistic
from dpppsynth.contract.rules import planar_rules
from dpppsynth.inference import MaternInference, Projection, StreetInference
from dpppsynth.inference.field_by_rule import field_by_rule
from dpppsynth.linear_network import network_mesh
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.models import regular_squares, regular_triangulation, trace_mesh
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.recipes import triangles_within
from dpppsynth.privacy import verify
from dpppsynth.release.rederive import rederive
from dpppsynth.spatial.mesh import Mesh

SQUARE = Window.rectangle(0, 0, 1000, 1000)
HOLED = Window.polygon(shapely.Point(500, 500).buffer(490).difference(shapely.Point(400, 520).buffer(120)))
SOHO = datasets.soho_deaths(on="streets")
SQUARES = regular_squares(SQUARE, shape=(7, 7))
GRID = np.stack(np.meshgrid(*[np.arange(10, 1000, 20.0)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)


def hill(xy):
    return 0.1 + np.exp(-((xy - [600, 500]) ** 2).sum(axis=1) / (2 * 150**2))


def points(n, window=SQUARE, seed=0):
    """Points on a hill."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 1000, (60 * n, 2))
    kept = shapely.contains_xy(window.geometry, *xy.T) & (1.1 * rng.random(len(xy)) < hill(xy))
    return PointPattern(xy[kept][:n], window)


def apart(estimate, truth):
    return 0.5 * np.abs(estimate / estimate.sum() - truth / truth.sum()).sum()


def bounded(epsilon=1.0, **settings):
    return BoundedErrorSynthesizer(epsilon=epsilon, max_error=40, **settings)


class TestPlans:
    def test_the_field_suits_statistic_and_domain(self):
        def kind(domain, make=LaplaceSynthesizer, **settings):
            return type(make(1.0, postprocess="field", **settings).plan(domain, n=400).estimator)

        for basis in ("cells", "tents"):
            assert kind(SQUARE, basis=basis) is MaternInference
            assert kind(HOLED, basis=basis) is MaternInference
            assert kind(SOHO.domain, basis=basis) is StreetInference
        assert kind(SQUARE, bounded) is MaternInference
        assert kind(SOHO.domain, bounded) is StreetInference

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("basis", ["cells", "tents"])
    @pytest.mark.parametrize("domain", [SQUARE, HOLED, SOHO.domain], ids=["square", "hole", "streets"])
    def test_it_is_the_default(self, basis, domain):
        for relation, size in ((ReplaceOne(), {"n": 400}), (AddRemove(), {"expected_n": 400})):
            made, asked = (
                LaplaceSynthesizer(1.0, relation=relation, basis=basis, postprocess=post).plan(domain, **size)
                for post in (None, "field")
            )
            assert made.estimator.to_dict() == asked.estimator.to_dict()
            assert made.statistic.parameters() == asked.statistic.parameters()

    def test_plain_keeps_a_public_n_and_clips_where_it_is_secret(self):
        for relation, size, post in ((ReplaceOne(), {"n": 400}, "keep-n"), (AddRemove(), {"expected_n": 400}, "clip")):
            made, asked = (
                LaplaceSynthesizer(1.0, relation=relation, postprocess=each).plan(SQUARE, **size)
                for each in ("plain", post)
            )
            assert made.estimator == asked.estimator == Projection(post)
            assert made.statistic.parameters() == asked.statistic.parameters()

    def test_bounded_counts_keep_their_bound(self):
        assert BoundedErrorSynthesizer(epsilon=1.0, max_error=40).plan(SQUARE, n=400).estimator == Projection("clip")

    def test_tents_and_their_field_are_those_of_the_cox_model(self):
        """One rule and one engine: only the name of the release differs."""
        laplace = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="field").plan(SQUARE, n=5000)
        cox = LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents").plan(SQUARE, n=5000)
        assert laplace.estimator.to_dict() == cox.estimator.to_dict()
        assert laplace.statistic.parameters() == cox.statistic.parameters()
        streets = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="field").plan(SOHO.domain, n=5000)
        assert streets.estimator.to_dict() == (
            LGCPSynthesizer(1.0, alpha=25.0, mechanism="cells").plan(SOHO.domain, n=5000).estimator.to_dict()
        )

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("window", [SQUARE, HOLED, Window.rectangle(0, 0, 3000, 500)])
    @pytest.mark.parametrize(("n", "epsilon"), [(60, 0.1), (400, 1.0), (400, 10.0), (10_000, 0.3), (20_000, 10.0)])
    def test_cells_are_the_finest_that_hold_enough(self, window, n, epsilon):
        def held(shape):
            x0, y0, x1, y1 = window.bounds
            return n / ((shape[0] - 1) * (shape[1] - 1) * window.area / ((x1 - x0) * (y1 - y0)))

        made = LaplaceSynthesizer(epsilon, postprocess="field").plan(window, n=n).statistic.mesh
        shape, need = made.recipe["shape"], max(1.0, np.sqrt(2) * 2 / epsilon)
        longer = max(shape)
        need = max(need, n / min(90 * n**0.4, 11_000))
        assert held(shape) >= need * (1 - 1e-12) or longer == 2
        assert held(planar_rules.shape(window, longer + 1)) < need

    @pytest.mark.slow
    def test_a_thin_window_gets_a_field_that_fits(self, monkeypatch):
        """It lives on all of the window's box, of which little is filled; with all limits a tenth as large."""
        monkeypatch.setattr(planar_rules, "MATERN_BOX", planar_rules.MATERN_BOX // 10)
        monkeypatch.setattr(planar_rules, "MOST_VERTICES", planar_rules.MOST_VERTICES // 3)
        strip = Window.polygon(shapely.LineString([(0, 0), (10_000, 10_000)]).buffer(100))
        for basis in ("cells", "tents"):
            made = LaplaceSynthesizer(10.0, alpha=25.0, basis=basis, postprocess="field").plan(strip, n=2000)
            assert isinstance(made.estimator, MaternInference)
            assert np.prod(made.estimator.mesh.recipe["shape"]) <= planar_rules.MATERN_BOX

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("settings", "domain"),
        [
            ({"spacing": 2.0}, SQUARE),
            ({"mesh": trace_mesh(SOHO.domain, shape=(6, 6))}, SOHO.domain),
            ({"mesh": trace_mesh(SOHO.domain, shape=(6, 6)), "basis": "tents", "relation": AddRemove()}, SOHO.domain),
        ],
        ids=["too many cells", "no segments", "no guess of n"],
    )
    def test_where_none_can_stand_the_default_is_the_plain_estimate(self, settings, domain):
        secret = "relation" in settings
        size = {} if secret else {"n": 9}
        made = LaplaceSynthesizer(1.0, **settings).plan(domain, **size)
        assert made.estimator == Projection("clip" if secret else "keep-n")
        plain = LaplaceSynthesizer(1.0, postprocess="plain", **settings).plan(domain, **size)
        assert made.statistic.parameters() == plain.statistic.parameters()
        with pytest.raises(InputError):
            LaplaceSynthesizer(1.0, postprocess="field", **settings).plan(domain, **size)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("settings", "domain", "rule"),
        [
            ({"spacing": 2.0}, SQUARE, "^mesh: a field with .* unknowns is more than"),
            ({"spacing": 2.0, "basis": "tents"}, SQUARE, "^mesh: a field with .* unknowns is more than"),
            ({"mesh": trace_mesh(SOHO.domain, shape=(6, 6))}, SOHO.domain, "^mesh: behind counts on a network a field"),
        ],
    )
    def test_what_the_engine_cannot_serve_is_refused_before_a_ledger(self, tmp_path, settings, domain, rule):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, relation=ReplaceOne())
        before = (tmp_path / "ledger.json").read_bytes()
        synthesizer = LaplaceSynthesizer(1.0, postprocess="field", **settings)
        pattern = SOHO if domain is SOHO.domain else points(9)
        with pytest.raises(InputError, match=rule):
            synthesizer.release(pattern, ledger=ledger)
        assert (tmp_path / "ledger.json").read_bytes() == before


class TestEstimates:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("seed", range(3))
    def test_nearer_to_the_truth_than_the_plain_estimate(self, seed):
        """The plain estimate is at least 1.4 times as far away in each; noise and points have a given seed."""
        for settings in ({}, {"basis": "tents", "alpha": 25.0}):
            distance = {
                post: apart(
                    LaplaceSynthesizer(1.0, postprocess=post, **settings)
                    .release(points(800, seed=seed), seed)
                    .intensity(GRID),
                    hill(GRID),
                )
                for post in ("keep-n", "field")
            }
            assert distance["field"] < distance["keep-n"] / 1.4, (settings, distance)

    @pytest.mark.slow
    def test_counts_tell_what_tents_tell(self):
        """With hardly any noise and many points both lead to the same intensity, that of the points."""
        squares, triangles = regular_squares(SQUARE, shape=(21, 21)), regular_triangulation(SQUARE, shape=(21, 21))
        made = [
            LaplaceSynthesizer(100.0, basis=basis, mesh=mesh, postprocess="field").release(points(30_000), 1)
            for basis, mesh in (("cells", squares), ("tents", triangles))
        ]
        one, other = (release.intensity(GRID) for release in made)
        assert apart(one, other) < 0.02
        assert max(apart(one, hill(GRID)), apart(other, hill(GRID))) < 0.04

    @pytest.mark.parametrize("window", [SQUARE, HOLED], ids=["square", "hole"])
    def test_masses_of_cells_are_near_their_counts(self, window):
        mesh = regular_squares(window, shape=(6, 6))
        pattern = points(20_000, window)
        release = LaplaceSynthesizer(100.0, mesh=mesh, postprocess="field").release(pattern, 1)
        field = release.estimator.mesh
        assert release.intensity.total == pytest.approx(20_000)
        masses = release.estimator.likelihood(release.statistic).expected_masses(
            np.log(release.intensity(field.vertices))
        )
        large = release.statistic.masses > 100
        np.testing.assert_allclose(masses[large], release.statistic.masses[large], rtol=0.15)

    @pytest.mark.slow
    def test_uniform_points_give_a_flat_intensity(self):
        """The plain estimate is .22 away from it."""
        xy = np.random.default_rng(5).uniform(0, 1000, (5000, 2))
        release = LaplaceSynthesizer(1.0, postprocess="field").release(PointPattern(xy, SQUARE), 5)
        assert apart(release.intensity(GRID), np.ones(len(GRID))) < 0.1

    def test_all_points_in_one_cell(self):
        xy = np.random.default_rng(6).uniform(860, 990, (3000, 2))
        release = LaplaceSynthesizer(1.0, mesh=SQUARES, postprocess="field").release(PointPattern(xy, SQUARE), 6)
        inside = (GRID > 1000 * 5 / 6).all(axis=1)
        assert release.intensity(GRID)[inside].sum() > 0.8 * release.intensity(GRID).sum()

    def test_a_single_point_of_a_secret_number(self):
        release = LaplaceSynthesizer(1.0, relation=AddRemove(), postprocess="field").release(
            PointPattern([[1.0, 2.0]], SQUARE), 7, expected_n=300
        )
        assert 0 < release.intensity.total < 300
        assert np.isfinite(release.intensity(GRID)).all()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("guess", [1.0, 1e6, 2.0**53])
    @pytest.mark.parametrize("basis", ["cells", "tents"])
    def test_a_guess_of_n_may_be_wrong_by_powers_of_ten(self, basis, guess):
        """Sums of noise over nine cells or so have a standard deviation of 4 points."""
        # Of tents along streets the field's segments follow the guess, and take time.
        for domain, pattern in ((SQUARE, points(60)), (SOHO.domain, SOHO))[: 1 + (basis == "cells")]:
            made = LaplaceSynthesizer(1.0, relation=AddRemove(), basis=basis, spacing=SQUARE.extent / 3)
            total = made.release(pattern, 8, expected_n=guess).intensity.total
            assert total == pytest.approx(len(pattern), rel=0.5), domain

    @pytest.mark.slow
    def test_modes_behind_hard_counts_are_found(self):
        """Empty, one full cell, noise a hundred times the counts, lumps with and without noise; n public or secret."""
        rng = np.random.default_rng(2025)
        meshes = [
            SQUARES,
            regular_squares(HOLED, shape=(7, 7)),
            Mesh.from_arrays(SQUARES.vertices, SQUARES.elements, SQUARE),
        ]
        for k in range(15):
            mesh, kind = meshes[k % 3], k % 5
            size, total = len(mesh.elements), 10.0 ** rng.uniform(0, 6)
            counts, epsilon = np.zeros(size), 10.0 ** rng.uniform(-1, 2)
            if kind == 1:
                counts[rng.integers(size)] = total
            elif kind == 2:
                counts, epsilon = rng.poisson(1.0, size), 0.02
            elif kind > 2:
                counts = rng.poisson(total * rng.dirichlet(np.full(size, 0.05)))
            secret = rng.random() < 0.3
            sizes = (None, max(1.0, counts.sum())) if secret else (int(max(1, counts.sum())), None)
            plan = LaplaceMasses("cells", mesh, AddRemove() if secret else ReplaceOne(), *sizes, float(epsilon))
            noised = np.rint(counts + rng.laplace(scale=plan.scale, size=size)).astype(np.int64)
            posterior = field_by_rule(plan).fit(PrivateStatistic(plan, noised, "made up", True), k)
            assert np.isfinite(posterior.flat).all()

    @pytest.mark.slow
    def test_series_by_levels_have_the_same_cells(self):
        pattern = points(300)
        marked = PointPattern(pattern.xy, SQUARE, {"year": np.repeat([1, 2, 3], 100)})
        release = bounded(relation=ReplaceOne(), postprocess="field").release_by(marked, by="year", levels=[1, 2, 3])
        assert release.counts.shape[0] == 3
        assert {part.estimator.kind for part in release.releases.values()} == {"matern"}


class TestTruncatedNoise:
    MESH = regular_squares(SQUARE, shape=(9, 9))

    def plan(self, max_error=20, epsilon=0.1, n=4000):
        """Noise of scale 20 that is cut off there: its variance is a sixth of that without a bound."""
        return BoundedCounts("cells", self.MESH, ReplaceOne(), n, None, epsilon, 0.5, max_error)

    def test_its_variance_is_the_likelihoods(self):
        plan = self.plan()
        k = np.arange(-20, 21)
        weight = np.exp(-np.abs(k) / plan.scale)
        variance = (k**2 * weight).sum() / weight.sum()
        statistic = PrivateStatistic(plan, np.zeros(64, dtype=np.int64), "made up", True)
        model = field_by_rule(plan)
        likelihood = model.likelihood(statistic)
        assert likelihood.noise_variance == pytest.approx(variance)
        assert plan.noise_variance == pytest.approx(variance)
        assert 2 * plan.noise_scale**2 > 5 * variance
        mean = np.full(64, 10.0)
        np.testing.assert_allclose(likelihood.precision(mean), 1 / (10 + variance))

    @pytest.mark.slow
    def test_the_right_variance_leads_nearer_to_the_truth(self, monkeypatch):
        """Five patterns each: with the variance of untruncated noise nothing seems to be told."""
        plan = self.plan(n=400)
        model, found = field_by_rule(plan), {True: [], False: []}
        measured = [plan.measure(points(400, seed=seed), seed) for seed in range(5)]
        for right in (True, False):
            for seed, each in enumerate(measured):
                posterior = model.fit(each, seed)
                found[right].append(apart(model.released(posterior, plan)(GRID), hill(GRID)))
            monkeypatch.setattr(type(plan), "noise_variance", property(lambda stated: 2 * stated.noise_scale**2))
        assert np.mean(found[True]) < 0.8 * np.mean(found[False])

    def test_a_wide_bound_leaves_the_law_as_it_was(self):
        plan = self.plan(max_error=2000, epsilon=1.0)
        noise = plan.likelihood(
            PrivateStatistic(plan, np.zeros(64, dtype=np.int64), "", True), np.ones(9), np.ones((64, 9))
        )
        assert isinstance(noise, NoisyMasses)
        # The discrete law of scale 2 has a variance smaller by about 1/6 than the continuous one.
        assert noise.noise_variance == pytest.approx(2 * plan.noise_scale**2 - 1 / 6, rel=0.01)


MADE = {
    "cells": lambda: LaplaceSynthesizer(1.0, mesh=SQUARES, postprocess="field").release(points(200)),
    "own cells": lambda: LaplaceSynthesizer(
        1.0, mesh=Mesh.from_arrays(SQUARES.vertices, SQUARES.elements, SQUARE), postprocess="field"
    ).release(points(200)),
    "holes": lambda: bounded(spacing=200.0, postprocess="field").release(points(200, HOLED)),
    "streets": lambda: LaplaceSynthesizer(1.0, mesh=network_mesh(SOHO.domain, 100.0), postprocess="field").release(
        SOHO
    ),
    "tents": lambda: LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=150.0, postprocess="field").release(
        points(200)
    ),
}


@pytest.fixture(scope="module", params=MADE)
def saved(request, tmp_path_factory):
    release = MADE[request.param]()
    return release, release.save(tmp_path_factory.mktemp("field") / "public")


@pytest.mark.exhaustive
def test_a_saved_release_verifies_unasked_and_opens_as_it_was(saved):
    release, folder = saved
    assert verify(folder / "certificate.json").holds
    opened = load_release(folder)
    xy = opened.mesh.domain.coordinates(opened.mesh.positions)[:20]
    at = opened.mesh.positions[:20] if release.estimator.kind == "streets" else xy
    if release.estimator.kind == "matern":
        np.testing.assert_array_equal(opened.intensity(at), release.intensity(at))
    assert opened.intensity.total == pytest.approx(release.intensity.total)
    assert opened.estimator.to_dict() == release.estimator.to_dict()
    assert len(opened.sample(2, 1, source="draws")) == 2
    run("verify", folder)


def finer(stated):
    mesh = stated["mesh"]
    if mesh["builder"] == "network":
        mesh["resolution"] = 90.0
    elif mesh["builder"] == "regular":
        mesh["shape"] = [side + 1 for side in mesh["shape"]]
    else:
        mesh["elements"] = mesh["elements"][1:] + mesh["elements"][:1]


FORGED = {
    "another mesh": finer,
    "another key": lambda e: e.update(note="CANARY"),
    "sigma": lambda e: e.update(sigma="CANARY"),
    "ranges": lambda e: e.update(ranges=e["ranges"][::-1]),
    "nuts": lambda e: e.update(inference="nuts"),
    "precision": lambda e: e.update(kind="precision"),
    "dense field": lambda e: e.update(kind="field"),
    "other field": lambda e: e.update(kind="matern" if e["kind"] == "streets" else "streets"),
    "projection beside": lambda e: e.update(postprocess="clip"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_settings_do_not_verify(saved, forge):
    release, folder = saved
    stated = json.loads((folder / "certificate.json").read_text())
    forged = copy.deepcopy(stated["parameters"])
    relation, domain = release.statistic.definition.relation, release.statistic.definition.domain
    rederive(release.mechanism, forged, relation, domain)
    forge(forged["estimator"])
    with pytest.raises((InputError, LookupError, TypeError, ValueError)):
        rederive(release.mechanism, forged, relation, domain)


def test_tents_may_be_squares():
    settings = {"alpha": 25.0, "basis": "tents", "mesh": SQUARES, "postprocess": "field"}
    release = LaplaceSynthesizer(1.0, **settings).release(points(300), 1)
    assert release.intensity.total == pytest.approx(300)


def test_a_field_behind_counts_is_nested_in_them():
    plan = LaplaceMasses("cells", SQUARES, AlphaNeighbours(25.0), 100, None, 1.0)
    MaternInference(triangles_within(SQUARES, 3), (300.0,)).require(plan)
    with pytest.raises(InputError, match="nested in their cells"):
        MaternInference(regular_triangulation(SQUARE, shape=(9, 9)), (300.0,)).require(plan)
