"""Lengths on the map against true ones: closed forms, geodesics, and the domains that are refused."""

import json
import math

import geopandas
import networkx as nx
import numpy as np
import pytest
import shapely
from pyproj import CRS, Geod, Transformer

from dpppsynth.core.errors import InputError
from dpppsynth.core.map_scale import STEPS, lengths_on_map, scale_factor, supremum
from dpppsynth.io import read_network, read_window
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window

WGS84 = CRS.from_epsg(4326).ellipsoid
E2 = 1 - (WGS84.semi_minor_metre / WGS84.semi_major_metre) ** 2
STRETCHED = ["EPSG:3395", "EPSG:4087", "EPSG:32662", "EPSG:6933"]
# Windows about a place (lon, lat) of half a width, in units of the map.
PLACES = {
    "EPSG:32633": (12.1, 52.0, 60_000),
    "EPSG:32733": (17.4, -33.0, 20_000),
    "EPSG:27700": (-6.5, 57.5, 90_000),
    "EPSG:2154": (-1.0, 48.0, 100_000),
    "EPSG:3035": (24.0, 60.0, 400_000),
    "EPSG:3395": (10.0, 12.0, 30_000),
    "EPSG:4087": (10.0, 10.0, 30_000),
    "EPSG:32662": (-70.0, -12.0, 100_000),
    "EPSG:6933": (5.0, 30.0, 40_000),
    "EPSG:2263": (-73.9, 40.7, 200_000),
    # Northings come first, a meridian of its own, grads, an oblique projection, a pole, the south, a sphere.
    "EPSG:31467": (10.5, 51.0, 50_000),
    "EPSG:31253": (16.0, 47.5, 40_000),
    "EPSG:27572": (2.5, 46.5, 80_000),
    "EPSG:5514": (15.0, 50.0, 100_000),
    "EPSG:3031": (0.0, -90.0, 500_000),
    "EPSG:2048": (19.5, -33.0, 30_000),
    "EPSG:9311": (-100.0, 47.0, 100_000),
}
UTM_EDGE = (166_100, 5_540_000, 170_100, 5_544_000)


def around(code, lon, lat, half):
    """Box on the map about a place on earth."""
    x, y = Transformer.from_crs(CRS(code).geodetic_crs, code, always_xy=True).transform(*_own(code, lon, lat))
    return shapely.box(x - half, y - half, x + half, y + half)


def _own(code, lon, lat):
    """A place in degrees from Greenwich as the CRS's own coordinates."""
    base = CRS(code).geodetic_crs
    meridian, turn = base.prime_meridian, math.degrees(base.axis_info[0].unit_conversion_factor)
    return (lon - math.degrees(meridian.longitude * meridian.unit_conversion_factor)) / turn, lat / turn


def lengths(code, start, end):
    """True lengths of straight pieces of the map, in its unit, by the inverse geodesic problem."""
    crs = CRS(code)
    base = crs.geodetic_crs
    back = Transformer.from_crs(crs, base, always_xy=True)
    turn = math.degrees(base.axis_info[0].unit_conversion_factor)
    places = [np.array(back.transform(*xy.T)) * turn for xy in (start, end)]
    metres = Geod(a=crs.ellipsoid.semi_major_metre, b=crs.ellipsoid.semi_minor_metre).inv(*places[0], *places[1])[2]
    return metres / crs.axis_info[0].unit_conversion_factor


def latitude(code, y):
    return math.radians(Transformer.from_crs(code, 4326, always_xy=True).transform(0.0, y)[1])


