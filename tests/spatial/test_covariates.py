"""Public covariates: standardised columns on the mesh of a field."""

import geopandas
import numpy as np
import pytest
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.raster_layers import RasterLayer

BOX = (0.0, 0.0, 1000.0, 800.0)
SQUARE = Window.rectangle(*BOX, "EPSG:27700")
DISK = Window.polygon(shapely.Point(480, 410).buffer(380), "EPSG:27700")
STREETS = LinearNetwork([[60, 70], [940, 70], [940, 730], [60, 730]], [[0, 1], [1, 2], [2, 3], [3, 0]], "EPSG:27700")
ROUGH = RasterLayer(np.random.default_rng(2).normal(3, 2, (16, 20)), BOX, label="rough.tif")


def east(xy):
    return xy[:, 0]


class TestDesign:
    @pytest.mark.parametrize("build", [regular_triangulation, regular_squares])
    @pytest.mark.parametrize("window", [SQUARE, DISK], ids=["square", "disk"])
    def test_linear_functions_keep_their_values(self, build, window):
        """At vertices whose cells are whole; at the border cells reach to one side alone."""
        mesh = build(window, shape=(9, 8))
        design = Covariates({"east": east}).on(mesh)
        assert design.over == "window"
        x, y = np.random.default_rng(1).uniform((0, 0), (1000, 800), (100_000, 2)).T
        inside = window.contains(np.column_stack([x, y]))
        assert design.mean[0] == pytest.approx(x[inside].mean(), rel=0.01)
        assert design.sd[0] == pytest.approx(x[inside].std(), rel=0.01)
        wrong = np.abs(design.values[:, 0] - (mesh.vertices[:, 0] - design.mean[0]) / design.sd[0])
        whole = mesh.measure > 0.999 * mesh.measure.max()
        assert whole.sum() >= 16
        assert wrong[whole].max() < 0.03
        assert wrong[mesh.measure > 0.2 * mesh.measure.max()].max() < 0.25

    def test_integrals_are_kept(self):
        """A raster finer than the mesh: its integral over the window, and mean and standard deviation before."""
        mesh = regular_triangulation(SQUARE, shape=(6, 5))
        design = Covariates({"rough": ROUGH}).on(mesh)
        assert design.mean[0] == pytest.approx(ROUGH.values.mean(), abs=0.02)
        assert design.sd[0] == pytest.approx(ROUGH.values.std(), rel=0.02)
        assert mesh.measure @ design.values[:, 0] == pytest.approx(0, abs=0.002 * SQUARE.area)
        assert 0.05 < design.values[:, 0].std() < 0.9

    @pytest.mark.slow
    def test_with_an_offset_the_population_weighs(self):
        mesh = regular_triangulation(SQUARE, shape=(12, 10))
        offset = Offset.from_grid([[9.0, 1.0]], BOX)
        design = Covariates({"east": east}).on(mesh, offset)
        assert design.over == "offset"
        assert design.mean[0] == pytest.approx(0.9 * 250 + 0.1 * 750, rel=0.01)

    def test_along_streets_each_segment_has_its_average(self):
        mesh = SegmentCells.of(network_mesh(STREETS, 90.0))
        design = Covariates({"east": east}).on(mesh)
        assert design.over == "network"
        np.testing.assert_allclose(design.values[:, 0] * design.sd[0] + design.mean[0], mesh.vertices[:, 0], atol=1e-6)
        at = STREETS.coordinates(STREETS.positions(np.array([[500.0, 70.0], [940.0, 400.0]])))
        assert np.isfinite(at).all()
        assert mesh.element_measure @ design.values[:, 0] == pytest.approx(0, abs=1e-6)

    def test_columns_stand_in_the_order_of_names(self):
        mesh = regular_triangulation(SQUARE, shape=(9, 8))
        both = Covariates({"rough": ROUGH, "east": east}).on(mesh)
        assert both.names == ("rough", "east")
        np.testing.assert_allclose(both.values[:, 1], Covariates({"east": east}).on(mesh).values[:, 0], atol=1e-9)
        assert both.fingerprint != Covariates({"east": east, "rough": ROUGH}).on(mesh).fingerprint

    def test_polygons_of_a_geodataframe(self):
        shapes = [shapely.box(0, 0, 500, 800), shapely.box(500, 0, 1000, 800)]
        layer = geopandas.GeoDataFrame({"deprivation": [3, 7]}, geometry=shapes, crs="EPSG:27700")
        design = Covariates({"deprivation": (layer, "deprivation")}).on(regular_triangulation(SQUARE, shape=(9, 8)))
        assert (design.mean[0], design.sd[0]) == pytest.approx((5, 2), rel=0.01)


def hole(xy):
    return np.where(xy[:, 0] < 100, np.nan, xy[:, 1])


ABROAD = RasterLayer(ROUGH.values, BOX, crs="EPSG:32630", label="abroad.tif")
SHORT = RasterLayer(ROUGH.values, (0, 0, 750, 800), label="short.tif")
REFUSED = {
    "the same everywhere": ({"flat": lambda xy: np.full(len(xy), 3.0)}, r"'flat' is the same everywhere"),
    "without values": ({"hole": hole}, r"'hole': 1\d % of the window has no value; let the function give a number"),
    "a short raster": ({"short": SHORT}, r"'short': short.tif: 25 % of the window has no value"),
    "another CRS": ({"abroad": ABROAD}, r"'abroad': abroad.tif: is in the coordinate system EPSG:32630"),
    "two that tell the same": ({"a": east, "b": lambda xy: 5 - 3 * xy[:, 0], "c": ROUGH}, r"'a', 'b' tell the same"),
    "wrong shape": ({"bad": lambda xy: xy}, r"must give one number for each"),
    "words": ({"bad": lambda xy: np.full(len(xy), "x")}, r"must be real numbers"),
    "a function that raises": ({"bad": lambda xy: 1 // 0}, r"'bad': the function failed with ZeroDivisionError"),
    "no number": ({"bad": lambda xy: np.full(len(xy), np.nan)}, r"'bad': 100 % of the window has no value"),
    "infinite": ({"big": lambda xy: xy[:, 0] * np.inf}, r"'big' has values that are infinite, or larger than 1e\+100"),
    "squares that overflow": ({"big": lambda xy: -1e154 * xy[:, 0]}, r"'big' has values that are infinite, or larger"),
    "huge cells": ({"big": RasterLayer([[1e300, 1.0]], BOX)}, r"'big' has values that are infinite, or larger"),
}


class TestRefusals:
    @pytest.mark.parametrize("case", REFUSED)
    def test_on_a_domain(self, case):
        layers, message = REFUSED[case]
        with pytest.raises(InputError, match=rf"^covariates: .*{message}"):
            Covariates(layers).on(regular_triangulation(SQUARE, shape=(9, 8)))

    def test_values_up_to_the_largest_are_standardised(self):
        mesh = regular_triangulation(SQUARE, shape=(9, 8))
        large, small = (Covariates({"a": lambda xy, k=k: k * xy[:, 0]}).on(mesh).values for k in (9e96, 1.0))
        np.testing.assert_allclose(large, small, atol=1e-9)

    @pytest.mark.parametrize("given", [{}, None, [east], {"": east}, {1: east}, {"a\nb": east}, {"a": 3}, {"a": "b"}])
    def test_of_another_kind(self, given):
        with pytest.raises(InputError, match=r"^covariates: "):
            Covariates(given)
