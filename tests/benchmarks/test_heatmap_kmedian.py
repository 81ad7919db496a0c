"""k-median on grids of masses, and its private coreset."""

import itertools

import numpy as np
import pytest
from baselines.infinite_heatmaps import emd_norm
from baselines.kmedian import _seeds, coreset_depth, kmedian, kmedian_coreset, kmedian_cost

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import DEEPEST


def grid_points(shape):
    return np.array(list(itertools.product(range(shape[0]), range(shape[1])))) / shape


def best_cost(masses, k):
    return min(kmedian_cost(centres, masses) for centres in itertools.combinations(grid_points(masses.shape), k))


# --- Cost ---


def test_cost_is_the_sum_of_l1_distances_to_the_nearest_centre():
    rng = np.random.default_rng(1)
    masses, centres = rng.random((4, 8)), rng.random((3, 2))
    by_hand = sum(
        masses[i, j] * min(abs(x - i / 4) + abs(y - j / 8) for x, y in centres) for i in range(4) for j in range(8)
    )
    assert kmedian_cost(centres, masses) == pytest.approx(by_hand, rel=1e-12)


def test_points_cost_as_much_as_their_masses():
    rng = np.random.default_rng(2)
    cell = rng.integers(0, 8, (50, 2))
    masses = np.zeros((8, 8))
    np.add.at(masses, tuple(cell.T), 1)
    centres = rng.random((2, 2))
    assert kmedian_cost(centres, points=cell / 8) == pytest.approx(kmedian_cost(centres, masses), rel=1e-12)
    assert kmedian_cost(centres, points=[]) == kmedian_cost(centres, np.zeros((8, 8))) == 0


