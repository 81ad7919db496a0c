"""Heat maps of persons on the command line: every command, the column of persons, what is refused, and the report."""

import csv
import html
import json
import re
import types

import geopandas
import numpy as np
import pytest
import shapely
from support.command_line import run, spoken
from support.pictures import pictures_drawn
from support.subclasses import recast

import dpppsynth as dps
from dpppsynth import InputError, PointPattern
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.evaluation import utility_report as reports
from dpppsynth.heatmaps import emd, gaussian_heatmap, kl, pearson, similarity
from dpppsynth.io import inspect_points, read_pattern
from dpppsynth.mechanisms.heatmap.mechanism import HEATMAP
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease
from dpppsynth.plotting import plot_epsilon_curve, plot_heatmap, plot_intensity, surfaces
from dpppsynth.plotting.curves import what_changes
from dpppsynth.privacy import AddRemove, AddRemovePerson, ReplaceOne, catalogue
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.release import load_release
from dpppsynth.reporting.promise import not_promised, promise
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.synthesizers import HeatmapSynthesizer

WINDOW = dps.Window.rectangle(0, 0, 200, 100)
PLACE = ["--window", "0,0,200,100"]
PUBLISHED = ["--variant", "practical", "--measure", 16]
# More budget than noise could hide: what was counted shows.
HEAT = ["--method", "heatmap", "--epsilon", 1e7, "--shape", "16,8", *PUBLISHED]
PERSONS, POINTS = 61, 203


def table(path, rows, header=("x", "y", "user")):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A CSV file of 203 points of 61 persons, all of them in the upper left corner of the window."""
    rng = np.random.default_rng(5)
    whose = np.concatenate([np.arange(PERSONS), rng.integers(0, PERSONS, POINTS - PERSONS)])
    xy = rng.uniform((13, 88), (24, 99), (POINTS, 2)).round(3)
    rows = [[*place, f"u{k}"] for place, k in zip(xy.tolist(), whose, strict=True)]
    return table(tmp_path_factory.mktemp("data") / "visits.csv", rows)


@pytest.fixture(scope="module")
def public(visits, tmp_path_factory):
    """A release, not to be changed, and what was said."""
    out = tmp_path_factory.mktemp("release") / "public"
    said = spoken(run("synthesize", visits, *PLACE, *HEAT, "--out", out))
    return out, said


@pytest.fixture(scope="module")
def page(public, tmp_path_factory):
    """The text of a report, whose pictures are not drawn."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
        run("report", public[0], "--out", path)
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", path.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(text))


