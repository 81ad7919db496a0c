"""Trajectories, LDPTrace and PivotTrace (dpppsynth.mechanisms.local.trajectories, baselines.pivot_trace).

Statistical tests stop at six standard deviations, or look at chi-square values with p below 1e-8.
"""

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from baselines.city_walks import PointsBudget, points_budget, random_trajectories
from baselines.pivot_trace import (
    SECTORS,
    _best_sectors,
    _calibrated,
    _exponential,
    _half_width,
    _in_sector,
    _kept,
    _square_wave,
    pivot_trace,
)
from baselines.trajectories import Trajectories
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.reports import Counts, Report
from dpppsynth.mechanisms.local.trajectories.paths import (
    MOVES,
    GridTrajectories,
    neighbouring_cells,
)
from dpppsynth.mechanisms.local.trajectories.protocol import RoundLaw
from dpppsynth.mechanisms.local.trajectories.walks import TraceModel
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace, TraceRound
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import Local
from dpppsynth.spatial.domains import Window

SQUARE = Window.rectangle(0, 0, 1, 1)
WILD = [None, True, math.nan, math.inf, -1, 0, 2**70, 1.5, "x", b"x", [], {}, object(), [[1, 2], [3]], np.zeros(3)]


def walks(cells, *paths):
    """Trajectories from lists of cells."""
    return GridTrajectories(cells, np.concatenate(paths), np.cumsum([0, *map(len, paths)]))


def paths(trajectories):
    return [part.tolist() for part in np.split(trajectories.values, trajectories.offsets[1:-1])]


# --- Trajectories ----------------------------------------------------------------------------------------------------


def test_cells_by_floor_and_the_upper_border_in_the_last_cell():
    found = Trajectories.of([[[0, 0], [0.5, 0.25], [1, 1]], [[0.49, 1]]]).on_grid(SQUARE, 2)
    assert paths(found) == [[0, 2, 3], [1]]
    assert found.histogram().tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_points_outside_the_window_are_refused_without_being_shown():
    with pytest.raises(InputError, match="outside it") as error:
        Trajectories.of([[[0.125, 7.875]]]).on_grid(SQUARE, 2)
    assert "7.875" not in str(error.value)


@pytest.mark.parametrize(
    "bad", [[0], [0, 2], [1, 3], [0, 2, 2, 3], [0, 3, 2, 3], [0.0, 3.0], [[0, 3]], None, "ab", [0, True]]
)
def test_offsets_that_do_not_part_the_points(bad):
    for make in (lambda: Trajectories(np.zeros((3, 2)), bad), lambda: GridTrajectories(2, [0, 1, 2], bad)):
        with pytest.raises(InputError, match="offsets"):
            make()


@pytest.mark.parametrize("bad", [*WILD, [0, 4], [-1], [0.0], [[0]], [2**63], ["a"]])
def test_cells_out_of_the_grid(bad):
    with pytest.raises(InputError, match="values"):
        GridTrajectories(2, bad, [0, 1])


@pytest.mark.parametrize("bad", [*WILD, [[0, np.inf]], [[0, 2e12]], [[1, 2, 3]]])
def test_points_that_are_none(bad):
    with pytest.raises(InputError):
        Trajectories(bad, [0, 1])
    with pytest.raises(InputError):
        Trajectories.of(bad)
    with pytest.raises(InputError):
        Trajectories.of([bad])
    with pytest.raises(InputError):
        random_trajectories(bad, SQUARE)


def brute_mobility(path, cells):
    """Cells along straight lines, one at a time and in fractions."""
    found = path[:1]
    for one, other in itertools.pairwise(path):
        start, end = divmod(one, cells), divmod(other, cells)
        steps = max(abs(a - b) for a, b in zip(start, end, strict=True))
        for k in range(1, steps + 1):
            # Halves go towards the end.
            x, y = (
                b - math.floor(Fraction((steps - k) * (b - a), steps) + Fraction(1, 2))
                for a, b in zip(start, end, strict=True)
            )
            found.append(x * cells + y)
    return found


@settings(max_examples=60)
@given(st.integers(1, 6), st.data())
def test_mobility_has_no_stays_and_no_jumps(cells, data):
    path = st.lists(st.integers(0, cells**2 - 1), min_size=1, max_size=8)
    given_paths = data.draw(st.lists(path, min_size=1, max_size=4))
    found = paths(walks(cells, *given_paths).mobility())
    assert found == [brute_mobility(list(each), cells) for each in given_paths]
    for longest in (1, 2, 5):
        assert paths(walks(cells, *given_paths).mobility(longest)) == [each[:longest] for each in found]
    for before, after in zip(given_paths, found, strict=True):
        assert (before[0], before[-1]) == (after[0], after[-1])
        ways = [np.subtract(divmod(b, cells), divmod(a, cells)) for a, b in itertools.pairwise(after)]
        assert all(max(abs(way)) == 1 for way in ways)


