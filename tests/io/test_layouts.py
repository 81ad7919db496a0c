"""Files of other layouts: separators, decimal commas, compression, layers, shapefiles."""

import csv
import gzip
import itertools

import geopandas
import numpy as np
import pytest
import shapely

from dpppsynth import Marks, Times, Types, Window
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_batches, read_pattern, require_head
from dpppsynth.spatial.tables.formats import read_table
from dpppsynth.spatial.tables.table import Layout

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
XY = np.array([[1.5, 2.25], [10.0, 899.125], [3.0, 1e2]])
SIGNS = [(separator, decimal) for separator, decimal in itertools.product(",;\t|", ".,") if separator != decimal]


def written(path, separator, decimal, rows=None):
    """A file of points with ages, hours and a note in quotation marks that holds every sign."""
    cells = [["x", "y", "age", "hour", "note"]]
    for (x, y), age, hour in zip(XY, (31.5, 17, 80), (23.75, 0, 6), strict=True):
        cells.append([*(f"{value:g}".replace(".", decimal) for value in (x, y, age, hour)), '"a, b; c | d"'])
    text = "\n".join(separator.join(row) for row in [*cells, *(rows or [])])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix.lower() == ".gz" else text.encode())
    return path


def refused(read, *args, **options):
    with pytest.raises(InputError) as caught:
        read(*args, **options)
    return str(caught.value)


class TestSigns:
    @pytest.mark.parametrize("name", ["points.csv", "POINTS.CSV.GZ", "points.csv.gz"])
    @pytest.mark.parametrize(("separator", "decimal"), SIGNS)
    def test_of_numbers(self, separator, decimal, name, tmp_path):
        path = written(tmp_path / name, separator, decimal)
        signs = {"separator": separator, "decimal": decimal}
        pattern = read_pattern(path, WINDOW, **signs, marks=["age", "note"])
        assert np.array_equal(pattern.xy, XY)
        assert pattern.marks["age"].tolist() == [31.5, 17, 80]
        assert pattern.marks["note"].tolist() == ["a, b; c | d"] * 3
        assert np.array_equal(next(iter(read_batches(path, WINDOW, **signs))).xy, XY)
        require_head(path, WINDOW, **signs, count="age")

    def test_of_times_and_bins(self, tmp_path):
        described = Marks(Types("age", ("0-18", "18-65", "65-"), edges=(0, 18, 65, 120)), Times.day("hour"))
        path = written(tmp_path / "points.csv", ";", ",")
        found = read_pattern(path, WINDOW, separator=";", decimal=",", described=described).marks
        assert found["hour"].tolist() == [23.75, 0, 6]
        assert found["age"].tolist() == ["18-65", "0-18", "65-"]

    @pytest.mark.parametrize("cell", ["1.234,5", "1.5", "1.234", "1,2,3"])
    def test_a_point_is_no_sign_where_a_comma_is(self, cell, tmp_path):
        """A German "1.234" is more than a thousand, and would pass for a little more than one."""
        path = written(tmp_path / "points.csv", ";", ",", [[cell, "5", "3", "4", "e"]])
        said = refused(read_pattern, path, WINDOW, separator=";", decimal=",")
        assert "(not a number)" in said
        found = inspect_points(path, WINDOW, report_to=tmp_path, separator=";", decimal=",")
        assert cell in next(csv.reader(found.report.read_text().splitlines()[1:]))

    def test_a_column_of_texts_keeps_them(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_text("x;y;code\n1,5;2;1.5\n3;4;1,5\n5;6;a.b\n")
        table = read_table(path, separator=";", decimal=",")
        assert table.columns["code"].tolist() == ["1.5", "1,5", "a.b"]

    def test_persons_are_told_by_their_texts(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_text("x;y;who\n1,5;2;1.5\n3;4;1,5\n")
        pattern = read_pattern(path, WINDOW, separator=";", decimal=",", user="who")
        assert pattern.marks["who"].tolist() == ["1.5", "1,5"]

    def test_another_separator_is_hinted_at(self, tmp_path):
        path = written(tmp_path / "points.csv", ";", ".")
        assert "separator=';'" in refused(read_pattern, path, WINDOW)
        assert "separator=','" in refused(read_pattern, written(tmp_path / "a.csv", ",", "."), WINDOW, separator=";")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"separator": ":"}, "separator: must be one of"),
            ({"separator": ""}, "separator: must be one of"),
            ({"decimal": "'"}, "decimal: must be one of"),
            ({"decimal": ","}, "decimal: ',' separates the cells already"),
            ({"encoding": "klingon"}, "encoding: must be that of a text"),
            ({"encoding": "base64"}, "encoding: must be that of a text"),
            ({"layer": "a"}, "layer: names one of the layers of a GeoPackage"),
        ],
    )
    def test_what_is_refused(self, options, words, tmp_path):
        path = written(tmp_path / "points.csv", ",", ".")
        for read in (read_pattern, require_head, read_batches):
            assert refused(read, path, WINDOW, **options).startswith(words)
        assert Layout() == Layout(None, None, ",", ".", "utf-8", None)

    def test_of_a_file_without_cells(self, tmp_path):
        gdf = geopandas.GeoDataFrame(geometry=shapely.points(XY), crs="EPSG:27700")
        gdf.to_parquet(tmp_path / "points.parquet")
        for options in ({"separator": ";"}, {"separator": ";", "decimal": ","}, {"x": "x"}):
            said = refused(read_pattern, tmp_path / "points.parquet", WINDOW, **options)
            assert "tells columns and signs of a CSV file" in said
        assert "is none" in refused(read_pattern, tmp_path / "points.parquet", WINDOW, layer="points")


