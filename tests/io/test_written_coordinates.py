"""Coordinates of synthetic points: few decimals in all formats, and still in the window or on the streets."""

import geopandas
import numpy as np
import pandas
import pytest

from dpppsynth.datasets import soho_streets
from dpppsynth.io import write_pattern
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


class TestStreets:
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
