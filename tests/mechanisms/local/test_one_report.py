"""One report a person: whose rows are drawn, who is refused, and what is said where nothing tells persons.

Statistical tests have fixed seeds; each would fail by chance, under another seed, with probability below 1e-6.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth import local
from dpppsynth.core.errors import InputError
from dpppsynth.release.verify import verify
from dpppsynth.reporting import render_report
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.person_points import few_rows_each

WINDOW = Window.rectangle(0, 0, 30, 30)
# So loud that a report is the person's own cell but for one in a thousand.
LOUD = local.DiskAreaMechanism(12.0, cells=3, radius=0)
PLAIN = ["--mechanism", "disk-area", "--epsilon", 12, "--cells", 3, "--radius", 0, "--window", "0,0,30,30"]
# 300 persons: the k-th has 1 + k % 3 points, one in each column of cells, all in row k % 3; rows shuffled.
CODES = np.repeat(np.arange(300), 1 + np.arange(300) % 3)
COLUMN = np.concatenate([np.arange(1 + k % 3) for k in range(300)])
ORDER = np.random.default_rng(1).permutation(len(CODES))
XY = np.column_stack([10.0 * COLUMN + 5, 10.0 * (CODES % 3) + 5])[ORDER]
USERS = np.array([f"p{code:03d}" for code in CODES])[ORDER]
VISITS = PointPattern(XY, WINDOW, {"user": USERS})


@pytest.fixture(params=[".csv", ".parquet"])
def points(request, tmp_path):
    return written(tmp_path / f"points{request.param}", USERS)


def written(path, users, name="user"):
    table = pd.DataFrame({"x": XY[:, 0], "y": XY[:, 1], name: users})
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path, index=False)
    return path


class TestRows:
    def test_every_row_of_a_person_is_as_likely_whatever_others_report(self):
        """Joint choices of two persons with two and three rows: six pairs, each as frequent; the first row is one."""
        codes, rng = np.array([7, 3, 3, 7, 3]), np.random.default_rng(2)
        pairs = np.array([few_rows_each(codes, 1, rng) for _ in range(12_000)])
        assert (np.sort(codes[pairs], axis=1) == [3, 7]).all()
        found, often = np.unique(pairs, axis=0, return_counts=True)
        assert len(found) == 6
        assert stats.chisquare(often).pvalue > 1e-7

    def test_secret_bits_differ_from_call_to_call(self):
        assert (few_rows_each(CODES, 1) != few_rows_each(CODES, 1)).any()

    def test_a_pattern_keeps_one_point_of_each_and_no_marks(self):
        kept = local.one_point_each(VISITS, rng=3)
        assert len(kept) == 300
        assert not kept.marks
        mine = {(float(x), float(y)) for x, y in XY}
        assert {(float(x), float(y)) for x, y in kept.xy} <= mine
        # A third of the persons has one point, in the first column; of the others as many each.
        expected = 100 * np.array([1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3])
        assert (np.abs(np.bincount((kept.xy[:, 0] // 10).astype(int)) - expected) < 6 * math.sqrt(50)).all()

    @pytest.mark.parametrize("user", ["whose", None, 3])
    def test_there_must_be_such_a_mark(self, user):
        with pytest.raises(InputError, match=r"^user: the pattern has no mark"):
            local.one_point_each(VISITS, user)


MECHANISMS = {
    "cells": LOUD,
    "hierarchy": local.RangeHierarchy(2.0, cells=4),
    "uniform": local.UniformGrid(WINDOW, epsilon=2.0, cells=3),
    "two rounds": local.AdvancedAdaptiveGrid(WINDOW, epsilon=2.0, post="norm-sub"),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
class TestSimulators:
    @pytest.mark.parametrize("fast", [False, True])
    def test_one_report_a_person(self, mechanism, fast):
        counts = mechanism.simulate(VISITS, rng=4, fast=fast, user="user")
        assert counts.n == 300
        assert counts.seeded
        if mechanism is LOUD:
            # Rows of cells, of which each person has one, and columns, of which they have up to three.
            shares = mechanism.estimate(counts, estimator="em")
            assert shares.sum(axis=0) == pytest.approx(np.full(3, 1 / 3), abs=0.03)

    def test_secret_bits_stay_secret(self, mechanism):
        assert not mechanism.simulate(VISITS, user="user").seeded

    def test_marks_are_refused_with_what_to_do(self, mechanism):
        for use in (mechanism.simulate, mechanism.release):
            with pytest.raises(InputError, match="name it with user=") as caught:
                use(VISITS)
            assert "k times epsilon" in str(caught.value)


class TestFiles:
    def test_one_report_a_person(self, points, tmp_path):
        out = tmp_path / "reports.csv"
        assert local.perturb_file(LOUD, points, out, window=WINDOW, user="user") == 300
        counts = local.aggregate_files(LOUD, out)
        assert counts.n == 300
        table = counts.values.reshape(3, 3)
        assert np.abs(table.sum(axis=0) - 100).max() < 10
        # Half of those with two points, and two thirds of those with three, are not in the first column.
        assert 60 < table[1:].sum() < 175

    def test_batches_take_the_same_rows(self, points, tmp_path, monkeypatch):
        """Rows of later batches count on: a mask that starts anew with each would take others, or too many."""
        monkeypatch.setattr("dpppsynth.mechanisms.local.report_tables.BLOCK_BYTES", 1024)
        monkeypatch.setattr("dpppsynth.mechanisms.local.point_files.FEWEST", 10)
        monkeypatch.setattr("dpppsynth.mechanisms.local.report_files.FEWEST", 10)
        out = tmp_path / "reports.parquet"
        assert local.perturb_file(LOUD, points, out, window=WINDOW, user="user", batch=50) == 300
        table = local.aggregate_files(LOUD, out).values.reshape(3, 3)
        assert np.abs(table.sum(axis=0) - 100).max() < 10

    def test_a_column_that_may_tell_persons_is_refused_by_its_name(self, points, tmp_path):
        """Whatever is in it: the refusal tells nothing of the rows."""
        out, single = tmp_path / "reports.csv", written(tmp_path / "single.csv", np.arange(len(XY)))
        spelt = written(tmp_path / "spelt.csv", USERS, name="User")
        for file, name in ((points, "'user'"), (single, "'user'"), (spelt, "'User'")):
            with pytest.raises(InputError, match=rf"^user: \w+\.\w+ has a column {name}, which may tell whose row"):
                local.perturb_file(LOUD, file, out, window=WINDOW)
            assert not out.exists()
        assert local.perturb_file(LOUD, spelt, tmp_path / "b.csv", window=WINDOW, user="User") == 300
        other = written(tmp_path / "other.csv", USERS, name="whose")
        assert local.perturb_file(LOUD, other, out, window=WINDOW) == len(XY)

    def test_points_outside_are_refused_whether_drawn_or_not(self, tmp_path):
        """One of 400 rows of a person: a check of the drawn row alone would miss it nearly always."""
        path = tmp_path / "wide.csv"
        path.write_text("x,y,id\n" + "5,5,ann\n" * 400 + "-5,5,ann\n")
        with pytest.raises(InputError, match="every point must lie in the window"):
            local.perturb_file(LOUD, path, tmp_path / "r.csv", window=WINDOW, user="id", rng=1)
        assert not (tmp_path / "r.csv").exists()

    def test_labels_are_texts(self, tmp_path):
        """The labels 7 and 007 are two persons in a CSV file, whose cells are texts; a space tells none apart."""
        path = tmp_path / "few.csv"
        path.write_text("x,y,id\n5,5,7\n5,5,007\n5,5,7 \n")
        assert local.perturb_file(LOUD, path, tmp_path / "r.csv", window=WINDOW, user="id") == 2

    @pytest.mark.parametrize("label", ["", "NA", "unknown"])
    def test_missing_labels_are_refused(self, label, tmp_path):
        path = tmp_path / "few.csv"
        path.write_text(f"x,y,id\n5,5,zoe\n5,5,{label}\n")
        with pytest.raises(InputError, match="labels are missing") as caught:
            local.perturb_file(LOUD, path, tmp_path / "r.csv", window=WINDOW, user="id")
        assert "zoe" not in str(caught.value)
        assert not (tmp_path / "r.csv").exists()

    @pytest.mark.parametrize("user", ["whose", "x", 3])
    def test_there_must_be_such_a_column(self, user, points, tmp_path):
        with pytest.raises(InputError, match=r"^user: points\.\w+ has no column"):
            local.perturb_file(LOUD, points, tmp_path / "r.csv", window=WINDOW, user=user)


class TestCertificates:
    """Statements on persons, on certificates and along the files of reports."""

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
    def test_all_points_of_a_person_are_protected(self, mechanism, tmp_path):
        asked = replace(mechanism, user="user")
        release = asked.release(VISITS)
        assert release.guarantee.relation == dps.Local(user="user")
        assert release.statistic.definition.n == 300
        release.save(tmp_path / "release", patterns=1)
        assert verify(tmp_path / "release").holds
        certificate = json.loads((tmp_path / "release" / "certificate.json").read_text())
        assert certificate["guarantee"]["relation"] == {"name": "local", "user": "user"}
        assert "all points of each person" in " ".join(render_report(tmp_path / "release").split())
        assert {"code": "one-point-reported", "user": "user"} in certificate["guarantee"]["assumes"]

    def test_a_certificate_without_the_mark_is_none_of_this_plan(self):
        plan = replace(LOUD, user="user").plan(WINDOW, n=300).statistic
        for relation in (dps.Local(), dps.Local(user="whose")):
            found = type(plan).from_parameters(plan.parameters(), relation, WINDOW, mechanism="disk-area")
            assert found.guarantee.relation == relation != plan.guarantee.relation

    def test_a_report_takes_the_mark_it_is_drawn_by(self):
        for user, pattern in (("whose", VISITS), ("user", VISITS.unmarked())):
            with pytest.raises(InputError, match="mark"):
                replace(LOUD, user=user).plan(WINDOW, n=300).release(pattern, rng=6)

    def test_geo_indistinguishability_of_all_points(self):
        """Points may move, and none may come: the number of a person's points decides how likely each is drawn."""
        relation = local.SEMGeoI(1.0, cells=6, user="user").release(VISITS, rng=5).guarantee.relation
        assert relation == dps.GeoIndistinguishability(6, user="user")
        assert relation.implies(dps.GeoIndistinguishability(6))
        assert not relation.implies(dps.GeoIndistinguishability(6, user="whose"))
        assert not dps.GeoIndistinguishability(6).implies(relation)
        assert "the number of points of every person is public" in relation.describe()

    def test_relations(self):
        persons = dps.Local(user="user")
        assert persons.implies(dps.Local())
        assert persons.implies(dps.ReplaceOne(7, user="user"))
        assert persons.implies(dps.AlphaNeighbours(5.0, max_points_per_person=2, user="user"))
        assert not persons.implies(dps.ReplaceOne(2, user="whose"))
        assert not persons.implies(dps.ReplaceOne(2))
        assert not persons.implies(dps.AddRemovePerson("user"))
        assert not dps.Local().implies(persons)
        assert not dps.Local("trajectory").implies(persons)
        with pytest.raises(InputError, match="a trajectory holds all points"):
            dps.Local("trajectory", user="user")

    def test_a_ledger_of_persons(self, tmp_path):
        needed = dps.ReplaceOne(4, user="user")
        ledger = dps.Ledger.create(tmp_path / "ledger.json", epsilon=20.0, delta=0.0, relation=needed)
        with pytest.raises(InputError, match=r"name the mark that tells persons, user='user'"):
            LOUD.release(VISITS.unmarked(), ledger=ledger)
        replace(LOUD, user="user").release(VISITS, ledger=ledger)
        assert ledger.spent == pytest.approx(12)

    @pytest.mark.exhaustive
    # Reports of persons enter a ledger of points, of which it is warned.
    @pytest.mark.filterwarnings("ignore:ledger. it protects points")
    def test_persons_are_another_number_than_points(self, points, tmp_path):
        """A ledger knows 600 points and 300 persons of the same data; one person fewer is other data."""
        path = tmp_path / "ledger.json"
        ledger = dps.Ledger.create(path, epsilon=90.0, delta=0.0, relation=dps.ReplaceOne())
        dps.LaplaceSynthesizer(1.0, relation=dps.ReplaceOne()).release(VISITS.unmarked(), ledger=ledger)
        asked = ["local", "perturb", points, *PLAIN, "--user", "user", "--ledger", path]
        run(*asked[:3], tmp_path / "a.csv", *asked[3:])
        replace(LOUD, user="user").release(VISITS, ledger=dps.Ledger.open(path))
        fewer = written(tmp_path / f"fewer{points.suffix}", np.where(USERS == "p000", "p001", USERS))
        said = spoken(run("local", "perturb", fewer, tmp_path / "b.csv", *asked[3:], code=2))
        assert "have n = 300, and this one another" in said

    def test_files_say_whether_each_person_sent_one_report(self, points, tmp_path):
        told, rows = replace(LOUD, user="user"), tmp_path / "rows.csv"
        other = written(tmp_path / "other.csv", USERS, name="whose")
        local.perturb_file(told, points, tmp_path / "persons.csv", window=WINDOW)
        local.perturb_file(LOUD, other, rows, window=WINDOW)
        assert local.aggregate_files(told, tmp_path / "persons.csv").n == 300
        assert local.aggregate_files(LOUD, [tmp_path / "persons.csv", rows]).n == 300 + len(XY)
        for name, mechanism in (("told", told), ("plain", LOUD)):
            local.count_files(mechanism, tmp_path / "persons.csv", tmp_path / f"{name}.json", window=WINDOW)
        assert local.aggregate_files(told, tmp_path / "told.json").release(WINDOW).guarantee.relation.user == "user"
        local.count_files(LOUD, rows, tmp_path / "rows.json", window=WINDOW)
        local.merge_counts([tmp_path / "told.json", tmp_path / "rows.json"], tmp_path / "both.json")
        for file in (rows, tmp_path / "plain.json", tmp_path / "both.json"):
            with pytest.raises(InputError, match="not say that each person sent one report"):
                local.aggregate_files(told, file)