class TestCheck:
    def test_says_what_is_promised_to_persons(self):
        said = spoken(run("check", "--method", "heatmap", "--epsilon", 2, "--shape", "16,8", *PLACE, *PUBLISHED))
        for words in (
            "The guarantee holds",
            "it is 2 when one person is added or removed, with all their points",
            "points per person any number",
            "16 x 8 cells",
            "told apart by the mark 'user'",
            "with all their points (those that have one value of the mark 'user'); the numbers of persons and points",
            "levels 2 to 4 of a pyramid, at most 20 cells kept",
        ):
            assert words in said
        assert "one point is" not in said

    def test_levels_follow_the_expected_number_of_persons(self):
        asked = ["check", "--method", "heatmap", "--epsilon", 1, "--shape", "64,64", *PLACE]
        for more, words in (
            (["--expected-n", 200], "all of 4 x 4 and 16 x 16 cells over the square grid"),
            ([], "all of 8 x 8 and 32 x 32 cells over the square grid"),
            (["--measure", 64], "all of 16 x 16 and 64 x 64 cells over the square grid"),
        ):
            assert words in spoken(run(*asked, *more))
        said = json.loads(run(*asked, "--measure", 16, "--fit", "least-squares", "--json").stdout)["parameters"]
        assert (said["measure"], said["estimator"]["fit"]) == (16, "least-squares")

    def test_every_option_reaches_the_plan(self):
        more = ["--w", 7, "--variant", "theory", "--decay", 0.9, "--user", "who", "--relation", "add-remove-person"]
        said = json.loads(run("check", *HEAT, *more, *PLACE, "--json").stdout)
        made = HeatmapSynthesizer(1e7, shape=(16, 8), w=7, variant="theory", decay=0.9, user="who").plan(WINDOW)
        assert said["guarantee"] == made.guarantee.to_dict()
        assert said["parameters"].items() >= made.statistic.parameters().items()
        assert [each["level"] for each in said["levels"]] == [0, 1, 2, 3, 4]
        assert [each["epsilon"] for each in said["levels"]] == list(made.statistic.budgets.epsilons)
        # The scale of a level's noise is in persons.
        assert all(each["noise_scale"] * each["epsilon"] == pytest.approx(1, rel=1e-6) for each in said["levels"])

    def test_without_persons_every_point_is_one(self):
        said = json.loads(run("check", *HEAT, *PLACE, "--no-user", "--json").stdout)
        assert said["parameters"]["user"] is None
        words = spoken(run("check", *HEAT, *PLACE, "--no-user"))
        assert "points per person at most 1" in words
        assert "when one point is added or removed" in words

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--alpha", 25], "--alpha: .*without a radius"),
            (["--alpha", 0], "--alpha: .*without a radius"),
            (["--relation", "add-remove"], "--relation: .*promises add-remove-person"),
            (["--max-points-per-person", 2], "--max-points-per-person: .*all points of a person"),
            (["--n", 61], "--n: .*secret"),
            (["--by", "year", "--levels", "1,2"], "--by: a person may have points at several levels"),
            (["--delta", 1e-6], "--delta: not an option of --method heatmap"),
            (["--spacing", 5], "--spacing: not an option of --method heatmap"),
            (["--resolution", 5], "--resolution: not an option of --method heatmap"),
            (["--user", "a", "--no-user"], "--user: .*one of the two"),
            (["--user", ""], "--user: needs the name of a column"),
            (["--shape", "16"], "--shape: needs two whole numbers"),
            (["--shape", "16,x"], "--shape: needs two whole numbers"),
            (["--shape", "16,9000"], "--shape: "),
            (["--w", 0], "--w: "),
            (["--shape", "9000,16"], "got 9000,16; such as 256,256"),
            (["--decay", 1.5], "--decay: must .* and without it the best is taken"),
            (["--measure", 12], "--measure: must be a power of two"),
            (["--measure", 32], "--measure: .*at most the 16 cells"),
            (["--variant", "two-level", "--decay", 0.7], "--decay: the two levels have equal budgets"),
            (["--variant", "two-level", "--fit", "l1"], "--fit: 'l1' takes counts of every level"),
        ],
    )
    def test_refuses_what_it_has_no_use_for(self, options, words):
        assert re.search(words, spoken(run("check", *HEAT, *PLACE, *options, code=2)))

    @pytest.mark.parametrize(
        "options", [["--w", 3], ["--shape", "2,2"], ["--user", "a"], ["--no-user"], ["--relation", "add-remove-person"]]
    )
    def test_other_methods_have_none_of_it(self, options):
        said = spoken(run("check", "--method", "laplace", "--epsilon", 1, *PLACE, "--n", 9, *options, code=2))
        assert said.startswith((f"Error: {options[0]}: ", f"Error: --max-points-per-person: {options[0]} needs"))

    def test_persons_of_other_methods_are_refused_at_once(self):
        asked = ["--relation", "add-remove-person", "--user", "u"]
        said = spoken(run("check", "--method", "laplace", "--epsilon", 1, *PLACE, *asked, code=2))
        assert "add-remove-person is what --method heatmap promises" in said
        assert "take add-remove with --user and --max-points-per-person" in said

    def test_refuses_streets(self, tmp_path):
        streets = geopandas.GeoDataFrame(geometry=[shapely.LineString([(0, 0), (9, 0)])], crs="EPSG:27700")
        streets.to_file(tmp_path / "streets.geojson", driver="GeoJSON")
        said = spoken(run("check", *HEAT, "--network", tmp_path / "streets.geojson", code=2))
        assert "--network: --method heatmap measures squares of the plane" in said

    def test_is_not_recommended(self):
        said = spoken(run("recommend", "--epsilon", 1, *PLACE, "--relation", "add-remove-person", code=2))
        assert "--relation: add-remove-person is what --method heatmap promises" in said


