"""NUTS behind moved points: in windows, on streets and with types; what stays as it was, and what is written down.

Where chance stands in for NUTS, coordinates are standard normal, as they are under the Laplace approximation.
"""

from dataclasses import replace

import numpy as np
import pytest
import shapely
from support.moved_marks import ALONE, moved_marks
from support.seams import chance_for_nuts

import dpppsynth as dps
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify

# A hole, so that vertices are not all nodes; not square, so that axes cannot be exchanged.
WINDOW = dps.Window.polygon(shapely.box(0, 0, 1000, 700).difference(shapely.box(300, 150, 600, 450)))
PLACES = 200.0 * np.stack(np.meshgrid(np.arange(3), np.arange(2), indexing="ij"), axis=-1).reshape(-1, 2)
NUMBER = np.arange(6).reshape(3, 2)
EDGES = np.concatenate([np.stack([m[:-1].ravel(), m[1:].ravel()], axis=1) for m in (NUMBER, NUMBER.T)])
STREETS = dps.LinearNetwork(PLACES, EDGES)


def clustered(n):
    rng = np.random.default_rng(1)
    xy = np.vstack([rng.normal((800, 200), 60, (n, 2)), rng.uniform(0, 1, (4 * n, 2)) * (1000, 700)])
    return rng.permutation(xy[WINDOW.contains(xy)])[:n]


def planar(**settings):
    """A plan, and points for it; one prior, so that no chance of a choice is in what follows."""
    mesh = regular_triangulation(WINDOW, shape=(11, 8))
    made = dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", mesh=mesh, length_scale=300.0, **settings)
    plan = made.plan(WINDOW, n=1500)
    return changed(plan, sigmas=(1.5,)), dps.PointPattern(clustered(1500), WINDOW)


def explained():
    return planar(covariates={"east": lambda xy: xy[:, 0]})


def along_streets():
    rng = np.random.default_rng(2)
    edge = rng.choice(len(EDGES), 600, p=np.arange(len(EDGES)) / np.arange(len(EDGES)).sum())
    points = dps.PointPattern.at(np.column_stack([edge, rng.uniform(0, 200, 600)]), STREETS)
    plan = dps.LGCPSynthesizer(3.0, alpha=25.0, mechanism="moved", length_scale=200.0).plan(STREETS, n=600)
    return changed(plan, street_sigmas=(0.4,), street_ranges=(500.0,), detours=(0.0,)), points


def of_types():
    xy = clustered(1500)
    near = np.linalg.norm(xy - (800, 200), axis=1) < 150
    points = dps.PointPattern(xy, WINDOW, {"offence": np.where(near, "theft", "burglary")})
    made = moved_marks(1.0, dps.AlphaNeighbours(25.0, types="public"), ALONE, spacing=100.0)
    one = {"ranges": (300.0,), "sigmas": (1.5,), "details": (0.0,), "owns": (0.5,), "even": False}
    return changed(made.plan(WINDOW, n=1500), **one), points


def changed(plan, **settings):
    return replace(plan, estimator=replace(plan.estimator, **settings))


@pytest.mark.parametrize("make", [planar, explained, along_streets, of_types])
def test_fields_are_at_their_vertices(make):
    plan, points = make()
    statistic = plan.statistic.measure(points, 1)
    plain = plan.estimator.fit(statistic, 1)
    with chance_for_nuts():
        drawn = replace(plan.estimator, inference="nuts").fit(statistic, 1)
    assert drawn.fields.shape[0] == 4
    assert (drawn.fits.rhat[drawn.fits.weight > 0] < 1.01).all()
    assert (drawn.fits.ess[drawn.fits.weight > 0] > 400).all()
    # One law: medians of 200 draws are a tenth of a standard deviation off, and bent to the same masses but for that.
    one, other, spread = np.median(plain.flat, axis=0), np.median(drawn.flat, axis=0), drawn.flat.std(axis=0)
    assert np.sqrt(np.mean(((one - other) / spread) ** 2)) < 0.3
    assert spread.mean() == pytest.approx(plain.flat.std(axis=0).mean(), rel=0.2)
    if make is explained:
        one, other = (each.effects.ravel() for each in (plain, drawn))
        assert np.median(one) == pytest.approx(np.median(other), abs=0.4 * other.std())
        assert other.std() == pytest.approx(one.std(), rel=0.25)


