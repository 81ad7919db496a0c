"""Reading, inspecting and writing of points with types and times."""

import csv
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_pattern, read_synthetic, require_head, write_pattern
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Times, Types
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 100, 100, "EPSG:27700")
OFFENCES = Types("offence", ["burglary", "theft"])
CLOCKS = Marks(OFFENCES, Times.day("when", zone="Europe/London"))
DAYS = Marks(times=Times.between("when", "2019-01-01", "2024-01-01", hats=6))
FORMATS = ("points.csv", "points.geojson", "points.gpkg", "points.parquet")


def frame(**columns):
    """Points in the middle of the square, with these columns."""
    size = len(next(iter(columns.values())))
    return geopandas.GeoDataFrame(columns, geometry=shapely.points(np.full((size, 2), 50.0)), crs="EPSG:27700")


def times_of(marks, *values, **columns):
    """Times that values are read as."""
    given = {marks.times.name: pd.Series(list(values), dtype=object), **columns}
    return PointPattern.from_geodataframe(frame(**given), SQUARE, described=marks).marks[marks.times.name].tolist()


def write_table(path, gdf):
    """Write a frame in the format of the path."""
    if path.suffix == ".csv":
        gdf.assign(x=gdf.geometry.x, y=gdf.geometry.y).drop(columns="geometry").to_csv(path, index=False)
    elif path.suffix == ".parquet":
        gdf.to_parquet(path)
    else:
        gdf.to_file(path)
    return path


def csv_of(tmp_path, *rows, header="x,y,offence,when"):
    """A CSV file of the rows."""
    path = tmp_path / "points.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_all_formats_give_the_same_types_and_hours(tmp_path, name):
    gdf = frame(offence=["theft", "burglary"], when=["2024-07-01T17:30:00+00:00", "2024-01-01T17:30:00"])
    marks = read_pattern(write_table(tmp_path / name, gdf), SQUARE, described=CLOCKS).marks
    assert marks["offence"].tolist() == ["theft", "burglary"]
    # London is an hour ahead of UTC in July; what has no offset is local time.
    assert marks["when"].tolist() == [18.5, 17.5]


@pytest.mark.parametrize("name", FORMATS[2:])
def test_columns_of_dates_are_read_as_text_is(tmp_path, name):
    when = pd.to_datetime(["2020-01-01T12:00:00", "2023-12-31T00:00:00"])
    marks = read_pattern(write_table(tmp_path / name, frame(when=when)), SQUARE, described=DAYS).marks
    assert marks["when"].tolist() == [365.5, 1825.0]
    aware = write_table(tmp_path / name, frame(offence=["theft"] * 2, when=when.tz_localize("UTC")))
    assert read_pattern(aware, SQUARE, described=CLOCKS).marks["when"].tolist() == [12.0, 0.0]


def test_hours_agree_with_the_standard_library():
    rng = np.random.default_rng(5)
    zone = ZoneInfo("America/New_York")
    week = Marks(times=Times.week("when", zone="America/New_York"))
    seconds = rng.integers(0, 10 * 365 * 86_400, 300)
    abroad = [
        datetime(2015, 1, 1, tzinfo=timezone(timedelta(hours=int(hours)))) + timedelta(seconds=int(each))
        for each, hours in zip(seconds, rng.integers(-11, 13, 300), strict=True)
    ]
    local = [each.astimezone(zone) for each in abroad]
    hours = [each.weekday() * 24 + each.hour + each.minute / 60 + each.second / 3600 for each in local]
    assert times_of(week, *(each.isoformat() for each in abroad)) == pytest.approx(hours)
    assert times_of(week, *abroad) == pytest.approx(hours)
    assert times_of(week, *(each.replace(tzinfo=None).isoformat(" ") for each in local)) == pytest.approx(hours)


def test_numbers_and_clock_texts_are_hours():
    day = Marks(times=Times.day("when"))
    assert times_of(day, 17.5, "17.5", "17:30", "7:30", np.float32(3.25), 24) == [17.5, 17.5, 17.5, 7.5, 3.25, 24.0]
    years = Marks(times=Times("when", 2010, 2020, hats=6, unit="years"))
    assert times_of(years, 2010, "2015") == [2010.0, 2015.0]


