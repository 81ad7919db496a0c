"""Local methods on the command line: reports drawn and counted, and what every other command makes of them."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.client import Client
from dpppsynth.local import AdvancedAdaptiveGrid, DiskAreaMechanism, PrivAG, aggregate_files
from dpppsynth.privacy import ReplaceOne
from dpppsynth.privacy.catalogue import text
from dpppsynth.release import load_release

LOCAL = ("disk-area", "hybrid-area", "square-wave", "sem-geo-i", "range-hierarchy", "uniform-grid", "privag", "aag")
PLACE = ["--window", "0,0,30,60"]
WINDOW = dps.Window.rectangle(0, 0, 30, 60)
# So much budget that a report is the person's own cell, but for one in thousands.
PLAIN = ["--mechanism", "disk-area", "--epsilon", 12, "--cells", 3, "--radius", 0]
N = 437


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A CSV file of 437 points, a hundred of them in cell (2, 0) of three by three, the others in (0, 1)."""
    rng = np.random.default_rng(5)
    low, high = (
        np.repeat([[20.5, 0.5], [0.5, 20.5]], (100, 337), axis=0),
        np.repeat([[29.5, 19.5], [9.5, 39.5]], (100, 337), axis=0),
    )
    path = tmp_path_factory.mktemp("data") / "points.csv"
    rows = [f"{x:.4f},{y:.4f}" for x, y in rng.uniform(low, high)]
    path.write_text("\n".join(["x,y", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def reports(points):
    """Reports in two files of two formats; not to be changed."""
    folder = points.parent / "reports"
    folder.mkdir()
    for name in ("a.csv", "b.parquet"):
        run("local", "perturb", points, folder / name, *PLAIN, *PLACE)
    return folder


class TestPerturb:
    def test_says_what_was_promised_and_written(self, points, tmp_path):
        out = tmp_path / "reports.parquet"
        said = spoken(run("local", "perturb", points, out, *PLAIN, *PLACE))
        for words in ("one person has another location", text("local-randomizer"), f"Written to {out}: 437 reports"):
            assert words in said
        label = json.loads(pq.read_metadata(out).metadata[b"dpppsynth.reports"])
        assert label["parameters"] == DiskAreaMechanism(epsilon=12.0, cells=3, radius=0).randomizer.parameters()
        assert not label["seeded"]

    def test_json(self, points, tmp_path):
        said = json.loads(run("local", "perturb", points, tmp_path / "a.csv", *PLAIN, *PLACE, "--json").stdout)
        assert said["reports"] == N
        assert said["guarantee"]["relation"] == {"name": "local"}
        assert said["ledger"] is None

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                ["--mechanism", "square-wave", "--epsilon", 1, "--radius", 2],
                "--radius: not an option of --mechanism sq",
            ),
            (["--mechanism", "disk-area", "--epsilon", 0], "--epsilon: must be a positive"),
            (["--mechanism", "disk-area", "--epsilon", 1, "--cells", 0], "--cells: "),
            (["--mechanism", "disk-area", "--epsilon", 1, "--radius", -1], "--radius: "),
            (["--mechanism", "privag", "--epsilon", 1], "--n: the number of reports is needed"),
            ([*PLAIN, "--x", "lon"], "--x: points.csv has no column 'lon'"),
        ],
    )
    def test_refuses(self, options, words, points, tmp_path):
        place = [] if "--window-file" in options else PLACE
        assert words in spoken(run("local", "perturb", points, tmp_path / "a.csv", *options, *place, code=2))
        assert not list(tmp_path.iterdir())

    def test_what_is_not_true_of_a_shuffler_leaves_nothing(self, points, tmp_path):
        ask = [*PLAIN, *PLACE, "--shuffled", N + 1, "--shuffle-delta", "1e-8"]
        said = spoken(run("local", "perturb", points, tmp_path / "a.csv", *ask, code=2))
        assert "--shuffled: 438 honest reports are more than the 437 that are shuffled together" in said
        assert not list(tmp_path.iterdir())
        run("local", "perturb", points, tmp_path / "a.csv", *PLAIN, *PLACE, "--shuffled", N, "--shuffle-delta", "1e-8")

    def test_never_over_others(self, points, tmp_path):
        (tmp_path / "a.csv").write_text("reports")
        said = spoken(run("local", "perturb", points, tmp_path / "a.csv", *PLAIN, *PLACE, code=2))
        assert "--out: a.csv exists; it is never written over" in said

    def test_ledger(self, points, tmp_path):
        book = tmp_path / "ledger.json"
        run("ledger", "init", book, "--epsilon", 20, "--relation", "replace-one")
        ask = ["local", "perturb", points, tmp_path / "a.csv", *PLAIN, *PLACE, "--ledger", book]
        assert "Spent in" in spoken(run(*ask))
        state = json.loads(run("ledger", "show", book, "--json").stdout)
        assert state["spent"] == pytest.approx(12)
        assert state["releases"][0]["guarantee"]["relation"] == {"name": "local"}
        # Reports drawn again are a second spend; there is not enough for it, and nothing is read or written.
        ask[3] = tmp_path / "b.csv"
        run(*ask, code=4)
        assert not (tmp_path / "b.csv").exists()

    def test_what_fails_later_counts_as_spent(self, points, tmp_path):
        book, bad = tmp_path / "ledger.json", tmp_path / "points.csv"
        run("ledger", "init", book, "--epsilon", 20, "--relation", "replace-one")
        bad.write_text("x,y\n1,1\n31,1\n")
        run("local", "perturb", bad, tmp_path / "a.csv", *PLAIN, *PLACE, "--ledger", book, code=2)
        assert json.loads(run("ledger", "show", book, "--json").stdout)["spent"] == pytest.approx(12)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--x", "east"], "--x: points.csv has no column 'east'"),
            (["--x", "y"], "--y: 'y' is the column of x already"),
            (["--mechanism", "uniform-grid", "--cells", 4096], "ask for more than 4194304 cells"),
            (["--crs", "EPSG:27700", "--to-crs", "EPSG:32630"], "--to-crs: the points of this file are taken as they"),
        ],
    )
    def test_typos_cost_nothing(self, options, words, points, tmp_path):
        ledger = dps.Ledger.create(tmp_path / "ledger.json", epsilon=20.0, delta=0.0, relation=ReplaceOne())
        before = ledger.path.read_bytes()
        asked = ["--mechanism", "disk-area", "--epsilon", 1, *options, *PLACE, "--ledger", ledger.path]
        assert words in spoken(run("local", "perturb", points, tmp_path / "a.csv", *asked, code=2))
        assert ledger.path.read_bytes() == before

    def test_rows_say_why_they_cost(self, tmp_path):
        ledger = dps.Ledger.create(tmp_path / "ledger.json", epsilon=20.0, delta=0.0, relation=ReplaceOne())
        (tmp_path / "points.csv").write_text("x,y\n1,1\n99,1\n")
        asked = ["--mechanism", "disk-area", "--epsilon", 1, *PLACE, "--ledger", ledger.path]
        said = spoken(run("local", "perturb", tmp_path / "points.csv", tmp_path / "a.csv", *asked, code=2))
        assert "found in the rows of the file" in said
        assert [entry.state for entry in dps.Ledger.open(ledger.path).releases] == ["authorised"]


