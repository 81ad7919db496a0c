"""Remarks of an inspection: causes of broken rules, and persons and rows that are listed twice."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import shapely
from support.command_line import run, spoken

from dpppsynth.core.crs import crs_member, reproject
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_batches, read_pattern, read_synthetic, read_window, write_pattern
from dpppsynth.io.causes import OTHERS_LEFT_OUT, WITHOUT_PLACE
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Times, Types
from dpppsynth.spatial.patterns import PointPattern

GRID = Window.rectangle(500_000, 150_000, 550_000, 200_000, "EPSG:27700")
PLAIN = Window.rectangle(0, 0, 10, 10)


def remarks_on(tmp_path, text, window=PLAIN, **options):
    file = tmp_path / "points.csv"
    file.write_text(text)
    return " ".join(inspect_points(file, window, report_to=tmp_path, **options).remarks)


NO_CAUSE = f"Of the rows that break the rule 'outside window': {OTHERS_LEFT_OUT}"
GOOD = "530000,180000\n"
OTHER_WAYS = [
    ("180000,530000\n181000,531000\n", "With x and y exchanged all would lie there"),
    ("-0.1,51.5\n-0.12,51.51\n", "All look like degrees"),
    ("51.5,-0.1\n51.51,-0.12\n", "All look like degrees"),
    ("530,180\n531,181\n", "In metres instead of kilometres all"),
    ("530000000,180000000\n", "In kilometres instead of metres all"),
    ("-530000,180000\n", "With another sign of x all"),
    ("530000,-180000\n", "With another sign of y all"),
    ("30530000,180000\n", "Without the number of the zone"),
    ("0,0\n0,180000\n-1,-1\n9999,9999\n-999.9,-999.9\n", "All have 0 or a number such as -1 or 9999"),
    ("499999.999999999,180000\n550000.0000001,160000\n499999.9,160000\n", "All lie outside by less than a rounding"),
]
NUMBERS = [
    ("x,y\n", "Some repeat the header"),
    ('"530,1","180,2"\n', "decimal=','"),
    ('"530,000","180,000"\n"530 000.5","180 000"\n', "signs between thousands"),
    ("51°30'26\"\"N,0°7'W\n", "degrees, minutes and seconds"),
    ("n/a,NULL\n#N/A,-\n", "words or signs for missing ones"),
    ("530000m,180000 m\n", "units behind them"),
]


class TestCauses:
    """The cause is told of all rows that break a rule, or of some."""

    def test_rows_without_a_place_or_a_type_have_a_remedy(self, tmp_path):
        """Unless all are: then the column is the wrong one."""
        described = Marks(Types("kind", ["a", "b"]))
        read = {"described": described}
        some = remarks_on(tmp_path, "x,y,kind\n5,5,a\n,,b\n6,5,\n", **read)
        assert WITHOUT_PLACE in some
        assert "'unknown'" in some
        every = remarks_on(tmp_path, "x,y,kind\n,,\n,,\n", **read)
        assert every.count("Is it the right column") == 2
        assert WITHOUT_PLACE not in every
        assert "'unknown'" not in every

    @pytest.mark.parametrize(("rows", "reason"), OTHER_WAYS)
    def test_elsewhere(self, rows, reason, tmp_path):
        assert f"hardly in the rows. {reason}" in remarks_on(tmp_path, "x,y\n" + rows, GRID)
        of_some = remarks_on(tmp_path, "x,y\n" + rows + GOOD, GRID)
        assert f"Of the rows that break the rule 'outside window': {reason}" in of_some
        mixed = remarks_on(tmp_path, "x,y\n" + rows + "700000,700000\n" * 9, GRID)
        assert reason.replace("all", "some").replace("All", "Some") in mixed
        assert "exchanged" in remarks_on(tmp_path, "x,y\n" + rows + "180001,530001\n" + GOOD, GRID)
        assert not remarks_on(tmp_path, "x,y\n" + GOOD, GRID)

    def test_unknown_causes(self, tmp_path):
        assert "Is it the CRS, and the place" in remarks_on(tmp_path, "x,y\n10,20\n30,40\n200,300\n", GRID)
        assert remarks_on(tmp_path, "x,y\n200,300\n" + GOOD, GRID) == NO_CAUSE

    @pytest.mark.parametrize(
        ("rows", "reason"),
        [
            ("51.51,-0.13\n51.52,-0.14\n", "With x and y exchanged all"),
            ("0.3,51.51\n", "With another sign of x all"),
            ("530000,180000\n", "All are in the CRS of the domain already: name it as theirs (crs='EPSG:27700')"),
            ("600000,5700000\n", "All are no degrees"),
            ("0,0\n", "All have 0"),
        ],
    )
    def test_after_reprojection(self, rows, reason, tmp_path):
        ways = {"crs": "EPSG:4326", "to_crs": "EPSG:27700"}
        assert reason in remarks_on(tmp_path, "x,y\n" + rows, GRID, **ways)
        assert reason in remarks_on(tmp_path, "x,y\n" + rows + "-0.13,51.51\n", GRID, **ways)

    def test_exchanged_geometries(self, tmp_path):
        features = [
            {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [51.5, -0.1 - k / 100]}}
            for k in range(3)
        ]
        path = tmp_path / "points.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        found = inspect_points(path, GRID, report_to=tmp_path, to_crs="EPSG:27700")
        assert "With x and y exchanged all" in found.remarks[0]

    def test_no_cause_that_changes_nothing(self, tmp_path):
        """In the box of a window, but not in it: coordinates without a zone are not blamed for one."""
        corner = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (0, 1000)]))
        assert "zone" not in remarks_on(tmp_path, "x,y\n900,900\n", corner)
        assert "zone" in remarks_on(tmp_path, "x,y\n3000100,100\n", corner)

    def test_metres_in_geojson_that_names_no_crs(self, tmp_path):
        """No argument contradicts a file: its CRS is assigned to it, and then it is read."""
        feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [530100, 180100]}}
        document, path = {"type": "FeatureCollection", "features": [feature]}, tmp_path / "points.geojson"
        path.write_text(json.dumps(document))
        said = inspect_points(path, GRID, report_to=tmp_path, to_crs="EPSG:27700").remarks[0]
        assert "to the file (ogr2ogr -a_srs EPSG:27700" in said
        path.write_text(json.dumps(document | {"crs": crs_member("EPSG:27700")}))
        assert inspect_points(path, GRID, report_to=tmp_path, to_crs="EPSG:27700").ok

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"geometryType": "esriGeometryPoint", "features": [{"attributes": {}, "geometry": {"x": 1}}]}', "Esri"),
            ('{"type": "Feature"}\n{"type": "Feature"}\n', "one feature a line"),
            ('\x1e{"type": "Feature"}\n\x1e{"type": "Feature"}\n', "one feature a line"),
        ],
        ids=["esri", "lines", "records"],
    )
    def test_other_kinds_of_json_are_named(self, tmp_path, text, said):
        path = tmp_path / "points.json"
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            inspect_points(path, GRID, report_to=tmp_path)

    def test_at_a_slanting_border_after_a_way_through_degrees(self, tmp_path):
        slant = Window.polygon(
            shapely.Polygon([(530000, 180000), (531031.7, 180333.3), (529789.7, 180900.7)]), "EPSG:27700"
        )
        share = np.linspace(0, 1, 40)[:, None]
        xy = np.array([[530000, 180000]]) * (1 - share) + np.array([[531031.7, 180333.3]]) * share
        away = reproject(xy, "EPSG:27700", "EPSG:4326")
        for options, places in (({}, xy), ({"crs": "EPSG:4326", "to_crs": "EPSG:27700"}, away.round(9))):
            rows = "".join(f"{x!r},{y!r}\n" for x, y in places.tolist())
            assert "All lie outside by less than a rounding" in remarks_on(tmp_path, "x,y\n" + rows, slant, **options)

    @pytest.mark.parametrize(("rows", "reason"), NUMBERS)
    def test_cells_that_are_no_numbers(self, rows, reason, tmp_path):
        assert reason in remarks_on(tmp_path, "x,y\n" + rows)
        assert reason in remarks_on(tmp_path, "x,y\n1,1\n" + rows)

    def test_decimal_commas(self, tmp_path):
        text = "x;y\n1,5;2,5\n3,5;4,5\n"
        assert "decimal=','" in remarks_on(tmp_path, text, separator=";")
        assert not remarks_on(tmp_path, text, separator=";", decimal=",")
        assert "Is it the right column" in remarks_on(tmp_path, "x,y\na,b\nc,d\n")

    def test_nothing_of_a_row_is_said(self, tmp_path):
        said = remarks_on(tmp_path, "x,y\n187654,530321\n181234,531987\n", GRID)
        assert not any(number in said for number in ("187654", "530321", "2"))


DATES = Marks(times=Times.between("when", "2024-01-01", "2025-01-01"))
FORMS = [
    ("31/12/2024", "day, month and year in another order"),
    ("31.12.24 10:00", "dates whose years have two digits"),
    ("12/31/2024 01:00:00 PM", "day, month and year in another order"),
    ("2024/12/31", "other signs between their parts"),
    ("2024-12", "months without a day"),
    ("2024-1-5", "nearly the right form"),
    ("20241231", "without signs between their parts"),
    ("1 May 2024", "names of months"),
    ("Mai 1, 2024", "names of months"),
    ("1735600000", "since 1970"),
    ("1735600000000", "since 1970"),
    ("45292", "such as Excel has for dates"),
    ("45292.5", "such as Excel has for dates"),
    ("soon", "of the form of ISO 8601"),
]


class TestTimes:
    @pytest.mark.parametrize("good", ["", "1,1,2024-05-01\n"], ids=["all", "some"])
    @pytest.mark.parametrize(("time", "reason"), FORMS)
    def test_forms(self, time, reason, good, tmp_path):
        text = f'x,y,when\n1,1,"{time}"\n' + good
        assert reason in remarks_on(tmp_path, text, described=DATES)

    @pytest.mark.parametrize("time", ["31/12/2024 10:00", "45292.5"])
    def test_of_a_clock(self, time, tmp_path):
        hours = Marks(times=Times.day("when"))
        assert "Some are" in remarks_on(tmp_path, f"x,y,when\n1,1,{time}\n", described=hours)

    @pytest.mark.parametrize("start", ["1900-01-01", "1904-01-01", "1970-01-01"])
    def test_serial_dates_are_never_shifted(self, start, tmp_path):
        """A number that would be one date as days since the start, and another as a spreadsheet's, is refused."""
        path, since = tmp_path / "points.csv", Marks(times=Times.between("when", start, "2200-01-01"))
        path.write_text("x,y,when\n1,1,45292\n2,2,2024-01-01\n")
        with pytest.raises(InputError, match="serial date of a spreadsheet"):
            read_pattern(path, PLAIN, described=since)
        said = remarks_on(tmp_path, path.read_text(), described=since)
        assert "such as Excel has for dates" in said
        # Few days are no serial date.
        path.write_text("x,y,when\n1,1,300\n")
        assert read_pattern(path, PLAIN, described=since).marks["when"].tolist() == [300.0]

    def test_workbooks_that_count_from_1904(self, tmp_path):
        """The remedy for other workbooks would put their dates four years too early."""
        since = Marks(times=Times.between("when", "2024-01-01", "2024-12-31"))
        for text in ("43830", "43900.0"):
            said = remarks_on(tmp_path, f"x,y,when\n1,1,{text}\n", described=since)
            assert "from 1904" in said
            assert "excel" not in said
        said = remarks_on(tmp_path, "x,y,when\n1,1,45292\n", described=since)
        assert "from 1904" in said
        assert "form='excel'" in said

    def test_numbers_that_can_be_one_date_alone(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_text("x,y,when\n1,1,45292\n")
        same = Marks(times=Times.between("when", "1899-12-30", "2100-01-01"))
        assert read_pattern(path, PLAIN, described=same).marks["when"].tolist() == [45292.0]

    def test_what_was_written_here_is_read(self, tmp_path):
        since = Marks(times=Times.between("when", "1900-01-01", "2100-01-01"))
        pattern = PointPattern.synthetic([[1, 1]], PLAIN, {"when": [45292.0]})
        write_pattern(pattern, tmp_path / "synthetic.geojson")
        found = read_synthetic(tmp_path / "synthetic.geojson", PLAIN, described=since)
        assert found.marks["when"].tolist() == [45292.0]


class TestAlike:
    LISTED = ("Burglary", "Assault, other", "Größe")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("burglary", "but for case, blanks"),
            ("BURG LARY", "but for case, blanks"),
            ("Grösse", "but for case, blanks"),
            ("Burglery", "but for a letter or two"),
            ("GrÃ¶ÃŸe", "in another encoding"),
        ],
    )
    def test_levels_and_types(self, text, reason, tmp_path):
        rows = f"x,y,kind\n1,1,{text}\n2,2,Burglary\n"
        assert reason in remarks_on(tmp_path, rows, by="kind", levels=self.LISTED)
        assert reason in remarks_on(tmp_path, rows, described=Marks(Types("kind", self.LISTED)))

    def test_commas(self, tmp_path):
        rows = 'x,y,kind\n1,1,"Assault, other"\n2,2,Burglary\n'
        listed = ["Burglary", "Assault", "other"]
        assert "put quotation marks around them" in remarks_on(tmp_path, rows, by="kind", levels=listed)

    def test_persons(self, tmp_path):
        said = remarks_on(tmp_path, "x,y,who\n1,1,Ann Lee\n2,2,ann  lee\n", user="who")
        assert said.count("alike") == 1
        assert "alike" not in remarks_on(tmp_path, "x,y,who\n1,1,Ann\n2,2,Ann\n", user="who")


