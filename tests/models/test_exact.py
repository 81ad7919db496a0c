"""Exact posterior draws: their law against quadrature, wherever the boxes are built and however few the points.

Chi-square tests compare counts in bins of the field's values with quadrature, at the upper 1e-8 point of their law; the
other thresholds are stated where they stand. All together raise a false alarm with probability below 1e-6; seeds are
fixed.
"""

import functools
import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
import shapely
from scipy.stats import chi2, kstwobign

from dpppsynth import Window, datasets
from dpppsynth.core.errors import QualityError
from dpppsynth.models import (
    PoweredExponential,
    Sampler,
    build_lgcp,
    diagnose,
    factor,
    regular_triangulation,
    target_posterior,
    tent_masses,
)
from dpppsynth.models import (
    nested_boxes as exact,
)
from dpppsynth.models.nested_boxes import BATCH, NestedBoxes, curvature
from dpppsynth.models.target_posterior import FieldPrior, LipschitzSet, PointPosterior

SIZE = 100_000
MEASURE = np.array([2.0, 1.0, 3.0])
ROOT = np.array([[1.0, 0.2], [0.6, 0.8], [-0.4, 0.3]])


def prior(vertices, sigma, tau):
    return FieldPrior.gaussian(sigma * ROOT[:vertices, : vertices - 1], MEASURE[:vertices], -0.4, tau)


# Posteriors with as many coefficients as vertices: fields have a density, to be integrated on a grid of their values.
POSTERIORS = {
    "two vertices, one point": prior(2, 2.5, 2.0).posterior(np.array([0.3, 0.7])),
    "two vertices, none": prior(2, 1.0, 3.0).posterior(np.array([0.0, 0.0])),
    "three vertices": prior(3, 1.5, 1.5).posterior(np.array([0.5, 3.5, 0.0])),
    "three vertices, many points": prior(3, 0.4, 1.0).posterior(np.array([40.0, 10.0, 90.0])),
}
every_posterior = pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)


class Elsewhere(PointPosterior):
    """A posterior that gives away a wrong mode."""

    def mode(self):
        return super().mode() + 0.4


def shrink(monkeypatch):
    """Boxes so small that outer shells, the unbounded one too, have their share of the draws."""
    monkeypatch.setattr(exact, "FIRST", 0.4)
    monkeypatch.setattr(exact, "NEGLIGIBLE", 2.0)


@pytest.fixture(params=["as released", "away from the mode", "small boxes"])
def build(request, monkeypatch):
    """Sampler of a posterior, in three ways."""
    if request.param == "small boxes":
        shrink(monkeypatch)
    kind = Elsewhere if request.param == "away from the mode" else PointPosterior
    return lambda posterior: NestedBoxes(kind(posterior.prior, posterior.masses))


def prior_exponent(posterior, w):
    """(m,) half the squared Mahalanobis distance of fields (m, V) from the prior mean."""
    off, basis = w - posterior.prior.centre, posterior.prior.basis
    return (off * np.linalg.solve(basis @ basis.T, off.T).T).sum(axis=-1) / 2


