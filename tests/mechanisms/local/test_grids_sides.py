"""Numbers of cells: the rules of both equations, their roundings, and the groups of users."""

import math

import numpy as np
import pytest
from baselines.central_grids import central_first_side, central_second_sides, central_uniform_side
from baselines.grid_errors import report_variance, side_objective
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpppsynth.core.errors import InputError
from dpppsynth.grids import (
    AAG,
    PRIVAG,
    clipped_frequencies,
    first_side,
    group_sizes,
    ideal_side,
    ideal_sides,
    rounded_sides,
    second_sides,
    split_users,
    uniform_side,
)

few = settings(max_examples=50)
USERS = {"gowalla": 3_451_190, "porto": 1_620_157, "foursquare": 573_703}
TABLE = {"gowalla": (36, 81, 324, 900), "porto": (25, 49, 225, 625), "foursquare": (16, 36, 121, 361)}
NUMBERS = [None, True, "1", math.nan, math.inf, -math.inf, 0, -1.0, 10**400, 1j, [1.0], object()]


class TestFirstLevel:
    @pytest.mark.parametrize(
        ("epsilon", "n", "side"),
        [(math.log(2), 20_000, 2.0), (math.log(4), 40_000, 3.4641016), (1.0, 10**6, 6.4565954)],
    )
    def test_closed_form(self, epsilon, n, side):
        assert ideal_side(epsilon, n, 0.02) == pytest.approx(side, abs=5e-8)

    @pytest.mark.parametrize("city", USERS)
    def test_published_numbers_of_cells(self, city):
        assert tuple(first_side(epsilon, USERS[city]) ** 2 for epsilon in (0.5, 1, 3, 5)) == TABLE[city]

    @pytest.mark.parametrize("rounding", ["ceil", "floor"])
    def test_no_other_rounding_gives_them(self, rounding):
        found = {c: tuple(first_side(e, n, rounding=rounding) ** 2 for e in (0.5, 1, 3, 5)) for c, n in USERS.items()}
        assert found != TABLE

    def test_whole_up_to_rounding_is_whole(self):
        for whole in range(1, 60):
            side = ideal_side(math.log(2), 2 * (25 * whole**2) ** 2, 0.02)
            assert side == pytest.approx(whole, rel=1e-13)
            assert rounded_sides([side * (1 - 1e-14), side * (1 + 1e-14)], "floor").tolist() == [whole] * 2
            assert rounded_sides([side * (1 - 1e-14), side * (1 + 1e-14)], "ceil").tolist() == [whole] * 2

    def test_roundings(self):
        sides = [0.0, 0.3, 1.2, 2.5, 2.7]
        assert rounded_sides(sides, "nearest").tolist() == [1, 1, 1, 3, 3]
        assert rounded_sides(sides, "floor").tolist() == [1, 1, 1, 2, 2]
        assert rounded_sides(sides, "ceil").tolist() == [1, 1, 2, 3, 3]

    def test_never_more_cells_than_a_grid_may_have(self):
        assert rounded_sides([1e30], "floor").tolist() == [2048]
        assert (second_sides(np.ones(400), 50.0, 2**53).astype(float) ** 2).sum() <= 2**22

    def test_uniform_side_of_the_suggested_constant(self):
        assert uniform_side(1.0, 573_703) == round(ideal_side(1.0, 573_703, 0.05)) == 9

    @few
    @given(st.floats(0.1, 10), st.integers(1, 10**9), st.floats(1e-3, 1))
    def test_minimises_the_objective_and_balances_its_terms(self, epsilon, n, alpha):
        side = ideal_side(epsilon, n, alpha)
        found = minimize_scalar(
            lambda g: math.log(side_objective(math.exp(g), epsilon, n, alpha)),
            bounds=(math.log(side) - 3, math.log(side) + 2),
        )
        at = math.exp(found.x)
        assert side == pytest.approx(at, rel=1e-3)
        level = 2 * alpha * math.sqrt(math.exp(epsilon) / n) / (math.exp(epsilon) - 1)
        assert side_objective(side, epsilon, n, alpha) == pytest.approx(2 * level, rel=1e-9)

    def test_value_at_the_optimum(self):
        side = ideal_side(1.0, 573_703, 0.02)
        assert side_objective(side, 1.0, 573_703, 0.02) / 2 == pytest.approx(5.0672e-5, abs=5e-10)
        assert report_variance(1.0) == pytest.approx(4 * math.e / (math.e - 1) ** 2, rel=1e-14)

    @few
    @given(st.floats(0.1, 20), st.integers(10, 10**8), st.floats(1e-3, 1), st.floats(1.01, 2))
    def test_grows_with_everything(self, epsilon, n, alpha, factor):
        side = ideal_side(epsilon, n, alpha)
        assert ideal_side(epsilon * factor, n, alpha) > side
        assert ideal_side(epsilon, math.ceil(n * factor), alpha) > side
        assert ideal_side(epsilon, n, alpha * factor) > side


