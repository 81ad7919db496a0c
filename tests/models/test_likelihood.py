"""The masses' likelihood: its derivatives, its limits, and the same numbers from NumPy, PyTensor and machine code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dpppsynth.core.errors import QualityError
from dpppsynth.models import (
    NoisyField,
    NoisyMasses,
    PoweredExponential,
    build_noise_aware,
    factor,
    laplace_approximation,
    laplace_posterior,
    refine,
    regular_triangulation,
)
from dpppsynth.models.nuts import FieldDensity
from dpppsynth.spatial.domains import Window

TENTS = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(4, 4))
FIELD = refine(TENTS, 2)
B = TENTS.basis(FIELD.vertices).toarray().T.copy()


def make(n, *, noise=0.7, masses=None, seed=0):
    rng = np.random.default_rng(seed)
    masses = rng.random(16) * 6 - 1 if masses is None else masses
    return NoisyMasses(masses, noise, FIELD.measure, B, n), rng.normal(size=len(FIELD.vertices))


def central_differences(function, w, h=1e-5):
    steps = h * np.eye(len(w))
    return np.stack([(function(w + s) - function(w - s)) / (2 * h) for s in steps])


@pytest.mark.parametrize("n", [40, None])
class TestDerivatives:
    def test_gradient_is_the_slope(self, n):
        likelihood, w = make(n)
        slope = central_differences(lambda x: likelihood.evaluate(x).value, w)
        np.testing.assert_allclose(likelihood.evaluate(w).gradient, slope, atol=2e-8)

    def test_root_squares_to_the_information(self, n):
        """At masses equal to their expectation the information is minus the Hessian."""
        _, w = make(n)
        expected = make(n)[0].expected_masses(w)
        likelihood, _ = make(n, masses=expected)
        hessian = central_differences(lambda x: likelihood.evaluate(x).gradient, w)
        root = likelihood.evaluate(w).root
        np.testing.assert_allclose(root.T @ root, -hessian, atol=1e-7)

    def test_score_has_mean_zero_at_the_truth(self, n):
        """Unbiased estimating equation: masses equal to their expectation leave no pull."""
        _, w = make(n)
        likelihood, _ = make(n, masses=make(n)[0].expected_masses(w))
        np.testing.assert_allclose(likelihood.evaluate(w).gradient, 0, atol=1e-12)

    def test_score_variance_is_the_information(self, n):
        """Masses with the variance of Poisson counts plus Laplace noise: the property that calibrates intervals.

        10^5 draws, entries' standard errors below 2 % of the largest: 12 % is six standard errors.
        """
        _, w = make(n)
        base, _ = make(n, noise=1.5)
        m = base.expected_masses(w)
        rng = np.random.default_rng(8)
        draws = 100_000
        counts = rng.poisson(m, (draws, 16)) if n is None else rng.multinomial(n, m / n, draws)
        masses = counts + rng.laplace(scale=1.5, size=(draws, 16))
        if n is not None:
            masses -= (masses.sum(axis=1, keepdims=True) - n) / 16
        jacobian = central_differences(base.expected_masses, w)
        score = ((masses - m) / (m + 4.5)) @ jacobian.T
        root = base.evaluate(w).root
        information = root.T @ root
        assert np.abs(np.cov(score.T) - information).max() < 0.12 * information.max()


def test_public_n_makes_the_level_irrelevant():
    likelihood, w = make(40)
    assert likelihood.evaluate(w).value == pytest.approx(likelihood.evaluate(w + 3).value, abs=1e-10)


def test_without_noise_it_is_the_lgcp_likelihood():
    """Differences in w of `psi'w - n log sum a e^w`, the flat intercept integrated out."""
    rng = np.random.default_rng(1)
    psi = rng.random(len(FIELD.vertices)) * 5
    likelihood = NoisyMasses.exact(psi, FIELD.measure)

    def direct(w):
        return psi @ w - psi.sum() * np.log(FIELD.measure @ np.exp(w))

    w, other = rng.normal(size=(2, len(psi)))
    got = likelihood.evaluate(w).value - likelihood.evaluate(other).value
    assert got == pytest.approx(direct(w) - direct(other), rel=1e-10)


def test_known_sum_of_the_noise_is_taken_off():
    """With n public, adding the same amount to every noisy mass changes nothing: the noise's sum is known."""
    likelihood, w = make(40)
    moved, _ = make(40, masses=likelihood.masses + 2.5)
    np.testing.assert_allclose(moved.evaluate(w).gradient, likelihood.evaluate(w).gradient, atol=1e-12)


