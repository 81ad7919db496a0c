"""Counts with bounded error and moved points on the command line, from the check to the report."""

import json
import re

import numpy as np
import pytest
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.cli.evaluate import _released
from dpppsynth.io import read_synthetic
from dpppsynth.release import load_release

SQUARE = ["--window", "0,0,4000,4000", "--crs", "EPSG:3413"]
WINDOW = dps.Window.rectangle(0, 0, 4000, 4000, crs="EPSG:3413")
COUNTS = ["--method", "bounded-error", "--spacing", 1000]
MOVED = ["--method", "planar-laplace", "--epsilon", 1, "--alpha", 100]
MONTHS = ["--by", "month", "--levels", "01,02,03"]
N = 1237


@pytest.fixture(scope="module")
def xy():
    # So narrow that the cells at the border are all but empty: no noisy count of a month lies below zero with
    # probability 5e-7.
    return np.clip(np.random.default_rng(3).normal(2000, 400, (N, 2)), 1, 3999).round(1)


@pytest.fixture(scope="module")
def points(xy, tmp_path_factory):
    """A CSV file of points with a month, in turn."""
    path = tmp_path_factory.mktemp("data") / "points.csv"
    rows = [f"{x},{y},{k % 3 + 1:02d}" for k, (x, y) in enumerate(xy.tolist())]
    path.write_text("\n".join(["x,y,month", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def public(points, tmp_path_factory):
    """Counts with bounded error, not to be changed; and what was said about them."""
    out = tmp_path_factory.mktemp("release") / "public"
    said = run("synthesize", points, *COUNTS, "--epsilon", 1, "--max-error", 20, *SQUARE, "--out", out)
    return out, spoken(said)


@pytest.fixture(scope="module")
def masked(points, tmp_path_factory):
    """Moved points, not to be changed; and what was said about them."""
    out = tmp_path_factory.mktemp("release") / "masked"
    said = run("synthesize", points, *MOVED, "--max-error", 1500, *SQUARE, "--out", out)
    return out, spoken(said)


@pytest.fixture(scope="module")
def months(points, tmp_path_factory):
    """Counts with bounded error by month, not to be changed."""
    out = tmp_path_factory.mktemp("release") / "months"
    run("synthesize", points, *COUNTS, "--delta", 1e-5, "--max-error", 30, *MONTHS, *SQUARE, "--out", out)
    return out


class TestCounts:
    @pytest.mark.parametrize(
        "given", [{"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0, "max_error": 20}, {"delta": 1e-5, "max_error": 30}]
    )
    def test_any_two_say_the_third(self, given):
        options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
        said = json.loads(run("check", *COUNTS, *options, *SQUARE, "--n", N, "--json").stdout)
        made = dps.BoundedErrorSynthesizer(**given, spacing=1000.0)
        assert said["guarantee"] == made.check(WINDOW, n=N).to_dict()
        assert said["mechanism"] == "bounded-cells"
        budget = tuple(said["parameters"][name] for name in ("epsilon", "delta", "max_error"))
        assert budget == made.budget

    def test_says_what_is_promised(self):
        said = spoken(run("check", *COUNTS, "--epsilon", 1, "--max-error", 20, *SQUARE, "--n", N))
        for words in ("The guarantee holds", "largest error 20 points in any count", "drawn again beyond", "2.2"):
            assert words in said
        assert said.count(str(N)) == said.count(f"--n {N}") == 1

    def test_counts_cost_the_same_at_every_distance(self):
        """Under alpha-neighbours too: nothing but the cells counts."""
        ask = ("check", *COUNTS, "--epsilon", 1, "--max-error", 20, "--alpha", 25, *SQUARE, "--n", N)
        said = spoken(run(*ask))
        assert "Epsilon does not depend on distance" in said
        assert "Nothing is promised about one point that moves farther" not in said

    def test_rehearse(self):
        ask = [*COUNTS, "--epsilon", 1, "--max-error", 20, *SQUARE, "--n", 400]
        said = json.loads(run("rehearse", *ask, "--json").stdout)
        assert all(each["passed"] for each in said["runs"])

    def test_release(self, public, xy):
        out, said = public
        release = load_release(out)
        assert "No count is off by more than 20: larger noise was drawn again." in said
        truth = np.histogram2d(*xy.T, bins=4, range=[[0, 4000]] * 2)[0].T.ravel()
        assert abs(release.counts - truth).max() <= 20
        assert "The certificate holds" in spoken(run("verify", out))

    def test_further_patterns_are_free(self, public, tmp_path):
        run("sample", public[0], "--patterns", 2, "--out", tmp_path / "more")
        assert len(list((tmp_path / "more").iterdir())) == 2

    def test_by_month(self, months, points, tmp_path):
        release = load_release(months)
        assert (release.raw.shape, release.max_error) == ((3, 16), 30)
        assert abs(release.filtered - release.raw).max() <= 30
        assert "The certificate holds" in spoken(run("verify", months))
        marks = {
            row["properties"]["month"] for row in json.loads((months / "synthetic_000.geojson").read_text())["features"]
        }
        assert marks == {"01", "02", "03"}

    def test_persons_with_several_points_widen_the_noise(self):
        ask = ("check", *COUNTS, "--epsilon", 1, "--delta", 1e-6, *SQUARE, "--n", N, "--json")
        one, three = (
            json.loads(run(*ask, "--max-points-per-person", cap).stdout)["parameters"]["max_error"] for cap in (1, 3)
        )
        assert 2.5 * one < three < 3.5 * one

    def test_along_streets(self, tmp_path):
        lines = {"type": "LineString", "coordinates": [[0, 0], [900, 0]]}
        feature = {"type": "Feature", "properties": {}, "geometry": lines}
        crs = {"type": "name", "properties": {"name": "EPSG:3413"}}
        streets = tmp_path / "s.geojson"
        streets.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature]}))
        ask = ["check", "--method", "bounded-error", "--epsilon", 1, "--max-error", 20, "--network", streets, "--n", N]
        assert json.loads(run(*ask, "--resolution", 300, "--json").stdout)["mesh"]["elements"] == 3
        assert "--spacing: bounded-error's cells are segments" in spoken(run(*ask, "--spacing", 300, code=2))
        ask = ["check", *MOVED, "--network", streets, "--n", N]
        assert "--network: --method planar-laplace moves points in the plane" in spoken(run(*ask, code=2))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ([], "--epsilon, --delta, --max-error: give two of them"),
            (["--epsilon", 1], "give two of them, and the third follows; got epsilon"),
            (["--epsilon", 1, "--delta", 1e-6, "--max-error", 20], "--epsilon, --delta, --max-error: give two of them"),
            (["--epsilon", 1, "--delta", 0], "--delta: "),
            (["--max-error", 20, "--delta", 0], "it cannot be 0"),
            (["--epsilon", 1, "--delta", -1], "--delta: "),
            (["--epsilon", -1, "--max-error", 20], "--epsilon: must be"),
            (["--epsilon", "nan", "--max-error", 20], "--epsilon: must be"),
            (["--epsilon", 1, "--max-error", 0.5], "--max-error: needs a whole number"),
            (["--epsilon", 1, "--max-error", 0], "--max-error: "),
            (["--epsilon", 1, "--max-error", -20], "--max-error: "),
            (["--epsilon", 1, "--max-error", 1e300], "--max-error: "),
            (["--epsilon", 1, "--max-error", "inf"], "--max-error: "),
            (["--epsilon", 1, "--max-error", "nan"], "--max-error: "),
            (["--epsilon", 1, "--max-error", 4], "--max-error: an error of at most 4 costs delta = 0.0725"),
            (["--epsilon", 1e-300, "--delta", 1e-6], "--epsilon: "),
            (
                ["--epsilon", 1, "--max-error", 20, "--postprocess", "keep-n", "--relation", "add-remove"],
                "--postprocess: ",
            ),
            (
                ["--epsilon", 1, "--max-error", 20, "--basis", "tents"],
                "--basis: not an option of --method bounded-error",
            ),
            (["--epsilon", 1, "--max-error", 20, "--track"], "--track: not an option of --method bounded-error"),
        ],
    )
    def test_refuses(self, options, words):
        n = ["--expected-n", N] if "add-remove" in options else ["--n", N]
        assert words in spoken(run("check", *COUNTS, *options, *SQUARE, *n, code=2))

    def test_others_need_epsilon_and_have_no_bound(self):
        ask = ["check", "--method", "laplace", *SQUARE, "--n", N]
        assert "--epsilon: --method laplace needs a privacy budget" in spoken(run(*ask, code=2))
        said = spoken(run(*ask, "--epsilon", 1, "--max-error", 20, code=2))
        methods = "--method bounded-error or planar-laplace"
        assert f"--max-error: not an option of --method laplace; leave it out, or take {methods}" in said