class TestTwice:
    def test_persons(self, tmp_path):
        text = "x,y,who\n1,1,ann\n2,2,bo\n3,3,ann\n"
        assert "Some persons have several rows" in remarks_on(tmp_path, text, user="who")
        assert not remarks_on(tmp_path, text)
        assert not remarks_on(tmp_path, text.replace("3,3,ann", "3,3,cy"), user="who")

    def test_rows(self, tmp_path):
        text = "x,y,kind\n1,1,a\n2,2,b\n1,1,a\n"
        said = remarks_on(tmp_path, text)
        assert "alike in every column" in said
        assert "max_points_per_person" in said
        # The same place, and another kind.
        assert not remarks_on(tmp_path, text.replace("1,1,a\n2", "1,1,c\n2"))

    def test_rows_of_layers_have_no_such_table(self, tmp_path):
        import geopandas

        places = geopandas.points_from_xy([1, 1], [2, 2])
        geopandas.GeoDataFrame({"a": [1, 1]}, geometry=places).to_parquet(tmp_path / "p.parquet")
        assert inspect_points(tmp_path / "p.parquet", PLAIN, report_to=tmp_path).ok


class TestPersons:
    """Columns that look like labels of persons, of which nothing is said."""

    def test_labels_that_stand_several_times(self, tmp_path):
        text = "x,y,NHS no\n1,1,7\n2,2,8\n3,3,7\n4,4,8\n5,5,9\n"
        said = remarks_on(tmp_path, text)
        assert "2 labels of the column 'NHS no' stand twice or more" in said
        assert "user='NHS no'" in said
        for secret in ({"secret": True}, {"skip_outside": True}):
            assert "Some labels of the column 'NHS no'" in remarks_on(tmp_path, text, **secret)
        assert "rows_are_persons=True" in said
        assert not remarks_on(tmp_path, text, rows_are_persons=True)
        assert not remarks_on(tmp_path, text, count="NHS no")
        assert not remarks_on(tmp_path, text.replace("7", "1", 1).replace("8", "2", 1))

    def test_all_columns_of_labels_are_named_those_of_persons_first(self, tmp_path):
        file = tmp_path / "linelist.csv"
        file.write_text("x,y,case_id,patient_id\n1,1,C1,P7\n")
        said = spoken(run("inspect", file, "--window", "0,0,10,10", "--out", tmp_path / "private", code=2))
        assert "columns that look like labels of persons, 'patient_id' and 'case_id'" in said
        assert "--user patient_id --max-points-per-person 1" in said

    @pytest.mark.parametrize("labels", [("7", "007"), ("7", "7.0"), ("ann", "Ann"), ("AB 12", "ab12")])
    def test_labels_nearly_alike(self, labels, tmp_path):
        text = "x,y,who\n1,1,{}\n2,2,{}\n".format(*labels)
        assert "alike but for case, blanks or the form of a number" in remarks_on(tmp_path, text, user="who")
        assert not remarks_on(tmp_path, text.replace(labels[1], "z"), user="who")

    def test_asked_before_a_row_is_read(self, tmp_path):
        file = tmp_path / "points.csv"
        file.write_text("x,y,patient\nno,number,7\n")
        place = ["--window", "0,0,10,10", "--method", "laplace", "--epsilon", "1", "--alpha", "2", "--n", "100"]
        command = ["synthesize", file, *place, "--yes", "--out", tmp_path / "public"]
        said = spoken(run(*command, code=2))
        assert "looks like labels of persons, 'patient'" in said
        assert "--user patient --max-points-per-person 1" in said
        assert "--rows-are-persons" in said
        # What is refused there does not pass here.
        told = run("inspect", file, *command[2:-1], tmp_path / "public", "--private", tmp_path / "private", code=2)
        assert "The file is refused. --user: points.csv has a column" in spoken(told)
        file.write_text("x,y,patient\n1,1,7\n")
        for named in (place, place[:2]):
            told = run("inspect", file, *named, "--private", tmp_path / "private", "--out", tmp_path, "--json", code=2)
            assert json.loads(told.stdout)["ok"] is False
        file.write_text("x,y,patient\nno,number,7\n")
        for answer in (
            ["--rows-are-persons"],
            ["--max-points-per-person", "2"],
            ["--user", "patient", "--max-points-per-person", "1"],
        ):
            assert "some rows break the rules" in spoken(run(*command, *answer, code=2))


