"""Priors of one's own behind noised tents: other covariances, sparse Matern fields, any sparse precision."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth import AddRemove, InputError, LGCPSynthesizer, PointPattern, PrivacyCheckError, Window
from dpppsynth.core.errors import QualityError
from dpppsynth.inference import LGCPInference, MaternInference
from dpppsynth.inference.sparse_inference import PrecisionInference, fingerprint
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import PoweredExponential, regular_triangulation
from dpppsynth.models.covariances import GeneralisedCauchy, Matern
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy import verify
from dpppsynth.release import CoxRelease, load_release

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
MESH = regular_triangulation(SQUARE, shape=(6, 6))
PATTERN = PointPattern(np.random.default_rng(1).beta(2, 5, (300, 2)) * 1000, SQUARE)
AT = np.random.default_rng(2).uniform(0, 1000, (50, 2))
# Nothing else tells vertices apart: each is tied to its neighbours.
TIED = SparseMatern(1.0, 400.0, 1.0).on(regular_triangulation(SQUARE, shape=(6, 6)))


def precision() -> sp.csc_array:
    """The inverse of a covariance on the mesh."""
    inverse = np.linalg.inv(PoweredExponential(1.2, 300.0, 1.0).matrix(MESH))
    return sp.csc_array((inverse + inverse.T) / 2)


def made(covariance, **options) -> CoxRelease:
    given = {"inference": "laplace", "mesh": MESH} | options
    return LGCPSynthesizer(5.0, alpha=25.0, covariance=covariance, **given).release(PATTERN, rng=3)


def test_a_covariance_of_the_usual_kind_is_the_usual_prior():
    ours = made(PoweredExponential(2.0, 300.0))
    usual = made(None, length_scale=300.0)
    np.testing.assert_allclose(ours.intensity(AT), usual.intensity(AT), rtol=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("own", [Matern(1.5, 200.0, 1.5), GeneralisedCauchy(1.5, 200.0, 1.0, 2.0)], ids=repr)
def test_other_covariances_are_stated_and_read_again(own, tmp_path):
    release = made(own)
    assert isinstance(release.estimator, LGCPInference)
    np.testing.assert_array_equal(release.estimator.covariance(200.0).matrix(MESH), own.matrix(MESH))
    loaded = load_release(release.save(tmp_path / "out"))
    assert loaded.estimator.own == own
    np.testing.assert_array_equal(loaded.intensity(AT), release.intensity(AT))
    again = loaded.infer(rng=4)
    np.testing.assert_allclose(again.intensity(AT), release.intensity(AT), rtol=0.3)
    with pytest.raises(InputError, match=r"^covariance: it has a sigma and a length scale"):
        loaded.infer(sigma=3.0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "forge", [{"sigma": True}, {"sigma": 9.0}, {"kind": "cubic"}, {"power": 3.0}, {"more": 1.0}], ids=repr
)
def test_forged_covariances_are_refused(forge, tmp_path):
    folder = made(PoweredExponential(1.0, 300.0, 1.0)).save(tmp_path / "out")
    path = folder / "certificate.json"
    stated = json.loads(path.read_text())
    stated["parameters"]["estimator"]["covariance"] |= forge
    path.write_text(json.dumps(stated))
    assert not all(check.holds for check in verify(folder).checks if check.name == "bound")


def test_a_sparse_matern_field_is_taken_as_it_is():
    own = SparseMatern(1.7, 350.0, 1.0)
    release = made(own)
    estimator = release.estimator
    assert isinstance(estimator, MaternInference)
    assert (estimator.sigma, estimator.ranges, estimator.smoothness) == (1.7, (350.0,), (1.0,))
    assert release.intensity.total == pytest.approx(300, rel=1e-5)


def test_a_precision_is_the_prior_whose_covariance_it_inverts(monkeypatch):
    """The same posterior as by dense matrices, but for the Monte Carlo error of medians of draws."""
    # Dense posteriors take masses at the vertices alone, about the mode.
    monkeypatch.setattr(PrecisionInference, "sees_all", lambda self, likelihood: False)
    monkeypatch.setattr(PrecisionInference, "bent", lambda self, likelihood, mode, fields: fields)
    ours = made(precision())
    assert isinstance(ours.estimator, PrecisionInference)
    field = LGCPInference(MESH, (300.0,), 1.2, inference="laplace", own=PoweredExponential(1.2, 300.0, 1.0))
    dense = CoxRelease(ours.mechanism, ours.statistic, field).infer(rng=5)
    wider = CoxRelease(ours.mechanism, ours.statistic, PrecisionInference(MESH, precision() / 9)).infer(rng=5)
    near, far = (np.abs(np.log(each.intensity(AT) / dense.intensity(AT))).max() for each in (ours, wider))
    assert near < 0.25
    assert far > 0.5


def test_a_saved_release_states_the_precision_by_its_digest(tmp_path):
    release = made(precision())
    folder = release.save(tmp_path / "out", patterns=2, source="draws")
    assert {check.name for check in verify(folder).checks if not check.holds} <= {"randomness"}
    loaded = load_release(folder)
    assert loaded.estimator.digest == fingerprint(precision()) != fingerprint(2 * precision())
    np.testing.assert_array_equal(loaded.intensity(AT), release.intensity(AT))
    with pytest.raises(QualityError, match=r"^precision: the release states its digest alone"):
        loaded.infer()
    again = loaded.infer(rng=1, precision=precision())
    np.testing.assert_allclose(again.intensity(AT), release.intensity(AT), rtol=0.25)


def test_a_secret_number_of_points_takes_an_intercept():
    synthesizer = LGCPSynthesizer(5.0, relation=AddRemove(), covariance=TIED.precision, mesh=padded())
    release = synthesizer.release(PATTERN, rng=3, expected_n=250)
    assert 240 < release.intensity.total < 360


def padded():
    """A mesh with as many vertices as the precision has rows."""
    side = int(np.sqrt(TIED.precision.shape[0]))
    return regular_triangulation(SQUARE, shape=(side, side))


class TestRefusals:
    @pytest.mark.parametrize(
        ("covariance", "options", "message"),
        [
            ("wide", {}, "^covariance: needs one such as PoweredExponential"),
            (np.eye(36), {}, "^covariance: needs one such as"),
            (sp.eye_array(35), {}, "^covariance: a precision needs to be a symmetric matrix"),
            (-sp.eye_array(36), {}, "^covariance: the precision is not positive definite"),
            (sp.eye_array(36), {"mesh": None}, "^mesh: a precision of one's own belongs to the vertices"),
            (sp.eye_array(36), {"prior": "dense"}, "^prior: the given covariance is sparse"),
            (Matern(1.0, 100.0, 0.5), {"prior": "sparse"}, "^prior: the given covariance is dense"),
            (sp.eye_array(36), {"mechanism": "field", "delta": 1e-6}, "^covariance: mechanism 'field' takes none"),
            (Matern(1.0, 100.0, 0.5), {"length_scale": 10.0}, "^covariance: it has a sigma and a length scale"),
            (SparseMatern(1.0, 1e6, 1.0), {}, "^ranges: must be at most"),
        ],
        ids=str,
    )
    def test_by_plan(self, covariance, options, message):
        given = {"mesh": MESH, "inference": "laplace"} | options
        with pytest.raises(InputError, match=message):
            LGCPSynthesizer(1.0, alpha=25.0, covariance=covariance, **given).plan(SQUARE, n=300)

    def test_what_is_no_covariance_on_a_network(self, tmp_path):
        from dpppsynth.datasets import soho_deaths

        streets = soho_deaths(on="streets").domain
        mesh = network_mesh(streets, 300.0)
        with pytest.raises((InputError, PrivacyCheckError), match=r"^covariance: "):
            LGCPSynthesizer(1.0, alpha=25.0, covariance=Matern(1.0, 100.0, 2.5), mesh=mesh).plan(streets, n=300)