@pytest.mark.parametrize("seed", range(6))
def test_costs_differ_by_at_most_the_norm_of_the_difference(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.random((8, 8)), rng.random((8, 8)) * rng.integers(0, 3)
    norm = emd_norm(one - other)
    for k in (1, 3):
        centres = rng.random((k, 2))
        assert abs(kmedian_cost(centres, one) - kmedian_cost(centres, other)) <= norm + 1e-9


# --- Solver ---


@pytest.mark.parametrize("seed", range(5))
def test_one_centre_is_exact_from_any_start(seed):
    rng = np.random.default_rng(seed)
    masses = rng.random((4, 8)) ** 4
    found = kmedian(masses, 1, rng, restarts=1)
    assert kmedian_cost(found, masses) == pytest.approx(best_cost(masses, 1), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_several_centres_match_brute_force(k):
    rng = np.random.default_rng(k)
    for _ in range(3):
        masses = rng.random((3, 4)) * (rng.random((3, 4)) < 0.7)
        found = kmedian(masses, k, rng, restarts=20)
        assert kmedian_cost(found, masses) == pytest.approx(best_cost(masses, k), rel=1e-12)


def test_clusters_of_unequal_mass_are_found():
    masses = np.zeros((64, 64))
    # A coordinate-wise median stays at the heavy cell of each cluster, where a mean would be pulled away.
    for i, j, mass in [(5, 5, 1000), (50, 8, 400), (30, 60, 200)]:
        masses[i, j], masses[i + 6, j + 1], masses[i - 5, j + 3] = mass, 0.1 * mass, 0.1 * mass
    found = kmedian(masses, 3, 1)
    np.testing.assert_array_equal(found * 64, [[5, 5], [30, 60], [50, 8]])


def test_large_grids_are_settled_at_full_resolution():
    # Neither sums over blocks nor the ragged last ones may move the centres off the cells with all the mass.
    masses = np.zeros((601, 300))
    cells = np.array([[3, 299], [299, 7], [600, 150]])
    masses[tuple(cells.T)] = [5, 3, 4]
    np.testing.assert_allclose(kmedian(masses, 3, 1), cells / masses.shape, rtol=1e-15)


def test_same_seed_same_centres_whatever_the_unit_of_mass():
    masses = np.random.default_rng(3).random((8, 8))
    np.testing.assert_array_equal(kmedian(masses, 4, 7), kmedian(masses * 2.0**-1000, 4, 7))
    np.testing.assert_array_equal(kmedian(masses, 4, 7), kmedian(masses * 2.0**1023, 4, 7))
    assert (np.diff(kmedian(masses, 4, 7)[:, 0]) >= 0).all()


def test_seeds_keep_away_from_all_seeds_before():
    drawn = _seeds(np.ones((3, 3)), 9, np.random.default_rng(1))
    assert len(np.unique(drawn, axis=0)) == 9


def test_few_or_no_cells_with_mass():
    masses = np.zeros((4, 4))
    masses[1, 2] = 3.0
    np.testing.assert_array_equal(kmedian(masses, 3, 1), np.tile([0.25, 0.5], (3, 1)))
    np.testing.assert_array_equal(kmedian(np.zeros((4, 4)), 1, 1), [[0.25, 0.25]])
    assert kmedian(np.zeros((2, 2)), 6, 1).shape == (6, 2)


# --- Coreset ---


def test_resolution_follows_the_corrected_rule():
    assert coreset_depth(1, 1.0, 1024) == 10
    assert coreset_depth(4, 1.0, 1025) == 10
    # The printed rule takes the logarithm of the inverse, which is never positive.
    assert coreset_depth(100, 0.5, 10) == 0
    assert coreset_depth(1, 1e300, 10**9) == DEEPEST
    rng = np.random.default_rng(4)
    for _ in range(50):
        k, epsilon, n = int(rng.integers(1, 100)), float(rng.uniform(0.1, 2)), int(rng.integers(1, 2000))
        assert 2 * n / 2 ** coreset_depth(k, epsilon, n) <= 2 * np.sqrt(k) / epsilon * (1 + 1e-12)


def test_coreset_keeps_numbers_of_persons_and_costs():
    rng = np.random.default_rng(5)
    centres = np.array([[0.2, 0.3], [0.7, 0.8]])
    points = np.clip(np.repeat(centres, [150, 50], axis=0) + rng.normal(0, 0.01, (200, 2)), 0, 0.999)
    masses = kmedian_coreset(points, 2, epsilon=4.0, n=64, rng=1)
    assert masses.shape == (256, 256)
    assert masses.sum() == pytest.approx(200, abs=25)
    for trial in (centres, rng.random((2, 2)), rng.random((5, 2))):
        exact = kmedian_cost(trial, points=points)
        assert kmedian_cost(trial, masses) == pytest.approx(exact, abs=0.1 * exact + 8)
    found = kmedian(masses, 2, 1)
    assert kmedian_cost(found, points=points) < 1.5 * kmedian_cost(centres, points=points) + 8


def test_public_number_alone_decides_on_the_resolution():
    shapes = {kmedian_coreset(points, 1, epsilon=1.0, n=8, rng=1).shape for points in ([], [[0.5, 0.5]] * 30)}
    assert shapes == {(8, 8)}


def test_more_centres_keep_more_cells():
    points = np.repeat(grid_points((16, 16))[::8], 50, axis=0)
    kept = kmedian_coreset(points, 32, epsilon=90.0, n=1, rng=1)
    assert kept.shape == (16, 16)
    np.testing.assert_allclose(kept.ravel()[::8], 50, atol=8)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: kmedian_coreset([[0.5, 1.0]], 1, epsilon=1.0, n=4), "points|xy"),
        (lambda: kmedian_coreset([[0.5, np.nan]], 1, epsilon=1.0, n=4), "points"),
        (lambda: kmedian_coreset([0.5], 1, epsilon=1.0, n=4), "points"),
        (lambda: kmedian_coreset([[0.5, 0.5]], 0, epsilon=1.0, n=4), "k"),
        (lambda: kmedian_coreset([[0.5, 0.5]], 1, epsilon=-1.0, n=4), "epsilon"),
        (lambda: kmedian_coreset([[0.5, 0.5]], 1, epsilon=1.0, n=0), "n"),
        (lambda: kmedian_coreset([[0.5, 0.5]], 1, epsilon=1.0, n=4, w=0), "w"),
        (lambda: kmedian([1.0, 2.0], 1), "masses"),
        (lambda: kmedian([[1.0, -2.0]], 1), "masses"),
        (lambda: kmedian([[1.0, np.inf]], 1), "masses"),
        (lambda: kmedian([[1.0]], 1.5), "k"),
        (lambda: kmedian([[1.0]], 1, restarts=0), "restarts"),
        (lambda: kmedian([[1.0]], 2**70), "k"),
        (lambda: kmedian([[1.0]], 1, restarts=2**70), "restarts"),
        (lambda: kmedian_cost([[1.0, 1.0]], [[1e308, 1e308]]), "masses"),
        (lambda: kmedian_cost([[1e308, 1e308]], points=[[0.0, 0.0]]), "masses, points, centres"),
        (lambda: kmedian_cost([], [[1.0]]), "centres"),
        (lambda: kmedian_cost([[0.0, 0.0]]), "masses, points"),
        (lambda: kmedian_cost([[0.0, 0.0]], [[1.0]], points=[[0.5, 0.5]]), "masses, points"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(InputError, match=rf"^({name})\b"):
        call()
