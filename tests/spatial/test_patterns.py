"""Point patterns: what they refuse, what they keep, and what they never say."""

import copy
import pickle
import re
from collections import deque

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
SECRET = 123.456789
XY = np.array([[SECRET, 200.0], [300.0, 400.0], [300.0, 400.0]])


def frame(xy=XY, crs="EPSG:27700", **columns):
    return geopandas.GeoDataFrame(columns, geometry=geopandas.points_from_xy(*np.transpose(xy)), crs=crs)


def refused(*args, **kwargs):
    """Message of the refusal, checked for anything that looks like the data."""
    build = kwargs.pop("build", PointPattern)
    with pytest.raises(InputError) as caught:
        build(*args, **kwargs)
    message = str(caught.value)
    assert not re.search(r"\d", re.sub(r"EPSG:\d+|WGS 84|\(n, 2\)", "", message)), message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


class TestConstruction:
    def test_keeps_the_points_in_order_and_coincident_ones_too(self):
        pattern = PointPattern(XY.tolist(), WINDOW)
        np.testing.assert_array_equal(pattern.xy, XY)
        assert pattern.xy.dtype == np.float64
        assert len(pattern) == 3
        assert pattern.domain is WINDOW
        assert pattern.marks is None

    def test_is_a_read_only_copy(self):
        xy = XY.copy()
        kind = np.array(["a", "b", "c"])
        pattern = PointPattern(xy, WINDOW, {"kind": kind})
        xy[:] = 0
        kind[:] = "z"
        np.testing.assert_array_equal(pattern.xy, XY)
        assert pattern.marks["kind"].tolist() == ["a", "b", "c"]
        for array in (pattern.xy, pattern.marks["kind"]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]
        with pytest.raises(AttributeError):
            pattern.xy = xy

    def test_border_points_belong(self):
        assert len(PointPattern([[0, 0], [1000, 1000]], WINDOW)) == 2

    @pytest.mark.parametrize("beyond", [1000.0000001, -1e-9, 5e7])
    def test_point_outside(self, beyond):
        message = refused([[SECRET, beyond], [1, 1]], WINDOW)
        assert message.startswith("xy: every point must lie in the window; choose a larger one from public knowledge")
        assert "leave others out only where n is secret, or who is in the data set is not sensitive" in message
        assert "`dpppsynth inspect`" in message
        assert "CONFIDENTIAL" in message

    def test_point_in_a_hole(self):
        ring = shapely.box(0, 0, 10, 10).difference(shapely.box(4, 4, 6, 6))
        assert "must lie in the window" in refused([[5, 5]], Window.polygon(ring))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, bad):
        assert "finite" in refused([[SECRET, bad]], WINDOW)

    def test_masked_values_do_not_come_back(self):
        assert "finite" in refused(np.ma.masked_greater(XY, 350), WINDOW)
        assert len(PointPattern(np.ma.array(XY), WINDOW)) == 3

    @pytest.mark.parametrize("empty", [[], np.empty((0, 2)), np.empty(0)], ids=["list", "rows", "flat"])
    def test_empty(self, empty):
        assert "at least one point" in refused(empty, WINDOW)

    @pytest.mark.parametrize(
        "bad",
        [[[SECRET, 1, 2]], [SECRET, 1], [[[SECRET, 1]]], SECRET],
        ids=["three columns", "one row", "three axes", "scalar"],
    )
    def test_shape(self, bad):
        message = refused(bad, WINDOW)
        assert "shape (n, 2)" in message

    @pytest.mark.parametrize(
        "bad", [[["123.4x", 1]], [[SECRET, 1], [SECRET]], object()], ids=["text", "ragged", "object"]
    )
    def test_not_numbers(self, bad):
        message = refused(bad, WINDOW)
        assert "must be numbers" in message

    @pytest.mark.parametrize("domain", [None, (0, 0, 1, 1), shapely.box(0, 0, 1, 1)], ids=["none", "tuple", "shapely"])
    def test_domain_must_be_a_domain(self, domain):
        assert refused(XY, domain).startswith("domain: must be a Window or a LinearNetwork")