class TestCommand:
    def test_synthesize_sends_one_report_a_person(self, tmp_path):
        """Not one a row without a remark, as once 59 055 rows of 5000 persons were."""
        points = written(tmp_path / "points.csv", USERS)
        asked = ["synthesize", points, *PLAIN, "--yes"]
        assert "--user: points" in spoken(run(*asked, "--out", tmp_path / "a", code=2))
        assert not (tmp_path / "a").exists()
        said = spoken(run(*asked, "--user", "user", "--out", tmp_path / "b"))
        assert "one person has other points" in said
        assert "whoever has k rows" not in said
        assert json.loads((tmp_path / "b" / "certificate.json").read_text())["parameters"]["n"] == 300
        assert "The certificate holds" in spoken(run("verify", tmp_path / "b"))
        other = written(tmp_path / "other.csv", USERS, name="whose")
        said = spoken(run("synthesize", other, *PLAIN, "--out", tmp_path / "c", "--yes"))
        assert "whoever has k rows is promised k times epsilon" in said

    def test_what_is_promised_is_said(self, tmp_path):
        path = written(tmp_path / "points.csv", USERS, name="whose")
        said = spoken(run("local", "perturb", path, tmp_path / "a.csv", *PLAIN))
        assert "whoever has k rows is promised k times epsilon" in said
        assert f"{len(XY)} reports" in said
        said = spoken(run("local", "perturb", path, tmp_path / "b.csv", *PLAIN, "--user", "whose"))
        assert "One report for each person of the column 'whose'" in said
        assert "300 reports" in said
        told = json.loads(run("local", "perturb", path, tmp_path / "c.csv", *PLAIN, "--user", "whose", "--json").stdout)
        assert (told["reports"], told["user"]) == (300, "whose")

    def test_a_column_that_is_not_there_costs_nothing(self, tmp_path):
        path = written(tmp_path / "points.csv", USERS)
        ledger = dps.Ledger.create(tmp_path / "ledger.json", epsilon=20.0, delta=0.0, relation=dps.ReplaceOne())
        before = ledger.path.read_bytes()
        asked = ["local", "perturb", path, tmp_path / "a.csv", *PLAIN, "--ledger", ledger.path]
        assert "--user: points.csv has no column 'whose'" in spoken(run(*asked, "--user", "whose", code=2))
        assert ledger.path.read_bytes() == before
        assert "--user: points.csv has a column 'user'" in spoken(run(*asked, code=2))
