import csv
import itertools
import json
import re
import runpy
import shutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import shapely
from support.chance import Apart, Chance
from support.command_line import run, spoken
from support.pictures import pictures_drawn
from support.seams import chance_for_nuts, randomise_by, seeded_secrets

import dpppsynth as dps
from dpppsynth import cli
from dpppsynth.cli.console import exit_code
from dpppsynth.core import errors
from dpppsynth.models.draws import BLOCKED
from dpppsynth.privacy import catalogue
from dpppsynth.privacy.catalogue import Statement

ROOT = Path(__file__).resolve().parents[2]
SOHO = str(dps.datasets.path("soho_addresses"))
SQUARE = ["--window", "529100,180680,529770,181350"]
CRS = ["--crs", "EPSG:27700"]
LGCP = ["--method", "lgcp", "--epsilon", "1", "--alpha", "25"]
FAST = [*LGCP, "--inference", "laplace", "--length-scale", "200"]
CELLS = ["--method", "laplace", "--epsilon", "1", "--alpha", "25", "--postprocess", "plain"]
DRAW = [*LGCP, "--mechanism", "posterior-draw", "--delta", 1e-6]
PROXIMAL = [*DRAW, "--sampler", "proximal", "--spacing", 67]
KERNEL = ["--method", "kernel", "--epsilon", 10, "--alpha", 25, "--delta", 1e-6]
YEARS = ["--by", "year", "--levels", "2021,2022"]
N = 137


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A CSV file of points in the Soho window, the first 80 from 2021, and their coordinates."""
    rng = np.random.default_rng(11)
    xy = rng.normal((529400, 181000), 90, (N, 2)).round(2)
    path = tmp_path_factory.mktemp("data") / "deaths.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["x", "y", "year"])
        writer.writerows([*place, 2021 if k < 80 else 2022] for k, place in enumerate(xy.tolist()))
    return path, xy


@pytest.fixture(scope="module")
def public(points, tmp_path_factory):
    """A release, not to be changed."""
    out = tmp_path_factory.mktemp("release") / "public"
    run("synthesize", points[0], *CRS, *SQUARE, *FAST, "--patterns", 2, "--out", out)
    return out


@pytest.fixture(scope="module")
def years(points, tmp_path_factory):
    """A release by year, not to be changed."""
    out = tmp_path_factory.mktemp("release") / "years"
    run("synthesize", points[0], *CRS, *SQUARE, *PROXIMAL, *YEARS, "--fixed-n", "--out", out)
    return out


@pytest.fixture
def copy(public, tmp_path):
    """A release that may be changed."""
    return Path(shutil.copytree(public, tmp_path / "public"))


def is_silent_about(said, xy):
    # Temporary folders have numbers of their own, one more with every run of the tests.
    said = re.sub(r"pytest-\d+", "", said)
    assert not re.search(rf"\b{len(xy)}\b", said)
    assert not any(f"{value:.2f}" in said for value in xy.ravel())


class TestCheck:
    def test_says_what_is_promised(self):
        said = spoken(run("check", *LGCP, *SQUARE, *CRS, "--n", 392))
        assert "by at most 25 metres along a path inside the window" in said
        assert "It is assumed" not in said
        said = spoken(run("check", *LGCP, *SQUARE, *CRS, "--n", 392, "--verbose"))
        for words in (
            "The guarantee holds",
            catalogue.text("tents"),
            "It is assumed that: (1)",
            "privacy radius 25 metre",
            "49 vert",
            "is long beside the mean distance between points",
        ):
            assert words in said
        assert said.count("392") == said.count("--n 392") == 1

    @pytest.mark.parametrize(
        ("words", "price"),
        [
            (["--relation", "add-remove", "--expected-n", 400], "epsilon 1.4"),
            (["--relation", "replace-one", "--n", 400], None),
        ],
    )
    def test_says_what_moves_cost_where_points_come_and_go(self, words, price):
        said = spoken(run("check", "--method", "laplace", "--epsilon", 0.7, *words, *SQUARE, *CRS))
        assert "Epsilon does not depend on distance: it is 0.7" in said
        assert ("twice as much" in said) is (price is not None)
        assert price is None or f"twice as much: {price}" in said

    def test_prints_one_json_object(self):
        tents = ["--mechanism", "lgcp-tents", *LGCP[2:]]
        said = json.loads(run("check", *tents, *SQUARE, *CRS, "--n", 392, "--json").stdout)
        expected = dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents").plan(
            dps.datasets.soho_deaths().domain, n=392
        )
        assert said["guarantee"] == expected.guarantee.to_dict()
        assert said["parameters"]["scale"] == expected.statistic.scale
        assert said["mechanism"] == "lgcp-tents"
        assert said["mesh"]["vertices"] == 49
        assert said["noise_scale"] == pytest.approx(0.633, abs=1e-3)

    @pytest.mark.parametrize(
        ("options", "relation"),
        [
            (["--alpha", 25, "--n", 400], dps.AlphaNeighbours(25.0)),
            (["--relation", "alpha", "--alpha", 25, "--n", 400], dps.AlphaNeighbours(25.0)),
            (["--relation", "replace-one", "--n", 400], dps.ReplaceOne()),
            (["--relation", "add-remove", "--expected-n", 400], dps.AddRemove()),
            (["--relation", "add-remove", "--expected-n", 400, "--max-points-per-person", 3], dps.AddRemove(3)),
            (
                ["--alpha", 25, "--n", 400, "--max-points-per-person", 2],
                dps.AlphaNeighbours(25.0, max_points_per_person=2),
            ),
        ],
    )
    @pytest.mark.parametrize("method", [["lgcp"], ["laplace"], ["laplace", "--basis", "tents"]])
    def test_relations(self, method, options, relation):
        words = ["check", "--method", *method, "--epsilon", 0.5, *options, "--window", "0,0,1000,1000"]
        said = json.loads(run(*words, "--json").stdout)
        assert said["guarantee"]["relation"] == relation.to_dict()
        assert said["guarantee"]["profile"]["epsilon"] == pytest.approx(0.5)
        assert "The guarantee holds" in spoken(run(*words))

    def test_spacing_and_window_file(self, tmp_path):
        window = dps.Window.polygon(
            shapely.box(0, 0, 1000, 500).difference(shapely.box(400, 200, 500, 300)), "EPSG:27700"
        )
        path = tmp_path / "window.geojson"
        path.write_text(json.dumps(window.to_geojson()))
        for method in ("lgcp", "laplace"):
            words = ["--method", method, "--epsilon", 1, "--alpha", 25, "--n", 400, "--spacing", 100]
            said = json.loads(run("check", *words, "--window-file", path, "--json").stdout)
            assert said["mesh"]["spacing"] == [100, 100]
            assert said["domain"]["fingerprint"] == window.fingerprint()
            assert said["domain"]["unit"] == "metre"

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("words", "mechanism", "theorem", "said"),
        [
            ([*LGCP, "--mechanism", "field", "--delta", 1e-6], "lgcp-field", "field-statistic", "discrete Gaussian"),
            (DRAW, "lgcp-posterior-draw", "posterior-draw", "sampler exact"),
            (PROXIMAL, "lgcp-posterior-draw", "proximal-sampler", "sampler proximal"),
            ([*DRAW, "--sampler", "nuts"], "lgcp-posterior-draw", "posterior-draw", "sampler nuts (nutpie)"),
            ([*LGCP, "--mechanism", "lipschitz"], "lgcp-lipschitz", "lipschitz-field", "at most 0.02 per metre"),
            (KERNEL, "kernel", "kernel-superposition", "bandwidth 25.45"),
            ([*KERNEL, "--bound", "kim-lim-3.6"], "kernel", "kim-lim-3.6", "Nothing is promised about"),
        ],
    )
    def test_mechanisms(self, words, mechanism, theorem, said):
        text = spoken(run("check", *words, *SQUARE, *CRS, "--n", 392))
        assert f" mechanism {mechanism} theorem {catalogue.text(theorem)}" in text
        assert said in text

    def test_a_given_sigma_is_verified(self):
        words = ["check", *DRAW, "--length-scale", 150, *SQUARE, *CRS, "--n", 392]
        run(*words, "--sigma", "1.00")
        result = run(*words, "--sigma", 1.05, code=3)
        assert result.stdout == ""
        assert "--sigma: 1.05" in spoken(result)
        largest = re.search(r"the largest admissible is ([\d.]+)\.", spoken(result))[1]
        assert 1 < float(largest) < 1.05
        # What the message names is admissible, in spite of its rounding.
        run(*words, "--sigma", largest)

    def test_the_smallest_bandwidth_named_is_admissible(self):
        words = ["check", *KERNEL, *SQUARE, *CRS, "--n", 392, "--patterns", 2, "--bandwidth"]
        said = spoken(run(*words, 10, code=3))
        assert "for 2 patterns" in said
        run(*words, re.search(r"the smallest admissible is ([\d.]+)\.", said)[1])

    def test_covariance(self):
        words = ["check", *PROXIMAL, *SQUARE, *CRS, "--n", 392, "--sigma", 0.2, "--length-scale", 150, "--power", 1.5]
        said = json.loads(run(*words, "--json").stdout)["parameters"]["covariance"]
        assert (said["sigma"], said["length_scale"], said["power"]) == (0.2, 150, 1.5)

    @pytest.mark.parametrize("bound", ["3.8", "3.9"])
    def test_kim_lim_says_that_it_carries_no_information(self, bound):
        words = ["check", *LGCP, "--mechanism", f"kim-lim-{bound}", "--delta", 1e-6, *SQUARE, *CRS, "--n", 392]
        result = run(*words, "--length-scale", 150, "--json")
        assert result.stderr.startswith("Warning: ")
        assert "carries no spatial information" in result.stderr
        assert bound in json.loads(result.stdout)["guarantee"]["theorem"]
        assert json.loads(result.stdout)["guarantee"]["assumes"][0] == "model-averaged"
        assert "Nothing is promised about" in spoken(run(*words))
        assert "at most" in spoken(run(*words, "--sigma", 1, "--length-scale", 150, code=3))

    def test_distances_start_at_the_privacy_radius(self):
        rows = spoken(run("check", *PROXIMAL, *SQUARE, *CRS, "--n", 392)).split("epsilon at delta = 1e-06 ")[1]
        distance, epsilon = np.array(rows.split(" Next,")[0].split(), dtype=float).reshape(-1, 2).T
        assert (distance[0], epsilon[0]) == (25, pytest.approx(1, abs=0.01))
        assert distance[-1] == pytest.approx(np.hypot(670, 670), abs=1)
        assert (np.diff(epsilon) >= 0).all()

    def test_levels(self):
        words = ["check", *PROXIMAL, *SQUARE, *CRS, *YEARS, "--n-by", "200,192"]
        said = json.loads(run(*words, "--json").stdout)
        assert (said["mechanism"], said["by"], list(said["levels"])) == ("strata", "year", ["2021", "2022"])
        assert [level["parameters"]["n"] for level in said["levels"].values()] == [200, 192]
        window = dps.datasets.soho_deaths().domain
        mesh = dps.models.regular_triangulation(window, spacing=67)
        options = {"mechanism": "posterior-draw", "delta": 1e-6, "sampler": "proximal", "mesh": mesh}
        plan = dps.LGCPSynthesizer(1.0, alpha=25.0, **options).plan_by(
            window, by="year", levels=[2021, 2022], n={2021: 200, 2022: 192}
        )
        assert said["guarantee"] == plan.guarantee.to_dict()
        text = spoken(run(*words, "--verbose"))
        for word in ("year 2021", "year 2022", catalogue.text(Statement("public-level", by="year"))):
            assert word in text
        guess = ["--method", "lgcp", "--epsilon", 1, "--relation", "add-remove", *SQUARE, *YEARS, "--expected-n", 200]
        levels = json.loads(run("check", *guess, "--json").stdout)["levels"]
        assert [level["parameters"]["expected_n"] for level in levels.values()] == [200, 200]


class TestRehearse:
    @pytest.mark.slow
    def test_draw(self):
        words = ["rehearse", *DRAW, *SQUARE, *CRS, "--n", 392]
        said = json.loads(run(*words, "--json").stdout)
        assert (said["mechanism"], said["passed"], len(said["runs"])) == ("lgcp-posterior-draw", True, 3)
        assert all(each["attempts"] >= 1 and each["distance"] < 0.5 for each in said["runs"])
        text = spoken(run(*words))
        assert "half in one cell" in text
        assert "attempts" in text
        assert "R-hat" not in text

    def test_levels(self):
        words = ["rehearse", *KERNEL, *SQUARE, *CRS, *YEARS, "--n-by", "200,192", "--patterns", 2]
        said = json.loads(run(*words, "--json").stdout)
        assert (said["by"], list(said["levels"])) == ("year", ["2021", "2022"])
        text = spoken(run(*words))
        assert "year 2022, kernel" in text
        assert "attempts" not in text

    def test_a_run_that_would_be_blocked(self, monkeypatch):
        def block(*_):
            msg = "no"
            raise errors.ReleaseBlocked(msg)

        randomise_by(monkeypatch, block)
        words = ["rehearse", *PROXIMAL, *SQUARE, *CRS, "--n", 392]
        assert spoken(run(*words, code=5)).count("would be blocked") == 3
        assert json.loads(run(*words, "--json", code=5).stdout)["passed"] is False


WRONG = {
    "method": (
        ["--method", "voronoi", "--epsilon", 1, *SQUARE, "--n", 9],
        "'laplace', 'bounded-error', 'planar-laplace', 'lgcp'",
    ),
    "mechanism": ([*LGCP, "--mechanism", "fields", *SQUARE, "--n", 9], "'lgcp-posterior-draw', 'lgcp-lipschitz'"),
    "delta": ([*LGCP, "--delta", 1e-6, *SQUARE, "--n", 9], "spends no delta, got 1e-06; leave --delta out"),
    "delta of laplace": ([*CELLS, "--delta", 1e-6, *SQUARE, "--n", 9], "--delta: not an option of --method laplace"),
    "delta needed": ([*LGCP, "--mechanism", "field", *SQUARE, "--n", 9], "such as --delta 1e-6, or"),
    "delta of kernel": ([*KERNEL[:6], *SQUARE, "--n", 9], "such as --delta 1e-6."),
    "large delta": ([*DRAW, "--delta", 0.2, *SQUARE, "--n", 9], "or say --allow-large-delta to reproduce"),
    "sigma of tents": ([*LGCP, "--sigma", 1, *SQUARE, "--n", 9], "--sigma: mechanism 'auto' spends nothing"),
    "sigma of kernel": ([*KERNEL, "--sigma", 1, *SQUARE, "--n", 9], "--sigma: not an option of --method kernel"),
    "negative sigma": ([*DRAW, "--sigma", -1, *SQUARE, "--n", 9], "--sigma: must be a positive"),
    "length scale": ([*DRAW, "--length-scale", 0, *SQUARE, "--n", 9], "--length-scale: must be a positive"),
    "power alone": ([*DRAW, "--power", 1, *SQUARE, "--n", 9], "--power: goes with --sigma and --length-scale"),
    "sampler": ([*LGCP, "--sampler", "exact", *SQUARE, "--n", 9], "leave --sampler out"),
    "inference of a draw": ([*DRAW, "--inference", "laplace", *SQUARE, "--n", 9], "leave --inference out"),
    "bandwidth of lgcp": ([*LGCP, "--bandwidth", 9, *SQUARE, "--n", 9], "--bandwidth: not an option of --method lgcp"),
    "spacing of kernel": ([*KERNEL, "--spacing", 9, *SQUARE, "--n", 9], "--spacing: not an option of --method kernel"),
    "bandwidth": ([*KERNEL, "--bandwidth", -9, *SQUARE, "--n", 9], "--bandwidth: must be a positive"),
    "patterns": ([*KERNEL, "--patterns", 0, *SQUARE, "--n", 9], "--patterns"),
    "add-remove of kernel": (
        [*KERNEL[:4], "--delta", 1e-6, "--relation", "add-remove", *SQUARE, "--expected-n", 9],
        "use --method lgcp under --relation add-remove",
    ),
    "power of kim-lim": (
        [*DRAW, "--mechanism", "kim-lim-3.8", "--sigma", 1, "--length-scale", 9, "--power", 1, *SQUARE, "--n", 9],
        "--power: Kim & Lim's synthesizer has none but --sigma and --length-scale; leave it out",
    ),
    "corollary 3.9": (
        [*DRAW, "--mechanism", "kim-lim-3.9", "--spacing", 20, *SQUARE, "--n", 9],
        "use a coarser mesh or --mechanism lgcp-kim-lim-3.8",
    ),
    "by alone": ([*LGCP, "--by", "year", *SQUARE], "--by: goes with --levels"),
    "levels alone": ([*LGCP, "--levels", "2021", *SQUARE], "--by: goes with --levels"),
    "numbers alone": ([*LGCP, "--n-by", "2,3", *SQUARE], "--n-by: goes with --by"),
    "one number": ([*LGCP, *YEARS, "--n", 9, *SQUARE], "--n-by 200,192"),
    "no numbers": ([*LGCP, *YEARS, *SQUARE], "--n-by 200,192"),
    "few numbers": ([*LGCP, *YEARS, "--n-by", "9", *SQUARE], "one whole number for each of the 2 levels"),
    "wrong numbers": ([*LGCP, *YEARS, "--n-by", "9,x", *SQUARE], "one whole number for each of the 2 levels"),
    "same levels": ([*LGCP, *YEARS[:3], "a,a", "--n-by", "9,9", *SQUARE], "--levels: needs a list of different"),
    "delta of all levels": (
        [*KERNEL[:-1], 0.0049, "--by", "year", "--levels", "1,2", "--n-by", "200,200", *SQUARE],
        "--delta: must be below 1/n",
    ),
    "secret numbers": (
        [*LGCP[:4], "--relation", "add-remove", *YEARS, "--n-by", "9,9", *SQUARE],
        "pass a public guess as --expected-n instead",
    ),
    "epsilon": (["--method", "laplace", "--epsilon", -1, *SQUARE, "--n", 9], "--epsilon: must be a positive"),
    "no radius": (["--method", "lgcp", "--epsilon", 1, *SQUARE, "--n", 9], "--alpha 25"),
    "radius needed": ([*CELLS[:4], "--relation", "alpha", *SQUARE, "--n", 9], "--alpha 25"),
    "two relations": ([*LGCP, "--relation", "replace-one", *SQUARE, "--n", 9], "leave --alpha out"),
    "no window": ([*LGCP, "--n", 9], "--window"),
    "two windows": ([*LGCP, *SQUARE, "--window-file", "w.geojson", "--n", 9], "not both"),
    "three numbers": ([*LGCP, "--window", "0,0,1", "--n", 9], "x0,y0,x1,y1"),
    "flat window": ([*LGCP, "--window", "0,0,0,1", "--n", 9], "x1: must be larger"),
    "window of table": ([*LGCP, "--window-file", "w.csv", "--n", 9], "--window-file: a window is made of polygons"),
    "degrees": ([*LGCP, "--window", "-1,51,0,52", "--crs", "EPSG:4326", "--n", 9], "EPSG:4326 (WGS 84) is in degrees"),
    "no n": ([*LGCP, *SQUARE], "--n 500"),
    "no guess": ([*LGCP[:4], "--relation", "add-remove", *SQUARE], "--expected-n"),
    "secret n": ([*LGCP[:4], "--relation", "add-remove", *SQUARE, "--n", 9], "--expected-n"),
    "guess of public n": ([*LGCP, *SQUARE, "--expected-n", 9], "pass --n instead"),
    "cells of lgcp": ([*LGCP, "--basis", "cells", *SQUARE, "--n", 9], "--method laplace"),
    "option of the other": ([*CELLS, "--length-scale", 9, *SQUARE, "--n", 9], "--length-scale: not an option of"),
    "offset without column": ([*LGCP, "--offset-file", "w.geojson", *SQUARE, "--n", 9], "--offset-column"),
    "keep-n": ([*CELLS[:4], "--relation", "add-remove", "--postprocess", "keep-n", *SQUARE], "--postprocess"),
    "unknown option": ([*LGCP, *SQUARE, "--seed", 1], "No such option"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_in_words(name):
    words, remedy = WRONG[name]
    result = run("check", *words, code=2)
    assert remedy in spoken(result)
    assert result.stdout == ""


class TestSynthesize:
    def test_main_job(self, public, points):
        names = {path.name for path in public.iterdir()}
        assert {"certificate.json", "domain.geojson", "synthetic_000.geojson", "synthetic_001.geojson"} <= names
        assert run("verify", public / "certificate.json").exit_code == 0

    def test_screen_is_silent_about_the_points(self, points, tmp_path):
        path, xy = points
        words = ["synthesize", path, "--x", "x", "--y", "y", *CRS, *SQUARE, *FAST]
        is_silent_about(run(*words, "--out", tmp_path / "a").output, xy)
        result = run(*words, "--out", tmp_path / "b", "--json")
        is_silent_about(result.output, xy)
        said = json.loads(result.stdout)
        assert said["patterns"] == ["synthetic_000.geojson"]
        assert said["guarantee"]["profile"]["epsilon"] == pytest.approx(1)

    def test_counts_stand_for_points(self, tmp_path):
        words = ["synthesize", SOHO, "--count", "deaths", *CRS, *SQUARE, *CELLS, "--fixed-n", "--out", tmp_path / "out"]
        run(*words, "--n", 392)
        domain = dps.datasets.soho_deaths().domain
        assert len(dps.io.read_synthetic(tmp_path / "out" / "synthetic_000.geojson", domain)) == 392

    def test_the_public_number_is_checked_first(self, points, tmp_path):
        words = ["synthesize", points[0], *CRS, *SQUARE, *CELLS, "--out", tmp_path / "out"]
        result = run(*words, "--n", N + 1, code=2)
        assert not re.search(rf"\b{N}\b", result.output)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".parquet", "degrees"])
    def test_own_file_in_a_polygon_with_a_hole(self, points, tmp_path, suffix):
        _, xy = points
        hole = shapely.box(529600, 181200, 529700, 181300)
        window = dps.Window.polygon(shapely.box(529000, 180600, 529800, 181400).difference(hole), "EPSG:27700")
        (tmp_path / "window.geojson").write_text(json.dumps(window.to_geojson()))
        pattern = dps.PointPattern(xy, window)
        words = [*CELLS, "--window-file", tmp_path / "window.geojson", "--out", tmp_path / "out"]
        if suffix == "degrees":
            path, words = tmp_path / "points.geojson", [*words, "--to-crs", "EPSG:27700"]
            pattern.to_geodataframe().to_crs("EPSG:4326").to_file(path, driver="GeoJSON", RFC7946="YES")
        else:
            path = tmp_path / f"points{suffix}"
            dps.io.write_pattern(pattern, path)
        run("synthesize", path, *words)
        synthetic = dps.io.read_synthetic(tmp_path / "out" / "synthetic_000.geojson", window)
        assert window.contains(synthetic.xy).all()

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (["--window", "0,0"], "x0,y0,x1,y1"),
            (["--epsilon", 0], "--epsilon"),
            (["--delta", 1e-6], "leave --delta out"),
            (["--out", "full"], "not an empty folder"),
            (["--out", "a-file/below"], "--out"),
            (["--relation", "add-remove"], "leave --alpha out"),
        ],
    )
    def test_everything_public_is_refused_before_the_points_are_read(self, change, said, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("full").mkdir()
        Path("full/file").touch()
        Path("a-file").touch()
        words = ["synthesize", "missing.csv", *CRS, *SQUARE, *LGCP, "--out", "out"]
        assert said in spoken(run(*words, *change, code=2))
        assert "there is no file" in spoken(run(*words, code=2))

    def test_secret_number(self, points, tmp_path):
        path, xy = points
        words = [*CRS, *SQUARE, "--method", "lgcp", "--epsilon", 1, "--relation", "add-remove"]
        words += ["--inference", "laplace", "--length-scale", 200, "--expected-n", 200]
        assert "--fixed-n" in spoken(run("synthesize", path, *words, "--fixed-n", "--out", tmp_path / "x", code=2))
        result = run("synthesize", path, *words, "--out", tmp_path / "out")
        is_silent_about(result.output, xy)
        certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
        assert certificate["parameters"]["n"] is None
        short = tmp_path / "short.csv"
        short.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in xy[:40]) + "\n")
        again = run("synthesize", short, *words, "--out", tmp_path / "again")
        assert again.output.replace("again", "out") == result.output

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "words",
        [
            [*LGCP, "--mechanism", "field", "--delta", 1e-6, "--inference", "laplace", "--length-scale", 200],
            DRAW,
            [*LGCP, "--mechanism", "lipschitz"],
            KERNEL,
        ],
    )
    def test_mechanisms(self, points, tmp_path, words):
        path, xy = points
        result = run("synthesize", path, *CRS, *SQUARE, *words, "--patterns", 2, "--out", tmp_path / "out", "--json")
        is_silent_about(result.output, xy)
        said = json.loads(result.stdout)
        assert said["patterns"] == ["synthetic_000.geojson", "synthetic_001.geojson"]
        run("verify", tmp_path / "out")
        release = dps.load_release(tmp_path / "out")
        assert release.guarantee.to_dict() == said["guarantee"]
        written = [dps.io.read_synthetic(tmp_path / "out" / name, release.domain) for name in said["patterns"]]
        # A Poisson number of mean 137 or so: beyond (60, 260) with probability below 1e-8.
        assert all(60 < len(pattern) < 260 for pattern in written)
        assert not np.array_equal(written[0].xy, written[1].xy)

    def test_levels(self, years, points):
        domain = dps.datasets.soho_deaths().domain
        synthetic = dps.io.read_synthetic(years / "synthetic_000.geojson", domain, marks=["year"])
        assert np.unique(synthetic.marks["year"], return_counts=True)[1].tolist() == [80, N - 80]
        assert spoken(run("verify", years)).count("✓") == 5

    def test_levels_must_hold_all_points(self, points, tmp_path):
        words = ["synthesize", points[0], *CRS, *SQUARE, *CELLS, "--out", tmp_path / "out", "--by", "year", "--levels"]
        for levels, rule in (
            ("2021", "every point's year must be one of 2021;"),
            ("2021,2022,2023", "every level of year needs at least one point"),
            ("2021,2021", "needs a list of different values"),
        ):
            result = run(*words, levels, code=2)
            assert f"--levels: {rule}" in spoken(result)
            is_silent_about(result.output, points[1])
        other = ["month" if word == "year" else word for word in words]
        assert "--by: there is no column 'month'" in spoken(run(*other, "1,2", code=2))
        wrong = run(*words, "2021,2022", "--n-by", "79,58", code=2)
        assert not re.search(r"\b(80|57)\b", wrong.output.replace("fewer than 80 points", ""))
        assert not (tmp_path / "out").exists()

    @pytest.mark.slow
    def test_failed_diagnostics_of_one_level_keep_all_levels(self, points, tmp_path):
        words = [*CRS, *SQUARE, *LGCP, "--length-scale", 200, *YEARS, "--out", tmp_path / "out"]
        # Every try of the first level fails.
        samplers = itertools.chain([Apart] * 3, itertools.repeat(Chance))

        def sampler(*given):
            return next(samplers)(*given)

        with chance_for_nuts(sampler):
            run("synthesize", points[0], *words, code=5)
        assert "--inference laplace" in spoken(run("sample", tmp_path / "out", code=2))
        run("infer", tmp_path / "out", "--inference", "laplace", "--out", tmp_path / "new")
        run("verify", tmp_path / "new")
        for name in ("year=2021_statistic.json", "year=2022_statistic.json"):
            assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "new" / name).read_bytes()

    def test_blocked_release_says_nothing_of_the_data(self, points, tmp_path, monkeypatch):
        def block(plan, draw, exact):
            raise errors.ReleaseBlocked(BLOCKED) from ValueError(f"{exact}")

        randomise_by(monkeypatch, block)
        nuts = [*DRAW, "--sampler", "nuts", "--out", tmp_path / "out"]
        result = run("synthesize", points[0], *CRS, *SQUARE, *nuts, code=5)
        is_silent_about(result.output, points[1])
        said = BLOCKED.replace("sampler:", "--sampler:").replace("sampler='exact'", "--sampler exact")
        assert result.stderr.splitlines()[-1] == f"Error: {said}"
        assert result.stdout == ""
        assert not (tmp_path / "out").exists()

    def test_offset_from_a_layer(self, points, tmp_path):
        import geopandas

        west, east = shapely.box(529100, 180680, 529400, 181350), shapely.box(529400, 180680, 529770, 181350)
        layer = geopandas.GeoDataFrame({"density": [1.0, 0.0]}, geometry=[west, east], crs="EPSG:27700")
        layer.to_file(tmp_path / "people.gpkg")
        words = [*CRS, *SQUARE, *FAST, "--offset-file", tmp_path / "people.gpkg", "--offset-column"]
        assert "density" in spoken(run("synthesize", points[0], *words, "wrong", "--out", tmp_path / "out", code=2))
        run("synthesize", points[0], *words, "density", "--out", tmp_path / "out")
        release = dps.load_release(tmp_path / "out")
        assert release.sample(1)[0].xy[:, 0].max() <= 529400

    @pytest.mark.slow
    def test_failed_diagnostics_keep_the_paid_statistic(self, points, tmp_path):
        out = tmp_path / "out"

        with chance_for_nuts(Apart):
            said = spoken(run("synthesize", points[0], *CRS, *SQUARE, *LGCP, "--out", out, code=5))
        assert re.search(r"R-hat [0-9.]+ \(at most 1\.01\)", said)
        assert f"resume {out} --inference laplace" in said.replace(" /", "/").replace("resume/", "resume /")
        assert not list(out.glob("synthetic_*"))
        run("verify", out)
        assert "--inference laplace" in spoken(run("sample", out, code=2))
        run("plot", out, "--out", tmp_path / "pictures")
        assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"epsilon.png", "mesh.png"}
        assert "--out" in spoken(run("infer", out, "--inference", "laplace", code=2))
        run("infer", out, "--inference", "laplace", "--patterns", 2, "--out", tmp_path / "new")
        run("verify", tmp_path / "new")
        assert len(list((tmp_path / "new").glob("synthetic_*"))) == 2
        both = [(folder / "statistic.json").read_bytes() for folder in (out, tmp_path / "new")]
        assert both[0] == both[1]


class TestSample:
    def test_patterns_join_the_release(self, copy):
        said = json.loads(run("sample", copy, "--patterns", 3, "--json").stdout)
        assert said["patterns"] == [f"synthetic_{k:03d}.geojson" for k in range(5)]
        run("verify", copy)

    def test_patterns_alone(self, public, tmp_path):
        out = tmp_path / "more"
        run("sample", public, "--patterns", 2, "--source", "mean", "--fixed-n", "--out", out)
        assert {path.name for path in out.iterdir()} == {"synthetic_mean_000.geojson", "synthetic_mean_001.geojson"}
        domain = dps.load_release(public).domain
        assert [len(dps.io.read_synthetic(path, domain)) for path in out.iterdir()] == [N, N]
        assert "not an empty folder" in spoken(run("sample", public, "--out", out, code=2))

    def test_changed_release_is_refused(self, copy):
        (copy / "statistic.json").write_text("{}")
        run("sample", copy, code=3)

    def test_inference_needs_a_posterior(self, points, tmp_path):
        run("synthesize", points[0], *CRS, *SQUARE, *CELLS, "--out", tmp_path / "out")
        words = ["infer", tmp_path / "out", "--inference", "laplace", "--out", tmp_path / "new"]
        assert "no posterior" in spoken(run(*words, code=2))

    @pytest.mark.slow
    def test_patterns_by_level(self, years, tmp_path):
        folder = Path(shutil.copytree(years, tmp_path / "years"))
        run("sample", folder, "--patterns", 2, "--fixed-n")
        run("verify", folder)
        domain = dps.load_release(folder).domain
        marks = dps.io.read_synthetic(folder / "synthetic_002.geojson", domain, marks=["year"]).marks["year"]
        assert sorted(set(marks)) == [2021, 2022]
        assert "no posterior" in spoken(run("infer", folder, "--inference", "laplace", "--out", tmp_path / "x", code=2))

    @pytest.mark.slow
    def test_patterns_of_a_kernel_are_a_new_spend(self, points, tmp_path):
        for k, by in enumerate(([], YEARS)):
            out = tmp_path / str(k)
            run("synthesize", points[0], *CRS, *SQUARE, *KERNEL, *by, "--out", out)
            assert "would be a new spend" in spoken(run("sample", out, code=2))
            run("plot", out, "--out", tmp_path / "pictures")
            assert (tmp_path / "pictures" / "year=2022_pattern.png").exists() is bool(by)
            assert not list((tmp_path / "pictures").glob("*intensity*"))
        fixed = ["synthesize", points[0], *CRS, *SQUARE, *KERNEL, "--fixed-n", "--out", tmp_path / "fixed"]
        assert "leave --fixed-n out" in spoken(run(*fixed, code=2))

    def test_a_seed_draws_the_same_patterns_again(self, public, tmp_path):
        for name, seed in (("one", 3), ("again", 3), ("other", 4)):
            run("sample", public, "--patterns", 2, "--seed", seed, "--out", tmp_path / name)
        one, again, other = (
            [path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in ("one", "again", "other")
        )
        assert one == again != other
        assert one[0] != one[1]

    def test_a_release_takes_the_patterns_of_a_seed_once(self, public, tmp_path):
        """Twice the same would count as independent draws."""
        own = shutil.copytree(public, tmp_path / "own")
        run("sample", own, "--patterns", 2, "--seed", 3)
        before = (own / "certificate.json").read_bytes()
        assert "--seed: the release holds a pattern of this seed already" in spoken(
            run("sample", own, "--patterns", 3, "--seed", 3, code=2)
        )
        assert (own / "certificate.json").read_bytes() == before
        run("sample", own, "--seed", 4)
        run("verify", own)


class TestInfer:
    def test_engine_alone_means_nothing(self, public, tmp_path):
        words = ["infer", public, "--inference", "laplace", "--engine", "pymc", "--out", tmp_path / "new"]
        assert "--inference nuts" in spoken(run(*words, code=2))

    def test_statistic_and_promise_stay(self, public, tmp_path):
        new = tmp_path / "new"
        with chance_for_nuts():
            said = json.loads(run("infer", public, "--inference", "nuts", "--out", new, "--json").stdout)
        assert (said["spent"], said["inference"]) == (0.0, "nuts")
        assert said["fits"][""]["rhat"] < 1.01
        run("verify", new)
        assert (new / "statistic.json").read_bytes() == (public / "statistic.json").read_bytes()
        before, after = (json.loads((folder / "certificate.json").read_text()) for folder in (public, new))
        changed = {name for name in before if before[name] != after[name]}
        assert changed <= {"content_hash", "files", "parameters"}
        own = [each["parameters"] | {"estimator": None} for each in (before, after)]
        assert own[0] == own[1]
        assert after["parameters"]["estimator"]["inference"] == "nuts"

    def test_what_was_done_is_said(self, public, tmp_path):
        said = spoken(run("infer", public, "--inference", "laplace", "--patterns", 0, "--out", tmp_path / "new"))
        assert "Inferred again (laplace)" in said
        assert "nothing was spent" in said
        assert not list((tmp_path / "new").glob("synthetic_*"))


def test_a_second_mark_is_refused():
    """The first of two marks was dropped without a word."""
    twice = [*CRS, *SQUARE, *LGCP, "--by", "type", "--by", "band", "--levels", "a,b", "--n-by", "3,4"]
    assert "Error: --by: takes one mark, and was given several" in spoken(run("check", *twice, code=2))


class TestVerify:
    def test_holds(self, public):
        for path in (public, public / "certificate.json"):
            said = spoken(run("verify", path))
            assert said.count("✓") == 5
            assert "The certificate holds" in said

    def test_json(self, public):
        said = json.loads(run("verify", public, "--json").stdout)
        assert said["holds"] is True
        assert {check["name"] for check in said["checks"]} == {"content", "files", "randomness", "statistic", "bound"}

    @pytest.mark.parametrize("as_json", [True, False])
    def test_edited(self, copy, as_json):
        path = copy / "certificate.json"
        path.write_text(path.read_text().replace('"delta": 0.0', '"delta": 0.5'))
        result = run("verify", path, *(["--json"] if as_json else []), code=3)
        if as_json:
            assert json.loads(result.stdout)["holds"] is False
        else:
            assert "NOT hold" in spoken(result)
            assert "✗ content: some field was edited" in spoken(result)

    @pytest.mark.parametrize("content", [None, "{}", "no json"])
    def test_unreadable(self, tmp_path, content):
        if content is not None:
            (tmp_path / "certificate.json").write_text(content)
        run("verify", tmp_path, code=2)


class TestPlot:
    def test_public_pictures(self, public, tmp_path):
        pumps = dps.datasets.path("soho_pumps")
        run("plot", public, "--out", tmp_path / "pictures", "--landmarks", pumps, "--landmarks-label", "pump")
        pictures = sorted((tmp_path / "pictures").iterdir())
        assert [path.name for path in pictures] == ["epsilon.png", "intensity.png", "mesh.png", "pattern.png"]
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)

    def test_confidential_picture(self, public, points, tmp_path):
        private = tmp_path / "private"
        result = run("plot", public, "--original", points[0], "--out", private)
        is_silent_about(result.output, points[1])
        assert [path.name for path in private.iterdir()] == ["CONFIDENTIAL_comparison.png"]

    @pytest.mark.slow
    def test_levels(self, years, tmp_path):
        with pictures_drawn() as drawn:
            run("plot", years, "--out", tmp_path)
        each = [f"year={k}_{name}.png" for k in (2021, 2022) for name in ("intensity", "mesh", "pattern")]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["epsilon.png", "pattern.png", *each]
        shown = [
            (ax.get_title(loc="left").partition(", ")[2], len(marks.get_offsets()))
            for ax in drawn
            for marks in ax.collections
        ]
        assert {("", N), ("year 2021", 80), ("year 2022", N - 80)} <= set(shown)

    def test_distances_are_straight_in_a_window(self, public, tmp_path):
        with pictures_drawn() as drawn:
            run("plot", public, "--out", tmp_path / "pictures")
        assert "distance one point moves (m)" in [ax.get_xlabel() for ax in drawn]

    def test_nothing_is_drawn_into_a_release(self, copy, points):
        before = sorted(copy.iterdir())
        inside = copy / "pictures"
        assert "outside" in spoken(run("plot", copy, "--original", points[0], "--out", inside, code=2))
        assert "outside" in spoken(run("plot", copy, "--out", inside, code=2))
        assert "--out: name a private folder" in spoken(run("plot", copy, "--original", points[0], code=2))
        assert sorted(copy.iterdir()) == before


class TestInspect:
    def test_clean_file(self, points, tmp_path):
        result = run("inspect", points[0], *CRS, *SQUARE, "--out", tmp_path)
        assert "keeps the rules" in result.output
        assert not list(tmp_path.iterdir())

    def test_broken_rules_are_named_and_rows_are_hidden(self, tmp_path):
        (tmp_path / "points.csv").write_text("x,y\n529200.25,181000.5\n1.25,2.5\nwrong,181000.5\n")
        words = ["inspect", tmp_path / "points.csv", *CRS, *SQUARE, "--out", tmp_path / "private"]
        result = run(*words, code=2)
        assert "outside window" in result.output
        assert "not a number" in result.output
        assert "1.25" not in result.output
        report = json.loads(run(*words, "--json", code=2).stdout)
        assert "1.25" in Path(report["report"]).read_text()
        assert "CONFIDENTIAL" in report["report"]

    def test_report_never_joins_a_release(self, public, points):
        said = spoken(run("inspect", points[0], *CRS, *SQUARE, "--out", public, code=2))
        assert said.startswith("Error: --out: ")
        assert "outside" in said
        assert "--out: name a private folder" in spoken(run("inspect", points[0], *CRS, *SQUARE, code=2))


class TestProgram:
    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (errors.InputError, 2),
            (errors.PrivacyCheckError, 3),
            (errors.BudgetError, 4),
            (errors.ReleaseBlocked, 5),
            (errors.QualityError, 5),
        ],
    )
    def test_exit_codes(self, error, code):
        assert exit_code(error("reason")) == code

    def test_version(self):
        assert run("--version").stdout.strip() == f"dpppsynth {dps.__version__}"

    @pytest.mark.parametrize("command", ["check", "rehearse", "synthesize", "sample", "verify", "plot", "inspect"])
    def test_every_command_explains_itself(self, command):
        assert "Usage" in run(command, "--help").stdout

    def test_unforeseen_errors_do_not_quote_the_data(self, points, tmp_path, monkeypatch, capsys):
        def crash(*_, **__):
            secret = "529400.25"
            msg = f"could not convert {secret}"
            raise RuntimeError(msg)

        monkeypatch.setattr("csv.reader", crash)
        words = ["synthesize", points[0], *CRS, *SQUARE, *CELLS, "--out", tmp_path / "out"]
        monkeypatch.setattr(sys, "argv", ["dpppsynth", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 1
        said = capsys.readouterr().err
        assert "RuntimeError" in said
        assert "in crash" in said
        assert "529400" not in said

    @pytest.mark.slow
    def test_module_runs(self):
        module = [sys.executable, "-m", "dpppsynth"]
        words = ["check", *CELLS, "--window", "0,0,100,100", "--n", "50", "--json"]
        result = subprocess.run([*module, *words], capture_output=True, text=True, check=True)
        assert json.loads(result.stdout)["holds"] is True


@pytest.mark.slow
def test_main_job_with_nuts(points, tmp_path):
    out = tmp_path / "public"
    scale = ["--length-scale", 250]
    words = ["synthesize", points[0], "--x", "x", "--y", "y", *CRS, *SQUARE, *LGCP, *scale]
    with seeded_secrets():
        run(*words, "--patterns", 3, "--out", out)
    assert len(list(out.glob("synthetic_*.geojson"))) == 3
    run("verify", out / "certificate.json")


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch):
    """Each command of the demo in this process, as starting a Python takes longer than most of them."""

    real = subprocess.run

    def in_process(command, **settings):
        # Libraries ask the system for its processor when they are first imported.
        if command[0] != sys.executable:
            return real(command, **settings)
        assert command[1:3] == ["-m", "dpppsynth"]
        return types.SimpleNamespace(returncode=0, stdout=run(*command[3:]).stdout)

    out = tmp_path / "demo"
    (out / "public").mkdir(parents=True)
    (out / "public" / "old").touch()
    (out / "kept").touch()
    # As a user runs it, who has to answer warnings.
    monkeypatch.delenv("DPPPSYNTH_YES")
    monkeypatch.setattr(subprocess, "run", in_process)
    monkeypatch.setattr(sys, "argv", ["demo.py", str(out), "laplace"])
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    assert {path.name for path in out.iterdir()} == {"public", "pictures", "CONFIDENTIAL", "streets", "kept"}
    assert not (out / "public" / "old").exists()
    assert {path.parent.name for path in out.rglob("*.png")} == {"pictures", "CONFIDENTIAL"}
    run("verify", out / "public")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    import geopandas
    import rasterio

    folder = tmp_path_factory.mktemp("layers")
    people = np.random.default_rng(1).poisson(2.0, (100, 100)).astype("float64")
    place = {"crs": "EPSG:27700", "transform": rasterio.transform.from_bounds(0, 0, 1000, 1000, 100, 100)}
    form = {"driver": "GTiff", "count": 1, "dtype": "float64", "height": 100, "width": 100}
    with rasterio.open(folder / "people.tif", "w", **form, **place) as out:
        out.write(people, 1)
    halves = [shapely.box(0, 0, 500, 1000), shapely.box(500, 0, 1000, 1000)]
    layer = geopandas.GeoDataFrame({"score": [1.0, 2.0]}, geometry=halves, crs="EPSG:27700")
    layer.to_file(folder / "areas.gpkg")
    return folder


class TestLayers:
    """Public layers on the command line: GeoTIFF and polygons."""

    WORDS = ("check", "--window", "0,0,1000,1000", "--crs", "EPSG:27700", "--n", 2000, "--mechanism", "lgcp-tents")
    WORDS += ("--epsilon", 1, "--alpha", 20)

    @pytest.mark.slow
    def test_a_population_covariates_and_the_crowd(self, files):
        import rasterio

        people = files / "people.tif"
        words = ["--offset-file", people, "--offset-as", "counts", "--population", people]
        words += [
            "--covariates",
            f"score={files / 'areas.gpkg'}:score,people={people}",
            "--offset-source",
            "Census 2021",
        ]
        words += ["--covariates-source", "a map"]
        told = json.loads(run(*self.WORDS, *words, "--json").stdout)
        estimator = told["parameters"]["estimator"]
        assert estimator["covariates"]["names"] == ["score", "people"]
        assert estimator["covariates"]["over"] == "offset"
        assert estimator["covariates"]["sd"][0] == pytest.approx(0.5, rel=0.01)
        assert len(estimator["offset"]) == 64
        layers = [
            each for each in told["guarantee"]["assumes"] if isinstance(each, dict) and each["code"] == "public-layer"
        ]
        assert [each["source"] for each in layers] == ["Census 2021", "a map"]
        assert told["crowd"]["typical"] == pytest.approx(2 * np.pi * 4, rel=0.2)
        said = spoken(run(*self.WORDS, *words))
        assert "of a typical inhabitant live about 25 people" in said
        # Whoever took densities for counts sees another number of inhabitants.
        with rasterio.open(people) as layer:
            assert f"total {layer.read().sum():,.6g} in the domain" in said

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--covariates", "score={}/areas.gpkg:none"], "there is no column 'none'"),
            (["--covariates", "score={}/areas.gpkg"], "give FILE:COLUMN"),
            (["--covariates", "{}/people.tif"], "needs NAME=FILE.tif"),
            (["--offset-file", "{}/people.tif", "--offset-column", "a"], "a GeoTIFF has no columns"),
            (["--offset-as", "counts"], "give the layer, --offset-file"),
            (["--offset-source", "a map"], "give the layer, --offset-file"),
            (["--covariates-source", "a map"], "goes with --covariates"),
            (["--population-column", "a"], "goes with --population"),
            (["--offset-file", "{}/none.tif"], "there is no such file"),
        ],
    )
    def test_refused(self, files, words, said):
        assert said in spoken(run(*self.WORDS, *(word.format(files) for word in words), code=2))

    def test_a_layer_that_does_not_cover_the_window(self, files):
        wide = [each if each != "0,0,1000,1000" else "0,0,1200,1000" for each in self.WORDS]
        words = ["--offset-file", files / "people.tif"]
        said = spoken(run(*wide, *words, code=2))
        assert "people.tif: 17 % of the window has no value; fill it, or give --offset-fill 0" in said
        run(*wide, *words, "--offset-fill", 0)

    @pytest.mark.slow
    def test_a_coordinate_system_that_files_do_not_name(self, files, tmp_path):
        """--crs states it beside --window; where the window's own file names one, it is asked for."""
        import geopandas
        import rasterio

        with rasterio.open(files / "people.tif") as known:
            profile, people = known.profile | {"crs": None}, known.read(1)
        with rasterio.open(tmp_path / "people.tif", "w", **profile) as out:
            out.write(people, 1)
        frame = geopandas.GeoDataFrame({"n": [9.0]}, geometry=[shapely.box(0, 0, 1000, 1000)], crs="EPSG:27700")
        frame.to_file(tmp_path / "window.gpkg")
        # Writing is warned of.
        with warnings.catch_warnings(action="ignore"):
            frame.set_crs(None, allow_override=True).to_file(tmp_path / "areas.gpkg")
        bare = {
            "--offset-file": [tmp_path / "people.tif"],
            "--covariates": [f"n={tmp_path / 'people.tif'}"],
            "--population": [tmp_path / "areas.gpkg", "--population-column", "n"],
        }
        for option, words in bare.items():
            run(*self.WORDS, option, *words)
            named = ["check", "--window-file", tmp_path / "window.gpkg", *self.WORDS[5:], option, *words]
            said = spoken(run(*named, code=2))
            assert "does not say which coordinate system it is in, and the domain is in EPSG:27700" in said
            assert "--crs EPSG:27700" in said
            run(*named, "--crs", "EPSG:27700")

    @pytest.mark.slow
    def test_a_report_says_how_many_live_near(self, files, tmp_path):
        window = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
        pattern = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (200, 2)), window)
        folder = dps.LaplaceSynthesizer(1.0, alpha=20.0).release(pattern).save(tmp_path / "out")
        run("report", folder, "--population", files / "people.tif")
        assert "of a typical inhabitant live about 25 people" in (folder / "report.html").read_text()
        assert "--population-column" in spoken(run("report", folder, "--population", files / "areas.gpkg", code=2))