class TestSecondLevel:
    def test_closed_form(self):
        assert ideal_sides([0.32], math.log(2), 40_000, alpha=0.25, sigma=0.5) == pytest.approx([4.0], rel=1e-14)
        assert second_sides([0.32], math.log(2), 40_000).tolist() == [4]
        assert ideal_sides([0.1], 1.0, 573_703, alpha=0.25, sigma=0.5) == pytest.approx([5.2829057], abs=5e-8)

    def test_constants(self):
        assert PRIVAG == (0.02, 0.02, 0.2)
        assert AAG == (0.02, 0.25, 0.5)
        factor = np.divide(*(ideal_sides([0.2], 1.0, 10**6, alpha=0.02, sigma=s) for s in (0.5, 0.2)))
        assert factor == pytest.approx([0.889], abs=5e-4)

    def test_counts_are_refused(self):
        for wrong in ([57_370.0], [-0.1, 0.2], [math.nan]):
            with pytest.raises(InputError, match="frequencies"):
                second_sides(wrong, 1.0, 573_703)

    def test_empty_cells_stay_whole(self):
        assert second_sides([0.0, 1e-9], 1.0, 573_703).tolist() == [1, 1]

    def test_frequencies_are_shares_of_those_who_reported(self):
        assert clipped_frequencies([-3.0, 25.0, 120.0], 100).tolist() == [0.0, 0.25, 1.0]

    @few
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.1, 5), st.integers(100, 10**7))
    def test_squares_add_up_to_the_number_of_cells_they_promise(self, f, epsilon, n):
        shares = np.array(f) / max(sum(f), 1e-9)
        cells = 2 * 0.25 * (math.exp(epsilon) - 1) * math.sqrt(0.5 * n / math.exp(epsilon))
        found = (ideal_sides(np.minimum(shares, 1), epsilon, n, alpha=0.25, sigma=0.5) ** 2).sum()
        assert found == pytest.approx(cells * shares.sum(), rel=1e-9)

    @few
    @given(st.floats(0.01, 0.9), st.floats(0.1, 10), st.floats(0.1, 0.8))
    def test_monotone(self, f, epsilon, sigma):
        side = ideal_sides([f], epsilon, 10**6, alpha=0.1, sigma=sigma)[0]
        assert ideal_sides([f * 1.1], epsilon, 10**6, alpha=0.1, sigma=sigma)[0] > side
        assert ideal_sides([f], epsilon * 1.1, 10**6, alpha=0.1, sigma=sigma)[0] > side
        assert ideal_sides([f], epsilon, 2 * 10**6, alpha=0.1, sigma=sigma)[0] > side
        assert ideal_sides([f], epsilon, 10**6, alpha=0.1, sigma=sigma + 0.1)[0] < side


class TestCentral:
    def test_rules(self):
        assert central_uniform_side(1.0, 1_000_000) == 317
        assert central_uniform_side(0.1, 1000, c=10) == 4
        assert central_first_side(1.0, 1_000_000) == 80
        assert central_first_side(0.1, 100) == 10
        assert central_second_sides([-4, 0, 5, 1000], 0.5, c2=5).tolist() == [1, 1, 1, 10]

    def test_whole_roots_are_not_rounded_up(self):
        assert [central_uniform_side(0.1, 100 * k * k) for k in range(1, 40)] == list(range(1, 40))


