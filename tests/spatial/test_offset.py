"""Public offsets: polygon layers and rasters that multiply an intensity."""

import json

import geopandas
import numpy as np
import pytest
import shapely
from shapely.geometry import Polygon

from dpppsynth.core.errors import InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear, LogLinearMean
from dpppsynth.spatial.offset import Offset

U_SHAPE = Polygon([(0, 0), (4, 0), (4, 3), (3, 3), (3, 1), (1, 1), (1, 2.5), (0.5, 2.5), (0, 3)])
WINDOWS = {
    "rectangle": Window.rectangle(0, 0, 4, 3),
    "U": Window.polygon(U_SHAPE),
    "hole": Window.polygon(shapely.box(0, 0, 4, 3).difference(shapely.Point(1.9, 1.6).buffer(1))),
}
LAYER = Offset([shapely.box(-1, -1, 1.3, 2.2), Polygon([(1.3, 0), (5, 0), (1.3, 5)])], [2.0, 0.5])
BUILDERS = {"triangles": regular_triangulation, "squares": regular_squares}
on_windows = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
both = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


class TestEvaluation:
    def test_value_of_the_polygon_and_zero_outside(self):
        points = np.array([[0, 0], [1.2, 2.1], [2, 1], [4.9, 0.01], [0, 2.3], [4, 3], [-5, 0]])
        np.testing.assert_array_equal(LAYER(points), [2, 2, 0.5, 0.5, 0, 0, 0])

    def test_on_a_shared_border_the_lower_number_counts(self):
        np.testing.assert_array_equal(LAYER(np.array([[1.3, 1.0], [1.3, 2.2], [1.3, 4.0]])), [2, 2, 0.5])

    def test_no_points(self):
        assert LAYER(np.empty((0, 2))).shape == (0,)

    def test_the_first_row_of_a_raster_is_the_top(self):
        raster = Offset.from_grid([[1, 2, 3], [4, 5, 6]], (10, 20, 16, 24))
        points = [(11, 23), (13, 23), (15, 23), (11, 21), (13, 21), (15, 21)]
        np.testing.assert_array_equal(raster(np.array(points)), [1, 2, 3, 4, 5, 6])
        np.testing.assert_allclose(shapely.area(raster.polygons), 4)
        np.testing.assert_array_equal(shapely.union_all(raster.polygons).bounds, (10, 20, 16, 24))

    def test_from_geodataframe(self):
        layer = geopandas.GeoDataFrame({"density": [2, 0.5]}, geometry=list(LAYER.polygons))
        points = np.random.default_rng(0).uniform(-1, 5, (200, 2))
        np.testing.assert_array_equal(Offset.from_geodataframe(layer, "density")(points), LAYER(points))
        with pytest.raises(
            InputError, match=r"offset: column 'people' not found; the layer has \['density', 'geometry'\]"
        ):
            Offset.from_geodataframe(layer, "people")

    def test_geojson_round_trip(self):
        again = Offset.from_geojson(json.loads(json.dumps(LAYER.to_geojson())))
        assert again.fingerprint == LAYER.fingerprint
        np.testing.assert_array_equal(again.values, LAYER.values)
        assert Offset(LAYER.polygons, [2.0, 0.6]).fingerprint != LAYER.fingerprint

    def test_values_are_a_read_only_copy(self):
        values = np.array([2.0, 0.5])
        offset = Offset(LAYER.polygons, values)
        values[0] = 99
        assert offset.values[0] == 2
        with pytest.raises(ValueError, match="read-only"):
            offset.values[0] = 0


class TestTotals:
    @both
    @on_windows
    def test_flat_field_integrates_to_the_offset(self, build, window):
        mesh = build(window, shape=(6, 5))
        want = shapely.area(shapely.intersection(LAYER.polygons, window.geometry)) @ LAYER.values
        flat = LogLinear(mesh, np.full(len(mesh.vertices), np.log(3.0)), LAYER)
        assert flat.total == pytest.approx(3 * want, rel=1e-12)
        assert mesh.integrate(LAYER.restrict(mesh)).sum() == pytest.approx(want, rel=1e-12)

    @both
    @on_windows
    def test_log_linear_field_integrates_by_polygon(self, build, window):
        # On a window that is one of the offset's own polygons the offset is a plain factor.
        a, b, c = 0.7, -0.4, 0.2
        total = 0.0
        for polygon, value in zip(LAYER.polygons, LAYER.values, strict=True):
            part = shapely.intersection(polygon, window.geometry)
            mesh = build(Window.polygon(part), shape=(7, 6))
            total += value * LogLinear(mesh, a * mesh.vertices[:, 0] + b * mesh.vertices[:, 1] + c).total
        mesh = build(window, shape=(6, 5))
        whole = LogLinear(mesh, a * mesh.vertices[:, 0] + b * mesh.vertices[:, 1] + c, LAYER)
        assert whole.total == pytest.approx(total, rel=1e-11)
        fields = np.stack([whole.log_values, whole.log_values + np.log(2)])
        np.testing.assert_allclose(LogLinearMean(mesh, fields, LAYER).totals, [total, 2 * total], rtol=1e-11)

    @both
    def test_evaluation_multiplies(self, build):
        mesh = build(WINDOWS["hole"], shape=(6, 5))
        points = np.random.default_rng(1).uniform((0, 0), (4, 3), (500, 2))
        points = points[mesh.domain.contains(points)]
        values = np.random.default_rng(2).normal(size=len(mesh.vertices))
        plain, times = LogLinear(mesh, values), LogLinear(mesh, values, LAYER)
        np.testing.assert_allclose(times(points), plain(points) * LAYER(points), rtol=1e-14)

    def test_an_offset_that_misses_the_window_integrates_to_zero(self):
        mesh = regular_triangulation(WINDOWS["rectangle"], shape=(3, 3))
        assert LogLinear(mesh, np.zeros(9), Offset([shapely.box(9, 9, 10, 10)], [1.0])).total == 0


BOX = shapely.box(0, 0, 1, 1)
REFUSED = {
    "overlapping": ([BOX, shapely.box(0.9, 0, 2, 1)], [1, 2], "must not overlap"),
    "the same polygon twice": ([BOX, BOX], [1, 2], "must not overlap"),
    "negative": ([BOX], [-1], "non-negative"),
    "not finite": ([BOX], [np.nan], "finite"),
    "infinite": ([BOX], [np.inf], "finite"),
    "all zero": ([BOX], [0], "not all zero"),
    "wrong length": ([BOX], [1, 2], "one value per polygon"),
    "empty": ([], [], "at least one polygon"),
    "crosses itself": ([Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])], [1], "make_valid"),
    "a line": ([shapely.LineString([(0, 0), (1, 1)])], [1], "got LineString, .* function of places"),
    "missing": ([None], [1], "valid polygons"),
}


class TestRefusals:
    @pytest.mark.parametrize("case", REFUSED)
    def test_layers(self, case):
        polygons, values, message = REFUSED[case]
        with pytest.raises(InputError, match=f"offset: .*{message}"):
            Offset(polygons, values)

    def test_polygons_may_touch(self):
        assert len(Offset([BOX, shapely.box(1, 0, 2, 1)], [1, 2]).values) == 2

    def test_a_raster_has_rows_and_columns(self):
        with pytest.raises(InputError, match="values"):
            Offset.from_grid([1, 2], (0, 0, 1, 1))

    def test_bounds_of_a_raster_in_wrong_order(self):
        with pytest.raises(InputError, match="bounds"):
            Offset.from_grid([[1, 2], [3, 4]], (0, 1, 1, 0))
