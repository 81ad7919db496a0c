"""Windows of several parts: gaps are told, closed and left alone, and re-projection keeps districts together."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
import shapely
from shapely import MultiPolygon, Polygon, box
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.contract.cautions import cautions
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_window
from dpppsynth.privacy import AlphaNeighbours, Guarantee, PureDP, ReplaceOne

GAP = 0.0004
DISTRICTS = [box(530_000, 180_000, 530_500, 181_000), box(530_500 + GAP, 180_000, 531_000, 181_000)]
PROMISE = Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "theorem", ())
REMEDY = re.compile(r"join(?:=| )([0-9.e-]+[0-9])")


def written(path, shapes, crs="EPSG:27700"):
    """GeoJSON file; without a CRS its coordinates are degrees."""
    features = [{"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(each)} for each in shapes]
    member = {} if crs is None else {"crs": {"type": "name", "properties": {"name": crs}}}
    path.write_text(json.dumps({"type": "FeatureCollection", **member, "features": features}))
    return path


class TestGaps:
    def test_the_advised_tolerance_makes_one_district(self):
        apart = dps.Window.polygon(MultiPolygon(DISTRICTS), "EPSG:27700")
        (said,) = cautions(PROMISE, apart, 1000)
        assert "2 of its parts are nearer to each other than 25 metres, and the smallest gap is 0.0004" in said
        tolerance = float(REMEDY.search(said)[1])
        whole = dps.Window.polygon(MultiPolygon(DISTRICTS), "EPSG:27700", join=tolerance)
        assert cautions(PROMISE, whole, 1000) == ()
        assert whole.is_rectangle
        assert whole.bounds == apart.bounds
        assert whole.changes == (f"filled gaps up to {tolerance:g} wide: 2 parts became 1, an area of 0.4 was added",)
        assert dps.Window.from_geojson(whole.to_geojson()).fingerprint() == whole.fingerprint()

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (box(530_000, 180_000, 530_500, 180_500), box(530_500 + GAP / 2, 180_500 + GAP, 531_000, 181_000)),
            (box(530_000, 180_000, 530_500, 180_500), box(530_000, 180_500 + GAP, 530_500 - 3 * GAP, 181_000)),
            (
                Polygon([(530_000, 180_000), (530_500, 180_001), (530_000, 180_002)]),
                Polygon([(530_500 + GAP, 180_001), (531_000, 180_400), (531_000, 180_401)]),
            ),
            (box(0, 0, 6e6, 6e6), box(6e6 + GAP, 6e6 + GAP, 9e6, 9e6)),
            (box(0, 0, 1, 1), box(1 + 1e-15, 1 + 1e-15, 2, 2)),
        ],
        ids=["corners", "sides", "tips", "large", "rounding"],
    )
    def test_districts_that_face_each_other_with_corners(self, first, second):
        apart = dps.Window.polygon(MultiPolygon([first, second]))
        (said,) = apart.severed(25.0)
        tolerance = float(REMEDY.search(said)[1])
        whole = dps.Window.polygon(apart.geometry, join=tolerance)
        assert whole.geometry.geom_type == "Polygon"
        assert whole.severed(25.0) == ()
        assert "2 parts became 1" in whole.changes[0]
        near = 2 * tolerance + 1e-10 * apart.bounds[2]
        between = first.buffer(near).intersection(second.buffer(near))
        lost = apart.geometry.difference(whole.geometry)
        added = whole.geometry.difference(apart.geometry)
        for changed in (lost, added.difference(between)):
            assert changed.buffer(-1e-14 * apart.bounds[2]).is_empty

    def test_a_board_of_chess(self):
        step = 100 + GAP
        cells = [box(i * step, j * step, i * step + 100, j * step + 100) for i in range(8) for j in range(i % 2, 8, 2)]
        board = dps.Window.polygon(MultiPolygon(cells))
        (said,) = board.severed(25.0)
        assert "49 pairs of its parts" in said
        whole = dps.Window.polygon(board.geometry, join=float(REMEDY.search(said)[1]))
        assert whole.severed(25.0) == ()
        assert whole.geometry.geom_type == "Polygon"
        assert whole.area == pytest.approx(board.area, rel=1e-9)

    def test_only_gaps_that_alpha_reaches(self):
        parts = dps.Window.polygon(MultiPolygon([box(0, 0, 9, 9), box(10, 0, 20, 9), box(22, 0, 30, 9)]))
        for reach, text in ((1.0, None), (1.5, "2 of its parts"), (2.5, "2 pairs of its parts"), (14.0, "3 pairs")):
            said = parts.severed(reach)
            assert len(said) == (text is not None)
            assert text is None or text in said[0]
        everywhere = Guarantee(ReplaceOne(), PureDP(1.0), "theorem", ())
        assert cautions(everywhere, parts, 1000) == ()

    def test_parts_that_touch_are_joined_by_a_path(self):
        assert dps.Window.polygon(MultiPolygon([box(0, 0, 9, 9), box(9, 9, 20, 20)])).severed(5.0) == ()

    def test_nothing_else_changes(self):
        notched = box(0, 0, 10, 10).difference(box(4, 5, 6, 10)).difference(box(1, 1, 2, 2))
        apart = notched.union(box(10.01, 0, 15, 10)).union(box(16, 0, 20, 10))
        whole = dps.Window.polygon(apart, join=0.02)
        assert whole.geometry.symmetric_difference(apart.union(box(10, 0, 10.01, 10))).area < 1e-9
        assert "3 parts became 2" in whole.changes[0]
        assert dps.Window.polygon(notched, join=0.02).changes == ()

    def test_many_districts_with_slanted_borders(self):
        around = box(530_000, 180_000, 531_000, 181_000)
        xy = np.random.default_rng(1).uniform((530_000, 180_000), (531_000, 181_000), (300, 2))
        seeds = shapely.MultiPoint(xy)
        cells = [shapely.intersection(each, around) for each in shapely.voronoi_polygons(seeds).geoms]
        shrunk = MultiPolygon([shapely.buffer(each, -GAP / 2, join_style="mitre") for each in cells])
        assert len(dps.Window.polygon(shrunk).geometry.geoms) == 300
        whole = dps.Window.polygon(shrunk, join=1.01 * GAP)
        assert whole.is_convex
        assert whole.severed(25.0) == ()

    @pytest.mark.parametrize("tolerance", [0, -1.0, np.inf, "wide"])
    def test_a_tolerance_is_a_distance(self, tolerance):
        with pytest.raises(InputError, match="join: must be a positive distance"):
            dps.Window.polygon(box(0, 0, 1, 1), join=tolerance)


class TestCommandLine:
    def test_check_names_the_gap_and_takes_the_option_it_names(self, tmp_path):
        file = written(tmp_path / "districts.geojson", DISTRICTS)
        ask = ["check", "--method", "laplace", "--epsilon", 1, "--alpha", 25, "--n", 500, "--window-file", file]
        said = spoken(run(*ask))
        assert "2 of its parts are nearer to each other than 25 metres" in said
        mended = spoken(run(*ask, "--join", REMEDY.search(said)[1]))
        assert "of its parts are nearer" not in mended
        assert "window: filled gaps up to 0.0005 wide: 2 parts became 1" in mended

    def test_inspect_names_gaps_that_matter_to_any_radius(self, tmp_path):
        (tmp_path / "p.csv").write_text("x,y\n530100,180100\n530200,180300\n")
        window = read_window(written(tmp_path / "districts.geojson", DISTRICTS))
        (remark,) = inspect_points(tmp_path / "p.csv", window, report_to=tmp_path).remarks
        assert "the smallest gap is 0.0004" in remark
        wide = dps.Window.polygon(MultiPolygon([DISTRICTS[0], box(530_550, 180_000, 531_000, 181_000)]), "EPSG:27700")
        assert inspect_points(tmp_path / "p.csv", wide, report_to=tmp_path).remarks == ()


class TestReprojection:
    def test_polygons_split_at_180_degrees(self, tmp_path):
        west = Polygon([(178, -19), (180, -19), (180, -17.3), (180, -16), (178, -16)])
        east = Polygon([(-180, -19), (-178.5, -19), (-178.5, -16), (-180, -16), (-180, -17.3)])
        window = read_window(written(tmp_path / "fiji.geojson", [west, east], None), to_crs="EPSG:3460")
        assert window.geometry.geom_type == "Polygon"
        assert not window.geometry.interiors

    def test_a_polygon_drawn_across_180_degrees(self, tmp_path):
        parts = [box(178, -19, 179.5, -16), Polygon([(179.5, -19), (-179, -19), (-179, -16), (179.5, -16)])]
        window = read_window(written(tmp_path / "fiji.geojson", parts, None), to_crs="EPSG:3460")
        assert window.geometry.geom_type == "Polygon"
        assert window.bounds[2] - window.bounds[0] < 350_000

    def test_a_corner_within_the_border_of_another_district(self, tmp_path):
        corners = [(-3 + 2 * t, 53 + t) for t in (0.0, 0.25, 0.5, 1.0)]
        north = [Polygon([a, b, (-3, 54)]) for a, b in pairwise(corners)]
        south = Polygon([corners[0], corners[-1], (-1, 53)])
        window = read_window(written(tmp_path / "t.geojson", [south, *north], None), to_crs="EPSG:27700")
        assert window.geometry.geom_type == "Polygon"
        assert not window.geometry.interiors

    def test_a_valid_polygon_stays_one(self, tmp_path):
        """A hole touches the border within an edge, which leaves the corner of the hole when both are moved."""
        shell = [(-3, 53), (-1, 54), (-1, 53)]
        hole = [(-2, 53), (-1.5, 53.3), (-1.9, 53.3)]
        file = written(tmp_path / "hole.geojson", [Polygon(shell, [hole])], None)
        assert read_window(file, to_crs="EPSG:27700").area == pytest.approx(7.0216e9, rel=1e-3)
        bow_tie = written(tmp_path / "bow.geojson", [Polygon([(-3, 53), (-2, 54), (-2, 53), (-3, 53.5)])], None)
        with pytest.raises(InputError, match=r"valid.*make_valid"):
            read_window(bow_tie, to_crs="EPSG:27700")


class TestRemedies:
    """Results of `shapely.make_valid` and its like are taken."""

    BROKEN = (
        Polygon([(0, 0), (2, 2), (2, 0), (0, 1)]),
        Polygon([(0, 0), (2, 0), (3, 0), (2, 0), (2, 2), (0, 2)]),
        MultiPolygon([box(0, 0, 2, 2), box(1, 1, 3, 3)]),
        Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (5, 1), (5, 2), (1, 2)]]),
    )

    @pytest.mark.parametrize("broken", BROKEN, ids=["bow tie", "spike", "overlap", "hole across"])
    def test_of_a_region(self, broken, tmp_path):
        with pytest.raises(InputError, match=r"shapely\.make_valid"):
            dps.Window.polygon(broken)
        for mended in (shapely.make_valid(broken), broken.buffer(0), shapely.make_valid(broken, method="structure")):
            for window in (
                dps.Window(mended),
                dps.Window.polygon(mended),
                dps.Window.polygon(shapely.geometry.mapping(mended)),
            ):
                assert window.area == pytest.approx(mended.area)
            file = written(tmp_path / "mended.geojson", [mended])
            assert read_window(file).area == pytest.approx(mended.area)

    def test_a_collection_without_polygons_is_refused(self):
        with pytest.raises(InputError, match="got GeometryCollection"):
            dps.Window.polygon(shapely.GeometryCollection([shapely.Point(0, 0)]))