class TestClosedForms:
    def test_mercator_stretches_by_the_secant_of_the_latitude_on_the_ellipsoid(self):
        found = lengths_on_map(shapely.box(0, 6_900_000, 5_000, 7_100_000), "EPSG:3395")
        low, high = (latitude("EPSG:3395", y) for y in (6_900_000, 7_100_000))
        expected = [math.sqrt(1 - E2 * math.sin(phi) ** 2) / math.cos(phi) for phi in (low, high)]
        assert expected[1] <= found.largest <= expected[1] + 3e-6
        assert expected[0] - 1e-4 <= found.smallest <= expected[0]

    @pytest.mark.parametrize("half", [5.0, 500.0])
    def test_transverse_mercator_has_its_stated_factor_on_the_central_meridian(self, half):
        found = lengths_on_map(shapely.box(5e5 - half, 5e6 - half, 5e5 + half, 5e6 + half), "EPSG:32633")
        assert 0.9996 <= found.largest <= 0.9996 + 3e-6
        assert 0.9996 - 3e-6 <= found.smallest <= 0.9996 + 1e-12

    def test_equirectangular_degrees_of_longitude_shrink_and_those_of_latitude_bulge(self):
        # The map is made on a sphere, so meridians are stretched at the equator, which PROJ's own factors do not see.
        found = lengths_on_map(shapely.box(-5_000, -5_000, 5_000, 5_000), "EPSG:4087")
        assert 1 / (1 - E2) <= found.largest <= 1 / (1 - E2) + 3e-6
        assert found.smallest <= 1 <= found.smallest + 3e-6
        north = lengths_on_map(shapely.box(0, 5_990_000, 10_000, 6_000_000), "EPSG:4087")
        phi = 6_000_000 / WGS84.semi_major_metre
        expected = math.sqrt(1 - E2 * math.sin(phi) ** 2) / math.cos(phi)
        assert expected <= north.largest <= expected + 3e-6

    def test_a_unit_of_its_own_changes_no_factor(self):
        metre, foot = (CRS("+proj=utm +zone=33 +datum=WGS84" + more).to_wkt() for more in ("", " +units=us-ft"))
        box = (200_000, 5_000_000, 210_000, 5_010_000)
        first = lengths_on_map(shapely.box(*box), metre)
        second = lengths_on_map(shapely.box(*(v / (1200 / 3937) for v in box)), foot)
        assert np.allclose(first, second, atol=2.1e-6)

    def test_a_meridian_of_its_own_changes_no_factor(self):
        # The same projection counted from Greenwich and from Ferro: PROJ's own factors differ by 2 %.
        ellipsoid = "+proj=tmerc +lat_0=0 +k=1 +x_0=0 +y_0=-5000000 +ellps=bessel"
        greenwich = CRS(f"{ellipsoid} +lon_0=16.3333333333333").to_wkt()
        box = shapely.box(-100_000, 200_000, -90_000, 210_000)
        assert np.allclose(lengths_on_map(box, greenwich), lengths_on_map(box, "EPSG:31253"), atol=2.1e-6)

    @pytest.mark.parametrize("crs", ['LOCAL_CS["site",UNIT["metre",1]]', None])
    def test_a_plane_without_a_projection_has_no_factors(self, crs):
        assert lengths_on_map(shapely.box(0, 0, 1e6, 1e6), crs) == (1.0, 1.0)
        assert Window.rectangle(0, 0, 1e6, 1e6, crs).scale_factor == 1.0

    @pytest.mark.parametrize("crs", ["EPSG:32633+5773", "+proj=utm +zone=33 +ellps=WGS84 +towgs84=1,2,3 +type=crs"])
    def test_heights_and_ways_to_another_datum_change_no_factor(self, crs):
        box = (200_000, 5_000_000, 210_000, 5_010_000)
        plain = Window.rectangle(*box, "EPSG:32633").scale_factor
        assert Window.rectangle(*box, crs).scale_factor == pytest.approx(plain, abs=2.1e-6)