class TestTables:
    def test_counts(self, public, tmp_path):
        said = spoken(run("counts", public[0], "--out", tmp_path / "counts.csv"))
        assert "No count is off by more than 20: larger noise was drawn again." in said
        assert "filter" not in said
        table = np.loadtxt(tmp_path / "counts.csv", delimiter=",", skiprows=1)
        release = load_release(public[0])
        assert (table[:, 4] == release.counts).all()
        # Every count stands beside the corners of its own cell.
        middle = (table[:, :2] + table[:, 2:4]) / 2
        assert release.intensity(middle) * 1e6 == pytest.approx(table[:, 4])
        assert (table[:, 2:4] - table[:, :2] == 1000).all()

    def test_by_month(self, months, tmp_path):
        said = json.loads(run("counts", months, "--out", tmp_path / "c.csv", "--filtered", "--json").stdout)
        assert said["columns"] == ["month", "x0", "y0", "x1", "y1", "count", "raw", "filtered"]
        assert (said["max_error"], said["max_error_filtered"]) == (30, 60)
        table = np.loadtxt(tmp_path / "c.csv", delimiter=",", skiprows=1).reshape(3, 16, 8)
        release = load_release(months)
        assert (table[:, :, 0] == np.array([[1], [2], [3]])).all()
        assert (table[:, :, 5] == release.counts).all()
        # Only the counts as drawn tell which of them were below zero.
        assert (table[:, :, 6] == release.raw).all()
        assert (release.raw < 0).any()
        assert table[:, :, 7] == pytest.approx(release.filtered.clip(0), abs=1e-3)

    def test_by_month_says_which_bound_is_whose(self, months, tmp_path):
        said = spoken(run("counts", months, "--out", tmp_path / "c.csv", "--filtered"))
        assert "No count is off by more than 30:" in said
        assert "over the levels of month may be off by up to 60." in said

    def test_refuses(self, public, masked, tmp_path):
        out = ["--out", tmp_path / "c.csv"]
        assert "only --method bounded-error has such counts" in spoken(run("counts", masked[0], *out, code=2))
        assert "--filtered: " in spoken(run("counts", public[0], *out, "--filtered", code=2))
        inside = spoken(run("counts", public[0], "--out", public[0] / "c.csv", code=2))
        assert "lies in the public folder of a release" in inside
        (tmp_path / "c.csv").touch()
        assert "must be a new file" in spoken(run("counts", public[0], *out, code=2))


