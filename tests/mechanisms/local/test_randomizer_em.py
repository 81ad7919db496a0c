"""Expectation maximisation against closed forms, dense matrices and its definition step by step."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.em import (
    binomial_smoothing,
    em_settings,
    expectation_maximisation,
    neighbour_smoothing,
)
from dpppsynth.models.channel_likelihood import FootprintChannel

# Excess of a disk of radius 1 in units of `e^eps - 1`: the corners keep `4 (1/sqrt(2) - 1/2)^2` of it.
CORNER = 4 * (math.sqrt(0.5) - 0.5) ** 2
DISK = np.array([[CORNER, 1, CORNER], [1, 1, 1], [CORNER, 1, CORNER]])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def disk(cells, epsilon):
    """The disk of radius 1 on a grid, whose outputs are the whole box: the corners keep some excess."""
    outputs = np.ones((cells + 2,) * 2, dtype=bool)
    total = outputs.sum() + math.expm1(epsilon) * DISK.sum()
    excess = math.expm1(epsilon) * DISK / total
    return FootprintChannel((cells, cells), excess, 1 / total, outputs)


def dense(law):
    """(outputs, values) matrix by the definition: the base of the output, and the excess at its offset."""
    cells, radius = law.sides[0], len(law.excess) // 2
    box = [
        o
        for o in itertools.product(range(-radius, cells + radius), repeat=2)
        if law.outputs[o[0] + radius, o[1] + radius]
    ]
    matrix = np.empty((len(box), cells**2))
    for row, o in enumerate(box):
        for value, v in enumerate(itertools.product(range(cells), repeat=2)):
            x, y = o[0] - v[0], o[1] - v[1]
            near = max(abs(x), abs(y)) <= radius
            matrix[row, value] = law.base + (law.excess[x + radius, y + radius] if near else 0)
    return matrix


def fit(matrix, counts, **given):
    given = {"start": np.ones(matrix.shape[1]), "tolerance": 1e-9} | given
    return expectation_maximisation(matrix.__matmul__, matrix.T.__matmul__, counts, **given)


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 2), (2, 1), (5, 0), (4, 3), (3, 7), (6, 2)])
def test_convolutions_are_products_with_the_dense_matrix(cells, radius, rng):
    # A lopsided footprint with a hole, so that a mirrored or transposed one would be noticed.
    excess = rng.random((2 * radius + 1,) * 2) * (rng.random((2 * radius + 1,) * 2) < 0.7)
    outputs = rng.random((cells + 2 * radius,) * 2) < 0.8
    outputs[radius, radius] = True
    law = FootprintChannel((cells, cells), excess, 0.25, outputs)
    matrix = dense(law)
    shares, ratios = rng.dirichlet(np.ones(cells**2)), rng.random(len(matrix)) * 100
    np.testing.assert_allclose(law.forward(shares), matrix @ shares, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(law.backward(ratios), matrix.T @ ratios, rtol=1e-12, atol=1e-12)


def test_rounding_makes_no_probability_negative():
    law = FootprintChannel((9, 9), np.eye(5), 0.0, np.ones((13, 13), dtype=bool))
    shares = np.zeros(81)
    shares[[3, 40, 77]] = 1e6, 1e-9, 1.0
    ratios = np.zeros(169)
    ratios[[0, 84]] = 1e9, 1.0
    for found, exact in (
        (law.forward(shares, 0.0), dense(law) @ shares),
        (law.backward(ratios, 0.0), dense(law).T @ ratios),
    ):
        assert (found >= 0).all()
        np.testing.assert_allclose(found, exact, atol=1e-12 * exact.max())


def test_one_step_of_the_disk_is_as_published():
    law = disk(2, 1.0)
    one = expectation_maximisation(
        law.forward, law.backward, np.arange(1, 17), start=np.ones(4), tolerance=0.0, max_iter=1
    )
    np.testing.assert_allclose(one.shares, [0.22063142, 0.23237885, 0.26762115, 0.27936858], atol=5e-9)
    assert (one.iterations, one.converged) == (1, False)


def test_two_values_have_a_closed_form():
    p = 0.8
    matrix = np.array([[p, 1 - p], [1 - p, p]])
    for first in (30, 37, 63, 70):
        found = fit(matrix, [first, 100 - first], tolerance=1e-13)
        assert found.shares[0] == pytest.approx((first / 100 - (1 - p)) / (2 * p - 1), abs=1e-5)
    # More of a report than any shares explain: the likelihood is largest at the edge.
    edge = fit(matrix, [95, 5])
    assert edge.shares == pytest.approx([1, 0], abs=1e-9)
    assert edge.log_likelihood == pytest.approx(95 * math.log(0.8) + 5 * math.log(0.2), rel=1e-9)


@settings(max_examples=30)
@given(st.integers(1, 4), st.floats(0.1, 4), st.integers(0, 2**32 - 1))
def test_no_step_lowers_the_likelihood(cells, epsilon, seed):
    rng = np.random.default_rng(seed)
    law = disk(cells, epsilon)
    counts = rng.poisson(3, size=law.outputs.sum()) * (rng.random(law.outputs.sum()) < 0.7)
    counts[0] += 1
    start = rng.dirichlet(np.ones(cells**2))
    before = counts @ np.log(law.forward(start))
    for steps in range(1, 6):
        found = expectation_maximisation(law.forward, law.backward, counts, start=start, tolerance=0.0, max_iter=steps)
        assert found.log_likelihood >= before - 1e-9 * abs(before)
        assert (found.shares >= 0).all()
        assert found.shares.sum() == pytest.approx(1, abs=1e-12)
        before = found.log_likelihood


def test_exact_counts_give_the_shares_back(rng):
    law = disk(3, 3.0)
    truth = rng.dirichlet(np.ones(9))
    counts = 1e6 * law.forward(truth)
    errors = [
        np.abs(
            expectation_maximisation(law.forward, law.backward, counts, start=np.ones(9), tolerance=each).shares - truth
        ).sum()
        for each in (1.0, 1e-3, 1e-9)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-5
    # And the shares themselves stay where they are.
    still = expectation_maximisation(law.forward, law.backward, counts, start=truth, tolerance=0.0, max_iter=3)
    np.testing.assert_allclose(still.shares, truth, atol=1e-14)


def test_steps_stop_by_the_likelihood_of_all_counts(rng):
    """Written out: a report counts in the likelihood as often as it was made, so one that nobody made does not."""
    law = disk(3, 2.0)
    matrix, counts = dense(law), rng.poisson(40, size=25) * (rng.random(25) < 0.6)
    shares, values = np.full(9, 1 / 9), []
    for _ in range(300):
        values.append(sum(n * math.log(each) for n, each in zip(counts, matrix @ shares, strict=True) if n))
        shares = shares * (matrix.T @ (counts / (matrix @ shares)))
        shares /= shares.sum()
    for tolerance in (3.0, 0.1, 1e-2):
        expected = next(k for k in range(1, 300) if abs(values[k] - values[k - 1]) < tolerance)
        found = expectation_maximisation(law.forward, law.backward, counts, start=np.ones(9), tolerance=tolerance)
        assert (found.iterations, found.converged) == (expected, True)
        assert found.change == pytest.approx(values[expected] - values[expected - 1], rel=1e-6)
        assert found.log_likelihood == pytest.approx(values[expected], rel=1e-12)
    short = expectation_maximisation(law.forward, law.backward, counts, start=np.ones(9), tolerance=1e-9, max_iter=2)
    assert (short.iterations, short.converged) == (2, False)
    assert short.change >= 1e-9


def test_reports_that_no_value_gives_may_exist():
    matrix = np.array([[0.7, 0.3], [0.0, 0.0], [0.3, 0.7]])
    np.testing.assert_allclose(fit(matrix, [5, 0, 5]).shares, 0.5)
    with pytest.raises(InputError, match="rules out"):
        fit(matrix, [5, 1, 5])


def test_what_starts_at_zero_stays_zero(rng):
    law, start = disk(3, 1.0), np.array([1, 1, 0, 0, 2, 1, 0, 1, 1])
    counts = rng.poisson(20, size=25)
    found = expectation_maximisation(law.forward, law.backward, counts, start=start, tolerance=1e-3)
    assert (found.shares[start == 0] == 0).all()
    # It is the fit of the matrix without those columns.
    few = fit(dense(law)[:, start > 0], counts, start=start[start > 0], tolerance=1e-3)
    np.testing.assert_allclose(found.shares[start > 0], few.shares, atol=1e-10)


def test_smoothing_follows_every_step(rng):
    matrix, counts = rng.dirichlet(np.ones(6), size=4).T, rng.poisson(30, size=6)
    shares = np.full(4, 0.25)
    for _ in range(3):
        shares = shares * (matrix.T @ (counts / (matrix @ shares)))
        shares /= shares.sum()
        a, b, c, d = shares
        shares = np.array([(2 * a + b) / 3, (a + 2 * b + c) / 4, (b + 2 * c + d) / 4, (c + 2 * d) / 3])
        shares /= shares.sum()
    smooth = partial(binomial_smoothing, inside=np.full(4, True))
    found = fit(matrix, counts, tolerance=0.0, max_iter=3, smooth=smooth)
    np.testing.assert_allclose(found.shares, shares, rtol=1e-12)


def test_binomial_smoothing_renormalises_its_ends():
    np.testing.assert_allclose(
        np.array([binomial_smoothing(each, inside=np.full(4, True)) for each in np.eye(4)]).T,
        [[2 / 3, 1 / 3, 0, 0], [1 / 4, 1 / 2, 1 / 4, 0], [0, 1 / 4, 1 / 2, 1 / 4], [0, 0, 1 / 3, 2 / 3]],
    )
    np.testing.assert_allclose(
        np.array([binomial_smoothing(each, inside=np.full(2, True)) for each in np.eye(2)]).T,
        [[2 / 3, 1 / 3], [1 / 3, 2 / 3]],
    )
    assert binomial_smoothing(np.array([0.7]), inside=np.full(1, True)).tolist() == [0.7]
    # A gap ends two rows, one of them a single cell.
    inside = np.array([True, True, False, True])
    np.testing.assert_allclose(binomial_smoothing(np.array([3.0, 6.0, 9.0, 5.0]), inside=inside), [4, 5, 0, 5])


def test_neighbours_share_and_what_is_missing_stays(rng):
    shares, weight = rng.random((3, 4)), 0.4
    expected = np.zeros((3, 4))
    for i, j in itertools.product(range(3), range(4)):
        for x, y in ((i, j), (i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            own = (x, y) == (i, j)
            there = 0 <= x < 3 and 0 <= y < 4
            expected[i, j] += (1 if own else weight) / (1 + 4 * weight) * shares[(x, y) if there else (i, j)]
    np.testing.assert_allclose(neighbour_smoothing(shares, weight, inside=np.full((3, 4), True)), expected, rtol=1e-12)
    np.testing.assert_array_equal(neighbour_smoothing(shares, 0.0, inside=np.full((3, 4), True)), shares)
    inside = rng.random((3, 4)) < 0.6
    inside[0, 0] = True
    found = neighbour_smoothing(shares, weight, inside=inside)
    np.testing.assert_array_equal(found[~inside], shares[~inside])
    assert found[inside].sum() == pytest.approx(shares[inside].sum(), rel=1e-12)
    np.testing.assert_allclose(neighbour_smoothing(np.ones((3, 4)), 3.0, inside=inside), 1, rtol=1e-12)


def test_settings_have_defaults_and_rules():
    assert em_settings({}, tolerance=0.5) == {"tolerance": 0.5, "max_iter": 10_000}
    assert em_settings({"max_iter": np.int64(7), "tolerance": 0}, tolerance=0.5) == {"tolerance": 0.0, "max_iter": 7}
    for wrong in (
        {"tolerance": -1},
        {"tolerance": None},
        {"max_iter": 0},
        {"max_iter": 2.5},
        {"max_iter": True},
        {"steps": 3},
    ):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}"):
            em_settings(wrong, tolerance=0.5)


WILD = (
    None,
    True,
    "a",
    np.nan,
    np.inf,
    10**400,
    object(),
    [],
    [[1, 2]],
    [1, None],
    [1j, 1],
    [np.nan, 1],
    [-1, 2],
    [1, np.inf],
)


def test_arguments_that_break_their_rule_are_refused():
    matrix = np.array([[0.7, 0.3], [0.3, 0.7]])
    for wrong in (*WILD, [0, 0], [1e308, 1e308], [1, 2, 3]):
        with pytest.raises(InputError, match="counts"):
            fit(matrix, wrong)
    for wrong in (*WILD, [0, 0], [1e308, 1e308]):
        with pytest.raises(InputError, match="start: "):
            fit(matrix, [1, 2], start=wrong)
    for wrong in (None, -1, np.nan, "1", True, [1], 10**400):
        with pytest.raises(InputError, match="tolerance: "):
            fit(matrix, [1, 2], tolerance=wrong)
        with pytest.raises(InputError, match="max_iter: "):
            fit(matrix, [1, 2], max_iter=wrong)
    for name in ("forward", "backward", "smooth"):
        with pytest.raises(InputError, match=f"{name}: "):
            expectation_maximisation(
                **{"forward": abs, "backward": abs, "counts": [1], "start": [1], "tolerance": 1} | {name: 3}
            )
    with pytest.raises(InputError, match="rules out"):
        fit(np.eye(2), [1, 2], start=[1, 0])