@pytest.mark.parametrize("code", PLACES)
class TestGeodesics:
    def test_no_short_path_is_longer_on_the_map_than_its_true_length_times_the_factor(self, code):
        box, rng = around(code, *PLACES[code]), np.random.default_rng(20)
        found = lengths_on_map(box, code)
        x0, y0, x1, y1 = box.bounds
        start = rng.uniform((x0, y0), (x1, y1), (4000, 2))
        # Corners and sides, where the extremes are.
        start[:400] = np.array([[x0, y0], [x0, y1], [x1, y0], [x1, y1]] * 100)
        start[400:800, 0] = np.where(rng.random(400) < 0.5, x0, x1)
        angle, far = rng.uniform(0, 2 * np.pi, 4000), 2e-4 * (x1 - x0)
        end = np.clip(start + far * np.column_stack([np.cos(angle), np.sin(angle)]), (x0, y0), (x1, y1))
        moved = np.hypot(*(end - start).T)
        kept = moved > far / 10
        ratio = moved[kept] / lengths(code, start[kept], end[kept])
        assert ratio.max() <= found.largest + 1e-9
        assert ratio.min() >= found.smallest - 1e-9
        assert found.largest - ratio.max() < 1e-3

    def test_the_factor_is_a_public_number_of_few_digits(self, code):
        largest = lengths_on_map(around(code, *PLACES[code]), code).largest
        assert largest == round(largest * STEPS) / STEPS


class TestRegions:
    def test_only_the_region_counts_not_its_bounding_box(self):
        corner = shapely.Polygon([(500_000, 5e6), (900_000, 5e6), (500_000, 5.1e6)])
        far = shapely.Polygon([(500_000, 5e6), (900_000, 5.1e6), (500_000, 5.1e6)])
        cut = shapely.intersection(corner, shapely.box(4e5, 4e6, 600_000, 6e6))
        assert lengths_on_map(cut, "EPSG:32633").largest < lengths_on_map(far, "EPSG:32633").largest
        whole = lengths_on_map(shapely.box(*cut.bounds), "EPSG:32633").largest
        parts = shapely.MultiPolygon([shapely.box(5e5, 5e6, 500_100, 5_000_100), shapely.box(6e5, 5e6, 600_001, 5.1e6)])
        assert lengths_on_map(parts, "EPSG:32633").largest == pytest.approx(whole, abs=3e-6)

    def test_a_network_counts_along_its_edges(self):
        west = LinearNetwork([[170_000, 5e6], [170_000, 5.01e6]], [[0, 1]], "EPSG:32633")
        bent = shapely.LineString([(500_000, 5e6), (170_000, 5.005e6), (500_000, 5.01e6)])
        curve = LinearNetwork([[500_000, 5e6], [500_000, 5.01e6]], [[0, 1]], "EPSG:32633", lines=[bent])
        straight = LinearNetwork([[500_000, 5e6], [500_000, 5.01e6]], [[0, 1]], "EPSG:32633")
        assert west.scale_factor == pytest.approx(curve.scale_factor, abs=5e-6)
        assert west.scale_factor > 1.0009
        assert straight.scale_factor == 1.0

    def test_a_supremum_at_a_corner_a_side_or_inside_is_bounded_closely(self):
        shape = shapely.Polygon([(0, 0), (3, 0.2), (2.5, 2), (0.3, 1.4)])
        inside = np.random.default_rng(1).uniform((0, 0), (3, 2), (200_000, 2))
        inside = inside[shapely.contains_xy(shape, inside)]
        functions = [
            lambda xy: 0.01 * xy[:, 0],
            lambda xy: -0.01 * (xy[:, 0] - 1.3) ** 2 - 0.02 * (xy[:, 1] - 0.8) ** 2,
            lambda xy: 0.001 * np.sin(2 * xy[:, 0]) * np.cos(xy[:, 1]),
            lambda xy: 0.01 * np.maximum(np.abs(xy[:, 0] - 1), xy[:, 1]),
        ]
        for function in functions:
            bound = supremum(function, shape, -math.inf)
            assert function(inside).max() <= bound <= function(inside).max() + 2e-4

    def test_a_supremum_inside_a_cell_is_not_missed_by_a_hair(self):
        shape = shapely.box(0, 0, 1, 1)
        shapely.prepare(shape)
        assert 0 <= supremum(lambda xy: -0.01 * ((xy - (0.317, 0.719)) ** 2).sum(axis=1), shape, -math.inf) < 2e-4

    def test_places_outside_the_projection_are_refused(self):
        with pytest.raises(InputError, match=r"crs: the domain lies partly outside the range of the projection"):
            Window.rectangle(1e9, 5e6, 1.1e9, 5.1e6, "EPSG:32633")

    def test_a_projection_that_cannot_be_computed_is_refused(self):
        with pytest.raises(InputError, match=r"crs: PROJ cannot compute the projection of EPSG:2305.*to_crs="):
            Window.rectangle(0, 0, 1000, 1000, "EPSG:2305")


