"""The field of sparse precision behind noised tents: plans, releases, files, and what dense fields miss."""

import copy
import json

import numpy as np
import pytest
import shapely
from support.command_line import run

from dpppsynth import (
    AddRemove,
    AlphaNeighbours,
    InputError,
    LGCPSynthesizer,
    LinearNetwork,
    PointPattern,
    Window,
    load_release,
)
from dpppsynth.core.errors import QualityError
from dpppsynth.inference import LGCPInference, MaternInference, StreetInference
from dpppsynth.inference.field_inference import MOST_SCALES
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.spatial.offset import Offset

SQUARE = Window.rectangle(0, 0, 1000, 1000)
TENTS = regular_triangulation(SQUARE, shape=(7, 7))
NEAR = AlphaNeighbours(5.0)


def hills(n, seed=0, hills=20, width=25.0):
    """Points on narrow hills, far narrower than a tenth of the window, and a tenth of them anywhere."""
    rng = np.random.default_rng(seed)
    centres, size = rng.uniform(60, 940, (hills, 2)), rng.dirichlet(np.ones(hills))
    xy = centres[rng.choice(hills, n, p=size)] + width * rng.standard_normal((n, 2))
    anywhere = (rng.random(n) < 0.1) | (np.abs(xy - 500).max(axis=1) > 500)
    xy[anywhere] = rng.uniform(0, 1000, (anywhere.sum(), 2))
    grid = (np.stack(np.meshgrid(*[np.arange(5, 1000, 10.0)] * 2, indexing="ij"), axis=-1)).reshape(-1, 2)
    square = ((grid[:, None] - centres) ** 2).sum(axis=2)
    truth = 0.9 * np.exp(-square / (2 * width**2)) @ size / (2 * np.pi * width**2) + 0.1e-6
    return PointPattern(xy, SQUARE), grid, truth


def distance(one, other):
    return 0.5 * np.abs(one / one.sum() - other / other.sum()).sum()


def test_a_thousand_points_get_a_sparse_field_unless_told():
    """Public parameters alone decide; a mesh or a length scale that is given keeps the dense one."""

    def kind(n=1000, domain=SQUARE, **settings):
        given = {"mechanism": "tents"} | settings
        return type(LGCPSynthesizer(1.0, alpha=5.0, **given).plan(domain, n=n).estimator)

    street = LinearNetwork([[0, 0], [1000, 0]], [[0, 1]])
    assert kind() is MaternInference
    assert kind(n=50, prior="sparse") is MaternInference
    assert kind(n=999) is LGCPInference
    assert kind(inference="nuts") is MaternInference
    for settings in ({"prior": "dense"}, {"length_scale": 200.0}, {"mesh": TENTS}):
        assert kind(**settings) is LGCPInference, settings
    assert kind(domain=street) is StreetInference
    assert kind(domain=street, prior="dense") is LGCPInference
    assert kind(mechanism="field", delta=1e-6) is LGCPInference
    secret = LGCPSynthesizer(1.0, relation=AddRemove()).plan(SQUARE, expected_n=2000)
    assert isinstance(secret.estimator, MaternInference)
    assert LGCPSynthesizer(1.0, alpha=5.0, mechanism="tents").plan(SQUARE, n=100).estimator.inference == "nuts"


