"""Public layers: polygons, rasters, GeoTIFF files and functions, and offsets made of them."""

import pickle
import sys
import tracemalloc
import warnings

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from rasterio.transform import from_bounds

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import FunctionLayer, PolygonLayer
from dpppsynth.spatial.raster_layers import RasterLayer, read_geotiff
from dpppsynth.spatial.sampling import binomial_pattern

BOX = (0.0, 0.0, 1000.0, 800.0)
SQUARE = Window.rectangle(*BOX, "EPSG:27700")
DISK = Window.polygon(shapely.Point(480, 410).buffer(380), "EPSG:27700")
STREETS = LinearNetwork([[60, 70], [940, 70], [940, 730], [60, 730]], [[0, 1], [1, 2], [2, 3], [3, 0]], "EPSG:27700")
VALUES = np.random.default_rng(4).gamma(0.4, 1.0, (16, 20))
HOLED = np.where(np.arange(320).reshape(16, 20) % 20 < 5, np.nan, VALUES)


def tiff(path, values, bounds=BOX, **profile):
    rows, columns = values.shape
    given = {"driver": "GTiff", "count": 1, "dtype": values.dtype, "crs": "EPSG:27700", "height": rows}
    given |= {"width": columns, "transform": from_bounds(*bounds, columns, rows)} | profile
    # Files without a place on the map are among those to be refused.
    with warnings.catch_warnings(action="ignore"), rasterio.open(path, "w", **given) as out:
        out.write(values, 1)
    return path