class TestRefusals:
    @pytest.mark.parametrize("crs", STRETCHED)
    def test_a_window_where_lengths_are_five_per_cent_off_names_the_zone(self, crs):
        region = around(crs, 13.4, 54.0, 2_000)
        with pytest.raises(InputError, match=r"crs: lengths on the map of EPSG.*to_crs=.*EPSG:32633.*UTM zone here"):
            Window(region, crs)

    def test_both_ways_of_being_off_are_refused_and_no_more(self):
        ellipsoid, box = "+proj=tmerc +lon_0=15 +x_0=0 +ellps=WGS84 +k=", (-500, 5e6, 500, 5_001_000)
        for k, fine in ((1.0499, True), (1.0502, False), (0.9501, True), (0.9498, False)):
            crs = CRS(f"{ellipsoid}{k}").to_wkt()
            if fine:
                assert Window.rectangle(*box, crs).scale_factor == pytest.approx(max(1, k), abs=3e-6)
            else:
                with pytest.raises(InputError, match="crs: lengths on the map of a coordinate reference system"):
                    Window.rectangle(*box, crs)

    def test_every_way_to_make_a_domain_refuses(self, tmp_path):
        crs = "EPSG:3395"
        region = around(crs, 13.4, 54.0, 2_000)
        x0, y0, x1, y1 = region.bounds
        street = shapely.LineString([(x0, y0), (x1, y1)])
        layer = geopandas.GeoDataFrame(geometry=[region], crs=crs)
        streets = geopandas.GeoDataFrame(geometry=[street], crs=crs)
        layer.to_file(tmp_path / "window.gpkg")
        streets.to_file(tmp_path / "streets.gpkg")
        plain = Window(region).to_geojson() | {
            "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3395"}}
        }
        (tmp_path / "window.geojson").write_text(json.dumps(plain))
        graph = nx.MultiGraph(crs=crs)
        graph.add_node(0, x=x0, y=y0)
        graph.add_node(1, x=x1, y=y1)
        graph.add_edge(0, 1)
        doors = [
            lambda: Window.rectangle(x0, y0, x1, y1, crs),
            lambda: Window.polygon(region, crs),
            lambda: Window.from_geojson(plain),
            lambda: read_window(tmp_path / "window.gpkg"),
            lambda: read_window(tmp_path / "window.geojson"),
            lambda: LinearNetwork([[x0, y0], [x1, y1]], [[0, 1]], crs),
            lambda: LinearNetwork.from_geodataframe(streets),
            lambda: LinearNetwork.from_networkx(graph),
            lambda: read_network(tmp_path / "streets.gpkg"),
        ]
        for door in doors:
            with pytest.raises(InputError, match="crs: lengths on the map of EPSG:3395"):
                door()

    def test_re_projected_lines_and_windows_are_accepted(self, tmp_path):
        region = around("EPSG:3395", 13.4, 54.0, 2_000)
        geopandas.GeoDataFrame(geometry=[region], crs="EPSG:3395").to_file(tmp_path / "window.gpkg")
        assert read_window(tmp_path / "window.gpkg", to_crs="EPSG:32633").scale_factor == 1.0


class TestFactor:
    def test_it_is_one_where_the_map_is_everywhere_smaller(self):
        assert scale_factor(shapely.box(529_100, 180_680, 529_770, 181_350), "EPSG:27700") == 1.0

    def test_at_the_edge_of_a_zone_it_is_what_geodesics_say(self):
        window = Window.rectangle(*UTM_EDGE, "EPSG:32633")
        start = np.array([[UTM_EDGE[0], y] for y in np.linspace(UTM_EDGE[1], UTM_EDGE[3] - 10, 50)])
        ratio = 10 / lengths("EPSG:32633", start, start + np.array([0, 10]))
        assert window.scale_factor == pytest.approx(ratio.max(), abs=3e-6)
        assert window.scale_factor >= ratio.max() - 1e-9 > 1.0009
