"""Windows: geometry, membership, identity, and the errors a caller can act on."""

import json
import math
import subprocess
import sys

import geopandas
import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import LineString, MultiPolygon, Polygon

from dpppsynth.core.crs import projected_crs, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Domain, Window, canonical_json

L_SHAPE = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
HOLED = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (3, 1), (3, 3), (1, 3)]])
TWO_PARTS = MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(3, 0, 5, 1)])
SLIT = Polygon([(0, 0), (2, 0), (2, 2), (1.0005, 2), (1, 0.5), (0.9995, 2), (0, 2)])
DISC = shapely.Point(10, -5).buffer(3)
SHAPES = {"L": L_SHAPE, "holed": HOLED, "two parts": TWO_PARTS, "slit": SLIT, "disc": DISC}


class TestRectangle:
    def test_measures(self):
        window = Window.rectangle(1, 2, 4, 6)
        assert window.bounds == (1.0, 2.0, 4.0, 6.0)
        assert window.area == 12.0
        assert window.diameter == 5.0
        assert window.is_rectangle
        assert window.is_convex

    def test_border_is_inside_and_everything_beyond_is_outside(self):
        window = Window.rectangle(0, 0, 1, 2)
        border = [[0, 0], [1, 2], [0.5, 0], [1, 1]]
        beyond = [[np.nextafter(1, 2), 1], [-5e-324, 1], [0.5, np.nextafter(2, 3)], [np.nan, 1], [0.5, np.inf]]
        assert window.contains(border).all()
        assert not window.contains(beyond).any()

    @pytest.mark.parametrize("bounds", [(1, 0, 1, 1), (2, 0, 1, 1)], ids=["flat", "reversed"])
    def test_x_bounds_in_wrong_order(self, bounds):
        with pytest.raises(InputError, match=r"x1: must be larger than x0.*order is x0, y0, x1, y1"):
            Window.rectangle(*bounds)

    def test_y_bounds_in_wrong_order(self):
        with pytest.raises(InputError, match="y1: must be larger than y0"):
            Window.rectangle(0, 3, 1, 1)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, None, "a"])
    def test_bounds_must_be_finite_numbers(self, bad):
        with pytest.raises(InputError, match="finite"):
            Window.rectangle(0, 0, bad, 1)

    def test_rectangle_given_as_polygon_with_extra_vertices_is_recognised(self):
        ring = [(0, 0), (0.3, 0), (1, 0), (1, 1), (0, 1)]
        assert Window.polygon(Polygon(ring)).is_rectangle
        assert not Window.polygon(shapely.affinity.rotate(shapely.box(0, 0, 1, 1), 30)).is_rectangle