class TestUserColumn:
    rows = ((1, 1, "7"), (2, 1, "007"), (3, 1, " 7 "), (4, 1, "7.0"))

    def marks(self, path, **options):
        return read_pattern(path, WINDOW, user="user", **options).marks["user"].tolist()

    def test_is_text(self, tmp_path):
        assert self.marks(table(tmp_path / "a.csv", self.rows)) == ["7", "007", "7", "7"]

    def test_long_numbers_stay_apart(self, tmp_path):
        whose = [str(10**19 + k) for k in range(3)]
        assert self.marks(table(tmp_path / "a.csv", [(k, 1, word) for k, word in enumerate(whose)])) == whose
        properties = [{"user": 2**60}, {"user": 2**60 + 1}, {"user": "0.5"}]
        assert self.marks(self.geojson(tmp_path, properties)) == [str(2**60), str(2**60 + 1), "0.5"]

    def test_follows_points_that_are_counted_or_left_out(self, tmp_path):
        path = table(tmp_path / "a.csv", [(1, 1, "a", 2), (2, 1, "", 0), (3, 1, "b", 1)], ("x", "y", "user", "k"))
        assert self.marks(path, count="k") == ["a", "a", "b"]

    @pytest.mark.parametrize("missing", ["", "  ", "NA", "nan", "NULL", "none"])
    def test_missing_is_refused_without_telling_which(self, missing, tmp_path):
        path = table(tmp_path / "a.csv", [*self.rows, (31, 17, missing)])
        with pytest.raises(InputError, match=r"some rows break the rules \(missing user\)") as refused:
            self.marks(path)
        assert not re.search(r"\b(5|31|17)\b", str(refused.value))
        found = inspect_points(path, WINDOW, report_to=tmp_path, user="user")
        assert found.rules == ("missing user",)
        rows = list(csv.reader(found.report.read_text().splitlines()))
        assert rows[1:] == [["5", "missing user", "31", "17", missing]]

    @pytest.mark.parametrize("missing", [None, float("nan")])
    def test_missing_in_other_formats(self, missing, tmp_path):
        points = shapely.points([[1, 1], [2, 2]])
        frame = geopandas.GeoDataFrame({"user": ["a", missing]}, geometry=points)
        with pytest.raises(InputError, match="missing user"):
            PointPattern.from_geodataframe(frame, WINDOW, user="user")
        with pytest.raises(InputError, match="missing user"):
            self.marks(self.geojson(tmp_path, [{"user": 1}, {"user": None} if missing is None else {}]))

    def test_of_a_geodataframe(self):
        frame = geopandas.GeoDataFrame({"id": [3, 3, 4]}, geometry=shapely.points([[1, 1], [2, 2], [3, 3]]))
        assert PointPattern.from_geodataframe(frame, WINDOW, user="id").marks["id"].tolist() == ["3", "3", "4"]

    def test_another_column_is_named(self, visits, tmp_path):
        said = spoken(run("synthesize", visits, *PLACE, *HEAT, "--user", "who", "--out", tmp_path / "o", code=2))
        assert "--user: there is no column 'who'; the columns are 'x', 'y', 'user'" in said
        assert not (tmp_path / "o").exists()

    @pytest.mark.parametrize(
        ("options", "read"),
        [(["--user", "x"], "x"), (["--user", "id", "--y", "id"], "y"), (["--user", "k", "--count", "k"], "count")],
    )
    def test_no_coordinate_or_count_tells_persons(self, options, read, visits, tmp_path):
        book = tmp_path / "ledger.json"
        run("ledger", "init", book, "--epsilon", 1e8, "--relation", "add-remove-person", "--user", options[1])
        out = ["--out", tmp_path / "o", "--ledger", book]
        said = spoken(run("synthesize", visits, *PLACE, *HEAT, *options, *out, code=2))
        assert f"--user: column '{options[1]}' is read as --{read};" in said
        assert json.loads(run("ledger", "show", book, "--json").stdout)["spent"] == 0
        assert "is read as" in spoken(run("inspect", visits, *PLACE, *options, "--out", tmp_path, code=2))

    def test_a_property_called_x_is_none(self, tmp_path):
        points = self.geojson(tmp_path, [{"x": "ann"}, {"x": "bob"}])
        run("inspect", points, *PLACE, "--user", "x", "--out", tmp_path)

    def geojson(self, folder, properties):
        points = [shapely.geometry.mapping(shapely.Point(k + 1, 1)) for k in range(len(properties))]
        features = [
            {"type": "Feature", "properties": each, "geometry": at} for each, at in zip(properties, points, strict=True)
        ]
        path = folder / "a.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "crs": None, "features": features}))
        return path