@pytest.mark.parametrize(
    ("settings", "domain", "rule"),
    [
        (
            {"prior": "sparse", "inference": "nuts", "mesh": regular_triangulation(SQUARE, shape=(200, 200))},
            SQUARE,
            r"inference: NUTS takes a field of 12000 unknowns at most, and this one has \d+; take inference='laplace'",
        ),
        ({"prior": "dense", "mesh": regular_triangulation(SQUARE, shape=(80, 80))}, SQUARE, "prior: .* 6000 vertices"),
        ({"inference": "nuts", "mesh": regular_triangulation(SQUARE, shape=(70, 70))}, SQUARE, "inference: .* 2500"),
        ({"prior": "sparse", "length_scale": 1e5}, SQUARE, "ranges: must be at most 2000"),
        ({"prior": "rough"}, SQUARE, "prior: expected one of 'auto', 'dense', 'sparse', got 'rough'"),
        (
            {"prior": "sparse", "mechanism": "field", "delta": 1e-6},
            SQUARE,
            "prior: mechanism 'field' cannot take 'sparse'",
        ),
        (
            {"prior": "sparse", "mesh": regular_triangulation(SQUARE, shape=(400, 400))},
            SQUARE,
            "mesh: a field with .* unknowns is more than",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_the_plan(settings, domain, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        LGCPSynthesizer(1.0, alpha=5.0, **settings).plan(domain, n=2000)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"ranges": ()}, "ranges: needs a tuple of positive"),
        ({"ranges": (200.0, 100.0)}, "ranges: must increase"),
        ({"ranges": (100.0, 100.0)}, "ranges: must increase"),
        ({"ranges": tuple(range(1, MOST_SCALES + 2))}, "ranges: needs at most"),
        ({"smoothness": (0.5,)}, "smoothness: needs a tuple of some of"),
        ({"smoothness": ()}, "smoothness: needs a tuple"),
        ({"smoothness": (3.0, 1.0)}, "smoothness: needs a tuple"),
        ({"smoothness": (1.0, 1.0)}, "smoothness: needs a tuple"),
        ({"ranges": (1e-6,)}, "ranges: must increase from one to the next, from 0.002 on"),
        ({"ranges": (2001.0,)}, "ranges: must be at most 2000"),
        ({"sigma": 1e-155}, "sigma: must be at least 1e-150"),
        ({"sigma": 0.0}, "sigma: must"),
        ({"inference": "magic"}, "inference: expected"),
    ],
)
def test_settings_that_no_field_has_are_refused(settings, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        MaternInference(**({"mesh": TENTS, "ranges": (100.0, 200.0)} | settings))


def test_statistics_other_than_counts_and_tents_are_refused_by_the_plan():
    field = LGCPSynthesizer(1.0, alpha=5.0, mechanism="field", delta=1e-6).plan(SQUARE, n=100).statistic
    with pytest.raises(
        InputError, match=r"^prior: a Matern field of sparse precision stands behind noised tents or counts alone"
    ):
        MaternInference(TENTS, (100.0,)).require(field)


@pytest.fixture(scope="module")
def release():
    return LGCPSynthesizer(1.0, relation=NEAR, mechanism="tents").release(hills(2000)[0], 3)


def test_it_follows_narrow_hills(release):
    """Hills with a width of 25 m, which a dense field misses: by .17 of their mass, not .11."""
    _, grid, truth = hills(2000)
    assert distance(release.intensity(grid), truth) < 0.14


@pytest.mark.slow
def test_intensities_have_the_public_total(release):
    assert release.intensity.total == pytest.approx(2000, rel=1e-5)
    assert release.estimator.posterior_mean(release.draws).total == pytest.approx(2000, rel=1e-5)
    fields = release.draws.fields
    assert fields.dtype == np.float32
    assert fields.shape == (*release.draws.length_scale.shape, len(release.estimator.mesh.vertices))
    assert len(fields) == 1
    assert set(release.draws.length_scale.flat) <= set(release.estimator.ranges)


@pytest.mark.slow
def test_sources_of_patterns_differ_as_they_should(release):
    """One is the released intensity; draws vary among themselves more than patterns of one intensity do."""
    xy = np.array([[500.0, 500.0]])
    draws = [each(xy)[0] for each in release.intensities(50, np.random.default_rng(0), source="draws")]
    assert np.std(draws) > 0
    released, mean = (
        release.intensities(1, np.random.default_rng(0), source=source)[0](xy)[0] for source in ("released", "mean")
    )
    assert released == release.intensity(xy)[0]
    assert mean == pytest.approx(np.mean(np.exp(release.draws.flat @ release.estimator.mesh.basis(xy).T)), rel=1e-5)
    for source in ("draws", "mean", "released"):
        assert len(release.sample(1, 1, source=source, fixed_n=True)[0]) == 2000


def test_intervals_hold_most_of_the_truth(release):
    """Pointwise 90 % intervals on hills hold the truth at most places: not a proof of coverage, which is measured."""
    _, grid, truth = hills(2000)
    bounds = release.interval(grid, 0.9)
    assert (bounds.lower < bounds.upper).all()
    inside = (bounds.lower < 2000 * truth) & (2000 * truth < bounds.upper)
    assert inside.mean() > 0.6


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_number_of_points_may_be_secret(epsilon):
    """Patterns, from draws as well, have about as many points as the noised masses tell of; not a fifth more."""
    pattern, grid, truth = hills(2000)
    release = LGCPSynthesizer(epsilon, relation=AddRemove()).release(pattern, 5, expected_n=1500)
    total = release.statistic.masses.sum()
    assert 1500 < total < 2500
    assert release.intensity.total == pytest.approx(total, rel=0.03)
    totals = release.estimator.posterior_mean(release.draws).totals
    spread = np.sqrt(total + 2 * release.statistic.noise_scale**2 * len(release.statistic.masses))
    # Means and standard deviations of that many normal numbers: 6 standard errors, below 1e-6 in all.
    assert abs(totals.mean() - total) < 6 * spread / np.sqrt(len(totals))
    assert abs(totals.std() / spread - 1) < 6 / np.sqrt(2 * len(totals))
    assert distance(release.intensity(grid), truth) < 0.7


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("window", "kind"),
    [
        (Window.rectangle(0, 0, 10_000, 1000), MaternInference),
        (Window.rectangle(0, 0, 100_000, 10), MaternInference),
        (Window.polygon(shapely.LineString([(0, 0), (10_000, 10_000)]).buffer(40)), LGCPInference),
    ],
    ids=["long", "very long", "river"],
)
def test_no_window_is_refused_for_its_shape(window, kind):
    for n in (1000, 100_000):
        tents = LGCPSynthesizer(1.0, alpha=5.0, mechanism="tents")
        assert isinstance(tents.plan(window, n=n).estimator, kind)