class TestPolygons:
    @pytest.mark.parametrize("name", SHAPES)
    def test_contains_agrees_with_point_by_point_geometry(self, name):
        window = Window.polygon(SHAPES[name])
        x0, y0, x1, y1 = window.bounds
        xy = np.random.default_rng(5).uniform((x0 - 1, y0 - 1), (x1 + 1, y1 + 1), (2000, 2))
        expected = [SHAPES[name].intersects(shapely.Point(point)) for point in xy]
        np.testing.assert_array_equal(window.contains(xy), expected)
        assert window.contains(shapely.get_coordinates(window.geometry)).all()

    def test_inside_of_hole_gap_and_slit_is_outside(self):
        assert Window.polygon(HOLED).contains([[2, 2], [1, 1], [0.5, 0.5]]).tolist() == [False, True, True]
        assert Window.polygon(TWO_PARTS).contains([[2, 0.5], [1, 0.5], [4, 0.5]]).tolist() == [False, True, True]
        assert Window.polygon(SLIT).contains([[1, 1.9], [1, 0.4]]).tolist() == [False, True]

    @pytest.mark.parametrize(
        ("name", "convex"),
        [("L", False), ("holed", False), ("two parts", False), ("slit", False), ("disc", True)],
    )
    def test_convexity(self, name, convex):
        assert Window.polygon(SHAPES[name]).is_convex is convex

    def test_slit_too_thin_to_change_the_area_still_breaks_convexity(self):
        thin = 1e-14
        ring = [(-1, -1), (1, -1), (1, 1), (thin, 1), (0, -0.5), (-thin, 1), (-1, 1)]
        window = Window.polygon(Polygon(ring))
        assert window.geometry.convex_hull.area - window.area <= 1e-12 * window.area
        assert not window.is_convex

    def test_rounding_at_large_coordinates_does_not_break_convexity(self):
        angles = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
        sides = shapely.segmentize(Polygon(np.c_[5e6 + 900 * np.cos(angles), 4e5 + 900 * np.sin(angles)]), 0.7)
        assert Window.polygon(sides).is_convex

    @pytest.mark.parametrize("name", SHAPES)
    def test_diameter_is_the_largest_distance_between_vertices(self, name):
        xy = shapely.get_coordinates(SHAPES[name])
        expected = max(math.dist(p, q) for p in xy for q in xy)
        assert Window.polygon(SHAPES[name]).diameter == pytest.approx(expected, rel=1e-15)

    def test_area_leaves_out_the_hole(self):
        assert Window.polygon(HOLED).area == 12.0

    def test_polygons_of_a_table_are_united_in_its_crs(self):
        halves = [shapely.box(0, 0, 500, 1000), shapely.box(500, 0, 1000, 1000)]
        table = geopandas.GeoDataFrame(geometry=halves, crs="EPSG:27700")
        whole = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
        for region in (table, table.geometry, table.__geo_interface__):
            assert Window.polygon(region, "EPSG:27700").geometry.equals(whole.geometry)
        assert Window.polygon(table).crs == whole.crs
        with pytest.raises(InputError, match=r"^crs: the geometry is in another coordinate system"):
            Window.polygon(table, "EPSG:2056")
        with pytest.raises(InputError, match=r"geographic|degrees|projected"):
            Window.polygon(table.to_crs("EPSG:4326"))

    def test_a_single_part_becomes_a_polygon_and_heights_are_dropped(self):
        window = Window.polygon(MultiPolygon([Polygon([(0, 0, 7), (1, 0, 7), (1, 1, 7), (0, 1, 7)])]))
        assert isinstance(window.geometry, Polygon)
        assert not window.geometry.has_z
        assert window.fingerprint() == Window.rectangle(0, 0, 1, 1).fingerprint()

    def test_many_points_in_a_detailed_polygon(self):
        window = Window.polygon(shapely.Point(0, 0).buffer(1, quad_segs=500))
        xy = np.random.default_rng(0).uniform(-1, 1, (10**6, 2))
        share = window.contains(xy).mean()
        assert share == pytest.approx(np.pi / 4, abs=0.002)

    @pytest.mark.parametrize(
        ("geometry", "rule"),
        [
            (Polygon(), "empty"),
            (Polygon([(0, 0), (1, 1), (2, 2)]), "positive area"),
            (Polygon([(0, 0), (2, 2), (2, 0), (0, 1)]), r"valid.*shapely\.make_valid"),
            (MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]), r"shapely\.make_valid"),
            (Polygon([(0, 0), (1, 0), (1, math.inf)]), "finite"),
            (LineString([(0, 0), (1, 1)]), "Polygon or MultiPolygon; got LineString"),
            ("POLYGON", "GeoJSON-like"),
            ({"type": "Polygon", "coordinates": "x"}, "GeoJSON-like"),
            (None, "GeoJSON-like"),
        ],
        ids=["empty", "no area", "bow tie", "overlapping parts", "infinite", "line", "text", "bad mapping", "none"],
    )
    def test_what_is_not_a_region_is_refused_with_the_rule(self, geometry, rule):
        with pytest.raises(InputError, match=rule):
            Window.polygon(geometry)

    def test_constructor_checks_too(self):
        with pytest.raises(InputError, match="got str"):
            Window("POLYGON")

    @pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2)])
    def test_contains_wants_pairs(self, shape):
        with pytest.raises(InputError, match=r"shape \(n, 2\)"):
            Window.rectangle(0, 0, 1, 1).contains(np.zeros(shape))

    def test_contains_of_no_points(self):
        assert Window.polygon(L_SHAPE).contains(np.empty((0, 2))).shape == (0,)


class TestResolution:
    @pytest.mark.parametrize(
        ("side", "expected"),
        [(670, 1e-5), (707, 1e-5), (708, 1e-4), (1e-3, 1e-10), (5e6, 0.1), (1e8, 10.0)],
    )
    def test_values(self, side, expected):
        assert Window.rectangle(0, 0, side, side).resolution == expected

    @given(st.floats(1e-6, 1e9))
    def test_is_the_largest_power_of_ten_below_the_bound(self, side):
        window = Window.rectangle(0, 0, side, side)
        bound = window.diameter / 1e7
        assert window.resolution <= bound < 10 * window.resolution * (1 + 1e-12)
        assert f"{window.resolution:e}".startswith("1.000000e")

    def test_bound_that_is_itself_a_power_of_ten_is_taken(self):
        assert Window.rectangle(0, 0, 600, 800).resolution == 1e-4