class TestRelease:
    def test_persons_count_once(self, public):
        release = load_release(public[0])
        assert isinstance(release, HeatmapRelease)
        assert release.intensity.total == pytest.approx(PERSONS, abs=0.01)
        assert release.guarantee.relation == AddRemovePerson()

    def test_points_count_where_they_are_the_persons(self, visits, tmp_path):
        run("synthesize", visits, *PLACE, *HEAT, "--no-user", "--out", tmp_path / "o")
        assert load_release(tmp_path / "o").intensity.total == pytest.approx(POINTS, abs=0.01)

    def test_nobody_hears_how_many(self, public):
        folder, said = public
        # What the private numbers tell is no secret; at this budget it is true.
        told = "The private numbers tell of about 61 persons, of which less than one may be noise."
        assert told in said
        said, written = said.replace(told, ""), (folder / "certificate.json").read_text()
        assert not re.search(rf"\b({PERSONS}|{POINTS})\b", said + re.sub(r'"[0-9a-f]{64}"', "", written))
        assert "user" not in (folder / "synthetic_000.geojson").read_text()

    def test_verify_sample_and_inspect(self, public, visits, tmp_path):
        assert "The certificate holds" in spoken(run("verify", public[0]))
        run("sample", public[0], "--patterns", 2, "--out", tmp_path / "more")
        assert len(list((tmp_path / "more").iterdir())) == 2
        assert "secret in this release" in spoken(run("sample", public[0], "--fixed-n", code=2))
        run("inspect", visits, *PLACE, "--user", "user", "--out", tmp_path)

    def test_fixed_n_is_refused(self, visits, tmp_path):
        said = spoken(run("synthesize", visits, *PLACE, *HEAT, "--fixed-n", "--out", tmp_path / "o", code=2))
        assert "secret under add-remove-person" in said

    def test_ledger(self, visits, tmp_path):
        book, heat = tmp_path / "ledger.json", ["--method", "heatmap", "--shape", "4,4", "--epsilon"]
        unit = ["--relation", "add-remove-person"]
        for more, word in (["--alpha", 2], "alpha"), (["--max-points-per-person", 2], "max-points-per-person"):
            said = spoken(run("ledger", "init", book, "--epsilon", 3, *unit, *more, code=2))
            assert f"--{word}: " in said
        said = spoken(run("ledger", "init", book, "--epsilon", 3, *unit))
        assert "holds epsilon 3 at delta 0. Two patterns are neighbouring when one person is added" in said
        run("synthesize", visits, *PLACE, *heat, 2, "--ledger", book, "--out", tmp_path / "a")
        assert "Remaining: 1" in spoken(
            run("synthesize", visits, *PLACE, *heat, 2, "--ledger", book, "--out", tmp_path / "b", code=4)
        )
        # A cap on points says nothing about persons with more of them.
        cells = ["--method", "laplace", "--epsilon", 0.1, "--relation", "add-remove", "--expected-n", 9]
        cells.append("--rows-are-persons")
        said = spoken(run("synthesize", visits, *PLACE, *cells, "--ledger", book, "--out", tmp_path / "c", code=2))
        assert (
            "--user: the ledger protects persons told by 'user'; take --user user (--method heatmap), or, as long as"
            in said
        )
        assert (
            "open another ledger: `dpppsynth ledger init NEW.json --epsilon 3 --delta 0 --relation add-remove`" in said
        )
        assert json.loads(run("ledger", "show", book, "--release", tmp_path / "a", "--json").stdout)["spent"] > 1.9

    @pytest.mark.parametrize(
        ("asked", "of", "words"),
        [
            (["--no-user"], AddRemovePerson("a b"), r"--no-user: .* persons told by 'a b'; take --user 'a b' \(--m"),
            (["--user", "z"], AddRemovePerson("it's"), """--user: .*told by "it's", not by 'z'; take --user 'it'"""),
            ([], AddRemove(), "--user: .*no persons told by 'user'.*one point is added or removed; take --no-user"),
            ([], ReplaceOne(), "--user: .*another synthesizer, .* init .* --relation add-remove-person --user user`"),
            (["--no-user"], ReplaceOne(), "--relation: .* protect .* init .* --relation add-remove`.*added or removed"),
        ],
    )
    def test_a_ledger_of_others_says_whom_it_protects(self, asked, of, words, visits, tmp_path):
        book = tmp_path / "ledger.json"
        dps.Ledger.create(book, epsilon=1e8, delta=0, relation=of)
        points = table(tmp_path / "z.csv", [(1, 1, "ann")], ("x", "y", "z")) if "z" in asked else visits
        said = run("synthesize", points, *PLACE, *HEAT, *asked, "--ledger", book, "--out", tmp_path / "o", code=2)
        assert re.search(words, spoken(said))

    def test_noise_alone_is_called_so(self, monkeypatch):
        """At next to no budget 61 persons drown in noise, and at plenty they do not."""
        corner = PointPattern([[1.0, 99.0]] * PERSONS, WINDOW)
        published = {"variant": "practical", "measure": 16, "fit": "least-squares"}
        weak, plenty = (
            HeatmapSynthesizer(epsilon, shape=(16, 8), user=None, **published).release(corner, 1)
            for epsilon in (0.01, 10.0)
        )
        # Half of the first level's 16 cells lie outside a window of half a square.
        scale = weak.statistic.definition.noise_scale
        assert weak.noise_persons == pytest.approx(8 * scale / 2)
        words = HEATMAP.words
        assert "nothing but noise" in words.alarm(weak)
        assert words.alarm(plenty) is None
        told = "The private numbers tell of about"
        assert re.fullmatch(rf"{told} 6\d persons, of which less than one may be noise\.", *words.remarks(plenty))
        start = f"{told} {weak.masses.sum():,.0f} persons, "
        little, much = (types.SimpleNamespace(masses=weak.masses, noise_persons=number) for number in (2.4, 1e6))
        assert words.remarks(little) == [f"{start}of which up to about 2 may be noise."]
        assert words.remarks(much) == [f"{start}where noise alone makes up about 1,000,000 on average."]
        monkeypatch.setitem(plenty.__dict__, "masses", np.full((16, 8), 1.99 * plenty.noise_persons / 128))
        assert words.alarm(plenty) is not None

    @pytest.mark.slow
    def test_noise_makes_up_as_many_persons_as_it_says(self):
        """Fixed seeds, next to nobody: noise counted in cells outside the window, too, would say twice as many."""
        plan = HeatmapSynthesizer(1.0, shape=(16, 8), user=None).plan(WINDOW)
        nobody = PointPattern([[1.0, 99.0]], WINDOW)
        releases = [plan.release(nobody, seed) for seed in range(60)]
        assert np.mean([each.masses.sum() for each in releases]) == pytest.approx(releases[0].noise_persons, rel=0.25)

    def test_evaluate(self, public, visits, tmp_path):
        place = tmp_path / "private"
        said = spoken(run("evaluate", visits, public[0], "--out", place))
        assert "one point for each person" in said
        assert len(list(place.iterdir())) == 5
        document = json.loads((place / "CONFIDENTIAL_evaluation.json").read_text())
        rows = {row["metric"]: row for row in document["metrics"]}
        assert "points" not in rows
        release = load_release(public[0])
        plan = release.statistic.definition
        exact = plan.users(read_pattern(visits, WINDOW, user="user")).total()[:16, :8]
        # The release of so much budget is the exact distribution of persons, which is not that of their points.
        np.testing.assert_allclose(release.distribution, exact / exact.sum(), atol=1e-6)
        names = ("heat map, EMD at 32 x 32", "heat map, SIM", "heat map, CC", "heat map, KL")
        assert [rows[name]["synthetic"] for name in names] == pytest.approx([0, 1, 1, 0], abs=1e-5)
        heat, flat = release.heatmap(), gaussian_heatmap(np.ones((16, 8)), (0.02, 0.04))
        uniform = [emd(heat, flat), similarity(heat, flat), pearson(heat, flat), kl(heat, flat)]
        assert [rows[name]["uniform"] for name in names] == pytest.approx(uniform, rel=1e-4, abs=1e-6)
        assert [rows[name]["better"] for name in names] == ["lower", "higher", "higher", "lower"]
        assert all("patterns" not in rows[name] for name in names)
        assert rows["K, MISE"]["patterns"] == [rows["K, MISE"]["synthetic"]]

    def test_evaluate_asks_for_the_persons(self, public, tmp_path):
        others = table(tmp_path / "others.csv", [(1, 2, "a"), (3, 4, "b")], ("x", "y", "who"))
        said = spoken(run("evaluate", others, public[0], "--out", tmp_path / "private", code=2))
        assert "certificate tells persons by 'user', so must the original: there is no column 'user'" in said
        pattern = PointPattern([[1.0, 2.0], [3.0, 4.0]], WINDOW)
        with pytest.raises(InputError, match="user"):
            reports.evaluate(pattern, pattern, release=load_release(public[0]))
        with pytest.raises(InputError, match="release: needs a HeatmapRelease"):
            reports.evaluate(pattern, pattern, release=public[0])


