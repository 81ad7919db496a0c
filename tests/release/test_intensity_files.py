"""Intensities as GeoTIFF and CSV: every cell says what the release says there."""

import csv

import numpy as np
import pytest
import rasterio
from shapely import Polygon

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.release import write_intensity

# A triangle whose left and lower borders are no multiples of the side.
TRIANGLE = dps.Window.polygon(Polygon([(500_013, 100_007), (501_013, 100_007), (500_013, 100_607)]), crs="EPSG:27700")


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    xy = np.array([500_013, 100_007]) + rng.dirichlet([1, 1, 2], 300)[:, :2] * [1000, 600]
    return dps.LaplaceSynthesizer(20.0, alpha=50.0).release(dps.PointPattern(xy, TRIANGLE), rng=2)


@pytest.fixture(scope="module")
def on_streets():
    rng = np.random.default_rng(3)
    streets = dps.datasets.soho_streets()
    homes = streets.snap(dps.datasets.soho_deaths().xy, tolerance=30.0)
    return dps.LaplaceSynthesizer(5.0, alpha=25.0).release(homes, rng=rng)


def rows(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_a_raster_says_what_the_release_says(release, tmp_path):
    write_intensity(release, tmp_path / "intensity.tif", spacing=20.0)
    rng = np.random.default_rng(4)
    with rasterio.open(tmp_path / "intensity.tif") as source:
        assert source.crs.to_epsg() == 27700
        assert source.descriptions == ("intensity", "lower", "upper")
        assert source.transform.a == -source.transform.e == 20.0
        assert source.transform.c % 20 == source.transform.f % 20 == 0
        values, (rows, columns) = source.read(), source.shape
        for row, column in zip(rng.integers(0, rows, 200), rng.integers(0, columns, 200), strict=True):
            place = np.array([source.xy(row, column)])
            if not TRIANGLE.contains(place)[0]:
                assert np.isnan(values[:, row, column]).all()
                continue
            found = release.interval(place, level=0.9)
            expected = [release.intensity(place)[0], found.lower[0], found.upper[0]]
            assert values[:, row, column] == pytest.approx(expected, rel=1e-6)
    inside = ~np.isnan(values[0])
    assert 0.45 < inside.mean() < 0.55
    assert (values[1] <= values[2])[inside].all()


@pytest.mark.slow
def test_a_table_has_the_rasters_cells(release, tmp_path):
    write_intensity(release, tmp_path / "intensity.tif", spacing=25.0)
    write_intensity(release, tmp_path / "intensity.csv", spacing=25.0)
    with rasterio.open(tmp_path / "intensity.tif") as source:
        band = source.read(1)
        table = rows(tmp_path / "intensity.csv")
        assert len(table) == (~np.isnan(band)).sum()
        for row in table:
            at = source.index(float(row["x"]), float(row["y"]))
            assert float(row["intensity"]) == pytest.approx(float(band[at]), rel=1e-6)
    # Cells cover the window but for its slanted border.
    assert sum(float(row["intensity"]) for row in table) * 25**2 == pytest.approx(release.intensity.total, rel=0.05)


@pytest.mark.slow
def test_parts_of_streets_cover_them(on_streets, tmp_path):
    write_intensity(on_streets, tmp_path / "intensity.csv", spacing=2.0)
    table, streets = rows(tmp_path / "intensity.csv"), on_streets.domain
    length = np.array([float(row["length"]) for row in table])
    assert length.max() <= 2.0 + 1e-9
    assert length.sum() == pytest.approx(streets.size)
    total = length @ [float(row["intensity"]) for row in table]
    assert total == pytest.approx(on_streets.intensity.total, rel=0.01)
    places = np.array([[float(row["edge"]), float(row["along"])] for row in table])
    assert streets.coordinates(places) == pytest.approx(np.array([[float(r["x"]), float(r["y"])] for r in table]))


@pytest.mark.slow
def test_a_round_spacing_follows_from_the_window_alone(release, tmp_path):
    write_intensity(release, tmp_path / "intensity.tif")
    with rasterio.open(tmp_path / "intensity.tif") as source:
        assert source.res == (5.0, 5.0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("a.png", {}, "one of .tif, .tiff, .csv"),
        ("nowhere/a.csv", {}, "no folder"),
        ("a.csv", {"spacing": 0.0}, "spacing"),
        ("a.csv", {"spacing": 0.01}, "larger"),
        ("a.csv", {"level": 1.0}, "level"),
    ],
)
def test_refusals(release, tmp_path, name, settings, words):
    with pytest.raises(InputError, match=words):
        write_intensity(release, tmp_path / name, **settings)
    assert not list(tmp_path.iterdir())


def test_parts_of_streets_are_as_long_as_cells_are_wide(on_streets, tmp_path):
    """Five metres on streets some 670 m across, as in a window of this size; with centimetres no export ended."""
    write_intensity(on_streets, tmp_path / "intensity.csv")
    length = np.array([float(row["length"]) for row in rows(tmp_path / "intensity.csv")])
    assert 4.5 < length.max() <= 5.0


def test_streets_are_no_raster(on_streets, tmp_path):
    with pytest.raises(InputError, match="no raster"):
        write_intensity(on_streets, tmp_path / "a.tif")


def test_moved_points_have_no_intensity(tmp_path):
    moved = dps.PlanarLaplaceSynthesizer(1.0, alpha=25.0).release(dps.datasets.soho_deaths())
    with pytest.raises(InputError, match="no intensity"):
        write_intensity(moved, tmp_path / "a.csv")


SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)
PEOPLE = dps.Offset.from_grid([[1.0, 9.0], [4.0, 2.0]], SQUARE.bounds, "counts")


def require_risks(release, table):
    for row in table[:: len(table) // 4]:
        of = {"type": row["type"]} if "type" in row else {}
        (expected,) = release.relative_risk([[float(row["x"]), float(row["y"])]], **of)
        assert float(row["relative_risk"]) == pytest.approx(expected)


def test_relative_risk_stands_beside_the_intensity_where_there_is_an_offset(tmp_path):
    pattern = dps.PointPattern(np.random.default_rng(5).uniform(0, 1000, (200, 2)), SQUARE)
    release = dps.LGCPSynthesizer(1.0, alpha=50.0, inference="laplace", offset=PEOPLE).release(pattern, rng=6)
    write_intensity(release, tmp_path / "i.csv", spacing=250.0)
    require_risks(release, rows(tmp_path / "i.csv"))


def test_relative_risk_of_types_is_over_their_own_average_and_there_is_none_of_periods(tmp_path):
    rng = np.random.default_rng(5)
    kinds, hours = rng.choice(["a", "b"], 200), rng.uniform(0, 24, 200)
    pattern = dps.PointPattern(rng.uniform(0, 1000, (200, 2)), SQUARE, {"kind": kinds, "hour": hours})
    marks = dps.Marks(dps.Types("kind", ["a", "b"]), dps.Times.day("hour", hats=4))
    relation = dps.AlphaNeighbours(50.0, time="public", types="public")
    release = dps.MarkedSynthesizer(1.0, marks=marks, relation=relation, offset=PEOPLE, spacing=500.0).release(
        pattern, rng=6
    )
    write_intensity(release, tmp_path / "types.csv", spacing=250.0, by="types")
    require_risks(release, rows(tmp_path / "types.csv"))
    write_intensity(release, tmp_path / "times.csv", spacing=500.0, by="time")
    assert "relative_risk" not in rows(tmp_path / "times.csv")[0]
