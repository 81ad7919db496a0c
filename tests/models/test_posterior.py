"""The noise-aware posterior: quadrature, simulation-based calibration, coverage, and agreement with the raw-data model.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from support.chance import Chance
from support.seams import chance_for_nuts

from dpppsynth import LGCPSynthesizer, Window
from dpppsynth.contract.additive_noise import lattice_masses
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.inference import lgcp_inference as field
from dpppsynth.models import (
    NoisyMasses,
    PoweredExponential,
    Sampler,
    build_lgcp,
    build_noise_aware,
    diagnose,
    factor,
    laplace_posterior,
    refine,
    regular_triangulation,
    tent_masses,
)
from dpppsynth.models.nuts import FieldDensity
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.sampling import binomial_pattern

WINDOW = Window.rectangle(0, 0, 10, 10)


def _nuts(likelihood, basis, **settings):
    """Draws (4, draws, r) of z."""
    return Sampler(FieldDensity(likelihood, basis)).sample(**settings).z


def test_laplace_and_quadrature_agree_on_two_coefficients():
    """A two-dimensional prior, integrated on a fine grid: mean and standard deviation of the log-masses' contrast."""
    likelihood, basis, contrast = _two_dimensional(n=300)
    mean, sd = _quadrature(likelihood, basis, contrast)
    draws = laplace_posterior(likelihood, basis).draw(40_000, np.random.default_rng(0))
    got = np.log(likelihood.expected_masses(draws)) @ contrast
    assert abs(got.mean() - mean) < 0.1 * sd
    assert got.std() == pytest.approx(sd, rel=0.1)


@pytest.mark.slow
def test_nuts_and_quadrature_agree_on_two_coefficients():
    """Effective sample size above 2000: five standard errors of a mean are 0.11 standard deviations."""
    likelihood, basis, contrast = _two_dimensional(None)
    mean, sd = _quadrature(likelihood, basis, contrast)
    z = _nuts(likelihood, basis, draws=2000, tune=500, seed=1)
    got = np.log(likelihood.expected_masses(z @ basis.T)) @ contrast
    assert abs(got.mean() - mean) < 0.11 * sd
    assert got.std() == pytest.approx(sd, rel=0.1)


def _two_dimensional(n):
    mesh = regular_triangulation(WINDOW, shape=(3, 3))
    x, y = (mesh.vertices / 10).T
    basis = np.column_stack([x - 0.5, y - 0.2])
    masses = np.array([2.0, 9.0, -1.0, 4.0, 20.0, 6.0, 0.5, 11.0, 3.0]) * (1 if n is None else n / 54.5)
    likelihood = NoisyMasses(masses, 1.0, mesh.measure, np.eye(9), n)
    return likelihood, basis, np.array([0, 1.0, 0, 0, -1, 0, 0, 0.5, -0.5])


def _quadrature(likelihood, basis, contrast):
    grid = np.linspace(-4, 4, 69)  # exact to twelve digits
    z = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    log_density = np.array([likelihood.evaluate(basis @ each).value for each in z]) - (z**2).sum(axis=1) / 2
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    value = np.log(likelihood.expected_masses(z @ basis.T)) @ contrast
    mean = weight @ value
    return mean, np.sqrt(weight @ (value - mean) ** 2)


SBC_MESH = regular_triangulation(WINDOW, shape=(4, 4))
SBC_BASIS = factor(PoweredExponential(1.6, 3.0).matrix(SBC_MESH))
SBC_N, SBC_NOISE = 100, 3.0


def _ranks(repeats, noise_in_model, seed):
    """Ranks (of 100) of three log-masses among posterior draws, for masses drawn from the likelihood itself."""
    rng = np.random.default_rng(seed)
    shift = 2 * SBC_NOISE**2

    def model(masses):
        return NoisyMasses(masses, noise_in_model, SBC_MESH.measure, np.eye(16), SBC_N)

    ranks = []
    for _ in range(repeats):
        z = rng.normal(size=SBC_BASIS.shape[1])
        m = model(np.zeros(16)).expected_masses(SBC_BASIS @ z)
        total = SBC_N + 16 * shift
        masses = rng.multinomial(round(total), (m + shift) / total) - shift
        rotated = laplace_posterior(model(masses), SBC_BASIS).rotated_basis()
        z = _nuts(model(masses), rotated, draws=50, tune=80, seed=int(rng.integers(2**31)))
        draws = model(masses).expected_masses(z[:, ::2].reshape(100, -1) @ rotated.T)
        ranks.append((draws < m).sum(axis=0)[[0, 5, 10]])
    return np.array(ranks)


