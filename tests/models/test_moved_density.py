"""Posteriors behind moved points in whitened coordinates, and NUTS in them.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpppsynth.models.level_fields import LevelField
from dpppsynth.models.moved_density import KNOWN, MovedDensity
from dpppsynth.models.moved_posterior import lattice_mode, moved_likelihood
from dpppsynth.models.nuts import Sampler, diagnose
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern, with_effects
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.domains import Window

# Not square, so that axes cannot be exchanged; nobody can be at two of the nodes.
SHAPE, SPACING, EXTENSION = (5, 4), (10.0, 12.0), 6
MEASURE = np.random.default_rng(1).uniform(0.5, 1.5, SHAPE)
MEASURE[2, 1:3] = 0.0
COLUMNS = np.random.default_rng(2).normal(size=(20, 2))


def counted(levels=()):
    wide = [nodes + 2 * EXTENSION for nodes in SHAPE]
    counts = np.random.default_rng(3).poisson(2.0, (*levels, *wide))
    measure = np.broadcast_to(MEASURE, (*levels, *SHAPE))
    return moved_likelihood(counts, measure, rate=1 / 15, spacing=SPACING, extension=EXTENSION)


def plane(columns=None):
    return SpectralField(SHAPE, SPACING, 1.2, 30.0, 0.5, columns)


def sparse(columns=None):
    mesh = regular_triangulation(Window.rectangle(0, 0, 40, 36), shape=SHAPE)
    prior = SparseMatern(1.2, 30.0, 1.0).on(mesh)
    return WhitenedField(prior if columns is None else with_effects(prior, columns, 1.0))


MIXING, NUMBERS = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0], [-1.0]])
CASES = {
    "plane": ((), plane()),
    "covariates": ((), plane(COLUMNS)),
    "no variance but of covariates": ((), SpectralField(SHAPE, SPACING, 0.0, 30.0, 0.0, COLUMNS)),
    "sparse": ((), sparse()),
    "sparse, covariates": ((), sparse(COLUMNS)),
    "levels": ((2,), LevelField(plane(), MIXING, NUMBERS, COLUMNS)),
    "levels alike": ((2,), LevelField(plane(), MIXING[:, :1] / MIXING[:, :1], NUMBERS)),
}


@pytest.mark.parametrize("case", CASES)
def test_density_is_that_of_field_and_noise_and_its_gradient_the_slope(case):
    levels, prior = CASES[case]
    likelihood = counted(levels)
    density = MovedDensity.about(lattice_mode(likelihood, prior))

    def exact(z):
        unknowns = prior.of_real(density.noise(z))
        np.testing.assert_allclose(density.fields(z), prior.field(unknowns))
        np.testing.assert_allclose(density.effects(z), prior.effects_of(unknowns))
        return likelihood.log_density(prior.field(unknowns)) - prior.dot(unknowns, unknowns) / 2

    function, rng = density.function(), np.random.default_rng(4)
    for z in rng.normal(size=(3, density.size)):
        value, gradient = function(z)
        assert value == pytest.approx(exact(z) - exact(np.zeros(density.size)), abs=1e-5)
        along = rng.normal(size=density.size)
        slope = (function(z + 1e-5 * along)[0] - function(z - 1e-5 * along)[0]) / 2e-5
        assert gradient @ along == pytest.approx(slope, rel=1e-5, abs=1e-4)


def as_expected(prior):
    """Counts as an even field has them: that field is the mode, and the information is the expected one."""
    known = counted()
    chances = known.chances(known.shares(np.zeros(20)))
    known = replace(known, counts=400 * chances, law=replace(known.law, n=400.0))
    return MovedDensity.about(lattice_mode(known, prior))


def curvature(density):
    """Eigenvalues of the density's matrix of second derivatives at the mode, with their signs changed."""
    function = density.function()
    assert np.abs(function(np.zeros(density.size))[1]).max() < 1e-6
    steps = 1e-4 * np.eye(density.size)
    return -np.linalg.eigvalsh(np.array([(function(step)[1] - function(-step)[1]) / 2e-4 for step in steps]))


PRIORS = [plane(COLUMNS), sparse()]


@pytest.mark.parametrize("prior", PRIORS)
def test_curvature_is_one_at_the_mode_of_what_was_expected(prior, monkeypatch):
    monkeypatch.setattr("dpppsynth.models.moved_density.KNOWN", 0.0)
    np.testing.assert_allclose(curvature(as_expected(prior)), 1, atol=1e-4)


@pytest.mark.parametrize("prior", PRIORS)
def test_of_directions_that_are_little_known_curvature_is_nearly_one(prior, monkeypatch):
    """The rest of the directions, of which the points tell less than a share of what is known before."""
    for name, value in {"FEW": 1, "FIRST": 2}.items():
        monkeypatch.setattr(f"dpppsynth.models.moved_density.{name}", value)
    density = as_expected(prior)
    found = curvature(density)
    assert 2 < density.axes.shape[1] < density.size / 2
    assert found.min() > 0.99
    assert found.max() < 1 + KNOWN


