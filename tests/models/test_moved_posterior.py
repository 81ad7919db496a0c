"""The posterior of a field given counts of moved points: against an optimiser, dense algebra, and simulation.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import weakref

import numpy as np
import pytest
from scipy import optimize

from dpppsynth.core.errors import QualityError
from dpppsynth.models import moved_posterior
from dpppsynth.models.moved_posterior import Halves, Judged, climbed, lattice_mode, moved_likelihood
from dpppsynth.models.spectral_fields import SpectralField

SHAPE, SPACING, RATE, EXTENSION = (7, 6), (1.0, 1.5), 0.8, 9
WIDE = tuple(side + 2 * EXTENSION for side in SHAPE)


def truth(seed=1):
    """Uneven shares, with nodes where nobody can be."""
    rng = np.random.default_rng(seed)
    measure = rng.uniform(0.5, 1.5, SHAPE)
    measure[2:4, 1] = 0
    shares = measure.ravel() * np.exp(2 * np.sin(np.arange(42)))
    return measure, shares / shares.sum()


def moved_counts(shares, n, seed=1, rate=RATE, shape=SHAPE, spacing=SPACING, extension=EXTENSION):
    """Counts of simulated points: near a node by its hat, moved, counted at the nearest node."""
    rng = np.random.default_rng(seed)
    node = np.column_stack(np.divmod(rng.choice(shares.size, n, p=shares.ravel()), shape[1]))
    place = node + rng.triangular(-1, 0, 1, (n, 2))
    length, angle = rng.gamma(2, 1 / rate, n), rng.uniform(0, 2 * np.pi, n)
    place += np.column_stack([np.cos(angle), np.sin(angle)]) * length[:, None] / spacing
    wide = np.array(shape) + 2 * extension
    i, j = np.clip(np.rint(place).astype(int) + extension, 0, wide - 1).T
    return np.bincount(i * wide[1] + j, minlength=wide.prod()).reshape(wide)


def likelihood(n=600, seed=1):
    measure, shares = truth()
    counts = moved_counts(shares, n, seed)
    return moved_likelihood(counts, measure, rate=RATE, spacing=SPACING, extension=EXTENSION)


@pytest.fixture
def exactly(monkeypatch):
    monkeypatch.setattr(moved_posterior, "TOLERANCE", 1e-9)
    monkeypatch.setattr(moved_posterior, "ROUGH", 1e-3)
    monkeypatch.setattr(moved_posterior, "FINE", 1e-3)


class TestChannel:
    def test_chances_are_those_of_simulated_moves(self):
        """All of 10^6 points, by a chi-square statistic: every direction, cell and the rest."""
        _, shares = truth()
        given = likelihood(10**6)
        expected = 10**6 * given.chances(shares)
        assert expected.sum() == pytest.approx(10**6)
        some = expected > 10
        square = ((given.counts - expected)[some] ** 2 / expected[some]).sum()
        assert abs(square - some.sum()) < 6 * np.sqrt(2 * some.sum())

    @pytest.mark.parametrize("extension", [1, 2, 5])
    def test_few_nodes_beyond_lose_nothing_but_places(self, extension):
        """The rest has the chance of all nodes beyond; within the lattice nothing changes."""
        measure, shares = truth()
        counts = moved_counts(shares, 100, extension=extension)
        given = moved_likelihood(counts, measure, rate=RATE, spacing=SPACING, extension=extension)
        whole = likelihood()
        side = [side + 2 * (extension - 1) for side in SHAPE]
        kept = [side + 2 * (EXTENSION - 1) for side in SHAPE]
        cut = EXTENSION - extension
        inner = whole.chances(shares)[:-1].reshape(kept)[cut : kept[0] - cut, cut : kept[1] - cut]
        np.testing.assert_allclose(given.chances(shares)[:-1].reshape(side), inner, rtol=1e-9)
        assert given.chances(shares)[-1] == pytest.approx(1 - inner.sum())
        assert given.counts.sum() == 100

    def test_nodes_far_out_are_taken_together(self):
        """A wide extension takes no larger transforms; all points are counted still."""
        measure, _ = truth()
        counts = np.arange(107 * 106).reshape(107, 106) % 5
        given = moved_likelihood(counts, measure, rate=RATE, spacing=SPACING, extension=50)
        assert given.counts.sum() == counts.sum() == given.law.n
        assert len(given.counts) == (7 + 2 * 13) * (6 + 2 * 13) + 1

    @pytest.mark.parametrize("extension", [2, 5, 8])
    def test_blocks_hold_what_their_nodes_hold(self, extension):
        """Counts and measures are summed; chances are near those of the nodes, in sum, where shares are alike."""
        measure, counts = np.ones(SHAPE), moved_counts(np.full(42, 1 / 42), 5000, extension=extension)
        fine = moved_likelihood(counts, measure, rate=0.3, spacing=SPACING, extension=extension)
        coarse = moved_likelihood(counts, measure, rate=0.3, spacing=SPACING, extension=extension, side=2)
        assert coarse.counts.sum() == 5000
        assert coarse.spacing == (2.0, 3.0)
        np.testing.assert_array_equal(coarse.measure.reshape(4, 3), np.outer([2, 2, 2, 1], [2, 2, 2]))
        margin = (extension - 2) // 2
        side, wide = (4 + 2 * margin, 3 + 2 * margin), [side + 2 * extension for side in SHAPE]
        first = extension - 2 * margin
        chances = np.zeros(wide)
        chances[1:-1, 1:-1] = fine.chances(fine.measure / 42)[:-1].reshape([side - 2 for side in wide])
        for values, whole, atol in ((coarse.counts, counts, 0), (coarse.chances(coarse.measure / 42), chances, 2e-3)):
            blocks = whole[first : first + 2 * side[0], first : first + 2 * side[1]].reshape(side[0], 2, side[1], 2)
            np.testing.assert_allclose(values[:-1], blocks.sum(axis=(1, 3)).ravel(), atol=atol)


class TestMode:
    @pytest.mark.parametrize("effects", [0, 2])
    def test_against_an_optimiser(self, effects, exactly):
        columns = np.random.default_rng(3).normal(size=(42, effects)) if effects else None
        given, prior = likelihood(), SpectralField(SHAPE, SPACING, 1.5, 4.0, 0.5, columns)
        root = prior.field(prior.adjoint(np.eye(42)))
        inverse = np.linalg.inv(root)

        def loss(w):
            return w @ inverse @ w / 2 - given.log_density(w), inverse @ w - given.gradient(w)

        found = optimize.minimize(
            loss, np.zeros(42), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-8}
        )
        fit = lattice_mode(given, prior)
        np.testing.assert_allclose(fit.field, found.x, atol=1e-3)
        # The same from a start far off.
        start = prior.white(1, np.random.default_rng(4))[0]
        np.testing.assert_allclose(lattice_mode(given, prior, start).field, fit.field, atol=1e-3)

    def test_tight_spots_are_found(self):
        """All points near one node, a long way from the even field at which the search begins."""
        shares = np.zeros(SHAPE)
        shares[5, 4] = 1.0
        counts = moved_counts(shares, 10**5, rate=8.0)
        given = moved_likelihood(counts, np.ones(SHAPE), rate=8.0, spacing=SPACING, extension=EXTENSION)
        fit = lattice_mode(given, SpectralField(SHAPE, SPACING, 6.0, 1.0))
        assert given.shares(fit.field)[5 * 6 + 4] > 0.99

    def test_no_mode(self, monkeypatch):
        monkeypatch.setattr(moved_posterior, "STEPS", 1)
        with pytest.raises(QualityError, match="mode"):
            lattice_mode(likelihood(), SpectralField(SHAPE, SPACING, 1.5, 4.0))


@pytest.mark.parametrize("effects", [0, 1])
def test_draws_have_the_posterior_covariance(effects, exactly, monkeypatch):
    """That of dense algebra; 400 draws: seven standard errors of each number, six of the mean square of all (7 %)."""
    columns = np.random.default_rng(5).normal(size=(42, effects)) if effects else None
    given, prior = likelihood(3000), SpectralField(SHAPE, SPACING, 1.2, 4.0, 0.5, columns)
    fit = lattice_mode(given, prior)
    inverse = np.linalg.inv(prior.field(prior.adjoint(np.eye(42))))
    shares, matrix = given.shares(fit.field), np.array([given.channel.forward(one) for one in np.eye(42)]).T
    slopes = matrix @ (np.diag(shares) - np.outer(shares, shares))
    exact = np.linalg.inv(inverse + slopes.T @ np.diag(3000 / (matrix @ shares)) @ slopes)
    moves = fit.deviations(400, np.random.default_rng(6))
    drawn = prior.field(moves.T)
    assert np.abs(drawn.mean(axis=0) / np.sqrt(np.diag(exact) / 400)).max() < 6
    error = np.sqrt((exact**2 + np.multiply.outer(np.diag(exact), np.diag(exact))) / 400)
    assert (np.abs(drawn.T @ drawn / 400 - exact) < 7 * error).all()
    square = (drawn @ np.linalg.inv(exact) * drawn).mean()
    assert square == pytest.approx(1.0, abs=6 * np.sqrt(2 / drawn.size))
    # Fields that go with one standard deviation at a node are columns of the covariance.
    along = prior.field(fit.directions(np.array([3, 30])).T)
    np.testing.assert_allclose(along, exact[[3, 30]] / np.sqrt(np.diag(exact)[[3, 30], None]), atol=5e-3)
    # They are the same where a guess leads nowhere.
    monkeypatch.setattr(moved_posterior, "QUICK", 1)
    np.testing.assert_allclose(prior.field(fit.directions(np.array([3, 30])).T), along, atol=5e-3)


def test_log_ratios_are_those_of_posterior_and_approximation(exactly):
    """Next to nothing near the mode, and what dense algebra gives far from it."""
    given, prior = likelihood(3000), SpectralField(SHAPE, SPACING, 1.2, 4.0)
    fit = lattice_mode(given, prior)
    moves = prior.white(3, np.random.default_rng(7)).T * 0.3
    information = np.array([given.information(fit.field)(one) for one in np.eye(42)])
    found = fit.log_ratios(given, moves)
    for move, ratio in zip(moves.T, found, strict=True):
        w, d = fit.field + prior.field(move), prior.field(move)
        posterior = given.log_density(w) - prior.dot(fit.mode + move, fit.mode + move) / 2
        assert ratio == pytest.approx(posterior + (prior.dot(move, move) + d @ information @ d) / 2)
    even = lattice_mode(given, SpectralField(SHAPE, SPACING, 0.0, 4.0))
    assert (even.directions(np.array([3])) == 0).all()
    at_mode, near = fit.log_ratios(given, np.column_stack([0 * moves[:, 0], 1e-3 * moves[:, 0]]))
    assert near == pytest.approx(at_mode, abs=1e-4)


class TestChoice:
    def test_halves_share_all_points(self):
        given = likelihood(1001)
        halves = Halves.of(given, np.random.default_rng(1))
        np.testing.assert_array_equal(halves.one.counts + halves.other.counts, given.counts)
        assert halves.one.law.n + halves.other.law.n == 1001
        assert abs(halves.one.law.n - 500.5) < 100

    def test_scores_are_of_the_half_that_was_not_seen(self, exactly, monkeypatch):
        """A wild prior follows its own half, but foretells the other worse than a prior that fits."""
        halves = Halves.of(likelihood(300), np.random.default_rng(1))
        priors = [SpectralField(SHAPE, SPACING, sigma, 4.0) for sigma in (1.5, 30.0)]
        fair, wild = (halves.judge(lambda _, prior=prior: prior) for prior in priors)
        own = [
            sum(
                half.log_density(prior.field(mode))
                for half, (prior, mode) in zip((halves.one, halves.other), judged.modes, strict=True)
            )
            for judged in (fair, wild)
        ]
        assert own[1] > own[0]
        assert fair.score > wild.score
        again = halves.judge(lambda _: priors[0], wild)
        assert again.score == pytest.approx(fair.score, abs=0.01)
        monkeypatch.setattr(moved_posterior, "MANY", 10)
        seen = []
        alone = halves.judge(lambda half: (seen.append(half), priors[0])[1])
        assert seen == [halves.one]
        prior, mode = fair.modes[0]
        assert alone.score == pytest.approx(2 * halves.other.log_density(prior.field(mode)), abs=0.01)

    def test_climbing(self):
        """The summit of a table with one is found, without trying all of it."""
        tried = []

        def judge(place, near):
            tried.append(place)
            assert near is None or abs(np.array(near.modes) - place).sum() == 1
            return Judged(-float((place[0] - 4) ** 2 + (place[1] - 1) ** 2), place)

        found = climbed(judge, (9, 9), (2, 3))
        assert max(found, key=found.__getitem__) == (4, 1)
        assert len(tried) == len(set(tried)) == len(found) < 30

    def test_climbing_lets_modes_go(self):
        """But for those of the best place so far: priors hold factors, which filled gigabytes."""
        held = []

        def judge(place, near):
            assert sum(each() is not None for each in held) <= 1
            modes = np.zeros(1)
            held.append(weakref.ref(modes))
            return Judged(-float((place[0] - 4) ** 2 + (place[1] - 1) ** 2), ((None, modes),))

        assert len(climbed(judge, (9, 9), (2, 3))) == len(held)
