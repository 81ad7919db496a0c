"""Covariates behind noised tents and counts: effects, relative risk, and releases with them on disk."""

import io
import json

import numpy as np
import pytest
from support.command_line import run

from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import regular_triangulation
from dpppsynth.models.laplace_approximation import laplace_posterior
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.sparse_fields import SparseMatern, with_effects
from dpppsynth.models.sparse_posterior import sparse_posterior
from dpppsynth.privacy import AddRemove, verify
from dpppsynth.release import certificate, load_release
from dpppsynth.reporting import write_report
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000)
MESH = regular_triangulation(SQUARE, shape=(8, 8))
EAST, WAVE = 0.8, -0.5
GRID = np.stack(np.meshgrid(np.linspace(5, 995, 100), np.linspace(5, 995, 100)), axis=-1).reshape(-1, 2)
POPULATION = np.random.default_rng(3).gamma(0.8, 1.0, (50, 50))


def east(xy):
    return xy[:, 0]


def wave(xy):
    return np.sin(xy[:, 1] / 80)


BOTH = {"distance east": east, "wave": wave}


def risk(xy):
    """Standard deviations: 288.7 m along x; of the wave over the square by itself."""
    z = wave(xy) - wave(GRID).mean()
    return np.exp(EAST * (xy[:, 0] - 500) / 288.7 + WAVE * z / wave(GRID).std())


def pattern(n=3000, seed=1, offset=None):
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 1000, (60 * n, 2))
    value = risk(xy) * (1 if offset is None else offset(xy))
    return PointPattern(xy[rng.random(len(xy)) < value / value.max()][:n], SQUARE)


@pytest.fixture(scope="module")
def release():
    return LGCPSynthesizer(1.0, alpha=20.0, covariates=BOTH).release(pattern(), 5)


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory):
    return release.save(tmp_path_factory.mktemp("effects") / "out")


def wrong(folder):
    """Checks that fail, but for that of the seed."""
    return {check.name for check in verify(folder).checks if not check.holds} - {"randomness"}


class TestPrior:
    def field(self):
        return SparseMatern(1.2, 300.0, 1.0).on(MESH)

    def columns(self):
        return Covariates(BOTH).on(MESH).values

    def test_covariance_and_determinant(self):
        base, columns = self.field(), self.columns()
        prior = with_effects(base, columns, 0.7)
        np.testing.assert_allclose(prior.covariance(), base.covariance() + 0.49 * columns @ columns.T, atol=1e-8)
        assert prior.log_det == pytest.approx(np.linalg.slogdet(prior.precision.toarray())[1])
        np.testing.assert_allclose((prior.root @ prior.root.T - prior.precision).toarray(), 0, atol=1e-9)

    def test_unknowns_of_a_field_give_it_back(self):
        prior = with_effects(self.field(), self.columns(), 0.7)
        field = 0.5 * self.columns()[:, 0]
        assert np.abs(prior.placement @ prior.unknowns_of(field) - field).max() < 0.2

    def test_posterior_is_that_of_dense_matrices(self):
        """Mode, evidence up to a constant of the prior, and covariance of effects, by a dense factor of the prior."""
        base, columns = self.field(), self.columns()
        masses = np.random.default_rng(2).gamma(2.0, 8.0, 64)
        likelihood = NoisyMasses(masses, 2.0, MESH.measure, np.eye(64), float(masses.sum()))
        prior = with_effects(base, columns, 0.7)
        sparse = NoisyMasses(masses, 2.0, MESH.measure, MESH.shares(MESH), float(masses.sum()))
        found = sparse_posterior(sparse, prior, tolerance=1e-10)
        root = np.hstack([np.linalg.cholesky(base.covariance()), 0.7 * columns])
        dense = laplace_posterior(likelihood, root, 0.0)
        np.testing.assert_allclose(found.field_mode, dense.field_mode, atol=1e-4)
        np.testing.assert_allclose(found.mode[-2:], 0.7 * dense.mode[-2:], atol=1e-4)
        covariance = np.linalg.inv(np.eye(66) + dense.root.T @ dense.root)[-2:, -2:] * 0.49
        last = np.eye(prior.size)[:, -2:]
        np.testing.assert_allclose(found.precision.solve(last)[-2:], covariance, rtol=1e-3)
        # A standard deviation of 40 000 draws is off by more than 2 % less than once in a million.
        fields, effects = found.drawn(40_000, np.random.default_rng(4))
        np.testing.assert_allclose(effects.std(axis=0), np.sqrt(np.diag(covariance)), rtol=0.03)
        np.testing.assert_allclose(np.cov(fields.T)[:3, :3], prior_to_posterior(dense)[:3, :3], rtol=0.1, atol=2e-3)