class TestAggregate:
    def test_counts_all_files(self, reports, tmp_path):
        out = tmp_path / "public"
        said = spoken(run("local", "aggregate", reports, *PLAIN, *PLACE, "--out", out, "--patterns", 2, "--fixed-n"))
        assert "Further patterns are free" in said
        release = load_release(out)
        mechanism = DiskAreaMechanism(epsilon=12.0, cells=3, radius=0)
        assert (release.statistic.lattice == aggregate_files(mechanism, reports).values).all()
        # What the reports are drawn from, in both files together.
        assert release.distribution == pytest.approx(np.array([[0, 337, 0], [0, 0, 0], [100, 0, 0]]) / N, abs=0.02)
        assert "The certificate holds" in spoken(run("verify", out))
        drawn = json.loads((out / "synthetic_001.geojson").read_text())
        assert len(drawn["features"]) == 2 * N

    def test_json_and_several_paths(self, reports, tmp_path):
        names = [reports / "b.parquet", reports / "a.csv"]
        out = ["--out", tmp_path / "public", "--json"]
        said = json.loads(run("local", "aggregate", *names, *PLAIN, *PLACE, *out).stdout)
        assert said["mechanism"] == "disk-area"
        assert said["patterns"] == ["synthetic_000.geojson"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"--epsilon": 11}, r"paths: a.csv holds reports of another mechanism \(epsilon\)"),
            ({"--cells": 4}, r"paths: a.csv holds reports of another mechanism \(cells\)"),
            ({"--mechanism": "hybrid-area"}, r"paths: a.csv holds reports of another mechanism \(.*kind"),
        ],
    )
    def test_other_mechanisms(self, change, words, reports, tmp_path):
        given = dict(zip(PLAIN[::2], PLAIN[1::2], strict=True)) | change
        options = [word for pair in given.items() for word in pair]
        said = spoken(run("local", "aggregate", reports, *options, *PLACE, "--out", tmp_path / "o", code=2))
        assert re.search(words, said)
        assert not (tmp_path / "o").exists()

    def test_files(self, reports, tmp_path):
        out = ["--out", tmp_path / "o"]
        assert "named twice" in spoken(
            run("local", "aggregate", reports, reports / "a.csv", *PLAIN, *PLACE, *out, code=2)
        )
        assert "there is no file" in spoken(run("local", "aggregate", "none.csv", *PLAIN, *PLACE, *out, code=2))
        (tmp_path / "bad.csv").write_text("i,j\n1,1\n7654321,1\n")
        bare = ("local", "aggregate", tmp_path / "bad.csv", *PLAIN, *PLACE, *out)
        assert "bad.csv has no label" in spoken(run(*bare, code=2))
        said = spoken(run(*bare, "--unlabelled", code=2))
        assert "bad.csv holds a row that no client" in said
        assert "765432" not in said
        (tmp_path / "o").mkdir()
        (tmp_path / "o" / "x").touch()
        assert "--out: " in spoken(run("local", "aggregate", reports, *PLAIN, *PLACE, *out, code=2))