def _uniformity(ranks):
    """p-value of a chi-square test on ten bins, the smallest over the monitored masses."""
    bins = np.minimum(ranks // 10.1, 9).astype(int)
    expected = np.bincount((np.arange(101) // 10.1).astype(int), minlength=10) / 101 * len(ranks)
    statistic = [((np.bincount(b, minlength=10) - expected) ** 2 / expected).sum() for b in bins.T]
    return chi2.sf(np.max(statistic), 9)


@pytest.mark.slow
def test_simulation_based_calibration():
    """Ranks are uniform under the likelihood itself; three tests at 1e-7 each."""
    assert _uniformity(_ranks(45, SBC_NOISE, seed=11)) > 1e-7


@pytest.mark.slow
def test_calibration_notices_a_model_that_forgets_the_noise():
    # Machines draw otherwise: three seeds gave 6e-14 to 6e-11.
    assert _uniformity(_ranks(40, 0.03 * SBC_NOISE, seed=12)) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0])
def test_intervals_of_the_intensity_cover(epsilon):
    """Real points, real discrete Laplace noise: 50 % and 90 % intervals within eight points of nominal."""
    rng = np.random.default_rng([3, round(10 * epsilon)])
    window, n, scale = WINDOW, 400, 3.0
    plan = LGCPSynthesizer(epsilon, alpha=0.7, length_scale=scale).plan(window, n=n)
    model = plan.estimator
    truth_mesh = regular_triangulation(window, shape=(25, 25))
    truth_root = factor(PoweredExponential(model.sigma, scale).matrix(truth_mesh), lost=1e-6)
    basis = model.prior_factor(scale, intercept=False)
    grid = np.stack(np.meshgrid(np.arange(0.5, 10), np.arange(0.5, 10)), axis=-1).reshape(-1, 2)
    hits = []
    for _ in range(14):
        w = truth_root @ rng.normal(size=truth_root.shape[1])
        truth = LogLinear(truth_mesh, w + np.log(n / LogLinear(truth_mesh, w).total))
        statistic = plan.statistic.measure(binomial_pattern(truth, n, rng), rng)
        likelihood = model.likelihood(statistic)
        rotated = laplace_posterior(likelihood, basis).rotated_basis()
        z = _nuts(likelihood, rotated, draws=120, tune=120, seed=int(rng.integers(2**31)))
        mean = model.posterior_mean(field.Posterior(model.normalise(z @ rotated.T, n), np.full(z.shape[:2], scale)))
        low, first, third, high = mean.quantiles(grid, np.array([0.05, 0.25, 0.75, 0.95]))
        value = truth(grid)
        hits.append([np.mean((first <= value) & (value <= third)), np.mean((low <= value) & (value <= high))])
    half, ninety = np.mean(hits, axis=0)
    assert abs(half - 0.5) < 0.08
    assert abs(ninety - 0.9) < 0.08


@pytest.mark.slow
def test_without_noise_it_agrees_with_the_raw_data_model():
    """Same posterior: means within 0.1 and deviations within 15 % of a standard deviation, at ESS above 1000."""
    rng = np.random.default_rng(4)
    mesh = regular_triangulation(WINDOW, shape=(5, 5))
    truth = LogLinear(mesh, rng.normal(size=25))
    pattern = binomial_pattern(truth, 300, rng)
    covariance = PoweredExponential(1.0, 4.0)
    basis = factor(covariance.matrix(mesh))
    masses = lattice_masses(mesh, pattern.xy, 20) / 2.0**20
    noise_off = NoisyMasses(masses, 0.0, mesh.measure, np.eye(25), 300)
    ours = _nuts(noise_off, basis, draws=800, tune=400, seed=1) @ basis.T
    raw = (
        Sampler(build_lgcp(pattern, mesh, covariance, quadrature="basis")).sample(draws=800, tune=400, seed=2).z
        @ basis.T
    )
    a, b = (np.log(noise_off.expected_masses(w)).reshape(-1, 25) for w in (ours, raw))
    np.testing.assert_allclose(tent_masses(pattern, mesh), masses, atol=1e-3)
    assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 0.1 * b.std(axis=0))
    np.testing.assert_allclose(a.std(axis=0), b.std(axis=0), rtol=0.15)


@pytest.mark.slow
def test_model_of_raw_points_has_the_stated_parts():
    pattern = binomial_pattern(LogLinear(regular_triangulation(WINDOW, shape=(3, 3)), np.zeros(9)), 50, 0)
    mesh = regular_triangulation(WINDOW, shape=(5, 5))
    model = build_lgcp(pattern, mesh, PoweredExponential(1.0, 4.0))
    assert {v.name for v in model.free_RVs} == {"intercept", "z"}
    assert [p.name for p in model.potentials] == ["log_likelihood"]


