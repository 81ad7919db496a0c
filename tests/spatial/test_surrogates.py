"""Surrogate intensities: three kinds, each of the public total, the same in every run."""

import numpy as np
import pytest
import shapely

from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential, factor
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.surrogates import surrogates

SQUARE = Window.rectangle(0, 0, 1000, 1000)
RING = Window.polygon(shapely.Point(500, 500).buffer(400).difference(shapely.Point(500, 500).buffer(100)))


def three(window=SQUARE, n=250.0, length_scale=200.0, shape=(21, 21), sigma=1.6):
    mesh = regular_triangulation(window, shape=shape)
    return surrogates(mesh, factor(PoweredExponential(sigma, length_scale).matrix(mesh)), n, length_scale)


@pytest.mark.parametrize("window", [SQUARE, RING], ids=["square", "ring"])
@pytest.mark.parametrize("n", [1.0, 250.0, 1e5])
@pytest.mark.parametrize("shape", [(3, 3), (21, 21)], ids=str)
def test_integrals_are_the_public_total(window, n, shape):
    kinds = three(window, n, shape=shape)
    assert [kind.name for kind in kinds] == ["homogeneous", "prior draw", "half in one cell"]
    for kind in kinds:
        assert kind.intensity.total == pytest.approx(n, rel=1e-9), kind.name


def test_are_the_same_in_every_run_whatever_the_global_generator():
    np.random.seed(1)  # noqa: NPY002 - the point is that it does not matter
    first = three()
    np.random.seed(2)  # noqa: NPY002
    grid = np.random.default_rng(3).uniform(0, 1000, (200, 2))
    for one, other in zip(first, three(), strict=True):
        np.testing.assert_array_equal(one.intensity(grid), other.intensity(grid))


def test_the_homogeneous_one_is_flat():
    grid = np.random.default_rng(3).uniform(0, 1000, (200, 2))
    np.testing.assert_allclose(three()[0].intensity(grid), 250 / 1e6, rtol=1e-12)


def test_the_prior_draw_varies_as_the_prior_says():
    """Standard deviation over the window of one draw of a field with standard deviation 1.6: within a factor of two."""
    field = three(length_scale=80.0)[1].intensity
    assert isinstance(field, LogLinear)
    assert 0.8 < field.log_values.std() < 3.2
    assert three(sigma=1e-6)[1].intensity.log_values.std() < 1e-5


@pytest.mark.parametrize("window", [SQUARE, RING], ids=["square", "ring"])
def test_half_lies_in_one_cell_inside_the_window(window):
    clustered = three(window)[2].intensity
    xy, weight = clustered.mesh.pieces.corners.mean(axis=1), clustered.mesh.pieces.weight
    mass = clustered(xy) * weight
    centre = xy[np.argmax(clustered(xy))]
    assert window.contains(centre[None])[0]
    near = np.hypot(*(xy - centre).T) < 200
    assert 0.5 < mass[near].sum() / mass.sum() < 0.75
    assert weight[near].sum() / weight.sum() < 0.3


@pytest.mark.parametrize("cells", [[[1.0, 9.0], [0.0, 3.0]], [[0.0, 0.0], [7.0, 0.0]]], ids=["four", "one"])
def test_they_follow_a_public_offset(cells):
    """Their risk is even, that of a prior, or twice as high where half of the points lie among most people."""
    mesh = regular_triangulation(SQUARE, shape=(21, 21))
    offset = Offset.from_grid(cells, SQUARE.bounds, "counts")
    root = factor(PoweredExponential(0.5, 200.0).matrix(mesh))
    even, prior, half = (each.intensity for each in surrogates(mesh, root, 250.0, 200.0, offset))
    xy = np.random.default_rng(3).uniform(0, 1000, (500, 2))
    np.testing.assert_allclose(even(xy), 250 * offset(xy) / np.sum(cells), rtol=1e-9)
    assert not any(each(xy)[offset(xy) == 0].any() for each in (even, prior, half))
    at, area = mesh.midpoints()
    risk = [each(at[offset(at) > 0]) / offset(at[offset(at) > 0]) for each in (prior, half)]
    np.testing.assert_allclose(np.std(np.log(risk[0])), 0.5, rtol=0.8)
    near = np.hypot(*(at - at[np.argmax(half(at))]).T) < 200
    for each, low, high in ((even, 0.0, 0.5), (half, 0.5, 0.8)):
        assert each.total == pytest.approx(250, rel=1e-6)
        assert low < (each(at) * area)[near].sum() / 250 < high