def prior_to_posterior(dense):
    inside = np.linalg.inv(np.eye(dense.root.shape[1]) + dense.root.T @ dense.root)
    return dense.basis @ inside @ dense.basis.T


class TestEffects:
    @pytest.mark.slow
    def test_true_ones_lie_within_some_standard_deviations(self, release):
        """Five of them: less than one false alarm in a million for each effect."""
        for name, true in zip(BOTH, (EAST, WAVE), strict=True):
            drawn = release.effects[name]
            assert abs(drawn.mean() - true) < 5 * drawn.std() + 0.02
            assert drawn.std() < 0.3
        assert release.effects["distance east"].mean() > 0.3

    @pytest.mark.slow
    def test_table(self, release):
        table = release.effects.summary()
        drawn = release.effects["wave"]
        sd = release.estimator.covariates.sd[1]
        assert list(table.index) == list(BOTH)
        assert table.loc["wave", ("per sd", "mean")] == pytest.approx(drawn.mean())
        assert table.loc["wave", ("per unit", "sd")] == pytest.approx(drawn.std() / sd)
        low, high = np.quantile(drawn, [0.05, 0.95])
        assert tuple(table.loc["wave", "per sd"])[2:] == pytest.approx((low, high))
        with pytest.raises(InputError, match="level"):
            release.effects.summary(2.0)
        with pytest.raises(KeyError):
            release.effects["north"]

    def test_draws_go_with_their_fields(self, release):
        """A field's own slope along x has the sign of what its effect lacks: correlation over draws."""
        slope = release.draws.flat @ (release.estimator.mesh.vertices[:, 0] - 500)
        assert np.isfinite(slope).all()
        design = release.estimator.covariates.values
        weight = release.estimator.measure
        parts = np.linalg.lstsq(design * weight[:, None] ** 0.5, (release.draws.flat * weight**0.5).T, rcond=None)[0]
        correlation = np.corrcoef(parts[1], release.effects["wave"])[0, 1]
        assert correlation > 0.5

    @pytest.mark.slow
    def test_where_n_is_secret(self):
        settings = LGCPSynthesizer(2.0, relation=AddRemove(), mesh=MESH, covariates=BOTH)
        found = settings.release(pattern(2000), 3, expected_n=2000)
        drawn = found.effects["distance east"]
        assert abs(drawn.mean() - EAST) < 5 * drawn.std() + 0.02

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("mechanism", ["tents", "cells"])
    def test_along_streets(self, mechanism):
        crossings = [[100.0 * i, 100.0 * j] for i in range(8) for j in range(8)]
        edges = [[8 * i + j, 8 * i + j + 1] for i in range(8) for j in range(7)]
        edges += [[8 * i + j, 8 * i + j + 8] for i in range(7) for j in range(8)]
        network = LinearNetwork(crossings, edges)
        rng = np.random.default_rng(2)
        edge, along = rng.integers(0, len(edges), 60_000), rng.random(60_000)
        xy = network.coordinates(np.column_stack([edge, along * 100]))
        value = np.exp(EAST * (xy[:, 0] - 350) / 230)
        kept = np.flatnonzero(rng.random(60_000) < value / value.max())[:4000]
        original = network.pattern(edge[kept], along[kept])
        found = LGCPSynthesizer(2.0, alpha=10.0, mechanism=mechanism, covariates={"east": east}).release(original, 1)
        assert found.mechanism == f"lgcp-{mechanism}"
        drawn, sd = found.effects["east"], found.estimator.covariates.sd[0]
        assert abs(drawn.mean() - EAST * sd / 230) < 5 * drawn.std() + 0.02


