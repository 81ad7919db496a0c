"""Fields by Fourier coefficients: against the covariance of the plane and dense algebra."""

import numpy as np
import pytest
from support.fields import distances, matern

from dpppsynth.models.spectral_fields import SpectralField

SHAPE, SPACING = (9, 14), (2.0, 1.5)


def columns(seed=1):
    return np.random.default_rng(seed).normal(size=(SHAPE[0] * SHAPE[1], 2))


def dense(prior):
    """(V, V) S S', by its products."""
    return prior.field(prior.adjoint(np.eye(prior.shape[0] * prior.shape[1])))


def test_covariances_are_those_of_the_plane():
    """Also where the nodes' spacings differ; nothing wraps around as long as the range is short."""
    found = dense(SpectralField(SHAPE, SPACING, 1.7, 3.0))
    np.testing.assert_allclose(found, 1.7**2 * matern(distances(SHAPE, SPACING), 3.0), atol=0.02)
    np.testing.assert_allclose(np.diag(found), 1.7**2)


@pytest.mark.parametrize(("shape", "spacing"), [((24, 16), (1.0, 1.5)), ((1, 24), (1.0, 1.0)), ((24, 1), (1.0, 1.0))])
def test_long_ranges_are_as_smooth_as_in_the_plane(shape, spacing):
    """Differences of nodes nearby, in all directions, where covariances wrap around the torus; along a row too."""
    prior, apart = SpectralField(shape, spacing, 1.3, 40.0), distances(shape, spacing)
    near = (apart > 0) & (apart < 8)
    rough = 1.3**2 - dense(prior)[near]
    np.testing.assert_allclose(rough, 1.3**2 * (1 - matern(apart[near], 40.0)), rtol=0.15)


def test_details_are_a_second_field():
    """Details have an eighth of the range; both covariances add up."""
    both, one, other = (SpectralField(SHAPE, SPACING, *part) for part in ((1.7, 9.0, 0.6), (1.7, 9.0), (0.6, 9.0 / 8)))
    np.testing.assert_allclose(dense(both), dense(one) + dense(other), atol=1e-10)


@pytest.mark.parametrize("range_", [1.0, 8.0, 60.0])
@pytest.mark.parametrize("shape", [SHAPE, (8, 10), (1, 5)])
def test_products_are_adjoint(range_, shape):
    """For odd and even sides of the torus, with effects, and for several fields at once."""
    rng = np.random.default_rng(2)
    size = shape[0] * shape[1]
    prior = SpectralField(shape, SPACING, 0.8, range_, 0.4, rng.normal(size=(size, 2)))
    u, w = prior.white(3, rng), rng.normal(size=(3, size))
    np.testing.assert_allclose((prior.field(u) * w).sum(axis=1), prior.dot(u, prior.adjoint(w)))
    np.testing.assert_allclose(prior.field(u)[1], prior.field(u[1]))
    np.testing.assert_allclose(prior.adjoint(w)[2], prior.adjoint(w[2]))
    np.testing.assert_allclose(prior.effects_of(u), u[:, -2:].real)
    numbers = prior.to_real(u)
    np.testing.assert_allclose((numbers[0] * numbers[1]).sum(), prior.dot(u[0], u[1]))
    np.testing.assert_allclose(prior.of_real(numbers), u)


def test_white_noise_gives_the_prior():
    """Covariances of 4000 draws lie within six standard errors of the exact ones."""
    prior, rng = SpectralField((4, 5), (1.0, 1.0), 1.3, 3.0, 0.7, columns()[:20] * 0.5), np.random.default_rng(3)
    drawn = prior.field(prior.white(4000, rng))
    exact = dense(prior)
    error = np.sqrt((exact**2 + np.multiply.outer(np.diag(exact), np.diag(exact))) / 4000)
    assert (np.abs(drawn.T @ drawn / 4000 - exact) < 6 * error).all()
    assert prior.dot(prior.white(1, rng), prior.white(1, rng)).shape == (1,)


def test_unknowns_of_another_prior():
    """The same field is given, whatever range and deviation."""
    one = SpectralField(SHAPE, SPACING, 2.0, 5.0, 0.0, columns())
    other = SpectralField(SHAPE, SPACING, 0.7, 9.0, 0.5, columns())
    u = other.white(1, np.random.default_rng(4))[0]
    np.testing.assert_allclose(one.field(one.like(other, u)), other.field(u), atol=1e-10)


def test_no_deviation_leaves_the_effects():
    prior = SpectralField(SHAPE, SPACING, 0.0, 5.0, 0.0, columns())
    u = prior.white(1, np.random.default_rng(5))[0]
    np.testing.assert_allclose(prior.field(u), columns() @ u[-2:].real, atol=1e-12)


def test_noise_leaves_little_of_short_waves():
    prior = SpectralField((32, 32), (1.0, 1.0), 1.0, 8.0)
    seen, variance = prior.seen(4.0).reshape(prior.root.shape), prior.root**2
    assert seen[0, 0] == pytest.approx(variance[0, 0])
    # A wave of six nodes along the slower axis of a torus of 48.
    assert seen[8, 0] / variance[8, 0] == pytest.approx((1 + (4 * 2 * np.pi / 6) ** 2) ** -3)
