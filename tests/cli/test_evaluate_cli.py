"""`dpppsynth evaluate`: the screen stays silent, and nothing confidential comes near a release."""

import csv
import json
import re
import shutil
from functools import partial

import numpy as np
import pytest
from support.command_line import run as run_command
from support.command_line import spoken
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth import cli
from dpppsynth.evaluation import distances
from dpppsynth.io import read_synthetic, write_pattern

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STREETS = dps.LinearNetwork([[0, 0], [500, 0], [500, 500], [1000, 0]], [[0, 1], [1, 2], [1, 3]], "EPSG:27700")
SQUARE = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
CELLS = dps.LaplaceSynthesizer(epsilon=1.0, alpha=100.0, postprocess="plain")
N = 137


@pytest.fixture(scope="module", autouse=True)
def _quick():
    """Pictures of two bytes: what is asked here is who says what."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", lambda _, stream, **__: stream.write(b"ok"))
        yield


run = partial(run_command, "evaluate")


def coordinates(seed=0):
    return np.random.default_rng(seed).uniform(0, 1000, (N, 2)).round(2)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "deaths.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["east", "north", "persons"])
        writer.writerows([*place, 1] for place in coordinates().tolist())
    return [path, "--x", "east", "--y", "north", "--count", "persons"]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release of three patterns, not to be changed."""
    out = tmp_path_factory.mktemp("release") / "public"
    CELLS.release(dps.PointPattern(coordinates(), WINDOW)).save(out, patterns=3)
    return out


@pytest.fixture
def public(release, tmp_path):
    """The same, alone in a folder that may be changed."""
    return shutil.copytree(release, tmp_path / "public")


def summary(folder):
    return json.loads((folder / "CONFIDENTIAL_evaluation.json").read_text())


class TestRelease:
    def test_writes_a_confidential_report(self, points, public, tmp_path):
        before = {path: path.read_bytes() for path in public.iterdir()}
        private = tmp_path / "private"
        result = run(*points, public, "--out", private)
        assert result.stdout.startswith(f"Written to {private}. ")
        assert "confidential and itself not private" in result.stdout
        assert len(result.stdout.splitlines()) == 1
        assert not re.search(rf"\b{N}\b|MISE", result.output)
        assert not any(f"{value:.2f}" in result.output for value in coordinates().ravel())
        assert {path: path.read_bytes() for path in public.iterdir()} == before
        assert CliRunner().invoke(cli.app, ["verify", str(public)]).exit_code == 0
        assert private.stat().st_mode & 0o077 == 0

        found = summary(private)
        assert found["domain"]["fingerprint"] == WINDOW.fingerprint()
        drawn = [len(read_synthetic(public / f"synthetic_00{k}.geojson", WINDOW)) for k in range(3)]
        assert found["metrics"][0]["original"] == N
        assert found["metrics"][0]["patterns"] == drawn
        assert (found["side"], found["bandwidth"]) == (100, 100)

    def test_a_folder_is_asked_for(self, points, public):
        assert "--out: name a private folder" in spoken(run(*points, public, code=2))
        assert spoken(run(*points, public, "--out", public, code=2)).startswith("Error: --out: ")

    def test_shows_figures_on_demand(self, points, release, tmp_path):
        said = run(*points, release / "certificate.json", "--out", tmp_path / "a", "--show").stdout
        assert said.startswith("CONFIDENTIAL")
        assert "K, MISE" in said
        assert said.splitlines()[-1].startswith("Written to ")

    def test_json(self, points, release, tmp_path):
        settings = ["--side", 200, "--bandwidth", 50]
        silent = run(*points, release, "--out", tmp_path / "a", *settings, "--json").stdout
        assert set(json.loads(silent)) == {"out", "note", "files"}
        assert json.loads(silent)["files"] == sorted(path.name for path in (tmp_path / "a").iterdir())
        shown = json.loads(run(*points, release, "--out", tmp_path / "b", *settings, "--json", "--show").stdout)
        assert shown["metrics"] == summary(tmp_path / "a")["metrics"]
        assert (shown["side"], shown["bandwidth"]) == (200, 50)

    def test_the_release_brings_its_own_domain_and_coordinate_system(self, release, tmp_path):
        west = tmp_path / "west.geojson"
        write_pattern(dps.PointPattern(coordinates(), WINDOW), west, to_crs="EPSG:4326")
        run(west, release / "synthetic_001.geojson", "--out", tmp_path / "private")
        found = summary(tmp_path / "private")
        assert found["metrics"][0]["original"] == N
        assert found["metrics"][0]["patterns"] == [len(read_synthetic(release / "synthetic_001.geojson", WINDOW))]
        said = spoken(run(west, release, "--user", "who", "--out", tmp_path / "other", code=2))
        assert "--user: these patterns are of points" in said

    def test_levels_are_scored_without_their_mark(self, points, tmp_path):
        years = np.repeat([2021, 2022], [80, N - 80])
        marked = dps.PointPattern(coordinates(), WINDOW, {"year": years})
        CELLS.release_by(marked, by="year", levels=[2021, 2022]).save(tmp_path / "years", patterns=2)
        run(*points, tmp_path / "years", "--out", tmp_path / "private")
        assert len(summary(tmp_path / "private")["metrics"][0]["patterns"]) == 2


