"""An even field among the priors: even originals are released as such, and others are not taken for it.

Seeds are fixed; weights of an even field differ from the bounds asked for by factors of hundreds.
"""

import json
from functools import cache

import arviz as az
import numpy as np
import pytest
from support.seams import chance_for_nuts

from dpppsynth import AddRemove, AlphaNeighbours, LGCPSynthesizer, PointPattern, Window, load_release
from dpppsynth.inference import LGCPInference, MaternInference
from dpppsynth.inference.field_inference import NO_RANGE
from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.privacy import verify
from dpppsynth.spatial.offset import Offset

SQUARE = Window.rectangle(0, 0, 1000, 1000)
AT = np.random.default_rng(1).uniform(0, 1000, (200, 2))
MESH = regular_triangulation(SQUARE, shape=(5, 5))


def even(n, seed=0):
    return PointPattern(np.random.default_rng(seed).uniform(0, 1000, (n, 2)), SQUARE)


def uneven(n, seed=0):
    """Three points in four lie in the left half."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 1000, (n, 2))
    xy[rng.random(n) < 1 / 2, 0] /= 2
    return PointPattern(xy, SQUARE)


def released(pattern, inference="laplace", **settings):
    settings = {"alpha": 25.0, "mechanism": "tents"} | settings
    return LGCPSynthesizer(1.0, inference=inference, **settings).release(pattern, 3)


@cache
def even_release(n):
    return released(even(n))


def weight(release):
    return release.diagnostics.set_index("length_scale")["weight"][NO_RANGE]


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [400, 3000])
def test_an_even_original_is_released_as_even(n):
    """Behind a dense prior, and behind a sparse one; without the even field neither is."""
    release = even_release(n)
    assert isinstance(release.estimator, LGCPInference if n == 400 else MaternInference)
    assert weight(release) > 0.9
    values = release.intensity(AT)
    np.testing.assert_allclose(values, n / 1e6, rtol=1e-4)
    rough = release.infer(3, even=False).intensity(AT)
    assert np.abs(rough / rough.mean() - 1).max() > 0.05


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [400, 3000])
def test_an_uneven_original_is_not(n):
    release = released(uneven(n))
    assert weight(release) < 1e-3
    assert release.intensity([[250.0, 500.0]])[0] > 1.4 * release.intensity([[750.0, 500.0]])[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [400, 3000])
def test_a_secret_size_leaves_the_level_unknown(n):
    release = LGCPSynthesizer(1.0, relation=AddRemove(), inference="laplace").release(even(n), 3, expected_n=n)
    assert weight(release) > 0.5
    values = release.intensity(AT)
    assert np.ptp(values) < 1e-3 * values.mean()
    assert values.mean() == pytest.approx(n / 1e6, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [AlphaNeighbours(25.0), AddRemove()])
def test_nuts_is_run_for_the_other_priors(relation):
    """All weight on the even field leaves nothing to sample; some leaves some."""
    given = {"relation": relation, "mesh": MESH, "alpha": None}
    size = {} if relation.n_is_public else {"expected_n": 60}
    with chance_for_nuts():
        few = LGCPSynthesizer(1.0, **given).release(even(60, seed=2), 4, **size)
    weights = few.diagnostics["weight"].to_numpy()
    assert 0 < weights[-1] < 1
    assert np.isfinite(few.diagnostics["rhat"][:-1][weights[:-1] > 0]).all()
    assert (few.draws.length_scale == NO_RANGE).mean() == pytest.approx(weights[-1], abs=0.01)


def test_an_even_field_follows_a_public_offset():
    """Even means in proportion to the offset."""
    offset = Offset.from_grid(np.array([[3.0], [1.0]]), SQUARE.bounds)
    rng = np.random.default_rng(4)
    xy = rng.uniform(0, 1000, (800, 2))
    kept = rng.random(800) < offset(xy) / offset(xy).max()
    release = released(PointPattern(xy[kept], SQUARE), offset=offset)
    assert weight(release) > 0.9
    ratio = release.intensity(AT) / offset(AT)
    assert np.ptp(ratio) < 1e-3 * ratio.mean()


def test_whoever_gives_a_prior_has_that_alone():
    for given in ({"length_scale": 200.0}, {"covariance": PoweredExponential(1.0, 200.0, 1.0)}):
        assert not LGCPSynthesizer(1.0, alpha=25.0, **given).plan(SQUARE, n=400).estimator.even
    assert LGCPSynthesizer(1.0, alpha=25.0).plan(SQUARE, n=400).estimator.even


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [400, 3000])
def test_certificates_state_it(n, tmp_path):
    folder = even_release(n).save(tmp_path / "out", source="draws", patterns=2)
    assert all(check.holds for check in verify(folder).checks if check.name != "randomness")
    opened = load_release(folder)
    assert opened.estimator.even
    assert weight(opened) > 0.9
    summary = az.summary(opened.posterior, var_names=["length_scale"], kind="stats")
    assert np.isfinite(summary["mean"]).all()
    path = folder / "certificate.json"
    stated = json.loads(path.read_text())
    # Without it, its draws are of a prior that the model has not.
    for forged, failing in ((False, "statistic"), (1, "bound"), ("true", "bound"), (None, "bound")):
        stated["parameters"]["estimator"]["even"] = forged
        path.write_text(json.dumps(stated))
        assert not all(check.holds for check in verify(folder).checks if check.name == failing)
