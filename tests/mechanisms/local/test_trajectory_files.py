"""Reports about trajectories in files: rounds of LDPTrace as rows of words, `LineTrace`, and both by hand."""

import json
from fractions import Fraction

import numpy as np
import pytest
from shapely import Polygon
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth import InputError, load_release, privacy
from dpppsynth.ledger import Ledger
from dpppsynth.local import (
    LDPTrace,
    LineTrace,
    aggregate_files,
    count_files,
    merge_counts,
    perturb_file,
    write_reports,
)
from dpppsynth.mechanisms.local import point_files
from dpppsynth.mechanisms.local.point_files import point_file, walk_values
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories, starts
from dpppsynth.privacy import ReplaceOne

# A window that is no rectangle: cells outside it have no element.
WINDOW = dps.Window.polygon(Polygon([(0, 0), (900, 0), (900, 600), (600, 900), (0, 900)]), "EPSG:27700")
TRACE = LDPTrace(epsilon=8.0, cells=3, max_length=6, user="who")
N = 400
ASK = ["--epsilon", 8, "--cells", 3, "--user", "who"]


def walks(seed=1):
    """Coordinates (n, 2) and labels (n,) of trajectories, the rows of all persons mixed, each in its own order."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, N)
    who = rng.permutation(np.repeat(np.arange(N), lengths))
    return rng.uniform(0, 600, (len(who), 2)), np.array([f"t{k}" for k in who])


@pytest.fixture
def trips(tmp_path):
    xy, who = walks()
    rows = [f"{x:.17g},{y:.17g},{label}" for (x, y), label in zip(xy, who, strict=True)]
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(["x,y,who", *rows]) + "\n")
    return path


@pytest.fixture
def place(tmp_path):
    (tmp_path / "window.geojson").write_text(json.dumps(WINDOW.to_geojson()))
    return ["--window-file", tmp_path / "window.geojson"]


def pattern():
    xy, who = walks()
    return dps.PointPattern(xy, WINDOW, {"who": who})


def values(trips, mechanism, rows):
    """Values of the clients of a file of trips, in groups."""
    known = {"user": "who", "rows": rows, "progress": print}
    points = point_file(trips, WINDOW, {})
    return [group for group, _ in walk_values(points, mechanism, WINDOW, np.random.default_rng(1), **known)]


def ordered(values):
    """Rows in an order of their own."""
    return np.asarray(sorted(np.reshape(values, (len(values), -1)).tolist()))


class TestRows:
    @pytest.mark.parametrize("asked", [TRACE.first, TRACE.second(1), TRACE.second(5)])
    def test_rows_are_the_reports_side_by_side(self, asked):
        """Draws of each part by its own law, one part after the other."""
        trajectories = TRACE.plan(WINDOW, n=N).statistic.walks(pattern())
        law, rows = asked.law, asked.trajectory_values(trajectories)
        drawn = law.draw(rows, np.random.default_rng(3))
        assert drawn.shape == (N, len(law.columns)) == (N, len(set(law.columns)))
        source, about = np.random.default_rng(3), law.about(trajectories)
        words = {part.name: part.randomizer.draw(about[part.name].ravel(), source) for part in law.parts}
        assert all((law.words(drawn)[name] == rows).all() for name, rows in words.items())
        counts = [part.randomizer.count(words[part.name]) for part in law.parts]
        assert (law.count(drawn) == np.concatenate(counts)).all()
        assert law.size == sum(map(len, counts))

    def test_both_rounds_keep_to_the_budget(self):
        for longest in (1, 4, 6):
            first, second = TRACE.first, TRACE.second(longest)
            for filed in (first, second):
                spent = filed.guarantee.epsilon()
                assert filed.law.total <= Fraction(spent) <= filed.law.total * (1 + Fraction(2) ** -50)
                assert filed.guarantee.relation == privacy.Local("trajectory")
            assert first.guarantee.epsilon() == pytest.approx(0.8, rel=1e-8)
            assert first.guarantee.epsilon() + second.guarantee.epsilon() <= 8 * (1 + 1e-15)

    def test_impossible_counts_are_refused(self):
        law = TRACE.second(3).randomizer
        counts = np.zeros(law.size, dtype=int)
        counts[0] = counts[9] = counts[-1] = 2
        assert (law.counts_of(counts, 2) == counts).all()
        # Of moves every client reports two.
        counts[-1] = 4
        law.counts_of(counts, 2)
        for wrong in (0, 9, -1):
            more = counts.copy()
            more[wrong] += 1
            with pytest.raises(InputError, match="exceed the number of reports"):
                law.counts_of(more, 2)

    def test_one_round_is_no_release(self, trips, tmp_path):
        filed = TRACE.first
        perturb_file(filed, trips, tmp_path / "one.csv", window=WINDOW)
        with pytest.raises(InputError, match="one round of LDPTrace is no release"):
            aggregate_files(filed, tmp_path / "one.csv").release(WINDOW)


class TestTrajectoriesOfAFile:
    @pytest.mark.parametrize("mechanism", [TRACE.first, TRACE.second(4), LineTrace(epsilon=1.0, cells=3, user="who")])
    @pytest.mark.parametrize("rows", [1000, 10**6])
    def test_values_are_those_of_the_pattern(self, mechanism, rows, trips):
        """Rows of a person in the file's order, whoever's rows lie between them, in whatever batches."""
        found = np.concatenate(values(trips, mechanism, rows=rows))
        trajectories = TRACE.plan(WINDOW, n=N).statistic.walks(pattern())
        stated = mechanism.trajectory_values(trajectories)
        assert (ordered(found) == ordered(stated)).all()
        # In another order than the persons': 400 of them stay in theirs with a chance below 1e-800.
        assert (np.reshape(found, (N, -1)) != np.reshape(stated, (N, -1))).any()

    @pytest.mark.parametrize("mechanism", [TRACE.first, TRACE.second(4), LineTrace(epsilon=1.0, cells=3, user="who")])
    def test_parts_change_nothing(self, mechanism, trips, monkeypatch):
        """The same values in groups of the same sizes, whatever is looked at together."""
        at_once = values(trips, mechanism, rows=150)
        monkeypatch.setattr(point_files, "FILLED", 50)
        in_parts = values(trips, mechanism, rows=150)
        assert [len(each) for each in in_parts] == [len(each) for each in at_once] == [150, 150, 100]
        assert (np.concatenate(in_parts) == np.concatenate(at_once)).all()

    def test_few_cells_are_filled_in_together(self, monkeypatch):
        """However far all jumps are, and however many there are: of rows with their cells no more than `FILLED`."""
        monkeypatch.setattr(point_files, "FILLED", 500)
        lengths = np.tile([1, 30, 3], 40)
        values = np.tile([0, 99], 40 * 17).astype(np.uint8)
        walks = point_files.Walks(10, values, starts(lengths))
        parts = list(walks.parts(5, len(walks), 20))
        assert sum(map(len, parts)) == len(walks) - 5
        assert max(len(part.values) + len(part.mobility(20).values) for part in parts) <= 500
        assert (np.concatenate([part.values for part in parts]) == values[walks.offsets[5] :]).all()
        # One that is longer than that is looked at by itself.
        monkeypatch.setattr(point_files, "FILLED", 10)
        assert [len(part) for part in walks.parts(0, 9, 20)] == [1] * 9

    def test_every_row_is_a_trajectory_unless_told(self, trips, tmp_path):
        everybody = LDPTrace(epsilon=8.0, cells=3, max_length=6, user=None).first
        assert perturb_file(everybody, trips, tmp_path / "a.csv", window=WINDOW) == len(walks()[0])

    def test_parquet_and_csv_agree(self, trips, tmp_path):
        import pandas as pd

        pd.read_csv(trips).to_parquet(tmp_path / "trips.parquet")
        drawn = []
        for source in (trips, tmp_path / "trips.parquet"):
            out = tmp_path / f"{source.suffix[1:]}.parquet"
            assert perturb_file(TRACE.second(4), source, out, window=WINDOW, rng=7) == N
            drawn.append(aggregate_files(TRACE.second(4), out))
        assert (drawn[0].values == drawn[1].values).all()
        assert drawn[0].seeded

    def test_points_outside_and_no_points_leave_nothing(self, trips, tmp_path):
        small = dps.Window.rectangle(0, 0, 300, 300)
        with pytest.raises(InputError, match="every point must lie in the window"):
            perturb_file(TRACE.first, trips, tmp_path / "a.csv", window=small)
        (tmp_path / "none.csv").write_text("x,y,who\n")
        with pytest.raises(InputError, match="holds no points"):
            perturb_file(TRACE.first, tmp_path / "none.csv", tmp_path / "a.csv", window=WINDOW)
        assert {each.name for each in tmp_path.iterdir()} == {"trips.csv", "none.csv"}


class TestDevices:
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_reports_of_both_rounds_are_counted(self, suffix, tmp_path):
        """Word for word as in memory, whoever wrote them down."""
        trace = LDPTrace(epsilon=8.0, cells=3, max_length=6)
        sent = TRACE.plan(WINDOW, n=N).statistic.walks(pattern())
        for asked in (trace.first, trace.second(4)):
            reports = asked.clients(sent)
            path = write_reports(reports, tmp_path / f"{asked.law.moving}{suffix}", mechanism=asked)
            counts = aggregate_files(asked, path, window=WINDOW, labelled=True)
            assert (counts.values == asked.aggregate(reports).values).all()
            assert (counts.n, counts.seeded) == (N, False)
        with pytest.raises(InputError, match="did not draw these reports"):
            write_reports(reports, tmp_path / f"x{suffix}", mechanism=trace.first)

    def test_lines_are_counted(self, tmp_path, place):
        lines = LineTrace(epsilon=8.0, cells=3)
        write_reports(lines.clients([0, 5, 7]), tmp_path / "d.csv", mechanism=lines)
        assert aggregate_files(lines, tmp_path / "d.csv", labelled=True).n == 3
        ask = ["--method", "displacements", "--epsilon", 8, "--cells", 3, *place]
        run("local", "aggregate", tmp_path / "d.csv", *ask, "--out", tmp_path / "o", "--patterns", 0)
        counted = aggregate_files(lines, tmp_path / "d.csv").values
        assert (load_release(tmp_path / "o").statistic.lattice == counted).all()

    def test_what_nobody_says_of_persons(self, tmp_path):
        """Without the mechanism a label does not tell persons; with another column it tells which."""
        lines = LineTrace(epsilon=8.0, cells=3)
        write_reports(lines.clients([0, 5, 7]), tmp_path / "d.csv")
        with pytest.raises(InputError, match=r"write those of devices with write_reports\(\.\.\., mechanism=\)"):
            aggregate_files(lines, tmp_path / "d.csv")
        other = LineTrace(epsilon=8.0, cells=3, user="who")
        write_reports(other.clients([0, 5, 7]), tmp_path / "e.csv", mechanism=other)
        with pytest.raises(InputError, match="by another one: user='who'"):
            aggregate_files(lines, tmp_path / "e.csv")


class TestTwoRounds:
    @pytest.mark.slow
    def test_files_of_machines_add_up_to_a_release(self, trips, tmp_path):
        """The same model as that of rounds in memory with the same counts."""
        first = TRACE.first
        for name, seed in (("a", 1), ("b", 2)):
            perturb_file(first, trips, tmp_path / f"{name}.parquet", window=WINDOW, rng=seed)
            count_files(first, tmp_path / f"{name}.parquet", tmp_path / f"{name}.json", window=WINDOW)
        merge_counts([tmp_path / "a.json", tmp_path / "b.json"], tmp_path / "one.json")
        lengths = aggregate_files(first, tmp_path / "one.json", window=WINDOW)
        assert lengths.n == 2 * N
        second = TRACE.second(TRACE.longest(lengths))
        perturb_file(second, trips, tmp_path / "two.csv", window=WINDOW, rng=3)
        mobility = aggregate_files(second, tmp_path / "two.csv", workers=2)
        release = TRACE.combine(lengths, mobility, 2 * N).release(WINDOW)
        rounds = TRACE.answers(lengths, mobility)
        inside = TRACE.plan(WINDOW, n=2 * N).statistic.inside
        stated = TRACE.protocol.model(*rounds, n=2 * N, inside=inside)
        assert release.model.visits == pytest.approx(stated.visits)
        assert release.seeded

    def test_counts_beyond_the_number_of_persons_are_saved(self, tmp_path):
        """Trajectories of one point: five reports of "no move" a person, half of which have its bit."""
        rows = [f"{k},{k},t{k}" for k in range(N)]
        (tmp_path / "places.csv").write_text("\n".join(["x,y,who", *rows]) + "\n")
        second = TRACE.second(6)
        perturb_file(second, tmp_path / "places.csv", tmp_path / "two.csv", window=WINDOW)
        counts = count_files(second, tmp_path / "two.csv", tmp_path / "two.json", window=WINDOW)
        # Binomial with 2000 trials: below 800 with a chance below 1e-18.
        assert counts.values[-1] > 2 * N
        assert (aggregate_files(second, tmp_path / "two.json").values == counts.values).all()

    def test_by_hand(self, trips, place, tmp_path):
        ask = ["--method", "trajectories", "--max-length", 6, *ASK, *place]
        one, two, first = tmp_path / "one.csv", tmp_path / "two.parquet", tmp_path / "one.json"
        ledger = tmp_path / "ledger.json"
        Ledger.create(ledger, epsilon=8.5, delta=0, relation=ReplaceOne())
        said = json.loads(run("local", "perturb", trips, one, *ask, "--ledger", ledger, "--json").stdout)
        assert said["reports"] == N
        assert said["guarantee"] == TRACE.first.guarantee.to_dict()
        assert said["both_rounds"] == TRACE.guarantee.to_dict()
        run("local", "count", one, *ask, "--out", first)
        said = spoken(run("local", "perturb", trips, two, *ask, "--after", first, "--ledger", ledger))
        for words in (
            "One report for each person of the column 'who' in this round, about all of their rows",
            "Every person reports in both rounds",
            "This round spends epsilon = 7.2, and both together 8.",
        ):
            assert words in said
        assert Ledger(ledger).spent == pytest.approx(8, rel=1e-7)
        run("local", "aggregate", two, *ask, "--after", first, "--out", tmp_path / "o", "--n", N)
        release = load_release(tmp_path / "o")
        lengths = aggregate_files(TRACE.first, first)
        mobility = aggregate_files(TRACE.second(TRACE.longest(lengths)), two)
        assert (release.statistic.lattice == np.concatenate([lengths.values, mobility.values])).all()
        assert release.guarantee.to_dict() == TRACE.check(WINDOW, n=N).to_dict()
        assert not release.seeded
        assert "The certificate holds" in spoken(run("verify", tmp_path / "o"))
        # A third round of the same persons is more than the ledger has.
        said = spoken(run("local", "perturb", trips, tmp_path / "x.csv", *ask, "--ledger", ledger, code=4))
        assert not (tmp_path / "x.csv").exists()

    def test_the_first_round_leaves_room_for_the_second(self, trips, place, tmp_path):
        """A first round alone is good for nothing, and what both spend is public."""
        ask = ["--method", "trajectories", *place, *ASK]
        ledger = tmp_path / "ledger.json"
        Ledger.create(ledger, epsilon=7.9, delta=0, relation=ReplaceOne())
        before = ledger.read_bytes()
        said = spoken(run("local", "perturb", trips, tmp_path / "one.csv", *ask, "--ledger", ledger, code=4))
        assert "Requested: 8 " in said
        assert ledger.read_bytes() == before
        assert not (tmp_path / "one.csv").exists()

    def test_public_numbers_are_judged_before_anything_is_spent(self, trips, place, tmp_path):
        ask = ["--method", "trajectories", "--max-length", 6, *ASK, *place]
        ledger = tmp_path / "ledger.json"
        Ledger.create(ledger, epsilon=20, delta=0, relation=ReplaceOne())
        run("local", "perturb", trips, tmp_path / "one.csv", *ask, "--ledger", ledger, "--n", N)
        before = ledger.read_bytes()
        again = ["local", "perturb", trips, tmp_path / "x.csv", *ask, "--ledger", ledger, "--n"]
        assert f"have n = {N}, and this one another" in spoken(run(*again, N + 1, code=2))
        shuffled = [N, "--shuffled", N + 1, "--shuffle-delta", "1e-9"]
        assert "are more than the" in spoken(run(*again, *shuffled, code=2))
        assert ledger.read_bytes() == before

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            (["--n", N - 1], f"--n: more persons report in this round than the {N - 1} it says"),
            (["--shuffled", N + 1, "--shuffle-delta", "1e-9"], f"are more than the {N} that are shuffled together"),
        ],
    )
    def test_numbers_of_persons_that_are_not_true_leave_nothing(self, more, words, trips, place, tmp_path):
        ask = ["--method", "trajectories", "--max-length", 6, *ASK, *place, *more]
        assert words in spoken(run("local", "perturb", trips, tmp_path / "one.csv", *ask, code=2))
        assert not (tmp_path / "one.csv").exists()
        assert not (tmp_path / "one.csv.json").exists()

    def test_refuses_what_does_not_belong_together(self, trips, place, tmp_path):
        ask = ["--method", "trajectories", "--max-length", 6, *ASK, *place]
        one, first = tmp_path / "one.csv", tmp_path / "one.json"
        run("local", "perturb", trips, one, *ask)
        run("local", "count", one, *ask, "--out", first)
        out = ["--out", tmp_path / "o"]
        assert "holds reports of another mechanism" in spoken(
            run("local", "aggregate", one, *ask, "--after", first, *out, code=2)
        )
        assert "--after: a release needs both rounds" in spoken(run("local", "aggregate", one, *ask, *out, code=2))
        other = ["--method", "trajectories", "--max-length", 5, *ASK, *place]
        words = "--after: the counts are of reports to another mechanism (longest 6, not 5); give those of"
        assert words in spoken(run("local", "perturb", trips, tmp_path / "b.csv", *other, "--after", first, code=2))
        other = ["--method", "trajectories", "--max-length", 6, "--epsilon", 6.1, *ASK[2:], *place]
        said = spoken(run("local", "perturb", trips, tmp_path / "b.csv", *other, "--after", first, code=2))
        assert "(epsilon 0.8, not 0.61)" in said
        who = [*ask[:-4], "--user", "x", *place]
        assert "--user" in spoken(run("local", "perturb", trips, tmp_path / "b.csv", *who, code=2))
        said = spoken(run("local", "describe", *ask, "--out", tmp_path / "d.json", code=2))
        assert "Devices that report about trajectories call LineTrace.client" in said
        assert {each.name for each in tmp_path.iterdir()} == {
            "trips.csv", "window.geojson", "one.csv", "one.csv.json", "one.json",
        }  # fmt: skip


def test_lines_by_hand(trips, place, tmp_path):
    ask = ["--method", "displacements", *ASK, *place]
    said = spoken(run("local", "perturb", trips, tmp_path / "a.csv", *ask))
    assert f"Written to {tmp_path / 'a.csv'}: {N} reports" in said
    run("local", "aggregate", tmp_path / "a.csv", *ask, "--out", tmp_path / "o")
    release = load_release(tmp_path / "o")
    mechanism = LineTrace(epsilon=8.0, cells=3, user="who")
    assert release.guarantee.to_dict() == mechanism.check(WINDOW, n=N).to_dict()
    assert (release.statistic.lattice == aggregate_files(mechanism, tmp_path / "a.csv").values).all()
    # At this budget the starts are told well: the law errs by .05 of all with a chance below 1e-6.
    trajectories: GridTrajectories = mechanism.plan(WINDOW, n=N).statistic.walks(pattern())
    starts = np.bincount(trajectories.values[trajectories.offsets[:-1]], minlength=9) / N
    assert np.abs(release.model.starts - starts).max() < 0.3
