"""The masses' likelihood: its derivatives, its limits, and the same numbers from NumPy, PyTensor and machine code."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
from support.slopes import central_differences

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
from dpppsynth.models.likelihood import MassesInLaplaceNoise, counts_in_laplace_noise, counts_score
from dpppsynth.models.nuts import FieldDensity
from dpppsynth.spatial.domains import Window

TENTS = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(4, 4))
FIELD = refine(TENTS, 2)
B = TENTS.basis(FIELD.vertices).toarray().T.copy()


def make(n, *, noise=0.7, masses=None, seed=0):
    rng = np.random.default_rng(seed)
    masses = rng.random(16) * 6 - 1 if masses is None else masses
    return NoisyMasses(masses, noise, FIELD.measure, B, n), rng.normal(size=len(FIELD.vertices))


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


def log_of_both(distance, sd, scale):
    """Log-density of a normal variable plus a Laplace one, by adding up."""
    at = np.linspace(-40 * scale, 40 * scale, 80_001)
    inner = scipy.stats.norm.pdf(distance - at, scale=sd) * np.exp(-np.abs(at) / scale) / (2 * scale)
    return np.log(inner.sum() * (at[1] - at[0]))


class TestLawOfLaplaceNoise:
    @pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
    def test_score_is_the_slope_in_the_mean_of_the_law_of_both(self, scale):
        for m, observed in [(0.5, 3.0), (2.0, 1.0), (20.0, 31.0), (3.0, -4.0)]:
            sd, step = np.sqrt(m), 1e-3 * scale
            slope = log_of_both(observed - m - step, sd, scale) - log_of_both(observed - m + step, sd, scale)
            found = counts_score(np.array([m]), np.array([observed]), scale)[0]
            assert found == pytest.approx(slope / (2 * step), rel=1e-3, abs=1e-4 / scale)

    def test_without_points_the_score_is_that_of_the_noise_and_with_many_that_of_a_poisson_count(self):
        observed, m = np.array([-9.0, 9.0, 1e4]), np.array([1e-6, 1e-6, 1e4 + 30])
        np.testing.assert_allclose(counts_score(m, observed, 2.0)[:2], [-0.5, 0.5], rtol=1e-6)
        assert counts_score(m, observed, 2.0)[2] == pytest.approx(-30 / (1e4 + 30 + 2 * 2.0**2), rel=1e-3)
        assert counts_score(m, observed, 1e-3)[2] == pytest.approx(-30 / (1e4 + 30), rel=1e-4)

    @pytest.mark.parametrize("scale", [0.3, 2.0, 20.0])
    def test_value_is_the_integral_of_the_score(self, scale):
        """Also far from what is observed, where its slope is that of the noise."""
        observed = np.array([-5.0, 0.2, 3.0, 40.0, 900.0])
        for low, high in [(1e-3, 0.5), (0.5, 8.0), (8.0, 100.0), (100.0, 2000.0)]:
            between = np.geomspace(low, high, 20_001)
            for each in observed:
                found = counts_in_laplace_noise(np.array([high]), np.array([each]), scale)[0]
                found -= counts_in_laplace_noise(np.array([low]), np.array([each]), scale)[0]
                exact = np.trapezoid(counts_score(between, each, scale), between)
                assert found == pytest.approx(exact, rel=0.002, abs=0.002)

    @pytest.mark.parametrize("scale", [0.5, 3.0])
    def test_precision_is_the_information_of_the_score(self, scale):
        """Up to twice that of a normal law of the noise's variance, where there are few points."""
        for m in (0.02, 0.7, 4.0, 30.0, 400.0):
            sd, step = np.sqrt(m), 1e-3 * scale
            at = np.arange(-12 * sd - 25 * scale, 12 * sd + 25 * scale, step)
            law = scipy.signal.fftconvolve(
                scipy.stats.norm.pdf(at, scale=sd), np.exp(-np.abs(at - at.mean()) / scale), "same"
            )
            told = np.average(counts_score(np.full(len(at), m), m + at, scale) ** 2, weights=law)
            likelihood = MassesInLaplaceNoise(np.zeros(1), scale, np.ones(1), np.eye(1), None)
            assert likelihood.precision(np.array([m]))[0] == pytest.approx(told, rel=0.03)
        assert likelihood.precision(np.zeros(1))[0] == pytest.approx(1 / scale**2)

    @pytest.mark.parametrize("n", [40, None])
    def test_gradient_is_the_slope(self, n):
        likelihood, w = make(n)
        own = likelihood.own_law
        slope = central_differences(lambda x: own.evaluate(x).value, w)
        np.testing.assert_allclose(own.evaluate(w).gradient, slope, atol=1e-3 * np.abs(slope).max())

    def test_a_single_large_number_pulls_no_more_than_noise_may(self):
        """The normal law takes it for a hundred points."""
        masses = np.full(16, 2.0)
        masses[5] = 100.0
        likelihood, _ = make(None, noise=5.0, masses=masses)
        slope = [each.log_density(np.zeros(len(FIELD.vertices)))[1].max() for each in (likelihood.own_law, likelihood)]
        assert slope[0] < slope[1] / 2

    def test_other_noise_and_none_keep_their_law(self):
        masses, measure = np.ones(16), FIELD.measure
        assert type(NoisyMasses(masses, 2.0, measure, B, None, own_variance=3.0).own_law) is NoisyMasses
        assert type(NoisyMasses(masses, 0.0, measure, B, None).own_law) is NoisyMasses
        assert type(NoisyMasses(masses, 2.0, measure, B, None).own_law) is MassesInLaplaceNoise


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