WAVES = np.stack(np.meshgrid(np.linspace(-1.7, 1.7, 12), np.cos(np.arange(9)), indexing="ij"), axis=-1).reshape(-1, 2)
SMOOTH = SpectralField((12, 9), SPACING, 2.0, 120.0)
SMOOTH_SPARSE = SparseMatern(2.0, 120.0, 1.0).on(regular_triangulation(Window.rectangle(0, 0, 110, 96), shape=(12, 9)))
EXPLAINED = {
    "plane": replace(SMOOTH, columns=WAVES),
    "sparse": WhitenedField(with_effects(SMOOTH_SPARSE, WAVES, 1.0)),
    "levels": LevelField(SMOOTH, MIXING, NUMBERS, WAVES),
}


@pytest.mark.parametrize("case", EXPLAINED)
def test_effects_are_drawn_as_uncertain_as_they_are_beside_a_smooth_field(case):
    """Covariances by dense matrices; a smooth field explains much of what the covariates do, but for a few directions.

    Of 600 draws standard deviations are off by 0.16, and correlations by 0.2, in less than one of a million runs.
    """
    prior, levels = EXPLAINED[case], (2,) if case == "levels" else ()
    counts = np.random.default_rng(3).poisson(3.0, (*levels, 24, 21))
    known = moved_likelihood(counts, np.ones((*levels, 12, 9)), rate=1 / 15, spacing=SPACING, extension=EXTENSION)
    fit = lattice_mode(known, prior)
    told = prior.of_real(np.eye(prior.freedoms))
    fields = prior.field(told)
    precision = np.eye(prior.freedoms) + fields @ known.information(fit.field)(fields).T
    several = np.hstack([prior.effects_of(told), fields[:, [0, 50, 107]] - fields.mean(axis=1, keepdims=True)])
    exact = several.T @ np.linalg.solve(precision, several)
    moves = fit.deviations(600, np.random.default_rng(4)).T
    fields = prior.field(moves)
    drawn = np.hstack([prior.effects_of(moves), fields[:, [0, 50, 107]] - fields.mean(axis=1, keepdims=True)])
    sd = np.sqrt(np.diag(exact))
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.16)
    np.testing.assert_allclose(np.corrcoef(drawn.T), exact / np.outer(sd, sd), atol=0.2)


def test_an_even_field_is_told_nothing():
    fit = lattice_mode(counted(), SpectralField(SHAPE, SPACING, 0.0, 30.0))
    even = MovedDensity.about(fit)
    assert even.is_even
    assert (even.fields(np.zeros((2, even.size))) == 0).all()
    assert not MovedDensity.about(lattice_mode(counted(), plane())).is_even


def test_nuts_draws_from_the_exact_posterior_of_three_nodes():
    """Means and variances of log-shares, within six standard errors of those by quadrature.

    Of so few points the Laplace approximation has half of the variance, thirteen and more standard errors too little.
    """
    counts = np.zeros((14, 14), dtype=np.int64)
    counts[6, 6], counts[6, 8], counts[8, 8] = 4, 1, 1
    measure = np.array([[1.0, 0.5], [0.0, 1.5]])
    likelihood = moved_likelihood(counts, measure, rate=1 / 5, spacing=(10.0, 10.0), extension=6)
    prior, places = SpectralField((2, 2), (10.0, 10.0), 2.5, 20.0), np.array([0, 1, 3])
    density = MovedDensity.about(lattice_mode(likelihood, prior))
    chains = Sampler(density).sample(draws=500, tune=200, seed=5)
    found = differences(density.fields(chains.z)[..., places])
    passed = diagnose(found, chains.divergences)
    assert passed.divergences == 0
    assert passed.ess > 400

    side = np.linspace(-5.2, 5.2, 27)
    white = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    fields = white @ np.linalg.cholesky(law_of(prior, places)).T
    shares = measure.ravel()[places] * np.exp(fields)
    chances = likelihood.channel.matrix[:, places] @ (shares / shares.sum(axis=1, keepdims=True)).T
    weight = likelihood.counts @ np.log(chances) - (white**2).sum(axis=1) / 2
    weight = np.exp(weight - weight.max()) / np.exp(weight - weight.max()).sum()
    exact = differences(fields)
    mean = weight @ exact
    variance, fourth = (weight @ (exact - mean) ** power for power in (2, 4))
    error = 6 / np.sqrt(passed.ess)
    assert (np.abs(found.mean(axis=(0, 1)) - mean) < error * np.sqrt(variance)).all()
    assert (np.abs(found.var(axis=(0, 1)) - variance) < error * np.sqrt(fourth - variance**2)).all()
    steps = density.fields(np.eye(density.size)) - density.fields(np.zeros(density.size))
    laplace = (differences(steps[:, places]) ** 2).sum(axis=0)
    assert (laplace < 0.75 * variance).all()


def law_of(prior, places):
    """Covariance of fields at places, from inner products of the prior's own unknowns."""
    single = np.zeros((len(places), 4))
    single[np.arange(len(places)), places] = 1.0
    rows = prior.adjoint(single)
    return np.array([[prior.dot(one, other) for other in rows] for one in rows])


def differences(fields):
    """(..., 2) differences of the fields from the first place, on which alone shares depend."""
    return fields[..., 1:] - fields[..., :1]