class TestLayers:
    @pytest.fixture
    def path(self, tmp_path):
        for k, name in enumerate(("homes", "crimes")):
            gdf = geopandas.GeoDataFrame({"k": [k] * 3}, geometry=shapely.points(XY + k), crs="EPSG:27700")
            gdf.to_file(tmp_path / "city.gpkg", layer=name, driver="GPKG")
        return tmp_path / "city.gpkg"

    @pytest.mark.parametrize(("name", "k"), [("homes", 0), ("crimes", 1)])
    def test_by_their_names(self, name, k, path):
        found = read_pattern(path, WINDOW, layer=name, marks=["k"])
        assert np.array_equal(found.xy, XY + k)
        assert found.marks["k"].tolist() == [k] * 3
        assert np.array_equal(next(iter(read_batches(path, WINDOW, layer=name))).xy, XY + k)

    def test_one_must_be_named(self, path):
        said = refused(read_pattern, path, WINDOW)
        assert "it has 'homes' (Point), 'crimes' (Point)" in said
        assert "city.gpkg:NAME" in said
        assert "no layer 'Homes'" in refused(read_pattern, path, WINDOW, layer="Homes")


class TestShapefiles:
    @pytest.fixture
    def path(self, tmp_path):
        columns = {"kind": ["a", "b", "a"], "year": [2021, 2022, 2022]}
        geopandas.GeoDataFrame(columns, geometry=shapely.points(XY), crs="EPSG:27700").to_file(tmp_path / "points.shp")
        return tmp_path / "points.shp"

    def test_are_read(self, path):
        found = read_pattern(path, WINDOW, marks=["kind", "year"])
        assert np.array_equal(found.xy, XY)
        assert found.marks["kind"].tolist() == ["a", "b", "a"]
        assert found.marks["year"].tolist() == [2021, 2022, 2022]
        assert np.array_equal(next(iter(read_batches(path, WINDOW))).xy, XY)
        assert "no column 'age'" in refused(require_head, path, WINDOW, count="age")

    def test_their_crs_counts(self, path):
        assert "crs: the points are in" in refused(read_pattern, path, Window.rectangle(0, 0, 1000, 1000, "EPSG:32630"))
        path.with_suffix(".prj").unlink()
        assert len(read_pattern(path, WINDOW, crs="EPSG:27700")) == 3

    @pytest.mark.parametrize("end", [".shx", ".dbf"])
    def test_parts_belong_together(self, end, path):
        path.with_suffix(end).unlink()
        for read in (read_pattern, require_head, read_batches):
            assert refused(read, path, WINDOW).startswith(f"path: points{end} is missing beside points.shp")

    def test_no_other_driver_opens_the_name(self, path):
        """GDAL would read a virtual file of this name, and others through it."""
        path.write_text("<OGRVRTDataSource><OGRVRTLayer name='a'><SrcDataSource>b.csv</SrcDataSource></OGRVRTLayer>")
        assert "another kind of file" in refused(read_pattern, path, WINDOW)

    def test_a_file_that_is_cut_off(self, path):
        path.write_bytes(path.read_bytes()[:120])
        said = refused(read_pattern, path, WINDOW)
        assert "Shapefile" in said or "rows break the rules" in said