def test_a_walk_longer_than_announced_is_cut_and_nobody_can_tell():
    """Theorem T: a cut walk reports what its first cells report, in as many reports, whatever comes later."""
    long, other, short = [0, 1, 2, 5, 8, 7], [0, 1, 2, 5, 4, 3, 6], [0, 1, 2]
    for longest in (1, 2, 3, 4):
        asked = LDPTrace(epsilon=2.0, cells=3, max_length=4).second(longest)
        found = [
            asked.law.about(GridTrajectories(3, way, [0, len(way)])) for way in (long, other, long[:longest], short)
        ]
        for part in asked.law.parts:
            assert {each[part.name].shape for each in found} == {(1, part.times)}
            for each in found[1:3]:
                np.testing.assert_array_equal(each[part.name], found[0][part.name])
        reports = [
            asked.clients(GridTrajectories(3, way, [0, len(way)]), rng=1) for way in (long, other, long[:longest])
        ]
        assert len({report.rows.tobytes() for report in reports}) == 1
    lengths = LDPTrace(epsilon=2.0, cells=3, max_length=4).first
    told = [
        lengths.law.about(GridTrajectories(3, way, [0, len(way)]))["length"].tolist() for way in (long, long[:4], short)
    ]
    assert told == [[[3]], [[3]], [[2]]]


def test_cut_and_part():
    all_of_them = walks(3, [0, 1, 2], [4], [8, 7])
    assert paths(all_of_them.mobility(2)) == [[0, 1], [4], [8, 7]]
    assert paths(all_of_them.part(1, 3)) == [[4], [8, 7]]


def test_neighbours_by_brute_force():
    target, inside = neighbouring_cells(np.arange(9), 3)
    for cell, k in itertools.product(range(9), range(8)):
        i, j = np.array(divmod(cell, 3)) + MOVES[k]
        assert inside[cell, k] == (0 <= i < 3 and 0 <= j < 3)
        if inside[cell, k]:
            assert target[cell, k] == 3 * i + j


def test_nothing_shows_points_or_their_number():
    shown = repr(Trajectories.of([[[0.125, 0.5]] * 17])) + repr(walks(4, [3] * 17))
    assert "17" not in shown
    assert "0.125" not in shown


# --- Random trajectories ---------------------------------------------------------------------------------------------


def city():
    rng = np.random.default_rng(5)
    return rng.uniform(size=(60, 2))


def test_random_walks_visit_points_of_neighbouring_cells():
    points = city()
    found = random_trajectories(points, SQUARE, number=300, grid=5, shortest=3, longest=9, rng=1)
    assert {tuple(p) for p in found.xy} <= {tuple(p) for p in points}
    places = np.column_stack(np.divmod(found.on_grid(SQUARE, 5).values, 5))
    ways = np.delete(np.diff(places, axis=0), found.offsets[1:-1] - 1, axis=0)
    assert (np.abs(ways).max(axis=1) == 1).all()
    # In a city without empty neighbourhoods nothing ends early: all lengths occur, and no other.
    assert set(found.lengths) == set(range(3, 10))


def test_random_walks_start_in_all_cells_alike_and_move_to_full_ones():
    # Cells in a row with 1, 6 and 3 points: starts are even, the middle one's moves 1 to 3.
    x = np.repeat([0.1, 0.5, 0.9], [1, 6, 3])
    found = random_trajectories(np.column_stack([x, np.full(10, 0.1)]), SQUARE, number=8000, grid=3, longest=2, rng=2)
    first, second = found.on_grid(SQUARE, 3).values.reshape(-1, 2).T // 3
    assert scipy.stats.chisquare(np.bincount(first)).pvalue > 1e-8
    moves = np.bincount(second[first == 1], minlength=3)
    assert moves[1] == 0
    assert scipy.stats.chisquare(moves[[0, 2]], moves.sum() * np.array([0.25, 0.75])).pvalue > 1e-8
    assert (second[first != 1] == 1).all()


def test_random_walks_end_where_all_neighbours_are_empty():
    found = random_trajectories([[0.1, 0.1], [0.9, 0.9]], SQUARE, number=5, grid=5, longest=50, rng=1)
    assert found.lengths.tolist() == [1] * 5


