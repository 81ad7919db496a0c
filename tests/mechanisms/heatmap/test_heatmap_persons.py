"""Identity of persons: no one's label changes how others are told apart, whichever way the labels are given."""

import datetime
import enum
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import geopandas
import numpy as np
import pandas as pd
import pytest
from baselines.heatmap_arrays import Users

from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_pattern
from dpppsynth.mechanisms.heatmap.bound import LATTICE_BITS
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.marks import WIDE, column
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import labels, persons
from dpppsynth.synthesizers import HeatmapSynthesizer

WINDOW = Window.rectangle(0, 0, 4, 4, "EPSG:27700")
PLAN = HeatmapSynthesizer(1.0, shape=(4, 4), user="user").plan(WINDOW).statistic
UNIT = 2**LATTICE_BITS
LONG = "b" * (WIDE + 1)

# Persons whose labels a wrong conversion would merge, or might; some cannot be taken at all.
OTHERS = {
    "whole numbers": [7, 2**53, 2**53 + 1],
    "beyond signed numbers": [7, 2**63, 2**63 + 1],
    "beyond 64 bits": [-7, 2**64, 2**64 + 1],
    "texts": ["7", "u", "v", "U", "e\u0301", "é"],
    "zeros": ["7", "007", "07"],
    "digits": ["7", "9007199254740992", "9007199254740993"],
    "long digits": ["7", "9223372036854775808", "9223372036854775809", "18446744073709551617"],
    "both": [7, "7u", 8, "8u"],
    "one and true": [1, True],
    "one and one": [1, 1.0],
    "decimals": [0.5, 2.0**53],
}
# Labels, none of them among the others, that used to change the kind of a whole column.
ONE_MORE = [-1, 2**63 + 7, 2**64 + 7, 0.25, None, False, "b", "w\0", LONG + "\0", "008", "1.5", " 9", "1_0"]


class Places:
    """Points of which each lies in another cell, so that the sum of two columns of persons tells who was who."""

    def __init__(self, count, first=0):
        at = np.arange(first, first + count)
        self.i, self.j = at // 4, at % 4
        self.xy = np.column_stack([self.i, self.j]) + 0.5


# Doors, by which persons (k,) at so many places come in.


def columns(who, at, folder):
    return Users.from_columns(who, at.i, at.j, side=4)


def arrays(who, at, folder):
    return Users.from_points(at.xy / 4, column(who), side=4)


def series(who, at, folder):
    return Users.from_columns(pd.Series(who), at.i, at.j, side=4)


def marks(who, at, folder):
    return PLAN.users(PointPattern(at.xy, WINDOW, {"user": who}))


def marks_of_objects(who, at, folder):
    return PLAN.users(PointPattern(at.xy, WINDOW, {"user": np.fromiter(who, dtype=object, count=len(who))}))


def marks_of_pandas(who, at, folder):
    return PLAN.users(PointPattern(at.xy, WINDOW, {"user": pd.Index(who)}))


def csv_file(who, at, folder, **option):
    path = folder / "a.csv"
    rows = [f'{x},{y},"{"" if label is None else label}"' for (x, y), label in zip(at.xy, who, strict=True)]
    path.write_text("\n".join(["x,y,user", *rows]), encoding="utf-8", newline="")
    return PLAN.users(read_pattern(path, WINDOW, **(option or {"user": "user"})))


def csv_marks(who, at, folder):
    return csv_file(who, at, folder, marks=["user"])


def geojson(who, at, folder, **option):
    path = folder / "a.geojson"
    features = [
        {"type": "Feature", "properties": {"user": label}, "geometry": {"type": "Point", "coordinates": xy}}
        for xy, label in zip(at.xy.tolist(), who, strict=True)
    ]
    crs = {"type": "name", "properties": {"name": WINDOW.crs}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}), encoding="utf-8")
    return PLAN.users(read_pattern(path, WINDOW, **(option or {"user": "user"})))


def geojson_marks(who, at, folder):
    return geojson(who, at, folder, marks=["user"])


def frame(who, at):
    points = geopandas.points_from_xy(*at.xy.T)
    return geopandas.GeoDataFrame({"user": who}, geometry=points, crs=WINDOW.crs)


def geodataframe(who, at, folder):
    return PLAN.users(PointPattern.from_geodataframe(frame(who, at), WINDOW, user="user"))


def geodataframe_marks(who, at, folder):
    return PLAN.users(PointPattern.from_geodataframe(frame(who, at), WINDOW, marks=["user"]))


DOORS = [columns, arrays, series, marks, marks_of_objects, marks_of_pandas, csv_file, csv_marks, geojson, geojson_marks]
DOORS += [geodataframe, geodataframe_marks]


def lattice(door, who, folder):
    """The sum of persons at as many places, in units; None where the labels are refused."""
    try:
        return door(who, Places(len(who)), folder).lattice().ravel()
    except InputError:
        return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("door", DOORS)
