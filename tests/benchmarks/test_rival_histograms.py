"""Rivals of benchmarks/rivals.py: what they give back without noise, how much they add, and that masses are masses."""

import math

import numpy as np
import pytest
from baselines.deconvolution import planar_laplace_kernel, richardson_lucy
from baselines.histogram_marginals import fit, spanning_tree
from baselines.histogram_partitions import ahp, alike, buckets, dawa
from baselines.histogram_trees import consistent, measure_tree, privtree, privtree_leaves, quadtree
from baselines.histograms import (
    Cells,
    adaptive_grid,
    blocks,
    fourier,
    haar,
    laplace_histogram,
    privelet,
    uniform_grid,
    wave_sum,
)
from scipy.fft import dctn

PIXELS = 32
FREE = {
    "Laplace": (laplace_histogram, {"side": PIXELS}),
    "UG": (uniform_grid, {}),
    "AG": (adaptive_grid, {}),
    "PrivTree": (privtree, {}),
    "quadtree": (quadtree, {"side": PIXELS}),
    "DAWA": (dawa, {"side": PIXELS}),
    "AHP": (ahp, {"side": PIXELS}),
    "PMM": (measure_tree, {}),
    "MST": (spanning_tree, {"side": PIXELS}),
    "Fourier": (fourier, {"side": PIXELS}),
    "Privelet": (privelet, {"side": PIXELS}),
}


@pytest.fixture(scope="module")
def counts():
    """Three thousand points in a spot and on a line, and none elsewhere."""
    rng = np.random.default_rng(1)
    spot, line = rng.normal(0.3, 0.1, (2000, 2)), np.column_stack([rng.random(1000), np.full(1000, 0.9)])
    xy = np.clip(np.concatenate([spot, line]), 0, 0.999)
    return np.histogram2d(*xy.T, bins=PIXELS, range=[(0, 1)] * 2)[0]


class Recording:
    """Generator of no noise that keeps the scales of Laplace noise it was asked for."""

    def __init__(self):
        self.scales = []

    def laplace(self, _, scale, size=None):
        self.scales.append(scale)
        return np.zeros(size)


@pytest.mark.parametrize("name", FREE)
class TestAll:
    def test_without_noise_the_histogram_comes_back(self, name, counts):
        method, chosen = FREE[name]
        cells = method(counts, 1e6, 2.0, np.random.default_rng(2), **chosen)
        for clipped in (True, False):
            density = cells.density(np.ones(counts.shape), counts.sum(), clipped=clipped)
            assert np.abs(density - counts / counts.sum()).sum() / 2 < 0.002

    def test_masses_are_positive_add_up_to_one_and_lie_in_the_window(self, name, counts):
        method, chosen = FREE[name]
        inside = np.ones(counts.shape)
        inside[:5], inside[5] = 0.0, 0.5
        within = np.where(inside > 0, counts, 0)
        for epsilon in (0.01, 1.0):
            cells = method(within, epsilon, 1.0, np.random.default_rng(3), **chosen)
            for clipped in (True, False):
                density = cells.density(inside, within.sum(), clipped=clipped)
                assert density.min() >= 0
                assert density.sum() == pytest.approx(1)
                assert (density[:5] == 0).all()


class TestCells:
    def test_mass_is_even_within_a_cell_as_far_as_it_lies_inside(self):
        cells = Cells(np.array([[0, 0], [1, 1]]), np.array([3.0, 1.0]))
        inside = np.array([[1.0, 0.5], [1.0, 1.0]])
        np.testing.assert_allclose(cells.density(inside, 4.0, clipped=False), [[0.5, 0.25], [0.125, 0.125]])

    def test_negative_masses_are_set_to_zero_or_all_are_shifted(self):
        cells, inside = Cells(np.array([[0, 1], [2, 2]]), np.array([-2.0, 4.0, 1.0])), np.ones((2, 2))
        np.testing.assert_allclose(cells.density(inside, 3.0, clipped=True), [[0, 0.8], [0.1, 0.1]])
        np.testing.assert_allclose(cells.density(inside, 3.0, clipped=False), [[0, 1], [0, 0]])


