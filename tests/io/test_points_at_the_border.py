"""Points beside a window: moved onto its border within a public tolerance, or left out where their number is secret."""

import json

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_batches, read_pattern
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

SLANT = Window.polygon(shapely.Polygon([(530000, 180000), (531031.7, 180333.3), (529789.7, 180900.7)]), "EPSG:27700")
SQUARE = Window.rectangle(0, 0, 10, 10)


def csv(folder, xy):
    path = folder / "p.csv"
    path.write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in np.asarray(xy, dtype=float).tolist()))
    return path


class TestOntoTheBorder:
    @pytest.mark.parametrize("digits", [9, 3, 1])
    def test_what_an_inspection_advises_is_enough(self, tmp_path, digits):
        """About half of the rounded places on a slanting border lie outside; the width that is named takes them all."""
        share = np.linspace(0, 1, 40)[:, None]
        xy = np.array([[530000, 180000]]) * (1 - share) + np.array([[531031.7, 180333.3]]) * share
        path = csv(tmp_path, xy.round(digits))
        said = " ".join(inspect_points(path, SLANT, report_to=tmp_path).remarks)
        width = float(said.split("snap=")[1].split(")")[0])
        assert width <= max(100 * 10.0**-digits, 1e-5)
        pattern = read_pattern(path, SLANT, snap=width)
        assert SLANT.contains(pattern.xy).all()
        assert np.abs(pattern.xy - xy.round(digits)).max() <= width
        assert inspect_points(path, SLANT, report_to=tmp_path, snap=width).ok

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.floats(-30, 30), st.floats(-30, 30)), min_size=1, max_size=9))
    def test_places_inside_stay_and_others_go_to_the_nearest(self, points):
        holed = Window.polygon(shapely.box(0, 0, 10, 10).difference(shapely.Point(5, 5).buffer(2.5)))
        xy = np.array(points)
        moved, inside = holed.nearest(xy), holed.contains(xy)
        assert holed.contains(moved).all()
        assert np.array_equal(moved[inside], xy[inside])
        assert np.hypot(*(moved - xy).T) == pytest.approx(holed.outside(xy), abs=1e-6)

    def test_no_farther_than_the_tolerance(self, tmp_path):
        path = csv(tmp_path, [(5, 5), (10.4, 5)])
        assert read_pattern(path, SQUARE, snap=0.5).xy.tolist() == [[5, 5], [10, 5]]
        assert next(iter(read_batches(path, SQUARE, snap=0.5))).xy.tolist() == [[5, 5], [10, 5]]
        with pytest.raises(InputError, match=r"outside window.*snap="):
            read_pattern(path, SQUARE, snap=0.3)
        with pytest.raises(InputError, match="positive distance in the window's unit"):
            read_pattern(path, SQUARE, snap=0)

    def test_a_release_states_it_as_a_public_choice(self, tmp_path):
        path, place = csv(tmp_path, [(k % 10, 10.001) for k in range(40)]), ("--window", "0,0,10,10")
        words = ("--method", "laplace", "--epsilon", 1, "--alpha", 1, "--spacing", 5, "--yes")
        assert "--snap" in spoken(run("synthesize", path, *place, *words, "--out", tmp_path / "no", code=2))
        run("synthesize", path, *place, *words, "--snap", 0.01, "--out", tmp_path / "yes")
        assert "tolerance at its border" in str(dps.load_release(tmp_path / "yes").guarantee)


class TestLeftOut:
    INSIDE = ((1, 1), (9, 9), (0, 10))

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_exactly_those_outside(self, tmp_path, kind):
        xy = [*self.INSIDE, (11, 5), (5, -0.001)]
        path = csv(tmp_path, xy)
        if kind == "parquet":
            path = tmp_path / "p.parquet"
            shapes = [*shapely.points(xy), shapely.MultiPoint([(2, 2), (20, 20)])]
            frame = geopandas.GeoDataFrame({"k": range(6)}, geometry=shapes)
            frame.to_parquet(path)
            assert len(PointPattern.from_geodataframe(frame, SQUARE, skip_outside=True)) == 4
            found = read_pattern(path, SQUARE, marks=["k"], skip_outside=True)
            assert found.marks["k"].tolist() == [0, 1, 2, 5]
        else:
            found = read_pattern(path, SQUARE, skip_outside=True)
            assert sum(map(len, read_batches(path, SQUARE, skip_outside=True))) == 3
        assert found.xy[:3].tolist() == [list(map(float, each)) for each in self.INSIDE]
        assert inspect_points(path, SQUARE, report_to=tmp_path, skip_outside=True).ok

    def test_counts_and_tolerances_hold_beside_it(self, tmp_path):
        path = tmp_path / "p.csv"
        path.write_text("x,y,k\n1,1,2\n99,1,7\n10.2,1,3\n")
        assert len(read_pattern(path, SQUARE, count="k", skip_outside=True)) == 2
        assert len(read_pattern(path, SQUARE, count="k", skip_outside=True, snap=0.5)) == 5

    def test_other_rules_hold(self, tmp_path):
        path = tmp_path / "p.csv"
        path.write_text("x,y\n1,1\n99,1\n,2\n")
        with pytest.raises(InputError, match="missing coordinate"):
            read_pattern(path, SQUARE, skip_outside=True)

    def test_streets(self, tmp_path):
        streets = LinearNetwork([[0, 0], [10, 0]], [[0, 1]])
        path = csv(tmp_path, [(5, 1), (5, 4), (2, 0)])
        assert len(read_pattern(path, streets, snap=2, skip_outside=True)) == 2

    def test_where_the_number_is_public_it_is_refused_before_the_file_is_opened(self, tmp_path):
        words = (
            "synthesize",
            tmp_path / "none.csv",
            "--window",
            "0,0,10,10",
            "--skip-outside",
            "--yes",
            "--epsilon",
            1,
        )
        out = ("--out", tmp_path / "out", "--method", "laplace")
        said = spoken(run(*words, *out, "--alpha", 1, code=2))
        assert "--skip-outside: under" in said
        assert "take --relation add-remove" in said
        said = spoken(run(*words, *out, "--relation", "add-remove", "--expected-n", 40, code=2))
        assert "there is no file" in said

    def test_a_release_has_those_inside_and_says_what_is_promised(self, tmp_path):
        rng = np.random.default_rng(2)
        path = csv(tmp_path, np.vstack([rng.uniform(0, 10, (300, 2)), rng.uniform(20, 30, (300, 2))]))
        words = ("--method", "laplace", "--relation", "add-remove", "--expected-n", 300, "--epsilon", 5, "--spacing", 5)
        place = ("--window", "0,0,10,10")
        run("synthesize", path, *place, *words, "--yes", "--out", tmp_path / "no", code=2)
        result = run("synthesize", path, *place, *words, "--yes", "--skip-outside", "--out", tmp_path / "yes")
        assert "points outside the domain are left out" in spoken(result)
        points = json.loads((tmp_path / "yes" / "synthetic_000.geojson").read_text())["features"]
        # 300 points, noise of a few, and a Poisson number: 6 standard deviations; 600 had those outside been counted.
        assert 190 < len(points) < 410