@pytest.mark.parametrize(
    ("marks", "value", "rule"),
    [
        (CLOCKS, "25", "time outside the range"),
        (CLOCKS, -0.5, "time outside the range"),
        (CLOCKS, "25:00", "time outside the range"),
        (CLOCKS, "", "missing time"),
        (CLOCKS, None, "missing time"),
        (CLOCKS, np.nan, "missing time"),
        (CLOCKS, "nan", "missing time"),
        (CLOCKS, pd.NaT, "missing time"),
        (CLOCKS, pd.NA, "missing time"),
        (CLOCKS, "soon", "not a time"),
        (CLOCKS, "17:61", "not a time"),
        (CLOCKS, True, "not a time"),
        (CLOCKS, "2024-02-30T10:00", "not a time"),
        (CLOCKS, "2024-02-28T25:00", "not a time"),
        (CLOCKS, "2024-02-28", "a date without an hour"),
        (Marks(times=Times.day("when")), "2024-02-28T10:00Z", "an offset, and no time zone is stated"),
        (DAYS, "2018-12-31", "time outside the range"),
        (DAYS, "2024-01-01T00:00:01", "time outside the range"),
        (DAYS, "2019-13-01", "not a time"),
        (DAYS, "17:30", "not a time"),
        (DAYS, np.inf, "time outside the range"),
        (Marks(times=Times("when", 0, 10, hats=4)), "2019-01-01", "not a time"),
    ],
)
def test_bad_times_break_a_rule_that_names_no_value(marks, value, rule):
    columns = {"offence": ["theft", "theft"]} if marks.types else {}
    good = "2020-01-01T10:00" if marks is not DAYS and marks.times.unit == "hours" else 5
    with pytest.raises(InputError) as error:
        times_of(marks, good, value, **columns)
    assert f"({rule})" in str(error.value)
    assert "widen the range of times" in str(error.value)
    assert str(value) == "" or str(value) not in str(error.value).replace(rule, "")


def test_types_are_told_by_text(tmp_path):
    years = Marks(Types("year", ["2021", "2022", "007"]))
    rows = csv_of(tmp_path, "1,1, 2021", "2,2,2022", "3,3,007", header="x,y,year")
    assert read_pattern(rows, SQUARE, described=years).marks["year"].tolist() == ["2021", "2022", "007"]
    # pandas keeps whole numbers beside a missing one as decimals.
    gdf = frame(year=[2021.0, 2022.0])
    assert PointPattern.from_geodataframe(gdf, SQUARE, described=years).marks["year"].tolist() == ["2021", "2022"]


def test_numbers_are_put_into_bins(tmp_path):
    ages = Types.bins("age", [0, 18, 40, 65, 120])
    rows = csv_of(tmp_path, *(f"1,1,{age}" for age in (0, 17.9, 18, 39, 40, 65, 120, "65 to 120")), header="x,y,age")
    found = read_pattern(rows, SQUARE, described=Marks(ages)).marks["age"]
    assert found.tolist() == [ages.values[k] for k in (0, 0, 1, 1, 2, 3, 3, 3)]
    drawn = ages.numbers(np.repeat(np.array(ages.values), 2000), rng=1).reshape(4, 2000)
    for values, low, high in zip(drawn, ages.edges, ages.edges[1:], strict=False):
        assert values.min() >= low
        assert values.max() < high
        # A mean of 2000 uniform numbers is off by 6 standard errors once in 10^9 times.
        assert abs(values.mean() - (low + high) / 2) < 6 * (high - low) / np.sqrt(12 * 2000)
    for bad in ("-1", "121", "nan"):
        with pytest.raises(InputError, match=r"unknown type|missing type"):
            read_pattern(csv_of(tmp_path, f"1,1,{bad}", header="x,y,age"), SQUARE, described=Marks(ages))