def test_random_walks_follow_their_seed():
    one, other, third = (random_trajectories(city(), SQUARE, number=9, grid=5, rng=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.xy, other.xy)
    assert not np.array_equal(one.xy[:9], third.xy[:9])


@pytest.mark.parametrize("name", ["number", "grid", "shortest", "longest"])
@pytest.mark.parametrize("bad", WILD)
def test_random_walks_refuse(name, bad):
    with pytest.raises(InputError):
        random_trajectories(city(), SQUARE, **{name: bad})


def test_points_cost_a_person_as_often_as_they_are():
    found = points_budget(walks(2, [0] * 200, [1] * 2), 1.5)
    assert found == PointsBudget(per_point=1.5, mean=151.5, most=300.0)
    for bad in [None, True, math.nan, 0, -1, 10**400, "x", [], np.ones(2)]:
        with pytest.raises(InputError):
            points_budget(walks(2, [0]), bad)
        with pytest.raises(InputError):
            points_budget(bad, 1.0)


# --- Rounds of LDPTrace: what is reported ----------------------------------------------------------------------------


def test_values_of_the_rounds():
    mechanism = LDPTrace(epsilon=1.0, cells=3, max_length=4)
    given_walks = walks(3, [0, 0, 1, 4, 8, 7], [5, 5, 5], [8, 4])
    assert mechanism.first.law.about(given_walks)["length"].tolist() == [[3], [0], [1]]
    values = mechanism.second(3).law.about(given_walks)
    assert values["start"].tolist() == [[0], [5], [8]]
    # Cut after the third cell; a walk that stays anywhere has one.
    assert values["end"].tolist() == [[4], [5], [4]]
    up, right, back = (MOVES.tolist().index(way) for way in ([0, 1], [1, 0], [-1, -1]))
    assert values["moves"].tolist() == [[0 * 8 + up, 1 * 8 + right], [72, 72], [8 * 8 + back, 72]]


def test_every_client_sends_as_much_whatever_their_trajectory():
    asked = LDPTrace(epsilon=1.0, cells=2, max_length=9).second(9)
    shapes = set()
    for path in ([0], [0] * 50, [0, 1, 3, 2] * 30):
        reports = asked.clients(walks(2, path), rng=1)
        shapes.add(tuple((name, rows.shape) for name, rows in asked.law.words(reports.rows).items()))
    assert shapes == {(("start", (1, 1)), ("end", (1, 1)), ("moves", (8, 1)))}


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_rounds_spend_all_of_the_budget_and_no_more(epsilon):
    mechanism = LDPTrace(epsilon=epsilon, cells=2, max_length=40)
    assert abs(mechanism.first.law.total / Fraction(epsilon) - Fraction(1, 10)) < 1e-9
    for longest in range(1, 41, 3):
        spent = mechanism.first.law.total + mechanism.second(longest).law.total
        assert Fraction(epsilon) * (1 - Fraction(1, 10**8)) < spent <= Fraction(epsilon)
        assert sum(part.times for part in mechanism.second(longest).law.parts) == longest + 1


# --- Privacy by exact enumeration ------------------------------------------------------------------------------------


def bit_law(oracle, value):
    """Probability of one of each bit, as fractions."""
    return [oracle.p if k == value else oracle.q for k in range(oracle.domain)]


def most_by_enumeration(one, other):
    """Largest ratio of the probabilities of a report of bits, over all reports."""
    return max(
        math.prod((a if bit else 1 - a) / (b if bit else 1 - b) for a, b, bit in zip(one, other, bits, strict=True))
        for bits in itertools.product((0, 1), repeat=len(one))
    )


def most_by_bits(one, other):
    return math.prod(max(a / b, (1 - a) / (1 - b)) for a, b in zip(one, other, strict=True))


def largest_ratio(asked, one, other):
    """Largest ratio of all reports of a round for two trajectories: the product over reports."""
    values, others = asked.law.about(one), asked.law.about(other)
    ratio = Fraction(1)
    for part in asked.law.parts:
        for a, b in zip(values[part.name][0], others[part.name][0], strict=True):
            laws = bit_law(part.randomizer, a), bit_law(part.randomizer, b)
            # All 2^33 reports of a move are too many; that bits are worst one by one is checked on the others.
            most = most_by_bits(*laws)
            if part.randomizer.domain <= 4:
                assert most == most_by_enumeration(*laws)
            ratio *= most
    return ratio


@pytest.mark.slow
def test_no_two_trajectories_are_told_apart_by_more_than_epsilon():
    epsilon = 1.3
    mechanism = LDPTrace(epsilon=epsilon, cells=2, max_length=2)
    every = [walks(2, list(path)) for n in (1, 2) for path in itertools.product(range(4), repeat=n)]
    with localcontext(prec=50):
        limit = Fraction(Decimal(epsilon).exp())
        nearly = Fraction((Decimal(epsilon) * (1 - Decimal("1e-8"))).exp())
    worst = Fraction(0)
    for longest in (1, 2):
        asked = mechanism.second(longest)
        for one, other in itertools.product(every, repeat=2):
            ratio = largest_ratio(mechanism.first, one, other) * largest_ratio(asked, one, other)
            assert ratio <= limit
            worst = max(worst, ratio)
    # Trajectories that differ in length, start, end and move use up the budget.
    assert worst >= nearly


def test_a_report_without_any_one_is_a_report_of_no_move_without_its_bit():
    oracle = LDPTrace(epsilon=1.3, cells=2, max_length=2).second(2).law.parts[2].randomizer
    no_move = bit_law(oracle, oracle.domain - 1)[:-1]
    assert no_move == [oracle.q] * (oracle.domain - 1)
    e = (1 - oracle.q) / oracle.q
    some = bit_law(oracle, 5)[:-1]
    assert most_by_bits(some, no_move) == (e + 1) / 2 < e
    assert most_by_bits(no_move, some) == 2 * e / (e + 1) < e


@pytest.mark.parametrize("fast", [False, True])
def test_counts_have_the_law_of_the_reports(fast):
    n, asked = 2000, LDPTrace(epsilon=8.0, cells=2, max_length=3).second(3)
    counts = asked.simulate(walks(2, *[[0, 1, 3]] * n, *[[2]] * n), rng=3, fast=fast)
    values, counted = asked.law.about(walks(2, [0, 1, 3], [2])), asked.law.by_part(counts.values)
    for part in asked.law.parts:
        have = n * np.bincount(values[part.name].ravel(), minlength=part.randomizer.domain)
        p, q = float(part.randomizer.p), float(part.randomizer.q)
        rest = 2 * n * part.times - have
        sd = np.sqrt(have * p * (1 - p) + rest * q * (1 - q))
        assert (np.abs(counted[part.name] - have * p - rest * q) < 6 * sd).all()


# --- Reports and counts ----------------------------------------------------------------------------------------------


def some_walks():
    rng = np.random.default_rng(8)
    return walks(3, *(rng.integers(0, 9, rng.integers(1, 9)) for _ in range(30)))


@pytest.mark.parametrize("second", [False, True])
def test_counts_add_up_over_any_partition_and_through_json(second):
    mechanism, everybody = LDPTrace(epsilon=1.0, cells=3, max_length=6), some_walks()
    asked = mechanism.second(4) if second else mechanism.first
    whole = asked.clients(everybody, rng=1)
    each, together = list(whole), asked.aggregate(whole)
    halves = [asked.aggregate(each[20:]), asked.aggregate(each[:20])]
    forms = [
        asked.aggregate(each),
        asked.aggregate([Report.from_json(one.to_json()) for one in each]),
        sum(halves),
    ]
    for other in forms:
        assert (other.n, other.seeded) == (together.n, True) == (30, True)
        assert np.array_equal(other.values, together.values)


def test_only_secret_bits_are_not_seeded():
    mechanism = LDPTrace(epsilon=1.0, cells=2, max_length=3)
    assert not mechanism.first.clients(walks(2, [0])).seeded
    assert not any(counts.seeded for counts in mechanism.simulate(walks(2, [0])))
    assert all(counts.seeded for counts in mechanism.simulate(walks(2, [0]), 1))
    assert all(counts.seeded for counts in mechanism.simulate(walks(2, [0]), fast=True))
    secret, seeded = (mechanism.first.simulate(walks(2, [0]), rng) for rng in (None, 1))
    assert (secret + seeded).seeded
    assert (seeded + secret).seeded
    assert not (secret + secret).seeded


def test_reports_that_no_client_sends():
    asked = LDPTrace(epsilon=1.0, cells=2, max_length=3).second(3)
    good = asked.client(walks(2, [0]), rng=1)
    # Four values have no fifth bit, and a client sends two reports of moves.
    for values in ((16, *good.values[1:]), good.values[:-1], (*good.values, 1)):
        with pytest.raises(InputError):
            asked.aggregate([replace(good, values=values)])
    for bad in [*WILD, "{", "[]", [[]]]:
        with pytest.raises(InputError):
            asked.aggregate([bad])


LAW = RoundLaw(cells=3, longest=4, epsilon=0.5, moving=True)
OTHERS = [
    TraceRound(replace(LAW, **change))
    for change in (
        {"epsilon": 16.0}, {"cells": 4}, {"longest": 3}, {"longest": 1}, {"moving": False},
        {"epsilon": float(np.nextafter(0.5, 1))},
    )
] + [
    LDPTrace(epsilon=40.0, cells=3, max_length=4).first,
    LDPTrace(epsilon=0.5, cells=2, max_length=4).first,
    LDPTrace(epsilon=0.5, cells=3, max_length=5).first,
    LDPTrace(epsilon=0.5, cells=3, max_length=4).second(4),
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_reports_and_counts_say_which_round_they_answer(other):
    """Drawn with a larger epsilon they would be certified with the aggregator's; of the first round many words fit."""
    one = other.client(walks(other.cells, [0, 1]), rng=1)
    counts = other.aggregate([one])
    for asked in (TraceRound(LAW), LDPTrace(epsilon=0.5, cells=3, max_length=4).first):
        if asked.fingerprint != other.fingerprint:
            with pytest.raises(InputError, match=r"^reports: some are not of"):
                asked.aggregate([Report.from_json(one.to_json())])
            with pytest.raises(InputError, match=r"^counts: they are of reports to"):
                asked.own(counts)


def test_equal_rounds_have_equal_fingerprints():
    """However their numbers are given; an aggregator in another process has the same ones."""
    given = ((3, 4, 1, False), (np.int64(3), np.int32(4), np.float64(1.0), np.bool_(False)))
    same = [RoundLaw(cells=cells, longest=n, epsilon=e, moving=moving) for cells, n, e, moving in given]
    # sha256 of {"cells": 3, "epsilon": 1.0, "kind": "trace-round", "longest": 4, "moving": false}
    assert {each.fingerprint for each in same} == {TraceRound(same[0]).fingerprint} == {"75309280f3332ef6"}


@pytest.mark.parametrize("second", [False, True])
def test_one_line_is_one_client(second):
    mechanism = LDPTrace(epsilon=1.0, cells=2, max_length=3)
    asked = mechanism.second(3) if second else mechanism.first
    two = asked.clients(walks(2, [0, 1], [2]), rng=1)
    one, other = two
    with pytest.raises(InputError, match=r"^reports: "):
        asked.aggregate([replace(one, values=(*one.values, *other.values))])
    with pytest.raises(InputError, match=r"^place: "):
        asked.client(walks(2, [0, 1], [2]))
    assert [asked.aggregate([each]).n for each in two] == [1, 1]


def test_counts_that_are_none():
    law = LDPTrace(epsilon=1.0, cells=2, max_length=3).first.law
    assert law.counts_of([1, 0, 1], 1).tolist() == [1, 0, 1]
    for counts, n in (([1, 0, 1], 2.5), ([1, 0, 1], 2**60), ({}, 1), ([-1, 0, 0], 1), ([2, 0, 0], 1)):
        with pytest.raises(InputError):
            law.counts_of(counts, n)


def test_counts_of_other_rounds_do_not_mix():
    one, other = (LDPTrace(epsilon=e, cells=2, max_length=3) for e in (1.0, 2.0))
    lengths, _ = one.simulate(walks(2, [0, 1]), rng=1)
    with pytest.raises(InputError, match="cannot be added"):
        lengths + other.simulate(walks(2, [0, 1]), rng=1)[0]
    with pytest.raises(InputError, match="some are not of"):
        other.first.aggregate(one.first.clients(walks(2, [0]), rng=1))
    with pytest.raises(InputError, match="another round"):
        other.longest(lengths)
    with pytest.raises(InputError, match="another round"):
        one.estimate(lengths, lengths)
    wrong = one.second(4 - one.longest(lengths)) if one.longest(lengths) != 2 else one.second(1)
    with pytest.raises(InputError, match="announced"):
        one.estimate(lengths, wrong.simulate(walks(2, [0, 1]), rng=1))
    with pytest.raises(InputError, match="exceed"):
        one.longest(Counts(one.first, np.array([2, 0, 0]), 1))
    with pytest.raises(InputError, match="grid of 3 by 3"):
        one.first.clients(walks(3, [0]))
    for bad in WILD:
        for call in (one.longest, one.first.clients, one.first.simulate, one.simulate):
            with pytest.raises(InputError):
                call(bad)
        with pytest.raises(InputError):
            one.estimate(lengths, bad)


@pytest.mark.parametrize("bad", WILD)
def test_mechanism_refuses(bad):
    with pytest.raises(InputError):
        LDPTrace(epsilon=bad if not isinstance(bad, float) or bad != 1.5 else "1.5", cells=2)
    with pytest.raises(InputError):
        LDPTrace(epsilon=1.0, cells=bad)
    with pytest.raises(InputError):
        LDPTrace(epsilon=1.0, cells=2, max_length=bad)
    with pytest.raises(InputError):
        LDPTrace(epsilon=1.0, cells=2).second(bad)


def test_budgets_that_integers_cannot_express():
    """A smaller max_length helps where shares are too small, and never where that of a single cell is too large."""
    for epsilon, advice in ((1e-12, ", or a smaller max_length"), (500.0, ""), (1e9, "")):
        with pytest.raises(InputError, match=rf"take 0\.0402 to 40{advice}\.$"):
            LDPTrace(epsilon=epsilon, cells=2)
    for max_length in (1, 200, 1000):
        for epsilon in ((max_length + 1) / 5000, 40.0):
            assert LDPTrace(epsilon=epsilon, cells=2, max_length=max_length).first.law.total > 0


def test_the_certificate_is_for_the_whole_trajectory():
    guarantee = LDPTrace(epsilon=0.7, cells=4).guarantee
    assert (guarantee.relation, guarantee.profile) == (Local("trajectory"), PureDP(0.7))


# --- Estimates -------------------------------------------------------------------------------------------------------


def expected_counts(asked, trajectories, n):
    """Counts without noise, of so many copies of all trajectories."""
    counts, about = [], asked.law.about(trajectories)
    for part in asked.law.parts:
        have = n * np.bincount(about[part.name].ravel(), minlength=part.randomizer.domain)
        p, q = float(part.randomizer.p), float(part.randomizer.q)
        counts.append(np.rint(have * p + (have.sum() - have) * q).astype(np.int64))
    return Counts(asked, np.concatenate(counts), n * len(trajectories))


def test_longest_is_where_nine_of_ten_trajectories_fit():
    mechanism = LDPTrace(epsilon=3.0, cells=2, max_length=6)
    of_length = [5, 2, 1, 1, 1, 0]
    given_walks = walks(2, *itertools.chain(*([([0, 1] * 6)[: k + 1]] * m for k, m in enumerate(of_length))))
    for drop, right in ((1, 4), (2, 3), (3, 2), (5, 1)):
        some = given_walks.part(0, 10 - drop)
        assert mechanism.longest(expected_counts(mechanism.first, some, 10**9)) == right
    # Where noise leaves nothing, all lengths count alike.
    nothing = Counts(mechanism.first, np.zeros(6, dtype=np.int64), 100)
    assert mechanism.longest(nothing) == 6


def test_estimates_without_noise_are_the_trajectories_own():
    mechanism = LDPTrace(epsilon=3.0, cells=3, max_length=5)
    given_walks = walks(3, [0, 1, 4], [0, 4, 8, 5], [4, 4, 4], [8, 7, 6, 3, 0])
    n = 10**10
    lengths = expected_counts(mechanism.first, given_walks, n)
    second = mechanism.second(mechanism.longest(lengths))
    assert second.longest == 5
    model = mechanism.estimate(lengths, expected_counts(second, given_walks, n))
    close = {"rtol": 0, "atol": 1e-6}
    assert np.allclose(model.lengths / n, [1, 0, 1, 1, 1], **close)
    assert np.allclose(model.starts / n, [2, 0, 0, 0, 1, 0, 0, 0, 1], **close)
    assert np.allclose(model.ends / n, [1, 0, 0, 0, 2, 1, 0, 0, 0], **close)
    moves = np.zeros((9, 8))
    for path in paths(given_walks.mobility()):
        for a, b in itertools.pairwise(path):
            moves[a, MOVES.tolist().index(np.subtract(divmod(b, 3), divmod(a, 3)).tolist())] += 1
    assert np.allclose(model.moves / n, moves, **close)
    # In the middle one moves on to the corner and two end, of which at length one 0.3 count.
    assert np.allclose(model.transitions(1)[4, [7, 8]], np.array([1, 0.6]) / 1.6, **close)
    assert np.allclose(model.transitions(9)[4, [7, 8]], np.array([1, 2]) / 3, **close)


def test_one_cell_is_legal():
    mechanism = LDPTrace(epsilon=1.0, cells=1, max_length=4)
    model = mechanism.estimate(*mechanism.simulate(walks(1, [0, 0], [0]), rng=1))
    assert model.expected_visits.tolist() == [[1.0]]
    assert set(model.synthesize(20, rng=1).values) == {0}


def test_a_rich_budget_finds_the_visits():
    rng = np.random.default_rng(4)
    points = rng.normal((0.3, 0.6), 0.12, (4000, 2)).clip(0, 1)
    given_walks = random_trajectories(points, SQUARE, number=4000, grid=20, shortest=5, longest=9, rng=1).on_grid(
        SQUARE, 4
    )
    mechanism = LDPTrace(epsilon=40.0, cells=4, max_length=10)
    model = mechanism.estimate(*mechanism.simulate(given_walks, 1, fast=True))
    truth = given_walks.mobility().histogram()
    even = np.abs(truth - 1 / 16).sum()
    assert np.abs(model.expected_visits - truth).sum() < 0.2 * even


# --- The model -------------------------------------------------------------------------------------------------------


def a_model(cells=2, lengths=(1, 2, 3, 4), seed=1, **changed):
    rng = np.random.default_rng(seed)
    size = cells**2
    weights = {
        "starts": rng.random(size),
        "ends": rng.random(size),
        "moves": rng.random((size, 8)) * (rng.random((size, 8)) < 0.6),
    }
    return TraceModel(**({"cells": cells, "n": 10, "lengths": lengths} | weights | changed))


def brute_visits(model):
    """Expected visits by following every walk, step by step and length by length."""
    d = model.cells
    visits = np.zeros(d * d)

    def follow(cell, length, target, chance):
        visits[cell] += chance
        if length == target:
            return
        weights = {}
        for k, (x, y) in enumerate(MOVES):
            i, j = cell // d + x, cell % d + y
            if 0 <= i < d and 0 <= j < d:
                weights[i * d + j] = model.moves[cell, k]
        total = sum(weights.values()) + model.ends[cell] * min(1, 0.3 + 0.2 * (length - 1))
        for other, weight in weights.items():
            if weight:
                follow(other, length + 1, target, chance * weight / total)

    for target, share in enumerate(np.asarray(model.lengths) / np.sum(model.lengths), 1):
        for cell, start in enumerate(model.starts / model.starts.sum()):
            follow(cell, 1, target, share * start)
    return visits.reshape(d, d)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_visits_by_following_every_walk(seed):
    model = a_model(3, seed=seed)
    assert np.allclose(model.visits, brute_visits(model), rtol=1e-12)
    assert math.isclose(model.expected_visits.sum(), 1)


def test_synthetic_walks_have_the_expected_visits_and_lengths():
    model, n = a_model(3, lengths=(0, 3, 0, 2, 1), seed=6), 40_000
    found = model.synthesize(n, rng=2)
    assert len(found) == n
    counts = np.bincount(found.values, minlength=9).reshape(3, 3)
    # A walk of five cells visits one at most three times: its variance is below three times the mean.
    assert (np.abs(counts - n * model.visits) < 6 * np.sqrt(3 * n * model.visits)).all()
    assert found.lengths.max() <= 5
    target, inside = neighbouring_cells(np.arange(9), 3)
    allowed = {(a, target[a, k]) for a in range(9) for k in range(8) if inside[a, k] and model.moves[a, k]}
    steps = np.delete(np.column_stack([found.values[:-1], found.values[1:]]), found.offsets[1:-1] - 1, axis=0)
    assert {tuple(step) for step in np.unique(steps, axis=0).tolist()} == allowed


def test_walks_stop_where_nothing_was_seen_and_start_anywhere_without_starts():
    model = a_model(starts=np.zeros(4), ends=np.zeros(4), moves=np.zeros((4, 8)))
    assert model.start.tolist() == [0.25] * 4
    assert model.visits.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert set(model.synthesize(50, rng=1).lengths) == {1}
    assert model.transitions(1)[:, -1].tolist() == [1.0] * 4


def test_the_weight_of_ending_grows_with_length():
    assert [round(TraceModel.ending(length), 12) for length in (1, 2, 3, 4, 5, 6)] == [0.3, 0.5, 0.7, 0.9, 1.0, 1.0]


def test_intensity_has_the_visits_of_its_cells():
    model = a_model(3)
    window = Window.rectangle(10, 20, 16, 23)
    intensity = model.intensity(window)
    assert math.isclose(intensity.total, 10 * model.visits.sum())
    centres = [(10 + 2 * i + 1, 20 + j + 0.5) for i in range(3) for j in range(3)]
    assert np.allclose(intensity(centres), 10 * model.visits.ravel() / 2)
    # Without its last column a window has the others' visits alone.
    part = Window.polygon(
        {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 1], [2, 1], [2, 3], [0, 3], [0, 0]]]}
    )
    kept = model.visits.copy()
    kept[2, 1:] = 0
    assert math.isclose(model.intensity(part).total, 10 * kept.sum())