class TestCRS:
    @pytest.mark.parametrize("crs", ["EPSG:4326", 4258, "OGC:CRS84", pyproj.CRS(4979)], ids=str)
    def test_degrees_are_refused_with_the_remedy(self, crs):
        with pytest.raises(InputError, match=r"degrees.*to_crs=.*EPSG:32631"):
            Window.rectangle(0, 51, 1, 52, crs)

    @pytest.mark.parametrize("crs", ["EPSG:4978", "EPSG:5701"], ids=["geocentric", "vertical"])
    def test_what_is_no_projection_is_refused(self, crs):
        with pytest.raises(InputError, match="must be a map projection"):
            Window.rectangle(0, 0, 1, 1, crs)

    @pytest.mark.parametrize("crs", ["nonsense", "EPSG:99999999"])
    def test_unknown(self, crs):
        with pytest.raises(InputError, match=f"unknown coordinate reference system '{crs}'"):
            Window.rectangle(0, 0, 1, 1, crs)

    def test_wrong_type(self):
        with pytest.raises(InputError, match=r"must be a string, a number or a pyproj\.CRS; got dict"):
            Window.rectangle(0, 0, 1, 1, {"init": "epsg:27700"})

    @pytest.mark.parametrize(
        ("crs", "unit"),
        [("EPSG:27700", "metre"), ("EPSG:2225", "US survey foot"), ("EPSG:2223", "foot"), (None, "unit")],
    )
    def test_unit(self, crs, unit):
        assert Window.rectangle(0, 0, 1, 1, crs).unit == unit

    @pytest.mark.parametrize("spelling", [27700, "epsg:27700", pyproj.CRS(27700), pyproj.CRS(27700).to_wkt()])
    def test_every_spelling_is_stored_the_same_way(self, spelling):
        window = Window.rectangle(0, 0, 1, 1, spelling)
        assert window.crs == "EPSG:27700"
        assert window.fingerprint() == Window.rectangle(0, 0, 1, 1, "EPSG:27700").fingerprint()

    def test_same_crs(self):
        wkt = pyproj.CRS(27700).to_wkt()
        assert same_crs("EPSG:27700", wkt)
        assert same_crs(27700, "urn:ogc:def:crs:EPSG::27700")
        assert same_crs(None, None)
        assert not same_crs("EPSG:27700", None)
        assert not same_crs("EPSG:27700", "EPSG:3857")
        assert not same_crs("EPSG:2223", "EPSG:2222")

    def test_web_mercator_is_refused_with_the_remedy(self):
        with pytest.raises(InputError, match=r"Web Mercator.*protect less.*to_crs="):
            Window.rectangle(0, 0, 100, 100, 3857)

    def test_custom_projection_settles_to_one_text(self):
        for text in ("+proj=lcc +lat_1=10 +lat_2=20 +units=km", "+proj=utm +zone=30 +ellps=airy +towgs84=1,2,3"):
            once = projected_crs(text)
            assert projected_crs(once) == once