class TestGroups:
    @pytest.mark.parametrize(("n", "sigma", "first"), [(100, 0.29, 29), (10, 0.3, 3), (10, 0.7, 7), (9, 0.5, 4)])
    def test_floor_of_the_share_as_written(self, n, sigma, first):
        assert group_sizes(n, sigma) == (first, n - first)

    def test_everybody_is_in_one_group_at_random(self):
        one, other = split_users(1000, 0.2, 3)
        assert sorted(np.concatenate([one, other]).tolist()) == list(range(1000))
        assert len(one) == 200
        again, _ = split_users(1000, 0.2, 3)
        assert (one == again).all()
        # Far from the file's order: the first users' mean number is 499.5 +- 18.3.
        assert abs(one.mean() - 499.5) < 6 * 18.3
        assert (split_users(1000, 0.2, 4)[0] != one).any()

    def test_every_user_is_as_likely(self):
        rng = np.random.default_rng(5)
        hits = sum(np.bincount(split_users(10, 0.3, rng)[0], minlength=10) for _ in range(4000))
        # Binomial(4000, 0.3): beyond 6 standard deviations with probability 2e-9 each.
        assert (np.abs(hits - 1200) < 6 * math.sqrt(4000 * 0.21)).all()

    @pytest.mark.parametrize(("n", "sigma"), [(1, 0.5), (4, 0.2), (10, 0.01), (0, 0.5)])
    def test_no_group_is_empty(self, n, sigma):
        with pytest.raises(InputError, match="n:"):
            group_sizes(n, sigma)


class TestRefusals:
    @pytest.mark.parametrize("wild", NUMBERS)
    def test_wild_numbers(self, wild):
        calls = [
            lambda: ideal_side(wild, 100, 0.02), lambda: ideal_side(1.0, wild, 0.02),
            lambda: ideal_side(1.0, 100, wild), lambda: first_side(1.0, 100, alpha=wild),
            lambda: uniform_side(wild, 100),
            lambda: second_sides([0.1], 1.0, 100, sigma=wild), lambda: second_sides([0.1], 1.0, 100, alpha=wild),
            lambda: second_sides([0.1], 1.0, 100, rounding=wild), lambda: rounded_sides([1.0], wild),
            lambda: group_sizes(wild, 0.5), lambda: group_sizes(10, wild), lambda: split_users(10, wild),
            lambda: clipped_frequencies([1.0], wild), lambda: central_uniform_side(wild, 100),
            lambda: central_first_side(1.0, wild), lambda: central_second_sides([1.0], wild),
            lambda: central_second_sides([1.0], 1.0, c2=wild), lambda: report_variance(wild),
            lambda: side_objective(wild, 1.0, 10, 0.1), lambda: side_objective(1.0, 1.0, 10, wild),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InputError):
                call()

    @pytest.mark.parametrize("epsilon", [50.1, 709.0, 710.0, 1e308, 1e-10])
    def test_epsilon_beyond_reason(self, epsilon):
        with pytest.raises(InputError, match="epsilon"):
            ideal_side(epsilon, 100, 0.02)

    @pytest.mark.parametrize("wild", [None, "a", [None], [math.inf], [[1.0]], 3.0, [True], {}, [-1.0]])
    def test_wild_arrays(self, wild):
        for call in (
            lambda: ideal_sides(wild, 1.0, 100, alpha=0.1, sigma=0.5),
            lambda: rounded_sides(wild, "floor"),
        ):
            with pytest.raises(InputError):
                call()
        if wild != [-1.0]:
            with pytest.raises(InputError, match="counts"):
                clipped_frequencies(wild, 10)

    def test_extremes_stay_numbers(self):
        assert central_uniform_side(1e308, 2**53, c=1e-320) == 2048
        assert central_second_sides([1e150, -1e150], 1e308, c2=1e-320).tolist() == [1448, 1]
        assert ideal_side(1e-9, 1, 1e-300) >= 0
        assert math.isfinite(ideal_side(50, 2**53, 1e150))