class TestNoise:
    @pytest.mark.parametrize(("method", "chosen"), [(laplace_histogram, {"side": 32}), (uniform_grid, {})])
    def test_counts_have_the_variance_of_their_sensitivity(self, method, chosen):
        """Squares of Laplace noise have a mean of 2 b^2 and a standard deviation of sqrt(20) b^2; six errors."""
        empty, noise = np.zeros((32, 32)), []
        empty[:, :] = 40.0
        for seed in range(20):
            cells = method(empty, 0.5, 2.0, np.random.default_rng(seed), **chosen)
            noise.append(cells.masses - np.bincount(cells.labels.ravel(), empty.ravel()))
        squares = np.concatenate(noise) ** 2
        assert squares.mean() == pytest.approx(2 * 4.0**2, abs=6 * math.sqrt(20 / len(squares)) * 4.0**2)

    @pytest.mark.parametrize(
        ("method", "chosen"),
        [
            (laplace_histogram, {"side": 8}),
            (uniform_grid, {}),
            (adaptive_grid, {}),
            (quadtree, {"side": 8}),
            (measure_tree, {}),
            (measure_tree, {"depth": 3}),
        ],
    )
    def test_levels_spend_the_budget(self, method, chosen, counts):
        """Every point lies in one cell of a level, so a level of noise with scale b spends its sensitivity over b."""
        noise = Recording()
        method(counts, 0.7, 2.0, noise, **chosen)
        assert sum(2.0 / scale for scale in noise.scales) == pytest.approx(0.7)

    def test_buckets_and_their_totals_spend_the_budget(self, counts):
        """One length more does not cost more: only the cheapest buckets are told."""
        noise = Recording()
        dawa(counts, 1.0, 2.0, noise, side=32)
        *finding, totals = noise.scales
        assert 2.0 / totals == pytest.approx(0.75)
        assert max(finding) == pytest.approx(2 * 2.0 / 0.25, rel=0.01)

    def test_clusters_and_their_totals_spend_the_budget(self, counts):
        noise = Recording()
        ahp(counts, 1.0, 2.0, noise, side=32)
        assert [2.0 / scale for scale in noise.scales] == pytest.approx([0.85, 0.15])

    def test_a_point_changes_wavelets_by_their_number_of_levels(self):
        transform, weight = haar(16)
        np.testing.assert_allclose((np.abs(transform) * weight[:, None]).sum(axis=0), 1 + 4)

    def test_a_point_changes_waves_by_no_more_than_their_sum_of_peaks(self):
        corner, middle = np.zeros((2, 64, 64))
        corner[0, 0], middle[20, 37] = 1, 1
        told = [np.abs(dctn(each, norm="ortho")[:6, :6]).sum() for each in (corner, middle)]
        assert 0.9 * wave_sum(64, 6) < told[0] <= wave_sum(64, 6)
        assert told[1] < told[0]


