"""Bounds of the error of private heat maps."""

import math

import baselines.heatmap_error_bounds as error_bounds
import numpy as np
import pytest
from baselines.heatmap_arrays import select_cells
from baselines.heatmap_error_bounds import pyramid_norm
from baselines.infinite_heatmaps import emd_norm

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import level_budgets
from dpppsynth.mechanisms.heatmap.reconstruction import solve
from dpppsynth.mechanisms.heatmap.tree import pyramid
from dpppsynth.spatial.map_distances import emd

ALARM = 5.0


def weighted(levels, first=0):
    return sum(2.0**-i * np.abs(level).sum() for i, level in enumerate(levels, first))


# --- Numbers ---


def test_numbers_of_the_defaults():
    assert error_bounds.noise_term(level_budgets(1.0, 8), 20) == pytest.approx(45.3, abs=0.05)
    assert error_bounds.decay_cost(2**-0.5) == pytest.approx(1 / (1.5 - math.sqrt(2)), rel=1e-12)
    assert error_bounds.decay_cost(0.8) == pytest.approx(40 / 3, rel=1e-12)
    around = [error_bounds.decay_cost(g) for g in np.linspace(0.51, 0.99, 97)]
    assert min(around) >= error_bounds.decay_cost(2**-0.5)


def test_decay_cost_is_the_factor_of_the_noise_of_fine_levels():
    # From the start level on the term is a geometric series over w cells each: w 2^-q times the factor, at large depth.
    for decay in (2**-0.5, 0.8):
        term = error_bounds.noise_term(level_budgets(1.0, 12, 16, decay=decay), 16)
        share = (1 - decay**11) * (1 - (2 * decay) ** -11.0)
        assert term == pytest.approx(16 / 4 * error_bounds.decay_cost(decay) * share, rel=1e-12)


def test_settings_of_the_proof():
    found = error_bounds.sparse_parameters(0.5, 4)
    assert (found.recovery, found.alignment, found.w, found.start, found.decay) == (1 / 8, 1 / 48, 256, 4, 0.8)
    assert error_bounds.sparse_parameters(0.5, 4, constant=2).w == 512
    assert error_bounds.sparse_order(0.5, 4, 2.0, 100) == pytest.approx(2 / (0.5 * 2 * 100))
    assert error_bounds.lower_order(4, 2.0, 100) == pytest.approx(0.01)
    assert error_bounds.dense_order(0.25, 100) == pytest.approx(error_bounds.lower_order(25, 0.25, 100))
    assert error_bounds.kmedian_order(9, 0.5) == 6


def test_packing():
    found = error_bounds.packing(20, 0.3, 1000)
    assert found.side == 4
    assert found.persons == 66
    assert found.radius == pytest.approx(0.4 * 0.01 / math.sqrt(20) * 66 / 1000, rel=1e-12)
    assert found.log_size == pytest.approx(math.log(10 * math.exp(20)), rel=1e-12)
    assert error_bounds.packing(20, 0.3, 1000, separation=1e-4).radius == pytest.approx(0.4e-4 * 0.066, rel=1e-12)
    assert found.radius < error_bounds.lower_order(20, 0.3, 1000)


def test_separation_bound_is_below_the_distance():
    rng = np.random.default_rng(1)
    for t in (2, 4):
        p, q = rng.dirichlet(np.ones(t * t), 2).reshape(2, t, t)
        assert error_bounds.separation_bound(p, q) <= emd(p, q) + 1e-12
    near = np.eye(4)[:2].reshape(2, 2, 2)
    assert error_bounds.separation_bound(*near) == pytest.approx(emd(*near), abs=1e-12)


