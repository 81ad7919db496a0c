"""Checks of Laplace approximations: they see what they should, in dense and in sparse posteriors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from dpppsynth.models import NoisyMasses, PoweredExponential, factor, laplace_posterior, refine, regular_triangulation
from dpppsynth.models.laplace_approximation import STEPS, check_approximation, held, pareto_k
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_posterior import sparse_posterior
from dpppsynth.spatial.domains import Window

TENTS = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(4, 4))
FIELD = refine(TENTS, 2)


def posterior(kind, n, counts=3.0, mesh=FIELD):
    """An approximation, its likelihood, and (V, r) what its unknowns do to the field."""
    shares = mesh.shares(TENTS)
    # What a smooth field gives, rounded.
    masses = np.round(shares @ (counts * mesh.measure * np.exp(np.sin(mesh.vertices @ [0.4, 0.2]))))
    total = None if n is None else float(masses.sum())
    if kind == "dense":
        likelihood = NoisyMasses(masses, 0.7, mesh.measure, shares.toarray(), total)
        fit = laplace_posterior(likelihood, factor(PoweredExponential(1.6, 3.0).matrix(mesh)), -0.3, tolerance=1e-12)
        return fit, likelihood, fit.basis
    likelihood = NoisyMasses(masses, 0.7, mesh.measure, shares, total)
    prior = SparseMatern(1.6, 3.0, 1.0).on(mesh)
    prior = prior if n else prior.with_intercept(2.0)
    fit = sparse_posterior(likelihood, prior, -0.3, tolerance=1e-12)
    return fit, likelihood, prior.placement.toarray()


def moments(fit, kind):
    """Mean and covariance of the approximation, by other ways."""
    if kind == "dense":
        return fit.mode, np.linalg.inv(np.eye(len(fit.mode)) + fit.root.T @ fit.root)
    covariance = fit.precision.solve(np.eye(len(fit.mode)))
    return fit.mode, (covariance + covariance.T) / 2


def log_prior(fit, kind, unknowns):
    precision = np.eye(len(unknowns)) if kind == "dense" else fit.prior.precision.toarray()
    return -unknowns @ precision @ unknowns / 2


KINDS = pytest.mark.parametrize(("kind", "n"), [("dense", 1), ("sparse", 1), ("sparse", None)])


@KINDS
def test_ratios_are_posterior_over_normal_density(kind, n):
    fit, likelihood, places = posterior(kind, n)
    mean, covariance = moments(fit, kind)
    deviations = fit.deviations(6, np.random.default_rng(1))
    plain = likelihood if kind == "dense" else replace(likelihood, tents=likelihood.tents.toarray())
    exact = [
        plain.log_density(-0.3 + places @ (mean + each))[0]
        + log_prior(fit, kind, mean + each)
        - multivariate_normal(mean, covariance, allow_singular=True).logpdf(mean + each)
        for each in deviations.T
    ]
    got = fit.log_ratios(likelihood, deviations)
    np.testing.assert_allclose(got - got[0], np.array(exact) - exact[0], atol=1e-5)


@KINDS
def test_directions_move_the_field_by_its_standard_deviation(kind, n):
    """And everything else by its regression on the field there."""
    fit, _, places = posterior(kind, n)
    covariance, vertices = moments(fit, kind)[1], np.array([0, 17, 40])
    rows = places[vertices]
    spread = np.sqrt(np.einsum("mr,rs,ms->m", rows, covariance, rows))
    np.testing.assert_allclose(fit.directions(vertices), covariance @ rows.T / spread, atol=1e-8)


@KINDS
def test_a_good_approximation_passes_and_one_beside_the_mode_does_not(kind, n):
    """Many points at every vertex make the posterior nearly normal; two standard deviations away a third is held."""
    fit, likelihood, _ = posterior(kind, n, counts=1e5, mesh=TENTS)
    good = check_approximation(fit, likelihood, 16, 400, np.random.default_rng(2))
    assert good.profile == pytest.approx(0.9, abs=0.02)
    assert good.pareto_k < 0.7
    away = replace(fit, mode=fit.mode + 2 * fit.directions(np.array([5]))[:, 0])
    bad = check_approximation(away, likelihood, 16, 400, np.random.default_rng(2))
    assert bad.profile < 0.6
    assert bad.pareto_k > good.pareto_k + 0.1


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 1.0), (0.5, 1.0), (0.0, 0.7), (-0.4, 0.8)])
def test_probability_of_the_interval(shift, spread):
    ratio = norm(shift, spread).logpdf(STEPS) - norm.logpdf(STEPS)
    end = norm.ppf(0.95)
    exact = np.diff(norm(shift, spread).cdf([-end, end])).item()
    assert held(np.stack([ratio, ratio + 7.0])) == pytest.approx([exact, exact], abs=1e-3)


@pytest.mark.parametrize("k", [0.1, 0.5, 0.9, 1.5])
def test_shape_of_weights_of_known_law(k):
    """Powers of Pareto variables; 424 in the tail, standard error of k at most (1 + k)/20: five of them allowed."""
    weights = k * np.random.default_rng(3).exponential(size=20_000)
    assert pareto_k(weights + 1000) == pytest.approx(k, abs=(1 + k) / 4)


def test_weights_that_differ_by_rounding_have_no_tail():
    """Otherwise the shape would be that of the rounding, which is anything."""
    rng = np.random.default_rng(2)
    for scale in (0.0, 1e-12, 1e-8):
        assert pareto_k(4e6 + scale * rng.normal(size=40)) == -1.0
    assert pareto_k(rng.normal(size=400)) > 0


def test_laws_that_rise_to_their_end_have_the_least_shape():
    rng = np.random.default_rng(3)
    found = [pareto_k(np.log1p(1e-3 * rng.random(40) ** power)) for power in (0.01, 0.1, 1.0) for _ in range(50)]
    assert min(found) >= -1.0