def test_models_follow_their_seed():
    one, other = (a_model().synthesize(9, rng=1) for _ in range(2))
    assert np.array_equal(one.values, other.values)


@pytest.mark.parametrize("name", ["cells", "n", "starts", "ends", "lengths", "moves"])
@pytest.mark.parametrize(
    "bad", [*WILD, -np.ones(4), np.full(4, np.nan), np.full((4, 8), 1e308), 1 + 2j, -np.ones((4, 8))]
)
def test_models_refuse(name, bad):
    good = {"cells": 2, "n": 1, "starts": np.ones(4), "ends": np.ones(4), "lengths": [1], "moves": np.ones((4, 8))}
    with pytest.raises(InputError):
        TraceModel(**(good | {name: bad}))


@pytest.mark.parametrize("bad", WILD)
def test_models_methods_refuse(bad):
    model = a_model()
    # None stands for as many as there were.
    calls = [model.intensity, model.transitions, model.ending] + [model.synthesize] * (bad is not None)
    for call in calls:
        with pytest.raises(InputError):
            call(bad)


# --- PivotTrace ------------------------------------------------------------------------------------------------------


def test_pivot_trace_is_never_to_be_released():
    given_walks = random_trajectories(city(), SQUARE, number=8, grid=5, longest=7, rng=1)
    one, other = (pivot_trace(given_walks, epsilon=1.0, rng=3) for _ in range(2))
    assert "not to be released" in repr(one)
    assert one.seeded
    assert not pivot_trace(given_walks, epsilon=1.0).seeded
    assert one.trajectories.lengths.tolist() == given_walks.lengths.tolist()
    assert np.array_equal(one.trajectories.xy, other.trajectories.xy)
    # The leak that makes it so: whatever it reports, somebody was there.
    assert {tuple(p) for p in one.trajectories.xy} <= {tuple(p) for p in given_walks.xy}


