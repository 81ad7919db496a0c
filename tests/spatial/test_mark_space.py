"""Public descriptions of types and times."""

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mark_space import Marks, Times, Types

KINDS = Types("offence", ["burglary", "theft", 3])
DAY, YEARS = Times.day("hour", hats=8), Times("year", 2010, 2020, hats=6, unit="years")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Types("offence", ["theft"]), "types: needs 2 to 1000 values"),
        (lambda: Types("offence", "theft"), "types: needs 2 to 1000 values"),
        (lambda: Types("offence", ["a", "a"]), "types: values must differ"),
        (lambda: Types("offence", ["a", "1", 1]), "types: values must differ"),
        (lambda: Types("offence", ["a", ""]), "types: every value must be a text"),
        (lambda: Types("x", ["a", "b"]), "types: needs the name of a column"),
        (lambda: Times("t", 5, 5, hats=4), "time: its start must come before"),
        (lambda: Times("t", 0, float("inf"), hats=4), "time end"),
        (lambda: Times("t", 0, 1, hats=2), "hats"),
        (lambda: Times("t", 1e15, 1e15 + 1, hats=4), "time: its range is too narrow"),
        (Marks, "marks: needs types, times or both"),
        (lambda: Marks(Types("a", ["b", "c"]), Times.day("a")), "marks: types and times need names of their own"),
        (lambda: Marks(times=KINDS), "times: needs a Times"),
    ],
)
def test_what_is_no_description_is_refused(make, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        make()


def test_types_are_numbered_as_listed_and_strangers_are_not_named():
    assert KINDS.indices(np.array([3, "burglary", "theft"], dtype=object)).tolist() == [2, 0, 1]
    with pytest.raises(InputError, match="a type that is not in the public list") as caught:
        KINDS.indices(["theft", "arson"])
    assert "arson" not in str(caught.value)


@pytest.mark.parametrize("bad", [[1.0, np.nan], [-0.1], [24.01], ["noon"], [None]])
def test_times_outside_are_refused_and_not_shown(bad):
    with pytest.raises(InputError, match=r"^hour: ") as caught:
        DAY.require(bad)
    assert "0.1" not in str(caught.value)
    assert "24.01" not in str(caught.value)


@pytest.mark.parametrize("times", [DAY, YEARS, Times.week("w"), Times("t", -3.0, 4.5, hats=3)], ids=str)
class TestHats:
    def test_are_a_partition_of_unity_that_is_one_at_its_instant(self, times):
        at = np.concatenate([times.nodes, np.linspace(times.start, times.end, 301)])
        hat, value = times.values(at)
        assert np.allclose(value.sum(axis=1), 1)
        assert (value >= 0).all()
        dense = np.zeros((len(at), times.hats))
        np.add.at(dense, (np.arange(len(at))[:, None], hat), value)
        assert np.allclose(dense[: times.hats], np.eye(times.hats))
        # Linear between: the average of all times is the integral.
        step = times.length / 300
        ends = np.r_[0.5, np.ones(299), 0.5] * step
        assert np.allclose(ends @ dense[times.hats :], times.measure, atol=step * 0.02)
        assert times.measure.sum() == pytest.approx(times.length)

    def test_change_by_their_slope_at_most_and_reach_it(self, times):
        rng = np.random.default_rng(1)
        first, move = rng.uniform(times.start, times.end, 4000), times.spacing / 5
        later = first + move
        later = np.where(later > times.end, times.start + (later - times.end), later) if times.periodic else later
        kept = later <= times.end
        found = np.abs(dense(times, first[kept]) - dense(times, later[kept])).sum(axis=1)
        assert (times.distance(first[kept], later[kept]) <= move * (1 + 1e-9)).all()
        assert found.max() <= times.slope * move * (1 + 1e-9)
        assert found.max() >= 0.99 * times.slope * move

    def test_rounded_values_are_whole_and_sum_to_a_unit(self, times):
        at = np.random.default_rng(2).uniform(times.start, times.end, 500)
        hat, value = times.lattice(at, 14)
        assert value.dtype == np.int64
        assert (value.sum(axis=1) == 2**14).all()
        assert (np.abs(value / 2**14 - times.values(at)[1]) <= 2.0**-15).all()
        assert (hat == times.values(at)[0]).all()


def dense(times, at):
    hat, value = times.values(at)
    found = np.zeros((len(at), times.hats))
    np.add.at(found, (np.arange(len(at))[:, None], hat), value)
    return found


def test_a_clock_closes():
    assert np.allclose(dense(DAY, np.array([0.0, 24.0])), np.eye(8)[[0, 0]])
    assert DAY.distance(np.array([23.5]), np.array([0.5])).tolist() == [1.0]
    assert YEARS.distance(np.array([2010.0]), np.array([2020.0])).tolist() == [10.0]


def test_marks_ask_for_exactly_their_columns():
    marks = Marks(KINDS, DAY)
    kinds, times = marks.require({"hour": np.array([1, 2]), "offence": np.array(["theft", "3"])})
    assert kinds.tolist() == [1, 2]
    assert times.tolist() == [1.0, 2.0]
    there = {"hour": np.zeros(2), "offence": np.array(["3", "3"])}
    for wrong in ({}, None, {"hour": there["hour"]}, there | {"z": np.zeros(2)}):
        with pytest.raises(InputError, match=r"^pattern: needs exactly the marks 'offence' and 'hour'"):
            marks.require(wrong)
    back = marks.columns(kinds, times)
    assert back["offence"].tolist() == ["theft", "3"]
    assert back["hour"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("marks", [Marks(KINDS), Marks(times=YEARS), Marks(KINDS, DAY)], ids=str)
def test_marks_are_written_and_read(marks):
    assert Marks.from_dict(marks.to_dict()) == marks
    for wrong in ({}, marks.to_dict() | {"more": 1}, {"types": None, "times": None}, {"types": 3, "times": None}):
        with pytest.raises(InputError, match=r"^marks: "):
            Marks.from_dict(wrong)