class TestStandIns:
    """Places inside the domain that stand for unknown ones; elsewhere they break a rule."""

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ("0,0\n0,0\n", "Several rows lie at (0, 0)"),
            ("-1,-1\n-1,-1\n", "Several rows lie at (0, 0)"),
            ("0,0\n0,3\n", ""),
            ("1,1\n1,1\n", ""),
            ("4,6\n" * 10, "a tenth of the rows lie at one place"),
            ("4,6\n" * 9, ""),
        ],
    )
    def test_rows_at_one_place(self, rows, said, tmp_path):
        around = Window.rectangle(-20, -20, 20, 20)
        path, others = tmp_path / "points.csv", "".join(f"{k / 8},{k % 7}.5\n" for k in range(60))
        path.write_text(f"x,y\n{others}{rows}")
        told = " ".join(inspect_points(path, around, report_to=tmp_path).remarks)
        assert said in told
        assert bool(said) == ("if " in told)

    def test_those_outside_are_told_of_once(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_text("x,y\n5,5\n0,0\n0,0\n")
        told = inspect_points(path, Window.rectangle(1, 1, 9, 9), report_to=tmp_path).remarks
        assert sum("(0, 0)" in each or "0 or a number" in each for each in told) == 1
        others = Window.rectangle(1, 1, 9, 9)
        left_out = inspect_points(path, others, report_to=tmp_path, skip_outside=True).remarks
        assert not any("(0, 0)" in each for each in left_out)


class TestLevels:
    def test_blank_ones_are_missing_and_others_unknown(self, tmp_path):
        rows = {"x": [1, 2, 3], "y": [1, 2, 3], "kind": ["a", "", "z"]}
        pd.DataFrame(rows).to_csv(tmp_path / "points.csv", index=False)
        found = inspect_points(tmp_path / "points.csv", PLAIN, report_to=tmp_path, by="kind", levels=("a", "b"))
        assert found.rules == ("missing level", "unknown level", "a level without points")
        report = pd.read_csv(tmp_path / "CONFIDENTIAL_offending_rows.csv")
        assert report["rule"].tolist() == ["missing level", "unknown level"]


def test_command_line(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("x,y,who\n180000,530000,ann\n181000,531000,ann\n")
    place = ["--window", "500000,150000,550000,200000", "--crs", "EPSG:27700", "--out", tmp_path / "private"]
    said = spoken(run("inspect", file, *place, "--user", "who", code=2))
    assert "With x and y exchanged all would lie there: exchange the columns (--x, --y)" in said
    assert "--max-points-per-person" in said
    assert len(json.loads(run("inspect", file, *place, "--json", code=2).stdout)["remarks"]) == 1
    absent = ["--window", "0,0,1,1", "--out", tmp_path / "none"]
    assert "there is no file" in spoken(run("inspect", tmp_path / "no.csv", *absent, code=2))
    assert not (tmp_path / "none").exists()


def test_a_line_below_the_table_is_told_from_rows_of_other_lengths(tmp_path):
    said = "They are the last rows: take a sum or a remark"
    assert said in remarks_on(tmp_path, "x,y\n1,1\n2,2\nTotal: 2\n")
    others = remarks_on(tmp_path, "x,y\n1,1\n2\n2,2\nTotal: 2\n")
    assert f"'wrong number of fields': {said}" not in others
    assert f"'not a number': {said}" in others
    joined = remarks_on(tmp_path, "x,y\n1,1\nx,y\n2,2\nTotal,2\n")
    assert "Some repeat the header" in joined
    assert said in joined
    assert said not in remarks_on(tmp_path, "x,y\n1,1\nx,y\n2,2\n")


@pytest.mark.parametrize(
    ("shape", "remedy"),
    [
        (shapely.box(1, 1, 2, 2), "of kind Polygon: .*centroid"),
        (shapely.GeometryCollection([shapely.Point(1, 1)]), "of kind GeometryCollection: .*one point a row"),
    ],
)
def test_shapes_that_are_no_points_are_named_by_kind(shape, remedy, tmp_path):
    features = [
        {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(each)}
        for each in (shapely.Point(3, 3), shape)
    ]
    document = {"type": "FeatureCollection", "crs": None, "features": features}
    (tmp_path / "p.geojson").write_text(json.dumps(document))
    found = inspect_points(tmp_path / "p.geojson", PLAIN, report_to=tmp_path)
    assert found.rules == ("not a point",)
    assert re.search(remedy, " ".join(found.remarks))


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"PK\x03\x04\x14\x00", "a spreadsheet"),
        (b"\x1f\x8b\x08\x00\xff", "let its name end in .csv.gz"),
        (b"\xd0\xcf\x11\xe0", "an old spreadsheet"),
    ],
)
def test_another_file_under_the_name_of_a_csv_is_told_by_its_first_bytes(start, said, tmp_path):
    (tmp_path / "p.csv").write_bytes(start + bytes(range(256)))
    with pytest.raises(InputError, match=said):
        read_pattern(tmp_path / "p.csv", PLAIN)