@pytest.mark.parametrize(("depth", "simulated"), [(2, 13.05), (4, 88.0)])
def test_noise_on_a_whole_grid(depth, simulated):
    rng = np.random.default_rng(depth)
    norms = [pyramid_norm(rng.laplace(size=(2**depth, 2**depth))) for _ in range(2000 // 4 ** (depth - 2))]
    slack = ALARM * np.std(norms) / math.sqrt(len(norms))
    assert abs(np.mean(norms) - simulated) < slack + 0.1
    assert simulated < error_bounds.dense_noise_bound(depth, 1.0) < 1.31 * simulated
    assert error_bounds.dense_noise_bound(depth, 0.5) == 2 * error_bounds.dense_noise_bound(depth, 1.0)
    n = 1000
    assert error_bounds.dense_bound(depth, 1.0, n) == pytest.approx(
        4 * (error_bounds.dense_noise_bound(depth, 1.0) + math.sqrt(2)) / n + 2 / 2**depth
    )


# --- Inequalities ---


@pytest.mark.parametrize("seed", range(4))
def test_pyramid_norm_dominates_from_every_first_level(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(rng.normal(), 1, (8, 8)) * (rng.random((8, 8)) < 0.4)
    norm = emd_norm(z)
    for first in range(4):
        assert norm <= error_bounds.domination(first, 3) * weighted(pyramid(z)[first:], first) + 1e-9


def test_domination_is_reached():
    # Opposite masses in two quarters: levels below the first one see nothing of the way between them.
    z = np.zeros((8, 8))
    z[0, 0], z[7, 7] = 1, -1
    assert emd_norm(z) == pytest.approx(pyramid_norm(z), rel=1e-9)
    point = np.abs(z) * (z > 0)
    assert emd_norm(point) == pytest.approx(pyramid_norm(point) + 1 / 8, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_normalising_costs_a_factor_of_two(seed):
    rng = np.random.default_rng(seed)
    s = rng.random((4, 4)) * 3
    near = np.maximum(s + rng.normal(0, (0.1, 1, 3, 10)[seed], s.shape), 0)
    bound = error_bounds.normalised_bound(emd_norm(s - near), s.sum())
    assert emd(s / s.sum(), near / near.sum()) <= bound + 1e-9


@pytest.mark.parametrize("variant", ["theory", "practical"])
def test_chain_of_the_sparse_bound(variant):
    rng, depth, w = np.random.default_rng(7), 4, 5
    for _ in range(12):
        s = np.zeros(4**depth)
        s[rng.choice(len(s), w, replace=False)] = rng.exponential(4, w)
        s = s.reshape(16, 16)
        budgets = level_budgets(float(rng.choice([0.5, 2, 20])), depth, w, variant=variant)
        exact = pyramid(s)[budgets.first :]
        noise = [rng.laplace(0, 1 / e, x.shape) for e, x in zip(budgets.epsilons, exact, strict=True)]
        tree = select_cells([x + v for x, v in zip(exact, noise, strict=True)], w)
        recovered, kept_noise = 0.0, 0.0
        for i, (level, x, v) in enumerate(zip(tree.levels, exact, noise, strict=True), budgets.first):
            kept, full = level.cells[level.kept], np.flatnonzero(x)
            guess = np.zeros(x.size)
            guess[kept] = level.counts[level.kept]
            recovered += 2.0**-i * np.abs(guess - x.ravel()).sum()
            kept_noise += 2.0**-i * np.abs(v.ravel()[np.union1d(kept, full)]).sum()
            # The cells whose noise counts can be named before it is drawn, and are few.
            assert np.isin(np.union1d(kept, full), np.union1d(level.cells, full)).all()
            assert len(np.union1d(level.cells, full)) <= 5 * min(w, 4**i)
        assert recovered <= 3 * kept_noise + 1e-9
        distance = emd_norm(s - solve(tree))
        assert distance <= 2 * error_bounds.domination(budgets.first, depth) * recovered + 1e-9


def test_sparse_bound_is_the_chain_in_expectation():
    budgets = level_budgets(1.0, 8, variant="theory")
    chain = 2 * error_bounds.domination(0, 8) * 3 * 5 * error_bounds.noise_term(budgets, 20)
    assert error_bounds.sparse_bound(budgets, 20, 500) == pytest.approx(
        error_bounds.normalised_bound(chain, 500), rel=1e-12
    )


# --- Bad input ---


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: error_bounds.sparse_parameters(1.0, 4), "factor"),
        (lambda: error_bounds.sparse_parameters(0.5, 0), "k"),
        (lambda: error_bounds.sparse_parameters(5e-324, 4), "factor, k, constant"),
        (lambda: error_bounds.sparse_parameters(0.5, 4, constant=1e308), "factor, k, constant"),
        (lambda: error_bounds.noise_term((1.0, 1.0), 4), "budgets"),
        (lambda: error_bounds.sparse_bound((1.0, 1.0), 4, 10), "budgets"),
        (lambda: error_bounds.noise_term(level_budgets(1.0, 3), 0), "w"),
        (lambda: error_bounds.decay_cost(0.5), "decay"),
        (lambda: error_bounds.decay_cost(1.0), "decay"),
        (lambda: error_bounds.lower_order(2, 3.0, 100), "k, epsilon, n"),
        (lambda: error_bounds.packing(10, 0.1, 99), "k, epsilon, n"),
        (lambda: error_bounds.packing(4, 1.0, 99, separation=0.1), "separation"),
        (lambda: error_bounds.dense_noise_bound(-1, 1.0), "depth"),
        (lambda: error_bounds.dense_order(math.inf, 10), "epsilon"),
        (lambda: error_bounds.domination(4, 3), "first"),
        (lambda: error_bounds.separation_bound([[1, 0]], [[0, 1]]), "p, q"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(InputError, match=rf"^{name}\b"):
        call()
