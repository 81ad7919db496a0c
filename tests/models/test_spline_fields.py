"""Fields of B-splines on a lattice: averages of nodes, smooth where linear elements have kinks."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy
from support.cases import STREETS

from dpppsynth import Window
from dpppsynth.models import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.spline_fields import SplineLattice, SplinePlaces

WINDOW = Window.rectangle(100.0, -50.0, 500.0, 150.0)
LATTICE = SplineLattice(WINDOW, (9, 5))


def inside(n=400):
    rng = np.random.default_rng(1)
    corners = [[100.0, -50.0], [500.0, 150.0], [100.0, 150.0], [500.0, -50.0]]
    return np.vstack([np.column_stack([rng.uniform(100, 500, n), rng.uniform(-50, 150, n)]), corners])


def test_linear_functions_are_kept_up_to_the_border():
    weights, nodes = LATTICE.basis(inside()), LATTICE.mesh.vertices
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert weights.data.min() >= 0
    assert np.allclose(weights @ nodes, inside(), atol=1e-9)


def test_slopes_do_not_jump():
    """A line across the lattice, whose second differences would stay above a jump of the slope times the step."""
    values = np.random.default_rng(2).standard_normal(len(LATTICE.mesh.vertices))

    def sharpest(step):
        x = np.arange(110.0, 490.0, step)
        field = LATTICE.basis(np.column_stack([x, 20.0 + 0.1 * x])) @ values
        return np.abs(np.diff(field, 2)).max() / step

    # Half the step halves the change of the slope of a smooth function, and leaves that at a kink.
    assert sharpest(0.05) < 0.6 * sharpest(0.1)


@pytest.mark.parametrize("domain", [WINDOW, STREETS])
def test_a_long_field_is_the_matern_field(domain):
    lattice = SplineLattice(domain, (12, 12))
    xy = domain.coordinates(np.array([[0, 5.0], [1, 20.0]])) if domain is STREETS else inside(3)[:3]
    places = SplinePlaces(lattice, SimpleNamespace(vertices=xy))
    found = places.field(SparseMatern(2.0, 1.5 * domain.extent, 1.0)).covariance()
    # A spacing is a sixteenth of the range: splines average that little away.
    assert np.allclose(np.diag(found), 4.0, rtol=0.06)


def test_smooth_and_unseen_parts_make_the_whole_variance():
    mesh = regular_triangulation(WINDOW, shape=(25, 13))
    places, prior = SplinePlaces(LATTICE, mesh), SparseMatern(2.0, 110.0, 1.0)
    unseen = places.unseen(prior, 4000, np.random.default_rng(1))
    seen = np.diag(places.field(prior).covariance())
    inner = (np.abs(mesh.vertices - [300.0, 50.0]) < [140.0, 60.0]).all(axis=1)
    assert (unseen.var(axis=0) + seen)[inner].mean() == pytest.approx(4.0, rel=0.1)
    assert np.abs(places.smooth(unseen[:5])).max() < 1e-3
    smooth = places.basis @ np.random.default_rng(2).standard_normal(places.basis.shape[1])
    np.testing.assert_allclose(places.smooth(smooth), smooth, atol=1e-4)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("tents", [2.0, 4.0])
def test_all_parts_are_as_rough_within_a_tent_as_the_prior(parts, tents):
    """Places beside the average of a tent's square about them; the prior's variance by its covariance."""
    window = Window.rectangle(0.0, 0.0, 600.0, 600.0)
    mesh, prior = regular_triangulation(window, shape=(19, 19)), SparseMatern(1.0, 100.0 * tents, 1.0)
    places = SplinePlaces(SplineLattice(window, (6 * parts + 1,) * 2), mesh)
    rng = np.random.default_rng(1)
    about = np.stack(np.meshgrid(*[np.linspace(-50, 50, 5)] * 2), axis=-1).reshape(-1, 2)
    xy = rng.uniform(150, 450, (60, 2))
    beside = mesh.basis(xy) - sum(mesh.basis(xy + each) for each in about) / len(about)
    unseen = places.unseen(prior, 1500, rng) @ beside.T.toarray()
    seen = np.diag(beside @ places.field(prior).covariance() @ beside.T.toarray())

    def correlation(apart):
        x = np.maximum(np.sqrt(8) / prior.range * np.sqrt((apart**2).sum(axis=-1)), 1e-9)
        return x * scipy.special.k1(x)

    wanted = 1 - 2 * correlation(about).mean() + correlation(about[:, None] - about).mean()
    found = unseen.var(axis=0).mean() + seen.mean() + places.between / prior.range**2
    assert found == pytest.approx(wanted, rel=0.15)
