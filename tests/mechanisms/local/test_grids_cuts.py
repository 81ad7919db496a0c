"""Cuts of second levels: the worked examples, orientation, numbers of cells, and the edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.grids import adaptive_cells, even_cells, second_sides, split_ratios, uniform_grid

few = settings(max_examples=40)
SQUARE = uniform_grid((0, 0, 2, 2), 2, 2)
THREE = uniform_grid((0, 0, 3, 3), 3, 3)
# Upper 10000, lower 50000, left 2000, right 4000 around the middle; corners must not matter.
FIGURE = [7, 50_000, 8, 2000, 123, 4000, 9, 10_000, 6]
DENSITIES = st.lists(st.floats(-10, 100), min_size=9, max_size=9)


def line(grid, cell):
    """(x*, y*) of a cell of side 2."""
    x, y = grid.inner[cell]
    return float(x[1]), float(y[1])


class TestWorkedExamples:
    def test_two_by_two(self):
        grid = adaptive_cells(SQUARE, [10, 30, 20, 40], [2, 2, 2, 2])
        want = [(3 / 4, 2 / 3), (7 / 4, 4 / 7), (2 / 3, 5 / 3), (5 / 3, 11 / 7)]
        assert [line(grid, cell) for cell in range(4)] == [pytest.approx(each, rel=1e-14) for each in want]

    def test_figure(self):
        ratios = split_ratios(THREE, FIGURE)
        assert (ratios.right[4], ratios.below[4]) == pytest.approx((2 / 3, 5 / 6))
        grid = adaptive_cells(THREE, FIGURE, [1, 1, 1, 1, 2, 1, 1, 1, 1])
        assert line(grid, 4) == pytest.approx((1 + 2 / 3, 1 + 1 / 6))
        assert len(grid) == 12
        # Lower left, lower right, upper left, upper right: heights are 5 to 1 from the top, and densities 1 to 5.
        assert grid.areas[4:8] == pytest.approx([1 / 9, 1 / 18, 5 / 9, 5 / 18])

    def test_equal_density_on_half_and_neighbour_gives_strips_of_equal_mass(self):
        right, left = 4000.0, 2000.0
        share = split_ratios(THREE, FIGURE).right[4]
        assert share * left == pytest.approx((1 - share) * right)


class TestOrientation:
    def test_denser_neighbours_draw_the_line(self):
        for cell, place in ((5, 0), (3, 1), (7, 2), (1, 3)):
            densities = np.ones(9)
            densities[cell] = 5
            x, y = line(adaptive_cells(THREE, densities, [1, 1, 1, 1, 2, 1, 1, 1, 1]), 4)
            assert (x > 1.5, x < 1.5, y > 1.5, y < 1.5) == tuple(place == number for number in range(4))

    @few
    @given(DENSITIES)
    def test_mirrors(self, densities):
        ratios = split_ratios(THREE, densities)
        field = np.array(densities).reshape(3, 3)
        across, down = split_ratios(THREE, field[:, ::-1].ravel()), split_ratios(THREE, field[::-1].ravel())
        assert across.right.reshape(3, 3)[:, ::-1].ravel() == pytest.approx(1 - ratios.right)
        assert down.below.reshape(3, 3)[::-1].ravel() == pytest.approx(1 - ratios.below)

    @few
    @given(DENSITIES, st.sampled_from([1e-140, 1e-3, 17.0, 1e140]))
    def test_scale_does_not_matter(self, densities, factor):
        large = [each for each in densities if each > 0 and each < 1e-8]
        if not large:
            one, other = split_ratios(THREE, densities), split_ratios(THREE, np.array(densities) * factor)
            assert one.right == pytest.approx(other.right, rel=1e-12)
            assert one.below == pytest.approx(other.below, rel=1e-12)


class TestEdges:
    def test_missing_neighbours_are_the_cell_itself_not_zero(self):
        ratios = split_ratios(uniform_grid((0, 0, 3, 1), 3, 1), [10, 30, 20])
        assert ratios.right == pytest.approx([0.75, 2 / 3, 0.4])
        assert ratios.below.tolist() == [0.5] * 3

    def test_one_cell(self):
        ratios = split_ratios(uniform_grid((0, 0, 1, 1), 1, 1), [5])
        assert (ratios.right.tolist(), ratios.below.tolist()) == ([0.5], [0.5])

    def test_nothing_around_is_the_middle(self):
        ratios = split_ratios(THREE, [-1.0] * 9)
        assert (ratios.right == 0.5).all()
        assert (ratios.below == 0.5).all()

    def test_negative_densities_count_as_zero_and_are_clamped(self):
        grid = uniform_grid((0, 0, 3, 1), 3, 1)
        assert split_ratios(grid, [-40, 1, 10]).right[1] == 0.99
        assert split_ratios(grid, [10, 1, -40], margin=0.2).right[1] == 0.2
        assert split_ratios(grid, [10, 1, 0], margin=0).right[1] == 0

    def test_without_clamp_strips_without_width_are_left_out(self):
        grid = adaptive_cells(uniform_grid((0, 0, 3, 1), 3, 1), [0, 1, 10], [1, 4, 1], margin=0)
        x, y = grid.inner[1]
        # All of the width is left of the line: two pieces there, none beyond.
        assert x.tolist() == [1, 1.5, 2]
        assert len(y) == 5
        assert grid.areas.min() > 0
        grid = adaptive_cells(uniform_grid((0, 0, 3, 1), 3, 1), [10, 1, 0], [1, 3, 1], margin=0)
        assert grid.inner[1][0].tolist() == [1, 1.5, 2]


class TestNumbers:
    @few
    @given(DENSITIES, st.lists(st.integers(1, 7), min_size=9, max_size=9), st.sampled_from([0.01, 0.3]))
    def test_every_cell_becomes_side_times_side_cells(self, densities, sides, delta):
        for grid in (adaptive_cells(THREE, densities, sides, margin=delta), even_cells(THREE, sides)):
            assert grid.pieces.tolist() == [side**2 for side in sides]
            assert [(len(x) - 1, len(y) - 1) for x, y in grid.inner] == [(side, side) for side in sides]

    def test_the_wider_part_gets_the_odd_piece(self):
        wide_left = adaptive_cells(THREE, FIGURE, [5] * 9).inner[4]
        # Left part 2/3 in three pieces; upper part 5/6 in three pieces, lower in two.
        assert wide_left[0] == pytest.approx(1 + np.array([0, 2 / 9, 4 / 9, 2 / 3, 5 / 6, 1]))
        assert wide_left[1] == pytest.approx(1 + np.array([0, 1 / 12, 1 / 6, 1 / 6 + 5 / 18, 1 / 6 + 5 / 9, 1]))
        wide_right = adaptive_cells(THREE, FIGURE[::-1], [5] * 9).inner[4]
        assert wide_right[0] == pytest.approx(2 - (wide_left[0][::-1] - 1))
        assert wide_right[1] == pytest.approx(2 - (wide_left[1][::-1] - 1))

    def test_ties_give_it_to_the_left_and_to_the_upper_part(self):
        x, y = adaptive_cells(THREE, [1] * 9, [3] * 9).inner[4]
        assert x == pytest.approx([1, 1.25, 1.5, 2])
        assert y == pytest.approx([1, 1.5, 1.75, 2])

    @pytest.mark.parametrize(
        ("pieces", "counts"),
        [
            ("exact", [1, 4, 9, 16, 25, 36]),
            ("literal_floor", [4, 4, 4, 4, 16, 16]),
            ("literal_ceil", [4, 4, 4, 16, 16, 36]),
        ],
    )
    def test_rules(self, pieces, counts):
        grid = adaptive_cells(uniform_grid((0, 0, 6, 1), 6, 1), [1, 2, 3, 4, 5, 6], range_of(6), pieces=pieces)
        assert grid.pieces.tolist() == counts

    @few
    @given(st.lists(st.integers(1, 4), min_size=9, max_size=9))
    def test_equal_densities_and_even_sides_make_even_cells(self, halves):
        sides = [2 * half for half in halves]
        uneven, even = adaptive_cells(THREE, [3.5] * 9, sides), even_cells(THREE, sides)
        np.testing.assert_allclose(uneven.cells, even.cells, rtol=1e-14, atol=1e-14)

    def test_grid_that_is_no_square(self):
        grid = uniform_grid((0, 0, 3, 2), 3, 2)
        ratios = split_ratios(grid, [1, 2, 3, 4, 5, 6])
        assert ratios.right == pytest.approx([2 / 3, 3 / 4, 3 / 5, 5 / 9, 6 / 10, 6 / 11])
        assert ratios.below == pytest.approx([1 / 5, 2 / 7, 3 / 9, 1 / 5, 2 / 7, 3 / 9])

    def test_the_same_numbers_give_the_same_grid(self):
        sides = second_sides(np.arange(9) / 36, 1.0, 100_000)
        one, other = (adaptive_cells(THREE, np.arange(9) / 36, sides) for _ in range(2))
        assert (one.cells == other.cells).all()


def range_of(number):
    return np.arange(1, number + 1)


class TestRefusals:
    @pytest.mark.parametrize(
        "wild",
        [None, True, 3, "ab", [1, 2], [1.0] * 4, [0, 1, 1, 1], [-1] * 4, [2**70] * 4, [None] * 4, [1, 1, 1, 3000]],
    )
    def test_sides(self, wild):
        for call in (lambda: even_cells(SQUARE, wild), lambda: adaptive_cells(SQUARE, [1] * 4, wild)):
            with pytest.raises(InputError, match="sides"):
                call()

    @pytest.mark.parametrize(
        "wild", [None, 1.0, "a", [1] * 3, [math.nan] * 4, [1, math.inf, 1, 1], [[1, 1], [1, 1]], [1e200] * 4]
    )
    def test_densities(self, wild):
        with pytest.raises(InputError, match="densities"):
            adaptive_cells(SQUARE, wild, [2] * 4)
        with pytest.raises(InputError, match="densities"):
            split_ratios(SQUARE, wild)

    @pytest.mark.parametrize("wild", [None, True, -0.1, 0.5, math.nan, math.inf, "0.1", 10**400])
    def test_options(self, wild):
        with pytest.raises(InputError, match="margin"):
            split_ratios(SQUARE, [1] * 4, margin=wild)
        with pytest.raises(InputError, match="pieces"):
            adaptive_cells(SQUARE, [1] * 4, [2] * 4, pieces=wild)

    @pytest.mark.parametrize("wild", [None, 3, "grid", np.zeros((4, 4)), even_cells(SQUARE, [2] * 4)])
    def test_grid(self, wild):
        for call in (
            lambda: even_cells(wild, [1]),
            lambda: split_ratios(wild, [1]),
            lambda: adaptive_cells(wild, [1], [1]),
        ):
            with pytest.raises(InputError, match="grid"):
                call()