class TestPrivTree:
    def test_empty_boxes_split_as_rarely_as_the_bias_says(self):
        """The root splits in one of two cases, an empty quarter in one of eight, whatever its depth.

        Leaves: 1, or 4 and three for each of four quarters that splits; mean 3.25, standard deviation below 2.7.
        """
        rng, empty = np.random.default_rng(4), np.zeros((4, 4))
        leaves = [privtree_leaves(empty, 0.3, 2.0, rng).max() + 1 for _ in range(4000)]
        assert np.mean(leaves) == pytest.approx(3.25, abs=6 * 2.7 / math.sqrt(4000))

    def test_leaves_are_boxes_of_their_own(self, counts):
        labels = privtree_leaves(counts, 1.0, 1.0, np.random.default_rng(5))
        sizes = np.bincount(labels.ravel())
        assert set(sizes) <= {4**k for k in range(6)}
        for leaf in (0, len(sizes) // 2, len(sizes) - 1):
            i, j = np.nonzero(labels == leaf)
            assert np.ptp(i) == np.ptp(j) == math.isqrt(sizes[leaf]) - 1


class TestTrees:
    def test_consistent_leaves_are_those_of_least_squares(self):
        rng, variances = np.random.default_rng(6), np.array([3.0, 0.5, 2.0])
        levels = [rng.normal(10, 5, (side, side)) for side in (1, 2, 4)]
        units = np.eye(16).reshape(16, 4, 4)
        design = np.concatenate([np.array([blocks(u, side).ravel() for u in units]).T for side in (1, 2, 4)])
        weight = np.repeat(1 / np.sqrt(variances), (1, 4, 16))
        told = np.concatenate([level.ravel() for level in levels])
        least = np.linalg.lstsq(design * weight[:, None], told * weight, rcond=None)[0]
        np.testing.assert_allclose(consistent(levels, variances).ravel(), least)

    def test_halves_keep_the_sum_of_their_box(self, counts):
        """With noise at the root alone, all leaves together have the root's mass."""
        noise = Recording()
        noise.laplace = lambda _, __, shape: np.full(shape, 50.0 if shape == (1, 1) else -1.0)
        assert measure_tree(counts, 0.1, 1.0, noise).masses.sum() == pytest.approx(counts.sum() + 50)


class TestPartitions:
    def test_buckets_join_even_counts(self):
        along = np.array([5.0] * 4 + [0.0] * 8 + [9.0, 1.0, 9.0, 1.0])
        assert buckets(along, 1e6, 0.1, np.random.default_rng(7)).tolist() == [4, 12, 13, 14, 15, 16]

    def test_noise_that_costs_more_joins_uneven_counts(self):
        along = np.array([9.0, 1.0, 9.0, 1.0])
        assert buckets(along, 1e6, 100.0, np.random.default_rng(7)).tolist() == [4]

    def test_like_counts_are_one_cluster(self):
        rising = np.array([0, 0, 0, 5.0, 5.1, 5.2, 50.0])
        assert alike(rising, 1.0).tolist() == [3, 6, 7]
        assert alike(rising, 1e9).tolist() == [3, 7]


def test_the_fit_of_marginals_is_the_best_one():
    """One slope for all positive masses, and none that is smaller elsewhere."""
    rng = np.random.default_rng(8)
    pair, ones, weights = (
        rng.normal(3, 4, (5, 6)),
        [rng.normal(18, 4, 5), rng.normal(15, 4, 6)],
        [np.full(5, 0.5), np.full(6, 0.5)],
    )
    weights[0][0] = 0.1
    mass = fit(pair, ones, weights, 90.0)
    slope = (
        mass - pair + (weights[0] * (mass.sum(axis=1) - ones[0]))[:, None] + weights[1] * (mass.sum(axis=0) - ones[1])
    )
    assert mass.sum() == pytest.approx(90)
    assert 0 < (mass > 0).sum() < mass.size
    assert np.ptp(slope[mass > 0]) < 1e-6
    assert slope[mass == 0].min() > slope[mass > 0].min() - 1e-6


class TestDeconvolution:
    def test_the_kernel_is_the_law_of_moves(self):
        """Moves have a mean length of twice the scale; a pixel is a twentieth of it."""
        kernel = planar_laplace_kernel(1.0, np.array([0.05, 0.1]), (400, 400))
        x, y = (np.arange(size) - size // 2 for size in kernel.shape)
        assert kernel.sum() == pytest.approx(1)
        assert (kernel * np.hypot(0.05 * x[:, None], 0.1 * y)).sum() == pytest.approx(2, rel=0.02)

    def test_points_that_did_not_move_come_back_at_once(self):
        counts = np.arange(12.0).reshape(3, 4)
        first = next(richardson_lucy(counts, np.ones((3, 4)), np.ones((1, 1)), 1))
        np.testing.assert_allclose(first, counts / 66, atol=1e-12)

    def test_a_spot_becomes_narrower_with_every_step(self):
        kernel = planar_laplace_kernel(2.0, np.ones(2), (10, 10))
        counts = np.zeros((41, 41))
        counts[10:31, 10:31] = 1000 * kernel / kernel.max()
        tops = [shares[10, 10] for shares in richardson_lucy(counts, np.ones((21, 21)), kernel, 60)]
        assert (np.diff(tops) > 0).all()
        assert tops[-1] > 4 * kernel.max()