class TestRehearse:
    def test_needs_a_guess_and_shows_every_surrogate(self):
        assert "--expected-n: a rehearsal needs a public guess of the number of persons" in spoken(
            run("rehearse", *HEAT, *PLACE, code=2)
        )
        said = json.loads(run("rehearse", *HEAT, *PLACE, "--w", 128, "--expected-n", 500, "--json").stdout)
        assert said["mechanism"] == "heatmap"
        assert [each["passed"] for each in said["runs"]] == [True] * 3
        assert said["measure"] == "earth mover's distance"
        # Where there is no noise, and every cell is kept, what is released is what was counted.
        assert all(each["distance"] < 1e-4 < 0.01 < each["uniform"] for each in said["runs"])
        words = spoken(run("rehearse", *HEAT, *PLACE, "--expected-n", 500))
        assert "as a share of the window's sides" in words
        assert "total variation" not in words

    @pytest.mark.parametrize("user", ["id", None])
    def test_persons_have_one_point_each(self, user):
        plan, seen = HeatmapSynthesizer(1.0, shape=(4, 4), user=user).plan(WINDOW, expected_n=30), []

        class Seeing(ReleasePlan):
            def release(self, pattern, rng=None, **options):
                seen.append(pattern)
                return super().release(pattern, rng, **options)

        recast(plan, Seeing).rehearse(0)
        assert [len(pattern) for pattern in seen] == [30] * 3
        assert all(user is None or len(set(pattern.marks[user])) == 30 for pattern in seen)

    def test_other_methods_say_so_too(self):
        words = ["--method", "laplace", "--epsilon", 1, "--relation", "add-remove", "--spacing", 20]
        assert "guess of the number of points" in spoken(run("rehearse", *words, *PLACE, code=2))

    def test_maps_are_compared_under_one_filter(self):
        """Half of the persons moved by 100 of 200 along x and 50 of 100 along y: half of half of both sides."""
        pattern = PointPattern([[41.0, 21.0]] * 4, WINDOW)
        release = HeatmapSynthesizer(1e7, shape=(64, 64), user=None).release(pattern, 0)
        moved = release.exact_maps(PointPattern([[41.0, 21.0], [141.0, 71.0]] * 2, WINDOW))
        assert moved.moved(moved.released) == pytest.approx(0.5, rel=1e-3)
        same = release.exact_maps(pattern)
        assert same.moved(same.released) == pytest.approx(0, abs=1e-5)
        np.testing.assert_allclose(same.exact, same.released, atol=1e-6)
        assert same.uniform.max() < 1.2 / 64**2


