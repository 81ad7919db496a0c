"""Files of counts: exact sums over machines, and refusals of whatever would make a wrong one."""

import json

import numpy as np
import pytest
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.local import (
    DiskAreaMechanism,
    UniformGrid,
    aggregate_files,
    count_files,
    merge_counts,
    write_counts,
    write_reports,
)
from dpppsynth.mechanisms.local.saved_counts import SavedCounts, _hash
from dpppsynth.release import load_release

WINDOW = dps.Window.rectangle(0, 0, 30, 60)
DISK = DiskAreaMechanism(epsilon=2.0, cells=4)
ASK = ["--mechanism", "disk-area", "--epsilon", 2, "--cells", 4, "--window", "0,0,30,60"]


@pytest.fixture
def folder(tmp_path):
    """Three files of reports with secret bits, and the counts of each."""
    for k, name in enumerate("abc"):
        reports = DISK.clients(np.random.default_rng(k).integers(0, 16, 100 + k))
        write_reports(reports, tmp_path / f"{name}.parquet", mechanism=DISK)
        count_files(DISK, tmp_path / f"{name}.parquet", tmp_path / f"{name}.json", window=WINDOW)
    return tmp_path


def changed(path, **values):
    """A file of counts with other values and the right hash, as somebody would write it."""
    data = json.loads(path.read_text()) | values
    data.pop("hash")
    path.write_text(json.dumps(data | {"hash": _hash(data)}))
    return path


class TestSums:
    def test_any_order_gives_the_counts_of_all_reports(self, folder):
        whole = aggregate_files(DISK, folder)
        merge_counts([folder / "a.json", folder / "b.json"], folder / "ab.json")
        merge_counts([folder / "c.json", folder / "ab.json"], folder / "one.json")
        merge_counts(str(folder / "[abc].json"), folder / "other.json")
        assert (folder / "one.json").read_bytes() == (folder / "other.json").read_bytes()
        found = aggregate_files(DISK, folder / "one.json", window=WINDOW)
        assert (found.values == whole.values).all()
        assert (found.n, found.seeded) == (303, False)

    def test_beside_files_of_reports(self, folder):
        merge_counts([folder / "a.json", folder / "b.json"], folder / "ab.json")
        both = aggregate_files(DISK, [folder / "ab.json", folder / "c.parquet"], window=WINDOW)
        assert (both.values == aggregate_files(DISK, folder).values).all()

    def test_what_was_read_keeps_its_countings(self, folder):
        a, b = (aggregate_files(DISK, folder / f"{name}.json") for name in "ab")
        write_counts(a + b, folder / "ab.json", window=WINDOW)
        with pytest.raises(InputError, match="count twice"):
            merge_counts([folder / "ab.json", folder / "b.json"], folder / "x.json")
        with pytest.raises(InputError, match="count twice"):
            _ = a + a

    def test_of_a_grid_and_of_nobody(self, tmp_path):
        grid = UniformGrid(WINDOW, epsilon=1.0, cells=3)
        write_counts(grid.aggregate([]), tmp_path / "none.json", window=WINDOW)
        write_counts(grid.simulate([[1, 1]] * 5, rng=1), tmp_path / "five.json", window=WINDOW)
        assert merge_counts([tmp_path / "none.json", tmp_path / "five.json"], tmp_path / "all.json").n == 5
        assert aggregate_files(grid, tmp_path / "all.json").query([[0, 0, 30, 60]]).shape == (1,)

    def test_one_seeded_file_marks_the_sum(self, folder):
        write_counts(DISK.simulate(dps.PointPattern([[1, 1]], WINDOW), rng=1), folder / "s.json", window=WINDOW)
        assert merge_counts([folder / "a.json", folder / "s.json"], folder / "x.json").seeded
        assert aggregate_files(DISK, folder / "x.json").seeded


