"""Points with types and times on the command line."""

import csv
import json
import shutil

import numpy as np
import pytest
from support.command_line import run, spoken
from support.forgery import reseal

from dpppsynth import AlphaNeighbours, MarkedSynthesizer, Marks, PointPattern, Times, Window
from dpppsynth.io import read_synthetic
from dpppsynth.release import certificate, load_release

UNIT = Window.rectangle(0, 0, 1000, 1000)
SQUARE = ["--window", "0,0,1000,1000"]
MARKED = ["--method", "marked", "--types", "offence=burglary,theft"]
TIMED = [*MARKED, "--time", "when", "--period", "day", "--hats", 4, "--time-zone", "Europe/London"]
NEAR = ["--epsilon", 4, "--alpha", 50, "--protect-time", 1, "--no-protect-types", "--spacing", 500]


def checked(*words):
    """JSON that `check` prints."""
    return json.loads(run("check", *words, *SQUARE, "--json").stdout)


def refused(*words, command="check"):
    """The message of a refusal."""
    return spoken(run(command, *words, code=2)).removeprefix("Error: ")


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Sixty points with offences and instants."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("points") / "points.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["x", "y", "offence", "when"])
        for k in range(60):
            place = rng.uniform(1, 999, 2).round(1)
            writer.writerow([*place, ("burglary", "theft")[k % 2], f"2024-07-{k % 28 + 1:02d}T{k % 24:02d}:30:00Z"])
    return path


@pytest.fixture(scope="module")
def released(points, tmp_path_factory):
    """A folder of a release."""
    out = tmp_path_factory.mktemp("released") / "public"
    run("synthesize", points, *TIMED, *NEAR, *SQUARE, "--n", 60, "--out", out)
    return out


class TestSettings:
    def test_types_and_times_are_public_parameters(self):
        parameters = checked(*TIMED, *NEAR, "--n", 60)["parameters"]
        assert parameters["marks"]["types"] == {"name": "offence", "values": ["burglary", "theft"]}
        times = parameters["marks"]["times"]
        assert (times["name"], times["end"], times["hats"], times["periodic"]) == ("when", 24.0, 4, True)
        assert times["zone"] == "Europe/London"

    @pytest.mark.parametrize(
        ("words", "time", "types"),
        [
            (["--protect-time", "1.5", "--no-protect-types"], 1.5, "public"),
            (["--protect-time", "all", "--protect-types"], "protected", "protected"),
            (["--protect-time", "none", "--no-protect-types"], "public", "public"),
        ],
    )
    def test_protection_reaches_the_relation(self, words, time, types):
        relation = checked(*TIMED, "--epsilon", 1, "--alpha", 50, "--n", 60, *words)["guarantee"]["relation"]
        assert (relation["name"], relation["time"], relation["types"]) == ("alpha-neighbours", time, types)

    def test_everything_is_protected_under_replace_one(self):
        relation = checked(*TIMED, "--epsilon", 1, "--n", 60)["guarantee"]["relation"]
        assert (relation["name"], relation["time"], relation["types"]) == ("replace-one", "protected", "protected")

    def test_add_remove_says_nothing_of_marks(self):
        words = [*TIMED, "--epsilon", 1, "--relation", "add-remove", "--expected-n", 60]
        assert "time" not in checked(*words)["guarantee"]["relation"]
        said = refused(*words, "--protect-types", *SQUARE)
        assert said.startswith("--protect-types: under add-remove points come and go")

    def test_ranges_are_numbers_or_dates(self):
        words = ["--method", "marked", "--time", "when", "--epsilon", 1, "--n", 60, "--time-range"]
        dates = checked(*words, "2019-01-01,2024-01-01", "--hats", 6)["parameters"]["marks"]["times"]
        assert (dates["origin"], dates["end"], dates["unit"], dates["hats"]) == ("2019-01-01", 1826.0, "days", 6)
        numbers = checked(*words, "-5,1e3")["parameters"]["marks"]["times"]
        assert (numbers["start"], numbers["end"], numbers["hats"], numbers["periodic"]) == (-5.0, 1000.0, 8, False)

    def test_bins_are_types(self):
        words = ["--method", "marked", "--type-bins", "age=0,18,65,120", "--epsilon", 1, "--n", 60]
        assert checked(*words)["parameters"]["marks"]["types"]["edges"] == [0.0, 18.0, 65.0, 120.0]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--method", "marked"], "--types: --method marked needs types, times or both"),
            (["--method", "marked", "--types", "offence"], "--types: needs a column and its values"),
            (["--method", "marked", "--types", "offence=a"], "--types: needs 2 to 1000 values"),
            (
                [*MARKED, "--type-bins", "age=0,1,2"],
                "--type-bins: points have one type; give --types or --type-bins, not both, or write both",
            ),
            (["--method", "marked", "--type-bins", "age=0,x"], "--type-bins: needs numbers"),
            (["--method", "marked", "--type-bins", "age=0,2,1"], "--type-bins: needs 3 ascending"),
            ([*MARKED, "--period", "day"], "--period: goes with --time"),
            ([*MARKED, "--time", "when"], "--period: times need --period day"),
            ([*MARKED, "--time", "when", "--period", "none"], "--period: times need --period day"),
            ([*MARKED, "--time", "when", "--period", "day", "--time-range", "0,9"], "--time-range: a clock has"),
            ([*MARKED, "--time", "when", "--time-range", "0"], "--time-range: needs two numbers or two dates"),
            ([*MARKED, "--time", "when", "--time-range", "0,a"], "--time-range: needs numbers"),
            ([*MARKED, "--time", "offence", "--period", "day"], "--types, --time: types and times need names"),
            ([*MARKED, "--time", "when", "--period", "day", "--time-zone", "Mars"], "--time-zone: must be the name"),
            ([*MARKED, "--time", "when", "--period", "day", "--hats", 2], "--hats: "),
            ([*TIMED, "--alpha", 50], "--protect-time: with a privacy radius"),
            ([*TIMED, "--alpha", 50, "--protect-time", 1], "--protect-types: with a privacy radius"),
            (
                [*TIMED, "--alpha", 50, "--protect-time", "much", "--protect-types"],
                "--protect-time: needs a positive",
            ),
            ([*MARKED, "--alpha", 50, "--protect-time", 1, "--protect-types"], "--protect-time: goes with --time"),
            ([*MARKED, "--by", "year", "--levels", "1,2", "--n-by", "3,4"], "--by: types are released together"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, words, said):
        n = [] if "--by" in words else ["--n", 60]
        assert refused(*words, "--epsilon", 1, *n, *SQUARE).startswith(said)