class Grid:
    """Density of a posterior over values of the field, by the midpoint rule; cells of `split` values are one bin."""

    def __init__(self, posterior, allowed=None):
        covariance = posterior.prior.basis @ posterior.prior.basis.T
        fields = accepted(NestedBoxes(posterior), 40_000)
        size, self.split = (720, 72) if fields.shape[1] == 2 else (96, 16)
        span = np.array([fields.min(axis=0), fields.max(axis=0)])
        low, high = span + 0.4 * (span[1] - span[0]) * [[-1], [1]]
        self.edges = np.linspace(low, high, size + 1).T
        middle = (self.edges[:, 1:] + self.edges[:, :-1]) / 2
        w = np.stack(np.meshgrid(*middle, indexing="ij"), axis=-1).reshape(-1, len(middle))
        log_density = w @ posterior.masses - np.exp(w) @ posterior.prior.measure - prior_exponent(posterior, w)
        if allowed is not None:
            log_density[~allowed(w)] = -np.inf
        cell = np.prod((high - low) / size) / np.sqrt(np.linalg.det(2 * np.pi * covariance))
        weight = np.exp(log_density).reshape([size] * len(middle))
        self.evidence = weight.sum() * cell
        self.weight = weight / weight.sum()
        self.middle = middle

    def moments(self):
        """Means and standard deviations."""
        margins = [self.weight.sum(axis=tuple(set(range(len(self.middle))) - {k})) for k in range(len(self.middle))]
        mean = np.array([p @ m for p, m in zip(margins, self.middle, strict=True)])
        square = np.array([p @ m**2 for p, m in zip(margins, self.middle, strict=True)])
        return mean, np.sqrt(square - mean**2)

    def chi_square(self, fields):
        """p-value of fields (m, V), independent draws; bins that expect fewer than 10 are taken together."""
        observed = np.histogramdd(fields, bins=[e[:: self.split] for e in self.edges])[0].ravel()
        blocks = [s for size in self.weight.shape for s in (size // self.split, self.split)]
        share = self.weight.reshape(blocks).sum(axis=tuple(range(1, len(blocks), 2))).ravel()
        expected = len(fields) * share
        rare = expected < 10
        observed = np.append(observed[~rare], len(fields) - observed[~rare].sum())
        expected = np.append(expected[~rare], max(len(fields) - expected[~rare].sum(), 1.0))
        return chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


@functools.cache
def whole(posterior):
    """Grid without restriction, made once."""
    return Grid(posterior)


def acceptance(boxes, rng, count, support=None):
    """Estimate of the probability that an attempt is accepted."""
    fields, log_accept = boxes.attempts(count, rng)
    return float((np.exp(log_accept) * (1 if support is None else support(fields))).mean())


def accepted(boxes, count=SIZE, seed=1):
    rng = np.random.default_rng(seed)
    fields, log_accept = boxes.attempts(count, rng)
    assert log_accept.max() <= 0
    return fields[np.log(rng.random(count)) < log_accept]


class TestLaw:
    @pytest.mark.exhaustive
    @every_posterior
    def test_follows_quadrature(self, posterior, build):
        """Any error in shares, proposals or acceptance shows; away from the mode also the gradient left out."""
        grid, fields = whole(posterior), accepted(build(posterior))
        assert grid.chi_square(fields) > 1e-8
        mean, sd = grid.moments()
        # 6 standard errors, for kurtosis up to 6: 120 figures exceed them with probability 3e-7.
        assert np.all(np.abs(fields.mean(axis=0) - mean) < 6 * sd / len(fields) ** 0.5)
        np.testing.assert_allclose(fields.std(axis=0), sd, rtol=6 * (1.25 / len(fields)) ** 0.5)
        # The yardstick itself tells a shift of a quarter of a standard deviation.
        assert grid.chi_square(fields + 0.25 * sd) < 1e-12

    @pytest.mark.exhaustive
    @every_posterior
    def test_accepts_as_often_as_predicted(self, posterior, build):
        """Mass of the posterior over mass of the proposals; 6 binomial standard errors, 2e-9 each."""
        boxes = build(posterior)
        height = boxes._centre @ posterior.masses - boxes._mass.sum() - prior_exponent(posterior, boxes._centre)
        proposals = np.exp([shell.log_mass for shell in boxes._shells]).sum()
        predicted = whole(posterior).evidence / np.exp(height) / proposals
        share = len(accepted(boxes)) / SIZE
        assert abs(share - predicted) < 6 * (predicted * (1 - predicted) / SIZE) ** 0.5
        # Averages of probabilities are no more variable than shares of successes.
        estimate = acceptance(boxes, np.random.default_rng(2), SIZE)
        assert abs(estimate - predicted) < 6 * (predicted * (1 - predicted) / SIZE) ** 0.5

    @every_posterior
    def test_acceptance_is_posterior_over_proposal(self, posterior, build):
        """To the last digits, in every shell; nothing outside of its box."""
        boxes = build(posterior)
        basis, rng = posterior.prior.basis, np.random.default_rng(3)
        z = np.linalg.solve(basis, boxes._centre - posterior.prior.centre)
        here, gradient = posterior.log_density(z)
        for shell in boxes._shells:
            d = shell.propose(50, rng)
            y = np.linalg.solve(basis, d.T).T
            proposal = y @ gradient - (y**2).sum(axis=1) / 2 - d**2 @ shell.gaussian.curvature / 2
            if shell.inner is not None:
                assert np.all((d < -shell.inner).any(axis=1))
                proposal += np.log((d < -shell.inner).sum(axis=1))
            expected = np.array([posterior.log_density(z + each)[0] - here for each in y]) - proposal
            expected[(d < -shell.outer).any(axis=1)] = -np.inf
            np.testing.assert_allclose(shell.log_accept(d, boxes._mass), expected, rtol=1e-9, atol=1e-7)

    def test_small_boxes_leave_work_to_the_outer_shells(self, monkeypatch):
        shrink(monkeypatch)
        boxes = NestedBoxes(POSTERIORS["three vertices"])
        fields = accepted(boxes)
        beyond = [(fields < boxes._centre - shell.inner).any(axis=1).mean() for shell in boxes._shells[1:]]
        assert len(beyond) == 8
        assert beyond[3] > 0.5
        assert beyond[-1] > 0.1

    def test_restricted_to_a_set(self):
        """Draws lie inside and follow the restricted posterior; 0.01 sd are left to the grid's edges."""
        posterior, rng = POSTERIORS["three vertices"], np.random.default_rng(5)
        triangle = regular_triangulation(Window.polygon(shapely.Polygon([(0, 0), (4, 0), (4, 3)])), shape=(2, 2))
        support = LipschitzSet(triangle, 0.25)
        boxes = NestedBoxes(posterior)
        fields = accepted(boxes)
        inside = fields[support(fields)]
        mean, sd = Grid(posterior, support).moments()
        assert np.all(np.abs(inside.mean(axis=0) - mean) < (6 / len(inside) ** 0.5 + 0.01) * sd)
        np.testing.assert_allclose(inside.std(axis=0), sd, rtol=6 * (1.25 / len(inside)) ** 0.5 + 0.01)
        draws = np.array([boxes.draw(rng, support=support).field for _ in range(600)])
        assert support(draws).all()
        assert distance(draws, inside) < LIMIT
        assert distance(draws, fields) > LIMIT
        assert acceptance(boxes, rng, 20_000, support) == pytest.approx(len(inside) / SIZE, rel=0.3)


# Kolmogorov's statistic of two samples, the asymptotic law of which exceeds this once in 1e8; three coordinates.
LIMIT = kstwobign.isf(1e-8)


def distance(draws, fields):
    """Largest over coordinates of the scaled distance between empirical distribution functions."""
    scale = (len(draws) * len(fields) / (len(draws) + len(fields))) ** 0.5
    both = np.concatenate([draws, fields])
    gaps = []
    for k in range(draws.shape[1]):
        ours, theirs = (np.searchsorted(np.sort(x[:, k]), both[:, k], "right") / len(x) for x in (draws, fields))
        gaps.append(np.abs(ours - theirs).max())
    return scale * max(gaps)


def attempting(attempts):
    """A sampler whose attempts are `attempts(count)`."""

    class Attempting(NestedBoxes):
        def attempts(self, count, rng):
            return attempts(count)

    return Attempting(POSTERIORS["three vertices"])


class TestDraw:
    def test_draws_follow_the_accepted_attempts(self):
        boxes = NestedBoxes(POSTERIORS["two vertices, one point"])
        rng = np.random.default_rng(4)
        draws = np.array([boxes.draw(rng).field for _ in range(1500)])
        fields = accepted(boxes)
        assert distance(draws, fields) < LIMIT
        assert distance(draws, fields + 0.3) > LIMIT

    def test_first_accepted_attempt_counts(self):
        """Not the likeliest of a batch, nor the last: attempt 7 of the third batch comes before the sure ones."""
        batches = iter([np.full(BATCH, -np.inf)] * 2 + [np.r_[np.full(6, -1e9), -1e-12, -1e9, np.zeros(BATCH - 8)]])
        fields = np.arange(3.0 * BATCH).reshape(BATCH, 3)
        boxes = attempting(lambda count: (fields, next(batches)))
        draw = boxes.draw(np.random.default_rng(0))
        np.testing.assert_array_equal(draw.field, fields[6])
        assert draw.attempts == 2 * BATCH + 7

    def test_accepts_with_the_probability_given(self):
        """Attempts are geometric: mean e, standard deviation sqrt(e^2 - e); 6 standard errors, 2e-9."""
        boxes = attempting(lambda count: (np.zeros((count, 3)), np.full(count, -1.0)))
        rng = np.random.default_rng(6)
        attempts = [boxes.draw(rng).attempts for _ in range(2000)]
        assert np.mean(attempts) == pytest.approx(np.e, abs=6 * 2.162 / 2000**0.5)

    def test_support_counts_as_a_rejection(self):
        fields = np.arange(3.0 * BATCH).reshape(BATCH, 3)
        boxes = attempting(lambda count: (fields, np.zeros(count)))
        draw = boxes.draw(np.random.default_rng(0), support=lambda w: w[:, 0] >= 30)
        assert draw.attempts == 11
        np.testing.assert_array_equal(draw.field, fields[10])

    def test_shows_nothing(self):
        boxes = NestedBoxes(POSTERIORS["three vertices"])
        draw = boxes.draw(np.random.default_rng(0))
        shown = f"{boxes!r} {draw!r} {boxes._shells[-1]!r} {POSTERIORS['three vertices']!r}"
        assert "array" not in shown
        assert "3.5" not in shown


class TestBoxes:
    def test_curvature_is_rounded_down(self):
        """In exact arithmetic `e^-r >= 1 - r + k r^2 / 2`, and hardly more: the plain formula fails by far at 1e-7."""
        radius = np.concatenate([np.logspace(-12, 3, 400), np.linspace(0.09, 0.11, 101)])
        k = curvature(radius)
        with localcontext(prec=80):
            exact = [2 * ((-r).exp() - 1 + r) / r**2 for r in map(Decimal, radius)]
            assert all(Decimal(each) <= true for each, true in zip(k, exact, strict=True))
            np.testing.assert_allclose(k, [float(each) for each in exact], rtol=1e-10)
        assert list(curvature(np.array([0.0, np.inf]))) == [1 - 1e-12, 0.0]

    def test_holds_to_the_right_of_the_border(self):
        """The parabola lies below all the way, and that of the box before does not."""
        radius = np.logspace(-2, 2, 30)[:, None]
        d = np.linspace(-1, 1, 201) * radius
        gap = np.expm1(d) - d
        assert np.all(gap >= curvature(radius) * d**2 / 2 - 1e-15)
        assert np.all((gap < curvature(radius / 1.25) * d**2 / 2).any(axis=1))

    @every_posterior
    def test_boxes_are_nested_and_end_with_everything(self, posterior):
        shells = NestedBoxes(posterior)._shells
        for before, after in itertools.pairwise(shells):
            assert after.inner is before.outer
            assert np.all(after.outer > before.outer)
        assert np.all(np.isinf(shells[-1].outer))
        assert np.all(shells[-1].gaussian.curvature == 0)
        assert shells[-1].log_mass <= shells[0].log_mass - 7


class TestMode:
    @pytest.mark.parametrize("masses", [[3e5, 0.0, 1e5], [0.0, 0.0, 1.0], [0.0, 1e7, 0.0]])
    def test_is_found_where_full_steps_overshoot(self, masses):
        """The decrement, in posterior standard deviations, is at the level of rounding."""
        posterior = prior(3, 3.0, 3.0).posterior(np.array(masses))
        mode = posterior.mode()
        gradient = posterior.log_density(mode)[1]
        assert gradient @ np.linalg.solve(posterior.information(mode), gradient) < 1e-12

    def test_says_so_without_a_figure_when_not_found(self, monkeypatch):
        monkeypatch.setattr(target_posterior, "STEPS", 2)
        with pytest.raises(QualityError, match=r"^sampler: the posterior mode was not found; [^0-9]*$"):
            NestedBoxes(POSTERIORS["three vertices, many points"])


@pytest.mark.slow
def test_agrees_with_nuts_on_the_raw_data_model():
    """Soho's deaths on 121 vertices; a hundred-fold intercept stands for the flat one of PyMC's model.

    Monte Carlo error of both sides, as effective sample sizes tell it; 484 figures at 6.2 standard errors raise a false
    alarm with probability 3e-7.
    """
    deaths = datasets.soho_deaths()
    mesh = regular_triangulation(deaths.domain, shape=(11, 11))
    covariance = PoweredExponential(0.5, 200.0)
    chains = Sampler(build_lgcp(deaths, mesh, covariance, quadrature="basis")).sample(draws=1200, tune=300, seed=3)
    root = factor(covariance.matrix(mesh))
    level = np.log(len(deaths.xy) / deaths.domain.area)
    exact = FieldPrior.gaussian(root, mesh.measure, level, 100.0).posterior(tent_masses(deaths, mesh))
    others = moments(chains.z @ root.T, independent=False)
    assert np.abs(departures(accepted(NestedBoxes(exact), 20_000), others)).max() < 6.2
    twice = FieldPrior.gaussian(root * 1.2, mesh.measure, level, 100.0).posterior(tent_masses(deaths, mesh))
    assert np.abs(departures(accepted(NestedBoxes(twice), 20_000), others)).max() > 6.2


def departures(fields, others):
    """Differences, in standard errors, of means and mean squares of values about their mean over the vertices."""
    (a, va), (b, vb) = moments(fields, independent=True), others
    return (a - b) / np.sqrt(va + vb)


def moments(w, *, independent):
    """Those means, and their variances at the size, or the effective size, of the sample."""
    centred = w - w.mean(axis=-1, keepdims=True)
    values = np.concatenate([centred, centred**2], axis=-1)
    flat = values.reshape(-1, values.shape[-1])
    size = len(flat) if independent else np.array([diagnose(values[..., [k]], 0).ess for k in range(flat.shape[1])])
    return flat.mean(axis=0), flat.var(axis=0) / size