@pytest.mark.slow
def test_pymcs_own_sampler_on_request():
    likelihood, basis, contrast = _two_dimensional(60)
    chains = Sampler(build_noise_aware(likelihood, basis), "pymc").sample(draws=500, tune=500, seed=1)
    mean, sd = _quadrature(likelihood, basis, contrast)
    got = np.log(likelihood.expected_masses(chains.z @ basis.T)) @ contrast
    assert chains.z.shape == (4, 500, 2)
    assert abs(got.mean() - mean) < 0.3 * sd


def test_pymcs_own_sampler_needs_a_pymc_model():
    likelihood, basis, _ = _two_dimensional(60)
    with pytest.raises(InputError, match=r"^model: PyMC's own sampler needs a PyMC model"):
        Sampler(FieldDensity(likelihood, basis), "pymc")


class TestDiagnostics:
    def test_good_chains_pass(self):
        values = np.random.default_rng(0).normal(size=(4, 1000, 3))
        assert diagnose(values, 0).complaint() is None

    @pytest.mark.parametrize(
        ("spoil", "divergences", "words"),
        [
            (lambda v: v + np.arange(4)[:, None, None], 0, "R-hat"),
            (lambda v: v[:, :50], 0, "effective sample size"),
            (lambda v: v, 3, "3 divergent transitions"),
        ],
        ids=["chains apart", "too short", "divergent"],
    )
    def test_bad_chains_are_named_with_the_figure(self, spoil, divergences, words):
        values = np.random.default_rng(0).normal(size=(4, 1000, 3))
        assert words in diagnose(spoil(values), divergences).complaint()

    @pytest.mark.slow
    def test_a_failed_gate_loses_nothing(self):
        class Short(Chance):
            def sample(self, **settings):
                return replace(chains := super().sample(**settings), z=chains.z[:, :60])

        rng = np.random.default_rng(0)
        pattern = binomial_pattern(LogLinear(regular_triangulation(WINDOW, shape=(3, 3)), np.zeros(9)), 80, rng)
        synthesizer = LGCPSynthesizer(1.0, alpha=0.7, length_scale=3.0)
        with chance_for_nuts(Short), pytest.raises(QualityError, match="inference='laplace'") as caught:
            synthesizer.release(pattern, 3)
        kept = caught.value.release
        assert kept.guarantee.epsilon() == pytest.approx(1.0)
        assert kept.infer(4, inference="laplace").sample(1, 5)[0].domain is kept.domain


def test_length_scales_are_weighed_by_evidence(monkeypatch):
    """A field of one scale: the posterior puts most weight on its own or a neighbouring scale, not on the extremes."""
    monkeypatch.setattr(field, "KEPT_DRAWS", 200)
    mesh = regular_triangulation(WINDOW, shape=(21, 21))
    root = factor(PoweredExponential(1.6, 2.0).matrix(mesh))
    w = root @ np.random.default_rng(5).normal(size=root.shape[1])
    truth = LogLinear(mesh, w + np.log(1000 / LogLinear(mesh, w).total))
    tents = {"mechanism": "tents", "prior": "dense", "mesh": regular_triangulation(WINDOW, shape=(11, 11))}
    synthesizer = LGCPSynthesizer(5.0, alpha=0.2, inference="laplace", **tents)
    release = synthesizer.release(binomial_pattern(truth, 1000, 6), 7)
    scale = release.posterior["length_scale"].values
    assert synthesizer.plan(WINDOW, n=1000).estimator.length_scales == pytest.approx((1.0, 1.5, 2.0, 3.0, 4.5))
    assert np.mean((scale > 1.2) & (scale < 3.5)) > 0.9


def test_refined_field_keeps_the_tents_masses():
    """Expected tent masses under a flat field are n a_j / |S|: nothing is lost between field and tents."""
    tents = regular_triangulation(WINDOW, shape=(4, 4))
    fine = refine(tents, 3)
    likelihood = NoisyMasses(np.zeros(16), 1.0, fine.measure, tents.basis(fine.vertices).toarray().T.copy(), 50)
    np.testing.assert_allclose(likelihood.expected_masses(np.zeros(len(fine.vertices))), 50 * tents.measure / 100)


@pytest.mark.parametrize(("evidence", "share"), [([0.0, 0.0], [0.2, 0.8]), ([np.log(4.0), 0.0], [0.5, 0.5])])
def test_weights_are_evidence_times_squared_scale(evidence, share):
    likelihood, basis, _ = _two_dimensional(n=300)
    fits = [replace(laplace_posterior(likelihood, basis), log_evidence=value) for value in evidence]
    np.testing.assert_allclose(field._weights(fits, (100.0, 200.0)), share)