class TestPictures:
    @pytest.mark.slow
    def test_what_is_drawn(self, public, tmp_path):
        with pictures_drawn() as drawn:
            said = spoken(run("plot", public[0], "--out", tmp_path, "--bandwidth", 9))
        (ax,) = (ax for ax in drawn if ax.get_title(loc="left") == "Private heat map, smoothed by 9 units")
        assert any("ε = 10,000,000" in text.get_text() for text in ax.texts)
        assert "noise" not in said
        release = load_release(public[0])
        assert (release.blur(), release.blur(9)) == ("4 units", "9 units")
        assert {path.stem for path in tmp_path.iterdir()} == {"epsilon", "heatmap", "intensity", "pattern"}

    def test_shares_of_the_maximum_in_their_places(self, public):
        release = load_release(public[0])
        ax = plot_heatmap(release, 8.0, title="Heat")
        (image,) = ax.images
        heat = release.heatmap(8.0)
        np.testing.assert_allclose(image.get_array(), heat.T / heat.max())
        assert (image.get_extent(), image.origin) == ([0, 200, 0, 100], "lower")
        assert image.get_clim() == (0, 1)
        # The persons are in the upper left corner: few columns from the left, the highest rows.
        row, column = np.unravel_index(image.get_array().argmax(), (8, 16))
        assert (row, column) == (7, 1)
        assert image.get_clip_path() is not None
        (bar,) = [each for each in ax.figure.axes if each is not ax]
        assert bar.get_xlabel().split("\n")[0] == "share of the maximum"

    def test_plain_masses_are_drawn_on_the_unit_square(self):
        masses = np.zeros((8, 4))
        masses[1, 3] = 6.0
        for bandwidth, heat in (None, gaussian_heatmap(masses, 0.02)), (0.5, gaussian_heatmap(masses, 0.5)):
            (image,) = plot_heatmap(masses.tolist(), bandwidth).images
            np.testing.assert_allclose(image.get_array(), heat.T / heat.max())
            assert (image.get_extent(), image.origin) == ([0, 1, 0, 1], "lower")
        with pytest.raises(InputError, match=r"release: needs a HeatmapRelease, got Window; .* array of masses"):
            plot_heatmap(WINDOW)
        with pytest.raises(InputError, match=r"release: must be a two-dimensional array.*\[\[1, 2\]\]"):
            plot_heatmap([1, 2])

    def test_intensities_are_of_persons(self, public, monkeypatch):
        monkeypatch.setattr(surfaces, "PIXELS", 40)
        intensity = load_release(public[0]).intensity
        for of, label in ("persons", "persons per unit²"), ("points", "points per unit²"):
            ax = plot_intensity(intensity, of=of)
            assert [each.get_xlabel().split("\n")[0] for each in ax.figure.axes if each is not ax] == [label]

    def test_the_filter_is_chosen(self, public):
        release = load_release(public[0])
        narrow, wide = (plot_heatmap(release, sd).images[0].get_array().mean() for sd in (4.0, 30.0))
        assert narrow < 0.5 * wide

    @pytest.mark.parametrize("bandwidth", [0, float("nan")])
    def test_bad_filters(self, bandwidth, public, tmp_path):
        assert "--bandwidth: " in spoken(run("plot", public[0], "--bandwidth", bandwidth, "--out", tmp_path, code=2))

    def test_of_other_releases_there_is_none(self, tmp_path):
        pattern = PointPattern([[1.0, 1.0], [2.0, 2.0]], WINDOW)
        other = dps.LaplaceSynthesizer(1.0, spacing=50.0, postprocess="plain").release(pattern, 0)
        with pytest.raises(InputError, match=r"release: .*HeatmapSynthesizer"):
            plot_heatmap(other)
        folder = (
            dps.LaplaceSynthesizer(1.0, spacing=50.0, postprocess="plain")
            .release(pattern)
            .save(tmp_path / "o", patterns=0)
        )
        assert "has no heat map" in spoken(run("plot", folder, "--bandwidth", 3, "--out", tmp_path, code=2))

    def test_cells_too_small_to_see_set_no_scale(self, monkeypatch):
        """One cell of 120 x 60, each of one pixel here: with the scale up to it nothing else would show."""
        monkeypatch.setattr(surfaces, "PIXELS", 40)
        mesh = HeatmapSynthesizer(1.0, shape=(120, 60)).plan(WINDOW).statistic.mesh
        for wide, top in (0, 1), (143, 1), (144, 5):
            values = np.ones(120 * 60)
            values[:wide] = 5.0
            values[0] = 900.0
            assert plot_intensity(PiecewiseConstant(mesh, values)).images[0].get_clim() == (0, top)

    @pytest.mark.slow
    def test_the_curve_is_a_persons(self):
        persons, points = (HeatmapSynthesizer(2.0, user=user).check(WINDOW) for user in ("user", None))
        assert plot_epsilon_curve(persons).get_xlabel() == what_changes(persons)
        assert what_changes(persons) == "one person is added or removed, with all their points"
        assert (points.relation, what_changes(points)) == (AddRemove(), "one point is added or removed")


