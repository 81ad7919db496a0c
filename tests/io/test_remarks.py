"""Remarks of an inspection: mistakes that all rows share, and persons and rows that are listed twice."""

import json

import pandas as pd
import pytest
from support.command_line import run, spoken

from dpppsynth.io import inspect_points
from dpppsynth.spatial.domains import Window

GRID = Window.rectangle(500_000, 150_000, 550_000, 200_000, "EPSG:27700")
PLAIN = Window.rectangle(0, 0, 10, 10)


def remarks_on(tmp_path, text, window=PLAIN, **options):
    file = tmp_path / "points.csv"
    file.write_text(text)
    return " ".join(inspect_points(file, window, report_to=tmp_path, **options).remarks)


class TestAllRows:
    """The reason is told once, and only where no row keeps the rule."""

    @pytest.mark.parametrize(
        ("rows", "reason"),
        [
            ("180000,530000\n181000,531000\n", "With x and y exchanged"),
            ("-0.1,51.5\n-0.12,51.51\n", "look like degrees"),
            ("51.5,-0.1\n51.51,-0.12\n", "look like degrees"),
            ("530,180\n531,181\n", "kilometres"),
            ("10,20\n30,40\n200,300\n", "Is it the CRS, and the place"),
        ],
    )
    def test_elsewhere(self, rows, reason, tmp_path):
        assert reason in remarks_on(tmp_path, "x,y\n" + rows, GRID)
        assert not remarks_on(tmp_path, "x,y\n" + rows + "530000,180000\n", GRID)

    def test_decimal_commas(self, tmp_path):
        text = "x;y\n1,5;2,5\n3,5;4,5\n"
        assert "decimal=','" in remarks_on(tmp_path, text, separator=";")
        assert not remarks_on(tmp_path, text, separator=";", decimal=",")
        assert "Is it the right column" in remarks_on(tmp_path, "x,y\na,b\nc,d\n")

    def test_nothing_of_a_row_is_said(self, tmp_path):
        said = remarks_on(tmp_path, "x,y\n187654,530321\n181234,531987\n", GRID)
        assert not any(number in said for number in ("187654", "530321", "2"))


class TestTwice:
    def test_persons(self, tmp_path):
        text = "x,y,who\n1,1,ann\n2,2,bo\n3,3,ann\n"
        assert "Some persons have several rows" in remarks_on(tmp_path, text, user="who")
        assert not remarks_on(tmp_path, text)
        assert not remarks_on(tmp_path, text.replace("3,3,ann", "3,3,cy"), user="who")

    def test_rows(self, tmp_path):
        text = "x,y,kind\n1,1,a\n2,2,b\n1,1,a\n"
        assert "alike in every column" in remarks_on(tmp_path, text)
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
        assert "rows_are_persons=True" in said
        assert not remarks_on(tmp_path, text, rows_are_persons=True)
        assert not remarks_on(tmp_path, text, count="NHS no")
        assert not remarks_on(tmp_path, text.replace("7", "1", 1).replace("8", "2", 1))

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
        assert "--user patient" in said
        assert "--rows-are-persons" in said
        for answer in (["--rows-are-persons"], ["--max-points-per-person", "2"]):
            assert "some rows break the rules" in spoken(run(*command, *answer, code=2))


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
    assert "With x and y exchanged most would lie there: exchange the columns (--x, --y)." in said
    assert "--max-points-per-person" in said
    assert len(json.loads(run("inspect", file, *place, "--json", code=2).stdout)["remarks"]) == 1
    absent = ["--window", "0,0,1,1", "--out", tmp_path / "none"]
    assert "there is no file" in spoken(run("inspect", tmp_path / "no.csv", *absent, code=2))
    assert not (tmp_path / "none").exists()
