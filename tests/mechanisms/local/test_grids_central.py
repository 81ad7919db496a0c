"""Grids of a curator who sees all points: what noise they get, and that nothing else depends on the points."""

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from baselines.central_grids import CentralAdaptiveGrid, CentralUniformGrid, central_second_sides
from baselines.range_queries import true_answers
from hypothesis import given, settings
from hypothesis import strategies as st
from support.opendp import laplace_by

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import AddRemove, PureDP, laplace_scale
from dpppsynth.spatial.domains import Window

UNIT = (0, 0, 1, 1)
XY = np.random.default_rng(1).beta(1, 3, (5000, 2))


@pytest.fixture
def silent():
    """No noise, whose samplers know what they were asked for."""
    with laplace_by() as samplers:
        yield samplers


class TestUniform:
    def test_counts_meet_one_noise_of_the_whole_budget(self, silent):
        estimate = CentralUniformGrid(UNIT, epsilon=0.5, expected_n=2000).release_counts(XY)
        assert len(estimate.rectangles) == 10**2
        assert (silent[-1].scale, silent[-1].sensitivity) == (laplace_scale(1, 0.5), 1)
        assert (estimate.masses == estimate.rectangles.count(XY)).all()
        assert estimate.query([UNIT]) == pytest.approx([5000])

    def test_cells_know_the_guess_alone(self):
        grid = CentralUniformGrid(UNIT, epsilon=1.0, expected_n=1000)
        few, many = (grid.release_counts(points, rng=1).rectangles.cells for points in (XY[:0], XY))
        assert (few == many).all()

    def test_noise_of_a_seed_has_the_variance_of_discrete_laplace(self):
        estimate = CentralUniformGrid(UNIT, epsilon=0.7, expected_n=200_000).release_counts([], rng=2)
        q, cells = math.exp(-0.7), len(estimate.rectangles)
        assert cells == 119**2
        # The law's kurtosis is below 6: five deviations of the variance's ratio to the truth.
        assert estimate.masses.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=6 * math.sqrt(5 / cells))
        assert estimate.seeded


class TestAdaptive:
    def test_levels_share_the_budget(self, silent):
        grid = CentralAdaptiveGrid(UNIT, epsilon=1.0, expected_n=5000, share=0.25)
        silent.clear()
        estimate = grid.release_counts(XY)
        assert [each.scale for each in silent] == [laplace_scale(1, 0.25), laplace_scale(1, 0.75)]
        assert len(grid.first) == 100
        sides = central_second_sides(grid.first.count(XY), 0.75)
        assert estimate.rectangles.pieces.tolist() == (sides**2).tolist()
        # Without noise both levels agree as they are.
        assert estimate.masses == pytest.approx(estimate.rectangles.count(XY))
        assert estimate.query(grid.first.cells) == pytest.approx(grid.first.count(XY))

    def test_first_level_takes_part_in_the_masses(self):
        with laplace_by(lambda _, values: np.add(values, 8)):
            estimate = CentralAdaptiveGrid(UNIT, epsilon=8 / 3, expected_n=100, share=0.25).release_counts(XY[:0])
        # Noised counts of 8 at epsilon 2 ask for two pieces per axis, each noised to 8: 32 below against 8 above.
        assert (estimate.rectangles.pieces == 4).all()
        assert estimate.masses == pytest.approx(np.full(400, (4 * 8 + 9 * 32) / (4 + 9) / 4))

    @settings(max_examples=60)
    @given(st.floats(1e-6, 50), st.floats(1e-6, 1 - 1e-6))
    def test_budgets_add_up_to_no_more(self, epsilon, share):
        first, second = CentralAdaptiveGrid(UNIT, epsilon=epsilon, expected_n=10, share=share).budgets
        assert Fraction(first) + Fraction(second) <= Fraction(epsilon)
        assert first + second == pytest.approx(epsilon, rel=1e-15)

    def test_a_point_more_changes_one_count_per_level_by_one(self, silent):
        for grid in (
            CentralAdaptiveGrid(UNIT, epsilon=1.0, expected_n=100),
            CentralUniformGrid(UNIT, epsilon=1.0, expected_n=100),
        ):
            silent.clear()
            first = grid.release_counts(XY[:50])
            second = grid.release_counts(XY[:51])
            counts = [np.array(values) for each in silent for values in each.values]
            levels = len(counts) // 2
            assert np.abs(counts[0] - counts[levels]).sum() == 1
            if len(first.rectangles) == len(second.rectangles):
                assert np.abs(counts[levels - 1] - counts[-1]).sum() == 1

    def test_second_level_depends_on_noised_counts_alone(self):
        grid = CentralAdaptiveGrid(UNIT, epsilon=1.0, expected_n=1000)
        one = grid.release_counts(XY, rng=5)
        # Points moved inside their first-level cells: the same noised counts, so the same cells.
        cell = grid.first.cells[grid.first.locate(XY)]
        two = grid.release_counts(cell[:, :2] + 0.25 * (cell[:, 2:] - cell[:, :2]), rng=5)
        assert (one.rectangles.cells == two.rectangles.cells).all()
        assert (one.masses != two.masses).any()


