"""Posteriors of sparse fields in whitened coordinates, and NUTS in them."""

import numpy as np
import pytest
import scipy

from dpppsynth.models.lgcp import model_of
from dpppsynth.models.likelihood import MassesInLaplaceNoise, NoisyMasses, counts_score, counts_values
from dpppsynth.models.nuts import Sampler
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern, field_of_precision
from dpppsynth.models.sparse_posterior import log_density, sparse_posterior
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.models.whitened_density import NumberTable, WhitenedDensity, _numbers
from dpppsynth.spatial.domains import Window

WINDOW = Window.rectangle(0, 0, 1000, 800)
TENTS, MESH = (regular_triangulation(WINDOW, shape=shape) for shape in ((5, 4), (9, 7)))
COUNTS = np.random.default_rng(5).poisson(np.linspace(1, 40, 20)).astype(float)


def posterior(n, kind=MassesInLaplaceNoise):
    likelihood = kind(COUNTS, 2.0, MESH.measure, MESH.shares(TENTS), n)
    prior = SparseMatern(1.0, 400.0, 1.0).on(MESH)
    prior = prior if n else prior.with_intercept(2.0)
    return likelihood, sparse_posterior(likelihood, prior, 0.0 if n else float(np.log(400 / MESH.measure.sum())))


def largest_mean(table):
    return (table.centre + table.width * np.sinh(table.first + (table.knots.shape[1] - 1) * table.step)) ** 2


def test_roots_of_the_inverse_of_a_sparse_matrix():
    rng = np.random.default_rng(1)
    raw = scipy.sparse.random_array((40, 40), density=0.1, rng=rng)
    matrix = (raw @ raw.T + scipy.sparse.eye_array(40)).tocsc()
    factor = SparseFactor(matrix)
    root = factor.from_white(np.eye(40))
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(matrix.toarray()), atol=1e-12)
    np.testing.assert_allclose(factor.to_white(np.eye(40)), root.T, atol=1e-12)
    one = rng.normal(size=40)
    np.testing.assert_allclose(factor.from_white(one), root @ one, atol=1e-12)


@pytest.mark.parametrize("n", [None, COUNTS.sum()])
def test_root_of_the_approximation_with_and_without_a_known_number_of_points(n):
    _, fit = posterior(n)
    root = fit.precision.from_white(np.eye(fit.prior.size))
    np.testing.assert_allclose(root @ root.T, fit.precision.solve(np.eye(fit.prior.size)), atol=1e-9)
    np.testing.assert_allclose(fit.precision.to_white(np.eye(fit.prior.size)), root.T, atol=1e-9)


