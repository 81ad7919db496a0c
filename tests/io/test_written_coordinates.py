"""Coordinates of synthetic points: few decimals in all formats, and still in the window or on the streets."""

import json

import geopandas
import numpy as np
import pandas
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.datasets import soho_streets
from dpppsynth.io import file_contents, write_pattern
from dpppsynth.models import regular_squares
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern

# A diameter of 7 km: the public grid has steps of 10^-4.
WINDOW = Window.rectangle(425000, 180000, 430000, 185000, "EPSG:27700")


def digits(values):
    """Largest number of decimals with which any of the values is written."""
    return max(len(repr(value).partition(".")[2]) for value in np.ravel(values).tolist())


def written(path):
    """Coordinates (n, 2) as other programs read them."""
    if path.suffix == ".csv":
        return pandas.read_csv(path)[["x", "y"]].to_numpy()
    frame = geopandas.read_parquet(path) if path.suffix == ".parquet" else geopandas.read_file(path)
    return np.column_stack([frame.geometry.x, frame.geometry.y])


class TestWindows:
    @pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
    def test_no_binary_tails(self, suffix, tmp_path):
        """A whole number times 0.0001 is often written with seventeen digits."""
        mesh = regular_squares(WINDOW, shape=(5, 5))
        pattern = poisson_pattern(PiecewiseConstant(mesh, np.full(len(mesh.elements), 1e-4)), 1)
        write_pattern(pattern, tmp_path / f"points.{suffix}")
        found = written(tmp_path / f"points.{suffix}")
        assert len(found) > 2000
        assert digits(found) == 4
        assert WINDOW.contains(found).all()

    def test_points_lie_no_further_from_where_they_were_than_half_a_step(self):
        xy = np.random.default_rng(1).uniform(425000, 430000, (1000, 2))
        moved = WINDOW.on_grid(xy)
        assert (np.abs(moved - xy) <= WINDOW.resolution * (0.5 + 1e-6)).all()
        assert (moved == WINDOW.on_grid(moved)).all()


class TestOtherSystems:
    @pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
    def test_degrees(self, suffix, tmp_path):
        """Latitude before longitude, or a file that goes on naming the system of the window, is somewhere else."""
        pattern = PointPattern.at([[427000.5, 182000.25]], WINDOW, synthetic=True)
        write_pattern(pattern, tmp_path / f"points.{suffix}", to_crs="EPSG:4326")
        found = written(tmp_path / f"points.{suffix}")
        again = geopandas.GeoSeries.from_xy(*found.T, crs="EPSG:4326").to_crs("EPSG:27700")
        assert np.abs([again.x - 427000.5, again.y - 182000.25]).max() < 2e-3
        assert digits(found) <= 9
        if suffix != "csv":
            path = tmp_path / f"points.{suffix}"
            frame = geopandas.read_parquet(path) if suffix == "parquet" else geopandas.read_file(path)
            assert frame.crs == "EPSG:4326"
        if suffix == "geojson":
            assert "crs" not in json.loads((tmp_path / "points.geojson").read_text())

    def test_refusals(self, tmp_path):
        bare = PointPattern.at([[0.5, 0.5]], Window.rectangle(0, 0, 1, 1), synthetic=True)
        with pytest.raises(InputError, match="no CRS to re-project from"):
            write_pattern(bare, tmp_path / "points.csv", to_crs="EPSG:4326")
        pattern = PointPattern.at([[427000.5, 182000.25]], WINDOW, synthetic=True)
        with pytest.raises(InputError, match="without heights"):
            write_pattern(pattern, tmp_path / "points.csv", to_crs="EPSG:4979")
        assert not list(tmp_path.iterdir())


class TestStreamedTables:
    @pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
    def test_rows_of_all_batches_with_their_kinds(self, suffix, tmp_path, monkeypatch):
        """Columns of a batch that takes its types from its own rows, or its rows from the start of the columns."""
        monkeypatch.setattr(file_contents, "BATCH", 3)
        xy = np.column_stack([425000 + np.arange(8.0), 180000 + np.arange(8.0)])
        marks = {"year": np.arange(8), "kind": np.array(list("abcdefgh")), "share": np.arange(8) / 4}
        write_pattern(PointPattern.synthetic(xy, WINDOW, marks), tmp_path / f"points.{suffix}")
        path = tmp_path / f"points.{suffix}"
        frame = geopandas.read_parquet(path) if suffix == "parquet" else geopandas.read_file(path)
        assert (np.column_stack([frame.geometry.x, frame.geometry.y]) == xy).all()
        assert {name: frame[name].tolist() for name in marks} == {name: m.tolist() for name, m in marks.items()}
        assert frame.crs == "EPSG:27700"
        assert frame["year"].dtype.kind == "i"

    @pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
    def test_no_points(self, suffix, tmp_path):
        write_pattern(PointPattern.synthetic(np.empty((0, 2)), WINDOW), tmp_path / f"points.{suffix}")
        assert len(written(tmp_path / f"points.{suffix}")) == 0


class TestStreets:
    @pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
    def test_places_beside_coordinates(self, suffix, tmp_path):
        """Places found again from coordinates may be on the other street where two cross."""
        streets = soho_streets()
        places = np.array([[3.0, 0.0], [7.0, streets.lengths[7] / 4]])
        path = tmp_path / f"points.{suffix}"
        write_pattern(PointPattern.at(places, streets, synthetic=True), path, places=True)
        readers = {"csv": pandas.read_csv, "parquet": geopandas.read_parquet}
        frame = readers.get(suffix, geopandas.read_file)(path)
        assert frame["edge"].tolist() == [3, 7]
        assert frame["along"].to_numpy() == pytest.approx(places[:, 1], abs=streets.resolution)
        assert digits(frame["along"].to_numpy()) <= 5
        clash = PointPattern.at(places, streets, {"edge": ["a", "b"]}, synthetic=True)
        with pytest.raises(InputError, match="taken by places"):
            write_pattern(clash, path, places=True)

    def test_few_decimals_on_the_network(self):
        """Grids as coarse as that along the edges would leave the streets."""
        streets = soho_streets()
        rng = np.random.default_rng(2)
        edge = rng.integers(len(streets.edges), size=2000)
        places = streets.on_grid(np.column_stack([edge, rng.random(2000) * streets.lengths[edge]]))
        pattern = PointPattern.at(places, streets, synthetic=True)
        assert streets.contains(pattern.xy).all()
        assert digits(pattern.xy) <= 5
        assert digits(places[:, 1]) <= 17
        assert (np.abs(pattern.xy - streets.coordinates(places)) <= 1e-4).all()
        assert (pattern.positions == places).all()
        # Patterns that were observed stay as they are.
        assert (PointPattern.at(places, streets).xy == streets.coordinates(places)).all()


@pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "parquet"])
def test_writing_tells_the_share_that_is_written(suffix, tmp_path, monkeypatch):
    """Parts of 64 rows, of which the last is short; what is told is no coordinate."""
    for name in ("file_contents.ROWS", "writing.ROWS", "file_contents.BATCH", "writing.BATCH"):
        monkeypatch.setattr(f"dpppsynth.io.{name}", 64)
    window, told = Window.rectangle(0, 0, 10, 10), []
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 10, (200, 2)), window)
    write_pattern(pattern, tmp_path / f"points.{suffix}", progress=told.append)
    shares = [step.share for step in told]
    assert set(told) == {"writing points"}
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.6 < shares[-1] <= 1
    assert len(shares) >= 4
