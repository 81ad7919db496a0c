"""The posterior of the fields of several levels given counts of their moved points: against levels apart and together.

Seeds are fixed; nothing is left to chance but the counts.
"""

import numpy as np
import pytest
from scipy import optimize

from dpppsynth.models import moved_posterior
from dpppsynth.models.level_fields import LevelField, level_covariance, level_root
from dpppsynth.models.moved_posterior import Halves, LatticePosterior, lattice_mode, moved_likelihood
from dpppsynth.models.spectral_fields import SpectralField

SHAPE, LATTICE = (7, 6), {"rate": 0.8, "spacing": (1.0, 1.5), "extension": 9}
WIDE = (25, 24)
FIELD = SpectralField(SHAPE, (1.0, 1.5), 1.5, 4.0, 0.5)
ALONE = np.ones((1, 1))


def counts(levels=2, n=600, seed=1):
    """Points at uneven places, moved by about as much as the noise does; each level has its own places."""
    rng = np.random.default_rng(seed)
    found = []
    for level in range(levels):
        centre = (9 + 6 * level, 15 - 6 * level)
        at = np.clip(np.rint(rng.normal(centre, 2.5, (n // (level + 1), 2))).astype(int), 0, np.array(WIDE) - 1)
        found.append(np.bincount(at[:, 0] * WIDE[1] + at[:, 1], minlength=WIDE[0] * WIDE[1]).reshape(WIDE))
    return np.array(found)


def measures(levels=2):
    found = np.random.default_rng(2).uniform(0.5, 1.5, (levels, *SHAPE))
    found[:, 2:4, 1] = 0
    return found


def prior(own, sd=2.0, levels=2, each=FIELD):
    return LevelField(each, level_root(level_covariance(levels, ALONE, own, 0.0)), sd * np.eye(levels))


@pytest.fixture
def exactly(monkeypatch):
    monkeypatch.setattr(moved_posterior, "TOLERANCE", 1e-9)
    monkeypatch.setattr(moved_posterior, "ROUGH", 1e-3)
    monkeypatch.setattr(moved_posterior, "FINE", 1e-3)


class TestLikelihood:
    @pytest.mark.parametrize("side", [1, 2])
    def test_points_keep_their_level(self, side):
        """Chances of a level's counts are those of that level alone times its share, and counts stand by levels."""
        whole = moved_likelihood(counts(3), measures(3), **LATTICE, side=side)
        alone = [moved_likelihood(*each, **LATTICE, side=side) for each in zip(counts(3), measures(3), strict=True)]
        field = np.random.default_rng(3).normal(size=(3, len(alone[0].measure)))
        shares, chances = whole.shares(field.ravel()).reshape(3, -1), None
        chances = whole.chances(shares.ravel()).reshape(3, -1)
        for level, single in enumerate(alone):
            np.testing.assert_allclose(
                chances[level] / shares[level].sum(), single.chances(single.shares(field[level])), rtol=1e-7, atol=1e-15
            )
            np.testing.assert_array_equal(whole.counts.reshape(3, -1)[level], single.counts)
            np.testing.assert_array_equal(whole.measure.reshape(3, -1)[level], single.measure)
        assert whole.law.n == whole.counts.sum() == counts(3).sum()

    def test_products_with_the_channel_are_adjoint(self):
        rng, channel = np.random.default_rng(4), moved_likelihood(counts(), measures(), **LATTICE).channel
        values = rng.normal(size=(3, 84))
        numbers = rng.normal(size=channel.forward(values).shape)
        sides = (channel.forward(values) * numbers).sum(axis=1), (values * channel.backward(numbers)).sum(axis=1)
        np.testing.assert_allclose(*sides)
        np.testing.assert_allclose(channel.forward(values)[1], channel.forward(values[1]))
        assert channel.shape[0] * channel.shape[1] == 84


class TestMode:
    @pytest.mark.parametrize("own", [0.2, 1.0])
    def test_against_an_optimiser(self, own, exactly):
        given, found = moved_likelihood(counts(), measures(), **LATTICE), prior(own)
        inverse = np.linalg.inv(found.field(found.adjoint(np.eye(84))))

        def loss(w):
            return w @ inverse @ w / 2 - given.log_density(w), inverse @ w - given.gradient(w)

        best = optimize.minimize(loss, np.zeros(84), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-8})
        np.testing.assert_allclose(lattice_mode(given, found).field, best.x, atol=1e-3)

    def test_independent_levels_are_those_of_levels_apart(self, exactly):
        """Neither learns from the other, where their numbers are free."""
        fit = lattice_mode(moved_likelihood(counts(), measures(), **LATTICE), prior(1.0, sd=1e3))
        for level, field in enumerate(fit.field.reshape(2, -1)):
            single = moved_likelihood(counts()[level], measures()[level], **LATTICE)
            free = LevelField(FIELD, np.ones((1, 1)), 1e3 * np.ones((1, 1)))
            known = lattice_mode(single, free).field
            np.testing.assert_allclose(field - field.mean(), known - known.mean(), atol=2e-3)

    def test_levels_that_are_alike_are_those_of_all_points(self, exactly):
        """The field is that of the pooled counts, and each level's number that of its points."""
        measure = np.broadcast_to(measures()[0], (2, *SHAPE))
        fit = lattice_mode(moved_likelihood(counts(), measure, **LATTICE), prior(0.0, sd=1e3))
        pooled = lattice_mode(moved_likelihood(counts().sum(axis=0), measure[0], **LATTICE), FIELD).field
        one, other = fit.field.reshape(2, -1)
        np.testing.assert_allclose(one - one.mean(), pooled - pooled.mean(), atol=2e-3)
        np.testing.assert_allclose(one - other, np.log(600 / 300), atol=2e-3)

    def test_a_level_without_points_follows_the_others(self, exactly):
        empty = counts() * np.array([1, 0])[:, None, None]
        one, other = lattice_mode(moved_likelihood(empty, measures(), **LATTICE), prior(0.2)).field.reshape(2, -1)
        assert np.corrcoef(one, other)[0, 1] > 0.9
        assert (other < one).all()


class TestDraws:
    def test_covariance_is_that_of_dense_algebra(self, exactly):
        """400 draws: seven standard errors of each number, six of the mean square of all that should be white (5 %)."""
        given, found = moved_likelihood(counts(), measures(), **LATTICE), prior(0.4)
        fit = lattice_mode(given, found)
        covariance = found.field(found.adjoint(np.eye(84)))
        exact = np.linalg.inv(np.linalg.inv(covariance) + given.information_matrix(fit.field))
        drawn = found.field(fit.deviations(400, np.random.default_rng(5)).T)
        error = np.sqrt((exact**2 + np.multiply.outer(np.diag(exact), np.diag(exact))) / 400)
        assert (np.abs(drawn.T @ drawn / 400 - exact) < 7 * error).all()
        square = (drawn @ np.linalg.inv(exact) * drawn).mean()
        assert square == pytest.approx(1.0, abs=6 * np.sqrt(2 / drawn.size))

    def test_systems_are_solved_in_few_steps(self, monkeypatch):
        """Numbers of levels are known well, and their sum not at all: a diagonal takes four times as many steps."""
        given, found = moved_likelihood(counts(2, 60_000), measures(), **LATTICE), prior(0.4)
        fit, calls = lattice_mode(given, found), []
        product = LatticePosterior.precision(fit)
        monkeypatch.setattr(LatticePosterior, "precision", lambda _: lambda u: calls.append(1) or product(u))
        fit.solve(found.adjoint(np.eye(84)[[5, 50]]), 0.3)
        assert len(calls) < 40


class TestHalves:
    def test_like_levels_are_foretold_best_by_a_prior_that_shares(self):
        """Each level with the same places says something of the other one, and with other places it misleads."""
        same = np.stack([counts(1)[0], counts(1, seed=6)[0]])
        unlike = counts(2)
        scores = {}
        for name, each in (("same", same), ("unlike", unlike)):
            halves = Halves.of(moved_likelihood(each, np.ones((2, *SHAPE)), **LATTICE), np.random.default_rng(7))
            scores[name] = [halves.judge(lambda _, own=own: prior(own)).score for own in (0.05, 1.0)]
        assert scores["same"][0] > scores["same"][1]
        assert scores["unlike"][0] < scores["unlike"][1]