def test_pivot_trace_of_one_place_and_of_single_points():
    assert pivot_trace(Trajectories.of([[[1, 2]] * 3]), epsilon=1.0, rng=1).trajectories.xy.tolist() == [[1, 2]] * 3
    assert pivot_trace(Trajectories.of([[[1, 2]], [[3, 4]]]), epsilon=1.0, rng=1).trajectories.lengths.tolist() == [
        1,
        1,
    ]


def test_pivot_trace_gets_nearer_with_epsilon():
    given_walks = random_trajectories(city(), SQUARE, number=40, grid=5, shortest=2, longest=5, rng=1)
    far = [
        np.hypot(*(pivot_trace(given_walks, epsilon=e, rng=2).trajectories.xy - given_walks.xy).T).mean()
        for e in (0.1, 400.0)
    ]
    assert far[1] < 0.5 * far[0]


def test_the_exponential_mechanism_has_its_law():
    places, epsilon = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]), 3.0
    far = np.hypot(*places.T)
    chance = np.exp(-epsilon * far / (2 * 5))
    rng = np.random.default_rng(1)
    found = np.bincount([_exponential(np.zeros(2), places, epsilon, rng) for _ in range(4000)], minlength=4)
    assert scipy.stats.chisquare(found, 4000 * chance / chance.sum()).pvalue > 1e-8


