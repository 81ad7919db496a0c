"""The square wave against its published values, exact integers and a dense matrix."""

import decimal
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave, _relative_half_width, square_wave_half_width

HALF = 2**61


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.fixture
def law():
    return SquareWave(epsilon=1.0, cells=5, half_width=1)


class Chosen(np.random.Generator):
    """A generator that gives the draws it was told to."""

    def __init__(self, draws):
        super().__init__(np.random.PCG64(0))
        self._draws = np.asarray(draws, dtype=np.int64)

    def integers(self, low, high, size, dtype):
        assert (low, high, size) == (0, 2**62, len(self._draws))
        return self._draws


def test_probabilities_are_as_published():
    for epsilon, half_width, p, q in ((1.0, 1, 0.22363771, 0.08227172), (3.5, 0, 0.89222817, 0.02694296)):
        assert square_wave_half_width(epsilon, 5) == half_width
        matrix = 2 * SquareWave(epsilon=epsilon, cells=5, half_width=half_width).matrix()
        assert matrix.max() == pytest.approx(p, abs=5e-9)
        assert matrix.min() == pytest.approx(q, abs=5e-9)


def test_the_half_width_is_the_published_one():
    # Raw factors, read off from grids so fine that the floor hardly matters.
    for epsilon, factor in ((1.0, 0.2560829), (3.5, 0.0442103)):
        for cells in (4096, 1000, 15):
            assert square_wave_half_width(epsilon, cells) == math.floor(cells * factor)


@pytest.mark.parametrize("epsilon", ["1e-12", "0.0001", "0.009999", "0.010001", "0.3", "2", "9"])
def test_the_half_width_cancels_nowhere(epsilon):
    """The printed formula with 80 digits."""
    with decimal.localcontext(prec=80):
        exact = decimal.Decimal(float(epsilon))
        e = exact.exp()
        factor = (exact * e - e + 1) / (2 * e * (e - 1 - exact))
        assert _relative_half_width(float(epsilon)) == pytest.approx(float(factor), rel=1e-11)
        for cells in (1, 2, 7, 1024, 4095, 4096):
            expected = int(factor * cells + decimal.Decimal("1e-9"))
            assert square_wave_half_width(float(epsilon), cells) == expected


def test_the_half_width_falls_from_half_the_axis_to_nothing():
    found = [square_wave_half_width(each, 1001) for each in (1e-300, 0.1, 0.5, 1, 2, 4, 8, 30, 700, 701, 1e300)]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-4:]) == (500, [0] * 4)


@pytest.mark.parametrize(
    ("epsilon", "cells", "half_width"), [(1.0, 5, 1), (0.01, 15, 7), (7.0, 3, 0), (0.7, 2, 5), (2, 40, 9)]
)
def test_integer_weights_keep_the_promise(epsilon, cells, half_width):
    law = SquareWave(epsilon=epsilon, cells=cells, half_width=half_width)
    weights = [[int(each) for each in law._weights(k)] for k in range(cells)]
    assert {sum(each) for each in weights} == {HALF}
    ratio = max(Fraction(max(row), min(row)) for row in zip(*weights, strict=True))
    with decimal.localcontext(prec=60):
        exact = (decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)).ln()
    assert exact <= decimal.Decimal(law.spent) <= decimal.Decimal(law.epsilon)
    assert law.spent >= epsilon * (1 - 1e-9)
    # The shape of the wave: one level within the window and one beyond, to the rounding of integers.
    for k, row in enumerate(weights):
        far = [abs(o - half_width - k) > half_width for o in range(len(row))]
        high = math.exp(epsilon) / ((2 * half_width + 1) * math.exp(epsilon) + cells - 1)
        expected = np.where(far, high / math.exp(epsilon), high)
        np.testing.assert_allclose(np.array(row) / HALF, expected, rtol=1e-8)


def test_a_value_that_everybody_has_says_nothing():
    law = SquareWave(epsilon=1.0, cells=1, half_width=2)
    np.testing.assert_allclose(law.matrix(), 0.1)
    counts = law.count(law.draw(np.zeros(50, dtype=int), np.random.default_rng(0)))
    assert law.estimate(counts, 50).tolist() == [1.0]


def test_draws_are_the_weights_exactly(law):
    """The law is constant between the places where it may change; the lengths between them add up to the weights."""
    low, extra, steps = law.law.low, law.law.extra, np.cumsum(law.law.excess).tolist()
    even = law.outputs * low
    edges = [k * low for k in range(law.outputs)] + [even + k for k in range(extra + 1)]
    edges = sorted({*edges, *(even + extra + each for each in steps)})
    assert edges[-1] == HALF
    for value, axis in itertools.product(range(25), (0, 1)):
        coordinate = divmod(value, 5)[axis]
        for at in (edges[:-1], [each - 1 for each in edges[1:]]):
            reports = law.draw(np.full(len(at), value), Chosen([2 * each + axis for each in at]))
            assert (reports[:, 0] == axis).all()
            found = np.zeros(law.outputs, dtype=object)
            for cell, width in zip(reports[:, 1], np.diff(np.array(edges, dtype=object)), strict=True):
                found[cell + 1] += width
            assert found.tolist() == law._weights(coordinate).tolist()