@pytest.mark.parametrize("n", [None, COUNTS.sum()])
def test_density_is_that_of_the_field_and_its_gradient_the_slope(n):
    likelihood, fit = posterior(n)
    density = WhitenedDensity(likelihood, fit)
    function, z = density.function(), np.random.default_rng(2).normal(size=fit.prior.size)
    value, gradient = function(z)
    there, at_mode = (
        log_density(likelihood, fit.prior, fit.centre, each)[0] for each in (density.unknowns(z), fit.mode)
    )
    assert value == pytest.approx(there - at_mode, abs=1e-5)
    for along in np.eye(len(z))[:: len(z) // 7]:
        slope = (function(z + 1e-5 * along)[0] - function(z - 1e-5 * along)[0]) / 2e-5
        assert gradient @ along == pytest.approx(slope, abs=1e-4)


def test_law_goes_on_beyond_its_table():
    """Nearly all points near one vertex: the mean of its tent lies beyond the table."""
    likelihood, fit = posterior(COUNTS.sum())
    density = WhitenedDensity(likelihood, fit)
    function, table = density.function(), NumberTable.of(likelihood, likelihood.expected_masses(fit.field_mode))

    def beyond(z):
        means = likelihood.expected_masses(fit.field_of(density.unknowns(z)))
        return np.any(means > largest_mean(table))

    rng = np.random.default_rng(2)
    z = next(each for each in 60 * rng.normal(size=(200, fit.prior.size)) if beyond(each))
    _, gradient = function(z)
    for along in np.eye(len(z))[:: len(z) // 7]:
        slope = (function(z + 1e-4 * along)[0] - function(z - 1e-4 * along)[0]) / 2e-4
        assert gradient @ along == pytest.approx(slope, rel=1e-4, abs=1e-3)


def from_table(observed, scale, means):
    """Values and slopes at means of one number from its table, exact ones, and which lie within it."""
    number, one = np.array([observed]), scipy.sparse.eye_array(1, format="csr")
    likelihood = MassesInLaplaceNoise(number, scale, np.ones(1), one, None)
    told, table = likelihood.arguments[0], NumberTable.of(likelihood, np.maximum(number, 1.0))
    found = [_numbers(np.array([mean]), told, table, scale) for mean in means]
    values, slopes = np.array([value for value, _ in found]), np.array([slope[0] for _, slope in found])
    all_told = np.full(len(means), told[0])
    exact = counts_values(means, all_told, scale), counts_score(means, all_told, scale)
    return (values, slopes), exact, means < largest_mean(table)


@pytest.mark.parametrize("scale", [0.5, 20.0])
@pytest.mark.parametrize("observed", [-30.0, 0.0, 3.0, 5000.0])
def test_table_has_the_law_of_counts_in_laplace_noise(observed, scale):
    """From no point to thousands, and numbers that noise made negative."""
    found, exact, inside = from_table(observed, scale, np.array([0.1, 0.7, 30.0, 4900.0]))
    np.testing.assert_allclose(found[0][inside], exact[0][inside], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found[1][inside], exact[1][inside], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("many", [1e5, 1e6])
def test_table_is_fine_about_many_points_in_little_noise(many):
    """Noise of 100 or 1000: a grid that is even in the root's logarithm steps over the whole law, and is off by one."""
    scale = many / 1000
    found, exact, _ = from_table(many, scale, many + scale * np.linspace(-5, 5, 41))
    np.testing.assert_allclose(found[0], exact[0], atol=1e-3)
    np.testing.assert_allclose(found[1] * scale, exact[1] * scale, atol=0.01)


def test_model_of_pymc_has_the_same_density():
    density = WhitenedDensity(*posterior(COUNTS.sum()))
    model, z = model_of(density), np.random.default_rng(4).normal(size=density.size)
    value, gradient = density.function()(z)
    constant = density.size * np.log(2 * np.pi) / 2
    assert model.compile_logp()({"z": z}) == pytest.approx(value - constant)
    np.testing.assert_allclose(model.compile_dlogp()({"z": z}), gradient, atol=1e-9)


def test_nuts_agrees_with_quadrature_where_the_approximation_is_off():
    # Two values, told by few counts: the posterior is skewed.
    mesh = regular_triangulation(WINDOW, shape=(2, 2))
    counts = np.array([0.0, 0.0, 7.0, 1.0])
    likelihood = NoisyMasses(counts, 1.0, mesh.measure, scipy.sparse.eye_array(4, format="csr"), None)
    precision = np.linalg.inv(np.diag(np.full(4, 1e-3)) + 4.0 * (np.arange(4)[:, None] // 2 == np.arange(4) // 2))
    prior, centre = field_of_precision(scipy.sparse.csc_array(precision), mesh), float(np.log(4 / mesh.measure.sum()))
    fit = sparse_posterior(likelihood, prior, centre, tolerance=1e-9)
    density = WhitenedDensity(likelihood, fit)
    z = Sampler(density).sample(draws=2500, tune=500, seed=3).z.reshape(-1, 4)
    drawn = centre + density.unknowns(z)

    # Exact but for the small independent part, which is left out: pairs of vertices share a value.
    line = np.linspace(-12, 8, 2001)
    for pair in ([0, 1], [2, 3]):
        field = np.zeros((len(line), 4))
        field[:, pair] = line[:, None]
        mass = (likelihood.measure * np.exp(centre + field))[:, pair]
        value = ((counts[pair] + 2) * np.log(mass + 2) - mass).sum(axis=1)
        weight = np.exp(value - line**2 / (2 * 4.0) - (value - line**2 / (2 * 4.0)).max())
        weight /= weight.sum()
        mean = float(weight @ line)
        spread = float(np.sqrt(weight @ (line - mean) ** 2))
        told = drawn[:, pair].mean(axis=1) - centre
        assert told.mean() == pytest.approx(mean, abs=0.1 * spread)
        assert told.std() == pytest.approx(spread, rel=0.07)
        cut = np.quantile(told, 0.05)
        assert weight[line <= cut].sum() == pytest.approx(0.05, abs=0.02)