class TestTwoRounds:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("method", ["privag", "aag"])
    def test_rounds_by_files(self, method, points, tmp_path):
        """Other persons report in the second round, on the grid that the first one's counts tell."""
        ask = ["--method", method, "--epsilon", 3, "--oracle", "auto", *PLACE, "--n", 2 * N]
        one, two, first = tmp_path / "one.csv", tmp_path / "two.parquet", tmp_path / "one.json"
        assert "Every person reports in one of both rounds" in spoken(run("local", "perturb", points, one, *ask))
        run("local", "count", one, *ask, "--out", first)
        run("local", "describe", *ask, "--after", first, "--out", tmp_path / "round.json")
        run("local", "perturb", points, two, *ask, "--after", first)
        run("local", "aggregate", two, *ask, "--after", first, "--out", tmp_path / "o", "--patterns", 0)
        mechanism = {"privag": PrivAG, "aag": AdvancedAdaptiveGrid}[method](WINDOW, epsilon=3.0, oracle="auto")
        counted = aggregate_files(mechanism.first(2 * N), first)
        second = mechanism.second(counted, 2 * N)
        assert Client.read(tmp_path / "round.json").mechanism == second.fingerprint
        both = mechanism.combine(counted, aggregate_files(second, two), 2 * N)
        release = load_release(tmp_path / "o")
        assert (release.statistic.lattice == np.concatenate([both.first.values, both.second.values])).all()
        assert release.guarantee.to_dict() == mechanism.check(WINDOW, n=2 * N).to_dict()
        assert "The certificate holds" in spoken(run("verify", tmp_path / "o"))
        # Reports of one round are none of the other.
        said = spoken(run("local", "aggregate", one, *ask, "--after", first, "--out", tmp_path / "x", code=2))
        assert "one.csv holds reports of another mechanism" in said
        said = spoken(run("local", "aggregate", one, *ask, "--out", tmp_path / "x", code=2))
        assert "--after: a release needs both rounds" in said

    @pytest.mark.slow
    def test_ledger(self, points, tmp_path):
        """Rounds are parts of the persons: neither has the number of all, nor that of the other."""
        book, rows = tmp_path / "ledger.json", points.read_text().splitlines()
        for name, part in (("first.csv", rows[1:201]), ("others.csv", rows[201:])):
            (tmp_path / name).write_text("\n".join(["x,y", *part]) + "\n")
        run("ledger", "init", book, "--epsilon", 7, "--relation", "replace-one")
        ask = ["--method", "aag", "--epsilon", 3, *PLACE, "--n", N]
        run("local", "perturb", tmp_path / "first.csv", tmp_path / "one.csv", *ask, "--ledger", book)
        run("local", "count", tmp_path / "one.csv", *ask, "--out", tmp_path / "one.json")
        after = ["--after", tmp_path / "one.json", "--ledger", book]
        run("local", "perturb", tmp_path / "others.csv", tmp_path / "two.csv", *ask, *after)
        read = [(each.points.n, dict(each.points.subset)) for each in dps.Ledger.open(book).releases]
        assert read == [(200, {"reporting round": "1"}), (N - 200, {"reporting round": "2"})]
        # Releases of all of them have the number of all.
        more = ["--method", "laplace", "--epsilon", 1, *PLACE, "--ledger", book, "--out", tmp_path / "o"]
        run("synthesize", points, *more, "--patterns", 0)
        assert dps.Ledger.open(book).spent == pytest.approx(7)

    def test_a_round_has_no_more_persons_than_both(self, points, tmp_path):
        ask = ["--method", "aag", "--epsilon", 3, *PLACE, "--n", N - 1]
        said = spoken(run("local", "perturb", points, tmp_path / "one.csv", *ask, code=2))
        assert "--n: more persons report in this round than the 436 it says" in said
        assert not list(tmp_path.iterdir())

    def test_a_round_has_the_persons_that_are_shuffled(self, points, tmp_path):
        """Thousands of 10 000 persons report in either round, but those of this file are fewer."""
        shuffled = ["--shuffled", N + 1, "--shuffle-delta", "1e-8"]
        ask = ["--method", "aag", "--epsilon", 3, *PLACE, "--n", 10_000, *shuffled]
        said = spoken(run("local", "perturb", points, tmp_path / "one.csv", *ask, code=2))
        assert "--shuffled: 438 honest reports are more than the 437 that are shuffled together" in said
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--method", "aag"], "--n: the number of reports is needed"),
            (["--method", "aag", "--n", 9, "--after", "none.json"], "there is no file 'none.json'"),
            (["--method", "uniform-grid", "--n", 9], "--n: this mechanism has one round"),
            (["--method", "range-hierarchy", "--after", "none.json"], "--after: this mechanism has one round"),
        ],
    )
    def test_refuses(self, options, words, points, tmp_path):
        ask = ["local", "perturb", points, tmp_path / "a.csv", *options, "--epsilon", 1, *PLACE]
        assert words in spoken(run(*ask, code=2))
        assert not list(tmp_path.iterdir())


