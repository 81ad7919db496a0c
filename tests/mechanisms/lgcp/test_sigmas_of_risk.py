"""Prior standard deviations of a field beside a population, averaged by evidence."""

import json

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 2000, 2000)
TICKS = np.arange(12.5, 2000, 25)
PLACES = np.stack(np.meshgrid(TICKS, TICKS), axis=-1).reshape(-1, 2)
PEOPLE = Offset.from_grid(np.random.default_rng(2).gamma(0.5, 20.0, (40, 40)), SQUARE.bounds, "counts")
# Risk of blocks of 200 m.
RISK = np.exp(np.random.default_rng(3).normal(0, 0.5, (10, 10)))[tuple((PLACES[:, ::-1] // 200).astype(int).T)]
RISK = RISK / (PEOPLE(PLACES) @ RISK / PEOPLE(PLACES).sum())
TENTS = regular_triangulation(SQUARE, shape=(5, 5))


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    mass = PEOPLE(PLACES) * RISK
    xy = PLACES[rng.choice(len(mass), 1200, p=mass / mass.sum())] + rng.uniform(-12.5, 12.5, (1200, 2))
    return LGCPSynthesizer(10.0, alpha=100.0, offset=PEOPLE, mechanism="tents", prior="sparse").release(
        PointPattern(xy, SQUARE), rng
    )


def held(release):
    lower, upper = release.risk.surface.quantiles(PLACES, np.array([0.05, 0.95]))
    return ((lower <= RISK) & (upper >= RISK)).mean()


@pytest.mark.slow
def test_intervals_of_rough_risk_hold_more_than_under_one_wide_prior(release):
    """Wide priors take long ranges alone, and are sure of what they smooth away."""
    assert release.estimator.sigmas == (1.0, 0.5, 0.25)
    one = release.infer(1, sigma=2.0)
    assert one.estimator.sigmas == ()
    assert held(release) > 0.81 > held(one)


@pytest.mark.slow
def test_it_is_read_again_as_it_was_saved(release, tmp_path):
    folder = release.save(tmp_path / "out")
    again = load_release(folder)
    assert again.estimator.to_dict() == release.estimator.to_dict()
    np.testing.assert_array_equal(again.relative_risk(PLACES[::99]), release.relative_risk(PLACES[::99]))
    for forged in ([], [1.0, 1.0], [1, 0.5, 0.25], [3.0], [1.0, 0.5, "x"], [1.0, 0.5], True, None):
        cert = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
        cert["parameters"]["estimator"]["sigmas"] = forged
        cert["content_hash"] = certificate.content_hash(cert)
        changed = tmp_path / "forged"
        changed.mkdir(exist_ok=True)
        for path in folder.iterdir():
            (changed / path.name).write_bytes(path.read_bytes())
        (changed / "certificate.json").write_text(plain_text(cert), encoding="utf-8")
        assert {check.name for check in verify(changed).checks if not check.holds} - {"randomness"}, forged


def test_without_a_population_one_stands_alone():
    plain = LGCPSynthesizer(10.0, alpha=100.0, mechanism="tents").plan(SQUARE, n=1500).estimator
    assert plain.sigmas == ()
    assert plain.to_dict()["sigmas"] == []
    assert MaternInference(TENTS, (100.0, 200.0), (1.0,), sigmas=(1.0,), even=True).scales[:4] == (100.0, 200.0) * 2


@pytest.mark.parametrize("sigmas", [(2.0,), (3.0,), (0.5, 1.0), (1.0, 1.0), (0.0,), (-1.0,), [1.0], 1.0])
def test_refused(sigmas):
    with pytest.raises(InputError, match=r"^sigmas: "):
        MaternInference(TENTS, (100.0,), sigmas=sigmas)