class TestRasters:
    def test_values_of_cells_the_first_row_on_top(self):
        layer = RasterLayer([[1, 2, 3], [4, 5, 6]], (10, 20, 16, 24))
        at = np.array([(11, 23), (15, 23), (11, 21), (15, 21), (16, 20), (10, 24), (12, 22), (9, 23)])
        np.testing.assert_array_equal(layer(at), [1, 3, 4, 6, 6, 1, 5, np.nan])

    def test_as_polygons_give(self):
        """Each of 320 cells as a polygon and as a raster's."""
        cells, raster = Offset.from_grid(VALUES, BOX), RasterLayer(VALUES, BOX)
        at = np.random.default_rng(1).uniform((0, 0), (1000, 800), (2000, 2))
        np.testing.assert_array_equal(cells(at), raster(at))

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("build", [regular_triangulation, regular_squares])
    @pytest.mark.parametrize(("window", "within"), [(SQUARE, 1e-9), (DISK, 1e-3)], ids=["square", "disk"])
    @pytest.mark.parametrize("shape", [(5, 4), (30, 24)])
    def test_integrals_are_those_of_polygons(self, build, window, within, shape):
        """The mass itself to rounding where cells lie in the window; that of tents and fields to the points' rule."""
        mesh = build(window, shape=shape)
        exact, raster = Offset.from_grid(VALUES, BOX), Offset.of(RasterLayer(VALUES, BOX))
        want, got = (mesh.integrate(each.restrict(mesh)) for each in (exact, raster))
        assert got.sum() == pytest.approx(want.sum(), rel=within)
        assert np.abs(got - want).sum() < 2e-3 * want.sum()
        field = np.sin(mesh.vertices[:, 0] / 150) + mesh.vertices[:, 1] / 400
        totals = [LogLinear(mesh, field, each).total for each in (exact, raster)]
        assert totals[1] == pytest.approx(totals[0], rel=1e-3)

    def test_integrals_of_linear_functions_are_exact_where_cells_are_points(self):
        """A raster of as many cells as points gathers them without moving a centre of mass."""
        values = np.random.default_rng(2).gamma(0.2, 1.0, (800, 1000))
        mesh = regular_triangulation(SQUARE, shape=(6, 5))
        pieces = Offset.of(RasterLayer(values, BOX)).restrict(mesh)
        assert pieces.weight.sum() == pytest.approx(values.sum(), rel=1e-12)
        x, y = np.arange(1000) + 0.5, 800 - np.arange(800) - 0.5
        linear = mesh.vertices @ [0.3, -0.7]
        want = 0.3 * (values @ x).sum() - 0.7 * (y @ values).sum()
        assert mesh.integrate(pieces) @ linear == pytest.approx(want, rel=1e-9)

    def test_along_streets_as_polygons_give(self):
        mesh = network_mesh(STREETS, 60.0)
        exact, raster = Offset.from_grid(VALUES, BOX), Offset.of(RasterLayer(VALUES, BOX))
        want, got = (mesh.integrate(each.restrict(mesh)) for each in (exact, raster))
        assert np.abs(got - want).sum() < 0.02 * want.sum()
        at = STREETS.positions(np.array([[510.0, 70.0], [940.0, 310.0]]))
        fields = [LogLinear(mesh, np.zeros(len(mesh.vertices)), each) for each in (exact, raster)]
        np.testing.assert_array_equal(*(each.at(mesh.locate(at), mesh.values(at)[1], at) for each in fields))

    def test_bounds_hold_and_points_follow_the_cells(self):
        """Shares of 4000 points in the cells: chi-square with 319 degrees, above 500 once in 1e9."""
        mesh = regular_triangulation(SQUARE, shape=(9, 8))
        raster = Offset.of(RasterLayer(VALUES, BOX))
        at = np.random.default_rng(3).uniform((0, 0), (1000, 800), (20_000, 2))
        assert (raster(at) <= raster.bounds(mesh)[mesh.locate(at)]).all()
        pattern = binomial_pattern(LogLinear(mesh, np.zeros(72), raster), 4000, 5)
        row, column, _ = raster.layer.cells(pattern.xy)
        count = np.bincount(row * 20 + column, minlength=320)
        expected = 4000 * VALUES.ravel() / VALUES.sum()
        some = expected > 1
        assert (((count - expected) ** 2 / expected)[some]).sum() < 500
        assert count[~some].sum() < expected[~some].sum() + 6 * np.sqrt(expected[~some].sum()) + 6

    @pytest.mark.parametrize("domain", [SQUARE, DISK, STREETS], ids=["square", "disk", "streets"])
    def test_what_is_missing_is_told_exactly(self, domain):
        known = shapely.box(250, 0, 900, 800)
        layer = RasterLayer(HOLED[:, :18], (0, 0, 900, 800))
        part = shapely.intersection(domain.geometry, known)
        size = shapely.length if domain is STREETS else shapely.area
        assert layer.missing(domain) == pytest.approx(1 - size(part) / size(domain.geometry), abs=1e-9)

    def test_counts_keep_their_sum(self):
        mesh = regular_triangulation(SQUARE, shape=(7, 6))
        for cells in (VALUES, np.random.default_rng(2).gamma(0.4, 1.0, (60, 50))):
            offset = Offset.from_grid(cells, BOX, "counts").on(SQUARE)
            assert offset.restrict(mesh).weight.sum() == pytest.approx(cells.sum(), rel=1e-9)

    def test_a_copy_goes_to_other_processes(self):
        offset = Offset.of(RasterLayer(VALUES, BOX))
        mesh = regular_triangulation(SQUARE, shape=(5, 4))
        offset.restrict(mesh)
        again = pickle.loads(pickle.dumps(offset))
        assert again.fingerprint == offset.fingerprint
        np.testing.assert_array_equal(again.restrict(mesh).weight, offset.restrict(mesh).weight)

    @pytest.mark.parametrize(
        ("values", "bounds", "message"),
        [
            ([1.0, 2.0], BOX, "two dimensions"),
            ([[1.0, np.inf]], BOX, "^values: raster: must be finite"),
            ([[1.0]], (1, 0, 0, 1), "bounds: expected"),
            ([[1j]], BOX, "real numbers"),
            (np.empty((0, 3)), BOX, "two dimensions"),
        ],
    )
    def test_refused(self, values, bounds, message):
        with pytest.raises(InputError, match=message):
            RasterLayer(values, bounds)


