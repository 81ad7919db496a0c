"""Intensities as shapes: every cell and every part of a street says what the release says there."""

import sqlite3
from contextlib import closing
from functools import partial
from xml.etree import ElementTree

import geopandas
import numpy as np
import pytest
import shapely
from support.command_line import run

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.io import read_network, read_window
from dpppsynth.release import write_intensity

READ = {
    "gpkg": partial(geopandas.read_file, layer="intensity"),
    "geojson": geopandas.read_file,
    "parquet": geopandas.read_parquet,
}
TRIANGLE = dps.Window.polygon(shapely.Polygon([(13, 7), (1013, 7), (13, 607)]), crs="EPSG:27700")


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    xy = np.array([13, 7]) + rng.dirichlet([1, 1, 2], 300)[:, :2] * [1000, 600]
    return dps.LaplaceSynthesizer(20.0, alpha=50.0).release(dps.PointPattern(xy, TRIANGLE), rng=2)


@pytest.fixture(scope="module")
def on_streets():
    streets = dps.datasets.soho_streets()
    homes = streets.snap(dps.datasets.soho_deaths().xy, tolerance=30.0)
    return dps.LaplaceSynthesizer(5.0, alpha=25.0).release(homes, rng=np.random.default_rng(3))


@pytest.mark.parametrize("suffix", READ)
def test_cells(release, suffix, tmp_path):
    path = tmp_path / f"i.{suffix}"
    write_intensity(release, path, spacing=50.0)
    frame = READ[suffix](path)
    assert frame.crs.to_epsg() == 27700
    assert set(frame.geometry.area.round(6)) == {2500.0}
    centres = np.column_stack([frame.geometry.centroid.x, frame.geometry.centroid.y])
    assert TRIANGLE.contains(centres).all()
    assert len(frame) == sum(
        TRIANGLE.contains([[x, y]])[0] for x in np.arange(25, 1050, 50) for y in np.arange(25, 650, 50)
    )
    assert frame["intensity"].to_numpy() == pytest.approx(release.intensity(centres), rel=1e-12)
    interval = release.interval(centres, level=0.9)
    assert frame["lower"].to_numpy() == pytest.approx(interval.lower, rel=1e-9)
    assert frame["upper"].to_numpy() == pytest.approx(interval.upper, rel=1e-9)
    # Squares that fill a window: the program reads them as one.
    assert read_window(path).area == pytest.approx(2500 * len(frame))


@pytest.mark.parametrize("suffix", READ)
def test_lines(on_streets, suffix, tmp_path):
    path = tmp_path / f"i.{suffix}"
    write_intensity(on_streets, path, spacing=20.0)
    frame, network = READ[suffix](path), on_streets.domain
    assert frame.geometry.length.to_numpy() == pytest.approx(frame["length"].to_numpy(), abs=1e-6)
    assert frame["length"].max() <= 20 + 1e-9
    assert frame.geometry.length.sum() == pytest.approx(network.length, rel=1e-9)
    for edge, part in frame.groupby("edge"):
        assert part.geometry.length.sum() == pytest.approx(network.lengths[edge], rel=1e-9)
    middles = network.coordinates(frame[["edge", "along"]].to_numpy())
    halfway = shapely.line_interpolate_point(frame.geometry.to_numpy(), 0.5, normalized=True)
    assert np.abs(shapely.get_coordinates(halfway) - middles).max() < 1e-6
    assert frame["intensity"].to_numpy() == pytest.approx(on_streets.intensity(middles), rel=1e-9)
    assert (frame["lower"] <= frame["upper"]).all()
    # Parts meet exactly where one ends: the map is a network of the same streets.
    assert read_network(path).length == pytest.approx(network.length, rel=1e-9)


@pytest.mark.parametrize("name", ["release", "on_streets"])
def test_a_geopackage_opens_coloured(name, request, tmp_path):
    """Classes of the style hold all values, each once, with a symbol of the right kind."""
    path = tmp_path / "i.gpkg"
    write_intensity(request.getfixturevalue(name), path, spacing=50.0)
    with closing(sqlite3.connect(path)) as base:
        asked = "SELECT f_table_name, f_geometry_column, useAsDefault, styleQML FROM layer_styles"
        (layer, geometry, default, style), *others = base.execute(asked).fetchall()
        assert others == []
        assert (layer, default) == ("intensity", 1)
        assert base.execute("SELECT column_name FROM gpkg_geometry_columns").fetchone() == (geometry,)
        stamps = base.execute("SELECT last_change FROM gpkg_contents").fetchall()
    assert {str(stamp)[:4] for (stamp,) in stamps} == {"2000"}
    renderer = ElementTree.fromstring(style.partition("\n")[2]).find("renderer-v2")
    assert renderer.get("attr") == "intensity"
    bounds = [(float(each.get("lower")), float(each.get("upper"))) for each in renderer.iter("range")]
    values = geopandas.read_file(path, layer="intensity")["intensity"].to_numpy()
    assert bounds[0][0] == values.min()
    assert bounds[-1][1] == values.max()
    assert [low for low, _ in bounds[1:]] == [high for _, high in bounds[:-1]]
    kinds = {each.get("type") for each in renderer.iter("symbol")}
    assert kinds == {"line" if name == "on_streets" else "fill"}
    assert {each.get("symbol") for each in renderer.iter("range")} == {e.get("name") for e in renderer.iter("symbol")}


def test_too_many_shapes_are_refused(release, tmp_path, monkeypatch):
    monkeypatch.setattr("dpppsynth.release.intensity_files.MOST_ROWS", 10)
    with pytest.raises(InputError, match=r"spacing: makes .* rows or shapes, and 10 are the most"):
        write_intensity(release, tmp_path / "i.gpkg", spacing=50.0)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_writes_them(on_streets, tmp_path):
    on_streets.save(tmp_path / "public")
    words = ("export", tmp_path / "public", "--spacing", 50, "--out")
    for suffix, read in READ.items():
        run(*words, tmp_path / suffix, "--intensity", suffix)
        assert len(read(tmp_path / suffix / f"intensity.{suffix}")) > 282
