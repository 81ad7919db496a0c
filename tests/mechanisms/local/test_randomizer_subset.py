"""The subset exponential mechanism against brute force over all subsets, and budgets of equal local privacy.

Statistical tests have fixed seeds and false-alarm rates below 1e-6.
"""

import dataclasses
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from baselines.local_matching import local_privacy, matched_epsilon, symmetries_of
from scipy.stats import chi2
from support.chance import Words

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers import subset_exponential
from dpppsynth.mechanisms.local.randomizers.area import DiskArea
from dpppsynth.mechanisms.local.randomizers.exact_sampling import Choice, distinct, uniform_below
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential, subset_size
from dpppsynth.mechanisms.local.randomizers.subset_law import mean_distance, shells

SMALL = [(1, 1), *((2, k) for k in range(1, 5)), *((3, k) for k in range(1, 10))]
FALSE_ALARM = 1e-7


def square(one, other, cells):
    """Squared distance of two cells, by nothing but their coordinates."""
    (i, j), (x, y) = divmod(one, cells), divmod(other, cells)
    return (i - x) ** 2 + (j - y) ** 2


def nearest(cell, subset, cells):
    return min(square(cell, other, cells) for other in subset)


def exact_law(law):
    """Probabilities as fractions: {subset: [given each cell]}, () for the empty report, from the drawn integers."""
    numbers, cells = law.law, law.cells
    by_square = dict(zip(law.shells.squares.tolist(), numbers.weights, strict=True))
    table = {
        subset: [Fraction(by_square[nearest(i, subset, cells)], numbers.total) for i in range(cells**2)]
        for subset in itertools.combinations(range(cells**2), law.subset)
    }
    return table | {(): [Fraction(numbers.empty[orbit], numbers.total) for orbit in law.shells.orbit]}


def below_power(ratio, exponent):
    """Whether a fraction is at most e^exponent, to 60 digits."""
    with localcontext(prec=60):
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= exponent.exp()