class TestGeoTiff:
    def test_what_was_written_is_read(self, tmp_path):
        layer = read_geotiff(tiff(tmp_path / "people.tif", VALUES))
        np.testing.assert_array_equal(layer.values, VALUES)
        assert (layer.bounds_of_cells, layer.crs, layer.label) == (BOX, "EPSG:27700", "people.tif")

    def test_large_files_are_read_some_rows_at_a_time(self, tmp_path):
        """Memory of two arrays of the cells, not of four; odd blocks, unknown cells and all values as they are."""
        cells = np.random.default_rng(1).poisson(2.0, (2501, 2000)).astype("int16")
        path = tiff(tmp_path / "people.tif", cells, nodata=0, tiled=True, blockxsize=256, blockysize=176)
        tracemalloc.start()
        try:
            offset = Offset.from_geotiff(path, "counts", fill=0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        np.testing.assert_allclose(offset.values * offset.layer.sizes, cells, rtol=1e-12)
        assert peak < 2.7 * 8 * cells.size

    def test_nodata_has_no_value(self, tmp_path):
        whole = np.arange(320).reshape(16, 20).astype("int16")
        path = tiff(tmp_path / "people.tif", np.where(whole < 5, -99, whole).astype("int16"), nodata=-99)
        np.testing.assert_array_equal(np.isnan(read_geotiff(path).values), whole < 5)
        np.testing.assert_array_equal(read_geotiff(path, fill=0).values, np.where(whole < 5, 0, whole))

    def test_scale_and_offset_of_a_band(self, tmp_path):
        path = tiff(tmp_path / "people.tif", VALUES)
        with rasterio.open(path, "r+") as data:
            data.scales, data.offsets = (0.5,), (3.0,)
        np.testing.assert_allclose(read_geotiff(path).values, VALUES / 2 + 3)

    def test_a_share_that_has_no_value_is_named(self, tmp_path):
        path = tiff(tmp_path / "people.tif", np.where(np.isnan(HOLED), -1, HOLED), nodata=-1)
        with pytest.raises(InputError, match=r"^offset: people.tif: 25 % of the window has no value; fill it, or"):
            Offset.from_geotiff(path).on(SQUARE)
        with pytest.raises(InputError, match=r"^offset: people.tif: 34 % of the network"):
            Offset.from_geotiff(path).on(STREETS)
        filled = Offset.from_geotiff(path, fill=0).on(SQUARE)
        assert filled(np.array([[100.0, 400.0], [600.0, 400.0]]))[0] == 0

    def test_another_coordinate_system(self, tmp_path):
        path = tiff(tmp_path / "people.tif", VALUES, crs="EPSG:32630")
        with pytest.raises(InputError, match=r"people.tif: is in the coordinate system EPSG:32630, and .* EPSG:27700"):
            Offset.from_geotiff(path).on(SQUARE)
        with pytest.raises(InputError, match="and the domain has none"):
            Offset.from_geotiff(path).on(Window.rectangle(*BOX))

    def test_one_that_is_not_named_is_asked_for(self, tmp_path):
        """Neither a file nor a frame is taken to be in the domain's; arrays and functions, which name none, are."""
        path = tiff(tmp_path / "people.tif", VALUES, crs=None)
        for offset in (Offset.from_geotiff(path), Offset.from_geotiff(path, "counts")):
            with pytest.raises(InputError, match=r'^offset: people.tif: does not say .*27700; .*crs="EPSG:27700"'):
                offset.on(SQUARE)
            assert offset.on(Window.rectangle(*BOX)).values.sum() > 0
        assert Offset.from_geotiff(path, crs="EPSG:27700").on(SQUARE).values.shape == VALUES.shape
        frame = geopandas.GeoDataFrame({"people": [3.0]}, geometry=[shapely.box(*BOX)])
        with pytest.raises(InputError, match=r'^offset: does not say .*layer.set_crs\("EPSG:27700"\)'):
            Offset.from_geodataframe(frame, "people", "counts").on(SQUARE)
        Offset.from_geodataframe(frame.set_crs("EPSG:27700"), "people").on(SQUARE)
        Offset.from_grid(VALUES, BOX).on(SQUARE)

    def test_a_named_one_is_not_overruled(self, tmp_path):
        path = tiff(tmp_path / "people.tif", VALUES, crs="EPSG:32630")
        assert read_geotiff(path, crs="EPSG:27700").crs == "EPSG:32630"

    def test_without_rasterio_the_remedy_is_named(self, tmp_path, monkeypatch):
        path = tiff(tmp_path / "people.tif", VALUES)
        monkeypatch.setitem(sys.modules, "rasterio", None)
        with pytest.raises(InputError, match=r"need rasterio; install it with pip install rasterio"):
            read_geotiff(path)

    def test_refused(self, tmp_path):
        good = tiff(tmp_path / "good.tif", VALUES)
        turned = rasterio.Affine(1, 0.5, 0, 0.5, -1, 800)
        (tmp_path / "text.tif").write_text("no picture")
        (tmp_path / "points.vrt").write_text(f"<VRTDataset><SourceFilename>{good}</SourceFilename></VRTDataset>")
        cases = {
            "none.tif": "there is no such file",
            "text.tif": "no GeoTIFF",
            "points.vrt": "no GeoTIFF",
            tiff(tmp_path / "turned.tif", VALUES, transform=turned).name: "no place on a map, or are turned",
            tiff(tmp_path / "bare.tif", VALUES, transform=rasterio.Affine.identity()).name: "no place on a map",
            tiff(tmp_path / "complex.tif", VALUES.astype("complex64")).name: "real numbers",
        }
        for name, message in cases.items():
            with pytest.raises(InputError, match=rf"^{name}: .*{message}"):
                read_geotiff(tmp_path / name)
        two = tiff(tmp_path / "two.tif", VALUES, count=2)
        with pytest.raises(InputError, match=r"^band: two.tif has 2 bands; name one, such as band=1"):
            read_geotiff(two)
        np.testing.assert_array_equal(read_geotiff(two, band=1).values, VALUES)
        for band in (0, 2, "1", True):
            with pytest.raises(InputError, match=r"^band: good.tif has bands 1 to 1"):
                read_geotiff(good, band=band)


class TestOffsets:
    def layer(self, people=(200.0, 50.0), **more):
        shapes = [shapely.box(0, 0, 500, 800), shapely.box(500, 0, 1000, 800)]
        return geopandas.GeoDataFrame({"people": list(people)} | more, geometry=shapes, crs="EPSG:27700")

    def test_counts_are_spread_over_their_polygons(self):
        offset = Offset.from_geodataframe(self.layer(), "people", "counts").on(SQUARE)
        np.testing.assert_allclose(offset.values, [200 / 4e5, 50 / 4e5])
        assert Offset.from_geodataframe(self.layer(), "people").values[0] == 200

    @pytest.mark.parametrize("raster", [False, True])
    def test_counts_on_a_network_are_spread_along_its_streets(self, raster):
        offset = Offset.from_grid([[200.0, 50.0]], BOX, "counts")
        offset = Offset.of(RasterLayer([[200.0, 50.0]], BOX), "counts") if raster else offset
        mesh = network_mesh(STREETS, 75.0)
        on = offset.on(STREETS)
        assert mesh.integrate(on.restrict(mesh)).sum() == pytest.approx(250, rel=0.02)
        left, right = on(np.array([[60.0, 70.0], [940.0, 70.0]]))
        assert left / right == pytest.approx(4, rel=0.02)

    def test_gaps_are_refused_and_may_be_filled(self):
        part = self.layer().iloc[:1]
        with pytest.raises(InputError, match=r"^offset: 50 % of the window has no value; fill it, or state fill=0"):
            Offset.from_geodataframe(part, "people").on(SQUARE)
        assert Offset.from_geodataframe(part, "people", fill=0).on(SQUARE)(np.array([[900.0, 100.0]])) == [0]
        with pytest.raises(InputError, match=r"^fill: "):
            Offset.from_geodataframe(part, "people", fill=1)
        with pytest.raises(InputError, match=r"^offset: 38 % of the window"):
            Offset.from_grid(np.ones((2, 2)), (0, 0, 1000, 500)).on(SQUARE)

    def test_values_that_are_missing_are_counted(self):
        with pytest.raises(InputError, match=r"^offset: column 'people' has no value in 1 of 2 polygons; fill it"):
            Offset.from_geodataframe(self.layer((200.0, np.nan)), "people")

    @pytest.mark.parametrize(
        ("people", "message"),
        [((1.0, -2.0), "non-negative"), ((0.0, 0.0), "not all zero"), (("a", "b"), "must hold numbers only")],
    )
    def test_wrong_values(self, people, message):
        with pytest.raises(InputError, match=rf"^offset: .*{message}"):
            Offset.from_geodataframe(self.layer(people), "people", "counts")

    def test_a_meaning_is_one_of_two(self):
        with pytest.raises(InputError, match="as_: expected one of 'density', 'counts'"):
            Offset.from_geodataframe(self.layer(), "people", "people")

    def test_another_coordinate_system(self):
        moved = self.layer().set_crs("EPSG:32630", allow_override=True)
        with pytest.raises(InputError, match=r"^offset: is in the coordinate system EPSG:32630"):
            Offset.from_geodataframe(moved, "people").on(SQUARE)

    def test_a_raster_without_anybody_in_the_window(self):
        empty = np.zeros((40, 40))
        empty[0, 0] = 1
        with pytest.raises(InputError, match=r"^offset: its integral over the window"):
            Offset.from_grid(empty, (0, 0, 40_000, 40_000)).on(SQUARE)

    def test_large_rasters_are_cropped_to_the_domain(self):
        values = np.random.default_rng(2).gamma(0.4, 1.0, (80, 100))
        whole = Offset.from_grid(values, (-4500, -3600, 5500, 4400))
        on = whole.on(SQUARE)
        assert on.values.shape == (9, 11)
        at = np.random.default_rng(3).uniform((0, 0), (1000, 800), (200, 2))
        np.testing.assert_array_equal(on(at), whole(at))


class TestOthers:
    def test_functions(self):
        layer = FunctionLayer(lambda xy: np.hypot(*xy.T))
        np.testing.assert_allclose(layer(np.array([[3.0, 4.0]])), [5])
        with pytest.raises(InputError, match="one number for each of 2 places"):
            FunctionLayer(lambda xy: 1.0)(np.zeros((2, 2)))
        with pytest.raises(InputError, match="needs a function"):
            FunctionLayer(3)

    def test_what_a_function_raises_is_told_with_its_name_and_cause(self):
        with pytest.raises(InputError, match=r"pump: the function failed with ZeroDivisionError.*n = 2") as told:
            FunctionLayer(lambda xy: 1 // 0, label="pump")(np.zeros((2, 2)))
        assert isinstance(told.value.__cause__, ZeroDivisionError)

    def test_polygons_of_real_numbers(self):
        layer = PolygonLayer([shapely.box(0, 0, 1, 1)], [-3.0])
        np.testing.assert_array_equal(layer(np.array([[0.5, 0.5], [2.0, 2.0]])), [-3.0, np.nan])


@pytest.mark.parametrize("side", [2, 20])
def test_cells_far_larger_than_the_window_fill_all_of_it(side):
    """Parts of cells within the window count, however far the cells reach beyond it."""
    window = Window.rectangle(100, 100, 600, 600, "EPSG:27700")
    values, bounds = np.arange(1.0, 1 + side**2).reshape(side, side), (-20000.0, -19000.0, 20000.0, 21000.0)
    mesh = regular_triangulation(window, shape=(31, 31))
    polygons, raster = Offset.from_grid(values, bounds), Offset.of(RasterLayer(values, bounds))
    want, got = (mesh.integrate(each.restrict(mesh)) for each in (polygons, raster))
    assert got.sum() == pytest.approx(want.sum(), rel=1e-9)
    np.testing.assert_allclose(got, want, rtol=0.02)
