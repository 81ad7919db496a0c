"""Pyramids, the choice of cells, and the exact reconstruction: closed forms, two linear programs, exact arithmetic."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from baselines.heatmap_arrays import select_cells
from baselines.heatmap_error_bounds import pyramid_norm
from baselines.heatmap_programs import compact_lp, full_lp, objective
from scipy.optimize import linprog

from dpppsynth.mechanisms.heatmap.bound import layout, start_level
from dpppsynth.mechanisms.heatmap.reconstruction import solve
from dpppsynth.mechanisms.heatmap.tree import grow, pyramid

SMALL = np.array([[4, 3], [2, 1]])


def reconstruct(levels, w, inside=None):
    return solve(select_cells(levels, w, inside))


def noisy(rng, depth, first, *, whole=False):
    """Noisy counts of a few persons; whole numbers make ties of every kind."""
    persons = rng.poisson(rng.choice([0.1, 1.0, 4.0]), (2**depth, 2**depth))
    scale = rng.choice([0.3, 2.0, 6.0])
    noises = [scale * rng.laplace(size=sums.shape) for sums in pyramid(persons)[first:]]
    return [
        sums + (np.round(noise) if whole else noise)
        for sums, noise in zip(pyramid(persons)[first:], noises, strict=True)
    ]


def random_mask(rng, side):
    mask = rng.random((side, side)) < rng.choice([0.2, 0.6])
    mask[rng.integers(side), rng.integers(side)] = True
    return mask


def cases(seed, number, deepest, widest=20):
    """(levels, w, mask) for random depth, first level and w, theory and practical among them."""
    rng = np.random.default_rng(seed)
    for case in range(number):
        depth, w = int(rng.integers(deepest + 1)), int(rng.integers(1, widest + 1))
        first = (0, start_level(w, depth), int(rng.integers(depth + 1)))[case % 3]
        mask = random_mask(rng, 2**depth) if case % 2 else None
        yield noisy(rng, depth, first, whole=case % 4 < 2), w, mask


# --- the pyramid


def test_levels_are_sums_over_squares_and_whole_numbers_stay_whole():
    p = np.random.default_rng(1).integers(-5, 9, (8, 8))
    for level, sums in enumerate(pyramid(p.astype(np.int8))):
        width = 8 >> level
        expected = [[p[width * u : width * (u + 1), width * v : width * (v + 1)].sum() for v in range(2**level)]
                    for u in range(2**level)]  # fmt: skip
        assert sums.dtype == np.int64
        np.testing.assert_array_equal(sums, expected)


def test_small_whole_numbers_do_not_overflow():
    assert pyramid(np.full((16, 16), 255, np.uint8))[0].item() == 255 * 256


def test_norm_has_its_closed_forms():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(256)).reshape(16, 16)
    corners, neighbours = np.zeros((2, 16, 16))
    corners[0, 0], corners[-1, -1] = 1, -1
    neighbours[7, 3], neighbours[8, 3] = 1, -1
    assert pyramid_norm(p) == pytest.approx(2 - 1 / 16, abs=1e-12)
    assert pyramid_norm(SMALL) == 15
    assert pyramid_norm(corners) == pyramid_norm(neighbours) == 2 * (1 - 1 / 16)


@pytest.mark.parametrize("side", [2, 4])
def test_norm_dominates_the_earth_movers_distance_of_arrays_that_sum_to_zero(side):
    rng = np.random.default_rng(side)
    place = np.array(list(product(range(side), repeat=2))) / side
    distance = np.abs(place[:, None] - place[None]).sum(axis=2)
    one = np.ones(side**2)
    marginals = np.vstack([np.kron(np.eye(side**2), one), np.kron(one, np.eye(side**2))])
    for _ in range(10):
        p, q = rng.dirichlet(np.full(side**2, 0.3), 2)
        least = linprog(distance.ravel(), A_eq=marginals[:-1], b_eq=np.concatenate([p, q])[:-1]).fun
        assert least <= pyramid_norm((p - q).reshape(side, side)) + 1e-9


# --- which cells are looked at


def test_read_is_called_once_a_level_with_the_children_of_kept_cells_in_order():
    asked = []

    def read(level, cells):
        asked.append((level, cells.tolist()))
        return np.array([0.0, 0, 5, 0])[np.arange(len(cells)) % 4] + np.arange(len(cells))

    tree = grow(1, 3, 2, read)
    # Level 1 is kept whole: 4 cells, 16 children, of which positions 14 and 10, cells (3, 2) and (3, 0), lead.
    children = [
        code for u, v in product(range(2), repeat=2) for x, z in product(range(2), repeat=2)
        for code in [(2 * u + x) * 4 + 2 * v + z]
    ]  # fmt: skip
    assert asked[0] == (1, [0, 1, 2, 3])
    assert asked[1] == (2, children)
    assert tree.levels[1].kept.tolist() == [10, 14]
    assert tree.levels[1].cells[[10, 14]].tolist() == [3 * 4 + 0, 3 * 4 + 2]
    assert asked[2] == (3, [6 * 8, 6 * 8 + 1, 7 * 8, 7 * 8 + 1, 6 * 8 + 4, 6 * 8 + 5, 7 * 8 + 4, 7 * 8 + 5])
    assert len(asked) == 3


@pytest.mark.parametrize(("first", "depth", "w"), [(0, 4, 1), (0, 4, 3), (2, 5, 20), (1, 3, 2), (3, 3, 500), (0, 0, 1)])
def test_how_many_cells_are_looked_at_is_public(first, depth, w):
    rng = np.random.default_rng(depth)
    for mask in (None, random_mask(rng, 2**depth)):
        tree = grow(first, depth, w, lambda level, cells: rng.normal(size=len(cells)), mask)
        assert tuple(len(level.cells) for level in tree.levels) == layout(first, depth, w)
        assert all(len(np.unique(level.cells)) == len(level.cells) for level in tree.levels)


def test_only_children_of_kept_cells_are_eligible():
    counts = np.zeros((4, 4))
    counts[3, 3] = 1000
    tree = select_cells([[[0]], [[5, 1], [1, 4]], counts], w=1)
    assert tree.levels[2].cells.tolist() == [0, 1, 4, 5]
    assert 15 not in tree.levels[2].cells


def test_negative_counts_are_eligible_and_the_largest_win():
    tree = select_cells([[[-3]], [[-4, -1], [-2, -9]]], w=2)
    assert tree.levels[1].kept.tolist() == [1, 2]


def test_equal_counts_go_by_position():
    rng = np.random.default_rng(5)
    for _ in range(20):
        counts = rng.integers(0, 2, (8, 8))
        kept = select_cells([counts.reshape(4, 2, 4, 2).sum(axis=(1, 3)), counts], w=9).levels[1].kept
        order = select_cells([np.zeros((4, 4)), counts], w=9).levels[1]
        expected = sorted(range(64), key=lambda k: (-order.counts[k], k))[:9]
        assert kept.tolist() == sorted(expected)


def test_dead_cells_count_nothing_and_are_kept_last():
    inside = np.zeros((4, 4), bool)
    inside[0, 0] = inside[3, 2] = inside[3, 3] = True
    tree = grow(0, 2, 3, lambda _, cells: np.where(np.isin(cells, [0, 14, 15]), -5.0, 1e9), inside)
    first, second, third = tree.levels
    assert (first.counts.tolist(), first.alive.tolist()) == ([-5.0], [True])
    # (0, 0) and (1, 1) hold grid cells inside; then, by position, the dead (0, 1).
    assert second.alive.tolist() == [True, False, False, True]
    assert second.kept.tolist() == [0, 1, 3]
    assert second.counts[[1, 2]].tolist() == [0.0, 0.0]
    assert third.alive.nonzero()[0].tolist() == [0, 10, 11]
    assert third.kept.tolist() == [0, 10, 11]


# --- the reconstruction


class Exact:
    """The reconstruction by its definition, cell by cell in exact arithmetic: slow, and shares no code."""

    def __init__(self, levels, w, inside):
        self.first, self.depth = len(levels[0]).bit_length() - 1, len(levels[-1]).bit_length() - 1
        self.levels, self.side = levels, 2**self.depth
        self.inside = np.ones((self.side, self.side), bool) if inside is None else inside
        self.top = [(self.first, u, v) for u, v in product(range(2**self.first), repeat=2)]
        self.kept, layer = set(self.top), self.top
        for _ in range(self.first, self.depth):
            candidates = [child for cell in layer for child in self.children(*cell)]
            chosen = sorted(candidates, key=lambda cell: (not self.block(*cell), -self.count(*cell)))[:w]
            layer = [cell for cell in candidates if cell in chosen]
            self.kept |= set(layer)

    def block(self, i, u, v):
        width = self.side >> i
        cells = product(range(u * width, (u + 1) * width), range(v * width, (v + 1) * width))
        return [cell for cell in cells if self.inside[cell]]

    def count(self, i, u, v):
        return Fraction(float(self.levels[i - self.first][u, v])) if self.block(i, u, v) else Fraction(0)

    def children(self, i, u, v):
        return [(i + 1, 2 * u + x, 2 * v + z) for x, z in product(range(2), repeat=2)]

    def below(self, i, u, v):
        """Finite segments (slope, length, child) of all children, and the children that may hold mass."""
        alive = [child for child in self.children(i, u, v) if i < self.depth and self.block(*child)]
        return sorted((slope, length, child) for child in alive for slope, length in self.segments(*child)), alive

    def segments(self, i, u, v):
        if (i, u, v) not in self.kept:
            return []
        weight, room, cut = Fraction(1, 2**i), max(self.count(i, u, v), Fraction(0)), []
        found, alive = self.below(i, u, v)
        for slope, length, _ in found:
            left = min(room, length)
            cut += [(slope - weight, left), (slope + weight, length - left)]
            room -= left
        last = sum(Fraction(1, 2**j) for j in range(i + 1, self.depth + 1)) if alive else Fraction(0)
        return [(slope, length) for slope, length in [*cut, (last - weight, room)] if length > 0]

    def give(self, cell, mass, grid):
        found, alive = self.below(*cell)
        if cell not in self.kept or not alive:
            for place in self.block(*cell):
                grid[place] += mass / len(self.block(*cell))
            return
        shares = dict.fromkeys(alive, Fraction(0))
        for slope in sorted({slope for slope, _, _ in found}):
            group = [(length, child) for each, length, child in found if each == slope]
            total = sum(length for length, _ in group)
            for length, child in group:
                shares[child] += min(mass, total) * length / total
            mass -= min(mass, total)
        area = sum(len(self.block(*child)) for child in alive)
        for child in alive:
            self.give(child, shares[child] + mass * len(self.block(*child)) / area, grid)

    def masses(self):
        grid = np.full((self.side, self.side), Fraction(0))
        for cell in self.top:
            self.give(cell, max(self.count(*cell), Fraction(0)), grid)
        return grid.astype(float)


def test_agrees_with_exact_arithmetic_cell_by_cell():
    for levels, w, mask in cases(11, 120, 4):
        masses = reconstruct(levels, w, inside=mask)
        np.testing.assert_allclose(masses, Exact(levels, w, mask).masses(), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_full_and_the_compact_program_and_the_tree_have_one_objective():
    for levels, w, mask in cases(12, 90, 4):
        tree = select_cells(levels, w, mask)
        full, compact, masses = full_lp(tree), compact_lp(tree), solve(tree)
        best = full.objective
        found = [compact.objective, *(objective(tree, each) for each in (masses, full.masses, compact.masses))]
        np.testing.assert_allclose(found, best, rtol=0, atol=1e-9)
        for each in (masses, full.masses, compact.masses):
            assert each.min() >= 0
            assert mask is None or not each[~mask].any()


@pytest.mark.parametrize(("depth", "first", "w"), [(6, 3, 100), (8, 0, 40), (8, 2, 20)])
def test_larger_trees_reach_the_compact_program(depth, first, w):
    tree = select_cells(noisy(np.random.default_rng(13), depth, first), w)
    masses, best = solve(tree), compact_lp(tree).objective
    assert objective(tree, masses) == pytest.approx(best, abs=1e-9, rel=0)
    # No vacuous comparison: the same total, evenly, is worse.
    assert objective(tree, np.full_like(masses, masses.mean())) > best + 1


@pytest.mark.parametrize("solver", [compact_lp, full_lp])
def test_the_linear_programs_reach_a_known_optimum(solver):
    tree = select_cells([[[10]], SMALL], 1)
    masses = solver(tree).masses
    assert objective(tree, masses) == pytest.approx(3, abs=1e-9)


def test_every_top_cell_has_the_positive_part_of_its_count():
    for levels, w, mask in cases(14, 60, 5, widest=40):
        top = select_cells(levels, w, mask).levels[0]
        sums = pyramid(reconstruct(levels, w, inside=mask))[len(levels[0]).bit_length() - 1].ravel()
        np.testing.assert_allclose(sums, np.maximum(0, top.counts), rtol=1e-12, atol=1e-12)


def test_top_cells_decouple_bit_for_bit():
    rng = np.random.default_rng(15)
    levels = noisy(rng, 5, 2)
    # With all cells kept, what one top cell counts does not change which cells another one keeps.
    whole = reconstruct(levels, 2000)
    for u, v in product(range(4), repeat=2):
        part = [each[u * k : (u + 1) * k, v * k : (v + 1) * k] for each, k in zip(levels, (1, 2, 4, 8), strict=True)]
        np.testing.assert_array_equal(reconstruct(part, 2000), whole[8 * u : 8 * u + 8, 8 * v : 8 * v + 8])


def test_nothing_is_left_where_and_only_where_no_top_count_is_positive():
    finer = noisy(np.random.default_rng(16), 4, 2)
    assert not reconstruct([np.array([[-3.0, 0.0], [-1e-9, -2.0]]), *finer], 5).any()
    masses = reconstruct([np.array([[-3.0, 0.0], [1e-3, -2.0]]), *finer], 5)
    assert masses.sum() == masses[8:, :8].sum() == pytest.approx(1e-3, rel=1e-12)


def test_is_positively_homogeneous():
    for levels, w, mask in cases(17, 20, 4):
        masses = reconstruct(levels, w, inside=mask)
        for t in (2.0**-7, 8.0):
            np.testing.assert_array_equal(reconstruct([t * each for each in levels], w, inside=mask), t * masses)
        scaled = reconstruct([0.3 * each for each in levels], w, inside=mask)
        np.testing.assert_allclose(scaled, 0.3 * masses, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("first", [0, 2])
def test_recovers_sparse_masses_without_noise(first):
    rng = np.random.default_rng(18)
    for w in (1, 4, 20):
        s = np.zeros((32, 32))
        s.ravel()[rng.choice(1024, w, replace=False)] = rng.integers(1, 2**20, w) / 2**20
        np.testing.assert_array_equal(reconstruct(pyramid(s)[first:], w), s)


def test_on_the_grid_alone_it_is_the_positive_part():
    counts = np.random.default_rng(19).normal(size=(4, 4))
    np.testing.assert_array_equal(reconstruct([counts], 1), np.maximum(counts, 0))


def test_a_full_mask_changes_nothing():
    levels = noisy(np.random.default_rng(20), 4, 1)
    np.testing.assert_array_equal(reconstruct(levels, 5, inside=np.ones((16, 16), bool)), reconstruct(levels, 5))


def test_known_objectives_and_masses():
    s = np.zeros((4, 4))
    s[0, 0], s[3, 3], s[0, 3] = 3, 2, 1
    expected = {1: (2.25, {(0, 0): 3.1875}, 0.1875), 2: (0.75, {(0, 0): 3.0625, (3, 3): 2.0625}, 0.0625)}
    for w, (least, peaks, elsewhere) in expected.items():
        tree, masses = select_cells(pyramid(s), w), np.full((4, 4), elsewhere)
        for cell, mass in peaks.items():
            masses[cell] = mass
        np.testing.assert_array_equal(solve(tree), masses)
        assert objective(tree, masses) == least
        assert full_lp(tree).objective == pytest.approx(least, abs=1e-9)
    assert objective(select_cells(pyramid(s), 3), solve(select_cells(pyramid(s), 3))) == 0


def test_excess_is_uniform_over_the_area():
    tree = select_cells(pyramid(SMALL), 1)
    np.testing.assert_array_equal(solve(tree), [[5.5, 1.5], [1.5, 1.5]])
    # As good, but uneven.
    assert objective(tree, solve(tree)) == objective(tree, np.array([[4, 2], [2, 2]])) == 3


def test_shortage_is_shared_in_proportion():
    np.testing.assert_array_equal(reconstruct([[[4]], [[6, 2], [0, -1]]], 2), [[3, 1], [0, 0]])
    np.testing.assert_array_equal(reconstruct([[[4]], [[5, 5], [5, 5]]], 4), np.ones((2, 2)))


@pytest.mark.parametrize("depth", [2, 3, 7, 9])
def test_the_finest_count_decides_who_is_short(depth):
    # Two halves ask for all there is. One grid cell confirms the first, against the zeros of all levels between.
    levels = [np.zeros((2**level, 2**level)) for level in range(depth + 1)]
    levels[0][0, 0] = levels[1][0, 0] = levels[1][1, 1] = levels[depth][0, 0] = 10
    np.testing.assert_array_equal(reconstruct(levels, 2), levels[depth])


def test_areas_share_left_out_mass_and_equal_areas_are_a_mask():
    area = np.array([[0.5, 1.0, 0.0, 0.0], [0.25, 0.25, 0.0, 0.0], [0.5, 0.5, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]])
    counts = [[[12.0]], [[0.0, 0.0], [0.0, 0.0]], np.zeros((4, 4))]
    # Nothing but the root counts: its mass goes to the three quarters by their areas of 2, 2 and 4, and so inside them.
    np.testing.assert_allclose(reconstruct(counts, 1, inside=area), 12 * area / 8, rtol=1e-14)
    mask = area > 0
    np.testing.assert_allclose(
        reconstruct(counts, 1, inside=mask * 0.3), reconstruct(counts, 1, inside=mask), rtol=1e-14
    )
    np.testing.assert_allclose(reconstruct(counts, 1, inside=area), reconstruct(counts, 1, inside=1e6 * area))


def test_left_out_mass_is_uniform_over_the_cells_inside():
    inside = np.ones((4, 4), bool)
    inside[2:, 2:] = [[True, False], [False, False]]
    inside[:2, 2:] = False
    masses = reconstruct([[[9]], [[0, 5], [0, 0]], np.zeros((4, 4))], 1, inside=inside)
    # 4 + 4 + 1 grid cells are inside; a dead cell's 5 counts nothing.
    np.testing.assert_array_equal(masses, np.where(inside, 1.0, 0.0))


def test_arguments_are_left_alone():
    levels = [np.array([[-1.0]]), np.array([[4.0, -3.0], [2.0, 1.0]])]
    kept = [each.copy() for each in levels]
    reconstruct(levels, 2)
    for each, before in zip(levels, kept, strict=True):
        np.testing.assert_array_equal(each, before)