def test_frequencies_follow_the_matrix(law, rng):
    n = 100_000
    for value in (0, 7, 24):
        expected = n * law.matrix()[:, value]
        counts = law.count(law.draw(np.full(n, value), rng))
        # 13 degrees of freedom; three tests fail by chance once in 10^7.
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(3e-8, 13)
    one, two = (law.draw(np.arange(25), np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_the_matrix_has_the_first_coordinate_on_the_first_axis(law):
    matrix = law.matrix()
    assert matrix.shape == (14, 25)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-14)
    assert (matrix.max(axis=1) / matrix.min(axis=1)).max() <= math.e * (1 + 1e-12)
    # Cell (4, 0): high on the first axis at 3, 4, 5, on the second at -1, 0, 1.
    assert np.flatnonzero(matrix[:, 20] > 0.1).tolist() == [4, 5, 6, 7, 8, 9]


def test_counts_add_up_and_foreign_reports_are_refused(law, rng):
    reports = law.draw(rng.integers(0, 25, size=500), rng)
    counts = law.count(reports)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, law.count(reports[:123]) + law.count(reports[123:]))
    assert (law.reported(counts), len(counts)) == (500, law.size)
    assert law.count([[0, -1]]).tolist() == [1] + [0] * 13
    assert law.count([[1, 5]]).tolist() == [0] * 13 + [1]
    assert not law.count(np.zeros((0, 2), dtype=int)).any()
    for wrong in (
        [[2, 0]],
        [[-1, 0]],
        [[0, -2]],
        [[0, 6]],
        [[1, 10**18]],
        [[0.0, 1.0]],
        [[0, 1, 2]],
        [0, 1],
        None,
        "a",
        [[None, 0]],
    ):
        with pytest.raises(InputError, match="reports: "):
            law.count(wrong)
        with pytest.raises(InputError, match="reports: "):
            law.log_ratio(wrong, 0, 1)
    for wrong in ([25], [-1], [0.5], None, "a", [[1]], [True], 3, [10**400]):
        with pytest.raises(InputError, match="values: "):
            law.draw(wrong, rng)
    for wrong in (None, 3, "rng", object()):
        with pytest.raises(InputError, match="rng: "):
            law.draw([3], wrong)


def test_marginals_are_smoothed_fits_of_a_dense_matrix(rng):
    law = SquareWave(epsilon=1.5, cells=6, half_width=2)
    truth = np.outer(rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))).ravel()
    n = 20_000
    counts = law.count(law.draw(rng.choice(36, size=n, p=truth), rng))
    # The first axis alone: rows of the matrix for its reports, one column for each first coordinate.
    matrix, seen = 2 * law.matrix()[:10, ::6], counts[:10]
    shares, before = np.full(6, 1 / 6), -math.inf
    steps = 0
    while True:
        reached = seen @ np.log(matrix @ shares)
        if abs(reached - before) < 0.05:
            break
        before, steps = reached, steps + 1
        shares = shares * (matrix.T @ (seen / (matrix @ shares)))
        shares /= shares.sum()
        a, b, c, d, e, f = shares
        shares = np.array(
            [(2 * a + b) / 3, *((np.array([a, b, c, d]) + 2 * shares[1:5] + [c, d, e, f]) / 4), (e + 2 * f) / 3]
        )
        shares /= shares.sum()
    first, second = law.fit(counts, n, tolerance=0.05)
    np.testing.assert_allclose(first.shares, shares, rtol=1e-10)
    assert (first.iterations, first.converged) == (steps, True)
    np.testing.assert_allclose(law.estimate(counts, n, tolerance=0.05), np.outer(first.shares, second.shares).ravel())
    swapped, _ = law.fit(np.concatenate([counts[10:], counts[:10]]), n, tolerance=0.05)
    np.testing.assert_array_equal(swapped.shares, second.shares)


def test_smooth_independent_coordinates_are_found_again():
    n, errors = 10**7, []
    for cells in (12, 48):
        law = SquareWave(epsilon=4.0, cells=cells, half_width=square_wave_half_width(4.0, cells))
        line = np.exp(-(((np.arange(cells) + 0.5) / cells - 0.35) ** 2) * 16)
        truth = np.outer(line, line[::-1]).ravel() / line.sum() ** 2
        found = law.estimate(np.random.default_rng(1).multinomial(n, law.matrix() @ truth), n)
        assert found.sum() == pytest.approx(1, abs=1e-12)
        errors.append(np.abs(found - truth).sum())
    # Smoothing after every step leaves a bias that only finer grids take away, however many clients report.
    assert errors[1] < 0.03
    assert 0.1 < errors[0] < 0.2


