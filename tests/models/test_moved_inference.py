"""The field behind counts of moved points: recovery, coverage, offsets, covariates, holes.

Statistical thresholds have a false-alarm rate below 1e-5 where nothing else is said; seeds are fixed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import shapely

from dpppsynth import Window
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.core.errors import InputError
from dpppsynth.inference import judged_inference
from dpppsynth.inference.field_inference import Posterior
from dpppsynth.inference.moved_inference import MovedInference
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_posterior import integrals
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import gauss_rule
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.sampling import binomial_pattern

# Not square, so that axes cannot be exchanged.
WINDOW = Window.rectangle(0, 0, 1000, 600)
MESH = regular_triangulation(WINDOW, shape=(31, 19))
RATE, EXTENSION = 1 / 40, 20


def counted(xy, mesh=MESH, rate=RATE, extension=EXTENSION, seed=1):
    """Counts of moved points, as the mechanism has them."""
    rng, n = np.random.default_rng(seed), len(xy)
    length, angle = rng.gamma(2, 1 / rate, n), rng.uniform(0, 2 * np.pi, n)
    moved = xy + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    shape = np.array(mesh.recipe["shape"])
    low, high = np.reshape(mesh.domain.bounds, (2, 2))
    wide = shape + 2 * extension
    i, j = np.clip(np.rint((moved - low) / (high - low) * (shape - 1)).astype(int) + extension, 0, wide - 1).T
    places = {"shape": tuple(shape.tolist()), "spacing": tuple((high - low) / (shape - 1))}
    plan = SimpleNamespace(mesh=mesh, rate=rate, n=n, extension=extension, **places)
    return PrivateStatistic(plan, np.bincount(i * wide[1] + j, minlength=wide.prod()), "planar-laplace", True)


def inference(mesh=MESH, ranges=(100.0, 200.0, 400.0), sigmas=(0.5, 1.0, 2.0), **settings):
    return MovedInference(mesh, ranges, sigmas, **settings)


def squares(intensity_or_fields, mesh=MESH, side=200.0):
    """(k, 15) masses of squares under fields (k, V): integrals at the middles of small cells."""
    ticks = [np.arange(5.0, most, 10.0) for most in (1000, 600)]
    at = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(np.asarray(mesh.basis(at) @ intensity_or_fields.T.astype(float))).T
    i, j = (at // side).astype(int).T
    return np.array([np.bincount(i * 3 + j, row * 100.0) for row in density])


@pytest.mark.slow
def test_intervals_cover_what_was_drawn_from_the_prior():
    """Nine tenths of 450 masses, in 30 releases: between .80 and .975, seven and five of their standard errors off.

    Intervals half as wide would hold six tenths, and ones twice as wide nearly all. As often are masses below as above.
    """
    model, rng = inference(ranges=(300.0,), sigmas=(1.5,), details=(0.0,)), np.random.default_rng(2)
    held, below, above = [], [], []
    for seed in range(30):
        nodes = SimpleNamespace(channel=SimpleNamespace(shape=model.lattice.shape), spacing=model.lattice.spacing)
        prior = model.prior_at(nodes, 0)
        truth = model.normalise(prior.field(prior.white(1, rng))[:, model.lattice.nodes], 1000)
        xy = binomial_pattern(LogLinear(MESH, truth[0].astype(float), None), 1000, rng).positions
        drawn = squares(model.fit(counted(xy, seed=seed), rng).flat)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        exact = squares(truth)[0]
        held.append(np.mean((low <= exact) & (exact <= high)))
        below.append(np.mean(exact < low))
        above.append(np.mean(exact > high))
    assert 0.80 < np.mean(held) < 0.975
    assert max(np.mean(below), np.mean(above)) < 0.12


@pytest.mark.parametrize("extension", [1, EXTENSION])
def test_shapes_are_recovered(extension):
    """A tight spot near one corner, at its place; the field undoes the noise, so it is nearer than the counts are."""
    rng = np.random.default_rng(3)
    spot = np.array([800.0, 150.0]) + rng.normal(0, 25, (6000, 2))
    xy = np.vstack([spot, rng.uniform(0, 1, (4000, 2)) * (1000, 600)])
    statistic = counted(xy, extension=extension)
    found = inference().released(inference().fit(statistic, 1), statistic.definition)
    ticks = np.stack(np.meshgrid(np.arange(10.0, 1000, 20), np.arange(10.0, 600, 20), indexing="ij"), axis=-1)
    at = ticks.reshape(-1, 2)
    mass = found(at) * 400
    assert found.total == pytest.approx(10_000, rel=1e-4)
    assert np.linalg.norm(at[np.argmax(mass)] - (800, 150)) < 40
    near = np.linalg.norm(at - (800, 150), axis=1) < 50
    # 5240 points lie there, and 1868 moved ones: more than half of what noise took away is put back, and not too much.
    assert (5240 + 1868) / 2 < mass[near].sum() < 1.1 * 5240
    # The rest is flat: 4000 points over all of the window.
    far = np.linalg.norm(at - (800, 150), axis=1) > 250
    assert mass[far].sum() / far.sum() == pytest.approx(4000 / 1500, rel=0.15)


def test_even_points_get_an_even_field():
    """Most draws are even where points have no structure, and none where they have some."""
    rng = np.random.default_rng(4)
    even = rng.uniform(0, 1, (2000, 2)) * (1000, 600)
    model = inference(even=True)
    told = model.fit(counted(even), 1)
    assert (told.length_scale == 0).mean() > 0.3
    assert np.ptp(np.median(told.flat, axis=0)) < 0.1
    rough = np.vstack([even[:1000], even[:1000] * 0.3])
    assert (model.fit(counted(rough), 1).length_scale > 0).all()


def test_offsets_are_known():
    """Points in proportion to an offset leave nothing to the field, which is flat; the intensity follows the offset."""
    offset = Offset.from_grid([[1.0, 4.0], [2.0, 0.5]], WINDOW.bounds)
    truth = LogLinear(MESH, np.zeros(len(MESH.vertices)), offset)
    xy = binomial_pattern(truth, 4000, np.random.default_rng(5)).positions
    model = inference(offset=offset, even=True)
    statistic = counted(xy)
    told = model.fit(statistic, 1)
    assert np.ptp(np.median(told.flat, axis=0)) < 0.5
    found = model.released(told, statistic.definition)
    corners = np.array([[250.0, 150], [250, 450], [750, 150], [750, 450]])
    exact = truth(corners) / truth.total * 4000
    np.testing.assert_allclose(found(corners), exact, rtol=0.2)
    assert found.total == pytest.approx(4000, rel=1e-4)
    # Without it the field has to follow, blurred at the borders of the squares.
    assert np.ptp(np.median(inference().fit(counted(xy), 1).flat, axis=0)) > 1.2


def test_effects_of_covariates_are_found():
    """A log-linear trend with an effect of .8 per standard deviation; within .2, five standard errors about."""
    design = Covariates({"east": lambda xy: xy[:, 0]}).on(MESH, None)
    xy = binomial_pattern(LogLinear(MESH, 0.8 * design.values[:, 0], None), 3000, np.random.default_rng(6)).positions
    for model in (inference(covariates=design), inference(covariates=design, ranges=(200.0,), sigmas=(0.5,))):
        told = model.fit(counted(xy), 1)
        assert told.effects.shape == (*told.fields.shape[:2], 1)
        assert np.median(told.effects) == pytest.approx(0.8, abs=0.2)
        # Effects went into the fields.
        slope = np.polyfit(design.values[:, 0], np.median(told.flat, axis=0), 1)[0]
        assert slope == pytest.approx(0.8, abs=0.2)


def test_holes_stay_empty():
    """Nodes in a hole have no vertex and no mass; points that were moved into it are explained by moves."""
    hole = shapely.box(300, 150, 600, 450)
    window = Window.polygon(shapely.box(0, 0, 1000, 600).difference(hole))
    mesh = regular_triangulation(window, shape=(31, 19))
    assert len(mesh.vertices) < 31 * 19
    rng = np.random.default_rng(7)
    xy = rng.uniform(0, 1, (24_000, 2)) * (1000, 600)
    xy = xy[shapely.contains_xy(window.geometry, *xy.T)]
    model = inference(mesh)
    lattice = model.lattice.filled(model.measure)
    assert lattice.sum() == pytest.approx(window.area)
    assert (lattice[11:17, 7:12] == 0).all()
    assert lattice[5, 9] == pytest.approx((1000 / 30) ** 2)
    statistic = counted(xy, mesh)
    given = model.likelihood(statistic)
    assert given.shares(np.zeros(31 * 19)).reshape(31, 19)[13, 9] == 0
    found = model.released(model.fit(statistic, 1), statistic.definition)
    # About the hole, where whoever does not know of the moves sees a third less; a standard error is about .04.
    near = xy[shapely.contains_xy(hole.buffer(30), *xy.T)]
    assert found(near).mean() * window.area / len(xy) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("grid", [None, [[1.0, 4.0], [2.0, 0.5]]])
def test_released_masses_of_wide_splines_are_those_of_the_mean(grid):
    """The field is certain in the west and uncertain in the east, where the median alone lacks mass."""
    window = Window.polygon(shapely.box(0, 0, 1000, 600).difference(shapely.box(300, 150, 600, 450)))
    mesh = regular_triangulation(window, shape=(31, 19))
    model = inference(mesh, offset=None if grid is None else Offset.from_grid(grid, window.bounds))
    east = mesh.vertices[:, 0] > 500
    wide = regular_triangulation(WINDOW, spacing=100.0)
    rough = np.random.default_rng(11).normal(0, 1.5, (400, len(wide.vertices)))
    fields = (wide.basis(mesh.vertices) @ rough.T).T * np.where(east, 1.0, 0.01)
    told = Posterior(model.normalise(fields, 3000)[None], np.full((1, 400), 100.0))
    plan = counted(np.zeros((3000, 2)), mesh).definition
    found, rule = model.released(told, plan), gauss_rule(mesh, model.pieces, 6)

    def masses(fields):
        return model.wide(plan) @ integrals(fields.astype(float), rule, 1.0).mean(axis=0)

    mean, median = masses(told.flat), masses(np.median(told.flat, axis=0)[None])
    assert np.abs(median - mean).sum() > 0.15
    assert np.abs(masses(found.log_values[None]) - mean).sum() < 0.04
    assert found.total == pytest.approx(3000, rel=1e-4)
    # Draws that are all the same are released as they are.
    same = Posterior(np.repeat(told.fields[:, :1], 5, axis=1), np.full((1, 5), 100.0))
    np.testing.assert_allclose(model.released(same, plan).log_values, same.flat[0], atol=1e-5)


def test_released_intensity_has_no_creases():
    """The correction of the median bends nowhere much more than on average; by tents, 27 times at their borders.

    How uncertain the field is changes smoothly. Nodes of splines are 15 nodes of the field apart.
    """
    mesh = regular_triangulation(WINDOW, shape=(91, 55))
    uncertain = 1.5 * np.exp(-((mesh.vertices - (400, 300)) ** 2).sum(axis=1) / (2 * 200**2))
    model, rng = inference(mesh), np.random.default_rng(12)
    fields = model.normalise(uncertain * rng.normal(size=(50, len(uncertain))), 3000)
    told = Posterior(fields[None], np.full((1, 50), 100.0))
    released = model.released(told, counted(np.zeros((3000, 2)), mesh).definition)
    added = (released.log_values - np.median(fields, axis=0)).reshape(55, 91)
    for bends in (np.abs(np.diff(added, 2, axis=axis)) for axis in (0, 1)):
        assert bends.max() < 12 * bends.mean()


def test_blocks_choose_about_as_nodes_do(monkeypatch):
    rng = np.random.default_rng(8)
    xy = np.vstack([rng.normal((250, 400), 60, (1500, 2)), rng.uniform(0, 1, (500, 2)) * (1000, 600)])
    statistic = counted(xy)
    whole = squares(inference().fit(statistic, 1).flat).mean(axis=0)
    for name in ("FEW", "FEW_ALONG"):
        monkeypatch.setattr(judged_inference, name, 10)
    blocks = squares(inference().fit(statistic, 1).flat).mean(axis=0)
    np.testing.assert_allclose(blocks, whole, atol=25.0)


def test_draws_mirror_one_another():
    """Their median is that of the approximation: that of few draws is that of many."""
    rng = np.random.default_rng(9)
    statistic = counted(rng.normal((300, 200), 80, (800, 2)))
    model = inference(ranges=(200.0,), sigmas=(2.0,), details=(0.0,))
    one, other = (np.median(model.fit(statistic, seed).flat, axis=0) for seed in (1, 2))
    spread = np.std(model.fit(statistic, 1).flat, axis=0)
    # Without mirrors medians of 200 draws would differ by a tenth of the spread or more.
    assert np.mean(np.abs(one - other) / spread) < 0.06


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ranges": ()}, "ranges"),
        ({"ranges": (200.0, 100.0)}, "ranges"),
        ({"ranges": (5000.0,)}, "ranges"),
        ({"sigmas": (0.0,)}, "sigmas"),
        ({"details": (-1.0,)}, "details"),
        ({"inference": "exact"}, "inference"),
        ({"engine": "stan"}, "engine"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(InputError, match=f"^{words}: "):
        inference(**settings)