class TestRefusals:
    @pytest.mark.parametrize(
        ("other", "window", "words"),
        [
            (DiskAreaMechanism(epsilon=2.5, cells=4), WINDOW, r"different mechanisms .*epsilon"),
            (DiskAreaMechanism(epsilon=2.0, cells=4, radius=0), WINDOW, r"different mechanisms .*radius"),
            (DISK, dps.Window.rectangle(0, 0, 30, 61), "different windows"),
        ],
    )
    def test_of_others(self, other, window, words, folder):
        write_counts(other.aggregate(other.clients([0, 1])), folder / "o.json", window=window)
        with pytest.raises(InputError, match=words):
            merge_counts([folder / "a.json", folder / "o.json"], folder / "x.json")
        assert not (folder / "x.json").exists()
        with pytest.raises(InputError, match="another"):
            aggregate_files(DISK, folder / "o.json", window=WINDOW)

    def test_what_would_count_twice(self, folder):
        merge_counts([folder / "a.json", folder / "b.json"], folder / "ab.json")
        for paths in (["a", "a"], ["ab", "b"], ["ab", "c", "a"]):
            with pytest.raises(InputError, match="count twice"):
                merge_counts([folder / f"{name}.json" for name in paths], folder / "x.json")

    def test_reports_beside_counts_of_them(self, folder):
        """In one command, and over machines that counted copies of one file."""
        words = "the same reports, or the same counting of some, are in both"
        merge_counts([folder / "a.json", folder / "b.json"], folder / "ab.json")
        for saved in ("a", "ab"):
            with pytest.raises(InputError, match=words):
                aggregate_files(DISK, [folder / f"{saved}.json", folder / "a.parquet"])
        (folder / "copy.parquet").write_bytes((folder / "a.parquet").read_bytes())
        count_files(DISK, folder / "copy.parquet", folder / "copy.json", window=WINDOW)
        with pytest.raises(InputError, match="count twice"):
            merge_counts([folder / "ab.json", folder / "copy.json"], folder / "x.json")
        both = aggregate_files(DISK, [folder / "a.parquet", folder / "b.parquet"])
        with pytest.raises(InputError, match=words):
            _ = both + aggregate_files(DISK, folder / "copy.parquet")

    def test_a_counting_of_reports_without_labels(self, folder):
        """Beside reports that have one: the counting has a number of its own as well."""
        (folder / "u.csv").write_text("i,j\n0,0\n")
        count_files(DISK, [folder / "a.parquet", folder / "u.csv"], folder / "au.json", window=WINDOW)
        first = SavedCounts.from_text((folder / "au.json").read_text(), "au.json")
        assert len(first.runs) == 2

    def test_a_changed_digit(self, folder):
        text = (folder / "a.json").read_text()
        (folder / "a.json").write_text(text.replace('"n": 100', '"n": 101'))
        with pytest.raises(InputError, match=r"a\.json is not whole"):
            merge_counts(folder / "a.json", folder / "x.json")

    @pytest.mark.parametrize(
        "values",
        [
            {"n": -1}, {"n": 1}, {"n": 100.0}, {"n": 2**60}, {"counts": []}, {"counts": [1.5]}, {"counts": [True]},
            {"counts": [-1, 2]}, {"seeded": 0}, {"runs": []}, {"runs": ["x", "x"]}, {"runs": "x"}, {"window": None},
            {"mechanism": ""}, {"parameters": []}, {"more": 1},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_no_counting_gives(self, values, folder):
        with pytest.raises(InputError, match=r"a\.json holds what no counting gives"):
            merge_counts(changed(folder / "a.json", **values), folder / "x.json")

    def test_counts_that_no_reports_of_the_mechanism_give(self, folder):
        path = changed(folder / "a.json", n=101)
        with pytest.raises(InputError, match="not those of so many reports"):
            aggregate_files(DISK, path)

    def test_never_over_others_and_what_is_no_file_of_counts(self, folder):
        before = (folder / "a.json").read_bytes()
        with pytest.raises(InputError, match=r"out: a\.json exists"):
            merge_counts(folder / "b.json", folder / "a.json")
        with pytest.raises(InputError, match=r"out: a\.json exists"):
            count_files(DISK, folder / "b.parquet", folder / "a.json", window=WINDOW)
        assert (folder / "a.json").read_bytes() == before
        for text in ("", "{}", "[1]", '{"format": "dpppsynth.counts"}', "[" * 99_999):
            (folder / "bad.json").write_text(text)
            with pytest.raises(InputError, match=r"bad\.json"):
                merge_counts(folder / "bad.json", folder / "x.json")

    def test_text_and_back(self, folder):
        text = (folder / "a.json").read_text()
        assert SavedCounts.from_text(text, "a.json").text() == text


class TestCommands:
    def test_count_merge_aggregate(self, folder):
        for name in "ab":
            said = spoken(run("local", "count", folder / f"{name}.parquet", *ASK, "--out", folder / f"{name}2.json"))
            assert f"counts of {100 + (name == 'b')} reports" in said
        files = [folder / "a2.json", folder / "b2.json"]
        said = json.loads(run("local", "merge", *files, "--out", folder / "ab.json", "--json").stdout)
        assert (said["reports"], said["seeded"]) == (201, False)
        run("local", "aggregate", folder / "ab.json", *ASK, "--out", folder / "public", "--patterns", 0)
        assert not list((folder / "public").glob("synthetic*"))
        whole = aggregate_files(DISK, [folder / "a.parquet", folder / "b.parquet"])
        assert (load_release(folder / "public").statistic.lattice == whole.values).all()
        assert "The certificate holds" in spoken(run("verify", folder / "public"))

    def test_refusals(self, folder):
        said = spoken(run("local", "count", folder / "a.json", *ASK, "--out", folder / "x.json", code=2))
        assert "files of counts already" in said
        said = spoken(run("local", "merge", folder / "a.parquet", "--out", folder / "x.json", code=2))
        assert "must end in .json" in said
        said = spoken(run("local", "merge", folder / "a.json", "--out", folder / "a.json", code=2))
        assert "--out: a.json exists" in said


def test_counting_tells_the_share_of_the_bytes_that_are_read(tmp_path):
    """Three files of different lengths: shares grow to one, whatever the pieces are."""
    for name, n in (("a.parquet", 10), ("b.csv", 5000), ("c.parquet", 300)):
        write_reports(DISK.clients(np.zeros(n, dtype=int), rng=1), tmp_path / name)
    told = []
    aggregate_files(DISK, tmp_path, progress=told.append)
    shares = [step.share for step in told]
    assert told[-1] == "5 310 reports counted"
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == pytest.approx(1)
