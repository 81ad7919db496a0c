"""Non-negative weighted least squares on a tree of cells: against dense solvers and closed forms."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from baselines.heatmap_arrays import select_cells, sparse_aggregate
from scipy.optimize import lsq_linear

from dpppsynth.mechanisms.heatmap.bound import LevelBudgets
from dpppsynth.mechanisms.heatmap.reconstruction import (
    _Estimates,
    _pooled,
    _shared,
    _variances,
    least_squares,
    solve,
)
from dpppsynth.mechanisms.heatmap.tree import pyramid

UNEVEN = (1.0, 0.3, 0.9, 0.2, 0.5)


def trees(seed, number, *, base=0.0, masks=True):
    """(tree, budgets): random depth, first level, w and budgets, every other one with a mask or areas."""
    rng = np.random.default_rng(seed)
    for case in range(number):
        depth = int(rng.integers(1, 5))
        first, w = int(rng.integers(depth)), int(rng.integers(1, 8))
        share = rng.random((2**depth, 2**depth))
        mask = (None, share < 0.5, np.where(share < 0.3, share, 0.0))[case % 3 if masks else 0]
        if mask is not None and not mask.any():
            mask[0, 0] = True
        persons = rng.poisson(1.0, share.shape) + base
        levels = [sums + rng.laplace(scale=2.0, size=sums.shape) for sums in pyramid(persons)[first:]]
        yield select_cells(levels, w, mask), LevelBudgets(first, UNEVEN[: depth - first + 1])


def ends(tree, top):
    """Cells in which nothing was looked at, alive, in cell `top` = (level, code): pairs of level and code."""
    level, code = top
    cells = tree.levels[level - tree.first]
    at = int(np.flatnonzero(cells.cells == code)[0])
    if level == tree.depth or at not in cells.kept:
        return [top] if cells.alive[at] else []
    u, v = divmod(code, 2**level)
    below = [(2 * u + x) * 2 ** (level + 1) + 2 * v + y for x in range(2) for y in range(2)]
    return [end for child in below for end in ends(tree, (level + 1, child))]


def within(cell, top):
    """Whether one cell, a pair of level and code, lies in another or is it."""
    (level, code), (above, whole) = cell, top
    u, v = divmod(code, 2**level)
    return level >= above and (u >> (level - above)) * 2**above + (v >> (level - above)) == whole


def system(tree, budgets, top):
    """Rows, counts and columns of the least squares problem in a cell: a column for each end, rows over their noise."""
    columns, rows, counts = ends(tree, top), [], []
    for level, (cells, epsilon) in enumerate(zip(tree.levels, budgets.epsilons, strict=True), tree.first):
        for code, count, alive in zip(cells.cells, cells.counts, cells.alive, strict=True):
            if alive and within((level, int(code)), top):
                rows.append([epsilon * within(end, (level, int(code))) for end in columns])
                counts.append(epsilon * count)
    return np.array(rows), np.array(counts), columns


def sums(grid, tree):
    """Masses of the cells looked at, from the grid: (m,) for each level."""
    return [sums.ravel()[level.cells] for sums, level in zip(pyramid(grid)[tree.first :], tree.levels, strict=True)]


# --- weighted least squares


def test_pooled_masses_and_variances_are_those_of_dense_least_squares_in_every_subtree():
    for tree, budgets in trees(1, 12):
        pooled = _pooled(tree, _variances(tree, budgets))
        unit = min(budgets.epsilons) ** 2
        for level, (cells, found) in enumerate(zip(tree.levels, pooled, strict=True), tree.first):
            for at in np.flatnonzero(cells.alive):
                rows, counts, _ = system(tree, budgets, (level, int(cells.cells[at])))
                assert found.mean[at] == pytest.approx(np.linalg.lstsq(rows, counts, rcond=None)[0].sum(), abs=1e-9)
                covariance = np.linalg.inv(rows.T @ rows)
                assert found.variance[at] == pytest.approx(unit * covariance.sum(), rel=1e-9)


def test_positive_fits_are_exact_least_squares():
    for tree, budgets in trees(2, 12, base=60.0, masks=False):
        masses = sums(least_squares(tree, budgets), tree)
        for top in range(4**tree.first):
            rows, counts, columns = system(tree, budgets, (tree.first, top))
            fit = np.linalg.lstsq(rows, counts, rcond=None)[0]
            assert fit.min() > 0
            for mass, (level, code) in zip(fit, columns, strict=True):
                cells = tree.levels[level - tree.first].cells
                assert masses[level - tree.first][cells == code] == pytest.approx(mass, rel=1e-9)


def test_wrong_variances_are_noticed():
    tree = select_cells([[[20]], [[4, 3], [2, 1]]], w=1)
    budgets = LevelBudgets(0, (1.0, 2.0))
    # The children's sum has variance 4 / 2^2 beside the root's 1: their mean, 15, leaves 5 to share.
    np.testing.assert_allclose(least_squares(tree, budgets), [[5.25, 4.25], [3.25, 2.25]], atol=1e-12)
    for wrong in ((1.0, 4.0), (1.0, 1.0), (2.0, 1.0), (1.0, 2**0.5)):
        assert np.abs(least_squares(tree, LevelBudgets(0, wrong)).sum() - 15) > 1


def test_only_the_ratios_of_budgets_matter_however_far_apart():
    tree, budgets = next(trees(3, 1))
    for unit in (1e-200, 3.0, 1e200):
        scaled = LevelBudgets(budgets.first, tuple(unit * each for each in budgets.epsilons))
        np.testing.assert_allclose(least_squares(tree, scaled), least_squares(tree, budgets), rtol=1e-9, atol=1e-12)
    square = select_cells([[[20]], [[4, 3], [2, 1]]], w=1)
    np.testing.assert_allclose(least_squares(square, LevelBudgets(0, (1e-200, 1e200))), [[4, 3], [2, 1]], rtol=1e-12)
    np.testing.assert_allclose(least_squares(square, LevelBudgets(0, (1e200, 1e-200))), [[6.5, 5.5], [4.5, 3.5]])


# --- no negative masses


@pytest.mark.parametrize("shrink", [False, True])
def test_masses_go_down_without_loss_and_nothing_is_negative(shrink):
    for tree, budgets in trees(4, 60):
        grid = least_squares(tree, budgets, shrink=shrink)
        assert grid.min() >= 0
        masses = sums(grid, tree)
        top = _pooled(tree, _variances(tree, budgets))[0].mean
        np.testing.assert_allclose(masses[0], np.maximum(top, 0), rtol=1e-12, atol=1e-12)
        for (mass, below), cells in zip(pairwise(masses), tree.levels[:-1], strict=True):
            np.testing.assert_allclose(below.reshape(-1, 4).sum(axis=1), mass[cells.kept], rtol=1e-12, atol=1e-12)


def test_sharing_meets_the_optimality_conditions_and_a_dense_solver():
    rng = np.random.default_rng(5)
    mean = np.round(rng.normal(scale=3, size=(400, 4)) * rng.choice([1, 1e6], (400, 1)), 1)
    width = np.where(rng.random((400, 4)) < 0.8, rng.choice([0.1, 1.0, 0.37], (400, 4)), 0.0)
    mean[width == 0] = 0
    mass = np.where(width.any(axis=1), rng.choice([0, 1e-12, 0.5, 4, 60], 400), 0)
    shares = _shared(mass, _Estimates(mean.ravel(), width.ravel())).reshape(-1, 4)
    np.testing.assert_allclose(shares.sum(axis=1), mass, rtol=1e-13, atol=0)
    for whole, share, about, variance in zip(mass, shares, mean, width, strict=True):
        assert not share[variance == 0].any()
        level = (about - share)[variance > 0] / variance[variance > 0]
        given, slack = share[variance > 0] > 0, 1e-9 * (1 + np.abs(about).max())
        if whole > 0:
            # One multiplier where there is mass, and nowhere one below it.
            assert np.ptp(level[given]) <= slack
            assert level[~given].max(initial=-np.inf) <= level[given].min() + slack
    for row in range(8):
        some = width[row] > 0
        if some.any() and np.abs(mean[row]).max() < 50:
            weight = np.append(width[row][some] ** -0.5, 1e5)
            rows = np.vstack([np.eye(some.sum()), np.ones(some.sum())]) * weight[:, None]
            best = lsq_linear(rows, weight * np.append(mean[row][some], mass[row]), (0, np.inf), tol=1e-14).x
            np.testing.assert_allclose(shares[row][some], best, atol=1e-5)


def test_small_masses_survive_beside_large_counts():
    tree = select_cells([[[1e-9]], [[-4e12, 3e12], [-2e12, 1e12]]], w=1)
    grid = least_squares(tree, LevelBudgets(0, (1e9, 1e-9)))
    assert grid.tolist() == [[0, pytest.approx(1e-9, rel=1e-12)], [0, 0]]


def test_no_positive_mass_leaves_nothing():
    tree = select_cells([-np.ones((2, 2)), -np.ones((4, 4))], w=2)
    assert not least_squares(tree, LevelBudgets(1, (1.0, 2.0))).any()


def test_a_single_level_gives_the_positive_parts_of_its_counts():
    tree = select_cells([[[3, -1], [0, 2]]], w=1)
    assert least_squares(tree, LevelBudgets(1, (1.0,))).tolist() == [[3, 0], [0, 2]]


# --- shrinking


def test_shrinking_has_its_closed_form():
    # Children of variance 2 / 0.02 = 100 beside a mass of 20, known nearly exactly: half way to an even split.
    tree = select_cells([[[20]], [[12, 4], [3, 1]]], w=1)
    found = least_squares(tree, LevelBudgets(0, (1e7, 0.02**0.5)), shrink=True)
    np.testing.assert_allclose(found, [[8.5, 4.5], [4, 3]], rtol=1e-9)
    # Areas of 1, 1/2, 1/2 and none: three variances, and the even split is 10, 5, 5.
    areas = np.array([[1.0, 0.5], [0.5, 0.0]])
    tree = select_cells([[[20]], [[12, 4], [4, 99]]], w=1, inside=areas)
    found = least_squares(tree, LevelBudgets(0, (1e7, 0.015**0.5)), shrink=True)
    np.testing.assert_allclose(found, [[11, 4.5], [4.5, 0]], rtol=1e-9)


def test_shrinking_uses_what_pooling_left_of_the_noise():
    # 3 levels of variance 2, 2 and 2/9: the children's is 2 * (8/9) / (2 + 8/9) = 8/13 where kept, and 2 where not.
    counts = np.array([[40.0, 8, 8, 6], [9, 9, 5, 5], [1, 2, 3, 4], [2, 2, 2, 2]])
    blocks = counts.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    tree, budgets = select_cells([[[108]], blocks, counts], w=1), LevelBudgets(0, (1.0, 1.0, 3.0))
    factor = 108**2 / (108**2 + 8 / 13 + 3 * 2)
    drawn = 27 + factor * (blocks - 27)
    widths = np.array([[8 / 13, 2], [2, 2]])
    expected = drawn + widths * (108 - drawn.sum()) / widths.sum()
    found = least_squares(tree, budgets, shrink=True)
    np.testing.assert_allclose(found.reshape(2, 2, 2, 2).sum(axis=(1, 3)), expected, rtol=1e-12)


def test_shrinking_ends_in_even_spreads_with_little_budget_and_in_none_with_much():
    for tree, budgets in trees(9, 30):
        little, much = (tuple(unit * each for each in budgets.epsilons) for unit in (1e-9, 1e9))
        fit = least_squares(tree, budgets)
        shrunk = least_squares(tree, LevelBudgets(tree.first, much), shrink=True)
        np.testing.assert_allclose(shrunk, fit, rtol=1e-9, atol=1e-9)
        even = least_squares(tree, LevelBudgets(tree.first, little), shrink=True)
        areas = np.ones(fit.shape) if tree.inside is None else tree.inside
        top, own = (pyramid(each)[tree.first] for each in (fit, areas.astype(float)))
        ratio = np.kron(top / np.where(own > 0, own, 1), np.ones((len(fit) // len(top),) * 2))
        np.testing.assert_allclose(even, ratio * areas, rtol=1e-6, atol=1e-6)


# --- structure


def test_counts_without_noise_of_few_cells_are_recovered():
    rng = np.random.default_rng(6)
    for w in (1, 3, 8):
        masses = np.zeros(256)
        masses[rng.choice(256, w, replace=False)] = rng.integers(1, 50, w)
        masses = masses.reshape(16, 16)
        for first in range(4):
            tree = select_cells(pyramid(masses)[first:], w)
            np.testing.assert_allclose(least_squares(tree, LevelBudgets(first, UNEVEN[first:])), masses, atol=1e-11)


def test_scaled_counts_give_scaled_masses():
    for tree, budgets in trees(7, 12):
        for factor in (0.125, 1e6 / 3):
            levels = tuple(dataclasses.replace(level, counts=factor * level.counts) for level in tree.levels)
            scaled = dataclasses.replace(tree, levels=levels)
            fit = least_squares(scaled, budgets)
            np.testing.assert_allclose(fit, factor * least_squares(tree, budgets), rtol=1e-9, atol=1e-9)
            fewer = LevelBudgets(budgets.first, tuple(each / factor for each in budgets.epsilons))
            fit, one = least_squares(scaled, fewer, shrink=True), least_squares(tree, budgets, shrink=True)
            np.testing.assert_allclose(fit, factor * one, rtol=1e-9, atol=1e-9)


def test_dead_cells_hold_nothing_and_are_known_to_be_empty():
    inside = np.array([[True, False], [False, True]])
    tree = select_cells([[[20]], [[4, 3000], [2000, 1]]], w=2, inside=inside)
    # Two children, of variance 2 / 2^2 together: 20 weighs 1/3, their sum 5 weighs 2/3, and 5 is left to share.
    np.testing.assert_allclose(least_squares(tree, LevelBudgets(0, (1.0, 2.0))), [[6.5, 0], [0, 3.5]], atol=1e-12)
    for tree, budgets in trees(8, 30):
        if tree.inside is not None:
            for shrink in (False, True):
                assert not least_squares(tree, budgets, shrink=shrink)[tree.inside == 0].any()


def test_left_out_cells_and_their_noise_are_used_and_uniform_over_their_area():
    counts = np.array([[40.0, 8, 8, 6], [9, 9, 5, 5], [1, 2, 3, 4], [2, 2, 2, 2]])
    blocks, areas = counts.reshape(2, 2, 2, 2).sum(axis=(1, 3)), np.ones((4, 4))
    areas[0, 3] = 0.25
    tree, budgets = select_cells([[[108]], blocks, counts], w=1, inside=areas), LevelBudgets(0, (1.0, 1.0, 1.0))
    grid = least_squares(tree, budgets)
    assert grid[:2, 2:] / grid[0, 2] == pytest.approx(np.array([[1, 0.25], [1, 1]]))
    np.testing.assert_allclose(grid[:2, 2:].sum(), 24)
    # The fit in absolute values takes a left-out cell for empty; all its mass is in the kept one.
    assert solve(tree)[2:].sum() != pytest.approx(grid[2:].sum())


def test_it_takes_what_a_release_measured():
    persons = np.zeros((400, 16, 16))
    persons[:, 3, 5] = persons[:, 9, 9] = 0.5
    found = sparse_aggregate(persons, epsilon=4.0, rng=9)
    grid = least_squares(found.tree, found.budgets)
    assert grid[[3, 9], [5, 9]] == pytest.approx(200, abs=30)
    assert grid.sum() == pytest.approx(400, abs=60)
