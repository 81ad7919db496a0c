"""Cells of grids of one and two levels: they tile, every point is in one, and queries are shares of areas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.grids import Rectangles, adaptive_cells, even_cells, nested, uniform_grid

few = settings(max_examples=40)
FIGURE = nested(uniform_grid((0, 0, 1, 1), 1, 1), [([0, 2 / 3, 1], [0, 1 / 6, 1])])
WILD = [
    None,
    True,
    "a",
    math.nan,
    math.inf,
    -1,
    0,
    2**70,
    10**400,
    1 + 2j,
    object(),
    [],
    [[]],
    [None],
    ["a"],
    [[1, 2], [3]],
]


@st.composite
def grids(draw):
    """One or two levels of uneven shape, anywhere."""
    x0, y0 = draw(st.floats(-1e4, 1e4)), draw(st.floats(-1e4, 1e4))
    columns, rows = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    bounds = (x0, y0, x0 + draw(st.floats(0.5, 1e3)), y0 + draw(st.floats(0.5, 1e3)))
    grid, cells = uniform_grid(bounds, columns, rows), columns * rows
    if draw(st.booleans()):
        return grid
    sides = draw(st.lists(st.integers(1, 6), min_size=cells, max_size=cells))
    densities = draw(st.lists(st.floats(-5, 100), min_size=cells, max_size=cells))
    cut = draw(st.sampled_from([0.0, 0.01, 0.3, None]))
    return even_cells(grid, sides) if cut is None else adaptive_cells(grid, densities, sides, margin=cut)


def scanned(grid, point):
    """The first cell of which a point is: its rule, cell by cell."""
    _, _, right, top = grid.bounds
    for number, (x0, y0, x1, y1) in enumerate(grid.cells):
        across = x0 <= point[0] < x1 or point[0] == x1 == right
        if across and (y0 <= point[1] < y1 or point[1] == y1 == top):
            return number
    return -1


class TestTiling:
    @few
    @given(grids())
    def test_areas_add_up_and_interiors_are_disjoint(self, grid):
        x0, y0, x1, y1 = grid.bounds
        assert grid.areas.min() > 0
        assert grid.areas.sum() == pytest.approx((x1 - x0) * (y1 - y0), rel=1e-9)
        assert len(grid.cells) == len(grid) == grid.pieces.sum()
        shared = grid.overlaps(grid.cells)
        np.testing.assert_array_equal(shared, np.eye(len(grid)))

    @few
    @given(grids(), st.integers(0, 2**32))
    def test_every_point_is_in_the_cell_that_a_scan_finds(self, grid, seed):
        rng = np.random.default_rng(seed)
        x0, y0, x1, y1 = grid.bounds
        # Corners lie on borders of up to four cells.
        corners = np.vstack([grid.cells[:, :2], grid.cells[:, 2:], grid.cells[:, [0, 3]]])
        inside = np.clip(rng.uniform((x0, y0), (x1, y1), (20, 2)), (x0, y0), (x1, y1))
        points = rng.permutation(np.vstack([corners, inside]))[:40]
        assert grid.locate(points).tolist() == [scanned(grid, point) for point in points]

    def test_numbers_run_along_rows_from_the_bottom(self):
        grid = uniform_grid((0, 0, 3, 2), 3, 2)
        assert grid.locate([[0.5, 0.5], [2.5, 0.5], [0.5, 1.5]]).tolist() == [0, 2, 3]
        assert grid.cells[3].tolist() == [0, 1, 1, 2]
        two = even_cells(grid, [1, 2, 1, 1, 1, 1])
        assert two.locate([[1.2, 0.2], [1.7, 0.2], [1.2, 0.7], [2.5, 0.5]]).tolist() == [1, 2, 3, 5]
        assert two.parents.tolist() == [0, 1, 1, 1, 1, 2, 3, 4, 5]
        assert two.starts.tolist() == [0, 1, 5, 6, 7, 8, 9]
        assert len(two.first) == 6

    def test_borders_belong_to_the_right_and_upper_cell_but_the_last(self):
        grid = uniform_grid((0, 0, 2, 2), 2, 2)
        points = [[1, 0], [0, 1], [1, 1], [2, 2], [2, 0], [0, 2]]
        assert grid.locate(points).tolist() == [1, 2, 3, 3, 1, 2]
        assert grid.count(points).tolist() == [0, 2, 2, 2]

    def test_points_at_a_time_do_not_matter(self, monkeypatch):
        grid = adaptive_cells(uniform_grid((0, 0, 1, 1), 2, 2), [1, 2, 3, 4], [3, 2, 1, 4])
        xy = np.random.default_rng(3).random((50, 2))
        at_once = grid.locate(xy)
        monkeypatch.setattr("dpppsynth.mechanisms.local.grids.rectangles.POINTS", 7)
        assert (grid.locate(xy) == at_once).all()

    def test_many_pieces_in_one_cell_among_whole_ones(self):
        sides = np.ones(9, dtype=int)
        sides[4] = 37
        grid = even_cells(uniform_grid((0, 0, 3, 3), 3, 3), sides)
        middles = (grid.cells[:, :2] + grid.cells[:, 2:]) / 2
        assert (grid.locate(middles) == np.arange(9 - 1 + 37**2)).all()
        assert (grid.locate(grid.cells[:, :2]) == np.arange(len(grid))).all()


class TestQueries:
    def test_worked_figure(self):
        assert FIGURE.query([3, 2, 10, 5], [[0, 0, 0.5, 0.5]]) == pytest.approx([5.25])

    @few
    @given(grids(), st.integers(0, 2**32))
    def test_whole_cells_and_everything(self, grid, seed):
        masses = np.random.default_rng(seed).normal(size=len(grid))
        assert grid.query(masses, grid.cells) == pytest.approx(masses, rel=1e-12)
        assert grid.query(masses, [grid.bounds]) == pytest.approx([masses.sum()], abs=1e-9)

    @few
    @given(grids(), st.integers(0, 2**32))
    def test_additive_over_disjoint_rectangles_and_equal_to_exact_shares(self, grid, seed):
        rng = np.random.default_rng(seed)
        x0, y0, x1, y1 = grid.bounds
        masses = rng.integers(-5, 50, len(grid))
        a, c, b = np.sort(rng.uniform(x0, x1, 3))
        low, high = np.sort(rng.uniform(y0, y1, 2))
        whole, left, right = grid.query(masses, [[a, low, b, high], [a, low, c, high], [c, low, b, high]])
        assert whole == pytest.approx(left + right, abs=1e-7)
        assert whole == pytest.approx(float(by_fractions(grid, masses, (a, low, b, high))), abs=1e-7)

    def test_what_is_outside_holds_nothing(self):
        grid = uniform_grid((0, 0, 2, 2), 2, 2)
        rectangles = [[-5, -5, 1, 9], [3, 3, 4, 4], [2, 0, 3, 2], [-1, -1, 0, 0], [1, 1, 1, 2], [0.5, 0.5, 0.5, 0.5]]
        assert grid.query([1, 2, 3, 4], rectangles).tolist() == [4, 0, 0, 0, 0, 0]

    def test_answers_are_not_clipped_and_batches_do_not_matter(self, monkeypatch):
        grid, rng = uniform_grid((0, 0, 1, 1), 5, 7), np.random.default_rng(1)
        masses = rng.normal(size=35) - 3
        corners = np.sort(rng.random((23, 2, 2)), axis=1).reshape(23, 4)
        at_once = grid.query(masses, corners)
        assert (at_once < 0).all()
        monkeypatch.setattr("dpppsynth.mechanisms.local.grids.rectangles.BATCH", 100)
        assert grid.query(masses, corners) == pytest.approx(at_once, rel=1e-12)

    def test_no_rectangles_no_points(self):
        assert FIGURE.query([1, 1, 1, 1], np.zeros((0, 4))).shape == (0,)
        assert FIGURE.query([1, 1, 1, 1], []).shape == FIGURE.locate([]).shape == (0,)
        assert FIGURE.count([]).tolist() == [0] * 4

    def test_exact_counts_make_aligned_queries_exact(self):
        rng = np.random.default_rng(2)
        grid = adaptive_cells(uniform_grid((0, 0, 2, 2), 2, 2), [1, 9, 4, 2], [3, 2, 1, 4])
        xy = rng.uniform(0, 2, (500, 2))
        found = grid.query(grid.count(xy), grid.first.cells)
        assert found == pytest.approx(grid.first.count(xy), rel=1e-12)


def by_fractions(grid, masses, rectangle):
    """The answer in exact arithmetic."""
    a0, b0, a1, b1 = map(Fraction, rectangle)
    total = Fraction(0)
    for mass, cell in zip(masses.tolist(), grid.cells.tolist(), strict=True):
        x0, y0, x1, y1 = map(Fraction, cell)
        wide, high = max(Fraction(0), min(a1, x1) - max(a0, x0)), max(Fraction(0), min(b1, y1) - max(b0, y0))
        total += mass * wide * high / ((x1 - x0) * (y1 - y0))
    return total


class TestRefusals:
    @pytest.mark.parametrize("bounds", [(0, 0, 0, 1), (0, 1, 1, 0), (0, 0, math.nan, 1), (0, 0, 1e-200, 1e-200), *WILD])
    def test_bounds(self, bounds):
        with pytest.raises(InputError, match="bounds"):
            uniform_grid(bounds, 2, 2)

    @pytest.mark.parametrize("side", [0, -1, 1.5, 2**23, *[each for each in WILD if each is not None]])
    def test_sides(self, side):
        for columns, rows in ((side, 1), (1, side)):
            with pytest.raises(InputError):
                uniform_grid((0, 0, 1, 1), columns, rows)

    def test_too_many_cells_are_refused_before_they_are_made(self):
        with pytest.raises(InputError, match="cells"):
            uniform_grid((0, 0, 1, 1), 4096, 4096)
        with pytest.raises(InputError, match="cells"):
            even_cells(FIGURE.first, [2049])

    def test_cells_too_narrow_for_floats(self):
        with pytest.raises(InputError, match="narrow"):
            uniform_grid((1e9, 0, 1e9 + 1e-6, 1), 100, 1)
        with pytest.raises(InputError, match="narrow"):
            uniform_grid((0, 0, 1e-160, 1e-160), 100, 100)

    def test_points_outside_and_swapped_axes(self):
        grid = uniform_grid((-125, 25, -70, 47), 3, 3)
        for point in ([[40.0, -100.0]], [[-100, 47.1]], [[-126, 30]]):
            with pytest.raises(InputError, match="outside") as caught:
                grid.locate(point)
            assert "take larger bounds from public knowledge (leave others out only where n is secret" in str(
                caught.value
            )
            assert "40" not in str(caught.value)
            assert "126" not in str(caught.value)

    @pytest.mark.parametrize(
        "wild", [*WILD, [[0, 0, math.nan, 1]], [[1, 0, 0, 1]], [[0, 1, 1, 0]], [["0", "0", "1", "1"]]]
    )
    def test_wild_queries(self, wild):
        if isinstance(wild, list) and not wild:
            return
        with pytest.raises(InputError, match=r"rectangles"):
            FIGURE.query([1, 1, 1, 1], wild)
        with pytest.raises(InputError, match=r"rectangles"):
            FIGURE.overlaps(wild)

    @pytest.mark.parametrize("wild", WILD)
    def test_wild_points_masses_and_lines(self, wild):
        if wild != []:
            with pytest.raises(InputError, match="xy"):
                FIGURE.locate(wild)
        with pytest.raises(InputError, match="masses"):
            FIGURE.query(wild, [[0, 0, 1, 1]])
        for columns, rows, inner in ((wild, [0, 1], ()), ([0, 1], wild, ()), ([0, 1], [0, 1], wild)):
            if inner != [] or rows == []:
                with pytest.raises(InputError):
                    Rectangles(columns, rows, inner)
        with pytest.raises(InputError):
            nested(FIGURE.first, wild)
        with pytest.raises(InputError):
            nested(wild, [([0, 1], [0, 1])])

    def test_lines_that_do_not_tile(self):
        grid = uniform_grid((0, 0, 1, 1), 1, 1)
        for lines in (([0, 0.5], [0, 1]), ([0.1, 1], [0, 1]), ([0, 1], [0, 1.1]), ([0, 0.6, 0.6, 1], [0, 1])):
            with pytest.raises(InputError, match="inner"):
                nested(grid, [lines])
        with pytest.raises(InputError, match="inner"):
            nested(grid, [([0, 1], [0, 1])] * 2)
        with pytest.raises(InputError, match="already cut"):
            nested(FIGURE, [([0, 1], [0, 1])])

    def test_lines_are_kept_apart_from_the_caller(self):
        lines = np.array([0.0, 1.0, 2.0])
        grid = Rectangles(lines, lines)
        lines[1] = 0.5
        assert grid.columns.tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="read-only"):
            grid.columns[1] = 0.5