def test_the_square_wave_has_its_law_and_its_best_half_width():
    assert math.isclose(_half_width(1.0), 0.2560829, abs_tol=1e-7)
    assert math.isclose(_half_width(3.5), 0.0442103, abs_tol=1e-7)
    assert math.isclose(_half_width(1e-4), _half_width(0.9999e-4), rel_tol=1e-4)
    epsilon, value, rng = 1.0, 0.8, np.random.default_rng(2)
    half = _half_width(epsilon)
    drawn = np.array([_square_wave(value, half, epsilon, rng) for _ in range(4000)])
    edges = np.array([-half, 0.2, value - half, value, value + half, 1 + half])
    q = 1 / (2 * half * math.e + 1)
    law = np.diff(edges) * q * np.array([1, 1, math.e, math.e, 1])
    assert math.isclose(law.sum(), 1)
    assert drawn.min() >= edges[0]
    assert drawn.max() <= edges[-1]
    assert scipy.stats.chisquare(np.histogram(drawn, edges)[0], 4000 * law).pvalue > 1e-8


def test_a_calibrated_ratio_with_a_large_budget_is_the_ratio():
    rng = np.random.default_rng(3)
    found = [_calibrated(0.3, np.linspace(0, 1, 50), 60.0, rng) for _ in range(20)]
    assert np.allclose(found, 0.3, atol=1e-6)