def test_how_coordinates_depend_on_each_other_is_lost():
    law, n = SquareWave(epsilon=2.0, cells=12, half_width=2), 10**7
    diagonal = np.eye(12).ravel() / 12
    found = law.estimate(np.random.default_rng(1).multinomial(n, law.matrix() @ diagonal), n)
    np.testing.assert_allclose(found, 1 / 144, rtol=0.2)


def test_cells_that_do_not_exist_get_nothing(law, rng):
    counts = law.count(law.draw(rng.integers(0, 25, size=2000), rng))
    inside = np.ones((5, 5), dtype=bool)
    inside[0] = inside[:, 4] = inside[2, 2] = False
    found = law.estimate(counts, 2000, inside=inside.ravel()).reshape(5, 5)
    assert (found[~inside] == 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert (found[inside] > 0).all()
    first, second = law.fit(counts, 2000, inside=inside.ravel())
    assert (first.shares[0], second.shares[4]) == (0, 0)
    lone = np.arange(25) == 13
    np.testing.assert_allclose(law.estimate(counts, 2000, inside=lone), lone / 1.0)
    for wrong in (inside, inside.ravel() * 1.0, np.zeros(25, dtype=bool), "all", [True], 3):
        with pytest.raises(InputError, match="inside: "):
            law.estimate(counts, 2000, inside=wrong)


def test_an_axis_that_nobody_reported_stays_even(law):
    counts = law.count([[1, 0], [1, 1], [1, 2]])
    first, second = law.fit(counts, 3)
    np.testing.assert_allclose(first.shares, 0.2)
    assert (first.iterations, first.converged) == (0, True)
    assert second.iterations > 0
    assert law.estimate(counts, 3).reshape(5, 5).sum(axis=1) == pytest.approx([0.2] * 5)


def test_log_ratios_are_those_of_the_matrix(law, rng):
    reports = np.array([[axis, cell] for axis in (0, 1) for cell in range(-1, 6)])
    matrix = law.matrix()
    for value, other in ((0, 24), (24, 0), (3, 3), (7, 8)):
        found = law.log_ratio(reports, value, other)
        np.testing.assert_allclose(found, np.log(matrix[:, value] / matrix[:, other]), atol=1e-14)
        assert np.abs(found).max() <= law.spent * (1 + 1e-15)
    assert law.log_ratio(reports, 0, 24).max() == pytest.approx(law.spent, rel=1e-14)
    for wrong in (25, -1, 0.5, None, "a", 10**400):
        with pytest.raises(InputError, match="value: "):
            law.log_ratio(reports, 0, wrong)


def test_parameters_make_the_same_law_again(law):
    data = json.loads(json.dumps(law.parameters()))
    assert data == {"kind": "square-wave", "epsilon": 1.0, "cells": 5, "half_width": 1}
    again = SquareWave(**{key: value for key, value in data.items() if key != "kind"})
    np.testing.assert_array_equal(again.matrix(), law.matrix())
    assert law.settings() == {"tolerance": 1e-3, "max_iter": 10_000}


def test_arguments_that_break_their_rule_are_refused(law):
    right = {"epsilon": 1.0, "cells": 5, "half_width": 1}
    wild = (None, -1, 0.5, np.nan, np.inf, True, "5", [1], 10**400, object())
    for name, wrongs in (
        ("epsilon", (*wild[:2], *wild[3:], 0, 1e-30, 80.0, 1e300)),
        ("cells", (*wild, 0)),
        ("half_width", wild),
    ):
        for wrong in wrongs:
            with pytest.raises(InputError, match=f"{name}: "):
                SquareWave(**right | {name: wrong})
    for wrong in (*wild[:2], *wild[3:], 0):
        with pytest.raises(InputError, match="epsilon: "):
            square_wave_half_width(wrong, 5)
    for wrong in (*wild, 0):
        with pytest.raises(InputError, match="cells: "):
            square_wave_half_width(1.0, wrong)
    counts = law.count([[0, 1], [1, 1]])
    for wrong in (None, 0, 3, 2.5, "2", True, 10**400):
        with pytest.raises(InputError, match="n: "):
            law.estimate(counts, wrong)
    for wrong in (counts * 0, -counts, counts[1:], counts + 0.5, None, "counts", [np.nan] * 14):
        with pytest.raises(InputError, match="counts: "):
            law.estimate(wrong, 2)
    with pytest.raises(InputError, match="smooth"):
        law.estimate(counts, 2, smooth=True)
    with pytest.raises(InputError, match="tolerance: "):
        law.settings(tolerance=-1)
