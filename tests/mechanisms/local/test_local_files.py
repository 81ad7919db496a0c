"""Reports in files: any partition gives the same counts, and what no client sends is refused without a word of it."""

import contextlib
import itertools
import json
import os
import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq
from support.subclasses import recast

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.local import DiskAreaMechanism, PrivAG, SEMGeoI, UniformGrid
from dpppsynth.mechanisms.local import report_files, report_tables
from dpppsynth.mechanisms.local.randomizers import randomizer
from dpppsynth.mechanisms.local.report_files import (
    aggregate_files,
    perturb_file,
    write_reports,
)
from dpppsynth.mechanisms.local.reports import Reports
from dpppsynth.randomizers import DiskArea

WINDOW = dps.Window.rectangle(0, 0, 30, 60)
DISK = DiskAreaMechanism(epsilon=1.0, cells=6, radius=2)
# So much budget that a report is the person's own cell, but for one in thousands.
PLAIN = DiskAreaMechanism(epsilon=12.0, cells=3, radius=0)
RNG = np.random.default_rng(8)
MANY = DISK.clients(RNG.integers(0, 36, 1000), rng=3)
COUNTS = DISK.aggregate(MANY).values


def read_reports(path, mechanism):
    """The reports in a file, as they stand, and whether its label says that they are seeded."""
    import pandas as pd

    columns = tuple(mechanism.randomizer.columns)
    if path.suffix.lower() == ".csv":
        frame, label = pd.read_csv(path), path.with_name(path.name + ".json").read_text()
    else:
        frame, label = pd.read_parquet(path), pq.read_metadata(path).metadata[b"dpppsynth.reports"]
    rows = frame[list(columns)].to_numpy().reshape(-1, len(columns))
    return Reports(mechanism.fingerprint, columns, rows, json.loads(label)["seeded"])


def part(rows, seeded=False):
    return Reports(MANY.mechanism, MANY.columns, MANY.rows[rows], seeded)