def test_a_border_drawn_as_lines_is_no_window(tmp_path):
    ring = shapely.LinearRing([(0, 0), (9, 0), (9, 9)])
    document = {
        "type": "FeatureCollection",
        "crs": None,
        "features": [
            {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(shapely.LineString(ring.coords))}
        ],
    }
    (tmp_path / "w.geojson").write_text(json.dumps(document))
    with pytest.raises(InputError, match="Make polygons of these lines"):
        read_window(tmp_path / "w.geojson")


def test_those_outside_may_be_left_out_where_nothing_else_explains_them(tmp_path):
    """Not where a window, an exchange of axes or a CRS is mistaken, nor where it is done already."""
    rows, words = "x,y\n5,5\n7,3\n50,51\n", "skip_outside=True, under AddRemove()"
    assert words in remarks_on(tmp_path, rows, PLAIN)
    assert words in remarks_on(tmp_path, rows, LinearNetwork([[0, 0], [10, 0]], [[0, 1]]), snap=6)
    assert words not in remarks_on(tmp_path, "x,y\n50,51\n", PLAIN)
    assert words not in remarks_on(tmp_path, rows, PLAIN, skip_outside=True)
    assert words not in remarks_on(tmp_path, "x,y\n5,5\n0,70\n", PLAIN)


