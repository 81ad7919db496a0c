"""Releases: intensities, patterns drawn from them, and the folder they are kept in."""

import json
import math
import shutil
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import shapely
from support.forgery import read, reseal

from dpppsynth import KernelSynthesizer, combine
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.inference import Projection
from dpppsynth.inference.field_inference import FitNotes
from dpppsynth.io import read_pattern
from dpppsynth.privacy import AddRemove, verify
from dpppsynth.release import CoxRelease, append_patterns, certificate, load_release
from dpppsynth.release.folder import open_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.simplex import norm_sub
from dpppsynth.synthesizers import LaplaceSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(1).normal(500, 120, (400, 2)).clip(0, 1000), WINDOW)
GRID = np.stack(np.meshgrid(np.linspace(3, 997, 23), np.linspace(3, 997, 23)), axis=-1).reshape(-1, 2)
SYNTHESIZERS = {
    "cells": LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain"),
    "cells, clip": LaplaceSynthesizer(1.0, alpha=25.0, postprocess="clip"),
    "tents": LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="plain"),
    "lgcp": LGCPSynthesizer(1.0, alpha=25.0, inference="laplace", length_scale=400.0),
    "lgcp, offset": LGCPSynthesizer(
        1.0,
        alpha=25.0,
        inference="laplace",
        length_scale=400.0,
        offset=Offset.from_grid([[1.0, 2.0], [3.0, 0.0]], (0, 0, 1000, 1000)),
    ),
}


@cache
def fresh(name):
    return SYNTHESIZERS[name].release(PATTERN, rng=3)


@pytest.fixture(scope="module", params=SYNTHESIZERS)
def release(request):
    return fresh(request.param)


@pytest.fixture(scope="module")
def cells():
    return SYNTHESIZERS["cells"].release(PATTERN)


@pytest.fixture(scope="module")
def lgcp():
    return fresh("lgcp")


