"""Scores, distances, kept results and tables of the comparison with rivals."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import dpppsynth as dps

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def rivals():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("rivals")


@pytest.fixture(scope="module")
def case(rivals):
    """Points of a 4 x 4 square whose judges all lie in the middle of one of 64 x 64 cells."""
    window = dps.Window.rectangle(0, 0, 4, 4)
    known = dps.PointPattern(np.random.default_rng(1).uniform(0, 4, (50, 2)), window)
    return rivals.Case("square", known, np.full((3, 2), 1 / 32))


class TestCase:
    def test_distance_is_that_of_the_mass_to_the_judges(self, case):
        masses = np.zeros((128, 128))
        masses[64, 32] = 2.0
        # Half of the side along one axis and a quarter along the other.
        assert case.distance(masses, 64) == pytest.approx(0.75)

    def test_each_measure_has_its_own_best_candidate(self, rivals, case):
        raster = case.rasters[rivals.rival_methods.COARSE]
        near, even = np.zeros(raster.shape), np.ones(raster.shape)
        near[2, 2] = 1.0
        score, distance = case.best([(raster, even), (raster, near)])
        assert score == pytest.approx(0)
        assert distance == pytest.approx(1 / 32)

    def test_an_even_share_is_added_where_it_helps(self, rivals, case):
        raster = case.rasters[rivals.rival_methods.COARSE]
        empty = np.ones(raster.shape)
        empty[:3, :3] = 0.0
        assert case.best([(raster, empty)])[0] == pytest.approx(np.log(0.01))
        assert case.best([(raster, empty)], (0.0, 0.4))[0] == pytest.approx(np.log(0.99 * 0.4 + 0.01))


def test_kept_results_are_not_run_again(rivals, tmp_path):
    path = tmp_path / "kept.jsonl"
    first = rivals.Kept(path).get(("set", 3), lambda: (0.25, "tents"))
    again = rivals.Kept(path).get(("set", 3), lambda: pytest.fail("run again"))
    assert again == json.loads(json.dumps(first))
    assert first[:2] == [0.25, "tents"]


class TestTables:
    @pytest.fixture
    def rows(self, rivals):
        """A win over a histogram that is lost to a jitter, and a loss to the histogram by distance."""
        ours = {"auto": [0.5, 0.02, "lgcp-tents"], "tents": [0.5, 0.02, "lgcp-tents"]}
        histograms = {"UG": [0.4, 0.03], "AG": [0.3, 0.01]}
        limits = {"kernel, not private": [0.8, 0.01], "field, not private": [0.9, 0.01]}
        jitters = {"jitter, kernel": [0.6, 0.04], "jitter, deconvolved": [0.1, 0.05]}
        make = rivals.rival_tables.Row
        return [
            make("set", 100, "alpha 1 %", 1.0, ours, histograms, jitters, limits),
            make("set", 100, "add/remove", 1.0, ours, histograms, {}, limits),
        ]

    def test_wins_are_counted_by_measure_and_by_rivals(self, rivals, rows):
        *_, moved, added, both = rivals.rival_tables.summary(rows)
        assert moved == "| alpha 1 % | 1 | 1 | 1 | 0 of 1 | 0 | 0 | 1 of 1 | 0 | 0.300 | 2.00 |"
        assert added == "| add/remove | 1 | 1 | 1 |  | 1 | 0 |  | 0 | 0.300 | 2.00 |"
        assert both == "| all |  | 2 | 2 | 0 of 1 | 1 | 0 | 1 of 1 | 0 | 0.300 | 2.00 |"

    def test_losses_name_the_rival_and_its_lead(self, rivals, rows):
        *_, moved, added = rivals.rival_tables.losses(rows)
        assert moved == "| set | 100 | alpha 1 % | 1: jitter, kernel, 0.100 | 1: AG, 100 % |"
        assert added == "| set | 100 | add/remove |  | 1: AG, 100 % |"

    def test_each_histogram_stands_beside_the_default_alone(self, rivals, rows):
        *_, grid, adaptive = rivals.rival_tables.methods(rows)
        assert grid == "| UG | 2 | 0 | 2 | 2 | 0.100 | 1.50 |"
        assert adaptive == "| AG | 0 | 2 | 2 | 0 | 0.200 | 0.50 |"

    def test_the_best_of_each_setting_is_bold(self, rivals, rows):
        *_, moved, added = rivals.rival_tables.results(rows, rivals.rival_tables.DISTANCE)
        assert moved.endswith("| **1.00** AG | 4.00 | 5.00 | 2.00 |  | 2.00 | tents | 1.00 |")
        assert added.endswith("| **1.00** AG |  |  | 2.00 |  | 2.00 | tents | 1.00 |")

    def test_rows_are_told_by_the_files_beside_a_page(self, rivals, rows, tmp_path):
        tables = rivals.rival_tables
        page = tmp_path / "page.md"
        page.write_text("\n".join(f"[{name}](page/{name}.csv)" for name in ("main", "scores", "distances")))
        for name, lines in tables.tables(rows):
            if name in page.read_text():
                rivals.fill(page, name, lines)
        told = tables.told_rows(page.with_suffix(""))
        for write in (tables.summary, tables.main_settings, tables.losses):
            assert write(told) == write(rows)


def test_a_method_that_is_run_again_is_that_of_the_default_where_it_takes_it(rivals, case, tmp_path):
    """As its plan says today, whatever stood in the row: with noise of a hundredth and of a tenth of the square."""

    def row(epsilon):
        old = {"auto": [0.1, 0.2, "lgcp-tents"], "tents": [0.1, 0.2], "moved": [0.1, 0.2]}
        return rivals.rival_tables.Row("square", 50, "alpha 1 %", epsilon, old, {}, {}, {})

    kept, budgets = rivals.Kept(tmp_path / "kept.jsonl"), (1.0, 0.1)
    for epsilon in budgets:
        kept.get(("square", 50, "alpha 1 %", epsilon, "moved"), lambda: (0.3, 0.1, "lgcp-moved"))
    rows = [row(epsilon) for epsilon in budgets]
    rivals.again(rows, case, "moved", budgets, kept)
    assert [each.ours["auto"][0] for each in rows] == [0.3, 0.1]
    assert [each.chosen for each in rows] == ["moved", "tents"]
    assert [each.ours["moved"][0] for each in rows] == [0.3, 0.3]


def test_histograms_that_are_run_again_take_the_place_of_those_that_were_told(rivals, case, tmp_path):
    def row(epsilon):
        return rivals.rival_tables.Row("square", 50, "add/remove", epsilon, {}, {"UG": [9.0, 0.0]}, {}, {})

    rows, kept = [row(1.0), row(3.0)], rivals.Kept(tmp_path / "kept.jsonl")
    for name in rivals.rival_methods.HISTOGRAMS:
        kept.get(("square", 50, "sensitivity 1", 1.0, name), lambda: (0.1, 0.2))
    rivals.again(rows, case, "histograms", [1.0], kept)
    assert list(rows[0].histograms) == list(rivals.rival_methods.HISTOGRAMS)
    assert all(found[:2] == [0.1, 0.2] for found in rows[0].histograms.values())
    assert rows[1].histograms == {"UG": [9.0, 0.0]}


def test_rows_of_a_set_that_is_run_take_the_place_of_its_own_alone(rivals, case, monkeypatch):
    def row(name, n, relation="", epsilon=0.0):
        return rivals.rival_tables.Row(name, n, relation, epsilon, {}, {}, {}, {})

    monkeypatch.setattr(rivals, "row", lambda case, *setting: row(case.name, 50, *setting[:2]))
    monkeypatch.setattr(rivals, "SETS", {"first": (), "square": (), "last": ()})
    monkeypatch.setattr(rivals, "FEW", {"square": (("alpha 1 %",), (1.0,))})
    found = rivals.with_rows([row("first", 50), row("square", 50), row("square", 20), row("last", 50)], case, None)
    assert [each.setting for each in found][:2] == [["first", "50", "", "0"], ["square", "20", "", "0"]]
    assert [each.setting for each in found][2:] == [["square", "50", "alpha 1 %", "1"], ["last", "50", "", "0"]]


def test_masses_of_blocks_are_put_right_and_nothing_else(rivals, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    right = importlib.import_module("rival_blocks").put_right
    masses, counts = np.ones((8, 8)), np.zeros((8, 8))
    masses[0, 0], masses[:2, 2:4], counts[:2, :4] = 5.0, 0.0, 3.0
    found = right(masses, counts)
    assert found[0, 0] == pytest.approx(5 / 8 / 2)
    assert found[:2, 2:4] == pytest.approx(np.full((2, 2), 1 / 8))
    assert found[2:].sum() == found[:, 4:].sum() == 0