def test_one_more_person_adds_what_is_theirs_and_changes_nobody(door, tmp_path):
    taken = {(name, None): lattice(door, others, tmp_path) for name, others in OTHERS.items()}
    for name, label in itertools.product(OTHERS, ONE_MORE):
        alone = taken[name, None]
        both = None if alone is None else lattice(door, [*OTHERS[name], label, label], tmp_path)
        if both is not None:
            theirs = np.zeros(16)
            theirs[len(OTHERS[name]) :][:2] = UNIT // 2
            np.testing.assert_array_equal(both - alone, theirs, f"{name} and {label!r}")
            taken[name, label] = both
    assert {("whole numbers", -1), ("texts", "b"), ("digits", "b"), ("zeros", LONG + "\0")} <= taken.keys()


# ------------------------------------------------------------------------------------------------------------ labels


class Colour(enum.IntEnum):
    RED = 7


class Word(str):
    pass


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([3, 3, 9], [0, 0, 1]),
        ([7, "7", "007", 7], [0, 1, 2, 0]),
        ([Colour.RED, np.uint8(7), 7, np.int64(-7)], [0, 0, 0, 1]),
        (["u", "u\0", Word("u"), np.str_("u"), "\0u"], [0, 0, 0, 0, 1]),
        (["a", "A", " a"], [0, 1, 0]),
        ([2**63, -1, 2**63 + 1, 2**63], [0, 1, 2, 0]),
        (np.array([2**63 + 1, 2**63], dtype=np.uint64), [1, 0]),
        (np.array(["a", "b", "a"], dtype=np.dtypes.StringDType()), [0, 1, 0]),
        (np.array([1, "1", 1], dtype=object), [0, 1, 0]),
        (pd.Series([5, 5, 4], dtype="Int64"), [1, 1, 0]),
        (pd.Index(["b", "a", "b"]), [0, 1, 0]),
        (pd.Categorical(["b", "a", "b"]), [0, 1, 0]),
        (np.ma.array([5, 5, 6], mask=False), [0, 0, 1]),
        (range(2), [0, 1]),
        ((word for word in "aba"), [0, 1, 0]),
        ([], []),
        (np.array([]), []),
        (pd.Series([]), []),
    ],
)
def test_labels_are_compared_one_by_one(given, told):
    assert persons(given).tolist() == told


@pytest.mark.parametrize(
    "label",
    [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", "  ", "\0", " \0", "n/a", "unknown"],
)  # fmt: skip
def test_missing_labels_are_refused(label):
    assert labels(["a", label]) == ["a", None]
    with pytest.raises(InputError, match="user: some labels are missing"):
        persons(["a", label])


@pytest.mark.parametrize(
    "label",
    [0.5, 7.0, np.float64(7), 1j, True, np.True_, b"a", (1, 2), [1], {}, object(), np.array(7), np.void(b"a"),
     Decimal(7), Fraction(7), datetime.date(2020, 1, 1),
     np.datetime64("2020"), np.timedelta64(7, "s"), pd.Timestamp(0)],
)  # fmt: skip
def test_labels_of_other_kinds_are_refused_and_not_shown(label):
    for labelled in ([label, 5, 3], np.fromiter([label, 5, 3], dtype=object, count=3)):
        with pytest.raises(InputError, match="write them so") as caught:
            persons(labelled)
        assert str(label) not in str(caught.value)


@pytest.mark.parametrize("kind", ["f4", "f8", "c16", "?", "S2", "M8[ns]", "m8[s]", "V2"])
def test_arrays_of_other_kinds_are_refused_whatever_they_hold(kind):
    with pytest.raises(InputError, match="user: labels"):
        persons(np.zeros(2, dtype=kind))


@pytest.mark.parametrize(
    "given", [{1, 2}, frozenset("ab"), {1: 2}, {1: 2}.keys(), "ab", b"ab", 5, None, np.array(5), np.ones((2, 1), int)]
)
def test_what_is_no_column_in_order_is_refused(given):
    with pytest.raises(InputError, match="user: needs a column"):
        persons(given)


def test_hidden_labels_are_missing():
    for hidden in (np.ma.array([1, 2], mask=[0, 1]), pd.array([1, None], dtype="Int64")):
        with pytest.raises(InputError, match="user: "):
            persons(hidden)


def test_labels_of_other_kinds_are_refused_by_the_user_column_of_a_file(tmp_path):
    at = Places(2)
    for who in ([0.5, 1], [True, 2], [[1], "a"]):
        with pytest.raises(InputError, match="user: labels must be"):
            geojson(who, at, tmp_path)
        with pytest.raises(InputError, match="user: labels must be"):
            inspect_points(tmp_path / "a.geojson", WINDOW, report_to=tmp_path, user="user")
    # As Python's own, dates to a nanosecond are whole numbers.
    for unit in ("ns", "s"):
        with pytest.raises(InputError, match="user: labels must be"):
            geodataframe(pd.to_datetime(["2020-01-01", "2020-01-02"]).as_unit(unit), at, tmp_path)
    # In a file a whole number is the text of its digits, and blanks around a text do not count.
    assert geojson([7, "7"], at, tmp_path).lattice().sum() == UNIT
    for door in (csv_file, geodataframe):
        assert door([" 7", "7"], at, tmp_path).lattice().sum() == UNIT