def test_points_too_far_away_to_be_placed_are_outside(tmp_path):
    """Beyond 1e12, and infinite: left out where all that is outside is."""
    (tmp_path / "p.csv").write_text("x,y\n1,1\n1e15,2\ninf,2\n11,2\n,2\n")
    found = inspect_points(tmp_path / "p.csv", PLAIN, report_to=tmp_path, skip_outside=True)
    # A missing place is nowhere, and no place outside.
    assert (found.rules, found.offending) == (("missing coordinate",), 1)
    (tmp_path / "p.csv").write_text("x,y\n1,1\n1e15,2\ninf,2\n11,2\n")
    assert read_pattern(tmp_path / "p.csv", PLAIN, skip_outside=True).xy.tolist() == [[1.0, 1.0]]


class TestRemediesThatHelp:
    """Remedies make the file pass, and nothing is blamed that is not the cause."""

    def test_points_beside_a_window_at_the_origin(self, tmp_path):
        """Near 0 other units and signs lie in the window too: points just outside are not in kilometres or mirrored."""
        for rows in ("10.5,5\n", "-0.5,5\n", "5,-0.5\n"):
            assert remarks_on(tmp_path, "x,y\n5,5\n" + rows) == NO_CAUSE
        assert "In kilometres" in remarks_on(tmp_path, "x,y\n4000,5000\n")
        assert "sign of x" in remarks_on(tmp_path, "x,y\n-530000,180000\n", GRID)

    def test_some_rows_are_mended_alone(self, tmp_path):
        rows = "x,y\n180000,530000\n"
        assert "these rows alone" in remarks_on(tmp_path, rows + GOOD, GRID)
        assert "these rows alone" not in remarks_on(tmp_path, rows, GRID)
        # A tolerance is an option that leaves the others as they are.
        assert "these rows alone" not in remarks_on(tmp_path, "x,y\n549999,200000.0000001\n" + GOOD, GRID)

    def test_degrees_in_a_file_that_names_another_system(self, tmp_path):
        """No argument contradicts a file, so that none is named; what is named makes it pass."""
        feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [-0.1, 51.5]}}
        document, path = {"type": "FeatureCollection", "features": [feature]}, tmp_path / "points.geojson"
        path.write_text(json.dumps(document | {"crs": crs_member("EPSG:27700")}))
        (said,) = inspect_points(path, GRID, report_to=tmp_path).remarks
        assert "ogr2ogr -a_srs EPSG:4326" in said
        assert "crs='EPSG:4326'" not in said
        path.write_text(json.dumps(document | {"crs": crs_member("EPSG:4326")}))
        assert inspect_points(path, GRID, report_to=tmp_path, to_crs="EPSG:27700").ok

    @pytest.mark.parametrize(
        ("time", "form"),
        [("31/12/2024", "dmy"), ("12/31/2024", "mdy"), ("05/06/2024", "mdy"), ("2024-12", "month"), ("45292", "excel")],
    )
    def test_the_form_of_dates_that_is_named_is_taken(self, time, form, tmp_path):
        text = f"x,y,when\n1,1,{time}\n"
        assert f"form={form!r}" in remarks_on(tmp_path, text, described=DATES)
        said_so = Marks(times=Times.between("when", "2024-01-01", "2025-01-01", form=form))
        assert inspect_points(tmp_path / "points.csv", PLAIN, report_to=tmp_path, described=said_so).ok

    def test_a_time_zone_is_asked_for(self, tmp_path):
        text = "x,y,when\n1,1,2024-05-01T10:00Z\n"
        assert "zone='Europe/London'" in remarks_on(tmp_path, text, described=DATES)
        there = Marks(times=Times.between("when", "2024-01-01", "2025-01-01", zone="Europe/London"))
        assert not remarks_on(tmp_path, text, described=there)

    def test_a_sum_below_the_table(self, tmp_path):
        assert "They are the last rows" in remarks_on(tmp_path, "x,y\n1,1\n2,2\nTotal,2\n")
        assert "last rows" not in remarks_on(tmp_path, "x,y\n1,1\nTotal,2\n2,2\n")

    def test_rows_that_are_left_out_are_told(self, tmp_path):
        """A wrong CRS would leave out every row without a word."""
        said = remarks_on(tmp_path, "x,y\n5,5\n500,5\n", skip_outside=True)
        assert "would be left out, as skip_outside=True says" in said
        assert not remarks_on(tmp_path, "x,y\n5,5\n", skip_outside=True)


