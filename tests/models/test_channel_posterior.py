"""Fields on grids and the modes of fields of shares: against closed forms, an optimiser, and dense algebra."""

import numpy as np
import pytest
from scipy import optimize
from support.fields import distances, matern

from dpppsynth.models import channel_posterior
from dpppsynth.models.channel_likelihood import MatrixChannel, Multinomial, ReportLikelihood
from dpppsynth.models.channel_posterior import DenseField, GridField, Hyper, chosen_prior, field_shares, mode

SHAPE = (6, 5)


def smeared(shape=SHAPE, kept=0.6):
    """Channel that keeps a cell or reports any."""
    size = shape[0] * shape[1]
    return MatrixChannel(shape, kept * np.eye(size) + (1 - kept) / size)


def likelihood(n=500, shape=SHAPE, seed=1, peaks=2.0):
    rng = np.random.default_rng(seed)
    channel, size = smeared(shape), shape[0] * shape[1]
    truth = rng.dirichlet(np.full(size, 1 / peaks))
    return ReportLikelihood(channel, rng.multinomial(n, channel.forward(truth)) / 1.0, Multinomial(n), np.ones(size))


class TestFields:
    @pytest.mark.parametrize("shape", [(12, 9), (20, 1)])
    def test_covariances_are_those_of_the_plane(self, shape):
        """Nothing wraps around as long as the range is well below the width."""
        prior = GridField(shape, 1.7, 3.0)
        np.testing.assert_allclose(prior.covariance(), 1.7**2 * matern(distances(shape), 3.0), atol=0.01)

    @pytest.mark.parametrize(("shape", "range_"), [((15, 15), 36.0), ((20, 20), 24.0), ((20, 1), 24.0)])
    def test_long_ranges_are_as_smooth_as_in_the_plane(self, shape, range_):
        """Neighbours would differ by twice as much with covariances by distances round the torus."""
        apart = distances(shape)
        near = (apart > 0) & (apart < 3)
        rough = 1 - GridField(shape, 1.0, range_).covariance()[near]
        np.testing.assert_allclose(rough, 1 - matern(apart[near], range_), rtol=0.15)

    @pytest.mark.parametrize("range_", [0.4, 3.0, 30.0])
    def test_products_are_those_of_one_matrix(self, range_):
        prior, rng = GridField(SHAPE, 0.8, range_), np.random.default_rng(2)
        columns = np.array([prior.adjoint(one) for one in np.eye(30)])
        np.testing.assert_allclose(columns @ columns.T, prior.covariance(), atol=1e-12)
        np.testing.assert_allclose(np.diag(prior.covariance()), 0.64)
        z, w = rng.normal(size=prior.size), rng.normal(size=30)
        assert prior.field(z) @ w == pytest.approx(z @ prior.adjoint(w))
        np.testing.assert_allclose(columns @ z, prior.field(z))
        dense = DenseField(prior)
        np.testing.assert_allclose(dense.factor @ dense.factor.T, prior.covariance(), atol=1e-7)


class TestModes:
    @pytest.fixture(autouse=True)
    def exactly(self, monkeypatch):
        monkeypatch.setattr(channel_posterior, "TOLERANCE", 1e-10)
        monkeypatch.setattr(channel_posterior, "RESIDUAL", 1e-6)

    @pytest.mark.parametrize("peaks", [1.0, 8.0])
    def test_against_an_optimiser(self, peaks):
        given, prior = likelihood(peaks=peaks), DenseField(GridField(SHAPE, 1.5, 3.0))
        inverse = np.linalg.inv(prior.factor @ prior.factor.T)

        def loss(w):
            return w @ inverse @ w / 2 - given.log_density(w), inverse @ w - given.gradient(w)

        best = optimize.minimize(loss, np.zeros(30), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-9})
        np.testing.assert_allclose(mode(given, prior).field, best.x, atol=1e-4)

    @pytest.mark.parametrize("range_", [1.5, 12.0])
    def test_transforms_and_factors_give_the_same_mode(self, range_):
        given, prior = likelihood(), GridField(SHAPE, 1.2, range_)
        one, two = mode(given, prior), mode(given, DenseField(prior))
        np.testing.assert_allclose(one.field, two.field, atol=1e-4)

    def test_the_start_does_not_matter(self):
        given, prior = likelihood(), DenseField(GridField(SHAPE, 1.2, 3.0))
        start = np.random.default_rng(4).normal(size=30)
        np.testing.assert_allclose(mode(given, prior, start).field, mode(given, prior).field, atol=1e-4)


def test_evidence_is_that_of_a_gaussian_approximation():
    """With many reports the integral over a single unknown contrast is known by quadrature."""
    shape = (1, 2)
    given = ReportLikelihood(MatrixChannel(shape, np.eye(2)), np.array([700.0, 300.0]), Multinomial(1000), np.ones(2))
    ratios = []
    for sigma in (0.5, 2.0):
        prior = DenseField(GridField(shape, sigma, 0.01))
        # The contrast w0 - w1 has twice the variance.
        at = np.linspace(-1, 3, 20_001)
        density = 700 * at - 1000 * np.logaddexp(at, 0) - at**2 / (4 * sigma**2) - np.log(sigma)
        exact = density.max() + np.log(np.exp(density - density.max()).sum())
        ratios.append(mode(given, prior).log_evidence - exact)
    assert ratios[0] == pytest.approx(ratios[1], abs=2e-3)


def test_priors_are_chosen_as_if_all_had_been_tried():
    """The climb ends where no neighbour is higher; a smooth truth has a long range, a rough one does not."""
    x, y = np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12))
    channel = smeared((12, 12))
    for truth, long in ((np.exp(-2 * x - y).ravel(), True), (np.random.default_rng(1).gamma(0.3, size=144), False)):
        counts = np.random.default_rng(2).multinomial(20_000, channel.forward(truth / truth.sum())) / 1.0
        given = ReportLikelihood(channel, counts, Multinomial(20_000), np.ones(144))
        hyper, field = chosen_prior(given)
        assert (hyper.range >= 0.6) == long
        np.testing.assert_allclose(field, mode(given, DenseField(hyper.on((12, 12)))).field, atol=0.05)


def test_shares_end_with_an_expectation_step():
    given = likelihood()
    shares = field_shares(given)
    _, field = chosen_prior(given)
    np.testing.assert_allclose(shares, given.expectation_step(given.shares(field)))
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()


def test_large_grids_choose_on_blocks():
    """Both ways are near each other, and nearer to a smooth truth than counts are."""
    x, y = np.meshgrid(np.arange(24), np.arange(24))
    truth = np.exp(-((x - 9) ** 2 + (y - 14) ** 2) / 60.0).ravel()
    truth /= truth.sum()
    channel = smeared((24, 24))
    counts = np.random.default_rng(3).multinomial(5000, channel.forward(truth)) / 1.0
    given = ReportLikelihood(channel, counts, Multinomial(5000), np.ones(576))
    shares, (hyper, _) = field_shares(given), chosen_prior(given.in_blocks(2))
    exact = given.expectation_step(given.shares(mode(given, DenseField(hyper.on((24, 24)))).field))
    assert np.abs(shares - exact).sum() / 2 < 0.02
    assert np.abs(shares - truth).sum() < np.abs(counts / 5000 - truth).sum() / 2


def test_ranges_are_shares_of_the_longer_side():
    assert Hyper(0.5, 1.5).on((8, 6)).range == 4.0
    assert Hyper(0.5, 1.5).on((8, 6)).sigma == 1.5