@pytest.mark.slow
def test_a_public_offset_multiplies_the_intensity():
    """Without points in the western half, the offset alone says that nobody lives in the eastern."""
    offset = Offset.from_grid(np.array([[1.0, 4.0], [1.0, 4.0]]), SQUARE.bounds)
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 1000, (1500, 2)), SQUARE)
    release = LGCPSynthesizer(1.0, relation=NEAR, prior="sparse", mesh=TENTS, offset=offset).release(pattern, 1)
    step = release.intensity([[499.9, 300.0], [500.1, 300.0]])
    assert step[1] / step[0] == pytest.approx(4, rel=0.05)
    assert release.intensity.total == pytest.approx(1500, rel=1e-5)


@pytest.mark.slow
def test_it_can_be_inferred_again_with_other_settings(release):
    again = release.infer(0, ranges=(100.0,), sigma=1.0)
    assert set(again.draws.length_scale.flat) == {100.0}
    with pytest.raises(InputError, match=r"^infer: unknown setting \['length_scales'\]; expected some of"):
        release.infer(length_scales=(100.0,))


@pytest.mark.slow
def test_a_mode_that_is_not_found_keeps_the_statistic(release):
    """A field that varies by e^1e6 overflows: the paid statistic survives on the error."""
    with pytest.raises(QualityError) as raised:
        release.infer(sigma=1e150)
    assert raised.value.release.statistic is release.statistic


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparse") / "public"
    release = LGCPSynthesizer(1.0, relation=NEAR, prior="sparse", mesh=TENTS).release(hills(200)[0])
    release.save(folder)
    return release, folder


def test_a_saved_release_verifies_and_opens_as_it_was(saved):
    release, folder = saved
    assert verify(folder / "certificate.json").holds
    opened = load_release(folder)
    xy = np.random.default_rng(0).uniform(0, 1000, (50, 2))
    np.testing.assert_array_equal(opened.intensity(xy), release.intensity(xy))
    assert opened.estimator.to_dict() == release.estimator.to_dict()
    run("verify", folder)
    assert "Matern" in dict(opened.estimator.table_rows())["field"]


FORGED = {
    "another key": lambda e: e.update(note=1),
    "no sigma": lambda e: e.pop("sigma"),
    "sigma as text": lambda e: e.update(sigma="CANARY"),
    "unsorted": lambda e: e.update(ranges=e["ranges"][::-1]),
    "smoothness true": lambda e: e.update(smoothness=[True]),
    "smoothness": lambda e: e.update(smoothness=[2]),
    "repeated": lambda e: e.update(smoothness=[1.0, 1.0, 3.0]),
    "no list": lambda e: e.update(smoothness=1.0),
    "mesh": lambda e: e.update(mesh={"builder": "regular", "kind": "triangle", "shape": [8, 8]}),
    "nuts": lambda e: e.update(inference="nuts"),
    "kind": lambda e: e.update(kind="field"),
    "offset": lambda e: e.update(offset="CANARY"),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_forged_estimators_do_not_verify(saved, forge):
    from dpppsynth.release.rederive import rederive

    _, folder = saved
    stated = json.loads((folder / "certificate.json").read_text())["parameters"]
    rederive("lgcp-tents", stated, NEAR, SQUARE)
    forged = copy.deepcopy(stated)
    forge(forged["estimator"])
    with pytest.raises((InputError, LookupError, TypeError, ValueError)):
        rederive("lgcp-tents", forged, NEAR, SQUARE)