class TestIntensity:
    def test_kinds(self, cells, lgcp):
        assert isinstance(cells.intensity, PiecewiseConstant)
        assert isinstance(fresh("tents").intensity, PiecewiseLinear)
        assert isinstance(lgcp.intensity, LogLinear)

    def test_is_per_unit_area_and_non_negative(self, release):
        values = release.intensity(GRID)
        assert values.shape == (len(GRID),)
        assert values.min() >= 0
        total = release.intensity.total
        at_random = release.intensity(np.random.default_rng(5).uniform(0, 1000, (20_000, 2))) * 1e6
        assert abs(at_random.mean() - total) < 6 * at_random.std() / math.sqrt(20_000)

    @pytest.mark.parametrize("name", ["cells", "tents", "lgcp", "lgcp, offset"])
    def test_keeps_the_public_number_of_points(self, name):
        assert fresh(name).intensity.total == pytest.approx(400, rel=1e-5)

    def test_cells_are_counts_over_areas(self):
        """With next to no noise the intensity is the histogram."""
        exact = LaplaceSynthesizer(1e6, spacing=250.0, postprocess="plain").release(PATTERN, rng=1).intensity
        histogram, *_ = np.histogram2d(*PATTERN.xy.T, bins=4, range=[[0, 1000]] * 2)
        centres = np.stack(np.meshgrid(*[np.arange(125, 1000, 250)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
        np.testing.assert_allclose(exact(centres) * 250**2, histogram.ravel(), atol=1e-9)

    def test_tents_are_masses_over_measures(self):
        exact = LaplaceSynthesizer(1e6, basis="tents", spacing=250.0, postprocess="plain").release(PATTERN, rng=1)
        mesh = exact.statistic.definition.mesh
        masses = np.asarray(mesh.basis(PATTERN.xy).sum(axis=0)).ravel()
        np.testing.assert_allclose(exact.intensity.values * mesh.measure, masses, atol=1e-3)

    def test_offset_of_zero_gets_no_point(self):
        release = fresh("lgcp, offset")
        barren = (GRID[:, 0] > 500) & (GRID[:, 1] < 500)
        assert release.intensity(GRID[barren]).max() == 0
        for pattern in release.sample(5, rng=1):
            assert not np.any((pattern.xy[:, 0] > 500) & (pattern.xy[:, 1] < 500))


class TestProjection:
    def test_is_the_nearest_point_of_the_simplex(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            masses = rng.normal(0, 3, 12)
            nearest = norm_sub(masses, 5.0)
            assert nearest.min() >= 0
            assert nearest.sum() == pytest.approx(5)
            other = rng.dirichlet(np.ones(12), 500) * 5
            # Obtuse angle at the projection: the variational characterisation of it.
            assert np.max((other - nearest) @ (masses - nearest)) <= 1e-9

    def test_leaves_a_feasible_vector_alone(self):
        np.testing.assert_allclose(norm_sub(np.array([1.0, 0, 4]), 5), [1, 0, 4])

    def test_clip_only_ever_adds(self):
        release = fresh("cells, clip")
        masses = release.statistic.masses
        np.testing.assert_allclose(release.intensity.total, np.maximum(masses, 0).sum())
        assert np.any(masses < 0)

    def test_unknown(self):
        with pytest.raises(InputError, match=r"^postprocess: expected one of 'clip', 'keep-n', got 'keep'"):
            Projection("keep")


class TestSample:
    def test_is_a_list_always(self, release):
        for m in (0, 1, 3):
            patterns = release.sample(m, rng=1)
            assert isinstance(patterns, list)
            assert len(patterns) == m
            assert all(isinstance(p, PointPattern) and p.domain is release.domain for p in patterns)
        assert len(release.sample()) == 1

    def test_seed_decides(self, release):
        first, again, other = (release.sample(1, rng=seed)[0].xy for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert first.shape != other.shape or (first != other).any()
        assert len({release.sample(1)[0].xy.tobytes() for _ in range(3)}) == 3

    def test_numbers_are_poisson_or_fixed(self, release):
        sizes = [len(p) for p in release.sample(30, rng=1)]
        assert abs(np.mean(sizes) - release.intensity.total) < 6 * math.sqrt(release.intensity.total / 30)
        assert np.std(sizes) > 5
        assert {len(p) for p in release.sample(5, rng=1, fixed_n=True)} == {400}

    def test_coordinates_lie_on_the_public_grid(self, release):
        xy = release.sample(1, rng=1)[0].xy
        steps = xy / WINDOW.resolution
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-3)

    @pytest.mark.slow
    def test_source(self):
        """Patterns from the draws carry the uncertainty of a small budget, patterns from the mean do not."""
        unsure = LGCPSynthesizer(0.05, alpha=100.0, inference="laplace", length_scale=400.0).release(PATTERN, rng=3)
        box = shapely.box(400, 400, 600, 600)
        variance = {
            source: np.var(
                [shapely.contains_xy(box, *p.xy.T).sum() for p in unsure.sample(30, rng=1, source=source, fixed_n=True)]
            )
            for source in ("draws", "mean")
        }
        assert variance["draws"] > 3 * variance["mean"]

    def test_more_patterns_than_draws(self, lgcp):
        few = CoxRelease(lgcp.mechanism, lgcp.statistic, lgcp.estimator, thinned(lgcp.draws, 3))
        assert len(few.sample(5, rng=1, source="draws")) == 5

    @pytest.mark.parametrize("m", [-1, 1.5, True, math.nan, "one", None], ids=repr)
    def test_m(self, cells, m):
        with pytest.raises(InputError, match=r"^m: needs a whole number of patterns, got"):
            cells.sample(m)

    def test_patterns_are_drawn_from_the_median(self, lgcp):
        model = lgcp.estimator.released(lgcp.draws, lgcp.statistic.definition)
        np.testing.assert_array_equal(lgcp.intensity(GRID), model(GRID))
        alike = [lgcp.sample(2, rng=4, **options)[1].xy for options in ({}, {"source": "released"})]
        np.testing.assert_array_equal(*alike)

    @pytest.mark.parametrize("source", ["released", "mean", "draws"])
    @pytest.mark.parametrize("name", ["lgcp", "cells"])
    def test_names_of_files_tell_the_source(self, name, source, tmp_path):
        """Only where the source makes a difference; numbers go on over all of them."""
        path = fresh(name).save(tmp_path / "out", patterns=2, source=source)
        append_patterns(path, release := load_release(path), release.sample(1))
        word = {"draws": "draw_", "mean": "mean_"}.get(source, "") if name == "lgcp" else ""
        names = {f"synthetic_{word}000.geojson", f"synthetic_{word}001.geojson", "synthetic_002.geojson"}
        assert {each for each in certificate.read(path)["files"] if each.startswith("synthetic")} == names
        assert len(load_release(path).statistic.values)

    def test_both_kinds_are_kept_and_remember_their_source(self, lgcp, cells, tmp_path):
        path = lgcp.save(tmp_path / "out", patterns=1, draws=2, rng=1)
        with open_release(path) as opened:
            found = [opened.pattern(name) for name in opened.patterns]
        assert [each.source for each in found] == ["released", "draws", "draws"]
        assert [each.source for each in lgcp.sample(1, source="mean") + cells.sample(1, source="draws")] == [
            "mean",
            "released",
        ]
        with pytest.raises(InputError, match=r"^patterns: drawn from one intensity"):
            combine(found, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
        combine(found[1:], [1.0, 2.0], [1.0, 1.0])
        with pytest.raises(InputError, match=r"^draws: a laplace-cells release has no posterior"):
            cells.save(tmp_path / "none", draws=2)

    def test_unknown_source(self, cells):
        with pytest.raises(InputError, match=r"^source: expected one of 'released', 'mean', 'draws', got 'mode'"):
            cells.sample(1, source="mode")

    def test_fixed_n_needs_a_public_n(self):
        secret = LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=250.0, postprocess="plain").release(PATTERN)
        with pytest.raises(InputError, match=r"^fixed_n: the relation keeps the number of points secret; leave"):
            secret.sample(1, fixed_n=True)


def thinned(draws, k):
    return replace(draws, fields=draws.fields[:, :k], length_scale=draws.length_scale[:, :k])


class TestInterval:
    def test_holds_the_mean_mostly_and_nests(self, lgcp):
        narrow, wide = lgcp.interval(GRID, 0.5), lgcp.interval(GRID, 0.95)
        mean = lgcp.intensity(GRID)
        assert np.all(wide.lower <= narrow.lower)
        assert np.all(narrow.upper <= wide.upper)
        assert np.all((wide.lower < mean) & (mean < wide.upper))
        assert narrow.level == 0.5

    def test_is_the_quantile_of_the_draws(self, lgcp):
        xy = GRID[:4]
        mean = lgcp.estimator.posterior_mean(lgcp.draws)
        values = np.array([mean.draw(k)(xy) for k in range(len(mean.fields))])
        interval = lgcp.interval(xy, 0.8)
        np.testing.assert_allclose(interval.lower, np.quantile(values, 0.1, axis=0), rtol=0.01)
        np.testing.assert_allclose(interval.upper, np.quantile(values, 0.9, axis=0), rtol=0.01)

    @pytest.mark.parametrize("level", [0, 1, -0.1, 90, math.nan])
    def test_level(self, lgcp, level):
        with pytest.raises(InputError, match=r"^level: must lie strictly between 0 and 1, got"):
            lgcp.interval(GRID, level)

    @pytest.mark.parametrize("ask", [lambda r: r.interval(GRID), lambda r: r.posterior, lambda r: r.infer()])
    def test_there_is_none_without_a_model(self, cells, ask):
        with pytest.raises(
            InputError, match=r"^posterior: a laplace-cells release has none; mechanisms 'tents' and 'field'"
        ):
            ask(cells)


class TestInference:
    def test_posterior_is_a_dataset_without_observed_data(self, lgcp):
        posterior = lgcp.posterior
        assert set(posterior.data_vars) == {"log_intensity", "length_scale"}
        assert posterior["log_intensity"].dims == ("chain", "draw", "vertex")
        assert posterior["length_scale"].dims == ("chain", "draw")
        assert set(posterior.attrs) == {"fit_" + each.name for each in fields(FitNotes)}
        assert posterior.attrs["fit_weight"].sum() == pytest.approx(1)

    def test_again_on_the_same_statistic(self, lgcp):
        other = lgcp.infer(rng=1, length_scales=(800.0,), sigma=0.5)
        assert other.statistic is lgcp.statistic
        assert other.guarantee == lgcp.guarantee
        assert other.estimator.length_scales == (800.0,)
        assert np.std(other.intensity(GRID)) < np.std(lgcp.intensity(GRID))

    def test_unknown_setting(self, lgcp):
        with pytest.raises(InputError, match=r"^infer: unknown setting \['epsilon'\]; expected some of"):
            lgcp.infer(epsilon=5.0)
        with pytest.raises(InputError, match="inference: expected one of 'nuts', 'laplace', got 'magic'"):
            lgcp.infer(inference="magic")

    def test_averages_over_scales_by_default(self):
        release = LGCPSynthesizer(1.0, alpha=25.0, inference="laplace").release(PATTERN, rng=1)
        scales = release.draws.length_scale
        assert release.draws.fields.shape[:2] == scales.shape
        # In order they would change once less than there are of them.
        assert np.count_nonzero(np.diff(scales[0])) > 2 * (len(set(scales[0].tolist())) - 1) > 0


class TestFolder:
    def test_round_trip(self, release, tmp_path):
        release.save(tmp_path / "out", patterns=2, rng=4)
        again = load_release(tmp_path / "out")
        assert (again.mechanism, again.guarantee, again.seeded) == (release.mechanism, release.guarantee, True)
        assert again.domain.fingerprint() == release.domain.fingerprint()
        np.testing.assert_array_equal(again.statistic.lattice, release.statistic.lattice)
        np.testing.assert_array_equal(again.intensity(GRID), release.intensity(GRID))
        for one, other in zip(again.sample(2, rng=9), release.sample(2, rng=9), strict=True):
            np.testing.assert_array_equal(one.xy, other.xy)
        assert repr(again) == repr(release)
        for k, pattern in enumerate(release.sample(2, rng=4)):
            stored = read_pattern(tmp_path / "out" / f"synthetic_{k:03d}.geojson", WINDOW)
            np.testing.assert_array_equal(stored.xy, pattern.xy)

    def test_saved_again_it_is_the_same_to_the_byte(self, release, tmp_path):
        first = release.save(tmp_path / "first", rng=4)
        second = load_release(first).save(tmp_path / "second", rng=4)
        assert contents(first) == contents(second)

    def test_private_release_holds_after_loading(self, cells, tmp_path):
        path = cells.save(tmp_path / "out")
        assert verify(path).holds
        assert not load_release(path).seeded
        assert load_release(path / "certificate.json").guarantee == cells.guarantee

    def test_only_plain_files_of_known_names(self, release, tmp_path):
        names = set(contents(release.save(tmp_path / "out")))
        extra = {"posterior.nc"} if release.draws is not None else set()
        extra |= {"offset.geojson"} if getattr(release.estimator, "offset", None) is not None else set()
        known = {"certificate.json", "domain.geojson", "statistic.json", "synthetic_000.geojson"}
        assert names == known | extra

    def test_fixed_n_and_no_patterns(self, cells, tmp_path):
        path = cells.save(tmp_path / "fixed", patterns=2, fixed_n=True)
        assert [len(read_pattern(path / f"synthetic_00{k}.geojson", WINDOW)) for k in (0, 1)] == [400, 400]
        path = cells.save(tmp_path / "none", patterns=0)
        assert not list(path.glob("synthetic*"))
        assert verify(path).holds

    def test_statistic_alone_can_be_saved_loaded_and_inferred(self, lgcp, tmp_path):
        bare = CoxRelease(lgcp.mechanism, lgcp.statistic, lgcp.estimator)
        for ask in (lambda: bare.intensity, bare.sample, lambda: bare.posterior, lambda: bare.save(tmp_path / "no")):
            with pytest.raises(InputError, match=r"inference has not been run .*call `release.infer\(...\)` first"):
                ask()
        assert not (tmp_path / "no").exists()
        bare.save(tmp_path / "out", patterns=0)
        again = load_release(tmp_path / "out")
        assert again.draws is None
        np.testing.assert_array_equal(again.infer(rng=5).intensity(GRID), lgcp.infer(rng=5).intensity(GRID))

    def test_empty_folder_is_welcome(self, cells, tmp_path):
        target = tmp_path / "deep" / "out"
        target.mkdir(parents=True)
        assert cells.save(target) == target
        assert cells.save(str(tmp_path / "text")) == tmp_path / "text"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "text"]

    def test_anything_else_there_is_refused(self, cells, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "notes.txt").write_text("mine")
        for path in (tmp_path / "out", tmp_path / "out" / "notes.txt"):
            with pytest.raises(InputError, match=r"^path: .* exists and is not an empty folder; choose another, rel"):
                cells.save(path)
        assert contents(tmp_path / "out") == {"notes.txt": b"mine"}
        with pytest.raises(InputError, match=r"^path: no folder can be made"):
            cells.save(tmp_path / "out" / "notes.txt" / "public")

    @pytest.mark.parametrize("name", ["certificate.json", "synthetic_000.geojson", "domain.geojson"])
    def test_nothing_is_left_of_a_save_that_fails(self, cells, tmp_path, monkeypatch, name):
        def full(write):
            def fail(path, *given, **options):
                if path.name == name and given != ("rb",):
                    raise OSError(28, "disk full")
                return write(path, *given, **options)

            return fail

        for way in ("write_text", "open"):
            monkeypatch.setattr(Path, way, full(getattr(Path, way)))
        (tmp_path / "empty").mkdir()
        for target in ("out", "empty"):
            with pytest.raises(OSError, match="disk full"):
                cells.save(tmp_path / target)
        assert [p.name for p in tmp_path.iterdir()] == ["empty"]
        assert not list((tmp_path / "empty").iterdir())


class TestAppend:
    def test_numbers_go_on_and_the_certificate_holds(self, cells, tmp_path):
        path = cells.save(tmp_path / "out", patterns=2)
        before = contents(path)
        append_patterns(path, load_release(path), cells.sample(2))
        append_patterns(path, load_release(path), cells.sample(1))
        after = contents(path)
        assert sorted(set(after) - set(before)) == [f"synthetic_00{k}.geojson" for k in (2, 3, 4)]
        assert all(after[name] == before[name] for name in before if name != "certificate.json")
        assert verify(path).holds
        old, new = (json.loads(c["certificate.json"]) for c in (before, after))
        assert {k for k in old if old[k] != new[k]} == {"files", "content_hash"}
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_patterns_without_points_are_no_copies(self, cells, tmp_path):
        """Two draws of few points may both be empty; two with points are the same where a seed has made both."""
        path = cells.save(tmp_path / "out")
        empty = PointPattern.synthetic(np.empty((0, 2)), cells.domain)
        append_patterns(path, cells, [empty])
        append_patterns(path, cells, [empty])
        append_patterns(path, cells, cells.sample(1, 5))
        with pytest.raises(InputError, match=r"^seed: the release holds a pattern of this seed already"):
            append_patterns(path, cells, cells.sample(1, 5))
        assert verify(path).holds

    def test_a_seeded_release_stays_marked(self, tmp_path):
        path = fresh("cells").save(tmp_path / "out")
        append_patterns(path, load_release(path), fresh("cells").sample(1))
        assert [c.name for c in verify(path).checks if not c.holds] == ["randomness"]

    @pytest.mark.parametrize("moves_before_failure", [0, 1])
    def test_the_release_survives_a_failure(self, cells, tmp_path, monkeypatch, moves_before_failure):
        path = cells.save(tmp_path / "out")
        before, moves, replace = contents(path), [], Path.replace
        patterns = cells.sample(1)

        def failing(self, target):
            moves.append(target)
            if len(moves) == moves_before_failure + 1:
                raise OSError(28, "no such luck")
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", failing)
        with pytest.raises(OSError, match="no such luck"):
            append_patterns(path, cells, patterns)
        monkeypatch.undo()
        # A pattern without a certificate that lists it is none of the release.
        after = contents(path)
        assert {name: after[name] for name in before} == before
        assert load_release(path).certificate_dict()["mechanism"] == cells.mechanism
        append_patterns(path, cells, patterns)
        assert verify(path).holds
        assert [p.name for p in tmp_path.iterdir()] == ["out"]


class TestLoad:
    @pytest.fixture
    def saved(self, lgcp, tmp_path):
        return shutil.copytree(lgcp.save(tmp_path / "original"), tmp_path / "copy")

    @pytest.mark.parametrize(
        "name", ["statistic.json", "posterior.nc", "domain.geojson", "certificate.json", "synthetic_000.geojson"]
    )
    def test_missing_or_edited(self, saved, name):
        content = (saved / name).read_bytes()
        (saved / name).unlink()
        with pytest.raises((InputError, PrivacyCheckError), match=name):
            load_release(saved)
        (saved / name).write_bytes(content[:-1] + b"?")
        with pytest.raises((InputError, PrivacyCheckError), match=rf"{name}|not as it was released"):
            load_release(saved)

    def test_claims_what_the_certificate_claims_or_nothing(self, saved):
        """An edited budget, hashed again, must not come back as the guarantee of the loaded release."""

        cert = read(saved)
        cert["parameters"]["epsilon"] = 0.01
        reseal(saved, cert)
        with pytest.raises(PrivacyCheckError):
            load_release(saved)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(InputError, match=r"^certificate: cannot read"):
            load_release(tmp_path)


class TestHonesty:
    def test_arrays_are_read_only(self, release):
        for array in (release.statistic.lattice, release.sample(1)[0].xy):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError):
            release.statistic = None

    def test_repr(self, release):
        assert repr(release) == (
            f"CoxRelease({release.mechanism}, epsilon=1, Window(rectangle [0, 1000] x [0, 1000], EPSG:27700, metre), "
            "seeded: not private)"
        )


def contents(path):
    return {p.name: p.read_bytes() for p in path.iterdir()}


@pytest.mark.slow
def test_an_offset_of_many_cells_comes_back(tmp_path):
    """It is kept as a raster, cropped to the window."""
    values = np.random.default_rng(4).gamma(0.5, 1.0, (50, 40))
    offset = Offset.from_grid(values, (-200, -100, 1300, 1200), "counts")
    release = LGCPSynthesizer(1.0, alpha=25.0, prior="sparse", offset=offset, length_scale=300.0).release(PATTERN)
    folder = release.save(tmp_path / "out")
    verify(folder).require()
    assert {"offset.nc"} == {path.name for path in folder.iterdir() if path.name.startswith("offset")}
    again = load_release(folder)
    np.testing.assert_allclose(again.intensity(GRID), release.intensity(GRID), rtol=1e-6)
    np.testing.assert_array_equal(again.estimator.offset(GRID), offset(GRID))
    assert len(again.sample(1, 1, fixed_n=True)[0]) == len(PATTERN)


def test_patterns_that_were_paid_for_are_given_under_one_name():
    """A loop over mechanisms asks each for a pattern; none draws more than were paid for."""
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 1000, (50, 2)), Window.rectangle(0, 0, 1000, 1000))
    release = KernelSynthesizer(10.0, delta=1e-6, alpha=25.0).release(pattern, patterns=2)
    assert release.sample(2) == release.patterns
    assert release.sample() == release.patterns[:1]
    with pytest.raises(InputError, match=r"^m: 2 were paid for"):
        release.sample(3)
