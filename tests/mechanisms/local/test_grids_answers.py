"""Answers of grids: consistency of levels, formulas of errors, workloads and their scores."""

import math
from fractions import Fraction

import numpy as np
import pytest
from baselines.central_grids import central_consistency
from baselines.grid_errors import noise_variance, non_uniformity_bound, report_variance, sampling_variance
from baselines.range_queries import (
    average_query_error,
    constant_density_answers,
    query_workload,
    true_answers,
    zero_answers_error,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.grids import adaptive_cells, even_cells, pooled_levels, split_users, uniform_grid

few = settings(max_examples=30)
UNIT = (0, 0, 1, 1)
ONE = uniform_grid(UNIT, 1, 1)
# Deviations beyond which a correct program fails with probability 2e-9.
FAR = 6
P, Q = math.e / (math.e + 3), 1 / 4


def reported(rng, truth, size=None):
    """Unbiased counts from reports hashed to four values at epsilon 1: exact marginals, uncorrelated."""
    size, n = size or np.shape(truth), np.sum(truth, axis=-1, keepdims=True)
    supports = rng.binomial(truth, P, size) + rng.binomial(n - truth, Q, size)
    return (supports - n * Q) / (P - Q)


class TestConsistency:
    @few
    @given(st.integers(0, 2**32), st.floats(0.01, 100), st.floats(0.01, 100))
    def test_weighted_least_squares_under_the_sums(self, seed, w1, w2):
        rng = np.random.default_rng(seed)
        grid = even_cells(uniform_grid(UNIT, 2, 1), [2, 3])
        v, u = rng.normal(size=2), rng.normal(size=13)
        found = pooled_levels(grid, v, u, first_weight=w1, second_weight=w2)
        sums = np.zeros((2, 13))
        sums[grid.parents, np.arange(13)] = 1
        rows = np.vstack([math.sqrt(w1) * sums, math.sqrt(w2) * np.eye(13)])
        exact = np.linalg.lstsq(rows, np.concatenate([math.sqrt(w1) * v, math.sqrt(w2) * u]), rcond=None)[0]
        assert found.second == pytest.approx(exact, abs=1e-9)
        assert found.first == pytest.approx(sums @ found.second, abs=1e-9)

    def test_local_rule(self):
        grid, u, v, n1, n2 = even_cells(ONE, [3]), np.arange(9.0), 40.0, 300, 700
        pooled = (n1 * 9 * v + n2 * 36) / (n1 * 9 + n2)
        found = pooled_levels(grid, [v], u, first_weight=n1, second_weight=n2)
        assert found.first == pytest.approx([pooled])
        assert found.second == pytest.approx(u + (pooled - 36) / 9)

    def test_central_rule(self):
        grid, u, v, a = even_cells(ONE, [3]), np.arange(9.0), 40.0, 0.3
        pooled = (a**2 * 9 * v + (1 - a) ** 2 * 36) / (a**2 * 9 + (1 - a) ** 2)
        found = central_consistency(grid, [v], u, a)
        assert found.first == pytest.approx([pooled])
        assert found.second == pytest.approx(u + (pooled - 36) / 9)

    def test_variance_of_the_local_rule(self):
        # Shares near zero: only the reports' noise, V per report.
        rng, (n1, n2), runs = np.random.default_rng(1), (400, 600), 20_000
        grid, V = even_cells(ONE, [2]), Q * (1 - Q) / (P - Q) ** 2
        v = ((rng.binomial(n1, Q, runs) - n1 * Q) / (P - Q)) / n1
        u = ((rng.binomial(n2, Q, (runs, 4)) - n2 * Q) / (P - Q)) / n2
        first = np.array(
            [
                pooled_levels(grid, [a], b, first_weight=n1, second_weight=n2).first[0]
                for a, b in zip(v[:5], u[:5], strict=True)
            ]
        )
        pooled = (n1 * 4 * v + n2 * u.sum(axis=1)) / (n1 * 4 + n2)
        assert first == pytest.approx(pooled[:5])
        want = 1 / (n1 / V + n2 / (4 * V))
        # The relative deviation of a variance over 20000 runs is 1 %.
        assert pooled.var() == pytest.approx(want, rel=FAR * math.sqrt(2 / runs))
        assert want < V / n1

    def test_cells_that_agree_stay(self):
        grid = adaptive_cells(uniform_grid(UNIT, 2, 2), [1, 2, 3, 4], [1, 2, 3, 2])
        u = np.arange(len(grid), dtype=float)
        v = np.bincount(grid.parents, u)
        found = pooled_levels(grid, v, u, first_weight=3, second_weight=5)
        assert found.first == pytest.approx(v)
        assert found.second == pytest.approx(u)

    @pytest.mark.parametrize("wild", [None, "a", [1.0, 2.0], [math.nan], -5.0, [True]])
    def test_refusals(self, wild):
        grid = even_cells(ONE, [2])
        for call in (
            lambda: pooled_levels(grid, wild, [1] * 4, first_weight=1, second_weight=1),
            lambda: pooled_levels(grid, [1], wild, first_weight=1, second_weight=1),
            lambda: pooled_levels(wild, [1], [1] * 4, first_weight=1, second_weight=1),
            lambda: pooled_levels(grid, [1], [1] * 4, first_weight=wild, second_weight=1),
            lambda: central_consistency(grid, [1], [1] * 4, wild),
            lambda: pooled_levels(grid, [1], [1] * 4, first_weight=1e-200, second_weight=1e200),
        ):
            with pytest.raises(InputError):
                call()


class TestErrors:
    def test_total_of_the_worked_check(self):
        n, f, reports = 2000, 0.3, 1000
        grid = uniform_grid(UNIT, 2, 1)
        unit = (f * P * (1 - P) + (1 - f) * Q * (1 - Q)) / (P - Q) ** 2
        noise = noise_variance(grid, [[0, 0, 0.5, 1]], [reports * unit, 0], scale=n / reports)
        choice = sampling_variance(grid, [[0, 0, 0.5, 1]], [f, 1 - f], n=n, reports=reports)
        assert choice == pytest.approx([n**2 * f * (1 - f) / reports * (n - reports) / (n - 1)])
        assert noise + choice == pytest.approx([16649.2], abs=0.05)

    def test_simulated_answers_have_these_variances(self):
        rng, runs, n, reports = np.random.default_rng(2), 20_000, 500, 200
        grid = even_cells(uniform_grid(UNIT, 2, 1), [2, 1])
        truth = np.array([100, 50, 30, 20, 300])
        queries = np.array([[0.1, 0.2, 0.7, 0.9], [0, 0, 0.5, 0.5]])
        part = rng.multivariate_hypergeometric(truth, reports, runs)
        masses = reported(rng, part) * n / reports
        answers = masses @ grid.overlaps(queries).T
        f = truth / n
        own = reports * (f * P * (1 - P) + (1 - f) * Q * (1 - Q)) / (P - Q) ** 2
        want = noise_variance(grid, queries, own, scale=n / reports)
        want = want + sampling_variance(grid, queries, f, n=n, reports=reports)
        assert answers.var(axis=0) == pytest.approx(want, rel=FAR * math.sqrt(2 / runs))
        exact = grid.query(truth, queries)
        assert (np.abs(answers.mean(axis=0) - exact) < FAR * np.sqrt(want / runs)).all()

    def test_everybody_reports_no_choice(self):
        assert sampling_variance(ONE, [UNIT], [1.0], n=5, reports=5).tolist() == [0]
        assert sampling_variance(ONE, [UNIT], [1.0], n=1, reports=1).tolist() == [0]

    @few
    @given(st.integers(0, 2**32))
    def test_answers_of_true_counts_are_within_the_bound(self, seed):
        rng = np.random.default_rng(seed)
        xy = rng.beta(0.4, 1.5, (200, 2))
        grid = adaptive_cells(uniform_grid(UNIT, 3, 3), rng.random(9), rng.integers(1, 4, 9))
        queries = query_workload(UNIT, 0.15, 20, rng=rng)
        counts = grid.count(xy)
        missed = np.abs(grid.query(counts, queries) - true_answers(xy, queries, UNIT))
        assert (missed <= non_uniformity_bound(grid, queries, counts) + 1e-9).all()
        aligned = grid.first.cells[:4]
        assert non_uniformity_bound(grid, aligned, counts).tolist() == [0] * 4

    def test_bound_is_reached(self):
        # All points in the corner that is asked for, or all of them outside it.
        assert non_uniformity_bound(ONE, [[0, 0, 0.5, 0.5], [0, 0, 1, 0.9]], [8]) == pytest.approx([6, 7.2])

    def test_refusals(self):
        for call in (
            lambda: noise_variance(None, [UNIT], [1.0]),
            lambda: noise_variance(ONE, [UNIT], [-1.0]),
            lambda: noise_variance(ONE, [UNIT], [1.0], scale=math.nan),
            lambda: noise_variance(ONE, [(1, 1, 0, 0)], [1.0]),
            lambda: sampling_variance(ONE, [UNIT], [1.0], n=3, reports=4),
            lambda: sampling_variance(ONE, [UNIT], [1.0], n=3, reports=0),
            lambda: sampling_variance(ONE, [UNIT], ["a"], n=3, reports=1),
            lambda: non_uniformity_bound(ONE, None, [1.0]),
            lambda: non_uniformity_bound(ONE, [UNIT], [math.inf]),
            lambda: report_variance(math.inf),
        ):
            with pytest.raises(InputError):
                call()


class TestGroups:
    def test_rescaled_answers_are_unbiased_and_unscaled_ones_too_low(self):
        rng, n, sigma, runs = np.random.default_rng(3), 1000, 0.3, 4000
        xy = rng.beta(0.5, 2, (n, 2))
        grid = adaptive_cells(uniform_grid(UNIT, 2, 2), [4, 2, 2, 1], [3, 2, 2, 1])
        cells, query = grid.locate(xy), grid.cells[[0]]
        part = np.array([np.bincount(cells[split_users(n, sigma, rng)[1]], minlength=len(grid)) for _ in range(runs)])
        answers = (reported(rng, part) @ grid.overlaps(query).T)[:, 0]
        truth = grid.count(xy)[0]
        assert true_answers(xy, query, UNIT).tolist() == [truth]
        spread = FAR * answers.std() / math.sqrt(runs)
        assert abs(answers.mean() - (1 - sigma) * truth) < spread
        assert abs(answers.mean() * n / 700 - truth) < spread / 0.7
        assert sigma * truth > 2 * spread / 0.7


class TestWorkloads:
    @pytest.mark.parametrize("shape", ["proportional", "random"])
    @pytest.mark.parametrize("rho", [1e-4, 0.04, 0.5, 1.0])
    def test_area_and_place(self, shape, rho):
        bounds = (-124.26, 25.45, -71.87, 47.44)
        queries = query_workload(bounds, rho, 300, shape=shape, rng=7)
        width, height = queries[:, 2] - queries[:, 0], queries[:, 3] - queries[:, 1]
        assert width * height == pytest.approx(rho * 52.39 * 21.99, rel=1e-9)
        assert (queries[:, 0] >= bounds[0]).all()
        assert (queries[:, 1] >= bounds[1]).all()
        assert (queries[:, 2] <= bounds[2]).all()
        assert (queries[:, 3] <= bounds[3]).all()
        if shape == "proportional":
            assert width / height == pytest.approx(52.39 / 21.99, rel=1e-9)
        elif rho < 1:
            assert width.std() > 0.1 * (1 - rho) * 52.39

    def test_places_are_uniform(self):
        queries = query_workload((0, 0, 2, 1), 0.25, 4000, rng=8)
        # Uniform on [0, 1] and [0, 1/2]: standard error of the mean 1 / sqrt(12 * 4000).
        assert abs(queries[:, 0].mean() - 0.5) < FAR / math.sqrt(48_000)
        assert abs(queries[:, 1].mean() - 0.25) < FAR / 2 / math.sqrt(48_000)

    def test_seeds(self):
        one, same, other = (query_workload(UNIT, 0.1, rng=seed) for seed in (1, 1, 2))
        assert one.shape == (500, 4)
        assert (one == same).all()
        assert (one != other).any()

    @few
    @given(st.integers(0, 2**32))
    def test_true_answers_are_a_scan(self, seed):
        rng = np.random.default_rng(seed)
        # Points and corners on few coordinates meet each other and the borders.
        xy = rng.integers(0, 6, (60, 2)) / 5
        corners = np.sort(rng.integers(-1, 7, (30, 2, 2)) / 5, axis=1).reshape(30, 4)
        found = true_answers(xy, corners, UNIT)
        for (x0, y0, x1, y1), count in zip(corners, found, strict=True):
            inside = [
                x0 <= x and (x < x1 or x1 >= 1) and y0 <= y and (y < y1 or y1 >= 1) and x0 < x1 and y0 < y1
                for x, y in xy
            ]
            assert count == sum(inside)

    def test_true_answers_agree_with_cells(self):
        rng = np.random.default_rng(9)
        grid = adaptive_cells(uniform_grid(UNIT, 3, 3), rng.random(9), rng.integers(1, 4, 9))
        xy = np.vstack([rng.random((300, 2)), grid.cells[:, :2], grid.cells[:, 2:]])
        assert (true_answers(xy, grid.cells, UNIT) == grid.count(xy)).all()


class TestScores:
    def test_worked_example(self):
        assert average_query_error([100, 5, 0], [90, 15, 0], 1000) == pytest.approx(0.2)
        exact = (Fraction(10, 100) + Fraction(10, 40) + 0) / 3
        assert average_query_error([100, 5, 0], [90, 15, 0], 1000, bound=0.04) == pytest.approx(float(exact))

    def test_trivial_answers(self):
        assert zero_answers_error([100, 5, 0], 1000) == pytest.approx((1 + 0.25 + 0) / 3)
        queries = [(0, 0, 0.5, 0.5), (-1, -1, 0.1, 0.1), (2, 2, 3, 3)]
        assert constant_density_answers(queries, UNIT, 1000) == pytest.approx([250, 10, 0])

    def test_zero_scores_as_the_share_of_small_queries(self):
        # Spread evenly, no answer exceeds the bound of two hundredths.
        side = (np.arange(100) + 0.5) / 100
        xy = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        truth = true_answers(xy, query_workload(UNIT, 0.01, 200, rng=1), UNIT)
        assert zero_answers_error(truth, len(xy)) == pytest.approx(0.5, rel=0.02)

    @pytest.mark.parametrize("wild", [None, True, "a", math.nan, -1.0, 0, 10**400, object()])
    def test_refusals(self, wild):
        for call in (
            lambda: average_query_error([1], [1], 10, bound=wild),
            lambda: average_query_error([1], [1], wild),
            lambda: average_query_error(wild, [1], 10),
            lambda: average_query_error([1], wild, 10),
            lambda: average_query_error([], [], 10),
            lambda: average_query_error([-1], [1], 10),
            lambda: zero_answers_error(wild, 10),
            lambda: constant_density_answers([UNIT], UNIT, wild),
            lambda: constant_density_answers([UNIT], wild, 10),
            lambda: constant_density_answers(wild, UNIT, 10),
            lambda: query_workload(wild, 0.1),
            lambda: query_workload(UNIT, wild),
            lambda: query_workload(UNIT, 0.1, wild),
            lambda: query_workload(UNIT, 0.1, shape=wild),
            lambda: query_workload(UNIT, 1.0001),
            lambda: true_answers(wild, [UNIT], UNIT),
            lambda: true_answers([[0.5, 0.5]], wild, UNIT),
            lambda: true_answers([[0.5, 1.5]], [UNIT], UNIT),
        ):
            with pytest.raises(InputError):
                call()

    def test_extremes_stay_numbers(self):
        assert math.isfinite(average_query_error([0.0], [1e150], 1, bound=1e-320))
        assert average_query_error([1.0], [0.0], 1, bound=1e308) == pytest.approx(0, abs=1e-100)
