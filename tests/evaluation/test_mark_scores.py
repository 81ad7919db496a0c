"""Types and times of synthetic patterns against the original's."""

import csv
import itertools
import json

import numpy as np
import pytest
import scipy.optimize

from dpppsynth import InputError, PointPattern, Window
from dpppsynth.evaluation import evaluate
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.mark_scores import time_distance
from dpppsynth.evaluation.metrics import mean_integrated_squared_error
from dpppsynth.spatial.mark_space import Marks, Times, Types

SQUARE = Window.rectangle(0, 0, 100, 100)
OFFENCES = Types("offence", ["burglary", "theft"])
BOTH = Marks(OFFENCES, Times.day("hour", hats=4))
LINE = Times("year", 2010, 2020, hats=6, unit="years")
RNG = np.random.default_rng(2)
N = 60
XY = RNG.uniform(0, 100, (N, 2))
KINDS = np.array(OFFENCES.values)[np.arange(N) % 3 // 2]
HOURS = RNG.uniform(0, 24, N)


def pattern(xy=XY, kinds=KINDS, hours=HOURS):
    """Points with both marks."""
    return PointPattern.synthetic(xy, SQUARE, {"offence": kinds, "hour": hours})


def scored(other, marks=BOTH, original=None):
    """Values of the added rows by their names."""
    report = evaluate(pattern() if original is None else original, other, described=marks, side=25.0)
    return report.table["synthetic"].to_dict(), report


def moved_exactly(times, first, second):
    """Least mean distance between two samples of one size, over all pairings."""
    cost = times.distance(first[:, None], second[None, :])
    rows, columns = scipy.optimize.linear_sum_assignment(cost)
    return cost[rows, columns].mean()


@pytest.mark.parametrize("times", [Times.day("t"), LINE])
def test_time_distance_is_that_of_the_best_pairing(times):
    rng = np.random.default_rng(7)
    for size in (1, 2, 7, 30):
        for _ in range(10):
            first, second = rng.uniform(times.start, times.end, (2, size))
            assert time_distance(times, first, second) == pytest.approx(moved_exactly(times, first, second))


def test_times_go_around_the_clock():
    clock = Times.day("t")
    assert time_distance(clock, np.array([23.5]), np.array([0.5])) == pytest.approx(1.0)
    assert time_distance(clock, np.array([0.0]), np.array([24.0])) == pytest.approx(0.0)
    assert time_distance(LINE, np.array([2010.0]), np.array([2020.0])) == pytest.approx(10.0)


def test_the_original_scores_nothing():
    found, report = scored(pattern())
    for name in ("shares of types", "histogram of times", "times, Wasserstein", "misplaced share by type"):
        assert found[name] == 0.0
    assert found["K by type, mean MISE"] == 0.0
    assert (report.marks.types["original"] == report.marks.types["synthetic"]).all()


def test_each_row_sees_its_own_fault():
    swapped = np.where(KINDS == "theft", "burglary", "theft")
    found, _ = scored(pattern(kinds=swapped))
    # Forty burglaries and twenty thefts change places: a third of the mass.
    assert found["shares of types"] == pytest.approx(1 / 3)
    assert found["misplaced share by type"] > 0.3
    assert (found["misplaced share"], found["times, Wasserstein"]) == (0.0, 0.0)
    found, _ = scored(pattern(hours=(HOURS + 6) % 24))
    assert found["times, Wasserstein"] == pytest.approx(time_distance(BOTH.times, HOURS, (HOURS + 6) % 24))
    assert found["histogram of times"] > 0
    assert (found["shares of types"], found["misplaced share by type"]) == (0.0, 0.0)


def test_types_are_placed_together_with_their_places():
    """Types that change places keep all shares, and no square has its own."""
    west = np.where(XY[:, 0] < 50, "burglary", "theft")
    east = np.where(XY[:, 0] < 50, "theft", "burglary")
    original, other = pattern(kinds=west), pattern(kinds=east)
    found, _ = scored(other, original=original)
    assert found["misplaced share by type"] == pytest.approx(1.0)
    assert found["misplaced share"] == 0.0


def test_k_by_type_is_the_mean_over_types():
    other = pattern(xy=np.random.default_rng(4).uniform(0, 100, (N, 2)))
    _, report = scored(other)
    r = report.k.original.r
    errors = []
    for name in OFFENCES.values:
        ours, theirs = (k_function(PointPattern(xy[name == KINDS], SQUARE), r) for xy in (XY, other.xy))
        errors.append(mean_integrated_squared_error(ours, theirs))
    np.testing.assert_allclose(report.marks.types["K, MISE"], errors)
    assert report.table.loc["K by type, mean MISE", "synthetic"] == pytest.approx(np.mean(errors))


def test_yardsticks_are_chance_and_no_data():
    original = pattern(kinds=np.where(XY[:, 0] < 50, "burglary", "theft"), hours=np.where(XY[:, 1] < 50, 3.0, 5.0))
    _, report = scored(original, original=original)
    for name in ("misplaced share by type", "histogram of times", "times, Wasserstein", "K by type, mean MISE"):
        assert 0 < report.table.loc[name, "resampled"] < report.table.loc[name, "uniform"]


def test_times_alone_have_rows_of_their_own():
    original = PointPattern(XY, SQUARE, {"year": 2010 + HOURS / 2.4})
    report = evaluate(original, original, described=Marks(times=LINE))
    assert report.marks.types is None
    assert "misplaced share by time" in report.table.index
    assert report.table.loc["times, Wasserstein", "unit"] == "years"
    assert report.marks.times["original"].sum() == pytest.approx(1.0)
    assert report.marks.times.index.tolist() == LINE.nodes.tolist()


def test_shares_of_times_are_of_the_nearest_hat():
    original = pattern(hours=np.array([23.0] * 30 + [4.0] * 30))
    _, report = scored(original, original=original)
    assert report.marks.times["original"].tolist() == [0.5, 0.5, 0.0, 0.0]


def test_empty_patterns_and_few_points_are_no_error():
    empty = PointPattern.synthetic(np.empty((0, 2)), SQUARE)
    found, report = scored([empty, pattern()])
    assert found["shares of types"] == 0.0
    rare = Marks(Types("offence", ["burglary", "theft", "arson"]), BOTH.times)
    _, report = scored(pattern(), marks=rare)
    assert np.isnan(report.marks.types.loc["arson", "K, MISE"])
    alone, _ = scored(pattern(xy=XY[:1], kinds=KINDS[:1], hours=HOURS[:1]))
    assert alone["K by type, mean MISE"] > 0


def test_marks_that_are_missing_or_others_are_refused():
    with pytest.raises(InputError, match=r"^synthetic:"):
        evaluate(pattern(), pattern().unmarked(), described=BOTH)
    with pytest.raises(InputError, match="not in the public list"):
        evaluate(pattern(), pattern(), described=Marks(Types("offence", ["arson", "theft"]), BOTH.times))
    with pytest.raises(InputError, match=r"^described:"):
        evaluate(pattern(), pattern(), described="offence")


def test_other_rows_are_as_without_marks():
    with_marks, without = (evaluate(pattern(), pattern(), described=each).table for each in (BOTH, None))
    shared = with_marks.loc[without.index]
    np.testing.assert_array_equal(shared.drop(columns=["unit", "better"]), without.drop(columns=["unit", "better"]))


def test_files_have_shares_and_no_points(tmp_path):
    _, report = scored(pattern())
    report.save(tmp_path / "private")
    for name, marks in itertools.zip_longest(("types", "times"), (OFFENCES.values, BOTH.times.nodes)):
        path = tmp_path / "private" / f"CONFIDENTIAL_{name}.csv"
        assert path.stat().st_mode & 0o777 == 0o600
        with path.open(encoding="utf-8") as stream:
            assert len(list(csv.DictReader(stream))) == len(marks)
    stored = json.loads((tmp_path / "private" / "CONFIDENTIAL_evaluation.json").read_text(encoding="utf-8"))
    assert "shares of types" in [row["metric"] for row in stored["metrics"]]