@pytest.mark.parametrize("kind", [CentralUniformGrid, CentralAdaptiveGrid])
class TestBoth:
    def test_guarantee(self, kind):
        estimate = kind(UNIT, epsilon=0.8, expected_n=100).release_counts(XY[:10])
        assert not estimate.seeded
        assert estimate.guarantee.relation == AddRemove()
        assert estimate.guarantee.profile == PureDP(0.8)
        assert "public-grid-settings" in estimate.guarantee.assumptions

    def test_secret_noise_differs_and_seeds_repeat(self, kind):
        grid = kind(UNIT, epsilon=0.5, expected_n=1000)
        secret = [grid.release_counts(XY[:100]).masses.sum() for _ in range(3)]
        assert len(set(secret)) > 1
        assert (grid.release_counts(XY, rng=4).masses == grid.release_counts(XY, rng=4).masses).all()

    def test_window_stands_for_its_box(self, kind):
        window = Window.polygon(shapely.Polygon([(0, 0), (10, 0), (0, 5)]))
        assert kind(window, epsilon=1.0, expected_n=10).bounds == (0, 0, 10, 5)

    def test_unbiased(self, kind):
        grid = kind(UNIT, epsilon=1.0, expected_n=400)
        cells = grid.rectangles if kind is CentralUniformGrid else grid.first
        query = [[0, 0, cells.columns[2], 1]]
        answers = [grid.release_counts(XY[:400], rng=seed).query(query)[0] for seed in range(30)]
        truth = true_answers(XY[:400], query, UNIT)[0]
        assert truth > 100
        # Student's t of 29 degrees of freedom exceeds 7 with probability 1e-7.
        assert abs(np.mean(answers) - truth) < 7 * np.std(answers, ddof=1) / math.sqrt(30)

    @pytest.mark.parametrize("wild", [None, True, "1", math.nan, math.inf, 0, -1, 10**400, 1j, [1.0], object()])
    def test_wild_arguments(self, kind, wild):
        good = {"epsilon": 1.0, "expected_n": 10}
        for name in (*good, "c", *(("share", "c2") if kind is CentralAdaptiveGrid else ())):
            with pytest.raises(InputError):
                kind(UNIT, **(good | {name: wild}))
        with pytest.raises(InputError):
            kind(wild, **good)
        with pytest.raises(InputError):
            kind(UNIT, **good).release_counts(wild)

    def test_epsilons_without_room(self, kind):
        with pytest.raises(InputError, match="epsilon"):
            kind(UNIT, epsilon=1e-300, expected_n=10)

    def test_epsilons_that_hide_nothing(self, kind):
        assert kind(UNIT, epsilon=50, expected_n=10).epsilon == 50
        for epsilon in (50.001, 1e9):
            with pytest.raises(InputError, match=r"epsilon: must be positive and at most 50, .*1\.0 is usual"):
                kind(UNIT, epsilon=epsilon, expected_n=10)

    def test_points_outside(self, kind):
        with pytest.raises(InputError, match="outside"):
            kind(UNIT, epsilon=1.0, expected_n=10).release_counts([[2.0, 0.5]])
