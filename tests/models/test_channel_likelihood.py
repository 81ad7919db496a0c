"""Likelihoods of counts of reports against enumeration: values, gradients and information; blocks and products."""

import itertools
import math

import numpy as np
import pytest

from dpppsynth.models.channel_likelihood import (
    AxisChannel,
    FootprintChannel,
    MatrixChannel,
    Multinomial,
    ReportLikelihood,
    Subsets,
    WithRest,
)

RNG = np.random.default_rng(5)
SHAPE = (2, 2)
TABLE = RNG.dirichlet(np.ones(3), 4).T
# Hits of three cells, and the empty report.
HITS = np.vstack([RNG.uniform(0.2, 0.6, (3, 4)), RNG.uniform(0.1, 0.3, (1, 4))])
MEASURE = np.array([1.0, 2.0, 0.5, 1.0])
W = np.array([0.3, -0.8, 0.1, 1.1])


def multinomial(counts, n=4, table=TABLE, measure=MEASURE):
    return ReportLikelihood(MatrixChannel(SHAPE, table), np.asarray(counts, float), Multinomial(n), measure)


def subsets(counts, n=3):
    return ReportLikelihood(MatrixChannel(SHAPE, HITS), np.asarray(counts, float), Subsets(n), MEASURE)


def shares(w):
    mass = MEASURE * np.exp(w)
    return mass / mass.sum()


def every_multinomial(n=4):
    """All counts of n reports and their probabilities, by going through all sequences of reports."""
    found = {}
    chances = TABLE @ shares(W)
    for reports in itertools.product(range(3), repeat=n):
        counts = tuple(np.bincount(reports, minlength=3).tolist())
        found[counts] = found.get(counts, 0.0) + math.prod(chances[list(reports)])
    return found


def every_subset(n=3):
    """All counts of the stated law: a binomial number of empty reports, and independent hits in the others."""
    found, chances = {}, HITS @ shares(W)
    some = 1 - chances[-1]
    for empty in range(n + 1):
        full = n - empty
        chance = math.comb(n, empty) * chances[-1] ** empty * some**full
        for hits in itertools.product(range(full + 1), repeat=3):
            x = chances[:-1] / some
            ways = [math.comb(full, h) * q**h * (1 - q) ** (full - h) for h, q in zip(hits, x, strict=True)]
            found[(*hits, empty)] = chance * math.prod(ways)
    return found


LAWS = pytest.mark.parametrize(
    ("make", "every"), [(multinomial, every_multinomial), (subsets, every_subset)], ids=["multinomial", "subsets"]
)


@LAWS
class TestAgainstEnumeration:
    def test_probabilities_sum_to_one(self, make, every):
        assert sum(every().values()) == pytest.approx(1.0)

    def test_values_are_logarithms_of_probabilities(self, make, every):
        """Differences between fields, for every outcome: what is left out does not depend on the field."""
        chances = every()
        other = np.array([-0.4, 0.2, 0.9, 0.0])
        for counts, chance in chances.items():
            likelihood = make(counts)
            found = likelihood.log_density(W)
            weight = self.coefficient(make, counts)
            assert found + math.log(weight) == pytest.approx(math.log(chance), abs=1e-9)
            assert likelihood.log_density(other) != pytest.approx(found)

    @staticmethod
    def coefficient(make, counts):
        if make is multinomial:
            return math.factorial(sum(counts)) / math.prod(map(math.factorial, counts))
        full = 3 - counts[-1]
        return math.comb(3, counts[-1]) * math.prod(math.comb(full, h) for h in counts[:-1])

    def test_gradients_are_slopes(self, make, every):
        for counts in every():
            likelihood, step = make(counts), 1e-6
            slopes = [
                (likelihood.log_density(W + step * one) - likelihood.log_density(W - step * one)) / (2 * step)
                for one in np.eye(4)
            ]
            np.testing.assert_allclose(likelihood.gradient(W), slopes, atol=1e-6)

    def test_information_is_the_covariance_of_the_gradient(self, make, every):
        chances = every()
        gradients = np.array([make(counts).gradient(W) for counts in chances])
        weights = np.array(list(chances.values()))
        np.testing.assert_allclose(weights @ gradients, 0.0, atol=1e-12)
        expected = gradients.T @ (gradients * weights[:, None])
        likelihood = make(next(iter(chances)))
        np.testing.assert_allclose(likelihood.information_matrix(W), expected, atol=1e-12)
        product = likelihood.information(W)
        np.testing.assert_allclose(np.array([product(one) for one in np.eye(4)]), expected, atol=1e-12)


def test_cells_without_measure_get_nothing():
    likelihood = multinomial([1, 2, 1], measure=np.array([1.0, 0.0, 1.0, 2.0]))
    # A field that is large where nobody can be must not swallow the others.
    found = likelihood.shares(np.array([0.0, 800.0, 0.0, 0.0]))
    np.testing.assert_allclose(found, [0.25, 0.0, 0.25, 0.5])
    assert likelihood.gradient(W)[1] == 0
    assert likelihood.information_matrix(W)[1].tolist() == [0.0] * 4


def test_an_expectation_step_raises_the_likelihood():
    counts = np.array([5.0, 1.0, 2.0])
    likelihood, before = multinomial(counts, n=8), shares(W)
    after = likelihood.expectation_step(before)
    # Bayes' rule for every report, written out.
    expected = sum(number / 8 * row * before / (row @ before) for number, row in zip(counts, TABLE, strict=True))
    np.testing.assert_allclose(after, expected, rtol=1e-12)
    assert counts @ np.log(TABLE @ after) > counts @ np.log(TABLE @ before)