class TestShell:
    def test_columns_come_out_as_they_came_in(self, released):
        pattern = read_synthetic(
            released / "synthetic_000.geojson", Window.rectangle(0, 0, 1000, 1000), marks=["offence", "when"]
        )
        assert set(pattern.marks["offence"]) <= {"burglary", "theft"}
        assert 0 <= pattern.marks["when"].min() <= pattern.marks["when"].max() <= 24

    @pytest.mark.slow
    def test_verify_sample_report_and_plot(self, released, tmp_path):
        run("verify", released)
        run("sample", released, "--patterns", 2, "--out", tmp_path / "more")
        assert len(list((tmp_path / "more").glob("*.geojson"))) == 2
        run("report", released, "--out", tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        for caption in ("Private intensity by offence", "Expected points by when", "Types and times"):
            assert caption in page
        run("plot", released, "--out", tmp_path / "pictures")
        assert {"by_type.png", "by_time.png", "types.png", "times.png", "intensity.png"} <= {
            path.name for path in (tmp_path / "pictures").iterdir()
        }

    def test_forged_marks_hold_and_verify_says_what_it_cannot_show(self, released, tmp_path):
        """Swapped names of types, with the hash made anew: consistent, and so no fault that anybody could find."""
        forged = tmp_path / "forged"
        shutil.copytree(released, forged)
        cert = json.loads((forged / certificate.FILENAME).read_text(encoding="utf-8"))
        cert["parameters"]["marks"]["types"]["values"].reverse()
        reseal(forged, cert)
        said = spoken(run("verify", forged))
        assert "whether n, units and names of types are true: somebody who rewrites them" in said
        assert "Not shown is who stated it" in json.loads(run("verify", forged, "--json").stdout)["not_shown"]

    def test_patterns_alone_have_dates_in_any_format(self, tmp_path):
        """Days since a date go in as dates and come out as dates; files that are read again have the same days."""
        days, place = Times.between("onset", "2020-01-01", "2021-01-01", hats=4), tmp_path / "dated"
        rng = np.random.default_rng(3)
        pattern = PointPattern(rng.uniform(0, 1000, (60, 2)), UNIT, {"onset": rng.uniform(0, 366, 60)})
        near = AlphaNeighbours(100.0, time=7.0)
        made = MarkedSynthesizer(2.0, marks=Marks(times=days), relation=near).release(pattern)
        made.save(place)
        for kind in ("csv", "parquet", "gpkg", "geojson"):
            told = json.loads(run("sample", place, "--format", kind, "--out", tmp_path / kind, "--json").stdout)
            assert told["patterns"] == [f"synthetic_000.{kind}"]
            read = read_synthetic(tmp_path / kind / f"synthetic_000.{kind}", UNIT, described=made.marks)
            assert 0 <= read.marks["onset"].min() <= read.marks["onset"].max() <= 366
        assert "2020-" in (tmp_path / "csv" / "synthetic_000.csv").read_text(encoding="utf-8")
        assert "--format: goes with --out" in refused(place, "--format", "csv", command="sample")

    def test_files_of_points_are_compared_by_types_and_times(self, released, points, tmp_path):
        run("sample", released, "--format", "csv", "--out", tmp_path / "alone")
        words = [points, tmp_path / "alone" / "synthetic_000.csv", *SQUARE, *MARKED[2:], "--time", "when"]
        words += ["--period", "day", "--time-zone", "Europe/London"]
        run("evaluate", *words, "--out", tmp_path / "private")
        assert (tmp_path / "private" / "CONFIDENTIAL_times.csv").is_file()
        bare = tmp_path / "bare.csv"
        bare.write_text("x,y\n300,400\n", encoding="utf-8")
        said = refused(words[0], words[1], bare, *words[2:], "--out", tmp_path / "none", command="evaluate")
        assert "--types: bare.csv: there is no column" in said
        said = refused(points, released, *MARKED[2:], "--out", tmp_path / "other", command="evaluate")
        assert "a release brings its own types and times" in said

    @pytest.mark.slow
    def test_rehearsals_draw_types_and_times(self):
        told = json.loads(run("rehearse", *TIMED, *NEAR, *SQUARE, "--n", 60, "--json").stdout)
        assert told["passed"]
        assert len(told["runs"]) == 3

    def test_evaluation_compares_marks(self, released, points, tmp_path):
        run("evaluate", points, released, "--out", tmp_path / "private")
        assert {"CONFIDENTIAL_types.csv", "CONFIDENTIAL_times.csv"} <= {
            path.name for path in (tmp_path / "private").iterdir()
        }
        bare = tmp_path / "bare.csv"
        bare.write_text("x,y\n1,1\n2,2\n", encoding="utf-8")
        said = refused(bare, released, "--out", tmp_path / "other", command="evaluate")
        assert said.splitlines()[-1].find("there is no column 'offence'") > 0

    def test_hours_are_those_of_the_stated_zone(self, released, points):
        """In July London is an hour ahead: times with an offset of zero are moved."""
        marks = load_release(released).marks
        from dpppsynth.io import read_pattern

        hours = read_pattern(points, Window.rectangle(0, 0, 1000, 1000), described=marks).marks["when"]
        assert hours[:3].tolist() == [1.5, 2.5, 3.5]

    def test_the_table_by_distance_is_of_points_that_keep_their_marks(self):
        said = spoken(run("check", *TIMED, *NEAR, *SQUARE, "--n", 60))
        assert "one point moves, its marks kept (unit)" in said
        rows = said.partition("its marks kept")[2].split("epsilon")[1].split()
        numbers = [float(word) for word in rows if word.replace(".", "").isdigit()]
        assert numbers[1::2] == sorted(numbers[1::2])

    def test_rows_are_refused_before_anything_is_written(self, points, tmp_path):
        bad = tmp_path / "bad.csv"
        bad.write_text(points.read_text(encoding="utf-8").replace("theft", "arson", 3), encoding="utf-8")
        words = [*TIMED, *NEAR, *SQUARE, "--n", 60, "--out", tmp_path / "out"]
        said = refused(bad, *words, command="synthesize")
        assert "some rows break the rules (unknown type)" in said
        assert "arson" not in said
        assert not (tmp_path / "out").exists()
        reading = [*MARKED[2:], "--time", "when", "--period", "day", "--time-zone", "Europe/London"]
        told = run("inspect", bad, *reading, *SQUARE, "--out", tmp_path / "private", "--json", code=2)
        assert json.loads(told.stdout)["rules"] == ["unknown type"]
        assert "arson" in next((tmp_path / "private").glob("CONFIDENTIAL_*.csv")).read_text(encoding="utf-8")
        run("inspect", points, *reading, *SQUARE, "--n", 60, "--out", tmp_path / "private")
        without = [word for word in reading if word not in ("--time-zone", "Europe/London")]
        told = run("inspect", points, *without, *SQUARE, "--out", tmp_path / "private", "--json", code=2)
        assert json.loads(told.stdout)["rules"] == ["an offset, and no time zone is stated"]

    def test_columns_are_asked_for_before_rows_are_read(self, points, tmp_path):
        words = ["--method", "marked", "--types", "crime=burglary,theft", "--epsilon", 1, *SQUARE, "--n", 80]
        said = refused(points, *words, "--out", tmp_path / "out", command="synthesize")
        assert said.startswith("--types: there is no column 'crime'; the columns are 'x', 'y', 'offence', 'when'")
        words[3] = "x1=burglary,theft"
        said = refused(points, *words, "--x", "x1", "--out", tmp_path / "out", command="synthesize")
        assert said.startswith("--types: column 'x1' is read as --x")

    @pytest.mark.parametrize("asked", ["types", "by", "user"])
    def test_no_column_tells_for_free_that_a_set_is_empty(self, asked, tmp_path):
        (tmp_path / "none.csv").write_text("x,y,kind\n", encoding="utf-8")
        (tmp_path / "none.geojson").write_text('{"type": "FeatureCollection", "crs": null, "features": []}')
        secret, who = ["--relation", "add-remove", "--expected-n", 300, "--yes"], ["--relation", "add-remove-person"]
        words = {
            "types": ["--method", "marked", "--types", "kind=a,b", *secret],
            "by": ["--method", "laplace", "--by", "kind", "--levels", "a,b", *secret],
            "user": ["--method", "heatmap", "--shape", "16,16", "--user", "kind"],
        }[asked]
        replies = []
        for name in ("none.csv", "none.geojson"):
            book = tmp_path / f"{name}.ledger.json"
            protected = [*who, "--user", "kind"] if asked == "user" else secret[:2]
            run("ledger", "init", book, "--epsilon", 2, "--delta", 1e-5, *protected)
            to = ["--ledger", book, "--out", tmp_path / "out"]
            said = refused(tmp_path / name, *words, "--epsilon", 1, *SQUARE, *to, command="synthesize")
            replies.append(said.replace(name, "FILE").replace(str(book), "BOOK"))
            assert "must hold at least one point; it holds none" in said
            assert json.loads(run("ledger", "show", book, "--json").stdout)["spent"] > 0.9
        assert replies[0] == replies[1]

    def test_a_period_that_is_none_is_refused_by_inspect(self, points, tmp_path):
        said = refused(points, "--time", "when", "--period", "year", *SQUARE, "--out", tmp_path, command="inspect")
        assert "'year' is not one of 'day', 'week', 'none'" in said


class TestAddRemove:
    """Points come and go with their marks, so that no option says what of these is protected."""

    OPTIONS = (*TIMED, "--protect-time", 1, "--no-protect-types", "--relation", "add-remove", *SQUARE)

    @pytest.mark.parametrize("method", [True, False])
    def test_both_options_are_refused_at_once_as_they_were_typed(self, method, points, tmp_path):
        rows = [points, "--rows-are-persons", "--out", tmp_path / "private"]
        named = ["--epsilon", 1, "--private", tmp_path / "private"]
        asked = self.OPTIONS if method else self.OPTIONS[2:]
        said = refused(*rows, *asked, *(named if method else ()), command="inspect")
        assert said.startswith("--protect-time, --no-protect-types: ")
        assert "leave them out" in said
        assert not (tmp_path / "private").exists()
        if method:
            assert refused(*asked, "--epsilon", 1, "--expected-n", 60) == said
            positive = ["--protect-types" if word == "--no-protect-types" else word for word in asked]
            assert refused(*positive, "--epsilon", 1).startswith("--protect-time, --protect-types: ")