def test_a_release_is_inferred_again_from_the_same_numbers(tmp_path):
    plan, points = planar()
    release = plan.release(points, 1)
    with chance_for_nuts():
        again = release.infer(1, inference="nuts", engine="pymc")
    assert again.statistic is release.statistic
    assert again.guarantee == release.guarantee
    before, after = (each.save(tmp_path / name) for each, name in ((release, "laplace"), (again, "nuts")))
    assert '"engine"' not in (before / "certificate.json").read_text()
    assert [each.holds for each in verify(after).checks] == [each.holds for each in verify(before).checks]
    opened = dps.load_release(after)
    assert (opened.estimator.inference, opened.estimator.engine) == ("nuts", "pymc")
    assert (opened.draws.fields == again.draws.fields).all()


def test_a_field_of_many_values_stays_an_approximation():
    """Before anything is sampled, and with a remedy that works; a release keeps what it has."""
    how = {"mechanism": "moved", "alpha": 25.0}
    fine, coarse = (regular_triangulation(WINDOW, shape=shape) for shape in ((130, 100), (60, 40)))
    with pytest.raises(
        dps.InputError,
        match=r"^inference: .* inference='laplace', plan with mechanism 'tents', or .* mesh of 10000 vertices",
    ):
        dps.LGCPSynthesizer(1.0, inference="nuts", mesh=fine, **how).check(WINDOW, n=100)
    for mended in (
        {"mesh": coarse, "inference": "nuts"},
        {"mesh": fine, "inference": "laplace"},
        {"mechanism": "tents", "inference": "nuts"},
    ):
        assert dps.LGCPSynthesizer(1.0, **how | mended).check(WINDOW, n=100).epsilon() == pytest.approx(1.0)


def test_of_too_many_segments_no_other_mesh_is_offered(monkeypatch):
    """The field along streets has segments by a rule of the noise; a coarser mesh of counts would not change them."""
    how = {"alpha": 0.5, "mechanism": "moved"}
    monkeypatch.setattr("dpppsynth.inference.judged_inference.MOST_VALUES", 100)
    with pytest.raises(
        dps.InputError, match=r"100 values at most, and this one has \d+; take [^,]*, plan with [^,]*\.$"
    ):
        dps.LGCPSynthesizer(1.0, inference="nuts", **how).plan(STREETS, n=100)
    for mended in ({"inference": "laplace"}, {"inference": "nuts", "mechanism": "tents"}):
        assert dps.LGCPSynthesizer(1.0, **how | mended).check(STREETS, n=100).epsilon() == pytest.approx(1.0)


def test_check_says_how_long():
    def said(shape, **settings):
        mesh = regular_triangulation(WINDOW, shape=shape)
        made = dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", inference="nuts", mesh=mesh, **settings)
        return dict(made.plan(WINDOW, n=500).estimator.table_rows())["inference"]

    assert "about 3 min on two idle cores" in said((55, 44))
    # An even field takes a run of its own, where effects of covariates are sought beside it.
    assert "about 4 min on two idle cores" in said((55, 44), covariates={"east": lambda xy: xy[:, 0]})
    assert "s on two idle cores" in said((20, 14), length_scale=300.0)


def test_of_many_points_nuts_and_the_approximation_agree(monkeypatch):
    """Real chains, behind so many points that the posterior is nearly normal; of 200 draws, as above."""
    monkeypatch.setattr("dpppsynth.inference.moved_runs.DRAWS", 500)
    mesh = regular_triangulation(WINDOW, shape=(5, 4))
    made = dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", mesh=mesh, length_scale=500.0, inference="nuts")
    plan = changed(made.plan(WINDOW, n=20_000), sigmas=(1.5,), details=(0.0,), even=False)
    drawn = plan.release(dps.PointPattern(clustered(20_000), WINDOW), 1)
    approximated = drawn.infer(2, inference="laplace")
    assert (drawn.diagnostics.divergences[drawn.diagnostics.weight > 0] == 0).all()
    one, other = (each.draws.flat for each in (drawn, approximated))
    spread = np.maximum(other.std(axis=0), 1e-3)
    assert np.sqrt(np.mean(((one.mean(axis=0) - other.mean(axis=0)) / spread) ** 2)) < 0.4
    assert one.std(axis=0).mean() == pytest.approx(spread.mean(), rel=0.25)
