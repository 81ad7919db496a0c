"""Sets, windows and kernels that benchmarks share."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import dpppsynth as dps

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def held_out():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("held_out")


@pytest.fixture(scope="module")
def holed():
    """A square of side 4 less its upper right quarter and a hole of side 1."""
    shell, hole = [(0, 0), (4, 0), (4, 2), (2, 2), (2, 4), (0, 4)], [(0.5, 0.5), (0.5, 1.5), (1.5, 1.5), (1.5, 0.5)]
    return [shell, hole]


def test_windows_are_stated_beside_the_points(held_out, holed, tmp_path):
    np.savetxt(tmp_path / "plain.csv.gz", [(0, 0), (1, 2)], delimiter=",", header="x,y", comments="")
    np.savetxt(tmp_path / "holed.csv.gz", [(1, 1), (1, 3), (3, 3)], delimiter=",", header="x,y", comments="")
    (tmp_path / "holed.json").write_text(json.dumps({"box": [0, 0, 4, 4], "rings": holed}))
    found = dict(held_out.files(tmp_path))
    np.testing.assert_allclose(found["plain"].domain.bounds, (-0.02, -0.04, 1.02, 2.04))
    assert found["holed"].domain.area == pytest.approx(16 - 4 - 1)
    assert found["holed"].xy.tolist() == [[1, 3]]


class TestRaster:
    def test_areas_of_pixels_are_those_within_the_window(self, held_out, holed):
        raster = held_out.Raster(dps.Window.polygon(held_out.shapely.Polygon(holed[0], [holed[1]])), (4, 8))
        assert raster.inside.sum() == pytest.approx(11)
        np.testing.assert_allclose(raster.inside[0], [0.5, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5])
        assert (raster.inside[2:, 4:] == 0).all()

    def test_points_are_counted_inside_and_around(self, held_out):
        raster = held_out.Raster(dps.Window.rectangle(0, 0, 4, 2), (4, 2))
        xy = np.array([(0.5, 1.5), (-1.5, 0.5), (9.0, 9.0)])
        assert np.argwhere(raster.counts(xy)).tolist() == [[0, 0], [0, 1], [3, 1]]
        assert np.argwhere(raster.counts(xy, margin=(2, 1))).tolist() == [[0, 1], [2, 2], [7, 3]]

    def test_even_masses_have_an_even_density_and_stay_so_under_a_kernel(self, held_out, holed):
        window = dps.Window.polygon(held_out.shapely.Polygon(*holed[:1]))
        raster = held_out.Raster(window, (16, 16))
        smoothed = raster.smoothed(3 * raster.inside, 0.7)
        np.testing.assert_allclose(smoothed, 3 * raster.inside)
        density = raster.density(smoothed, np.array([(0.1, 0.1), (3.9, 1.9)]))
        np.testing.assert_allclose(density, 1 / 12)
        assert held_out.score(density, window.area) == pytest.approx(0)


def test_halves_share_no_point(held_out):
    pattern = dps.PointPattern(np.random.default_rng(1).random((11, 2)), dps.Window.rectangle(0, 0, 1, 1))
    known, judging = held_out.halves(pattern)
    assert sorted([*known.xy.tolist(), *judging.tolist()]) == sorted(pattern.xy.tolist())
    few, same = held_out.halves(pattern, 3)
    assert few.xy.tolist() == known.xy[:3].tolist()
    assert same.tolist() == judging.tolist()


def test_moves_are_twice_the_scale_long(held_out):
    """Lengths have a Gamma law of shape 2: mean 2 s and standard deviation sqrt(2) s; six errors of 4000."""
    window = dps.Window.rectangle(0, 0, 10, 10)
    pattern = dps.PointPattern(np.random.default_rng(1).uniform(0, 10, (4000, 2)), window)
    moved = held_out.jittered(pattern, 0.01, 0.5)
    length = np.hypot(*(moved - pattern.xy).T)
    assert length.mean() == pytest.approx(2 * 0.2, abs=6 * np.sqrt(2) * 0.2 / np.sqrt(4000))