def table(path, rows, names=("i", "j"), kind=None):
    columns = {name: pa.array(column, kind) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    pq.write_table(pa.table(columns), path)
    return path


def refused(call, *, secret=()):
    """The message of a refusal, which hides nothing behind itself either."""
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.__context__ is None
    for word in secret:
        assert str(word) not in str(caught.value)
    return str(caught.value)


class TestLongReports:
    def test_are_drawn_and_counted_in_parts(self, monkeypatch, tmp_path):
        """Reports of 67 words: no more than the room holds are in memory, and every person has one."""
        mechanism, held = UniformGrid(WINDOW, epsilon=9.0, cells=64, oracle="optimized-unary"), []
        draw, count = type(mechanism.randomizer).draw, type(mechanism.randomizer).count

        def drawn(self, values, rng):
            held.append(len(values))
            return draw(self, values, rng)

        def counted(self, reports):
            held.append(len(reports))
            return count(self, reports)

        monkeypatch.setattr(randomizer, "ROOM", 67 * 400)
        monkeypatch.setattr(type(mechanism.randomizer), "draw", drawn)
        monkeypatch.setattr(type(mechanism.randomizer), "count", counted)
        # All in one cell but for the last, so that the order of the file would show.
        xy = np.repeat([[1.0, 1.0], [29.0, 59.0]], [1000, 100], axis=0)
        np.savetxt(tmp_path / "p.csv", xy, delimiter=",", header="x,y", comments="")
        assert perturb_file(mechanism, tmp_path / "p.csv", tmp_path / "r.parquet", window=WINDOW, rng=1) == 1100
        assert held == [400, 400, 300]
        counts = aggregate_files(mechanism, tmp_path / "r.parquet")
        assert max(held) == 400
        assert counts.n == sum(held[3:]) == 1100
        # Half of the persons set their own bit: seven standard deviations.
        shared = counts.values[mechanism.values([[1.0, 1.0], [29.0, 59.0]])]
        assert np.abs(shared - [500, 50]).max() < 111
        rows = read_reports(tmp_path / "r.parquet", mechanism).rows
        last = mechanism.randomizer.supported(rows, int(mechanism.values([[29.0, 59.0]])[0]))
        # Of fifty in random places among 1100, some 18 are in either of the first parts, and none were by the file.
        assert last[:400].sum() > 0
        assert last[400:800].sum() > 0


class TestRoundTrip:
    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
    @pytest.mark.parametrize(
        "mechanism",
        [
            DISK,
            SEMGeoI(epsilon=0.8, cells=4),
            UniformGrid(WINDOW, epsilon=1.0, cells=9, oracle="optimized-unary"),
            UniformGrid(WINDOW, epsilon=1.0, cells=3, oracle="randomized-response"),
            UniformGrid(WINDOW, epsilon=1.0, cells=3, oracle="hadamard-response"),
            UniformGrid(WINDOW, epsilon=1.0, cells=9, oracle="subset-selection"),
            UniformGrid(WINDOW, epsilon=1.0, cells=9, oracle="projective-response"),
        ],
        ids=lambda each: each.randomizer.kind,
    )
    def test_what_is_written_is_read(self, mechanism, suffix, tmp_path):
        sent = mechanism.clients(RNG.integers(0, mechanism.randomizer.inputs, 50), rng=1)
        path = write_reports(sent, tmp_path / f"sent{suffix}")
        got = read_reports(path, mechanism)
        assert (got.rows == sent.rows).all()
        assert (got.mechanism, got.columns, got.seeded) == (sent.mechanism, tuple(sent.columns), True)
        counted, whole = aggregate_files(mechanism, path), mechanism.aggregate(sent)
        assert type(counted) is type(whole)
        assert (counted.values == whole.values).all()
        assert (counted.n, counted.seeded) == (50, True)

    def test_no_reports_at_all(self, tmp_path):
        for suffix in (".csv", ".parquet"):
            path = write_reports(part(slice(0)), tmp_path / f"none{suffix}")
            assert len(read_reports(path, DISK)) == aggregate_files(DISK, path).n == 0

    def test_labels(self, tmp_path):
        write_reports(part(slice(9)), tmp_path / "a.csv")
        label = json.loads((tmp_path / "a.csv.json").read_text())
        assert re.fullmatch("[0-9a-f]{32}", label.pop("run"))
        assert label == {"mechanism": DISK.fingerprint, "seeded": False, "parameters": None}
        write_reports(part(slice(9), seeded=True), tmp_path / "b.parquet", mechanism=DISK)
        label = json.loads(pq.read_metadata(tmp_path / "b.parquet").metadata[b"dpppsynth.reports"])
        assert label["parameters"] == DISK.randomizer.parameters()
        assert label["seeded"]
        assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "a.csv.json", "b.parquet"]
        assert "did not draw" in refused(lambda: write_reports(part(slice(9)), tmp_path / "c.csv", mechanism=PLAIN))

    def test_devices_of_persons(self, tmp_path):
        """Each device is a person's, where the mechanism says so."""
        person = DiskAreaMechanism(epsilon=1.0, cells=6, radius=2, user="person")
        write_reports(part(slice(9)), tmp_path / "a.csv", mechanism=person)
        assert aggregate_files(person, tmp_path / "a.csv", labelled=True).n == 9
        write_reports(part(slice(9)), tmp_path / "b.csv", mechanism=DISK)
        assert "count them without that column" in refused(lambda: aggregate_files(person, tmp_path / "b.csv"))

    def test_one_seeded_file_is_enough(self, tmp_path):
        write_reports(part(slice(500)), tmp_path / "a.csv")
        assert not aggregate_files(DISK, tmp_path).seeded
        write_reports(part(slice(500, 1000), seeded=True), tmp_path / "b.parquet")
        assert aggregate_files(DISK, tmp_path).seeded

    def test_nothing_is_written_over(self, tmp_path):
        path = write_reports(part(slice(9)), tmp_path / "a.csv")
        assert "exists" in refused(lambda: write_reports(part(slice(9)), path))
        path.unlink()
        assert "a.csv.json exists" in refused(lambda: write_reports(part(slice(9)), path))
        assert "no folder" in refused(lambda: write_reports(MANY, tmp_path / "nowhere" / "a.csv"))
        assert "must end in" in refused(lambda: write_reports(MANY, tmp_path / "a.txt"))