class TestReport:
    def test_speaks_of_persons(self, page):
        for words in (
            "It protects each person's points by differential privacy",
            "Every person counts once, spread evenly over their points.",
            "The promise is made to every person, with all of their points, however many these are.",
            "a certain person is in the data with all of their points, or is not in the data at all",
            "points of one person: any number",
            "telling two places apart may cost twice as much: epsilon 20,000,000",
            "Bound on what an attacker can tell apart about one person with all their points.",
            catalogue.text(Statement("mark-tells-persons", user="user")),
            "about 61 persons, of which less than one may be noise",
            "Private heat map, ε = 10,000,000, smoothed by 4 units: where persons are",
            "smoothed by 4 units, the standard deviation",
            "told apart by the mark 'user'; each counts once",
            "levels 2 to 4 of a pyramid, at most 20 cells kept of each",
            "noise discrete Laplace of scale 2.207e-07",
            "Private intensity, of persons, from the noisy numbers",
        ):
            assert words in page

    def test_speaks_of_no_point_and_no_cap(self, page):
        for words in ("single point", "one point is", "a certain point", "does not cover more", "None", "max_points"):
            assert words not in page

    @pytest.mark.slow
    def test_where_points_are_persons_it_says_so(self):
        guarantee = HeatmapSynthesizer(1.0, user=None).check(WINDOW)
        said = promise(guarantee, WINDOW, {})
        assert "The promise is made to every single point, and so to every person as long as nobody has more" in said[0]
        assert "a certain point is in the data, or is not" in said[1]
        assert "It does not cover more than one point of one person." in not_promised(guarantee, WINDOW, None)
        persons = HeatmapSynthesizer(1.0).check(WINDOW)
        assert not any("does not cover more" in each for each in not_promised(persons, WINDOW, None))
        # A person who is added or removed is, at epsilon 1, told apart in at most 73.2 of 100 cases.
        assert "at most 73.2 of 100 cases" in promise(persons, WINDOW, {"user": "user"})[1]
