"""Files: exact round trips, every refusal, and silence about the data."""

import contextlib
import json
import re
import sqlite3
import stat
import subprocess
import sys

import geopandas
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpppsynth.core.crs import same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.io import (
    Inspection,
    inspect_points,
    read_network,
    read_pattern,
    read_synthetic,
    read_window,
    write_pattern,
)
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
BARE = Window.rectangle(0, 0, 1, 1)
# A street along the x axis, one to the north of its end, and a lane of the source that was left out of the network.
STREETS = LinearNetwork([[0, 0], [100, 0], [100, 50]], [[0, 1], [1, 2]], "EPSG:27700")
LANE = shapely.LineString([(0, 20), (80, 20)])
LANELESS = LinearNetwork(STREETS.vertices, STREETS.edges, STREETS.crs, dropped=[LANE])
CUSTOM = Window.rectangle(0, 0, 9, 9, "+proj=lcc +lat_1=10 +lat_2=20 +units=km")
FORMATS = ["geojson", "json", "csv", "gpkg", "parquet"]
SECRET = "529123.4567"
GOOD = "529200,181000"


def random_pattern(domain, n=40, seed=0):
    x0, y0, x1, y1 = domain.bounds
    return PointPattern.synthetic(np.random.default_rng(seed).uniform((x0, y0), (x1, y1), (n, 2)), domain)


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