class TestPartitions:
    def test_any_partition_gives_the_same_counts(self, tmp_path):
        rng = np.random.default_rng(4)
        for trial in range(6):
            folder = tmp_path / str(trial)
            folder.mkdir()
            cuts = np.unique([0, *rng.integers(0, 1000, rng.integers(1, 6)), 1000])
            for k, rows in enumerate(np.split(rng.permutation(1000), cuts[1:-1])):
                place = folder / ("" if k % 2 else "deeper")
                place.mkdir(exist_ok=True)
                write_reports(part(rows), place / f"part-{k}{('.csv', '.parquet')[rng.integers(2)]}")
            counts = aggregate_files(DISK, folder, batch=int(rng.integers(1, 400)))
            assert (counts.values == COUNTS).all()
            assert counts.n == 1000

    def test_wherever_a_csv_file_is_cut(self, tmp_path, monkeypatch):
        """A row at a cut belongs to exactly one piece, with any ends of lines."""
        rows = MANY.rows[:14].tolist()
        expected = DISK.aggregate(part(slice(14))).values
        for ends in ("\n", "\r\n"):
            for last in ("", ends, ends + ends):
                text = "j , i" + ends + ends.join(f"{j},{i}" for i, j in rows) + last
                (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
                for size in (*range(16, 25), 50, 10_000):
                    monkeypatch.setattr(report_tables, "BLOCK_BYTES", size)
                    counts = aggregate_files(DISK, tmp_path / "a.csv")
                    assert counts.n == 14, (ends, last, size)
                    assert (counts.values == expected).all()

    def test_row_groups(self, tmp_path):
        whole = pa.table({"j": pa.array(MANY.rows[:, 1], pa.int8()), "i": pa.array(MANY.rows[:, 0], pa.int32())})
        for size in (7, 300, 1000):
            pq.write_table(whole, tmp_path / "a.parquet", row_group_size=size)
            for batch in (5, 300, 10**6):
                assert (aggregate_files(DISK, tmp_path / "a.parquet", batch=batch).values == COUNTS).all()

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_no_more_than_a_batch_in_memory(self, suffix, tmp_path):
        path, seen = write_reports(MANY, tmp_path / f"a{suffix}"), []

        class Seeing(DiskArea):
            def count(self, rows):
                seen.append(len(rows))
                return super().count(rows)

        class Mechanism(DiskAreaMechanism):
            randomizer = recast(DISK.randomizer, Seeing)

        aggregate_files(recast(DISK, Mechanism), path, batch=64)
        assert max(seen) == 64
        assert sum(seen) == 1000

    def test_several_at_a_time(self, tmp_path, monkeypatch):
        """A pool in this process stands in for several, which are pickled to."""
        for k in range(5):
            write_reports(part(slice(k, None, 5)), tmp_path / f"{k}.csv")
        said = []

        class Pool:
            @staticmethod
            def map(work, files):
                return map(pickle.loads(pickle.dumps(work)), files)

        monkeypatch.setattr(report_files, "worker_pool", lambda workers: contextlib.nullcontext(Pool()))
        assert (aggregate_files(DISK, tmp_path, workers=3, progress=said.append).values == COUNTS).all()
        assert said == [f"{n} reports counted" for n in (200, 400, 600, 800, "1 000")]

    def test_order_does_not_matter(self, tmp_path):
        paths = [write_reports(part(slice(k, k + 250)), tmp_path / f"{k}.csv") for k in range(0, 1000, 250)]
        for order in (paths, paths[::-1], map(str, paths), (each for each in paths)):
            assert (aggregate_files(DISK, order).values == COUNTS).all()
        assert (aggregate_files(DISK, str(tmp_path / "*.csv")).values == COUNTS).all()


class TestRefusals:
    SECRET = 7654321

    @pytest.mark.parametrize(
        "text",
        [
            "i,j\n1,1\n7654321,1\n",
            "i,j\n1,1\n-7654321,1\n",
            "i,j\n1,1\n76543.21,1\n",
            "i,j\n1,1\n7654321x,1\n",
            "i,j\n1,1\n7654321\n",
            "i,j\n1,1\n7654321,1,1\n",
            "i,j\n1,1\n,1\n",
            "i,j\n1,1\nNA,1\n",
            "i,j\n1,1\nnan,1\n",
            "i,j\n1,1\ntrue,1\n",
            "i,j\n1,1\n765432100000000000000000,1\n",
            "i,j\n1,1\n2020-01-01,1\n",
            "i,j\n1,1\n1.0,1\n",
            "i,j\n1,1\n\"7654321\n\",1\n",
            "i,j\n1,1\n\xff,1\n",
            "i,j,user\n1,1,7654321\n",
            "i\n1\n",
            "i,i\n1,1\n",
            "1,7654321\n1,1\n",
            "i;j\n1;1\n",
            "",
            "\n",
        ],
    )  # fmt: skip
    def test_bad_csv(self, text, tmp_path):
        path = tmp_path / "strange.csv"
        path.write_bytes(text.encode("latin-1"))
        assert "strange.csv" in refused(lambda: aggregate_files(DISK, path), secret=("765432", "76543.21"))

    def test_bad_parquet(self, tmp_path):
        path = tmp_path / "strange.parquet"
        good = [(1, 1)] * 3
        for rows, names, kind in (
            ([*good, (self.SECRET, 1)], ("i", "j"), None),
            ([*good, (None, 1)], ("i", "j"), None),
            (good, ("i", "j"), pa.float64()),
            ([*good, (2**63 + self.SECRET, 1)], ("i", "j"), pa.uint64()),
            ([(True, False)], ("i", "j"), None),
            ([("1", "1")], ("i", "j"), None),
            (good, ("i", "k"), None),
            ([(1, 1, self.SECRET)], ("i", "j", "user"), None),
        ):
            table(path, rows, names, kind)
            assert "strange.parquet" in refused(lambda: aggregate_files(DISK, path), secret=(self.SECRET,))
        table(path, good)
        assert aggregate_files(DISK, path).n == 3
        path.write_bytes(path.read_bytes()[:-9])
        assert "cannot be read as Parquet" in refused(lambda: aggregate_files(DISK, path))
        path.write_bytes(b"i,j\n1,1\n")
        assert "cannot be read as Parquet" in refused(lambda: aggregate_files(DISK, path))

    def test_a_line_without_end(self, tmp_path, monkeypatch):
        monkeypatch.setattr(report_tables, "BLOCK_BYTES", 20)
        (tmp_path / "a.csv").write_text("i,j\n" + "1" * 200)
        assert "a.csv" in refused(lambda: aggregate_files(DISK, tmp_path / "a.csv"))

    def test_reports_of_others(self, tmp_path):
        for suffix in (".csv", ".parquet"):
            path = write_reports(MANY, tmp_path / f"a{suffix}", mechanism=DISK)
            for other in (DiskAreaMechanism(epsilon=1.1, cells=6, radius=2), DiskAreaMechanism(epsilon=1.0, cells=7)):
                said = refused(lambda other=other, path=path: aggregate_files(other, path))
                assert re.search(rf"a{suffix} holds reports of another mechanism \(.*(epsilon|cells)", said)
        unlabelled = table(tmp_path / "b.parquet", MANY.rows[:5].tolist())
        assert aggregate_files(DISK, unlabelled).n == 5
        assert not aggregate_files(DISK, unlabelled).seeded

    def test_windows_and_missing_labels(self, tmp_path):
        """Reports from one window are not counted in another; a label that was lost is noticed where asked for."""
        (tmp_path / "homes.csv").write_text("x,y\n" + "1,2\n" * 1000)
        other = type(WINDOW).rectangle(0, 0, 7, 7)
        for suffix in (".csv", ".parquet"):
            path = tmp_path / f"a{suffix}"
            perturb_file(DISK, tmp_path / "homes.csv", path, window=other, rng=1)
            assert aggregate_files(DISK, path, window=other, labelled=True).seeded
            with pytest.raises(InputError, match=f"a{suffix} holds reports about another window"):
                aggregate_files(DISK, path, window=WINDOW)
        (tmp_path / "a.csv.json").unlink()
        with pytest.raises(InputError, match=r"a\.csv has no label.*--unlabelled"):
            aggregate_files(DISK, tmp_path / "a.csv", labelled=True)

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "null", '{"mechanism": 1, "seeded": false}', '{"mechanism": "a"}', "[" * 10**5,
                 '{"mechanism": "a", "seeded": 0}', '{"mechanism": "a", "seeded": true, "parameters": 5}'],
    )  # fmt: skip
    def test_labels_that_are_not_whole(self, text, tmp_path):
        path = write_reports(MANY, tmp_path / "a.csv")
        (tmp_path / "a.csv.json").write_text(text)
        assert "label of a.csv" in refused(lambda: aggregate_files(DISK, path))

    def test_no_report_counts_twice(self, tmp_path):
        path = write_reports(MANY, tmp_path / "a.csv")
        for twice in ([path, path], [tmp_path, str(path)], [tmp_path / "*.csv", tmp_path]):
            assert "a.csv is named twice" in refused(lambda twice=twice: aggregate_files(DISK, twice))
        (tmp_path / "b.csv").symlink_to(path)
        assert "named twice" in refused(lambda: aggregate_files(DISK, tmp_path))

    def test_a_hard_link_is_the_same_file(self, tmp_path):
        path = write_reports(MANY, tmp_path / "a.parquet")
        os.link(path, tmp_path / "b.parquet")
        assert "is a link to another of these files" in refused(lambda: aggregate_files(DISK, tmp_path))
        # The same reports in a file without a label may be those of others.
        (tmp_path / "b.parquet").unlink()
        table(tmp_path / "b.parquet", MANY.rows)
        assert aggregate_files(DISK, tmp_path).n == 2000

    def test_copies_do_not_count_twice(self, tmp_path):
        """Whatever they are named, and in whatever format, as long as their label tells."""
        path = write_reports(MANY, tmp_path / "a.parquet")
        (tmp_path / "b.parquet").write_bytes(path.read_bytes())
        words = "a.parquet and b.parquet hold reports of the same drawing, which would count twice"
        for workers in (None, 2):
            assert words in refused(lambda workers=workers: aggregate_files(DISK, tmp_path, workers=workers))
        (tmp_path / "b.parquet").unlink()
        csv.write_csv(pq.read_table(path), tmp_path / "b.csv")
        label = json.loads(pq.read_metadata(path).metadata[b"dpppsynth.reports"])
        (tmp_path / "b.csv.json").write_text(json.dumps(label))
        assert "the same drawing" in refused(lambda: aggregate_files(DISK, tmp_path))
        # Another drawing of the same persons is another one; older files do not tell.
        write_reports(MANY, tmp_path / "c.csv")
        assert aggregate_files(DISK, [path, tmp_path / "c.csv"]).n == 2000
        del label["run"]
        (tmp_path / "b.csv.json").write_text(json.dumps(label))
        assert aggregate_files(DISK, tmp_path).n == 3000

    def test_files_without_numbers(self, tmp_path, monkeypatch):
        """All files have number 0 on a file system that numbers none."""
        paths = [write_reports(part(slice(k, k + 5)), tmp_path / f"{k}.csv") for k in (0, 5)]
        whole = report_tables.Path.stat

        def unnumbered(self, **given):
            found = list(whole(self, **given))
            found[1:3] = 0, 0
            return os.stat_result(found)

        monkeypatch.setattr(report_tables.Path, "stat", unnumbered)
        assert aggregate_files(DISK, paths).n == 10
        assert "named twice" in refused(lambda: aggregate_files(DISK, [*paths, paths[0]]))

    def test_an_empty_name_is_not_the_working_folder(self, tmp_path, monkeypatch):
        write_reports(MANY, tmp_path / "a.csv")
        monkeypatch.chdir(tmp_path)
        assert aggregate_files(DISK, ".").n == 1000
        for nothing in ("", ["a.csv", ""]):
            assert "paths: an empty text names no file" in refused(
                lambda nothing=nothing: aggregate_files(DISK, nothing)
            )

    def test_folders_hold_other_things(self, tmp_path):
        (tmp_path / "part=1").mkdir()
        write_reports(MANY, tmp_path / "part=1" / "a.parquet")
        for name in ("_metadata.parquet", ".a.csv", "_temporary/1.csv", "notes.txt", "_SUCCESS"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x")
        write_reports(MANY, tmp_path / "b.csv")
        for folder in (tmp_path, str(tmp_path), tmp_path / "**" / "[a-z]*[.t]*"):
            assert aggregate_files(DISK, folder).n == 2000
        assert "must end in" in refused(lambda: aggregate_files(DISK, tmp_path / "notes.txt"))
        (tmp_path / "empty").mkdir()
        for nothing in (
            tmp_path / "empty",
            tmp_path / "*.xls",
            tmp_path / "none.csv",
            [],
            "",
            None,
            5,
            [None],
            "a\0.csv",
        ):
            with pytest.raises(InputError, match="paths: "):
                aggregate_files(DISK, nothing)

    @pytest.mark.parametrize(
        "wrong",
        [{"batch": 0}, {"batch": 1.5}, {"batch": None}, {"workers": 0}, {"workers": True}, {"client": 5},
         {"client": object(), "workers": 2}],
    )  # fmt: skip
    def test_arguments(self, wrong, tmp_path):
        path = write_reports(part(slice(5)), tmp_path / "a.csv")
        assert next(iter(wrong)) in refused(lambda: aggregate_files(DISK, path, **wrong))

    def test_mechanisms(self, tmp_path):
        path = write_reports(part(slice(5)), tmp_path / "a.csv")
        for other in (None, DISK.randomizer, "disk-area"):
            for call in (
                lambda other=other: aggregate_files(other, path),
                lambda other=other: perturb_file(other, path, tmp_path / "b.csv", window=WINDOW),
            ):
                assert "mechanism: needs a LocalMechanism" in refused(call)
        two = PrivAG(WINDOW, epsilon=1.0)
        for call in (
            lambda: aggregate_files(two, path),
            lambda: perturb_file(two, path, tmp_path / "b.csv", window=WINDOW),
        ):
            assert "one for each round" in refused(call)
        assert "reports: needs a Reports" in refused(lambda: write_reports(MANY.rows, path))


class TestPerturb:
    # Sorted, and different in x and in y: cells (0, 1), (0, 2) and (2, 0) of three by three.
    XY = np.repeat([[5.0, 30.0], [6.0, 59.0], [29.0, 1.0]], (300, 500, 200), axis=0)

    def points(self, path, xy=XY, names=("x", "y")):
        whole = pa.table({"id": np.arange(len(xy)), names[0]: xy[:, 0], names[1]: xy[:, 1]})
        (csv.write_csv if path.suffix == ".csv" else pq.write_table)(whole, path)
        return path

    @pytest.mark.parametrize("suffixes", [(".csv", ".parquet"), (".parquet", ".csv")])
    def test_one_report_for_every_point_in_another_order(self, suffixes, tmp_path):
        source = self.points(tmp_path / f"points{suffixes[0]}")
        out, said = tmp_path / f"reports{suffixes[1]}", []
        assert perturb_file(PLAIN, source, out, window=WINDOW, progress=said.append) == 1000
        assert said == ["1 000 reports drawn"]
        reports = read_reports(out, PLAIN)
        assert not reports.seeded
        # Each of the thousand is another cell with probability 8 / e^12: fifteen of them once in 10^39.
        cells = np.zeros((3, 3), dtype=int)
        np.add.at(cells, tuple(reports.rows.T), 1)
        assert np.abs(cells - [[0, 300, 500], [0, 0, 0], [200, 0, 0]]).sum() < 30
        # Of the first 300 reports of an order drawn at random, all are of the first 300 points with probability 0.
        assert 20 < np.sum(reports.rows[:300, 1] == 1) < 200

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.parametrize(("number", "batches"), [(500, [500]), (2999, [1000, 1999]), (4000, [1000] * 4)])
    def test_a_random_order_within_batches_of_a_thousand(self, number, batches, suffix, tmp_path, monkeypatch):
        """Neither a reader's small parts nor the rest at the end make batches in which an order shows."""
        monkeypatch.setattr(report_tables, "BLOCK_BYTES", 2000)
        cells = np.arange(number) * 9 // number
        xy = np.stack([cells // 3 * 10 + 5.0, cells % 3 * 20 + 10.0], axis=1)
        perturb_file(PLAIN, self.points(tmp_path / f"p{suffix}", xy), tmp_path / "a.parquet", window=WINDOW, batch=1000)
        about = pq.read_metadata(tmp_path / "a.parquet")
        assert [about.row_group(k).num_rows for k in range(about.num_row_groups)] == batches
        sent = read_reports(tmp_path / "a.parquet", PLAIN).rows @ [3, 1]
        cuts = np.cumsum(batches)[:-1]
        for true, found in zip(np.split(cells, cuts), np.split(sent, cuts), strict=True):
            # Those of the batch's own points, as in the test above; a random order leaves over half in another place.
            assert np.abs(np.bincount(true, minlength=9) - np.bincount(found, minlength=9)).sum() < 30
            assert np.mean(true != found) > 0.3

    @pytest.mark.parametrize("batch", [1, 999, 0, -1, 1000.0, True, None, "a", 2**31])
    def test_refuses_batches_that_shuffle_nothing(self, batch, tmp_path):
        source = self.points(tmp_path / "points.csv")
        assert "batch: needs a whole number of at least 1000" in refused(
            lambda: perturb_file(PLAIN, source, tmp_path / "a.csv", window=WINDOW, batch=batch)
        )
        assert not (tmp_path / "a.csv").exists()

    def test_no_two_runs_agree_unless_seeded(self, tmp_path):
        source = self.points(tmp_path / "points.csv")
        rows = {}
        for name, seed in {"a": None, "b": None, "c": 5, "d": 5}.items():
            perturb_file(DISK, source, tmp_path / f"{name}.csv", window=WINDOW, rng=seed)
            read = read_reports(tmp_path / f"{name}.csv", DISK)
            assert read.seeded is (seed is not None)
            rows[name] = read.rows
        assert (rows["a"] != rows["b"]).any()
        assert (rows["c"] == rows["d"]).all()

    def test_a_seed_does_not_repeat_itself(self, tmp_path):
        """Batches continue one stream: a generator made anew for each would give all of them the same reports."""
        source = self.points(tmp_path / "points.parquet", np.repeat([[5.0, 30.0]], 2000, axis=0))
        perturb_file(DISK, source, tmp_path / "a.csv", window=WINDOW, batch=1000, rng=5)
        rows = read_reports(tmp_path / "a.csv", DISK).rows
        assert (np.sort(rows[:1000], axis=0) != np.sort(rows[1000:], axis=0)).any()

    def test_a_round_and_a_uniform_grid(self, tmp_path):
        source = self.points(tmp_path / "points.parquet")
        grid = UniformGrid(WINDOW, epsilon=12.0, cells=3, oracle="randomized-response")
        perturb_file(grid, source, tmp_path / "a.parquet", window=WINDOW)
        held = grid.values(self.XY)
        assert np.abs(aggregate_files(grid, tmp_path / "a.parquet").values - np.bincount(held, minlength=9)).sum() < 30
        other = dps.Window.rectangle(0, 0, 31, 60)
        assert "window" in refused(lambda: perturb_file(grid, source, tmp_path / "b.parquet", window=other))

    def test_columns(self, tmp_path, monkeypatch):
        monkeypatch.setattr(report_tables, "BLOCK_BYTES", 2000)
        source = tmp_path / "points.csv"
        # Whole numbers first: what the first block holds need not be what the last one does.
        source.write_text("\ufeffnote, lon ,lat\n" + "1,5,30\n" * 700 + "a,6.25,59.5\n" * 300)
        assert perturb_file(PLAIN, source, tmp_path / "a.csv", window=WINDOW, x="lon", y="lat") == 1000
        assert "x: points.csv has no column 'x'" in refused(
            lambda: perturb_file(PLAIN, source, tmp_path / "b.csv", window=WINDOW)
        )

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.parametrize("bad", [31.125, -0.125, np.nan, np.inf, None])
    def test_refuses_points_without_telling_them(self, bad, suffix, tmp_path, monkeypatch):
        """Nor is anything left of the batch that was written before."""
        monkeypatch.setattr(report_tables, "BLOCK_BYTES", 2000)
        source = tmp_path / f"points{suffix}"
        whole = pa.table({"x": pa.array([5.0] * 2500 + [bad, 3.375], pa.float64()), "y": [1.0] * 2502})
        (csv.write_csv if suffix == ".csv" else pq.write_table)(whole, source)
        out, said = tmp_path / "a.csv", []
        refused(
            lambda: perturb_file(DISK, source, out, window=WINDOW, batch=1000, progress=said.append),
            secret=("125", "375"),
        )
        assert said[:1] == ["1 000 reports drawn"]
        assert [each.name for each in tmp_path.iterdir()] == [source.name]

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.parametrize("user", [None, "who"])
    def test_tells_the_share_of_the_file(self, suffix, user, tmp_path, monkeypatch):
        monkeypatch.setattr(report_tables, "BLOCK_BYTES", 2000)
        source, said = tmp_path / f"points{suffix}", []
        rows = pa.table({"x": [5.0] * 40_000, "y": [1.0] * 40_000, "who": [f"t{k}" for k in range(40_000)]})
        (csv.write_csv if suffix == ".csv" else pq.write_table)(rows, source)
        known = {"user": user, "batch": 1000, "progress": said.append}
        perturb_file(DISK, source, tmp_path / "a.csv", window=WINDOW, **known)
        for words, each in itertools.groupby(said, lambda step: re.sub(r"^[\d ]+", "", step)):
            shares = [step.share for step in each]
            assert words in ({"reports drawn"} if user is None else {"reports drawn", "reading persons"})
            assert shares == sorted(shares)
            assert shares[0] < 0.5
            assert shares[-1] == 1

    @pytest.mark.parametrize("kind", ["geojson", "gpkg", "shp", "parquet", "csv.gz", "csv"])
    def test_other_formats(self, kind, tmp_path):
        """The same persons, and their places, as in a table of numbers."""
        import geopandas
        import pandas as pd

        window = dps.Window.rectangle(0, 0, 30, 60, "EPSG:27700")
        xy, who = self.XY[:60], [f"{k % 20}" for k in range(60)]
        frame = geopandas.GeoDataFrame({"who": who}, geometry=geopandas.points_from_xy(*xy.T), crs="EPSG:27700")
        source, layout = tmp_path / f"points.{kind}", {}
        if kind.startswith("csv"):
            layout = {"x": "east", "separator": ";", "decimal": ","}
            pd.DataFrame({"who": who, "east": xy[:, 0], "y": xy[:, 1]}).to_csv(
                source, sep=";", decimal=",", index=False
            )
        elif kind == "parquet":
            frame.to_parquet(source)
        else:
            frame.to_file(source)
        plain = tmp_path / "plain.csv"
        pd.DataFrame({"who": who, "x": xy[:, 0], "y": xy[:, 1]}).to_csv(plain, index=False)
        for user, number in ((None, 60), ("who", 20)):
            rows = []
            for name, points, told in (("a", source, layout), ("b", plain, {})):
                out = tmp_path / f"{name}{number}.csv"
                assert perturb_file(DISK, points, out, window=window, user=user, rng=4, **told) == number
                rows.append(read_reports(out, DISK).rows)
            assert (rows[0] == rows[1]).all()

    def test_other_formats_are_refused_as_plain_ones(self, tmp_path):
        """Whatever is wrong with their names, CRS or rows; no coordinate is told."""
        import geopandas

        window = dps.Window.rectangle(0, 0, 30, 60, "EPSG:27700")
        source, out = tmp_path / "points.gpkg", tmp_path / "a.csv"
        frame = geopandas.GeoDataFrame({"user": ["a", "b"]}, geometry=geopandas.points_from_xy([1, 31.375], [1, 1]))
        frame.set_crs("EPSG:27700").to_file(source)
        said = refused(lambda: perturb_file(DISK, source, out, window=window))
        assert "points.gpkg has a column 'user'" in said
        ask = {"window": window, "user": "user"}
        with pytest.raises(InputError, match="outside") as caught:
            perturb_file(DISK, source, out, **ask)
        assert "375" not in str(caught.value)
        for wrong, words in (
            ({"window": WINDOW}, "in EPSG:27700, the window in no CRS; points are taken as they stand"),
            ({"window": dps.Window.rectangle(0, 0, 30, 60, "EPSG:32630")}, "the window in EPSG:32630"),
            ({"user": "who"}, "user: points.gpkg has no column 'who'"),
            ({"x": "east"}, "x: tells columns and signs of a CSV file"),
        ):
            with pytest.raises(InputError, match=re.escape(words)):
                perturb_file(DISK, source, out, **ask | wrong)
        (tmp_path / "points.txt").write_text("x,y\n1,1\n")
        assert "must end in .csv, .csv.gz" in refused(lambda: perturb_file(DISK, tmp_path / "points.txt", out, **ask))
        assert not list(tmp_path.glob("a.csv*"))

    def test_refuses_files(self, tmp_path):
        out, bad = tmp_path / "a.csv", tmp_path / "points.csv"
        for text in ("x,y\n", "x,y\n1,7x\n", "x,y\n1\n", "x,x\n1,1\n", "", "x,y\n1,1\n\xff,2\n"):
            bad.write_bytes(text.encode("latin-1"))
            refused(lambda: perturb_file(DISK, bad, out, window=WINDOW), secret=("7x",))
        for points in (tmp_path / "none.csv", tmp_path / "points.geojson", 5, None, tmp_path):
            with pytest.raises(InputError, match="points: "):
                perturb_file(DISK, points, out, window=WINDOW)
        table(tmp_path / "points.parquet", [("1", "2")], ("x", "y"))
        assert "not a number" in refused(lambda: perturb_file(DISK, tmp_path / "points.parquet", out, window=WINDOW))
        source = self.points(tmp_path / "good.csv")
        out.write_text("reports")
        assert "out: a.csv exists" in refused(lambda: perturb_file(DISK, source, out, window=WINDOW))
        for window in (None, (0, 0, 1, 1), DISK):
            assert "window: " in refused(lambda window=window: perturb_file(DISK, source, out, window=window))
        for name in (5, ["x"], "y", np.zeros(2)):
            refused(lambda name=name: perturb_file(DISK, source, tmp_path / "b.csv", window=WINDOW, x=name))
        with pytest.raises(InputError, match="progress: "):
            perturb_file(DISK, source, tmp_path / "b.csv", window=WINDOW, progress=5)
        with pytest.raises(InputError, match="rng: "):
            perturb_file(DISK, source, tmp_path / "b.csv", window=WINDOW, rng="a")


class TestDask:
    def test_files_on_a_cluster(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        write_reports(part(slice(600)), tmp_path / "a.csv")
        write_reports(part(slice(600, 1000), seeded=True), tmp_path / "b.parquet")
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            counts = aggregate_files(DISK, tmp_path, client=client)
            (tmp_path / "c.csv").write_text("i,j\n7654321,1\n")
            with pytest.raises(InputError, match=r"c\.csv holds a row that no client") as caught:
                aggregate_files(DISK, tmp_path, client=client)
        assert "765432" not in str(caught.value)
        assert (counts.values == COUNTS).all()
        assert (counts.n, counts.seeded) == (1000, True)
