"""Centres of normal approximations against exact posteriors."""

import numpy as np
import pytest
import scipy

from dpppsynth.models.likelihood import MassesInLaplaceNoise, NoisyMasses, counts_values
from dpppsynth.models.posterior_centre import mean_centred, mean_gradient
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern, field_of_precision
from dpppsynth.models.sparse_posterior import log_density, sparse_posterior
from dpppsynth.spatial.domains import Window

MESH = regular_triangulation(Window.rectangle(0, 0, 1000, 800), shape=(6, 5))
COUNTS = np.random.default_rng(5).poisson(np.linspace(0.2, 9, 30)).astype(float)
SHARES = MESH.shares(MESH)
SCALE, SD = 2.0, 1.5


def rated(kind, n):
    """A likelihood, and the level of the field at which about its points are expected."""
    return kind(COUNTS, SCALE, MESH.measure, SHARES, n), 0.0 if n else float(np.log(150 / MESH.measure.sum()))


@pytest.mark.parametrize("kind", [NoisyMasses, MassesInLaplaceNoise])
@pytest.mark.parametrize("n", [None, COUNTS.sum()])
def test_gradient_of_one_field_is_that_of_the_log_posterior(kind, n):
    likelihood, centre = rated(kind, n)
    prior = SparseMatern(1.0, 400.0, 1.0).on(MESH)
    prior = prior if n else prior.with_intercept(2.0)
    fit = sparse_posterior(likelihood, prior, centre)
    some = fit.mode[:, None] + np.random.default_rng(2).normal(size=(prior.size, 3))
    each = [log_density(likelihood, prior, centre, one)[1] for one in some.T]
    np.testing.assert_allclose(mean_gradient(fit, likelihood, some), np.mean(each, axis=0), atol=1e-9)


def test_centre_is_near_the_posterior_mean_where_vertices_are_independent():
    """By quadrature, one vertex at a time. The modes all lie on one side, so that their errors add up."""
    likelihood, centre = rated(MassesInLaplaceNoise, None)
    fit = sparse_posterior(likelihood, field_of_precision(scipy.sparse.eye_array(30) / SD**2, MESH), centre)
    at = np.linspace(-9.0, 6.0, 1501) * SD
    masses = MESH.measure[:, None] * np.exp(centre + at)
    values = [
        counts_values(each, np.full(len(at), count), SCALE) for each, count in zip(masses, COUNTS, strict=True)
    ] - at**2 / (2 * SD**2)
    weight = np.exp(values - values.max(axis=1, keepdims=True))
    mean = weight @ at / weight.sum(axis=1)
    off, moved = (each - mean for each in (fit.mode, mean_centred(fit, likelihood, np.random.default_rng(3)).mode))
    assert off.min() > 0.15
    assert np.abs(moved).mean() < np.abs(off).mean() / 2
    assert abs(moved.mean()) < off.mean() / 4


def test_centre_of_a_normal_posterior_is_its_mode():
    """With many points and little noise all but the mode is gone."""
    likelihood = NoisyMasses(1e6 * MESH.measure / MESH.measure.sum(), 1.0, MESH.measure, SHARES, None)
    centre = float(np.log(1e6 / MESH.measure.sum()))
    fit = sparse_posterior(likelihood, SparseMatern(1.0, 400.0, 1.0).on(MESH).with_intercept(1.0), centre)
    moved = mean_centred(fit, likelihood, np.random.default_rng(3)).mode - fit.mode
    assert np.abs(fit.prior.placement @ moved).max() < 0.01


def test_fields_of_which_nothing_is_known_have_no_such_centre():
    """A standard deviation of six: the mean of exp of a few draws is one of them."""
    likelihood, centre = rated(MassesInLaplaceNoise, None)
    fit = sparse_posterior(likelihood, field_of_precision(scipy.sparse.eye_array(30) / 36, MESH), centre)
    assert mean_centred(fit, likelihood, np.random.default_rng(3)) is None