def test_certain_answers_do_no_harm():
    """A cell that is in every subset, and reports that are never empty."""
    table = np.vstack([np.ones(4), np.full(4, 0.5), np.zeros(4)])
    likelihood = ReportLikelihood(MatrixChannel(SHAPE, table), np.array([9.0, 4.0, 0.0]), Subsets(9), np.ones(4))
    assert np.isfinite(likelihood.log_density(W))
    assert np.isfinite(likelihood.gradient(W)).all()
    np.testing.assert_allclose(likelihood.information_matrix(W), 0.0, atol=1e-9)


class Rectangle(MatrixChannel):
    """Reports in blocks."""

    def groups(self, side):
        return np.arange(len(self.matrix)) // side


def test_blocks_share_their_cells_by_measure():
    """The coarse likelihood is that of the fine one at fields which are constant in blocks."""
    rng = np.random.default_rng(3)
    table, measure = rng.dirichlet(np.ones(8), 15).T, rng.uniform(0, 1, 15)
    measure[[4, 7]] = 0
    channel = Rectangle((3, 5), table)
    fine = ReportLikelihood(channel, rng.integers(1, 9, 8) / 1.0, Multinomial(40), measure)
    coarse = fine.in_blocks(2)
    assert coarse.channel.shape == (2, 3)
    assert len(coarse.counts) == 4
    np.testing.assert_allclose(coarse.counts, fine.counts.reshape(4, 2).sum(axis=1))
    w = rng.normal(size=(2, 3))
    spread = w.repeat(2, axis=0)[:3].repeat(2, axis=1)[:, :5]
    p, q = coarse.shares(w.ravel()), fine.shares(spread.ravel())
    np.testing.assert_allclose(coarse.chances(p), fine.chances(q).reshape(4, 2).sum(axis=1), rtol=1e-12)


def test_products_of_an_axis_and_of_a_grid_are_those_of_their_matrices():
    rng = np.random.default_rng(4)
    axis = AxisChannel(5, rng.random(9), rng.random(5))
    grid = FootprintChannel((4, 4), rng.random((3, 3)), 0.25, rng.random((6, 6)) < 0.8)
    for channel, size in ((axis, 5), (grid, 16)):
        values, numbers = rng.normal(size=size), rng.normal(size=len(channel.matrix))
        np.testing.assert_allclose(channel.forward(values), channel.matrix @ values, atol=1e-12)
        np.testing.assert_allclose(channel.backward(numbers), numbers @ channel.matrix, atol=1e-12)
    assert axis.groups(2).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert len(grid.groups(2)) == grid.outputs.sum()


@pytest.mark.parametrize(("outputs", "radius"), [((7, 5), (3, 2)), ((3, 6), (0, 1)), ((5, 4), (4, 6))])
def test_rectangles_whose_box_is_narrower_than_the_footprint(outputs, radius):
    """Every entry by its offset, with sides, margins and radii that all differ; several products at once."""
    sides, rng = (3, 4), np.random.default_rng(5)
    outputs = tuple(max(wide, side) + (max(wide, side) - side) % 2 for wide, side in zip(outputs, sides, strict=True))
    radius = tuple(max(r, (wide - side) // 2) for r, wide, side in zip(radius, outputs, sides, strict=True))
    excess = rng.random((2 * radius[0] + 1, 2 * radius[1] + 1))
    for marked in (np.ones(outputs, dtype=bool), rng.random(outputs) < 0.6):
        channel = FootprintChannel(sides, excess, 0.25, marked)
        margin = [(wide - side) // 2 for wide, side in zip(outputs, sides, strict=True)]
        matrix = np.full((marked.sum(), 12), 0.25)
        for row, (i, j) in enumerate(np.argwhere(marked)):
            for column in range(12):
                offset = i - margin[0] - column // 4, j - margin[1] - column % 4
                if all(abs(k) <= r for k, r in zip(offset, radius, strict=True)):
                    matrix[row, column] += excess[offset[0] + radius[0], offset[1] + radius[1]]
        values, numbers = rng.normal(size=(2, 12)), rng.normal(size=(2, marked.sum()))
        np.testing.assert_allclose(channel.forward(values), values @ matrix.T, atol=1e-12)
        np.testing.assert_allclose(channel.backward(numbers), numbers @ matrix, atol=1e-12)
        np.testing.assert_allclose(channel.forward(values[1]), matrix @ values[1], atol=1e-12)


def test_what_is_lost_is_one_more_report():
    rng = np.random.default_rng(6)
    excess = rng.random((3, 5)) / 20
    channel = WithRest(FootprintChannel((4, 3), excess, 0.0, np.ones((4, 3), dtype=bool)))
    values, numbers = rng.random((2, 12)), rng.normal(size=13)
    kept = channel.kept.matrix
    matrix = np.vstack([kept, 1 - kept.sum(axis=0)])
    np.testing.assert_allclose(channel.forward(values), values @ matrix.T, atol=1e-14)
    np.testing.assert_allclose(channel.forward(values).sum(axis=1), values.sum(axis=1))
    np.testing.assert_allclose(channel.backward(numbers), numbers @ matrix, atol=1e-14)
    assert channel.groups(2).tolist()[-1] == channel.groups(2).max() > channel.groups(2)[:-1].max()