class TestMethods:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("method", LOCAL)
    def test_check_synthesize_verify(self, method, points, tmp_path):
        ask = ["--method", method, "--epsilon", 2, *PLACE]
        shown = json.loads(run("check", *ask, "--n", N, "--json").stdout)
        run("synthesize", points, *ask, "--out", tmp_path / "o", *(["--n", N] if method == "aag" else []))
        release = load_release(tmp_path / "o")
        assert release.guarantee.to_dict() == shown["guarantee"]
        assert release.intensity.total == pytest.approx(N)
        assert "The certificate holds" in spoken(run("verify", tmp_path / "o"))

    def test_trajectories(self, tmp_path):
        rows = [f"{k % 10}.5,{7 * k % 10}.5,t{k % 20}" for k in range(60)]
        (tmp_path / "walks.csv").write_text("\n".join(["x,y,who", *rows]) + "\n")
        ask = ["--mechanism", "trajectories", "--epsilon", 2, "--cells", 3, "--max-length", 10, "--user", "who"]
        run("synthesize", tmp_path / "walks.csv", *ask, "--window", "0,0,10,10", "--out", tmp_path / "o")
        release = load_release(tmp_path / "o")
        assert release.mechanism == "trajectories"
        assert "The certificate holds" in spoken(run("verify", tmp_path / "o"))
        said = json.loads(run("check", *ask, "--window", "0,0,10,10", "--n", 20, "--json").stdout)
        assert said["guarantee"] == release.guarantee.to_dict()

    def test_distances_are_in_cells(self):
        said = spoken(run("check", "--method", "sem-geo-i", "--epsilon", 1, "--cells", 4, "--n", 9, *PLACE))
        for words in ("The guarantee holds", "one from each of 9 persons", "points per person 1, and one report"):
            assert words in said
        assert re.search(r"one point moves \(cells of the grid\) epsilon .*4.243 4.243 ", said)

    def test_options_reach_the_mechanism(self):
        for method, more, law in (
            ("disk-area", ["--cells", 5, "--radius", 2], {"cells": 5, "radius": 2}),
            ("hybrid-area", ["--cells", 4], {"cells": 4}),
            ("square-wave", ["--cells", 7], {"cells": 7}),
            ("sem-geo-i", ["--cells", 3], {"cells": 3}),
            ("range-hierarchy", ["--cells", 8], {"cells": 8}),
            # By the rule for nine persons.
            ("range-hierarchy", [], {"cells": 4}),
        ):
            said = json.loads(
                run("check", "--method", method, "--epsilon", 1, *more, "--n", 9, *PLACE, "--json").stdout
            )
            assert said["parameters"]["randomizer"].items() >= law.items()
        said = json.loads(
            run("check", "--method", "uniform-grid", "--epsilon", 1, "--cells", 6, "--n", 9, *PLACE, "--json").stdout
        )
        assert (said["parameters"]["columns"], said["parameters"]["rows"]) == (6, 6)

    def test_rehearse(self):
        ask = ["--method", "disk-area", "--epsilon", 8, "--cells", 4, *PLACE]
        said = json.loads(run("rehearse", *ask, "--n", 400, "--json").stdout)
        assert [each["passed"] for each in said["runs"]] == [True] * 3
        assert spoken(run("rehearse", *ask, code=2)).startswith("Error: --n: ")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--alpha", 25], "--alpha: --method disk-area has no privacy radius"),
            (["--alpha", 0], "--alpha: --method disk-area has no privacy radius"),
            (["--relation", "replace-one"], "--relation: --method disk-area promises local privacy"),
            (
                ["--max-points-per-person", 2],
                "--max-points-per-person: --method disk-area lets a person",
            ),
            (["--by", "year", "--levels", "1,2"], "--by: local methods have one report for each person"),
            (["--delta", 1e-6], "--delta: not an option of --method disk-area"),
            (["--spacing", 5], "--spacing: not an option of --method disk-area"),
            (["--user", ""], "--user: needs the name of a mark"),
            (["--expected-n", 10], "--expected-n: the number of reports is public"),
            (["--cells", 0], "--cells: "),
            (["--radius", -2], "--radius: "),
            (["--epsilon", 100], "--epsilon: "),
        ],
    )
    def test_refuses_what_it_has_no_use_for(self, options, words):
        n = [] if "--by" in options else ["--n", 9]
        assert words in spoken(run("check", "--method", "disk-area", "--epsilon", 1, *n, *PLACE, *options, code=2))

    def test_refuses_what_others_have(self):
        for method, options, words in (
            ("laplace", ["--cells", 5], "--cells: not an option of --method laplace"),
            ("square-wave", ["--radius", 5], "--radius: not an option of --method square-wave"),
            ("privag", ["--cells", 5], "--cells: --method privag makes its grids by a rule"),
            ("sem-geo-i", ["--relation", "replace-one"], "--relation: --method sem-geo-i promises geo-indistinguish"),
        ):
            said = spoken(run("check", "--method", method, "--epsilon", 1, *PLACE, *options, code=2))
            assert words in said, said

    def test_refuses_streets(self, tmp_path):
        lines = {"type": "LineString", "coordinates": [[0, 0], [9, 0]]}
        feature = {"type": "Feature", "properties": {}, "geometry": lines}
        crs = {"type": "name", "properties": {"name": "EPSG:27700"}}
        (tmp_path / "s.geojson").write_text(
            json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature]})
        )
        for method in ("disk-area", "uniform-grid", "aag"):
            ask = ["--method", method, "--epsilon", 1, "--n", 9, "--network", tmp_path / "s.geojson"]
            assert "--network: local methods divide a window into cells" in spoken(run("check", *ask, code=2))