class TestMarks:
    def test_unmarked_drops_marks_only(self):
        marked = PointPattern(XY, WINDOW, {"kind": [1, 2, 3]})
        np.testing.assert_array_equal(marked.unmarked().xy, XY)
        assert marked.unmarked().marks is None
        assert marked.unmarked().unmarked().domain is WINDOW

    def test_no_marks_is_none(self):
        assert PointPattern(XY, WINDOW, {}).marks is None

    @pytest.mark.parametrize(
        "values", [[1], [[1, 2], [3, 4], [5, 6]], [[1], [2, 3], [4]], "abc"], ids=["short", "wide", "ragged", "scalar"]
    )
    def test_one_value_per_point(self, values):
        assert refused(XY, WINDOW, {"kind": values}) == "marks: 'kind' must hold exactly one value per point"

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (["a", "bb", "c"], "U"),
            (["a", "b\0", "c"], "O"),
            (["a", "b" * 1001, "c"], "O"),
            ([True, False, np.True_], "b"),
            ([1, -2, np.uint8(3)], "i"),
            ([2**53 + 1, 2**63, 0], "u"),
            ([2**63, 2**63 + 1, -1], "O"),
            ([1, 2**64, 3], "O"),
            ([1, 0.5, np.float32(2)], "f"),
            ([0.5, 1, 10**400], "O"),
            ([True, 1, 1.0], "O"),
            ([2**53 + 1, "a", None], "O"),
            ([1, None, 2], "O"),
            (deque([b"a", 1, np.timedelta64(1, "s")]), "O"),
            ((value for value in (1, 2, "a")), "O"),
            (range(2**63, 2**63 + 3), "u"),
        ],
    )
    def test_lists_become_arrays_of_the_plainest_kind_that_keeps_the_values(self, values, kind):
        values = values if hasattr(values, "__len__") else [*values]
        mark = PointPattern(XY, WINDOW, {"kind": values}).marks["kind"]
        assert mark.dtype.kind == kind
        # 2^53 + 1 and True would be equal to what they must not become.
        assert [(kind == "O" and type(a), a) for a in mark] == [(kind == "O" and type(b), b) for b in values]

    def test_arrays_keep_their_kind(self):
        kinds = ["f4", "i2", "S3", "U2", "M8[D]", "?", "O"]
        marks = {kind: np.zeros(3, dtype=kind) for kind in kinds} | {"pandas": pd.Series([1, 2, 3], dtype="UInt8")}
        settled = PointPattern(XY, WINDOW, marks).marks
        assert [settled[kind].dtype for kind in kinds] == [np.dtype(kind) for kind in kinds]
        assert settled["pandas"].dtype == np.uint8
        assert not any(np.shares_memory(settled[kind], marks[kind]) for kind in kinds)

    @pytest.mark.parametrize("values", [{1, 2, 3}, {1: 2, 2: 3, 3: 4}, np.ma.array([1, 2, 3], mask=[0, 0, 1]), 5, None])
    def test_no_order_or_hidden_values(self, values):
        assert refused(XY, WINDOW, {"kind": values}) == "marks: 'kind' must hold exactly one value per point"

    def test_must_be_a_dictionary(self):
        assert refused(XY, WINDOW, marks=["kind"]).startswith("marks: must be a dictionary")