def fits(observed, expected):
    """Chi-square test of counts against expected ones; cells with few are pooled."""
    few = expected < 10
    observed = np.append(observed[~few], observed[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    return ((observed - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, max(1, len(expected) - 1))


@pytest.mark.parametrize("epsilon", [0.01, 6.0])
@pytest.mark.parametrize(("cells", "subset"), SMALL)
def test_integers_keep_the_bound_for_every_pair_subset_and_empty_report(cells, subset, epsilon):
    law = SubsetExponential(epsilon=epsilon, cells=cells, subset=subset)
    table, m = exact_law(law), cells**2
    assert epsilon * (1 - 1e-9) <= law.spent <= epsilon
    assert [sum(column) for column in zip(*table.values(), strict=True)] == [1] * m
    worst = {}
    for row in table.values():
        for i, j in itertools.permutations(range(m), 2):
            if row[i] or row[j]:
                key = square(i, j, cells)
                worst[key] = max(worst.get(key, 0), row[i] / row[j])
    with localcontext(prec=60):
        assert all(below_power(ratio, Decimal(law.spent) * Decimal(at).sqrt()) for at, ratio in worst.items())
    # The certificate gives nothing away either: some pair comes as close as the rounding's margin.
    if 1 <= subset < m:
        closest = max(float(math.log(ratio)) / math.sqrt(at) for at, ratio in worst.items())
        assert closest == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize(("cells", "subset"), SMALL)
def test_law_matrix_hits_and_counts_are_those_of_all_subsets(cells, subset, epsilon):
    law, m = SubsetExponential(epsilon=epsilon, cells=cells, subset=subset), cells**2
    subsets = list(itertools.combinations(range(m), subset))
    decay = np.array([[math.exp(-epsilon * math.sqrt(nearest(i, each, cells))) for i in range(m)] for each in subsets])
    mass = decay.sum(axis=0)
    omega = mass.max()
    for i, j in itertools.permutations(range(m), 2):
        growth = math.exp(epsilon * math.sqrt(square(i, j, cells)))
        omega = max(omega, (growth * mass[i] - mass[j]) / (growth - 1))
    expected = np.vstack([decay / omega, 1 - mass / omega])
    np.testing.assert_allclose(law.law.total / law.law.unit, omega, rtol=1e-10)
    np.testing.assert_allclose(law.matrix(), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(law.matrix().sum(axis=0), 1, rtol=0, atol=1e-12)
    holds = np.array([[cell in each for cell in range(m)] for each in subsets], dtype=float)
    np.testing.assert_allclose(law.hits, expected[:-1].T @ holds, rtol=1e-9)
    # Each subset reported once, and as many empty reports as are allowed.
    counts = law.count(np.array(subsets))
    assert counts.tolist() == [math.comb(m - 1, subset - 1)] * m + [0]
    assert law.reported(counts) == len(subsets)


def test_reference_values():
    first = SubsetExponential(epsilon=1.0, cells=2, subset=1)
    assert first.law.total / first.law.unit == pytest.approx(1.9788756168, abs=1e-10)
    assert not first.matrix()[-1].any()
    np.testing.assert_allclose(first.hits[0], [0.505337, 0.185903, 0.185903, 0.122856], atol=5e-7)
    assert local_privacy(first) == pytest.approx(0.7404827100, abs=1e-10)
    second = SubsetExponential(epsilon=1.0, cells=2, subset=2)
    assert second.law.total / second.law.unit == pytest.approx(3 + 3 / math.e, abs=1e-10)
    assert local_privacy(second) == pytest.approx(0.7927939701, abs=1e-10)
    third = SubsetExponential(epsilon=1.0, cells=3, subset=2)
    assert third.law.total / third.law.unit == pytest.approx(18.2863452836, abs=1e-9)
    np.testing.assert_allclose(third.matrix()[-1][[0, 1, 4]], [0.16516959, 0.08668488, 0.04015549], atol=5e-9)
    means = [mean_distance(cells) for cells in (1, 2, 3, 5, 15)]
    np.testing.assert_allclose(means, [0, 1.138071, 1.634975, 2.653714, 7.838345], atol=5e-7)
    assert [subset_size(epsilon, 1) for epsilon in (1e-9, 1e9)] == [1, 1]
    assert [subset_size(epsilon, 15) for epsilon in (1e-9, 0.69, 0.6905, 1e300)] == [113, 2, 1, 1]


def test_certificate_sees_what_breaks_the_bound():
    law = SubsetExponential(epsilon=1.0, cells=3, subset=2).law
    nothing = dataclasses.replace(law, empty=(0, *law.empty[1:]))
    # Omega too small: the least mass that no column exceeds one.
    spare = min(law.empty)
    smaller = dataclasses.replace(law, empty=tuple(rest - spare + 1 for rest in law.empty), total=law.total - spare + 1)
    steeper = dataclasses.replace(law, weights=(*law.weights[:-1], law.weights[-1] * 9 // 10))
    missing = dataclasses.replace(law, weights=(*law.weights[:-1], 0))
    assert law.spent <= 1.0 < min(each.spent for each in (nothing, smaller, steeper, missing))


@pytest.mark.parametrize(("epsilon", "cells", "subset"), [(0.1, 15, 71), (1e-6, 4, 8), (12.0, 15, 1), (50.0, 3, 2)])
def test_laws_at_the_ends_are_certified(epsilon, cells, subset):
    law = SubsetExponential(epsilon=epsilon, cells=cells, subset=subset)
    assert epsilon * (1 - 1e-9) <= law.spent <= epsilon
    np.testing.assert_allclose(law.hits.sum(axis=1), subset * (1 - law.empty), rtol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "cells", "subset"), [(1.0, 2, 1), (0.8, 3, 2), (0.05, 3, 5), (3.0, 3, 9), (1, 1, 1)]
)
def test_draws_follow_the_matrix(epsilon, cells, subset):
    law, n = SubsetExponential(epsilon=epsilon, cells=cells, subset=subset), 10_000
    subsets = list(itertools.combinations(range(cells**2), subset))
    number = {each: k for k, each in enumerate([*subsets, (-1,) * subset])}
    for value in sorted({0, 1 % cells**2, cells**2 // 2}):
        reports = law.draw(np.full(n, value), np.random.default_rng(value))
        assert reports.shape == (n, len(law.columns))
        observed = np.bincount([number[tuple(each)] for each in reports.tolist()], minlength=len(number))
        assert fits(observed, n * law.matrix()[:, value])


def test_draws_of_many_cells_hit_as_they_should(monkeypatch):
    monkeypatch.setattr(subset_exponential, "BATCH", 2**13)
    for epsilon, subset, n in ((0.84, 1, 40_000), (0.65, 2, 20_000), (0.1, 71, 800)):
        law = SubsetExponential(epsilon=epsilon, cells=15, subset=subset)
        rng = np.random.default_rng(3)
        values = rng.integers(0, 225, n)
        values[: n // 2] = 17
        counts = law.count(law.draw(values, rng))
        assert law.reported(counts) == n
        chances = np.column_stack([law.hits, law.empty])[values]
        spread = np.sqrt((chances * (1 - chances)).sum(axis=0))
        # 226 counts, none of fewer than 38 expected hits, leave seven deviations with a chance below 1e-6.
        assert (np.abs(counts - chances.sum(axis=0)) < 7 * spread).all()


def test_draws_repeat_with_the_seed_and_take_no_clients():
    law, values = SubsetExponential(epsilon=1.0, cells=4, subset=3), np.arange(16)
    first, second = (law.draw(values, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert law.draw(np.array([], dtype=int), np.random.default_rng(5)).shape == (0, 3)
    assert law.parameters() == {"kind": "subset-exponential", "epsilon": 1.0, "cells": 4, "subset": 3}
    assert law.metric
    assert law.columns == ("cell_0", "cell_1", "cell_2")


@pytest.mark.parametrize("weights", [(1, 2), (1, 0, 3 * 2**200 + 1, 2, 5)])
def test_choice_compares_exact_fractions_however_many_bits_it_takes(weights):
    choice, ends = Choice(weights), list(itertools.accumulate(weights))
    edges = sorted({(end << 62) // choice.total for end in ends[:-1]})
    starts = sorted({x for edge in edges for x in (edge - 1, edge, edge + 1) if 0 <= x < 2**62})
    further = [0, 1, 2**61, 2**62 - 1]
    asked = 0
    for start, one, two in itertools.product(starts, further, further):
        rng = Words([one, two, *[12345] * 9])
        got = int(choice.pick(np.array([start]), rng)[0])
        asked += len(rng.words) < 11
        number = sum(word * Fraction(1, 2 ** (62 * k)) for k, word in enumerate([start, one, two, *[12345] * 9], 1))
        assert got == sum(Fraction(end, choice.total) <= number for end in ends)
    assert asked


def test_positions_are_uniform():
    rng, n = np.random.default_rng(8), 30_000
    assert fits(np.bincount(uniform_below(np.full(n, 7), rng), minlength=7), np.full(7, n / 7))
    taken = distinct(np.full((n, 2), (4, 3)), np.full((n, 2), (2, 1)), rng)
    codes = (1 << taken).sum(axis=1)
    found, observed = np.unique(codes, return_counts=True)
    assert len(found) == math.comb(4, 2) * 3
    assert fits(observed, np.full(18, n / 18))


def test_below_refuses_the_incomplete_run():
    assert uniform_below(np.array([3]), Words([2**62 - 1, 5])).tolist() == [2]


def test_estimate_inverts_the_hits():
    law, n = SubsetExponential(epsilon=1.2, cells=4, subset=2), 10**12
    shares = np.random.default_rng(0).dirichlet(np.ones(16))
    shares[[3, 7]] = 0
    shares /= shares.sum()
    # Whole hits whose sum two divides.
    hits = 2 * np.rint(n * (shares @ law.hits) / 2).astype(np.int64)
    counts = np.append(hits, 0)
    counts[-1] = n - hits.sum() // 2
    np.testing.assert_allclose(law.estimate(counts, n), shares, atol=1e-10)
    inside = shares > 0
    estimate = law.estimate(counts, n, inside=inside)
    np.testing.assert_allclose(estimate, shares, atol=1e-10)
    assert not estimate[~inside].any()
    one = law.estimate(counts, n, inside=np.arange(16) == 3)
    assert one.tolist() == (np.arange(16) == 3).tolist()


def test_estimate_clips_and_falls_back_to_even_shares():
    law = SubsetExponential(epsilon=1.0, cells=2, subset=1)
    solved = np.linalg.solve(law.hits.T, [0.9, 0.1, 0, 0])
    assert solved.min() < 0
    expected = np.maximum(solved, 0) / np.maximum(solved, 0).sum()
    np.testing.assert_allclose(law.estimate(np.array([9, 1, 0, 0, 0]), 10), expected, rtol=1e-12)
    # Every report is empty, or holds every cell: nothing speaks for any cell.
    some = SubsetExponential(epsilon=1.0, cells=3, subset=2)
    np.testing.assert_allclose(some.estimate(np.append(np.zeros(9, dtype=int), 4), 4), np.full(9, 1 / 9))
    everything = SubsetExponential(epsilon=1.0, cells=2, subset=4)
    np.testing.assert_allclose(everything.estimate(np.array([6, 6, 6, 6, 0]), 6), np.full(4, 0.25))
    np.testing.assert_allclose(SubsetExponential(epsilon=1.0, cells=1, subset=1).estimate(np.array([3, 0]), 3), [1.0])


@pytest.mark.parametrize(("cells", "subset"), [(2, 1), (3, 2), (3, 4)])
def test_log_ratio_is_that_of_the_matrix(cells, subset):
    law = SubsetExponential(epsilon=0.7, cells=cells, subset=subset)
    reports = np.array(list(itertools.combinations(range(cells**2), subset)))
    matrix = law.matrix()[:-1]
    if law.empty.any():
        reports, matrix = np.vstack([reports, np.full(subset, -1)]), law.matrix()
    expected = np.log(matrix[:, 0] / matrix[:, -2])
    np.testing.assert_allclose(law.log_ratio(reports, 0, cells**2 - 2), expected, atol=1e-13)


def test_symmetries_and_orbits_keep_distances():
    grid = shells(5)
    for image in symmetries_of(5):
        np.testing.assert_array_equal(grid.rank[image[:, None], image], grid.rank)
        np.testing.assert_array_equal(grid.orbit[image], grid.orbit)
    assert len(grid.first) == 6
    assert len({tuple(image) for image in symmetries_of(5).tolist()}) == 8
    for (a, one), (b, other) in itertools.product(enumerate(grid.first), repeat=2):
        pairs = [square(one, cell, 5) for cell in np.flatnonzero(grid.orbit == b)]
        assert grid.squares[grid.nearest[a, b]] == min(pairs), other


@pytest.mark.parametrize(("cells", "subset"), [(1, 1), (2, 3), (3, 3), (4, 2)])
def test_local_privacy_is_the_sum_over_all_reports(cells, subset):
    law, m = SubsetExponential(epsilon=0.6, cells=cells, subset=subset), cells**2
    distances = np.sqrt([[square(i, j, cells) for j in range(m)] for i in range(m)])
    rows = [row @ distances @ row / row.sum() if row.any() else 0.0 for row in law.matrix()]
    assert local_privacy(law) == pytest.approx(sum(rows[:-1]) / m, rel=1e-12)
    assert local_privacy(law, empty=True) == pytest.approx(sum(rows) / m, rel=1e-12)


@pytest.mark.parametrize(
    ("cells", "epsilon", "expected"),
    [(2, 1.0, 0.8142128249), (3, 1.0, 1.4011576605), (5, 1.0, 2.4991442470), (5, 3.5, 1.5823041975)],
)
def test_local_privacy_of_disk_areas(cells, epsilon, expected):
    found = local_privacy(DiskArea(epsilon=epsilon, cells=cells, radius=1, shrink=True))
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("cells", "epsilon", "target", "match", "subset"),
    [(3, 3.5, 0.5666, 1.984, 1), (15, 7.0, 2.4325, 0.8401, 1)],
)
def test_budgets_of_equal_local_privacy(cells, epsilon, target, match, subset):
    found = matched_epsilon(epsilon, cells)
    assert found.target == pytest.approx(target, abs=5e-5)
    assert found.local_privacy == pytest.approx(found.target, rel=1e-9)
    assert found.epsilon == pytest.approx(match, abs=6e-4)
    assert (found.subset, found.jump) == (subset, False)
    assert found.bracket[0] <= found.epsilon <= found.bracket[1]


@pytest.mark.parametrize(
    ("cells", "epsilon", "target", "edge", "subset"), [(15, 5.0, 4.1166, 0.6904, 2), (5, 3.5, 1.582304, 1.1976, 2)]
)
def test_jumps_between_sizes_are_reported(cells, epsilon, target, edge, subset):
    found = matched_epsilon(epsilon, cells)
    assert found.jump
    assert found.target == pytest.approx(target, abs=5e-5)
    np.testing.assert_allclose(found.bracket, edge, atol=5e-5)
    assert [subset_size(each, cells) for each in found.bracket] == [subset, subset - 1]
    assert found.subset == subset_size(found.epsilon, cells)
    sides = [
        local_privacy(SubsetExponential(epsilon=each, cells=cells, subset=k))
        for each, k in zip(found.bracket, (subset, subset - 1), strict=True)
    ]
    assert sides[1] < found.target < sides[0]
    assert abs(found.local_privacy - found.target) == pytest.approx(min(abs(side - found.target) for side in sides))


def test_matching_where_there_is_no_match():
    with pytest.raises(InputError, match=r"C\(25, 4\) = 12650"):
        matched_epsilon(1.0, 5, most=2500)
    with pytest.raises(InputError, match="empty=True"):
        matched_epsilon(0.1, 3)
    found = matched_epsilon(0.1, 3, empty=True)
    assert found.local_privacy == pytest.approx(found.target, rel=1e-3)
    assert matched_epsilon(2.0, 1).local_privacy == 0


@pytest.mark.parametrize("wrong", [None, math.nan, math.inf, True, "1", [], 10**400, object()])
def test_wild_numbers_are_input_errors(wrong):
    calls = [
        lambda: SubsetExponential(epsilon=wrong, cells=3, subset=2),
        lambda: SubsetExponential(epsilon=1.0, cells=wrong, subset=1),
        lambda: SubsetExponential(epsilon=1.0, cells=3, subset=wrong),
        lambda: subset_size(wrong, 3),
        lambda: subset_size(1.0, wrong),
        lambda: mean_distance(wrong),
        lambda: shells(wrong),
        lambda: matched_epsilon(wrong, 3),
        lambda: matched_epsilon(1.0, wrong),
        lambda: matched_epsilon(1.0, 2, most=wrong),
        lambda: local_privacy(wrong),
    ]
    for call in calls:
        if wrong is True and call is calls[1]:
            continue
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1e6}, "epsilon: 1e"),
        ({"epsilon": 1e-200}, "epsilon: 1e"),
        ({"cells": 0}, "cells"),
        ({"cells": 65}, "cells"),
        ({"cells": 2.0}, "cells"),
        ({"subset": 0}, "subset"),
        ({"subset": 10}, "subset"),
    ],
)
def test_numbers_out_of_range_are_named(given, names):
    with pytest.raises(InputError, match=names):
        SubsetExponential(**({"epsilon": 1.0, "cells": 3, "subset": 2} | given))


def test_reports_and_counts_that_no_client_sends():
    law, never = (SubsetExponential(epsilon=1.0, cells=cells, subset=2) for cells in (3, 2))
    full = SubsetExponential(epsilon=1.0, cells=2, subset=1)
    assert law.count(np.array([[0, 8], [-1, -1]])).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert law.count(np.empty((0, 2), dtype=int)).tolist() == [0] * 10
    for wrong in (
        [[1, 0]],
        [[0, 0]],
        [[-1, 3]],
        [[0, 9]],
        [[0, 1, 2]],
        [0, 1],
        [[0.0, 1.0]],
        [[-2, -2]],
        None,
        "x",
        [[0]],
    ):
        for call in (law.count, lambda reports: law.log_ratio(reports, 0, 1)):
            with pytest.raises(InputError, match="reports"):
                call(wrong)
    # Differences of these wrap around to positive ones.
    with pytest.raises(InputError, match="reports"):
        SubsetExponential(epsilon=1.0, cells=3, subset=4).count(np.array([[5, -(2**63), -1, 7]]))
    for client in (never, full):
        assert not client.empty.any()
        with pytest.raises(InputError, match="reports"):
            client.count(np.full((1, client.subset), -1))
        with pytest.raises(InputError, match="counts"):
            client.reported([0] * client.inputs + [1])
    for counts in (
        [1] + [0] * 9,
        [2] + [0] * 9,
        [0] * 10,
        [-2] + [2] * 9,
        [1.5] * 10,
        [2] * 9,
        None,
        [2**62] * 8 + [0, 0, 1],
    ):
        with pytest.raises(InputError, match="counts"):
            law.reported(counts)
        with pytest.raises(InputError, match="counts"):
            law.estimate(counts, 1)


def test_estimates_refuse_other_numbers_masks_and_settings():
    law, counts = SubsetExponential(epsilon=1.0, cells=2, subset=1), np.array([1, 0, 0, 0, 0])
    assert law.settings() == {}
    with pytest.raises(InputError, match="tolerance"):
        law.estimate(counts, 1, tolerance=1)
    for n in (2, 0, None, 1.0, True):
        with pytest.raises(InputError, match="n:"):
            law.estimate(counts, n)
    for inside in ([True], [False] * 4, [1, 0, 0, 0], "all"):
        with pytest.raises(InputError, match="inside"):
            law.estimate(counts, 1, inside=inside)
    for value in (-1, 4, 0.0, None):
        with pytest.raises(InputError, match="value"):
            law.log_ratio(np.array([[0]]), value, 1)
        with pytest.raises(InputError, match="value"):
            law.draw(np.array([value]), np.random.default_rng(1))


def test_what_cannot_be_listed_is_refused_by_its_size():
    law = SubsetExponential(epsilon=1.0, cells=8, subset=12)
    with pytest.raises(InputError, match=r"C\(64, 12\) = 3284214703056"):
        law.matrix()
    with pytest.raises(InputError, match=r"C\(64, 12\)"):
        local_privacy(law)