class TestOtherFormats:
    @pytest.mark.parametrize(
        ("name", "remedy"),
        [("p.tsv", "end in .csv, and say separator='\\t'"), ("p.xlsx", "save the sheet as CSV"), ("p.fgb", "ogr2ogr")],
    )
    def test_what_to_do_with_them(self, name, remedy, tmp_path):
        (tmp_path / name).write_text("x\ty\n1\t1\n")
        with pytest.raises(InputError, match=re.escape(remedy)):
            inspect_points(tmp_path / name, PLAIN, report_to=tmp_path)
        if name == "p.tsv":
            (tmp_path / name).rename(tmp_path / "p.csv")
            assert inspect_points(tmp_path / "p.csv", PLAIN, report_to=tmp_path, separator="\t").ok

    def test_parquet_without_geometries(self, tmp_path):
        pd.DataFrame({"x": [1.0], "y": [1.0]}).to_parquet(tmp_path / "p.parquet")
        with pytest.raises(InputError, match="Parquet without geometries"):
            inspect_points(tmp_path / "p.parquet", PLAIN, report_to=tmp_path)
        with pytest.raises(InputError, match="Parquet without geometries"):
            list(read_batches(tmp_path / "p.parquet", PLAIN))


def test_truth_values_are_named_as_levels_are_written(tmp_path):
    """GeoJSON has true and SQL 1, and no text of the file can be written otherwise."""
    feature = {"type": "Feature", "properties": {"lit": True}, "geometry": {"type": "Point", "coordinates": [5, 5]}}
    path = tmp_path / "p.geojson"
    document = {"type": "FeatureCollection", "features": [feature]} | {"crs": crs_member("EPSG:27700")}
    path.write_text(json.dumps(document))
    window = Window.rectangle(0, 0, 10, 10, "EPSG:27700")
    (said,) = inspect_points(path, window, report_to=tmp_path, by="lit", levels=["true"]).remarks
    assert "texts True and False" in said
    assert inspect_points(path, window, report_to=tmp_path, by="lit", levels=["True"]).ok


def test_the_system_that_a_domain_lacks_is_named(tmp_path):
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [5, 5]}}
    path = tmp_path / "p.geojson"
    document = {"type": "FeatureCollection", "features": [feature]} | {"crs": crs_member("EPSG:27700")}
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="crs='EPSG:27700'"):
        read_pattern(path, PLAIN)