def test_laplace_mode_is_the_maximum():
    likelihood, _ = make(60, masses=np.random.default_rng(3).poisson(4.0, 16).astype(float))
    basis = factor(PoweredExponential(1.6, 3.0).matrix(FIELD))
    fit = laplace_posterior(likelihood, basis, tolerance=1e-14)

    def log_posterior(z):
        return likelihood.evaluate(basis @ z).value - z @ z / 2

    rng = np.random.default_rng(0)
    nearby = [log_posterior(fit.mode + 0.02 * rng.normal(size=len(fit.mode))) for _ in range(200)]
    assert max(nearby) < log_posterior(fit.mode)
    rotated = fit.rotated_basis()
    np.testing.assert_allclose(rotated @ rotated.T, basis @ basis.T, atol=1e-10)


class Stiff(NoisyMasses):
    """An information far above the curvature, as where a prior cannot fit many points: steps go a small way."""

    def evaluate(self, w):
        found = super().evaluate(w)
        return found._replace(root=3 * found.root)


def test_a_mode_that_is_approached_slowly_is_found(monkeypatch):
    """Ten million points behind a long length scale took more than 50 steps, and all other scales were given up."""
    monkeypatch.setattr(laplace_approximation, "SEARCH", {"maxiter": 2})
    masses = np.random.default_rng(3).poisson(400.0, 16).astype(float)
    basis = factor(PoweredExponential(1.6, 3.0).matrix(FIELD))
    exact = laplace_posterior(make(None, masses=masses)[0], basis)
    slow = laplace_posterior(Stiff(masses, 0.7, FIELD.measure, B, None), basis)
    np.testing.assert_allclose(basis @ slow.mode, basis @ exact.mode, atol=0.01)
    with pytest.raises(QualityError, match="inference: the posterior mode was not found"):
        laplace_posterior(Stiff(masses, 0.7, FIELD.measure, B, None), basis, steps=50)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, None])
def test_pymc_model_evaluates_the_same_formula(n):
    likelihood, _ = make(n)
    basis = factor(PoweredExponential(1.6, 3.0).matrix(FIELD))
    model = build_noise_aware(likelihood, basis, centre=-0.3)
    z = np.random.default_rng(2).normal(size=basis.shape[1])
    here = likelihood.evaluate(basis @ z - 0.3)
    normal = -0.5 * z @ z - 0.5 * len(z) * np.log(2 * np.pi)
    assert model.compile_logp()({"z": z}) == pytest.approx(here.value + normal, rel=1e-12)
    np.testing.assert_allclose(model.compile_dlogp()({"z": z}), basis.T @ here.gradient - z, rtol=1e-9, atol=1e-10)


def whitened_numbers(likelihood, seed=7):
    """A field statistic behind the same masses: the other law."""
    rng = np.random.default_rng(seed)
    estimate = rng.random(len(FIELD.vertices))
    return NoisyField(rng.normal(size=5), rng.normal(size=(16, 5)), 0.6, FIELD.measure, B, likelihood.n, estimate)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [40, None])
def test_machine_code_is_the_log_posterior_of_each_law(n):
    """A constant apart, which NUTS does not see; basis and response in any memory layout."""
    masses, _ = make(n)
    basis = np.asfortranarray(factor(PoweredExponential(1.6, 3.0).matrix(FIELD)))
    for likelihood in (masses, whitened_numbers(masses)):
        compiled = FieldDensity(likelihood, basis, -0.3).function()
        for z in np.random.default_rng(2).normal(size=(3, basis.shape[1])):
            value, gradient = compiled(z)
            here = likelihood.evaluate(basis @ z - 0.3)
            assert value == pytest.approx(here.value - z @ z / 2, rel=1e-12)
            np.testing.assert_allclose(gradient, basis.T @ here.gradient - z, rtol=1e-9, atol=1e-10)


KEPT = """
import numpy as np
from dpppsynth.models import nuts as field_density
from dpppsynth.models.likelihood import LOG_POSTERIORS
basis, response = np.eye(3, 2), np.full((2, 3), 0.5)
for law in LOG_POSTERIORS:
    code = field_density._compiled(law)
    value, _ = code(basis, 0.1, np.array([2.0, 3.0]), np.ones(3), response, 7.0, 1.5, np.array([0.3, -0.2]))
    print(law, repr(value), sum(code.stats.cache_hits.values()), sum(code.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_code_is_kept_between_processes_apart_for_each_law(tmp_path):
    """Compiled in the first process, read in the second; nothing of a statistic is where it is kept."""
    where = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", KEPT], env=where, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    )
    rows = [line.split() for line in (first + second).splitlines()]
    assert [row[2:] for row in rows] == [["0", "1"], ["0", "1"], ["1", "0"], ["1", "0"]]
    assert rows[0][:2] == rows[2][:2]
    assert rows[1][:2] == rows[3][:2]
    assert rows[0][1] != rows[1][1]