def refused(call, *args, **kwargs):
    """Message of the refusal, checked for anything that looks like the data."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    names = r"EPSG:\d+|OGC:CRS84|WGS 84( \(CRS84\))?|(?i:utf-8)|cp1252|synthetic_000"
    quiet = re.sub(rf"{names}|there is no (file|folder) '.*'", "", message)
    assert not re.search(r"\d", quiet), message
    assert caught.value.__context__ is None
    return message


@pytest.fixture
def csv_file(tmp_path):
    return lambda text: write(tmp_path / "points.csv", text)


class TestRoundTrips:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("suffix", FORMATS)
    @pytest.mark.parametrize("domain", [WINDOW, BARE, CUSTOM], ids=["grid", "no crs", "custom"])
    @pytest.mark.parametrize("n", [40, 1, 0])
    def test_patterns_come_back_bit_for_bit(self, tmp_path, suffix, domain, n):
        pattern = random_pattern(domain, n)
        file = tmp_path / f"synthetic_000.{suffix}"
        write_pattern(pattern, file)
        np.testing.assert_array_equal(read_synthetic(file, domain).xy, pattern.xy)
        if n:
            np.testing.assert_array_equal(read_pattern(file, domain).xy, pattern.xy)
        else:
            assert "at least one point" in refused(read_pattern, file, domain)

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        xy=st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e-9, 1e9)), max_size=5), suffix=st.sampled_from(FORMATS)
    )
    def test_any_coordinate_survives(self, tmp_path, xy, suffix):
        domain = Window.rectangle(-1e9, -1e9, 1e9, 1e9, 'LOCAL_CS["plane",UNIT["metre",1]]')
        pattern = PointPattern.synthetic(np.reshape(xy, (-1, 2)), domain)
        file = tmp_path / f"any.{suffix}"
        write_pattern(pattern, file)
        np.testing.assert_array_equal(read_synthetic(file, domain).xy, pattern.xy)

    @pytest.mark.parametrize("suffix", FORMATS)
    def test_marks_come_back(self, tmp_path, suffix):
        marks = {"kind": ["a", 'b,"c"', "é\n"], "size": [0.1, 2.0, 3.5], "age": [1, 2, 3]}
        pattern = PointPattern(random_pattern(WINDOW, 3).xy, WINDOW, marks)
        file = tmp_path / f"marked.{suffix}"
        write_pattern(pattern, file)
        again = read_pattern(file, WINDOW, marks=list(marks))
        assert {name: values.tolist() for name, values in again.marks.items()} == marks
        assert again.marks["age"].dtype.kind == "i"

    @pytest.mark.parametrize("suffix", ["geojson", "gpkg", "parquet"])
    @pytest.mark.parametrize("domain", [WINDOW, CUSTOM], ids=["grid", "custom"])
    @pytest.mark.parametrize("n", [40, 0])
    def test_other_programs_see_the_same_points_and_crs(self, tmp_path, suffix, domain, n):
        pattern = random_pattern(domain, n)
        file = tmp_path / f"seen.{suffix}"
        write_pattern(pattern, file)
        frame = geopandas.read_parquet(file) if suffix == "parquet" else geopandas.read_file(file)
        assert same_crs(frame.crs, domain.crs)
        np.testing.assert_array_equal(shapely.get_coordinates(frame.geometry.to_numpy()), pattern.xy)
        assert list(frame.columns) == ["geometry"]

    def test_windows_come_back(self, tmp_path):
        shape = shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2)).union(shapely.box(7.1, 0, 8, 1 / 3))
        for crs in ("EPSG:27700", None):
            window = Window.polygon(shape, crs)
            file = write(tmp_path / "window.geojson", json.dumps(window.to_geojson()))
            assert read_window(file).fingerprint() == window.fingerprint()
            if crs:
                seen = geopandas.read_file(file)
                assert seen.crs == crs
                assert shapely.equals(seen.geometry.iloc[0], window.geometry)
        frame = geopandas.GeoDataFrame(geometry=[Window.polygon(shape).geometry], crs=27700)
        frame.to_file(tmp_path / "window.gpkg")
        frame.to_parquet(tmp_path / "window.parquet")
        for suffix in ("gpkg", "parquet"):
            expected = Window.polygon(shape, "EPSG:27700").fingerprint()
            assert read_window(tmp_path / f"window.{suffix}").fingerprint() == expected


class TestWriting:
    def test_geojson_is_plain_and_holds_nothing_but_the_pattern(self, tmp_path):
        write_pattern(PointPattern([[529200.00001, 181000.5]], WINDOW), tmp_path / "a.geojson")
        assert json.loads((tmp_path / "a.geojson").read_text()) == {
            "type": "FeatureCollection",
            "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}},
            "features": [
                {
                    "type": "Feature",
                    "properties": {},
                    "geometry": {"type": "Point", "coordinates": [529200.00001, 181000.5]},
                }
            ],
        }

    def test_csv_is_plain(self, tmp_path):
        write_pattern(PointPattern([[0.1, 1], [0.25, 0]], BARE, {"kind": ["a", "b"]}), tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_bytes() == b"x,y,kind\n0.1,1.0,a\n0.25,0.0,b\n"

    def test_undefined_marks_are_null_in_geojson(self, tmp_path):
        write_pattern(PointPattern([[0, 0]] * 2, BARE, {"a": [np.nan, 1.0], "b": [None, "x"]}), tmp_path / "a.geojson")
        features = json.loads((tmp_path / "a.geojson").read_text())["features"]
        assert [feature["properties"] for feature in features] == [{"a": None, "b": None}, {"a": 1.0, "b": "x"}]

    @pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
    def test_same_pattern_same_bytes_whenever_it_is_written(self, tmp_path, suffix):
        pattern, files = random_pattern(WINDOW), [tmp_path / f"{name}/a.{suffix}" for name in "bc"]
        for file in files:
            file.parent.mkdir()
            write_pattern(pattern, file)
        assert files[0].read_bytes() == files[1].read_bytes()

    def test_geopackage_tells_no_time_and_no_temporary_name(self, tmp_path):
        write_pattern(random_pattern(WINDOW), tmp_path / "synthetic_007.gpkg")
        with contextlib.closing(sqlite3.connect(tmp_path / "synthetic_007.gpkg")) as database:
            rows = database.execute("select table_name, last_change from gpkg_contents").fetchall()
        assert rows == [("synthetic_007", "2000-01-01T00:00:00.000Z")]
        assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") is None

    @pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
    def test_nothing_of_an_older_file_survives(self, tmp_path, suffix):
        file = tmp_path / f"a.{suffix}"
        if suffix == "gpkg":
            geopandas.GeoDataFrame(geometry=[shapely.Point(1, 1)], crs=27700).to_file(file, layer="sensitive")
        else:
            file.write_text("sensitive")
        write_pattern(random_pattern(WINDOW, 3), file)
        assert b"sensitive" not in file.read_bytes()
        assert len(read_synthetic(file, WINDOW)) == 3

    def test_leaves_no_temporary_files(self, tmp_path):
        write_pattern(random_pattern(WINDOW), tmp_path / "a.gpkg")
        assert [file.name for file in tmp_path.iterdir()] == ["a.gpkg"]

    def test_refusals(self, tmp_path):
        pattern = random_pattern(WINDOW)
        assert "must be one of .geojson" in refused(write_pattern, pattern, tmp_path / "a.shp")
        assert "got 'no suffix'" in refused(write_pattern, pattern, tmp_path / "a")
        assert "there is no folder" in refused(write_pattern, pattern, tmp_path / "none" / "a.csv")
        marked = PointPattern([[0, 0]], BARE, {"x": [1]})
        assert "rename these marks" in refused(write_pattern, marked, tmp_path / "a.csv")

    def test_saving_geojson_needs_no_table_library(self, tmp_path):
        code = (
            "import sys; from dpppsynth import datasets, io; pumps = datasets.soho_pumps();"
            f"io.write_pattern(pumps, {str(tmp_path / 'a.geojson')!r});"
            f"io.read_synthetic({str(tmp_path / 'a.geojson')!r}, pumps.domain);"
            "print(sorted({'pandas', 'geopandas', 'pyogrio', 'pyarrow'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestCSV:
    def test_named_columns_counts_and_marks(self, csv_file):
        file = csv_file("id,east,north,deaths,street\n7,529200,181000,2,Broad\n8,529201,181001,0,Poland\n")
        pattern = read_pattern(file, WINDOW, x="east", y="north", count="deaths", marks=["street", "id"])
        assert pattern.xy.tolist() == [[529200, 181000]] * 2
        assert pattern.marks["street"].tolist() == ["Broad", "Broad"]
        assert pattern.marks["id"].tolist() == [7, 7]

    @pytest.mark.parametrize(
        ("header", "shown"),
        [
            ("east,north,Straße,n.deaths,id-2", True),
            ("Anna Smith,Broad Street,f", False),
            ("PATIENT-7719,east", False),
            ("a" * 25, False),
            ("nan,east", False),
            ("a@b,east", False),
            (",east", False),
        ],
    )
    def test_columns_are_listed_where_they_have_names(self, csv_file, header, shown):
        with pytest.raises(InputError) as caught:
            read_pattern(csv_file(f"{header}\n{GOOD}\n"), WINDOW)
        message = str(caught.value)
        assert (", ".join(map(repr, header.split(","))) in message) == shown
        assert ("the columns are not listed" in message) == (not shown)

    @pytest.mark.parametrize(
        ("cells", "told"),
        [
            (["7", "-70", "0"], [7, -70, 0]),
            (["9223372036854775809", "9223372036854775808"], [2**63 + 1, 2**63]),
            (["9223372036854775809", "-1"], [2**63 + 1, -1]),
            (["18446744073709551617", "18446744073709551616"], [2**64 + 1, 2**64]),
            (["7", "007"], ["7", "007"]),
            (["01", "1.5"], ["01", "1.5"]),
            (["1_0", "10"], ["1_0", "10"]),
            (["0.5", "0", "1e3"], [0.5, 0.0, 1000.0]),
            (["7", " 7"], [7.0, 7.0]),
            (["+7", "-0"], [7.0, 0.0]),
            (["7", "a\0"], ["7", "a\0"]),
            (["1" * 1001, "1"], ["1" * 1001, "1"]),
        ],
    )
    def test_marks_are_whole_numbers_only_where_these_tell_as_many_apart(self, csv_file, cells, told):
        text = "x,y,id\n" + "".join(f"529200,181000,{cell}\n" for cell in cells)
        values = read_pattern(csv_file(text), WINDOW, marks=["id"]).marks["id"].tolist()
        assert [(type(value), value) for value in values] == [(type(value), value) for value in told]

    def test_byte_order_mark_spaces_blank_lines_quotes_and_exponents(self, tmp_path):
        text = '\ufeff x , y \n"529200.5", 1.81e5 \n\n529201,181001\n'
        file = write(tmp_path / "a.csv", text)
        assert read_pattern(file, WINDOW).xy.tolist() == [[529200.5, 181000], [529201, 181001]]

    def test_degrees_need_to_crs(self, csv_file):
        file = csv_file("lon,lat\n-0.1366,51.5133\n")
        columns = {"x": "lon", "y": "lat", "crs": "EPSG:4326"}
        assert "to_crs=" in refused(read_pattern, file, WINDOW, **columns)
        assert "outside window" in refused(read_pattern, file, WINDOW, x="lon", y="lat")
        pattern = read_pattern(file, WINDOW, **columns, to_crs="EPSG:27700")
        np.testing.assert_allclose(pattern.xy, [[529401, 181020]], atol=15)

    def test_swapped_degrees_are_not_placed_silently(self, csv_file):
        file = csv_file("lon,lat\n51.5133,-0.1366\n")
        options = {"x": "lon", "y": "lat", "crs": "EPSG:4326", "to_crs": "EPSG:27700"}
        message = refused(read_pattern, file, WINDOW, **options)
        assert "outside window" in message or "not finite" in message

    def test_what_cannot_be_projected_is_not_finite(self, csv_file):
        file = csv_file("x,y\n10,95\n")
        assert "not finite" in refused(read_pattern, file, WINDOW, crs=4326, to_crs=27700)

    def test_no_transformation_of_unknown_accuracy_is_used(self, csv_file):
        unknown_datum = "+proj=utm +zone=30 +ellps=airy"
        message = refused(read_pattern, csv_file(f"x,y\n{GOOD}\n"), WINDOW, crs=unknown_datum, to_crs="EPSG:27700")
        assert "no accurate transformation" in message

    def test_crs_of_the_file_must_be_that_of_the_window(self, csv_file):
        file = csv_file(f"x,y\n{GOOD}\n")
        assert len(read_pattern(file, WINDOW, crs=27700)) == 1
        assert 'set to_crs="EPSG:27700"' in refused(read_pattern, file, WINDOW, crs="EPSG:32630")
        assert "name it with crs=" in refused(read_pattern, file, WINDOW, to_crs="EPSG:27700")

    @pytest.mark.parametrize(
        ("row", "rule"),
        [
            (",181000", "missing coordinate"),
            ("nan,181000", "missing coordinate"),
            ("inf,181000", "not finite"),
            ("52912x.45,181000", "not a number"),
            ("529_123,181000", "not a number"),
            ('"529,123.4567",181000', "not a number"),
            ("529123.4567", "wrong number of fields"),
            ("529123.4567,181000,1,1", "wrong number of fields"),
            ("529123.4567,18,1", "outside window"),
        ],
    )
    def test_every_broken_rule_has_its_name(self, csv_file, row, rule):
        cells = row if rule == "wrong number of fields" else row.removesuffix(",1") + ",1"
        file = csv_file(f"x,y,deaths\n{GOOD},1\n{cells}\n")
        message = refused(read_pattern, file, WINDOW)
        assert message.startswith(f"points.csv: some rows break the rules ({rule})")
        assert "inspect_points" in message
        assert "a larger window from public knowledge (leave others out only where n is secret, or who" in message

    @pytest.mark.parametrize("count", ["-1", "1.5", "", "two", "nan", "inf", "1e300"])
    def test_bad_counts(self, csv_file, count):
        file = csv_file(f"x,y,deaths\n{GOOD},1\n{GOOD},{count}\n")
        assert "(bad count)" in refused(read_pattern, file, WINDOW, count="deaths")

    @pytest.mark.parametrize("text", ["", "\n\n", "x,y\n"], ids=["nothing", "blank", "header only"])
    def test_empty_files(self, csv_file, text):
        message = refused(read_pattern, csv_file(text), WINDOW)
        assert "no column 'x'" in message or "at least one point" in message

    def test_missing_column_names_those_that_exist(self, csv_file):
        file = csv_file(f"east,north,deaths\n{GOOD},1\n")
        expected = "x: points.csv has no column 'x'; the columns are 'east', 'north', 'deaths'"
        assert refused(read_pattern, file, WINDOW) == expected
        assert refused(read_pattern, file, WINDOW, x="east", y="up").startswith("y: points.csv has no column 'up'")
        for argument in ({"count": "dead"}, {"marks": ["dead"]}):
            assert "no column 'dead'" in refused(read_pattern, file, WINDOW, x="east", y="north", **argument)

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_first_row_of_a_file_without_header_is_not_shown(self, csv_file, separator):
        file = csv_file(f"Smith{separator}{SECRET}{separator}181000\n")
        message = refused(read_pattern, file, WINDOW)
        assert "not listed, because they look like data" in message
        assert "Smith" not in message

    def test_repeated_column_names(self, csv_file):
        assert "must differ" in refused(read_pattern, csv_file(f"x,y,x\n{GOOD},1\n"), WINDOW)

    @pytest.mark.parametrize(
        ("content", "said"), [(b"x,y\n\xff\xfe529123", "no text in utf-8"), (b'x,y\n"529123', "quotation mark")]
    )
    def test_broken_files(self, tmp_path, content, said):
        (tmp_path / "a.csv").write_bytes(content)
        message = refused(read_pattern, tmp_path / "a.csv", WINDOW)
        assert said in message
        assert "529123" not in message


class TestGeometryFiles:
    def features(self, *geometries, **members):
        features = [{"type": "Feature", "properties": None, "geometry": geometry} for geometry in geometries]
        return json.dumps({"type": "FeatureCollection", **members, "features": features})

    def test_standard_geojson_is_in_degrees(self, tmp_path):
        point = {"type": "Point", "coordinates": [-0.1366, 51.5133]}
        file = write(tmp_path / "a.geojson", self.features(point))
        message = refused(read_pattern, file, WINDOW)
        assert "in OGC:CRS84" in message
        assert 'set to_crs="EPSG:27700"' in message
        np.testing.assert_allclose(read_pattern(file, WINDOW, to_crs=27700).xy, [[529401, 181020]], atol=15)

    def test_crs_argument_cannot_overrule_the_file(self, tmp_path):
        file = write(tmp_path / "a.geojson", self.features({"type": "Point", "coordinates": [1, 1]}))
        assert "the file says OGC:CRS84, not EPSG:27700" in refused(read_pattern, file, WINDOW, crs="EPSG:27700")
        nameless = write(tmp_path / "b.geojson", self.features({"type": "Point", "coordinates": [0, 0]}, crs=None))
        moved = read_pattern(nameless, Window.rectangle(-1, -1, 1, 1, 4087), crs=4326, to_crs=4087)
        np.testing.assert_allclose(moved.xy, [[0, 0]], atol=1e-6)

    @pytest.mark.parametrize(
        ("geometry", "rule"),
        [
            ({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}, "not a point"),
            (None, "missing coordinate"),
            ({"type": "Point", "coordinates": []}, "missing coordinate"),
            ({"type": "Point", "coordinates": ["52912x.4", 1]}, "not a number"),
            ({"type": "Point"}, "not a number"),
            ({"type": "Elephant", "coordinates": [1, 1]}, "not a number"),
            ({"type": "Point", "coordinates": [5, 5]}, "outside window"),
        ],
        ids=["polygon", "null", "empty", "text", "none", "elephant", "outside"],
    )
    def test_every_broken_rule_has_its_name(self, tmp_path, geometry, rule):
        good = {"type": "Point", "coordinates": [0.5, 0.5]}
        file = write(tmp_path / "a.geojson", self.features(good, geometry, crs=None))
        assert f"break the rules ({rule})" in refused(read_pattern, file, BARE)

    @pytest.mark.parametrize("values", [[2**63, -1], [True, 1], [2**53 + 1, "a"], [[1], [2]], [None, 1], ["a\0", "a"]])
    def test_marks_are_kept_as_they_are(self, tmp_path, values):
        point = {"type": "Point", "coordinates": [0.5, 0.5]}
        features = [{"type": "Feature", "properties": {"id": value}, "geometry": point} for value in values]
        document = {"type": "FeatureCollection", "crs": None, "features": features}
        file = write(tmp_path / "a.geojson", json.dumps(document))
        read = read_pattern(file, BARE, marks=["id"]).marks["id"].tolist()
        assert [(type(value), value) for value in read] == [(type(value), value) for value in values]

    @pytest.mark.parametrize("text", ["{", "[529123.4]", '{"features": [529123.4]}', "{}", "\x00"])
    def test_what_is_no_feature_collection(self, tmp_path, text):
        message = refused(read_pattern, write(tmp_path / "a.json", text), WINDOW)
        assert "FeatureCollection" in message or "cannot be read as GeoJSON" in message

    @pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
    def test_broken_binary_files(self, tmp_path, suffix):
        file = write(tmp_path / f"a.{suffix}", "529123.4567")
        assert "cannot be read as Geo" in refused(read_pattern, file, WINDOW)

    def test_parquet_without_geometry(self, tmp_path):
        pd.DataFrame({"x": [529123.4]}).to_parquet(tmp_path / "a.parquet")
        assert "is Parquet without geometries" in refused(read_pattern, tmp_path / "a.parquet", WINDOW)

    def test_geopackage_with_several_layers(self, tmp_path):
        frame = geopandas.GeoDataFrame(geometry=[shapely.Point(529200, 181000)], crs=27700)
        for layer in ("homes", "works"):
            frame.to_file(tmp_path / "a.gpkg", layer=layer)
        message = refused(read_pattern, tmp_path / "a.gpkg", WINDOW)
        assert "it has 'homes' (Point), 'works' (Point)" in message

    @pytest.mark.parametrize("suffix", ["gpkg", "parquet", "GPKG"])
    @pytest.mark.parametrize("reader", [lambda path: read_pattern(path, WINDOW), read_window, read_network])
    def test_a_file_that_points_to_another_is_not_followed(self, tmp_path, suffix, reader):
        write(tmp_path / "rows.csv", f"x,y\n{GOOD}\n529300,181000\n529200,181100\n")
        source = f"<SrcDataSource>{tmp_path / 'rows.csv'}</SrcDataSource><SrcLayer>rows</SrcLayer>"
        shape = "SELECT ST_ConvexHull(ST_Collect(MakePoint(CAST(x AS REAL), CAST(y AS REAL)))) AS geometry FROM rows"
        for query in ("", f"<SrcSQL dialect='sqlite'>{shape}</SrcSQL>"):
            layer = f"<OGRVRTLayer name='rows'>{source.replace('<SrcLayer>rows</SrcLayer>', query or '')}"
            columns = "" if query else "<GeometryField encoding='PointFromColumns' x='x' y='y'/>"
            text = f"<OGRVRTDataSource>{layer}{columns}</OGRVRTLayer></OGRVRTDataSource>"
            write(tmp_path / "a.vrt", text)
            assert pyogrio.list_layers(tmp_path / "a.vrt").shape == (1, 2)
            assert "cannot be read as Geo" in refused(reader, write(tmp_path / f"a.{suffix}", text))

    @pytest.mark.parametrize(
        "statements",
        [
            "ALTER TABLE a RENAME TO b; CREATE VIEW a AS SELECT * FROM b",
            "CREATE VIRTUAL TABLE c USING fts4(t)",
            "ALTER TABLE a ADD COLUMN g TEXT GENERATED ALWAYS AS (hex(geom)) VIRTUAL",
            "ALTER TABLE gpkg_extensions RENAME TO b; CREATE VIEW gpkg_extensions AS SELECT * FROM b",
        ],
    )
    def test_geopackages_that_compute_are_refused(self, tmp_path, statements):
        geopandas.GeoDataFrame(geometry=[shapely.Point(529200, 181000)], crs=27700).to_file(tmp_path / "a.gpkg")
        assert len(read_pattern(tmp_path / "a.gpkg", WINDOW)) == 1
        with contextlib.closing(sqlite3.connect(tmp_path / "a.gpkg")) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                database.execute(f'DROP TRIGGER "{name}"')
            database.executescript(statements)
        message = refused(read_pattern, tmp_path / "a.gpkg", WINDOW)
        assert "holds a view, a virtual table or a computed column" in message

    @pytest.mark.parametrize("mode", ["WAL", "DELETE"])
    @pytest.mark.parametrize("application", [b"GPKG", b"GP10", b"GP11"])
    def test_geopackages_of_every_version(self, tmp_path, mode, application):
        folder = tmp_path / "data.zip" / "é #1"
        folder.mkdir(parents=True)
        geopandas.GeoDataFrame(geometry=[shapely.Point(529200, 181000)], crs=27700).to_file(folder / "a.gpkg")
        with contextlib.closing(sqlite3.connect(folder / "a.gpkg")) as database:
            database.execute(f"PRAGMA application_id = {int.from_bytes(application)}")
            database.execute(f"PRAGMA journal_mode = {mode}")
        assert len(read_pattern(folder / "a.gpkg", WINDOW)) == 1
        assert [file.name for file in folder.iterdir()] == ["a.gpkg"]
        assert "colon" in refused(read_pattern, (folder / "a.gpkg").rename(folder / "a:b.gpkg"), WINDOW)

    def test_missing_file_unknown_format_and_stray_columns(self, tmp_path):
        assert "there is no file" in refused(read_pattern, tmp_path / "none.csv", WINDOW)
        assert "format must be one of .csv" in refused(read_pattern, tmp_path / "a.xlsx", WINDOW)
        assert "there is no file" in refused(read_pattern, tmp_path / "folder.csv", WINDOW)
        file = write(tmp_path / "a.geojson", self.features())
        assert "columns and signs of a CSV file" in refused(read_pattern, file, WINDOW, x="x")

    def test_pattern_from_file_is_the_same_reader(self, tmp_path):
        write_pattern(random_pattern(WINDOW), tmp_path / "a.gpkg")
        np.testing.assert_array_equal(read_pattern(tmp_path / "a.gpkg", WINDOW).xy, random_pattern(WINDOW).xy)


class TestReadWindow:
    def test_all_polygons_of_a_layer_are_united(self, tmp_path):
        boxes = [shapely.box(0, 0, 2, 2), shapely.box(2, 0, 3, 2), shapely.box(1, 1, 5, 2), shapely.box(8, 8, 9, 9)]
        geopandas.GeoDataFrame(geometry=boxes, crs=27700).to_parquet(tmp_path / "a.parquet")
        window = read_window(tmp_path / "a.parquet")
        assert window.area == 9.0
        assert window.crs == "EPSG:27700"

    def test_degrees(self, tmp_path):
        box = shapely.geometry.mapping(shapely.box(-0.2, 51.4, -0.1, 51.5))
        feature = {"type": "Feature", "properties": {}, "geometry": box}
        file = write(tmp_path / "a.geojson", json.dumps({"type": "FeatureCollection", "features": [feature]}))
        with pytest.raises(InputError, match=r"degrees.*to_crs="):
            read_window(file)
        window = read_window(file, to_crs="EPSG:27700")
        assert window.crs == "EPSG:27700"
        # A tenth of a degree is 11.1 km along the meridian and cos(51.45 deg) times that across it.
        assert window.area == pytest.approx(11_125 * 11_150 * np.cos(np.radians(51.45)) * 0.9995, rel=0.01)
        assert window.bounds[0] < window.bounds[2] < 550_000

    def test_nameless_file_needs_crs_before_to_crs(self, tmp_path):
        file = write(tmp_path / "a.geojson", json.dumps(BARE.to_geojson()))
        assert read_window(file).crs is None
        assert read_window(file, crs=27700).crs == "EPSG:27700"
        with pytest.raises(InputError, match="name it with crs="):
            read_window(file, to_crs=27700)

    @pytest.mark.parametrize(
        ("geometry", "rule"),
        [
            (shapely.Point(0, 0), "found Point"),
            (shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 1)]), "make_valid"),
            (None, "found nothing"),
        ],
    )
    def test_what_is_no_window(self, tmp_path, geometry, rule):
        geopandas.GeoDataFrame(geometry=[geometry], crs=27700).to_parquet(tmp_path / "a.parquet")
        with pytest.raises(InputError, match=rule):
            read_window(tmp_path / "a.parquet")

    def test_csv_and_malformed_geometries(self, tmp_path):
        with pytest.raises(InputError, match="CSV does not hold"):
            read_window(tmp_path / "a.csv")
        feature = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": "x"}}
        file = write(tmp_path / "a.geojson", json.dumps({"crs": None, "features": [feature]}))
        with pytest.raises(InputError, match="not valid GeoJSON"):
            read_window(file)


class TestInspection:
    ROWS = (
        "x,y,deaths,name\n"
        f"{GOOD},1,fine\n"
        f"{SECRET},999,1,far\n"
        f"{SECRET},,-2,gap\n"
        f'{SECRET},181000,0,"zero, fine"\n'
        "five,181000,1,text\n"
        f"{GOOD}\n"
    )

    def test_offending_rows_go_to_a_confidential_file(self, csv_file, tmp_path):
        (tmp_path / "safe").mkdir()
        found = inspect_points(csv_file(self.ROWS), WINDOW, count="deaths", report_to=tmp_path / "safe")
        assert not found.ok
        assert found.report == tmp_path / "safe" / "CONFIDENTIAL_offending_rows.csv"
        assert found.report.read_text().splitlines() == [
            "row,rule,x,y,deaths,name",
            f"2,outside window,{SECRET},999,1,far",
            f"3,missing coordinate; bad count,{SECRET},,-2,gap",
            "5,not a number,five,181000,1,text",
            f"6,wrong number of fields; bad count,{GOOD}",
        ]
        assert set(found.rules) == {
            "outside window",
            "missing coordinate",
            "bad count",
            "not a number",
            "wrong number of fields",
        }

    def test_only_the_owner_can_read_the_report_and_no_draft_is_left(self, csv_file, tmp_path):
        folder = tmp_path / "safe"
        folder.mkdir()
        for _ in range(2):
            found = inspect_points(csv_file(self.ROWS), WINDOW, count="deaths", report_to=folder)
        assert stat.S_IMODE(found.report.stat().st_mode) == 0o600
        assert list(folder.iterdir()) == [found.report]

    def test_result_says_nothing_about_the_rows(self, csv_file, tmp_path):
        found = inspect_points(csv_file(self.ROWS), WINDOW, count="deaths", report_to=tmp_path)
        assert not re.search(r"\d", repr(found).replace(str(tmp_path), ""))

    def test_clean_file_writes_nothing(self, csv_file, tmp_path):
        (tmp_path / "safe").mkdir()
        found = inspect_points(csv_file(f"x,y\n{GOOD}\n"), WINDOW, report_to=tmp_path / "safe")
        assert found == Inspection((), None, rows=1, n=1)
        assert found.ok
        assert not list((tmp_path / "safe").iterdir())

    def test_file_without_points(self, csv_file, tmp_path):
        found = inspect_points(csv_file(f"x,y,deaths\n{GOOD},0\n"), WINDOW, count="deaths", report_to=tmp_path)
        assert found == Inspection(("no points",), None, rows=1, n=0)
        assert not found.ok

    def test_rows_of_geometry_files_are_written_as_text(self, tmp_path):
        shapes = [shapely.Point(0.5, 0.5), shapely.box(0, 0, 1, 1), None, shapely.MultiPoint([(0.1, 0.1), (7, 7)])]
        frame = geopandas.GeoDataFrame({"id": [4, 5, 6, 7]}, geometry=shapes)
        frame.to_parquet(tmp_path / "a.parquet")
        found = inspect_points(tmp_path / "a.parquet", BARE, report_to=tmp_path)
        rows = found.report.read_text().splitlines()
        assert rows[0] == "row,rule,id,geometry"
        assert [row.split(",")[:3] for row in rows[1:]] == [
            ["2", "not a point", "5"],
            ["3", "missing coordinate", "6"],
            ["4", "outside window", "7"],
        ]
        assert "POLYGON" in rows[1]

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        rows=st.lists(
            st.tuples(
                st.sampled_from(["529200", "", "x", "inf", "1", "nan"]),
                st.sampled_from(["181000", "", "9"]),
                st.sampled_from(["0", "1", "2", "-1", "?"]),
            ),
            max_size=4,
        )
    )
    def test_a_file_is_readable_exactly_when_its_inspection_is_ok(self, tmp_path, rows):
        file = write(tmp_path / "a.csv", "\n".join(["x,y,n", *(",".join(row) for row in rows)]))
        found = inspect_points(file, WINDOW, count="n", report_to=tmp_path)
        if found.ok:
            expected = sum(int(n) for _, _, n in rows)
            assert len(read_pattern(file, WINDOW, count="n")) == expected
        else:
            refused(read_pattern, file, WINDOW, count="n")

    def test_folder_must_exist_and_the_file_be_usable(self, csv_file, tmp_path):
        file = csv_file(self.ROWS)
        with pytest.raises(InputError, match="report_to: must be an existing folder"):
            inspect_points(file, WINDOW, report_to=tmp_path / "none")
        assert "no column 'east'" in refused(inspect_points, file, WINDOW, x="east", report_to=tmp_path)
        assert "to_crs" in refused(inspect_points, file, WINDOW, crs=4326, report_to=tmp_path)


class TestOnNetworks:
    TEXT = "x,y\n10,4\n10,4\n97,30\n103,-4\n"

    def test_points_move_to_the_nearest_place(self, csv_file):
        pattern = read_pattern(csv_file(self.TEXT), STREETS, snap=5.0)
        assert pattern.domain is STREETS
        np.testing.assert_allclose(pattern.xy, [[10, 0], [10, 0], [100, 30], [100, 0]], atol=1e-12)
        np.testing.assert_allclose(pattern.positions, [[0, 10], [0, 10], [1, 30], [0, 100]], atol=1e-12)
        np.testing.assert_array_equal(pattern.xy, STREETS.snap([[10, 4], [10, 4], [97, 30], [103, -4]], 5.0).xy)

    @pytest.mark.parametrize("snap", [3.9, np.float32(3.9), 4])
    def test_tolerance_is_in_the_unit_of_the_network(self, csv_file, snap):
        path = csv_file("x,y\n10,4\n")
        if snap < 4:
            assert "too far from the network" in refused(read_pattern, path, STREETS, snap=snap)
        else:
            assert read_pattern(path, STREETS, snap=snap).positions.tolist() == [[0, 10]]

    def test_without_a_tolerance_points_must_lie_on_the_network(self, csv_file):
        path = csv_file("x,y\n10,0.001\n")
        said = refused(read_pattern, path, STREETS)
        assert "too far from the network" in said
        assert "a larger network from public knowledge" in said
        assert "a larger public tolerance, snap=" in said
        assert len(read_pattern(csv_file("x,y\n10,1e-10\n100,50\n"), STREETS)) == 2

    def test_points_of_a_street_that_was_left_out_are_refused(self, csv_file):
        path = csv_file("x,y\n10,11\n")
        assert len(read_pattern(path, STREETS, snap=15.0)) == 1
        assert "too far from the network" in refused(read_pattern, path, LANELESS, snap=15.0)
        assert len(read_pattern(csv_file("x,y\n10,9\n"), LANELESS, snap=15.0)) == 1

    @pytest.mark.parametrize("snap", [0, -1.0, float("nan"), float("inf"), "15", True, [15.0]])
    def test_tolerance_must_be_a_distance(self, snap, tmp_path):
        # Public arguments come first: the file does not even exist.
        for call in (read_pattern, inspect_points):
            more = {} if call is read_pattern else {"report_to": tmp_path}
            with pytest.raises(InputError, match=r"snap: must be a positive distance .* \(metre\)"):
                call(tmp_path / "missing.csv", STREETS, snap=snap, **more)

    def test_a_tolerance_of_a_window_is_a_distance_too(self, tmp_path):
        with pytest.raises(InputError, match=r"snap: must be a positive distance in the window's unit \(metre\)"):
            read_pattern(tmp_path / "missing.csv", WINDOW, snap=-15.0)

    def test_counts_and_marks_go_along(self, csv_file):
        text = "x,y,n,kind\n10,4,2,a\n500,500,0,b\n97,30,1,c\n"
        pattern = read_pattern(csv_file(text), STREETS, count="n", marks=["kind"], snap=5.0)
        assert pattern.positions[:, 0].tolist() == [0, 0, 1]
        assert pattern.marks["kind"].tolist() == ["a", "a", "c"]

    def test_all_readers_agree(self, csv_file):
        path = csv_file(self.TEXT)
        expected = read_pattern(path, STREETS, snap=5.0).positions
        frame = pd.read_csv(path)
        points = geopandas.GeoDataFrame(frame, geometry=shapely.points(frame.x, frame.y), crs="EPSG:27700")
        same = [
            read_pattern(path, STREETS, snap=5.0),
            PointPattern.from_geodataframe(points, STREETS, snap=5.0),
            PointPattern.from_geodataframe(points.to_crs("EPSG:4277"), STREETS, snap=5.01, to_crs="EPSG:27700"),
        ]
        for pattern in same:
            np.testing.assert_allclose(pattern.positions, expected, atol=1e-6)
        with pytest.raises(InputError, match="too far from the network"):
            PointPattern.from_geodataframe(points, STREETS, snap=3.0)

    @pytest.mark.parametrize("suffix", FORMATS)
    @pytest.mark.parametrize("n", [40, 0])
    def test_saved_patterns_come_back(self, tmp_path, suffix, n):
        curved = LinearNetwork(
            [[0, 0], [100, 0]],
            [[0, 1], [0, 1]],
            "EPSG:27700",
            lines=[shapely.LineString([(0, 0), (100, 0)]), shapely.LineString([(0, 0), (30, 77.7), (100, 0)])],
        )
        rng = np.random.default_rng(1)
        edge = rng.integers(2, size=n)
        places = np.column_stack([edge, rng.uniform(size=n) * curved.lengths[edge]])
        pattern = PointPattern.at(places, curved, synthetic=True)
        file = tmp_path / f"synthetic_000.{suffix}"
        write_pattern(pattern, file)
        back = read_synthetic(file, curved)
        np.testing.assert_array_equal(back.xy, pattern.xy)
        np.testing.assert_allclose(back.positions, pattern.positions, atol=1e-9)

    def test_far_points_go_to_the_confidential_file(self, csv_file, tmp_path):
        path = csv_file(self.TEXT + "50,5.5\n")
        near = inspect_points(path, STREETS, report_to=tmp_path, snap=6.0)
        assert (near.rules, near.report) == ((), None)
        found = inspect_points(path, STREETS, report_to=tmp_path, snap=5.0)
        assert found.rules == ("too far from the network",)
        assert found.report.read_text().splitlines() == ["row,rule,x,y", "5,too far from the network,50,5.5"]
        assert stat.S_IMODE(found.report.stat().st_mode) == 0o600
        assert inspect_points(path, WINDOW, report_to=tmp_path).rules == ("outside window",)