def test_sectors_by_their_angles():
    rng = np.random.default_rng(4)
    ways = rng.normal(size=(500, 2))
    angle = np.arctan2(ways[:, 1], ways[:, 0]) % (2 * math.pi)
    for sectors in SECTORS:
        width = 2 * math.pi / sectors
        for k in range(sectors):
            found = _in_sector(ways, k * width, (k + 1) * width)
            assert np.array_equal(found, (angle // width).astype(int) == k)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_calibrated_ratio_by_hand(epsilon):
    places, seen = np.array([0.0, 0.05, 0.45, 0.5, 0.95]), set()
    half = _half_width(epsilon)
    for seed in range(30):
        noisy = _square_wave(0.4, half, epsilon, np.random.default_rng(seed))
        ratio = (noisy + half) / (1 + 2 * half)
        kept = [v for v in np.arange(1, 11) / 10 if noisy - half <= v <= noisy + half]
        # A density serves as a weight, and may exceed one.
        w = min(math.exp(epsilon) / (2 * half * math.exp(epsilon) + 1), 1)
        weights = [w if kept[0] <= each <= kept[-1] else 1 - w for each in places] if kept else []
        eta = np.average(places, weights=weights) if any(weights) else places.mean()
        beta = (eta - ratio) / eta if ratio <= eta else (ratio - eta) / (1 - eta)
        right = ratio + (eta - ratio) / (1 - math.exp(-beta / 2)) * math.exp(-epsilon)
        seen.add(ratio <= eta)
        assert math.isclose(_calibrated(0.4, places, epsilon, np.random.default_rng(seed)), right, rel_tol=1e-9)
    assert seen == {True, False}


@pytest.mark.parametrize("sectors", SECTORS)
def test_what_sectors_keep_by_sums_over_angles(sectors):
    fine, rng, epsilon = (np.arange(20_000) + 0.5) / 20_000 * 2 * math.pi, np.random.default_rng(5), 1.2
    for angle, near in zip(rng.uniform(0, 2 * math.pi, 8), np.repeat(math.pi / np.array(SECTORS), 2), strict=True):
        within = np.abs((fine - angle + math.pi) % (2 * math.pi) - math.pi) <= near
        shares = np.bincount((fine[within] / (2 * math.pi) * sectors).astype(int), minlength=sectors) * sectors / 20_000
        chance = np.where(np.arange(sectors) == int(angle / (2 * math.pi) * sectors), math.exp(epsilon), 1)
        right = shares @ chance / (sectors - 1 + math.exp(epsilon))
        assert math.isclose(_kept(np.array([angle]), near, sectors, epsilon), right, abs_tol=2e-3)


def test_the_number_of_sectors_is_the_one_that_keeps_most():
    path = np.array([[0.0, 0.0], [1.0, 0.3], [1.5, 1.0]])
    angle = np.arctan2(*np.diff(path, axis=0).T[::-1])
    for epsilon in (0.01, 1.0, 6.0):
        kept = [np.mean([_kept(angle, math.pi / near, gs, epsilon) for near in SECTORS]) for gs in SECTORS]
        assert _best_sectors(path, epsilon) == SECTORS[int(np.argmax(kept))]
    assert _best_sectors(path[:1], 1.0) in SECTORS


@pytest.mark.parametrize("bad", [*WILD, 1e4])
def test_pivot_trace_refuses(bad):
    with pytest.raises(InputError):
        pivot_trace(bad, epsilon=1.0)
    if bad is not WILD[7]:
        with pytest.raises(InputError):
            pivot_trace(Trajectories.of([[[0, 0]]]), epsilon=bad)


@pytest.mark.parametrize("bad", WILD)
def test_rounds_refuse(bad):
    good = {"cells": 2, "longest": 3, "epsilon": 1.0, "moving": True}
    for name in ("cells", "longest", "epsilon"):
        if not (name == "epsilon" and isinstance(bad, float) and bad == 1.5):
            with pytest.raises(InputError):
                RoundLaw(**(good | {name: bad}))
    with pytest.raises(InputError):
        walks(2, [0]).mobility(0 if bad is None else bad)
    with pytest.raises(InputError):
        walks(2, [0]).part(0, bad)
    with pytest.raises(InputError):
        Trajectories.of([[[0, 0]]]).on_grid(SQUARE, bad)
    with pytest.raises(InputError):
        Trajectories.of([[[0, 0]]]).on_grid(bad, 2)
