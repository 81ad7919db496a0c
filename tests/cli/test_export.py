"""`dpppsynth export`: patterns and intensities of a release in the formats of other programs."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import rasterio
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth.cli.program import app


def call(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release by levels, with two patterns."""
    deaths = dps.datasets.soho_deaths()
    year = np.random.default_rng(1).choice([1853, 1854], len(deaths))
    marked = dps.PointPattern(deaths.xy, deaths.domain, {"year": year})
    made = dps.LaplaceSynthesizer(1.0, alpha=25.0).release_by(marked, by="year", levels=[1853, 1854], rng=2)
    return made.save(tmp_path_factory.mktemp("releases") / "public", patterns=2)


@pytest.mark.slow
def test_patterns_are_those_of_the_release_in_degrees(folder, tmp_path):
    done = call("export", folder, "--out", tmp_path / "out", "--format", "gpkg", "--out-crs", "EPSG:4326")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["synthetic_000.gpkg", "synthetic_001.gpkg"]
    for k in range(2):
        own = geopandas.read_file(folder / f"synthetic_00{k}.geojson")
        written = geopandas.read_file(tmp_path / "out" / f"synthetic_00{k}.gpkg")
        assert written.crs.to_epsg() == 4326
        assert written.total_bounds[0] == pytest.approx(-0.14, abs=0.02)
        assert list(written["year"]) == list(own["year"])
        assert written.to_crs(own.crs).distance(own).max() < 0.01


@pytest.mark.slow
def test_each_level_has_an_intensity(folder, tmp_path):
    done = call("export", folder, "--out", tmp_path / "out", "--intensity", "tif", "--spacing", 67)
    assert done.exit_code == 0, done.output
    for year, release in dps.load_release(folder).releases.items():
        with rasterio.open(tmp_path / "out" / f"year={year}_intensity.tif") as source:
            place = np.array([[529_400.0, 181_000.0]])
            row, column = source.index(*place[0])
            centre = np.array([source.xy(row, column)])
            assert source.read(1)[row, column] == pytest.approx(release.intensity(centre)[0], rel=1e-6)


@pytest.mark.slow
def test_places_on_streets(tmp_path):
    homes = dps.datasets.soho_deaths(on="streets")
    dps.LaplaceSynthesizer(1.0, alpha=25.0).release(homes, rng=3).save(tmp_path / "public", patterns=1)
    done = call("export", tmp_path / "public", "--out", tmp_path / "out", "--format", "csv", "--places")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "out" / "synthetic_000.csv")
    there = homes.domain.coordinates(table[["edge", "along"]].to_numpy())
    assert there == pytest.approx(table[["x", "y"]].to_numpy(), abs=1e-3)
    # On the public grid along the edges, without binary tails.
    assert all(len(repr(float(each)).partition(".")[2]) <= 4 for each in table["along"])


@pytest.mark.slow
def test_places_and_systems_that_a_release_has_not_got(folder, tmp_path):
    points = np.random.default_rng(1).uniform(0, 100, (50, 2))
    plain = dps.PointPattern(points, dps.Window.rectangle(0, 0, 100, 100))
    bare = dps.LaplaceSynthesizer(1.0, alpha=25.0).release(plain, rng=3).save(tmp_path / "public", patterns=1)
    for release, words, said in (
        (folder, ["--places"], "--places: names edges of a network"),
        (bare, ["--out-crs", "EPSG:4326"], "--out-crs: the release names no coordinate system"),
    ):
        for command in ("export", "sample"):
            done = call(command, release, "--out", tmp_path / "out", "--format", "csv", *words)
            assert done.exit_code == 2
            assert said in done.stderr
            assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--format"),
        (["--out-crs", "EPSG:4326", "--intensity", "csv"], "--out-crs"),
        (["--format", "csv", "--spacing", "10"], "--spacing"),
        (["--intensity", "csv", "--level", "1"], "--level"),
        (["--intensity", "csv", "--spacing", "-3"], "--spacing"),
        (["--format", "csv", "--out-crs", "EPSG:99999"], "--out-crs"),
    ],
)
def test_options_that_do_not_fit(folder, tmp_path, words, said):
    done = call("export", folder, "--out", tmp_path / "out", *words)
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "out").exists()


def test_a_release_without_intensity(tmp_path):
    dps.PlanarLaplaceSynthesizer(1.0, alpha=25.0).release(dps.datasets.soho_deaths()).save(tmp_path / "public")
    done = call("export", tmp_path / "public", "--out", tmp_path / "out", "--format", "csv", "--intensity", "csv")
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "--intensity: there is no intensity" in done.output


def test_nothing_is_written_into_a_release(folder):
    assert call("export", folder, "--out", folder / "more", "--intensity", "csv").exit_code == 2
    assert not (folder / "more").exists()