class TestFiles:
    @pytest.fixture
    def files(self, tmp_path):
        folder = tmp_path / "files"
        folder.mkdir()
        paths = [folder / "one.geojson", folder / "two.csv"]
        for seed, (n, path) in enumerate(zip((40, 50), paths, strict=True), 1):
            write_pattern(dps.PointPattern(coordinates(seed)[:n], WINDOW), path)
        return paths

    def test_of_any_origin(self, points, files, tmp_path):
        run(*points, *files, *SQUARE, "--out", tmp_path / "private")
        assert summary(tmp_path / "private")["metrics"][0]["patterns"] == [40, 50]

    def test_columns_of_other_names(self, points, tmp_path):
        """--x and --y name columns of the original; synthetic files may have the same, or x and y."""
        ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
        ours.write_text("x,y\n1,2\n3,4\n5,6\n")
        theirs.write_text("east,north\n1,2\n3,4\n")
        run(*points, ours, theirs, *SQUARE, "--out", tmp_path / "private")
        assert summary(tmp_path / "private")["metrics"][0]["patterns"] == [3, 2]
        plain = tmp_path / "plain.csv"
        plain.write_text("x,y\n1,2\n3,4\n")
        said = spoken(run(plain, theirs, *SQUARE, "--out", tmp_path / "other", code=2))
        assert "--x: theirs.csv has no column 'x'; " in said

    def test_need_a_domain(self, points, files, tmp_path):
        said = spoken(run(*points, *files, "--out", tmp_path / "private", code=2))
        assert "--window-file or --network" in said
        assert "--network" in spoken(run(*points, *files, "--node", "--out", tmp_path / "private", code=2))
        assert not (tmp_path / "private").exists()

    @pytest.mark.slow
    def test_streets(self, tmp_path, points):
        (tmp_path / "streets.geojson").write_text(json.dumps(STREETS.to_geojson()))
        synthetic = STREETS.pattern([0, 0, 1, 2], [0.1, 0.5, 0.5, 0.3])
        write_pattern(synthetic, tmp_path / "synthetic.geojson")
        words = [*points, tmp_path / "synthetic.geojson", "--network", tmp_path / "streets.geojson", "--out"]
        assert "--snap" in spoken(run(*words, tmp_path / "private", code=2))
        run(*words, tmp_path / "private", "--snap", 1000)
        found = summary(tmp_path / "private")
        assert found["correction"] == "ang"
        assert found["metrics"][0]["synthetic"] == 4


class TestRefusals:
    """The file of points does not exist: each is refused before anything sensitive is read."""

    @pytest.mark.parametrize("place", ["public", "public/report", "."])
    def test_folders_in_and_around_a_release(self, public, tmp_path, place):
        before = sorted(tmp_path.rglob("*"))
        said = spoken(run("missing.csv", public, "--out", tmp_path / place, code=2))
        assert "Error: --out: " in said
        assert "release" in said
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize("place", ["file", "file/below", "file/below/deeper", "/proc/private"])
    def test_folders_that_cannot_be_made(self, release, tmp_path, place):
        (tmp_path / "file").write_text("mine")
        said = spoken(run("missing.csv", release, "--out", tmp_path / place, code=2))
        assert "Error: --out: " in said
        assert "missing.csv" not in said
        assert [path.name for path in tmp_path.rglob("*")] == ["file"]

    def test_a_full_disk(self, points, release, tmp_path, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device", "/somewhere/.private-x/report")

        monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
        said = spoken(run(*points, release, "--out", tmp_path / "private", code=2))
        assert "Error: --out: " in said
        assert ".private-x" not in said

    def test_synthetic_patterns_that_cannot_be(self, release, tmp_path):
        empty = tmp_path / "empty"
        CELLS.release(dps.PointPattern(coordinates(), WINDOW)).save(empty, patterns=0)
        there = ["--out", tmp_path / "private"]
        for synthetic, said in [
            ([release, release], "the folder of one release"),
            ([release, release / "domain.geojson"], "the folder of one release"),
            ([release, *SQUARE], "--window: a release brings its own domain"),
            ([empty], "holds no synthetic pattern"),
            ([tmp_path], "certificate.json"),
            ([tmp_path / "nope"], "Error: SYNTHETIC: there is no file or folder"),
            ([release, tmp_path / "nope.csv"], "Error: SYNTHETIC: there is no file or folder"),
        ]:
            assert said in spoken(run("missing.csv", *synthetic, *there, code=2))

    def test_a_release_that_was_changed(self, public, tmp_path):
        (public / "domain.geojson").write_text((public / "domain.geojson").read_text().replace("1000", "2000"))
        run("missing.csv", public, "--out", tmp_path / "private", code=3)

    def test_snap_in_a_window(self, release, tmp_path):
        said = spoken(run("missing.csv", release, "--snap", 0, "--out", tmp_path / "private", code=2))
        assert "--snap" in said

    def test_lengths(self, points, release, tmp_path):
        said = spoken(run(*points, release, "--side", -1, "--out", tmp_path / "private", code=2))
        assert "--side: must be a positive length" in said
        said = spoken(run(*points, release, "--bandwidth", 1, "--out", tmp_path / "private", code=2))
        assert (
            f"--bandwidth: the quadrature of total variation resolves no less than {1000 / distances.SIDE:.4g}" in said
        )

    def test_points_outside_the_domain_are_not_shown(self, release, tmp_path):
        (tmp_path / "far.csv").write_text("x,y\n4321.5,8765.5\n1,1\n")
        said = spoken(run(tmp_path / "far.csv", release, "--out", tmp_path / "private", code=2))
        assert "4321" not in said