@pytest.mark.parametrize(
    ("edges", "labels"),
    [([0, 1], None), ([0, 2, 1], None), ([0, 1, np.inf], None), ([0, 1, 2], ["1", "2"]), ("x", None)],
)
def test_bins_that_are_none_are_refused(edges, labels):
    with pytest.raises(InputError, match=r"^(edges|labels):"):
        Types.bins("age", edges, labels)


def test_inspection_writes_every_offending_row(tmp_path):
    rows = csv_of(
        tmp_path,
        "1,1,theft,2024-01-01T10:00",
        "1,1,arson,10",
        "1,1,,11",
        "1,1,theft,",
        "1,1,theft,2024-01-01",
        "1,1,theft,99",
        "500,1,theft,10",
    )
    found = inspect_points(rows, SQUARE, report_to=tmp_path, described=CLOCKS)
    with found.report.open(encoding="utf-8") as stream:
        told = {int(row["row"]): row["rule"] for row in csv.DictReader(stream)}
    assert told == {
        2: "unknown type",
        3: "missing type",
        4: "missing time",
        5: "a date without an hour",
        6: "time outside the range",
        7: "outside window",
    }
    assert set(found.rules) == set(told.values())
    with pytest.raises(InputError, match="unknown type") as error:
        read_pattern(rows, SQUARE, described=CLOCKS)
    assert "arson" not in str(error.value)
    assert "99" not in str(error.value)


def test_rows_of_no_points_need_no_marks(tmp_path):
    rows = csv_of(tmp_path, "1,1,theft,10,2", "1,1,,,0", header="x,y,offence,when,k")
    found = read_pattern(rows, SQUARE, described=CLOCKS, count="k")
    assert found.marks["when"].tolist() == [10.0, 10.0]


def test_missing_columns_are_named_before_a_row_is_read(tmp_path):
    rows = csv_of(tmp_path, "1,1,theft", header="x,y,offence")
    for read in (require_head, read_pattern):
        with pytest.raises(InputError, match=r"^time: there is no column 'when'"):
            read(rows, SQUARE, described=CLOCKS)
    with pytest.raises(InputError, match=r"^described"):
        read_pattern(rows, SQUARE, described="offence")


@pytest.mark.parametrize(
    ("form", "values", "days"),
    [
        (
            "dmy",
            ("31.12.2019", "31/12/2019", "31-12-2019 6:00", "2019-12-31", "31/12/2019, 6 pm"),
            (0, 0, 0.25, 0, 0.75),
        ),
        ("mdy", ("12/31/2019", "12/31/2019 6:00 PM", "12/31/2019 12:00 am"), (0, 0.75, 0)),
        ("excel", ("43830", 43830.25, 43830), (0, 0.25, 0)),
        ("iso", ("2019-12-31 06:00:00 am", pd.Timestamp("2019-12-31 18:00")), (0.25, 0.75)),
    ],
)
def test_forms_of_dates(form, values, days):
    marks = Marks(times=Times.between("when", "2019-01-01", "2024-01-01", form=form))
    assert times_of(marks, *values) == pytest.approx(364 + np.array(days))


def test_months_are_their_middle_and_written_as_months(tmp_path):
    marks = Marks(times=Times.between("Month", "2024-01-01", "2025-01-01", form="month"))
    read = times_of(marks, "2024-01", "2024-02", "2024-12")
    assert read == [15.5, 31 + 14.5, 335 + 15.5]
    # The end of the range is in the last month.
    assert marks.times.settled(np.array([0.0, 31.0, 59.0, 366.0])).tolist() == [15.5, 45.5, 45.5, 350.5]
    pattern = PointPattern.synthetic(np.full((3, 2), 50.0), SQUARE, {"Month": np.array(read)})
    write_pattern(pattern, tmp_path / "p.csv", described=marks)
    written = read_synthetic(tmp_path / "p.csv", SQUARE, marks=["Month"]).marks["Month"].tolist()
    assert written == ["2024-01", "2024-02", "2024-12"]
    assert read_synthetic(tmp_path / "p.csv", SQUARE, described=marks).marks["Month"].tolist() == read
    with pytest.raises(InputError, match=r"^form: months need a range of whole months"):
        Times.between("Month", "2024-01-10", "2025-01-01", form="month")
    with pytest.raises(InputError, match=r"^form: goes with a clock or with dates"):
        Times("when", 0, 10, hats=4, form="dmy")