class TestMovedPoints:
    def test_check(self):
        said = json.loads(run("check", *MOVED, "--max-error", 1500, *SQUARE, "--n", N, "--json").stdout)
        made = dps.PlanarLaplaceSynthesizer(1.0, alpha=100.0, max_error=1500.0)
        assert said["guarantee"] == made.check(WINDOW, n=N).to_dict()
        assert said["guarantee"]["profile"]["delta"] == pytest.approx(2.2e-6, rel=0.02)

    def test_says_how_far_points_move(self):
        said = spoken(run("check", *MOVED, "--max-error", 1500, *SQUARE, "--n", N))
        for words in ("moved by 200 m on average", "largest move 1500 m", "rows shuffled"):
            assert words in said
        assert "largest error" not in said
        # Without a bound nothing is the largest, and twice the distance costs twice as much.
        said = spoken(run("check", *MOVED, *SQUARE, "--n", N))
        assert "largest move" not in said
        assert "delta 0" in said

    def test_windows_with_bays_double_the_error(self, tmp_path):
        ring = [[[0, 0], [4000, 0], [4000, 4000], [2000, 1000], [0, 4000], [0, 0]]]
        window = tmp_path / "w.geojson"
        crs = {"type": "name", "properties": {"name": "EPSG:3413"}}
        feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": ring}}
        window.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature]}))
        said = spoken(run("check", *MOVED, "--max-error", 1500, "--window-file", window, "--n", N))
        assert "largest error 3000 m," in said
        ask = ("check", *MOVED, "--max-error", 1530.6090102, "--window-file", window, "--n", N)
        # Rounded upwards: 1530.609 and 3061.218 to the nearest six digits would be exceeded.
        assert "largest move 1530.61 m" in (said := spoken(run(*ask)))
        assert "largest error 3061.22 m," in said

    def test_release(self, masked, xy):
        out, said = masked
        assert "No point was moved by more than 1500 m: longer moves were drawn again." in said
        assert "No further patterns are free" in said
        release = load_release(out)
        assert "The certificate holds" in spoken(run("verify", out))
        written = read_synthetic(out / "synthetic_000.geojson", WINDOW)
        assert len(written) == N
        assert WINDOW.contains(written.xy).all()
        # Rows in the order of the file would be a mean of 200 m apart.
        assert np.linalg.norm(written.xy - xy, axis=1).mean() > 600
        assert release.max_error == 1500

    def test_by_month(self, points, tmp_path):
        ask = ["synthesize", points, *MOVED, "--delta", 1e-6, *MONTHS, *SQUARE, "--out", tmp_path / "o"]
        assert re.search(r"No point was moved by more than 158[\d.]+ m: ", said := spoken(run(*ask)))
        assert "in random order within each level of month" in said
        (pattern,) = load_release(tmp_path / "o").patterns
        assert (len(pattern), set(pattern.marks)) == (N, {"month"})

    def test_sampling_would_be_a_new_spend(self, masked):
        assert "moving them again would be a new spend" in spoken(run("sample", masked[0], code=2))

    def test_track(self, points, xy, tmp_path):
        whole = ["--track", "--max-points-per-person", N]
        out = tmp_path / "track"
        run(
            "synthesize",
            points,
            "--method",
            "planar-laplace",
            "--epsilon",
            10 * N,
            "--alpha",
            100,
            *whole,
            *SQUARE,
            "--out",
            out,
        )
        release = load_release(out)
        # Rows keep their order: ten times the budget for each point moves it by 20 m on average.
        assert np.linalg.norm(release.pattern.xy - xy, axis=1).mean() < 40
        assert release.filtered.shape == (N, 2)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--delta", 0, "--max-error", 1500], "--delta: it cannot be 0 where --max-error is given"),
            (["--delta", 0, "--max-error", 1500], "or leave --max-error out."),
            (["--delta", 2], "--delta: "),
            (["--max-error", 0], "--max-error: must be"),
            (["--max-error", -1500], "--max-error: must be"),
            (["--max-error", "nan"], "--max-error: must be"),
            (["--max-error", 10], "--max-error: a move of at most 10 metre costs delta = 1"),
            (["--relation", "replace-one"], "--relation: --method planar-laplace promises"),
            (["--track"], "--track: all points are one person's"),
            (["--track", "--max-points-per-person", 2], "--track: all points are one person's, and --max-points-per"),
            (["--patterns", 3], "--patterns: --method planar-laplace moves every point once"),
            (["--spacing", 100], "--spacing: not an option of --method planar-laplace"),
        ],
    )
    def test_refuses(self, options, words):
        assert words in spoken(run("check", *MOVED, *options, *SQUARE, "--n", N, code=2))

    def test_a_bound_that_costs_more_than_is_given(self):
        run("check", *MOVED, "--delta", 1e-9, "--max-error", 500, *SQUARE, "--n", N, code=3)

    def test_needs_a_radius(self):
        ask = ["check", "--method", "planar-laplace", "--epsilon", 1, *SQUARE, "--n", N]
        assert "--alpha: --method planar-laplace needs the distance" in spoken(run(*ask, code=2))

    def test_keeps_the_number_anyway(self, points, tmp_path):
        ask = ["synthesize", points, *MOVED, *SQUARE, "--out", tmp_path / "o", "--fixed-n"]
        assert "--fixed-n: points that are moved keep their number" in spoken(run(*ask, code=2))
        assert not (tmp_path / "o").exists()


class TestFolders:
    """Other commands on saved releases."""

    def test_ledger(self, points, tmp_path):
        book = tmp_path / "ledger.json"
        run("ledger", "init", book, "--epsilon", 1.5, "--delta", 1e-4, "--relation", "replace-one")
        ask = ["synthesize", points, *COUNTS, "--epsilon", 1, "--max-error", 20, *SQUARE, "--ledger", book]
        assert "Spent in" in spoken(run(*ask, "--out", tmp_path / "a"))
        state = json.loads(run("ledger", "show", book, "--json").stdout)
        assert 0.9 < state["spent"] <= 1
        run(*ask, "--out", tmp_path / "b", code=4)
        assert not (tmp_path / "b").exists()

    def test_pictures_of_moved_points(self, masked, tmp_path):
        """There is no mesh and no intensity to show."""
        run("plot", masked[0], "--out", tmp_path / "pictures")
        assert {path.stem for path in (tmp_path / "pictures").iterdir()} == {"epsilon", "pattern"}

    def test_moved_points_are_what_is_compared(self, masked):
        found = _released(masked[0], [], limit=True)
        assert found.domain.fingerprint() == WINDOW.fingerprint()
        assert [len(pattern) for pattern in found.patterns] == [N]