class TestSilence:
    def test_repr_and_str_show_the_domain_alone(self):
        expected = "PointPattern(Window(rectangle [0, 1000] x [0, 1000], EPSG:27700, metre))"
        marked = PointPattern(XY, WINDOW, {"kind": ["secret"] * 3})
        assert repr(marked) == str(marked) == f"{marked}" == expected
        assert repr(PointPattern(np.full((77, 2), SECRET), WINDOW)) == expected

    def test_patterns_are_not_compared_by_value(self):
        assert PointPattern(XY, WINDOW) != PointPattern(XY, WINDOW)
        assert len({PointPattern(XY, WINDOW), PointPattern(XY, WINDOW)}) == 2

    def test_survives_copy_and_transport(self):
        pattern = PointPattern(XY, WINDOW, {"kind": [1, 2, 3]})
        for again in (copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
            np.testing.assert_array_equal(again.xy, XY)
            assert again.domain.fingerprint() == WINDOW.fingerprint()


class TestSynthetic:
    @pytest.mark.parametrize("empty", [[], np.empty((0, 2))], ids=["list", "array"])
    def test_may_be_empty(self, empty):
        pattern = PointPattern.synthetic(empty, WINDOW)
        assert len(pattern) == 0
        assert pattern.xy.shape == (0, 2)
        assert len(pattern.to_geodataframe()) == 0
        assert pattern.to_geodataframe().crs == "EPSG:27700"
        assert pattern.unmarked() is pattern

    def test_is_checked_otherwise(self):
        assert len(PointPattern.synthetic(XY, WINDOW)) == 3
        assert "window" in refused([[-1, 0]], WINDOW, build=PointPattern.synthetic)
        assert "finite" in refused([[np.nan, 0]], WINDOW, build=PointPattern.synthetic)


class TestGeoDataFrame:
    def test_round_trip(self):
        pattern = PointPattern(XY, WINDOW, {"kind": ["a", "b", "c"], "size": [1.5, 2.5, np.nan]})
        gdf = pattern.to_geodataframe()
        assert gdf.crs == "EPSG:27700"
        assert list(gdf.columns) == ["kind", "size", "geometry"]
        again = PointPattern.from_geodataframe(gdf, WINDOW, marks=["kind", "size"])
        np.testing.assert_array_equal(again.xy, XY)
        assert again.marks["kind"].tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(again.marks["size"], pattern.marks["size"])

    def test_other_columns_index_and_heights_are_left_behind(self):
        gdf = geopandas.GeoDataFrame({"name": ["x"]}, geometry=[shapely.Point(1, 2, 3)], crs=27700, index=["id"])
        pattern = PointPattern.from_geodataframe(gdf, WINDOW)
        assert pattern.xy.tolist() == [[1, 2]]
        assert pattern.marks is None

    def test_active_geometry_may_have_any_name(self):
        assert len(PointPattern.from_geodataframe(frame().rename_geometry("where"), WINDOW)) == 3

    def test_counts_repeat_points_and_marks(self):
        gdf = frame(deaths=[2, 0, 3], street=["Broad", "Poland", "Berwick"])
        pattern = PointPattern.from_geodataframe(gdf, WINDOW, count="deaths", marks=["street"])
        np.testing.assert_array_equal(pattern.xy, XY[[0, 0, 2, 2, 2]])
        assert pattern.marks["street"].tolist() == ["Broad"] * 2 + ["Berwick"] * 3

    @pytest.mark.parametrize("column", [[2.0, 0.0, 1.0], ["2", "0", "1"], pd.array([2, 0, 1], dtype="Int64")])
    def test_counts_may_be_floats_texts_or_nullable(self, column):
        assert len(PointPattern.from_geodataframe(frame(deaths=column), WINDOW, count="deaths")) == 3

    @pytest.mark.parametrize(
        "bad", [-1, 1.5, np.nan, np.inf, 1e12, "many", None, pd.NA], ids=lambda bad: f"count {bad}"
    )
    def test_bad_counts(self, bad):
        gdf = frame(deaths=pd.Series([1, bad, 1], dtype=object))
        message = refused(gdf, WINDOW, count="deaths", build=PointPattern.from_geodataframe)
        assert "(bad count)" in message
        assert "inspect" in message

    def test_location_of_a_row_that_counts_nothing_does_not_matter(self):
        gdf = frame([[5000, 0], [np.nan, 1], [1, 1]], deaths=[0, 0, 1])
        assert len(PointPattern.from_geodataframe(gdf, WINDOW, count="deaths")) == 1

    def test_all_counts_zero(self):
        message = refused(frame(deaths=[0, 0, 0]), WINDOW, count="deaths", build=PointPattern.from_geodataframe)
        assert "at least one point" in message

    def test_multipoints_are_their_points(self):
        gdf = geopandas.GeoDataFrame(
            {"kind": [1, 2]}, geometry=[shapely.MultiPoint([(1, 1), (2, 2)]), shapely.Point(3, 3)], crs=27700
        )
        pattern = PointPattern.from_geodataframe(gdf, WINDOW, marks=["kind"])
        assert pattern.xy.tolist() == [[1, 1], [2, 2], [3, 3]]
        assert pattern.marks["kind"].tolist() == [1, 1, 2]
        message = refused(gdf, WINDOW, count="kind", build=PointPattern.from_geodataframe)
        assert "(not a point)" in message

    @pytest.mark.parametrize(
        ("geometry", "rule"),
        [
            (shapely.box(0, 0, 1, 1), "not a point"),
            (shapely.LineString([(0, 0), (1, 1)]), "not a point"),
            (None, "missing coordinate"),
            (shapely.Point(), "missing coordinate"),
            (shapely.Point(np.nan, 1), "missing coordinate"),
            (shapely.Point(np.inf, 1), "not finite"),
            (shapely.Point(1001, 1), "outside window"),
        ],
        ids=["polygon", "line", "none", "empty", "nan", "infinite", "outside"],
    )
    def test_every_broken_rule_has_its_name(self, geometry, rule):
        gdf = geopandas.GeoDataFrame(geometry=[shapely.Point(SECRET, 1), geometry], crs=27700)
        message = refused(gdf, WINDOW, build=PointPattern.from_geodataframe)
        assert f"some rows break the rules ({rule})" in message

    def test_rules_are_named_once_however_many_rows_break_them(self):
        gdf = frame([[5000, 0], [6000, 0], [np.nan, 1]])
        message = refused(gdf, WINDOW, build=PointPattern.from_geodataframe)
        assert "(missing coordinate, outside window)" in message

    def test_reprojects_on_demand_only(self):
        degrees = frame().to_crs(4326)
        message = refused(degrees, WINDOW, build=PointPattern.from_geodataframe)
        assert "the points are in EPSG:4326" in message
        assert 'set to_crs="EPSG:27700"' in message
        pattern = PointPattern.from_geodataframe(degrees, WINDOW, to_crs="EPSG:27700")
        np.testing.assert_allclose(pattern.xy, XY, atol=1e-3)

    def test_other_projected_crs_is_refused_with_the_remedy(self):
        message = refused(frame().to_crs(32630), WINDOW, build=PointPattern.from_geodataframe)
        assert 'set to_crs="EPSG:27700" to re-project' in message

    def test_to_crs_must_be_the_crs_of_the_domain(self):
        message = refused(frame(), WINDOW, to_crs=32630, build=PointPattern.from_geodataframe)
        assert message.startswith("to_crs: must be the CRS of the domain, EPSG:27700; got EPSG:32630")
        bare = Window.rectangle(0, 0, 1000, 1000)
        message = refused(frame(), bare, to_crs=27700, build=PointPattern.from_geodataframe)
        assert message.startswith("to_crs: must be the CRS of the domain, no CRS")

    def test_points_without_crs_are_taken_to_be_in_that_of_the_domain(self):
        assert len(PointPattern.from_geodataframe(frame(crs=None), WINDOW)) == 3
        message = refused(frame(crs=None), WINDOW, to_crs=27700, build=PointPattern.from_geodataframe)
        assert "name it with crs=" in message

    def test_domain_without_crs_refuses_points_with_one(self):
        message = refused(frame(), Window.rectangle(0, 0, 1000, 1000), build=PointPattern.from_geodataframe)
        assert "the domain has no CRS" in message
        assert len(PointPattern.from_geodataframe(frame(crs=None), Window.rectangle(0, 0, 1000, 1000))) == 3

    def test_missing_columns_are_named_with_those_that_exist(self):
        gdf = frame(deaths=[1, 1, 1])
        message = refused(gdf, WINDOW, count="dead", build=PointPattern.from_geodataframe)
        assert message == "count: there is no column 'dead'; the columns are 'deaths'"
        message = refused(gdf, WINDOW, marks=["street"], build=PointPattern.from_geodataframe)
        assert message == "marks: there is no column 'street'; the columns are 'deaths'"
        message = refused(gdf, WINDOW, marks="deaths", build=PointPattern.from_geodataframe)
        assert "write ['deaths']" in message

    @pytest.mark.parametrize("other", [pd.DataFrame({"a": ["b"]}), geopandas.GeoDataFrame({"a": ["b"]}), [[1, 2]]])
    def test_must_be_a_geodataframe_with_geometry(self, other):
        message = refused(other, WINDOW, build=PointPattern.from_geodataframe)
        assert message.startswith("gdf: must be a GeoDataFrame with a geometry column")

    def test_empty_frame(self):
        assert "at least one point" in refused(frame(np.empty((0, 2))), WINDOW, build=PointPattern.from_geodataframe)