class TestIdentity:
    @pytest.mark.parametrize("name", SHAPES)
    @pytest.mark.parametrize("crs", [None, "EPSG:27700", "ESRI:102001", "+proj=lcc +lat_1=10 +lat_2=20 +units=km"])
    def test_geojson_round_trip_keeps_the_fingerprint(self, name, crs):
        window = Window.polygon(SHAPES[name], crs)
        through_text = json.loads(json.dumps(window.to_geojson(), indent=3))
        again = Window.from_geojson(through_text)
        assert again.fingerprint() == window.fingerprint()
        assert shapely.equals_exact(again.geometry, window.geometry)
        assert same_crs(again.crs, window.crs)

    @pytest.mark.parametrize("name", SHAPES)
    def test_order_of_parts_rings_and_vertices_does_not_matter(self, name):
        shape = SHAPES[name]
        expected = Window.polygon(shape).fingerprint()
        parts = shapely.get_parts(shape)[::-1]
        for shift in (1, 2):
            turned = [
                Polygon(_turn(part.exterior, shift), [_turn(ring, shift) for ring in part.interiors]) for part in parts
            ]
            assert Window.polygon(MultiPolygon(turned)).fingerprint() == expected
            assert Window.polygon(shapely.reverse(MultiPolygon(turned))).fingerprint() == expected

    def test_outer_rings_run_counter_clockwise(self):
        for shape in (HOLED, shapely.reverse(HOLED)):
            geometry = Window.polygon(shape).geometry
            assert geometry.exterior.is_ccw
            assert not geometry.interiors[0].is_ccw

    def test_a_rounding_error_or_another_crs_changes_the_fingerprint(self):
        marks = {
            Window.rectangle(0, 0, 1, 1).fingerprint(),
            Window.rectangle(0, 0, np.nextafter(1, 2), 1).fingerprint(),
            Window.rectangle(0, 0, 1, 1, "EPSG:27700").fingerprint(),
            Window.rectangle(0, 0, 1, 1, "EPSG:2223").fingerprint(),
        }
        assert len(marks) == 4

    def test_negative_zero_and_integers_do_not(self):
        assert Window.rectangle(-0.0, -0.0, 1, 1).fingerprint() == Window.rectangle(0.0, 0, 1.0, 1).fingerprint()
        document = Window.rectangle(0, 0, 1, 1).to_geojson()
        document["features"][0]["geometry"]["coordinates"] = [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]
        assert Window.from_geojson(document).fingerprint() == Window.rectangle(0, 0, 1, 1).fingerprint()

    def test_fingerprint_is_the_digest_of_the_stated_text(self):
        text = (
            '{"crs":null,"features":[{"geometry":{"coordinates":[[[0.0,0.0],[1.0,0.0],[1.0,1.0],[0.0,1.0],[0.0,0.0]]],'
            '"type":"Polygon"},"properties":{},"type":"Feature"}],"type":"FeatureCollection"}'
        )
        window = Window.rectangle(0, 0, 1, 1)
        assert canonical_json(window.to_geojson()) == text
        assert window.fingerprint() == "db9ad2af9e39296d9e4e58fec7f9cc18e45acecd903bd7f52a8c3b7f86eee467"

    def test_canonical_json_refuses_nan(self):
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical_json({"a": math.nan})

    def test_changing_the_dictionary_does_not_change_the_window(self):
        window = Window.rectangle(0, 0, 1, 1)
        window.to_geojson()["features"].clear()
        assert len(window.to_geojson()["features"]) == 1

    @pytest.mark.parametrize(
        ("document", "rule"),
        [
            ({"type": "Polygon", "coordinates": []}, "degrees.*to_crs"),
            ([], "'type'"),
            ({"type": "FeatureCollection", "crs": None, "features": []}, "nothing"),
            ({"type": "FeatureCollection", "crs": {"name": "x"}, "features": []}, "crs"),
            ({"type": "Point", "crs": None, "coordinates": [0, 0]}, "got Point"),
        ],
        ids=["no crs", "not a mapping", "no features", "bad crs", "point"],
    )
    def test_documents_that_are_no_window(self, document, rule):
        with pytest.raises(InputError, match=rule):
            Window.from_geojson(document)

    def test_several_features_are_united(self):
        document = Window.rectangle(0, 0, 1, 1, "EPSG:27700").to_geojson()
        document["features"] += Window.rectangle(1, 0, 3, 1).to_geojson()["features"]
        assert Window.from_geojson(document).bounds == (0, 0, 3, 1)
        assert Window.from_geojson(document).area == 3

    def test_repr_shows_the_public_window(self):
        assert repr(Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")) == (
            "Window(rectangle [529100, 529770] x [180680, 181350], EPSG:27700, metre)"
        )
        custom = repr(Window.polygon(L_SHAPE, "+proj=lcc +lat_1=10 +lat_2=20 +units=km"))
        assert custom == "Window(polygon in [0, 2] x [0, 2], a coordinate reference system without a code, kilometre)"

    def test_frozen(self):
        with pytest.raises(AttributeError):
            Window.rectangle(0, 0, 1, 1).crs = "EPSG:27700"

    def test_satisfies_the_domain_protocol(self):
        assert isinstance(Window.rectangle(0, 0, 1, 1), Domain)


def test_a_window_without_crs_needs_no_heavy_import():
    code = (
        "import sys; from dpppsynth.spatial.domains import Window; Window.rectangle(0, 0, 1, 1).fingerprint();"
        "print(sorted({'pyproj', 'pandas', 'geopandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _turn(ring, shift):
    """Start a closed ring at another vertex."""
    points = list(ring.coords)[:-1]
    return points[shift:] + points[:shift]
