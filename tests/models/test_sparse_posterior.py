"""The posterior of sparse fields: against the dense one, exact linear algebra, and on 250 hard statistics.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth import Window
from dpppsynth.core.errors import QualityError
from dpppsynth.models import NoisyMasses, laplace_posterior, refine, regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_posterior import sparse_posterior

TENTS = regular_triangulation(Window.rectangle(0, 0, 1000, 1000), shape=(6, 6))
MESH = refine(TENTS, 2)
SHARES = TENTS.basis(MESH.vertices).T


def statistic(masses, noise_scale, n):
    return NoisyMasses(np.asarray(masses, dtype=float), noise_scale, MESH.measure, sp.csr_array(SHARES), n)


def noisy(seed, total=300.0, noise_scale=2.0):
    rng = np.random.default_rng(seed)
    return rng.poisson(total * rng.dirichlet(np.ones(36))) + rng.laplace(scale=max(noise_scale, 1e-9), size=36)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [300.0, None])
@pytest.mark.parametrize("noise_scale", [0.0, 3.0])
@pytest.mark.parametrize("nu", [1.0, 3.0])
def test_sparse_and_dense_posteriors_agree(n, noise_scale, nu):
    """Mode, evidence up to a constant shared by priors, variances, and the covariance of draws."""
    evidence = []
    for range_ in (200.0, 500.0):
        prior, centre = SparseMatern(1.6, range_, nu).on(MESH), 0.0
        if n is None:
            prior, centre = prior.with_intercept(2.0), float(np.log(300 / MESH.measure.sum()))
        # Counts without noise may have several modes; these have one.
        masses = noisy(2, noise_scale=0.0).clip(0) if noise_scale == 0 else noisy(1, noise_scale=noise_scale)
        sparse = sparse_posterior(statistic(masses, noise_scale, n), prior, centre, tolerance=1e-8, steps=1000)
        root = np.linalg.cholesky(prior.covariance() + 1e-9 * np.eye(len(MESH.vertices)))
        shares = SHARES.toarray()
        dense = laplace_posterior(NoisyMasses(masses, noise_scale, MESH.measure, shares, n), root, centre)
        np.testing.assert_allclose(sparse.field_mode, dense.field_mode, atol=2e-3)
        evidence.append((sparse.log_evidence, dense.log_evidence))
        inner = np.linalg.inv(np.eye(len(root)) + dense.root.T @ dense.root)
        placed = prior.placement.toarray()
        found = np.diag(placed @ sparse.precision.solve(placed.T))
        np.testing.assert_allclose(found, np.diag(root @ inner @ root.T), rtol=1e-3)
    (one, first), (two, second) = evidence
    assert one - two == pytest.approx(first - second, abs=1e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [300.0, None])
def test_draws_have_the_posterior_covariance(n):
    prior, centre = SparseMatern(1.2, 300.0, 1.0).on(MESH), 0.0
    if n is None:
        prior, centre = prior.with_intercept(2.0), float(np.log(300 / MESH.measure.sum()))
    posterior = sparse_posterior(statistic(noisy(2), 2.0, n), prior, centre)
    draws = posterior.draw(20_000, np.random.default_rng(7)) - posterior.field_mode
    covariance = prior.placement @ posterior.precision.solve(prior.placement.toarray().T)
    white = np.linalg.solve(np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance))), draws.T)
    moment = white @ white.T / len(draws)
    # Entries are means of 20 000 products of standard normals: 6.5 standard errors, 14 641 entries, below 1e-6.
    assert np.abs(moment - np.eye(len(moment))).max() < 6.5 * np.sqrt(2 / len(draws))


def test_a_shift_of_the_field_changes_nothing_where_the_number_of_points_is_known():
    """Without the two columns that it takes away, the information would see one."""
    prior = SparseMatern(1.0, 300.0, 1.0).on(MESH)
    posterior = sparse_posterior(statistic(noisy(3), 2.0, 300.0), prior)
    level = np.linalg.lstsq(prior.placement.toarray(), np.ones(len(MESH.vertices)), rcond=None)[0]
    information = posterior.information
    total = information.root @ (information.root.T @ level)
    rest = information.columns @ information.middle @ (information.columns.T @ level)
    np.testing.assert_allclose(total, -rest, atol=1e-8 * np.abs(total).max())


def hard(rng):
    """A statistic that leads Newton's method astray: empty, one full cell, noise a hundred times the counts, ..."""
    kind, total = rng.integers(5), 10.0 ** rng.uniform(0, 6)
    noise_scale = float(10.0 ** rng.uniform(-2, 1))
    exact = np.zeros(36)
    if kind == 1:
        exact[rng.integers(36)] = total
    elif kind == 2:
        exact, noise_scale = rng.poisson(1.0, 36).astype(float), 100.0
    elif kind == 3:
        exact, noise_scale = rng.poisson(total * rng.dirichlet(np.full(36, 0.05))).astype(float), 0.0
    elif kind == 4:
        exact = rng.poisson(total * rng.dirichlet(np.full(36, 0.05))).astype(float)
    n = None if rng.random() < 0.3 else float(max(1.0, exact.sum()))
    return exact + (rng.laplace(scale=noise_scale, size=36) if noise_scale else 0), noise_scale, n