class TestRisk:
    @pytest.mark.slow
    @pytest.mark.parametrize("raster", [False, True])
    def test_its_average_over_the_population_is_one(self, raster, monkeypatch):
        """In every draw, so that few of them suffice."""
        monkeypatch.setattr("dpppsynth.inference.sparse_inference.MOST_DRAWS", 100)
        values = POPULATION if raster else POPULATION[:20, :20]
        offset = Offset.from_grid(values, (0, 0, 1000, 1000), "counts")
        synthesizer = LGCPSynthesizer(1.0, alpha=20.0, mesh=MESH, offset=offset, covariates={"east": east})
        found = synthesizer.release(pattern(1500, 2, offset))
        weight = offset(GRID)
        risks = found.relative_risk(GRID)
        assert (risks * weight).sum() / weight.sum() == pytest.approx(1, abs=0.02)
        assert np.corrcoef(np.log(risks), np.log(risk(GRID)))[0, 1] > 0.5

    @pytest.mark.slow
    def test_exceedance_counts_draws(self, release):
        at = GRID[::97]
        field = release.draws.flat.astype(float) @ release.estimator.mesh.basis(at).T.toarray()
        average = np.array([each.total for each in release.intensities(3, np.random.default_rng(1), source="draws")])
        np.testing.assert_allclose(average, len(pattern()), rtol=1e-4)
        risks = np.exp(field) * SQUARE.area / len(pattern())
        np.testing.assert_allclose(release.relative_risk(at), risks.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(release.exceedance(1.3, at), (risks > 1.3).mean(axis=0), atol=2e-3)

    @pytest.mark.slow
    def test_reports_and_pictures_show_it(self, release, folder, tmp_path):
        """A table of factors with their intervals, and maps; a release without offset and covariates has neither."""
        page = write_report(folder, tmp_path / "report.html").read_text(encoding="utf-8")
        assert "Relative risk and effects of covariates" in page
        low, middle, high = np.exp(np.quantile(release.effects["wave"], [0.05, 0.5, 0.95]))
        assert f"{middle:.3g} ({low:.3g} to {high:.3g})" in page
        run("plot", folder, "--out", tmp_path / "pictures")
        assert (tmp_path / "pictures" / "risk.png").stat().st_size > 10_000
        assert release.has_risk
        plain = LGCPSynthesizer(1.0, alpha=20.0, mesh=MESH, length_scale=300.0, inference="laplace")
        assert not plain.release(pattern(200, 1)).has_risk

    @pytest.mark.slow
    def test_refused(self, release):
        for threshold in (0, -1, np.nan, "1"):
            with pytest.raises(InputError, match=r"^threshold: "):
                release.exceedance(threshold, GRID[:2])
        with pytest.raises(InputError, match=r"^xy: "):
            release.relative_risk([[1.0, np.nan]])
        with pytest.raises(InputError, match=r"^risk_interval: .*effects.summary.*exceedance"):
            release.risk_interval(GRID[:2], 0.9)


def without_a_number(content):
    """The file with one value that is no number."""
    import h5py

    file = io.BytesIO(content)
    with h5py.File(file, "r+") as opened:
        reals = []
        opened.visititems(
            lambda _, each: reals.append(each) if getattr(each, "dtype", np.dtype(int)).kind == "f" else None
        )
        reals[-1][(0,) * reals[-1].ndim] = np.nan
    return file.getvalue()


class TestOnDisk:
    @pytest.mark.slow
    def test_effects_come_back(self, release, folder):
        assert not wrong(folder)
        again = load_release(folder)
        np.testing.assert_array_equal(again.effects["wave"], release.effects["wave"])
        assert again.estimator.to_dict() == release.estimator.to_dict()
        np.testing.assert_array_equal(again.estimator.covariates.values, release.estimator.covariates.values)
        renewed = again.infer(3)
        assert renewed.effects["wave"].mean() == pytest.approx(release.effects["wave"].mean(), abs=0.05)
        assert again.posterior["effect"].dims == ("chain", "draw", "covariate")

    def test_the_certificate_states_how_they_were_standardised(self, release, folder):
        stated = json.loads((folder / "certificate.json").read_text())["parameters"]["estimator"]["covariates"]
        assert stated["names"] == list(BOTH)
        assert stated["sd"][0] == pytest.approx(1000 / 12**0.5, rel=0.01)
        assert (stated["over"], stated["prior_sd"]) == ("window", 2.0)
        assert stated["fingerprint"] == release.estimator.covariates.fingerprint

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "change",
        [
            {"names": ["distance east"]},
            {"names": ["wave", "distance east"]},
            {"sd": [1.0, -1.0]},
            {"sd": [1, 1]},
            {"mean": ["a", "b"]},
            {"over": "people"},
            {"fingerprint": "0" * 64},
            {"prior_sd": 0.0},
            {"prior_sd": 1e9},
            {"note": "secret"},
        ],
    )
    def test_forged_statements(self, folder, change, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        cert["parameters"]["estimator"]["covariates"] |= change
        assert not self.verified(folder, cert, tmp_path)

    def test_forged_files(self, folder, tmp_path):
        for name in ("covariates.nc", "posterior.nc"):
            content = (folder / name).read_bytes()
            for changed in (without_a_number(content), content[:-8], content[:200]):
                cert = json.loads((folder / "certificate.json").read_text())
                assert not self.verified(folder, cert, tmp_path, {name: changed})

    def test_covariates_must_be_listed_and_there(self, folder, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        del cert["files"]["covariates.nc"]
        assert not self.verified(folder, cert, tmp_path)
        (tmp_path / "covariates.nc").unlink()
        assert wrong(tmp_path) == {"files"}

    def test_the_measure_follows_from_the_offset(self, folder, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        stated = cert["parameters"]["estimator"]
        stated["covariates"]["over"] = "window" if stated["offset"] else "offset"
        assert not self.verified(folder, cert, tmp_path)

    def verified(self, folder, cert, place, changed=None):
        for path in folder.iterdir():
            (place / path.name).write_bytes((changed or {}).get(path.name, path.read_bytes()))
        cert["files"] = {name: certificate.file_hash(place / name) for name in cert["files"]}
        cert["content_hash"] = certificate.content_hash(cert)
        (place / "certificate.json").write_text(plain_text(cert))
        return not wrong(place)

    def test_an_unchanged_copy_holds(self, folder, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        assert self.verified(folder, cert, tmp_path)

    @pytest.mark.slow
    def test_levels_have_files_of_their_own(self, tmp_path):
        points = pattern(2400)
        marked = PointPattern(points.xy, SQUARE, {"year": np.repeat(["a", "b"], 1200)})
        found = LGCPSynthesizer(1.0, alpha=20.0, mesh=MESH, covariates=BOTH).release_by(
            marked, by="year", levels=["a", "b"]
        )
        folder = found.save(tmp_path / "out")
        verify(folder).require()
        again = load_release(folder)
        for level in ("a", "b"):
            one, other = again.releases[level], found.releases[level]
            np.testing.assert_array_equal(one.effects["wave"], other.effects["wave"])


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"prior": "dense"}, "leave prior= out"),
            ({"mechanism": "field", "delta": 1e-6}, "take mechanism 'tents'"),
            ({"mechanism": "posterior-draw", "delta": 1e-6}, "take mechanism 'tents'"),
            ({"covariance": SparseMatern(1.0, 300.0, 1.0)}, "leave covariance= out"),
        ],
    )
    def test_settings_without_effects(self, settings, message):
        with pytest.raises(InputError, match=rf"^covariates: .*{message}"):
            LGCPSynthesizer(1.0, alpha=20.0, covariates=BOTH, **settings)

    def test_before_a_point_is_read(self):
        settings = LGCPSynthesizer(
            1.0, alpha=20.0, covariates={"hole": lambda xy: np.where(xy[:, 0] < 100, np.nan, 1.0)}
        )
        with pytest.raises(InputError, match=r"^covariates: 'hole': 10 % of the window has no value"):
            settings.check(SQUARE, n=2000)

    def test_functions_that_raise_are_named_by_check(self):
        settings = LGCPSynthesizer(1.0, alpha=20.0, covariates={"pump": lambda xy: 1 // 0})
        with pytest.raises(InputError, match=r"^covariates: 'pump': the function failed with Zero") as told:
            settings.check(SQUARE, n=2000)
        assert isinstance(told.value.__cause__, ZeroDivisionError)

    @pytest.mark.slow
    def test_releases_without_covariates(self):
        found = LGCPSynthesizer(1.0, alpha=20.0, mechanism="tents", prior="sparse").release(pattern(300), 1)
        with pytest.raises(InputError, match=r"^effects: this release has no covariates"):
            _ = found.effects
        assert found.relative_risk(GRID[:3]).shape == (3,)