@pytest.mark.parametrize(
    ("form", "value", "said"),
    [
        ("iso", "31/12/2019", "date format dmy)"),
        ("iso", "12/31/2019", "date format mdy)"),
        ("iso", "01/02/2019", "date format dmy or mdy)"),
        ("dmy", "12/31/2019", "date format mdy)"),
        ("mdy", "31.12.2019", "date format dmy)"),
        ("iso", "2019-12", "date format month)"),
        ("iso", 43830, "date format excel)"),
        ("dmy", "31.02.2019", "(not a time)"),
        ("excel", "7", "(not a time)"),
    ],
)
def test_the_likely_form_is_named(form, value, said):
    marks = Marks(times=Times.between("when", "2019-01-01", "2024-01-01", form=form))
    with pytest.raises(InputError) as error:
        times_of(marks, value)
    assert said in str(error.value)


def test_decimal_commas_leave_dates_alone(tmp_path):
    rows = tmp_path / "points.csv"
    rows.write_text("x;y;when\n1,5;1;31.12.2019\n1;1;1,5\n", encoding="utf-8")
    marks = Marks(times=Times.between("when", "2019-01-01", "2024-01-01", form="dmy"))
    found = read_pattern(rows, SQUARE, described=marks, separator=";", decimal=",")
    assert found.marks["when"].tolist() == [364.0, 1.5]


@pytest.mark.parametrize(
    ("times", "given", "settled"),
    [
        (Times.between("when", "2019-01-01", "2024-01-01", hats=6), 1.7, 1.0),
        (Times.between("when", "2019-01-01", "2019-01-03", hats=8), 1.7, 1 + 16 / 24),
        (Times.between("when", "2019-01-01T06:00", "2019-02-01", hats=8), 0.7, 16 / 24),
        (Times.day("when"), 17.5432, 17.5),
        (Times("year", 2010, 2020, hats=6), 2011.234, 2011.2),
    ],
)
def test_no_digits_are_invented(times, given, settled):
    assert times.settled(np.array([given]))[0] == pytest.approx(settled, abs=1e-9)


@pytest.mark.parametrize("name", FORMATS)
def test_synthetic_dates_come_back(tmp_path, name):
    days = np.array([0.0, 365.0, 1826.0])
    pattern = PointPattern.synthetic(np.full((3, 2), 50.0), SQUARE, {"when": days})
    write_pattern(pattern, tmp_path / name, described=DAYS)
    assert read_pattern(tmp_path / name, SQUARE, described=DAYS).marks["when"].tolist() == days.tolist()
    raw = read_synthetic(tmp_path / name, SQUARE, marks=["when"]).marks["when"]
    assert raw.tolist() == ["2019-01-01", "2020-01-01", "2024-01-01"]
    write_pattern(pattern, tmp_path / name)
    assert read_synthetic(tmp_path / name, SQUARE, marks=["when"]).marks["when"].tolist() == days.tolist()


@pytest.mark.parametrize(
    "marks", [CLOCKS, DAYS, Marks(Types.bins("age", [0, 18, 40])), Marks(times=Times.day("h", form="mdy"))]
)
def test_descriptions_come_back_from_json(marks):
    assert Marks.from_dict(marks.to_dict()) == marks


def test_times_need_dates_and_zones_that_exist():
    with pytest.raises(InputError, match=r"^zone:"):
        Times.day("when", zone="Atlantis/Centre")
    with pytest.raises(InputError, match=r"^end:"):
        Times.between("when", "2019-01-01", "soon")
    with pytest.raises(InputError, match=r"^time: its start"):
        Times.between("when", "2019-01-01", "2018-01-01")
    with pytest.raises(InputError, match="not counted from a date"):
        Times.day("when").dates([1.0])