@pytest.mark.slow
@pytest.mark.parametrize("own_law", [False, True])
def test_modes_of_hard_statistics_are_found(own_law):
    """250 of them, under short and long, rough and smooth, weak and strong priors."""
    rng = np.random.default_rng(2024)
    priors = [SparseMatern(s, r, nu).on(MESH) for s in (0.5, 3.0) for r in (120.0, 600.0) for nu in (1.0, 3.0)]
    for _ in range(250):
        masses, noise_scale, n = hard(rng)
        prior, centre = priors[rng.integers(len(priors))], 0.0
        if n is None:
            prior, centre = prior.with_intercept(2.0), float(np.log(max(1.0, masses.sum()) / MESH.measure.sum()))
        likelihood = statistic(masses, noise_scale, n)
        likelihood = likelihood.own_law if own_law else likelihood
        posterior = sparse_posterior(likelihood, prior, centre)
        assert np.isfinite(posterior.field_mode).all()
        assert np.diag(posterior.precision.solve(np.eye(prior.size))).min() > 0
        # At a mode the gradient of likelihood and prior cancel: measured in posterior standard deviations.
        slope = prior.placement.T @ likelihood_gradient(likelihood, posterior.field_mode)
        gradient = slope - prior.precision @ posterior.mode
        assert gradient @ posterior.precision.solve(gradient) < 0.51


def likelihood_gradient(likelihood, w):
    """Gradient (V,) in the field, from the dense likelihood."""
    law = type(likelihood)
    dense = law(likelihood.masses, likelihood.noise_scale, MESH.measure, SHARES.toarray(), likelihood.n)
    return dense.log_density(w)[1]


def test_a_mode_that_is_not_found_is_said():
    with pytest.raises(QualityError, match="mode of the field was not found"):
        sparse_posterior(statistic(noisy(4), 2.0, 300.0), SparseMatern(1.0, 300.0, 1.0).on(MESH), steps=1)


@pytest.mark.parametrize("rounds", [0, 1, 10])
@pytest.mark.parametrize("n", [300.0, None])
def test_rough_newton_steps_lead_to_the_same_mode(monkeypatch, rounds, n):
    """With a factor at each step, with conjugate gradients that give up, and as it is."""
    prior = SparseMatern(1.6, 300.0, 1.0).on(MESH)
    prior = prior if n else prior.with_intercept(2.0)
    likelihood = statistic(noisy(3), 2.0, n)
    fit = sparse_posterior(likelihood, prior, 1.0, tolerance=1e-10)
    monkeypatch.setattr("dpppsynth.models.sparse_posterior.MOST_ROUNDS", rounds)
    other = sparse_posterior(likelihood, prior, 1.0, tolerance=1e-10)
    np.testing.assert_allclose(other.field_mode, fit.field_mode, atol=1e-5)
    # Machines round otherwise, and a mode is found to 1e-5 of a posterior standard deviation.
    assert other.log_evidence == pytest.approx(fit.log_evidence, abs=1e-4)


@pytest.mark.parametrize("n", [300.0, None])
def test_information_times_a_change_is_its_square(n):
    """Newton steps by conjugate gradients and the factor solve the same equations."""
    prior = SparseMatern(1.6, 300.0, 1.0).on(MESH)
    prior = prior if n else prior.with_intercept(2.0)
    fit = sparse_posterior(statistic(noisy(4), 2.0, n), prior, 1.0)
    change = np.random.default_rng(0).standard_normal(prior.size)
    whole = prior.precision @ change + fit.information.times(change)
    np.testing.assert_allclose(fit.precision.solve(whole), change, rtol=1e-6, atol=1e-8)
    assert change @ fit.information.times(change) == pytest.approx(fit.information.square(change[:, None])[0])
